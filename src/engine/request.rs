//! What a caller asks to run, checked.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fs::File;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::engine::{AskedBlob, CalledCode, mounts};
use crate::error::{Code, Error};
use crate::execution::JsonText;
use crate::ids::IdempotencyKey;
use crate::limits;
use crate::sandbox::{InputFile, ProgressSender};
use crate::skill::{Selector, SkillName, SkillRef};

/// One execution as asked for.
#[derive(Debug)]
pub struct RunRequest {
    /// What to run.
    pub what: What,
    /// With what.
    pub ask: Ask,
    /// Hears of long waits before the start.
    pub progress: Option<ProgressSender>,
}

/// How an execution is asked for, besides what it is.
#[derive(Clone, Debug, Default)]
pub struct Manner {
    /// Sent again with the same key, a request is not executed again.
    pub key: Option<IdempotencyKey>,
    /// What becomes of it when its caller goes away.
    pub on_disconnect: OnDisconnect,
}

/// What becomes of an execution when the caller who waits for it goes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnDisconnect {
    /// It is cancelled.
    Cancel,
    /// Once begun it goes on to its end.
    #[default]
    Continue,
}

impl OnDisconnect {
    /// Cancels when the caller has gone, if that is asked for; never done.
    pub(super) async fn follow(self, gone: &CancellationToken, cancel: &CancellationToken) -> Infallible {
        if self == Self::Cancel {
            gone.cancelled().await;
            cancel.cancel();
        }
        std::future::pending().await
    }
}

/// What one execution is given.
#[derive(Debug, Default)]
pub struct Ask {
    /// The input; `{}` if absent.
    pub input: Option<JsonText>,
    /// Arguments of the program, after its own name.
    pub args: Vec<String>,
    /// Files placed below `/workspace`.
    pub files: Vec<InputFile>,
    /// Blobs placed in `/blobs`.
    pub blobs: Vec<AskedBlob>,
    /// A script of the skill, by its path, instead of the skill's own program.
    pub script: Option<String>,
    /// Standard input, byte for byte. Absent: the program's is its input, a script's is empty.
    pub stdin: Option<Bytes>,
    /// Other skills that it sees at `/skills/<name>` and may import.
    pub mount_skills: Vec<SkillRef>,
    /// Packages besides those that the skill asks for, as in its own list.
    pub requirements: Vec<String>,
    /// Wall clock; only shortens.
    pub timeout: Option<Duration>,
    /// Where its end is told.
    pub callback_url: Option<String>,
}

/// What to run.
#[derive(Debug)]
pub enum What {
    /// A published skill.
    Skill {
        /// Its name.
        name: SkillName,
        /// Which version.
        selector: Selector,
    },
    /// An archive that is run without being published.
    Archive {
        /// The zip.
        archive: File,
        /// The name, where the archive itself has none.
        fallback_name: Option<String>,
    },
    /// Code that comes with the request.
    Code(CalledCode),
}

impl Ask {
    /// Refuses what could not be handed to a program, naming the field.
    pub(super) fn check(&self) -> Result<(), Error> {
        if let Some(input) = &self.input
            && input.as_str().len() as u64 > limits::INPUT_BYTES_MAX
        {
            let message = format!(
                "input has {} bytes, the limit is {}",
                input.as_str().len(),
                limits::INPUT_BYTES_MAX
            );
            return Err(Error::new(Code::TooLarge, message));
        }
        if let Some(stdin) = &self.stdin
            && stdin.len() as u64 > limits::INPUT_BYTES_MAX
        {
            let (bytes, max) = (stdin.len(), limits::INPUT_BYTES_MAX);
            let message = format!("stdin has {bytes} bytes, the limit is {max}; use files");
            return Err(Error::new(Code::TooLarge, message));
        }
        check_args(&self.args)?;
        mounts::check(&self.mount_skills)?;
        check_files(&self.files)?;
        match self.timeout {
            Some(timeout) if timeout < limits::TIMEOUT_MIN => Err(Error::invalid(format!(
                "timeout must be at least {} seconds",
                limits::TIMEOUT_MIN.as_secs_f64()
            ))),
            Some(_) | None => Ok(()),
        }
    }
}

