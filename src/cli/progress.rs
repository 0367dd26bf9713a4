//! A spinner on standard error for operations over a second, on terminals only.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::console::Console;
use crate::cli::terminal_text;
use crate::limits;

#[derive(Debug)]
pub(crate) struct Spinner {
    drawn: Option<(Sender<String>, JoinHandle<()>)>,
    /// When a line was printed last.
    printed_at: Mutex<Instant>,
}

/// What is happening.
#[derive(Debug)]
pub(crate) enum Message {
    /// Something begins or ends. Without a spinner it is a line.
    Step(String),
    /// How far it has come. Without a spinner it is a line if none was printed for [`LINES_EVERY`].
    Passing(String),
}

impl Message {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Step(text) | Self::Passing(text) => text,
        }
    }
}

/// The line of the terminal on which a spinner is drawn or would be.
#[derive(Debug)]
struct TerminalLine {
    bar: Option<ProgressBar>,
    is_drawn: bool,
    /// Whether nothing was printed in this line. Otherwise a spinner would replace it.
    is_empty: bool,
}

static LINE: Mutex<TerminalLine> = Mutex::new(TerminalLine {
    bar: None,
    is_drawn: false,
    is_empty: true,
});

impl TerminalLine {
    fn hide(&mut self) {
        if let (Some(bar), true) = (&self.bar, self.is_drawn) {
            bar.set_draw_target(ProgressDrawTarget::hidden());
            let _ = io::stderr().lock().write_all(b"\r\x1b[2K");
            self.is_drawn = false;
        }
    }

    fn draw(&mut self) {
        if let (Some(bar), true) = (&self.bar, self.is_empty) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            self.is_drawn = true;
        }
    }
}

/// Prints `bytes` to the terminal of the spinner, which is erased before and drawn again below.
pub(crate) fn print_above_spinner<T>(bytes: &[u8], print: impl FnOnce(&[u8]) -> T) -> T {
    let mut line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
    line.hide();
    let printed = print(bytes);
    if let Some(last) = bytes.last() {
        line.is_empty = *last == b'\n';
    }
    line.draw();
    printed
}

const PATIENCE: Duration = Duration::from_secs(1);
const LINES_EVERY: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(120);

impl Spinner {
    pub(crate) fn start(text: impl Into<String>) -> Self {
        let printed_at = Mutex::new(Instant::now());
        if !Console::draws_progress() {
            return Self {
                drawn: None,
                printed_at,
            };
        }
        let (sender, receiver) = channel();
        let text = text.into();
        let thread = std::thread::spawn(move || show(text, &receiver));
        Self {
            drawn: Some((sender, thread)),
            printed_at,
        }
    }

    /// Shows a message in the spinner; without one, prints it.
    pub(crate) fn report(&self, message: Message) {
        if self.drawn.is_some() {
            return self.say(message.into_text());
        }
        let mut printed_at = self.printed_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = match message {
            Message::Step(_) => true,
            Message::Passing(_) => printed_at.elapsed() >= LINES_EVERY,
        };
        if is_due {
            *printed_at = Instant::now();
            let text = message.into_text();
            let _ = writeln!(io::stderr().lock(), "{}", terminal_text::line(&text));
        }
    }

    pub(crate) fn say(&self, text: String) {
        if let Some((sender, _)) = &self.drawn {
            let _ = sender.send(text);
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.drawn.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

/// Counts transferred bytes in a spinner.
#[derive(Debug)]
pub(crate) struct ProgressWriter<T> {
    inner: T,
    spinner: Spinner,
    what: &'static str,
    bytes: u64,
}

impl<T> ProgressWriter<T> {
    pub(crate) fn new(inner: T, what: &'static str) -> Self {
        Self {
            inner,
            spinner: Spinner::start(what),
            what,
            bytes: 0,
        }
    }

    fn count(&mut self, bytes: usize) {
        let before = self.bytes / limits::MIB;
        self.bytes += bytes as u64;
        let now = self.bytes / limits::MIB;
        if now > before {
            self.spinner.say(format!("{}: {now} MiB", self.what));
        }
    }
}

impl<T: Read> Read for ProgressWriter<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count(read);
        Ok(read)
    }
}

impl<T: Write> Write for ProgressWriter<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.count(written);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn show(mut text: String, changes: &Receiver<String>) {
    let shown_from = Instant::now() + PATIENCE;
    loop {
        let wait = shown_from.saturating_duration_since(Instant::now());
        match changes.recv_timeout(wait) {
            Ok(newer) => text = newer,
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
    let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
        .with_style(style)
        .with_message(terminal_text::line(&text).into_owned())
        .with_elapsed(PATIENCE);
    let line = || LINE.lock().unwrap_or_else(PoisonError::into_inner);
    {
        let mut line = line();
        line.hide();
        line.bar = Some(bar.clone());
        line.draw();
    }
    bar.enable_steady_tick(TICK);
    while let Ok(newer) = changes.recv() {
        bar.set_message(terminal_text::line(&newer).into_owned());
    }
    bar.disable_steady_tick();
    let mut line = line();
    line.hide();
    line.bar = None;
}
