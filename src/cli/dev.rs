//! `skillbox skill dev`: runs a skill at every change of its files.

use std::path::Path;

use clap::Args;

use crate::bundle::{self, FileMark};
use crate::cli::arguments::Archive;
use crate::cli::client::Client;
use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::run::{PreparedRun, RunSubject};
use crate::cli::run_options::RunOptions;
use crate::cli::skill_source::SkillSource;
use crate::config::Config;
use crate::engine::UnpublishedArchive;
use crate::limits;
use crate::server::Signals;

#[derive(Debug, Args)]
#[command(after_help = "\
Runs the folder on this machine, without publishing it, until Ctrl-C. Files of --input, --stdin and --file are watched, too.

Examples:
  skillbox skill dev ./my-skill --input @my-skill/input.json
  skillbox skill dev ./csv-report --file sales.csv --input '{\"path\": \"sales.csv\"}' --out reports
  skillbox skill dev ./pdf-tools --script scripts/split.py --file in.pdf -- in.pdf --every 2")]
pub(crate) struct DevArgs {
    #[command(flatten)]
    source: SkillSource,
    #[command(flatten)]
    options: RunOptions,
}

pub(crate) fn dev(args: &DevArgs, config: &Config, console: &Console) -> Result<Exit> {
    let folder = args.source.folder().ok_or_else(|| args.source.not_a_folder())?;
    let reads_stdin = [&args.options.input, &args.options.stdin];
    if reads_stdin.into_iter().flatten().any(|text| text == "-") {
        let message = "standard input can be read once only, but each run needs it; use @FILE";
        return Err(Failure::new(Exit::Usage, message));
    }
    args.options.check(None, console)?;
    let mut pause = Pause::new()?;
    let client = Client::embedded(config)?;
    let mut seen = Watched::read(&folder, &args.options);
    loop {
        match run_once(args, &client, console) {
            Ok(Exit::Interrupted) => break,
            Ok(_) => {}
            Err(failure) => console.bad(failure.with_flags()),
        }
        console.say(format!("watching {}; Ctrl-C ends", folder.display()));
        let Some(now) = pause.until_changed(&seen, || Watched::read(&folder, &args.options)) else {
            break;
        };
        console.say(format!("\n{} changed", now.first_difference(&seen)));
        seen = now;
    }
    client.close();
    Ok(Exit::Success)
}

fn run_once(args: &DevArgs, client: &Client, console: &Console) -> Result<Exit> {
    let mut request = args.options.request(true)?;
    let Archive { file, name } = args.source.open()?;
    request.archive = Some(UnpublishedArchive {
        zip: file,
        fallback_name: name.map(|name| name.to_string()),
    });
    let prepared = PreparedRun {
        runs: RunSubject::Request(Box::new(request)),
        out: args.options.out.clone(),
        quiet: args.options.quiet,
    };
    prepared.run_to_end(client, console)
}

/// What a run depends on. Files that cannot be read now are absent, and appear later.
#[derive(Debug, PartialEq, Eq)]
struct Watched(Vec<FileMark>);

impl Watched {
    fn read(folder: &Path, options: &RunOptions) -> Self {
        let mut marks = bundle::file_marks(folder).unwrap_or_default();
        let texts = [&options.input, &options.stdin].into_iter().flatten();
        let named = texts.filter_map(|text| text.strip_prefix('@'));
        // `NAME=PATH` or `PATH`.
        let files = options
            .files
            .iter()
            .map(|file| file.split_once('=').map_or(file.as_str(), |(_, path)| path));
        marks.extend(named.chain(files).filter_map(mark_of));
        Self(marks)
    }

    /// The path of a file that is new, changed or gone.
    fn first_difference<'a>(&'a self, before: &'a Self) -> &'a str {
        let new = self.0.iter().find(|mark| !before.0.contains(mark));
        let is_gone = |mark: &&FileMark| self.0.iter().all(|own| own.path != mark.path);
        let different = new.or_else(|| before.0.iter().find(is_gone));
        different.map_or("the folder", |mark| &mark.path)
    }
}

/// Waits for changes, and for Ctrl-C.
struct Pause {
    runtime: tokio::runtime::Runtime,
    signals: Signals,
}

impl Pause {
    fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::internal("listening for Ctrl-C", error))?;
        let signals = {
            let _context = runtime.enter();
            Signals::new()?
        };
        Ok(Self { runtime, signals })
    }

    /// The changed state, once it no longer changes: an editor writes in several steps. `None` after Ctrl-C.
    fn until_changed(&mut self, seen: &Watched, read: impl Fn() -> Watched) -> Option<Watched> {
        let mut last = None;
        loop {
            let has_ended = self.runtime.block_on(async {
                tokio::select! {
                    () = self.signals.next() => true,
                    () = tokio::time::sleep(limits::DEV_WATCH_EVERY) => false,
                }
            });
            if has_ended {
                return None;
            }
            let now = read();
            if now == *seen {
                last = None;
            } else if last.as_ref() == Some(&now) {
                return Some(now);
            } else {
                last = Some(now);
            }
        }
    }
}

fn mark_of(path: &str) -> Option<FileMark> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(FileMark {
        path: path.to_owned(),
        size: metadata.len(),
        modified: metadata.modified().ok(),
    })
}
