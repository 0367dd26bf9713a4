//! `skillbox exec`: list, show, watch and cancel executions.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Subcommand;

use crate::api::executions::PruneExecutions;
use crate::cli::artifacts::ArtifactSaver;
use crate::cli::client::{Client, ExecutionListFilter};
use crate::cli::console::{Console, Format, Rows};
use crate::cli::event_printer::{EventPrinter, ShownEvents};
use crate::cli::exec_logs::{self, LogsArguments, cut_short};
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::id_argument::IdArgument;
use crate::cli::progress::Spinner;
use crate::cli::result_files;
use crate::cli::result_view::{self, Seen};
use crate::cli::run::{PreparedRun, RunSubject};
use crate::engine::RerunVersion;
use crate::error::quoted;
use crate::execution::{FileLink, Status, Summary};
use crate::ids::ExecutionId;
use crate::limits;
use crate::skill::{SkillName, parse_span, parse_timeout};

#[derive(Debug, Subcommand)]
pub(crate) enum ExecCommand {
    /// List executions, newest first
    #[command(after_help = "Example:\n  skillbox exec list --status failed --limit 20")]
    List {
        /// Show only executions in this state
        #[arg(long, value_parser = status)]
        status: Option<Status>,
        /// Show only executions of this skill
        #[arg(long, value_name = "NAME")]
        skill: Option<SkillName>,
        /// Maximum number of rows
        #[arg(long, default_value_t = limits::PAGE_ROWS as usize, value_parser = rows)]
        limit: usize,
    },
    /// Show an execution with output, logs and files
    #[command(after_help = "Examples:\n  skillbox exec show\n  skillbox exec show 0000ccab")]
    Show {
        /// ID of the execution, or its first or last digits; by default the newest
        id: Option<IdArgument<ExecutionId>>,
    },
    /// Print the program's output: standard output to standard output, standard error and log to standard error
    #[command(after_help = "\
Examples:
  skillbox exec logs 5e1f09ab 2> errors.txt
  skillbox exec logs -f
  skillbox exec logs --timestamps --stream stderr")]
    Logs(LogsArguments),
    /// Watch state, output and log of an execution until it ends; the exit code is that of `run`
    #[command(after_help = "\
Its standard output goes to standard output; with --format that is where the result goes, as of `run`.

Examples:
  skillbox exec watch
  skillbox exec watch 5e1f09ab --format json | jq .output")]
    Watch {
        /// ID of the execution, or its first or last digits; by default the newest
        id: Option<IdArgument<ExecutionId>>,
    },
    /// Wait until an execution ends, show it, and exit as `run` would
    #[command(after_help = "Example:\n  skillbox exec wait 5e1f09ab --timeout 5m | jq .output")]
    Wait {
        /// ID of the execution, or its first or last digits; by default the newest
        id: Option<IdArgument<ExecutionId>>,
        /// Stop waiting after this time, such as 30s or 5m; the execution continues
        #[arg(long, value_parser = span)]
        timeout: Option<Duration>,
    },
    /// List file artifacts, or save them
    #[command(after_help = "Example:\n  skillbox exec files 5e1f09ab --out reports report.md")]
    Files {
        /// ID of the execution, or its first or last digits; by default the newest
        id: Option<IdArgument<ExecutionId>>,
        /// Folder to save the files in
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Only these files
        #[arg(value_name = "PATH")]
        paths: Vec<String>,
    },
    /// Run the request of an execution again and print the result, as `run` does
    #[command(after_help = "\
Requests are kept up to the size in the setting executions.keep_request. The same content of the skill runs unless --latest is given.

Examples:
  skillbox exec rerun 019a0000-0000-7000-8000-000000000000
  skillbox exec rerun --latest 0000ccab")]
    Rerun {
        /// ID of the execution, or its first or last digits; by default the newest
        id: Option<IdArgument<ExecutionId>>,
        /// Run the latest version of the skill
        #[arg(long)]
        latest: bool,
    },
    /// Cancel an execution
    #[command(after_help = "Example:\n  skillbox exec cancel 5e1f09ab")]
    Cancel {
        /// ID of the execution, or its first or last digits
        id: IdArgument<ExecutionId>,
    },
    /// Delete ended executions with their request, output, logs and files
    #[command(after_help = "Example:\n  skillbox exec delete 5e1f09ab")]
    Delete {
        /// IDs of the executions, or their first or last digits
        #[arg(required = true, value_name = "ID")]
        ids: Vec<IdArgument<ExecutionId>>,
    },
    /// Delete all ended executions that are older than an age; works on a full disk
    #[command(after_help = "\
Examples:
  skillbox exec prune --older-than 7d --dry-run
  skillbox exec prune --older-than 12h --status failed --yes")]
    Prune(PruneArguments),
}

