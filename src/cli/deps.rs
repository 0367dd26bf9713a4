//! `skillbox deps`: list, install and delete packages.

use clap::Subcommand;

use crate::api::packages::PackageSetInfo;
use crate::cli::client::Client;
use crate::cli::console::{Console, Format, Rows};
use crate::cli::exec::rows;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::id_argument::IdArgument;
use crate::ids::Digest;
use crate::limits;
use crate::skill::{Selector, SkillName};

#[derive(Debug, Subcommand)]
pub(crate) enum DepsCommand {
    /// List installed packages, newest first
    #[command(after_help = "Example:\n  skillbox deps list --format json")]
    List {
        /// Maximum number of rows
        #[arg(long, default_value_t = limits::PAGE_ROWS as usize, value_parser = rows)]
        limit: usize,
    },
    /// Install the packages of a skill's program and scripts, so that later runs need no network
    #[command(after_help = "Example:\n  skillbox deps prefetch data-analysis")]
    Prefetch {
        /// Name of a published skill
        skill: SkillName,
        /// Version: 1.2.0, latest, or a digest sha256:…
        #[arg(long)]
        version: Option<Selector>,
    },
    /// Delete installed packages: the given sets, or all
    #[command(after_help = "Examples:\n  skillbox deps prune 2cf24dba\n  skillbox deps prune --all")]
    Prune {
        /// Keys of package sets, as shown by `deps list`, or their first or last digits
        #[arg(value_name = "KEY")]
        keys: Vec<IdArgument<Digest>>,
        /// All package sets
        #[arg(long, conflicts_with = "keys")]
        all: bool,
    },
}

pub(crate) fn deps(command: DepsCommand, client: &Client, console: &Console) -> Result<Exit> {
    match command {
        DepsCommand::List { limit } => {
            let listed = client.packages(limit)?;
            console.data(Format::Table, &listed.items, |items| table(items, console))?;
            if listed.more {
                console.say("more rows exist; raise --limit");
            }
        }
        DepsCommand::Prefetch { skill, version } => {
            let sets = client.prefetch(&skill, &version.unwrap_or_default())?;
            console.data(Format::Table, &sets, |items| table(items, console))?;
            if sets.is_empty() {
                console.say(format!("{skill} needs no packages"));
            }
        }
        DepsCommand::Prune { keys, all } => {
            if keys.is_empty() && !all {
                return Err(Failure::new(
                    Exit::Usage,
                    "give --all to delete all package sets, or the keys of some from `skillbox deps list`",
                ));
            }
            let sets = |rows: usize| -> Result<Vec<Digest>> {
                let listed = client.packages(rows)?;
                Ok(listed.items.iter().map(|set| set.key).collect())
            };
            let keys = if all {
                sets(limits::ROWS_LISTED_MAX)?
            } else {
                let keys = keys.into_iter();
                keys.map(|key| key.find("package set", || sets(limits::ID_SEARCH_ROWS)))
                    .collect::<Result<_>>()?
            };
            for key in &keys {
                client.delete_packages(key)?;
            }
            console.success(format!("deleted {} package sets", keys.len()));
        }
    }
    Ok(Exit::Success)
}

fn table(sets: &[PackageSetInfo], console: &Console) -> Rows {
    let row = |set: &PackageSetInfo| {
        vec![
            console.id(set.key),
            set.language.to_string(),
            set.requirements.join(", "),
            format!("{} MiB", set.bytes.div_ceil(limits::MIB)),
            console.moment(set.created_at),
            console.moment(set.used_at),
        ]
    };
    Rows {
        heading: &["key", "language", "packages", "size", "created", "used"],
        rows: sets.iter().map(row).collect(),
        optional: &["created", "language", "used", "size"],
    }
}