fn check_args(args: &[String]) -> Result<(), Error> {
    if args.len() > limits::ARGS_MAX {
        return Err(Error::invalid(format!(
            "args: {} arguments, the limit is {}",
            args.len(),
            limits::ARGS_MAX
        )));
    }
    let total: usize = args.iter().map(String::len).sum();
    if total > limits::ARGS_BYTES_MAX {
        return Err(Error::new(
            Code::TooLarge,
            format!(
                "args: {total} bytes together, the limit is {}",
                limits::ARGS_BYTES_MAX
            ),
        ));
    }
    for (index, arg) in args.iter().enumerate() {
        if arg.contains('\0') {
            return Err(Error::invalid(format!(
                "args[{index}] contains a NUL character, which no program can be given"
            )));
        }
        if arg.len() > limits::ARG_BYTES_MAX {
            return Err(Error::new(
                Code::TooLarge,
                format!(
                    "args[{index}] has more than {} bytes; use input",
                    limits::ARG_BYTES_MAX
                ),
            ));
        }
    }
    Ok(())
}

fn check_files(files: &[InputFile]) -> Result<(), Error> {
    if files.len() > limits::INPUT_FILES_MAX {
        return Err(Error::invalid(format!(
            "files: {} files, the limit is {}",
            files.len(),
            limits::INPUT_FILES_MAX
        )));
    }
    let mut seen = HashSet::new();
    for file in files {
        let plain = file.path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        let short = file.path.len() <= limits::ARCHIVE_PATH_BYTES_MAX;
        if !plain || !short || file.path.chars().any(char::is_control) {
            return Err(Error::invalid(format!(
                "files: {:?} is not a plain relative path",
                file.path
            )));
        }
        if !seen.insert(file.path.as_str()) {
            return Err(Error::invalid(format!("files: {:?} is given twice", file.path)));
        }
    }
    for file in files {
        let mut above = file.path.match_indices('/').map(|(at, _)| &file.path[..at]);
        if let Some(above) = above.find(|above| seen.contains(above)) {
            let message = format!(
                "files: {above:?} cannot be a file and the folder of {:?}",
                file.path
            );
            return Err(Error::invalid(message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> InputFile {
        InputFile {
            path: path.to_owned(),
            content: bytes::Bytes::new(),
        }
    }

    #[test]
    fn a_file_cannot_be_placed_outside_the_workspace() {
        for path in ["", "/etc/passwd", "../x", "a/../b", "a//b", "a\0b", "a\nb"] {
            let refused = Ask {
                files: vec![file(path)],
                ..Ask::default()
            }
            .check();
            assert!(refused.is_err(), "{path:?}");
        }
        assert!(
            Ask {
                files: vec![file("data/a b.csv")],
                ..Ask::default()
            }
            .check()
            .is_ok()
        );
        for files in [vec![file("a"), file("a")], vec![file("a/b/c"), file("a/b")]] {
            assert!(
                Ask {
                    files,
                    ..Ask::default()
                }
                .check()
                .is_err()
            );
        }
    }

    ///
    #[test]
    fn an_argument_that_no_program_can_take_is_refused_by_name() {
        let refused = Ask {
            args: vec!["a".to_owned(), "b\0".to_owned()],
            ..Ask::default()
        }
        .check()
        .unwrap_err();
        assert!(refused.to_string().starts_with("args[1]"), "{refused}");
    }

    #[test]
    fn an_input_above_the_cap_is_too_large() {
        let text = format!(
            "\"{}\"",
            "x".repeat(usize::try_from(limits::INPUT_BYTES_MAX).unwrap())
        );
        let input = JsonText::parse(text.as_bytes()).ok();
        let refused = Ask {
            input,
            ..Ask::default()
        }
        .check()
        .unwrap_err();
        assert_eq!(refused.code(), Code::TooLarge);
    }
}