#[derive(Debug, clap::Args)]
pub(crate) struct PruneArguments {
    /// Minimum age, such as 12h or 7d
    #[arg(long, value_name = "AGE", value_parser = parse_span)]
    older_than: Duration,
    /// Delete only executions in this state
    #[arg(long, value_parser = status)]
    status: Option<Status>,
    /// Delete only executions of this skill
    #[arg(long, value_name = "NAME")]
    skill: Option<SkillName>,
    /// Only print how many would be deleted
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Delete them
    #[arg(long)]
    yes: bool,
}

fn status(text: &str) -> std::result::Result<Status, String> {
    Status::from_name(text).ok_or_else(|| format!("one of {}", Status::ALL.map(Status::as_str).join(", ")))
}

/// `--limit` of a list.
pub(crate) fn rows(text: &str) -> std::result::Result<usize, String> {
    let rows = text
        .parse()
        .ok()
        .filter(|rows| (1..=limits::ROWS_LISTED_MAX).contains(rows));
    rows.ok_or_else(|| format!("a whole number from 1 to {}", limits::ROWS_LISTED_MAX))
}

impl ExecCommand {
    /// Whether it ends with the result of one execution, whose output `--format value` prints.
    pub(crate) fn has_value(&self) -> bool {
        matches!(
            self,
            Self::Show { .. } | Self::Watch { .. } | Self::Wait { .. } | Self::Rerun { .. }
        )
    }
}

pub(crate) fn exec(command: ExecCommand, client: &Client, console: &Console) -> Result<Exit> {
    match command {
        ExecCommand::List { status, skill, limit } => {
            let filter = ExecutionListFilter {
                status,
                skill,
                rows: limit,
            };
            list(&filter, client, console)?;
        }
        ExecCommand::Show { id } => {
            let envelope = client.execution(find(id, client, console)?)?;
            result_view::show(&envelope, Seen::Nothing, console)?;
            if console.is_for_person() {
                result_view::summarize(&envelope, Seen::Everything, console);
            }
        }
        ExecCommand::Logs(arguments) => exec_logs::logs(arguments, client, console)?,
        ExecCommand::Watch { id } => return watch(client, find(id, client, console)?, console),
        ExecCommand::Wait { id, timeout } => {
            return wait(client, find(id, client, console)?, timeout, console);
        }
        ExecCommand::Files { id, out, paths } => {
            let id = find(id, client, console)?;
            files(client, id, out.as_deref(), &paths, console)?;
        }
        ExecCommand::Rerun { id, latest } => {
            let version = match latest {
                true => RerunVersion::Latest,
                false => RerunVersion::Same,
            };
            let prepared = PreparedRun {
                runs: RunSubject::Again {
                    id: find(id, client, console)?,
                    version,
                },
                out: None,
                quiet: false,
            };
            return prepared.run_to_end(client, console);
        }
        ExecCommand::Cancel { id } => {
            let id = find(Some(id), client, console)?;
            let envelope = client.cancel(id)?;
            console.say(format!(
                "execution {id} {}",
                result_view::outcome(envelope.status)
            ));
        }
        ExecCommand::Delete { ids } => {
            let found: Vec<_> = ids
                .into_iter()
                .map(|id| find(Some(id), client, console))
                .collect::<Result<_>>()?;
            for id in found {
                client.delete_execution(id)?;
                console.success(format!("deleted execution {id}"));
            }
        }
        ExecCommand::Prune(arguments) => prune(client, console, arguments)?,
    }
    Ok(Exit::Success)
}

