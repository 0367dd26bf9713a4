//! `skillbox run`: runs a skill or code and prints its result.

use std::path::PathBuf;

use clap::Args;

use crate::cli::arguments::{self, Archive, SkillArgument};
use crate::cli::artifacts::ArtifactSaver;
use crate::cli::client::{Client, InstallReports, RunResult};
use crate::cli::console::{Console, Format};
use crate::cli::event_printer::{EventPrinter, ShownEvents};
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::result_files;
use crate::cli::result_view;
use crate::cli::run_options::RunOptions;
use crate::cli::skill::suggest;
use crate::cli::skill_source::SkillSource;
use crate::config::Config;
use crate::engine::{RerunVersion, RunRequest, UnpublishedArchive};
use crate::execution::{Envelope, Status};
use crate::ids::ExecutionId;
use crate::skill::{Language, Selector, SkillName, SkillRef};

#[derive(Debug, Args)]
#[command(after_help = "\
A folder or archive runs on this machine without being published. A published skill runs on the configured server, \
or on this machine if no server is configured.

Examples:
  echo '6 * 7' | skillbox run -
  skillbox run ./my-skill --input '{\"name\": \"World\"}'
  skillbox run csv-report --input '{\"path\": \"sales.csv\"}' --file sales.csv --out reports
  skillbox run text-summary --input @article.json --timeout 30s | jq .output.summary
  skillbox run ./my-skill -- --verbose
  skillbox exec wait \"$(skillbox run csv-report --input @sales.json --async)\"
  skillbox run ./report.py --requirement pandas --file sales.csv --input '{\"year\": 2026}'
  echo 'sum(range(10))' | skillbox run - --format value
  skillbox run ./pdf-tools --script scripts/split.py --file in.pdf --out pages -- in.pdf --every 2")]
pub(crate) struct RunArgs {
    /// Name of a published skill, path of a folder or zip archive, or a file of code (.py, .js, .sh; - for standard input)
    #[arg(value_name = "NAME|DIR|ZIP|FILE", value_parser = SkillArgument::parse, required_unless_present = "code")]
    skill: Option<SkillArgument>,
    /// Run code instead of a skill: a file, or - for standard input
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["skill", "version", "script"])]
    code: Option<String>,
    /// Language of the code: python, node or bash; by default from the file extension, else python
    #[arg(long, value_parser = arguments::language)]
    lang: Option<Language>,
    /// Folder of the skill within DIR or ZIP, if there are several
    #[arg(long = "path", value_name = "FOLDER", requires = "skill")]
    within: Option<String>,
    /// Version of a published skill: 1.2.0, latest, or a digest sha256:…
    #[arg(long)]
    version: Option<Selector>,
    /// Send a signed webhook to this URL when the execution ends; needs a server
    #[arg(long, value_name = "URL")]
    callback_url: Option<String>,
    /// Print the execution id and do not wait; the queued execution survives a restart of the server
    #[arg(long = "async", conflicts_with = "out")]
    later: bool,
    #[command(flatten)]
    options: RunOptions,
}

