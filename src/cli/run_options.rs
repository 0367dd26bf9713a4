//! What `run` and `skill dev` take besides the program: input, files, packages, limits.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::arguments;
use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::package_arguments::PackageArguments;
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
    /// Standard input of the program: text, @file, or - for standard input
    #[arg(long, value_name = "TEXT|@FILE|-", allow_hyphen_values = true)]
    pub(crate) stdin: Option<String>,
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
            return Err(Failure::new(Exit::Usage, message).hint(
                "a script of the skill is named by --script PATH, and arguments of a program follow after --",
            ));
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
        match self.out.as_deref().filter(|out| out.exists() && !out.is_dir()) {
            None => Ok(()),
            Some(out) => Err(Failure::refused(format!(
                "--out: `{}` is not a folder; name another",
                out.display()
            ))),
        }
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
            stdin: stdin.map_err(of("--stdin"))?,
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
