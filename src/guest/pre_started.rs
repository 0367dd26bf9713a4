//! A pre-started interpreter: waits in its own start-up, then runs one program.
//!
//! Its start-up runs our module (`runtime/sitecustomize.py`, `runtime/wait.cjs`), which reads the rest of the job
//! from a named pipe, sets arguments, environment and standard input, and returns.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::signal::unix::Signal;

use crate::guest::layout;
use crate::guest::program::{self, Program};
use crate::guest::wire::{self, Start, Warm};

/// Pipe on which the interpreter reports that it waits.
const READY: &str = "/sandbox/.ready";
/// Pipe from which it reads its job.
const JOB: &str = "/sandbox/.job";
/// Loads our module: the first folder on Python's path, and Node's first option.
const PYTHON_HOOK: &str = "/sandbox/runtime/warm";
const NODE_HOOK: &str = "--require=/sandbox/runtime/warm/wait.cjs";
/// Only our own folders are on Python's path while it waits: modules in others may replace standard ones, which would
/// run code of the program. `runtime/sitecustomize.py` reads the others from a file and adds them.
const PYTHON_OURS: &str = "/sandbox/runtime";
const PYTHON_LATER: &str = "/sandbox/.path";

#[derive(Debug)]
pub(super) struct Interpreter {
    program: Program,
    job: pipe::Sender,
    arguments: usize,
}

impl Interpreter {
    /// Returns when the interpreter waits; fails if it ends.
    pub(super) async fn start(warm: &Warm, children: &mut Signal) -> io::Result<Self> {
        let input = layout::reserve_input()?;
        // Opened for reading and writing, which does not block.
        let mut both = pipe::OpenOptions::new();
        both.read_write(true);
        make_pipe(READY)?;
        make_pipe(JOB)?;
        let (mut ready, job) = (both.open_receiver(READY)?, both.open_sender(JOB)?);
        let (env, later) = with_hook(warm);
        fs::write(PYTHON_LATER, later)?;
        let program = program::start(&warm.argv, &env, Some(input)).map_err(io::Error::other)?;
        let started = Self {
            program,
            job,
            arguments: warm.argv.len(),
        };
        tokio::select! {
            said = ready.read_u8() => said.map(drop)?,
            error = ended(Some(&started), children) => return Err(error),
        }
        for path in [READY, JOB, PYTHON_LATER] {
            fs::remove_file(path)?;
        }
        Ok(started)
    }

    /// Sends it the rest of its job. The error is a message for the skill's author.
    pub(super) async fn release(mut self, start: &Start) -> Result<Program, String> {
        let message = message(start, self.arguments);
        self.job
            .write_all(&message)
            .await
            .map_err(|error| format!("the waiting interpreter takes no job: {error}"))?;
        Ok(self.program)
    }
}

/// Resolves when an interpreter without a job ends, for example because the system is out of memory.
pub(super) async fn ended(interpreter: Option<&Interpreter>, children: &mut Signal) -> io::Error {
    let Some(interpreter) = interpreter else {
        return std::future::pending().await;
    };
    while program::reap(interpreter.program.pid).is_none() {
        children.recv().await;
    }
    wire::invalid("the interpreter ended before it had a program")
}

fn make_pipe(path: &str) -> io::Result<()> {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).map_err(Into::into)
}

/// The environment that loads our module, and the folders that are added to Python's path with the job.
fn with_hook(warm: &Warm) -> (Vec<(String, String)>, String) {
    let is_node = warm.argv.first().is_some_and(|name| name == "node");
    let (key, hook) = if is_node {
        ("NODE_OPTIONS", NODE_HOOK)
    } else {
        ("PYTHONPATH", PYTHON_HOOK)
    };
    let given = warm.env.iter().find(|(name, _)| name == key);
    let given = given.map_or("", |(_, value)| value);
    let others = warm.env.iter().filter(|(name, _)| name != key).cloned();
    let (value, later) = if is_node {
        (format!("{hook} {given}").trim_end().to_owned(), String::new())
    } else {
        let (ours, later): (Vec<_>, Vec<_>) = given
            .split(':')
            .filter(|path| !path.is_empty())
            .partition(|path| path.starts_with(PYTHON_OURS));
        ([&[hook], &ours[..]].concat().join(":"), later.join(":"))
    };
    (others.chain([(key.to_owned(), value)]).collect(), later)
}

/// Length as ten digits, then texts that each end with a zero byte, which none can contain: the file for standard
/// input if that is not open already, the number of arguments, the arguments, the variables.
fn message(start: &Start, known: usize) -> Vec<u8> {
    let arguments = start.argv.get(known..).unwrap_or_default();
    let stdin = if Path::new(layout::STDIN).exists() {
        layout::STDIN
    } else {
        ""
    };
    let mut texts = vec![stdin.to_owned(), arguments.len().to_string()];
    texts.extend_from_slice(arguments);
    texts.extend(start.env.iter().map(|(key, value)| format!("{key}={value}")));
    let body: Vec<u8> = texts.iter().flat_map(|text| text.bytes().chain([0])).collect();
    let mut message = format!("{:010}", body.len()).into_bytes();
    message.extend_from_slice(&body);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_has_the_remaining_arguments_and_the_environment() {
        let start = Start {
            argv: ["python3", "main.py", "-v", "ü"].map(ToOwned::to_owned).to_vec(),
            env: vec![("A".to_owned(), "1\n2".to_owned())],
            ..Start::default()
        };
        assert_eq!(message(&start, 2), "0000000015\x002\0-v\0ü\0A=1\n2\0".as_bytes());
    }

    #[test]
    fn module_search_path_starts_with_the_runtime() {
        let hooked = |interpreter: &str| {
            let warm = Warm {
                argv: vec![interpreter.to_owned()],
                env: vec![("PYTHONPATH".to_owned(), "/sandbox/runtime:/x:/y".to_owned())],
                ..Warm::default()
            };
            let text = |(key, value): &(String, String)| format!("{key}={value}");
            let (env, later) = with_hook(&warm);
            (env.iter().map(text).collect::<Vec<_>>(), later)
        };
        let python = ["PYTHONPATH=/sandbox/runtime/warm:/sandbox/runtime"];
        assert_eq!(
            hooked("python3"),
            (python.map(str::to_owned).to_vec(), "/x:/y".to_owned())
        );
        let node = [
            "PYTHONPATH=/sandbox/runtime:/x:/y",
            "NODE_OPTIONS=--require=/sandbox/runtime/warm/wait.cjs",
        ];
        assert_eq!(hooked("node"), (node.map(str::to_owned).to_vec(), String::new()));
    }
}