pub(crate) fn run(mut args: RunArgs, config: &Config, console: &Console) -> Result<Exit> {
    if let Some(SkillArgument::Code(file)) = &args.skill {
        args.code = Some(file.clone());
        args.skill = None;
    }
    args.take_file_as_code();
    args.check_code()?;
    args.check_local_folder()?;
    args.options.check(args.code.as_deref(), console)?;
    if args.code.as_deref() != Some("-") {
        args.options.take_piped_stdin(console)?;
    }
    let is_local = config.server_url.is_none() || matches!(args.skill, Some(SkillArgument::Path(_)));
    let mut request = args.options.request(is_local)?;
    request.spec.callback_url = args.callback_url;
    let client = match (args.skill, &args.code) {
        (None, code) => {
            let code = code.as_deref().unwrap_or("-");
            let (language, code) = arguments::code(code, args.lang)?;
            request.spec.language = Some(language);
            request.spec.code = Some(code);
            Client::open(config, console)?
        }
        (Some(SkillArgument::Path(_)), _) if args.version.is_some() => {
            return Err(Failure::new(
                Exit::Usage,
                "--version is for published skills; a folder or archive has one",
            ));
        }
        (Some(SkillArgument::Code(_)), _) => {
            return Err(Failure::internal("parsing arguments", "code is no skill"));
        }
        (Some(SkillArgument::Path(path)), _) => {
            let Archive { file, name } = SkillSource::new(path, args.within).open()?;
            request.archive = Some(UnpublishedArchive {
                zip: file,
                fallback_name: name.map(|name| name.to_string()),
            });
            Client::embedded(config)?
        }
        (Some(SkillArgument::Published(name)), _) => {
            let selector = args.version.unwrap_or_default();
            request.spec.skill = Some(SkillRef { name, selector });
            Client::open(config, console)?
        }
    };
    let prepared = PreparedRun {
        runs: RunSubject::Request(Box::new(request)),
        out: args.options.out,
        quiet: args.options.quiet,
    };
    let result = if args.later {
        prepared.submit(&client, console)
    } else {
        prepared.run_to_end(&client, console)
    };
    client.close();
    result
}

impl RunArgs {
    /// With `--lang` an existing file is code, whatever its name.
    fn take_file_as_code(&mut self) {
        if let (Some(SkillArgument::Published(name)), Some(_)) = (&self.skill, self.lang)
            && std::path::Path::new(name.as_str()).is_file()
        {
            self.code = Some(name.to_string());
            self.skill = None;
        }
    }

    /// Options of skills do not go with code, nor options of code with skills.
    fn check_code(&self) -> Result<()> {
        let wrong = match &self.code {
            None => self
                .lang
                .map(|_| "--lang is for code; a skill declares its language"),
            Some(_) if self.version.is_some() => Some("--version is for published skills, not for code"),
            Some(_) if self.options.script.is_some() => {
                Some("--script is for skills; name the file itself to run it")
            }
            Some(_) => None,
        };
        wrong.map_or(Ok(()), |wrong| Err(Failure::new(Exit::Usage, wrong)))
    }

    /// A folder runs on this machine, whatever server is configured.
    fn check_local_folder(&self) -> Result<()> {
        let flag = match (&self.callback_url, self.later) {
            (Some(_), _) => "--callback-url",
            (None, true) => "--async",
            (None, false) => return Ok(()),
        };
        let Some(SkillArgument::Path(path)) = &self.skill else {
            return Ok(());
        };
        let path = path.display();
        let message = format!("{flag}: the folder or archive `{path}` runs on this machine, not on a server");
        Err(Failure::new(Exit::Usage, message).hint(format!(
            "publish it with `skillbox skill push {path}`, then run it by its name"
        )))
    }
}

/// What a command runs.
pub(crate) enum RunSubject {
    Request(Box<RunRequest>),
    /// The request of an execution, again.
    Again {
        id: ExecutionId,
        version: RerunVersion,
    },
}

impl RunSubject {
    /// Whether its result is an output, and not what a script or code prints.
    fn has_output(&self) -> bool {
        match self {
            Self::Request(request) => request.spec.script.is_none() && request.spec.code.is_none(),
            Self::Again { .. } => false,
        }
    }

    fn skill(&self) -> Option<SkillName> {
        match self {
            Self::Request(request) => request.spec.skill.as_ref().map(|skill| skill.name.clone()),
            Self::Again { .. } => None,
        }
    }
}

pub(crate) struct PreparedRun {
    pub(crate) runs: RunSubject,
    pub(crate) out: Option<PathBuf>,
    pub(crate) quiet: bool,
}