fn list(filter: &ExecutionListFilter, client: &Client, console: &Console) -> Result<()> {
    let listed = client.executions(filter)?;
    if listed.items.is_empty() && console.format_or(Format::Table) == Format::Table {
        console.say("no executions");
        return Ok(());
    }
    console.data(Format::Table, &listed.items, |items| Rows {
        heading: &["execution", "status", "skill", "version", "duration", "created"],
        rows: items.iter().map(|item| row(item, console)).collect(),
        optional: &["version", "duration", "skill", "created"],
    })?;
    if listed.more {
        console.say("more rows exist; raise --limit");
    }
    Ok(())
}

/// The execution that is meant: by its id or a part of it, else the newest.
pub(super) fn find(
    id: Option<IdArgument<ExecutionId>>,
    client: &Client,
    console: &Console,
) -> Result<ExecutionId> {
    if let Some(id) = id {
        return find_by_id(id, client);
    }
    let id = newest(client, 1)?
        .pop()
        .ok_or_else(|| Failure::refused("no execution exists").hint("start one with `skillbox run`"))?;
    console.say(format!("newest execution: {id}"));
    Ok(id)
}

pub(super) fn find_by_id(id: IdArgument<ExecutionId>, client: &Client) -> Result<ExecutionId> {
    id.find("execution", || newest(client, limits::ID_SEARCH_ROWS))
}

fn newest(client: &Client, rows: usize) -> Result<Vec<ExecutionId>> {
    let filter = ExecutionListFilter {
        rows,
        ..ExecutionListFilter::default()
    };
    let listed = client.executions(&filter)?;
    Ok(listed.items.iter().map(|item| item.execution_id).collect())
}

/// Lists the files, or saves them in a folder.
fn files(
    client: &Client,
    id: ExecutionId,
    out: Option<&Path>,
    paths: &[String],
    console: &Console,
) -> Result<()> {
    let envelope = client.execution(id)?;
    // Paths name files of the program only.
    let results = match paths {
        [] => result_files::files(&envelope.results, &envelope.files),
        _ => Vec::new(),
    };
    let files = chosen(envelope.files, paths)?;
    let Some(folder) = out else {
        return console.data(Format::Table, &files, file_rows);
    };
    ArtifactSaver {
        client,
        folder,
        console,
    }
    .save(id, &files, &results)
}

fn prune(client: &Client, console: &Console, arguments: PruneArguments) -> Result<()> {
    if !arguments.dry_run && !arguments.yes {
        return Err(Failure::new(
            Exit::Usage,
            "give --dry-run to count the executions, or --yes to delete them",
        ));
    }
    let request = PruneExecutions {
        older_than: arguments.older_than.as_secs(),
        status: arguments.status,
        skill: arguments.skill,
        dry_run: arguments.dry_run,
    };
    let spinner = Spinner::start("deleting executions");
    let count = client.prune_executions(&request)?;
    drop(spinner);
    let executions = if count == 1 { "execution" } else { "executions" };
    if request.dry_run {
        console.say(format!(
            "{count} {executions} would be deleted; delete them with --yes"
        ));
    } else {
        console.success(format!("deleted {count} {executions}"));
    }
    Ok(())
}

/// Shows a complete execution.
fn watch(client: &Client, id: ExecutionId, console: &Console) -> Result<Exit> {
    let shown = match console.format() {
        Some(_) => ShownEvents::Talk,
        None => ShownEvents::All,
    };
    let mut watcher = EventPrinter::new(console, shown);
    client.watch(id, &mut |told| watcher.print(told))?;
    let Some(envelope) = watcher.envelope.take() else {
        let message = format!("execution {id} has not ended, but its events ended; try again later");
        return Err(Failure::new(Exit::Unavailable, message));
    };
    watcher.end_lines()?;
    let seen = watcher.seen();
    if console.format().is_some() || console.is_for_person() {
        result_view::show(&envelope, Seen::Everything, console)?;
    }
    if console.is_for_person() {
        result_view::summarize(&envelope, seen, console);
        return Ok(Exit::of_status(envelope.status));
    }
    cut_short(&envelope.logs, console);
    if envelope.status == Status::Success {
        let took = envelope.duration_ms.unwrap_or_default();
        console.success(format!("execution {id} succeeded after {took} ms"));
    } else {
        result_view::summarize(&envelope, seen, console);
    }
    Ok(Exit::of_status(envelope.status))
}

