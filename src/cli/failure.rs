//! Errors of commands: a message for humans and an exit code for scripts.

use std::fmt;

use crate::bundle;
use crate::cli::exit::Exit;
use crate::config;
use crate::error;
use crate::server;

#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self {
            exit,
            message: message.to_string(),
        }
    }

    pub(crate) fn refused(message: impl fmt::Display) -> Self {
        Self::new(Exit::Refused, message)
    }

    pub(crate) fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let path = path.display();
        Self::refused(match error.kind() {
            ErrorKind::NotFound => format!("no such file or folder: `{path}`"),
            ErrorKind::AlreadyExists => {
                format!("`{path}` already exists; choose another name or remove it first")
            }
            ErrorKind::PermissionDenied => {
                format!("permission denied: `{path}`")
            }
            ErrorKind::IsADirectory => format!("`{path}` is a folder; name a file"),
            _ => format!("`{path}`: {error}"),
        })
    }

    pub(crate) fn internal(doing: &str, error: impl fmt::Display) -> Self {
        Self::new(Exit::Internal, format!("{doing} failed: {error}"))
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Whether it says that something does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        self.exit == Exit::Refused && self.message.contains("not found")
    }

    /// Whether it says that this version is published with other content.
    pub(crate) fn is_version_conflict(&self) -> bool {
        self.exit == Exit::Refused && self.message.contains("already published with different content")
    }

    /// Whether it says that an archive has skills, but none where one is expected.
    pub(crate) fn is_about_misplaced_skills(&self) -> bool {
        self.exit == Exit::Refused && self.message.contains("its only top-level folder; found")
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.message = format!("{}; {hint}", self.message);
        self
    }
}

impl Failure {
    /// Adds a text of [`error::did_you_mean`], which begins with its separator or is empty.
    #[must_use]
    pub(crate) fn hint_if_any(mut self, meant: String) -> Self {
        self.message.push_str(&meant);
        self
    }
}

/// Members of a request by the flag that sets them.
const FLAGS: [(&str, &str); 15] = [
    ("args", "arguments after `--`"),
    ("blobs", "--blob"),
    ("callback_url", "--callback-url"),
    ("code", "--code"),
    ("expires_at", "--expires"),
    ("files", "--file"),
    ("input", "--input"),
    ("language", "--lang"),
    ("mount_skills", "--mount"),
    ("requirements", "--requirement"),
    ("script", "--script"),
    ("stdin", "--stdin"),
    ("timeout", "--timeout"),
    ("ttl", "--ttl"),
    ("workdir", "--workdir"),
];

impl Failure {
    /// Names the flag that the message is about, unless it does.
    #[must_use]
    pub(crate) fn of_flag(mut self, flag: &str) -> Self {
        if !self.message.starts_with("--") {
            self.message = format!("{flag}: {}", self.message);
        }
        self
    }

    /// Names the flag instead of the member of the request, as in `requirements[0]: …`.
    #[must_use]
    pub(crate) fn with_flags(mut self) -> Self {
        let Some((member, rest)) = self.message.split_once(": ") else {
            return self;
        };
        let (name, index) = member.split_once('[').unwrap_or((member, ""));
        if let ("args", Ok(index)) = (name, index.trim_end_matches(']').parse::<usize>()) {
            self.message = format!("argument {} after `--`: {rest}", index + 1);
        } else if let Some((_, flag)) = FLAGS.iter().find(|(known, _)| *known == name) {
            self.message = format!("{flag}: {rest}");
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<error::Error> for Failure {
    fn from(error: error::Error) -> Self {
        let exit = Exit::of_code(error.code());
        // A command has no log, so the message must contain the cause.
        let mut message = error.to_string();
        if error.code() == error::Code::Internal {
            "internal error".clone_into(&mut message);
            let mut cause = std::error::Error::source(&error);
            while let Some(source) = cause {
                message = format!("{message}: {source}");
                cause = source.source();
            }
        }
        Self::new(exit, message)
    }
}

impl From<config::Error> for Failure {
    fn from(error: config::Error) -> Self {
        Self::new(Exit::Config, error)
    }
}

impl From<server::Error> for Failure {
    fn from(error: server::Error) -> Self {
        use server::Error as Server;
        let exit = match &error {
            Server::Config(_) | Server::Logging(_) | Server::Signing(_) => Exit::Config,
            Server::Database { .. }
            | Server::Files { .. }
            | Server::Instance(_)
            | Server::Listen { .. }
            | Server::ListenForGrpc { .. }
            | Server::ListenForMetrics { .. } => Exit::Unavailable,
            Server::Refused(error) => Exit::of_code(error.code()),
            Server::StorageFailed => Exit::Storage,
            Server::Signals(_) | Server::Runtime(_) => Exit::Internal,
        };
        match error {
            Server::Refused(error) => error.into(),
            other => Self::new(exit, other),
        }
    }
}

impl From<bundle::Error> for Failure {
    fn from(error: bundle::Error) -> Self {
        error::Error::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_flags_instead_of_members() {
        for (message, shown) in [
            ("requirements[0]: no package", "--requirement: no package"),
            ("files: \"a\" is given twice", "--file: \"a\" is given twice"),
            (
                "mount_skills: skill `x` not found",
                "--mount: skill `x` not found",
            ),
            (
                "args[2]: contains a NUL character",
                "argument 3 after `--`: contains a NUL character",
            ),
            (
                "args: 2000 arguments, the limit is 1000",
                "arguments after `--`: 2000 arguments, the limit is 1000",
            ),
            (
                "timeout: must be at least 0.1 seconds",
                "--timeout: must be at least 0.1 seconds",
            ),
            ("the input does not fit: /a", "the input does not fit: /a"),
        ] {
            assert_eq!(Failure::refused(message).with_flags().to_string(), shown);
        }
        let file = Failure::refused("no such file: `x`").of_flag("--file");
        assert_eq!(file.to_string(), "--file: no such file: `x`");
        let input = Failure::refused("--input: not JSON").of_flag("--input");
        assert_eq!(input.to_string(), "--input: not JSON");
    }
}
