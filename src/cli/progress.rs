//! A spinner on standard error for operations over a second, on terminals only.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::console::Console;
use crate::cli::terminal_text;
use crate::limits;

#[derive(Debug)]
pub(crate) struct Spinner(Option<(Sender<String>, JoinHandle<()>)>);

const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(120);

impl Spinner {
    pub(crate) fn start(text: impl Into<String>) -> Self {
        if !Console::draws_progress() {
            return Self(None);
        }
        let (sender, receiver) = channel();
        let text = text.into();
        let thread = std::thread::spawn(move || show(text, &receiver));
        Self(Some((sender, thread)))
    }

    /// As [`say`](Self::say); without a spinner a line is printed.
    pub(crate) fn tell(&self, text: String, is_line: bool) {
        if self.0.is_none() && is_line {
            let _ = writeln!(io::stderr().lock(), "{}", terminal_text::line(&text));
        }
        self.say(text);
    }

    pub(crate) fn say(&self, text: String) {
        if let Some((sender, _)) = &self.0 {
            let _ = sender.send(text);
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
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
    let shown_from = std::time::Instant::now() + PATIENCE;
    loop {
        let wait = shown_from.saturating_duration_since(std::time::Instant::now());
        match changes.recv_timeout(wait) {
            Ok(newer) => text = newer,
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
    let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner()
        .with_style(style)
        .with_message(terminal_text::line(&text).into_owned())
        .with_elapsed(PATIENCE);
    bar.enable_steady_tick(TICK);
    while let Ok(newer) = changes.recv() {
        bar.set_message(terminal_text::line(&newer).into_owned());
    }
    bar.finish_and_clear();
}