/// Waits for the end and shows the execution.
fn wait(client: &Client, id: ExecutionId, timeout: Option<Duration>, console: &Console) -> Result<Exit> {
    let spinner = Spinner::start(format!("waiting for execution {id}"));
    let until = timeout.map(|timeout| Instant::now() + timeout);
    // Fail at once for a wrong address. Retry later failures: a restarted server continues the execution.
    client.execution(id)?;
    let mut failures = 0;
    let envelope = loop {
        let left = until.map_or(limits::WAIT_MAX, |until| {
            until.saturating_duration_since(Instant::now())
        });
        let asked = Instant::now();
        let envelope = match client.ended_within(id, left.min(limits::WAIT_MAX)) {
            Ok(envelope) => envelope,
            Err(failure)
                if failure.exit() == Exit::Unavailable && failures < limits::CLIENT_RECONNECTS_MAX =>
            {
                failures += 1;
                std::thread::sleep(limits::EVENTS_RETRY.min(left));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        failures = 0;
        if envelope.status.is_final() {
            break envelope;
        }
        if left.is_zero() {
            let message = format!("execution {id} is still {}", envelope.status);
            return Err(Failure::new(Exit::Unavailable, message)
                .hint("the execution continues; wait again, or cancel it with `skillbox exec cancel`"));
        }
        // A server that shuts down returns without waiting.
        std::thread::sleep(limits::EVENTS_RETRY.saturating_sub(asked.elapsed()).min(left));
        if let Some(queue) = envelope.queue {
            spinner.say(format!(
                "position {} of {} in the queue",
                queue.position, queue.waiting
            ));
        }
    };
    drop(spinner);
    result_view::show(&envelope, Seen::Nothing, console)?;
    let seen = match console.is_for_person() {
        true => Seen::Everything,
        false => Seen::Nothing,
    };
    result_view::summarize(&envelope, seen, console);
    Ok(Exit::of_status(envelope.status))
}

fn span(text: &str) -> std::result::Result<Duration, String> {
    parse_timeout(text).map_err(|error| error.to_string())
}

fn row(execution: &Summary, console: &Console) -> Vec<String> {
    let optional = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        console.id(execution.execution_id),
        execution.status.to_string(),
        optional(execution.skill.as_ref().map(ToString::to_string)),
        optional(execution.version.as_ref().map(ToString::to_string)),
        optional(execution.duration_ms.map(|duration| format!("{duration} ms"))),
        console.moment(execution.created_at),
    ]
}

#[expect(clippy::ptr_arg, reason = "the console hands over what it was given")]
fn file_rows(files: &Vec<FileLink>) -> Rows {
    let row = |file: &FileLink| {
        vec![
            file.path.clone(),
            file.size.to_string(),
            file.media_type.clone(),
            file.sha256.to_string(),
        ]
    };
    Rows {
        heading: &["path", "bytes", "type", "digest"],
        rows: files.iter().map(row).collect(),
        optional: &["digest", "type"],
    }
}

fn chosen(files: Vec<FileLink>, paths: &[String]) -> Result<Vec<FileLink>> {
    if let Some(missing) = paths
        .iter()
        .find(|path| files.iter().all(|file| file.path != **path))
    {
        return Err(Failure::refused(format!(
            "the execution has no file {}",
            quoted(missing)
        )));
    }
    Ok(files
        .into_iter()
        .filter(|file| paths.is_empty() || paths.contains(&file.path))
        .collect())
}