impl PreparedRun {
    fn submit(self, client: &Client, console: &Console) -> Result<Exit> {
        let RunSubject::Request(request) = self.runs else {
            return Err(Failure::internal(
                "submitting",
                "a repeated request is not submitted",
            ));
        };
        let envelope = client.submit(*request)?;
        match console.format() {
            Some(_) => console.data(Format::Json, &envelope, result_view::rows)?,
            None => console.text(&format!("{}\n", envelope.execution_id))?,
        }
        Ok(Exit::Success)
    }

    pub(crate) fn run_to_end(self, client: &Client, console: &Console) -> Result<Exit> {
        let Self { runs, out, quiet } = self;
        let (has_output, name) = (runs.has_output(), runs.skill());
        let is_for_person = console.is_for_person();
        let shown = match is_for_person {
            true => ShownEvents::Printed,
            false => ShownEvents::Aside,
        };
        let mut watcher = EventPrinter::new(console, shown);
        let reports = match quiet {
            true => InstallReports::Silent,
            false => InstallReports::Printed,
        };
        let ran = if is_for_person || (Console::draws_progress() && !quiet) {
            client.run(runs, Some(&mut |told| watcher.print(told)), reports)
        } else {
            client.run(runs, None, reports)
        };
        let RunResult {
            envelope,
            interrupted,
        } = ran.map_err(|failure| match &name {
            Some(name) => hint_at_folder(failure, client, name),
            None => failure,
        })?;
        watcher.end_lines()?;
        let seen = watcher.seen();
        result_view::show(&envelope, seen, console)?;
        if !quiet {
            say_more(&envelope, console);
        }
        if interrupted {
            // A server cancels the execution. A local one is interrupted, because this process ends.
            let ended = result_view::outcome(envelope.status);
            console.bad(format!("execution {ended} by Ctrl-C or a signal"));
        } else if !quiet {
            match out.is_some() {
                true => result_view::summarize_saved(&envelope, seen, console),
                false => result_view::summarize(&envelope, seen, console),
            }
            if envelope.status == Status::Success
                && has_output
                && envelope.output.is_none()
                && envelope.results.is_empty()
                && envelope.files.is_empty()
            {
                console.say("the program wrote no output; write JSON to the file named by SANDBOX_OUTPUT");
            }
        }
        if let Some(folder) = &out {
            let saver = ArtifactSaver {
                client,
                folder,
                console,
            };
            let results = result_files::files(&envelope.results, &envelope.files);
            saver.save(envelope.execution_id, &envelope.files, &results)?;
        }
        Ok(if interrupted {
            Exit::Interrupted
        } else {
            Exit::of_status(envelope.status)
        })
    }
}

fn say_more(envelope: &Envelope, console: &Console) {
    if envelope.files_skipped_total > 0 {
        console.say(left_out(envelope));
    }
    if !envelope.output_blobs.is_empty() {
        console.say(blobs_made(envelope));
    }
}

/// Suggests the folder of that name if the skill is not published.
fn hint_at_folder(failure: Failure, client: &Client, name: &SkillName) -> Failure {
    let is_folder = std::path::Path::new(name.as_str()).join("SKILL.md").is_file();
    if is_folder && failure.exit() == Exit::Refused && client.skill(name, &Selector::Latest).is_err() {
        failure.hint(format!("to run the folder, use `skillbox run ./{name}`"))
    } else {
        suggest(failure, client, name)
    }
}

/// P9: reports skipped files.
fn left_out(envelope: &Envelope) -> String {
    let total = envelope.files_skipped_total;
    let first = envelope.files_skipped.first();
    let first = first.map_or_else(String::new, |skipped| {
        format!(", the first is {} ({})", skipped.path, skipped.reason)
    });
    format!("{total} output files were skipped{first}; `files_skipped` lists them")
}

fn blobs_made(envelope: &Envelope) -> String {
    let (count, first) = (envelope.output_blobs.len(), &envelope.output_blobs[0].blob_id);
    let made = if count == 1 {
        "1 output blob".to_owned()
    } else {
        format!("{count} output blobs, listed in `output_blobs`")
    };
    format!("{made}; download with `skillbox blob get {first} --out FILE`")
}
