//! What `run` and `skill dev` take besides the program: input, files, packages, limits.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::cli::arguments;
use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::package_arguments::PackageArguments;
use crate::cli::piped_stdin::{self, PipedStdin};
use crate::engine::{RunRequest, RunSpec};
use crate::error::quoted;
use crate::execution::Workdir;
use crate::limits;
use crate::skill::{SkillRef, parse_timeout};

#[derive(Clone, Debug, Args)]
pub(crate) struct RunOptions {
    /// Input of the skill: JSON, @file, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    pub(crate) input: Option<String>,
    /// File to place in the program's working directory, under its own name or NAME; may be repeated
    #[arg(long = "file", value_name = "[NAME=]PATH")]
    pub(crate) files: Vec<String>,
    /// Empty folder to create in the program's working directory, such as out for `--out-dir out`; may be repeated
    #[arg(long = "folder", value_name = "NAME")]
    folders: Vec<String>,
    /// Blob to place in /blobs: the id of a stored blob, or @FILE; may be repeated
    #[arg(long = "blob", value_name = "ID|@FILE")]
    blobs: Vec<String>,
    /// Run this script of the skill, such as scripts/fill.py, instead of its entrypoint; arguments may follow
    #[arg(long, value_name = "PATH")]
    pub(crate) script: Option<String>,
    /// Start a script among the files of --file (request) or of the skill (skill); by default request if there are any
    #[arg(long, value_name = "request|skill", value_parser = arguments::workdir, requires = "script")]
    workdir: Option<Workdir>,
    /// Standard input of the program: text, @file, or - for standard input; by default a piped one, unless --input is given
    #[arg(long, value_name = "TEXT|@FILE|-", allow_hyphen_values = true)]
    pub(crate) stdin: Option<String>,
    /// Content of standard input that no option reads.
    #[arg(skip)]
    piped_stdin: Option<bytes::Bytes>,
    /// Also mount this published skill, so that the program can import it; may be repeated
    #[arg(long = "mount", value_name = "NAME[@VERSION]")]
    mount_skills: Vec<SkillRef>,
    #[command(flatten)]
    packages: PackageArguments,
    /// Folder to save file artifacts in
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print no progress and no summary
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Time limit, such as 30s or 2m; can only shorten the configured limit
    #[arg(long, value_parser = parse_timeout)]
    timeout: Option<Duration>,
    /// Arguments of the script named by --script
    #[arg(value_name = "ARG", hide = true)]
    of_script: Vec<String>,
    /// Arguments of the program
    #[arg(last = true)]
    args: Vec<String>,
}

impl RunOptions {
    /// `code` is the argument of `--code`. Tells a person that input is read from the terminal.
    pub(crate) fn check(&self, code: Option<&str>, console: &Console) -> Result<()> {
        if let (Some(argument), None) = (self.of_script.first(), &self.script) {
            let message = format!("unexpected argument {}", quoted(argument));
            let hint = match code {
                Some(code) => format!("arguments of the program follow after --, as in `skillbox run {code} -- …`"),
                None => "a script of the skill is named by --script PATH, and arguments of a program follow after --"
                    .to_owned(),
            };
            return Err(Failure::new(Exit::Usage, message).hint(hint));
        }
        let readers = [
            ("code", code),
            ("--input", self.input.as_deref()),
            ("--stdin", self.stdin.as_deref()),
        ];
        arguments::read_once(&readers)?;
        if readers.iter().any(|(_, from)| *from == Some("-")) && std::io::stdin().is_terminal() {
            console.say("reading standard input; end it with Ctrl-D");
        }
        self.check_out()
    }

    /// Before the run, not when its files cannot be saved.
    fn check_out(&self) -> Result<()> {
        let Some(out) = self.out.as_deref() else {
            return Ok(());
        };
        // The folder is created only if there is something to save.
        let existing = out.ancestors().find(|folder| folder.exists());
        let existing = existing.unwrap_or(Path::new("."));
        if !existing.is_dir() {
            let message = format!("--out: `{}` is not a folder; name another", existing.display());
            return Err(Failure::refused(message));
        }
        #[cfg(unix)]
        if rustix::fs::access(existing, rustix::fs::Access::WRITE_OK).is_err() {
            let message = format!("--out: `{}` is not writable; name another", existing.display());
            return Err(Failure::refused(message));
        }
        Ok(())
    }

    /// Makes standard input that no option reads the program's own. With `--input`, that is the input.
    pub(crate) fn take_piped_stdin(&mut self, console: &Console) -> Result<()> {
        if self.stdin.is_some() || self.input.is_some() {
            return Ok(());
        }
        match piped_stdin::read()? {
            PipedStdin::Content(content) => self.piped_stdin = Some(content),
            PipedStdin::Nothing => {}
            PipedStdin::Silent if self.quiet => {}
            PipedStdin::Silent => console.say(
                "standard input is a pipe without data, so the program gets none; to wait for it, add --stdin -",
            ),
        }
        Ok(())
    }

    /// The request without its skill or code. Files of a local run may fill its working directory.
    pub(crate) fn request(&self, is_local: bool) -> Result<RunRequest> {
        let files_max = match is_local {
            true => limits::WORKSPACE_BYTES,
            false => limits::INPUT_FILES_BYTES_MAX,
        };
        let of = |flag| move |failure: Failure| failure.of_flag(flag);
        let (blobs, blob_contents) = arguments::blobs(&self.blobs).map_err(of("--blob"))?;
        let input = self.input.as_deref().map(arguments::input).transpose();
        let stdin = self.stdin.as_deref().map(arguments::stdin).transpose();
        let spec = RunSpec {
            input: input.map_err(of("--input"))?,
            args: [self.of_script.clone(), self.args.clone()].concat(),
            files: [
                arguments::files(&self.files, files_max).map_err(of("--file"))?,
                arguments::folders(&self.folders),
            ]
            .concat(),
            blobs,
            script: self.script.clone(),
            workdir: self.workdir,
            stdin: stdin.map_err(of("--stdin"))?.or_else(|| self.piped_stdin.clone()),
            mount_skills: self.mount_skills.clone(),
            requirements: self.packages.clone().read()?,
            timeout: self.timeout,
            ..RunSpec::default()
        };
        Ok(RunRequest {
            blob_contents,
            ..spec.into()
        })
    }
}
