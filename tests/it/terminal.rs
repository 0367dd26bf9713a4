//! A terminal for commands, and what it was sent.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::cli_shell::Shell;

/// A terminal with so many columns; a stream that is not on it goes to a pipe.
#[derive(Clone, Copy)]
pub(crate) struct Terminal {
    pub(crate) columns: u16,
    pub(crate) has_stdout: bool,
    pub(crate) has_stderr: bool,
    pub(crate) has_colour: bool,
}

/// What a command printed.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) terminal: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

/// A terminal of both streams with 80 columns and colour.
pub(crate) const TERMINAL: Terminal = Terminal {
    columns: 80,
    has_stdout: true,
    has_stderr: true,
    has_colour: true,
};

impl Screen {
    /// The lines that a person sees in the end. Knows the escape sequences of progress and colour only.
    pub(crate) fn lines(&self) -> Vec<String> {
        let (mut lines, mut column) = (vec![Vec::new()], 0);
        let mut rest = self.terminal.chars();
        while let Some(c) = rest.next() {
            let line: &mut Vec<char> = lines.last_mut().unwrap();
            match c {
                '\r' => column = 0,
                '\n' => lines.push(Vec::new()),
                '\u{1b}' => {
                    let sequence: String = rest.by_ref().take_while(|c| !c.is_ascii_alphabetic()).collect();
                    // `take_while` has taken the letter; only erasing has this parameter.
                    if sequence == "[2" {
                        line.clear();
                    }
                }
                c => {
                    line.resize(line.len().max(column + 1), ' ');
                    line[column] = c;
                    column += 1;
                }
            }
        }
        let lines = lines.into_iter().map(|line| line.into_iter().collect::<String>());
        lines.map(|line| line.trim_end().to_owned()).collect()
    }
}

impl Terminal {
    /// The end of a person, and the end of a command.
    fn open(self) -> (OwnedFd, File) {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let inside = File::options()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        let size = rustix::termios::Winsize {
            ws_row: 50,
            ws_col: self.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&inside, size).unwrap();
        (terminal, inside)
    }

    /// Runs a command until it has printed `text`, then ends it. Returns what the terminal was sent.
    pub(crate) fn run_until(self, shell: &Shell, args: &[&str], text: &str) -> String {
        let (terminal, inside) = self.open();
        let mut command = shell.command(args);
        command
            .env("NO_COLOR", "1")
            .stdout(inside.try_clone().unwrap())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop(command);
        drop(inside);
        let (mut terminal, mut sent, mut buffer) = (File::from(terminal), Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&sent).contains(text) {
            // An error once the other end is closed.
            let read = terminal.read(&mut buffer).unwrap_or(0);
            let so_far = String::from_utf8_lossy(&sent);
            assert_ne!(read, 0, "it ended without `{text}`: {so_far}");
            sent.extend_from_slice(&buffer[..read]);
        }
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        child.wait().unwrap();
        String::from_utf8_lossy(&sent).into_owned()
    }

    pub(crate) fn run(self, shell: &Shell, args: &[&str]) -> Screen {
        self.run_command(shell.command(args))
    }

    pub(crate) fn run_command(self, mut command: Command) -> Screen {
        let (terminal, inside) = self.open();
        let stream = |is_on_it: bool| match is_on_it {
            true => Stdio::from(inside.try_clone().unwrap()),
            false => Stdio::piped(),
        };
        command
            .env("TERM", "xterm")
            .stdout(stream(self.has_stdout))
            .stderr(stream(self.has_stderr));
        if !self.has_colour {
            command.env("NO_COLOR", "1");
        }
        let child = command.spawn().unwrap();
        drop(command);
        drop(inside);
        let reader = std::thread::spawn(move || {
            let mut sent = Vec::new();
            // Ends with an error once the other end is closed.
            let _ = File::from(terminal).read_to_end(&mut sent);
            String::from_utf8_lossy(&sent).into_owned()
        });
        let output = child.wait_with_output().unwrap();
        Screen {
            terminal: reader.join().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap_or(-1),
        }
    }
}

/// Runs a command on [`TERMINAL`]; returns all that the terminal was sent.
pub(crate) fn on_terminal(shell: &Shell, args: &[&str]) -> String {
    TERMINAL.run(shell, args).terminal
}
