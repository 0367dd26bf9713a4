//! `skillbox skill`: create, check, pack, publish, list, show, download and delete skills.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;

use crate::api::skills::{Push, Skill, SkillSummary};
use crate::bundle;
use crate::cli::arguments::Archive;
use crate::cli::authoring::{self, ExportForm};
use crate::cli::client::Client;
use crate::cli::console::{Console, Format, Rows};
use crate::cli::dev::{self, DevArgs};
use crate::cli::exec::rows;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::moment;
use crate::cli::package_arguments::PackageArguments;
use crate::cli::requirements::{self, RequirementsArgs};
use crate::cli::skill_source::SkillSource;
use crate::cli::version_bump::{self, Bump, LocalVersion, RaisedVersion};
use crate::config::Config;
use crate::error::did_you_mean;
use crate::limits;
use crate::skill::{Language, Selector, SkillName, Version};

#[derive(Debug, Subcommand)]
pub(crate) enum SkillCommand {
    /// Create a small working skill
    #[command(after_help = "Example:\n  skillbox skill init my-skill --lang python")]
    Init {
        /// Name of the skill and of the new folder
        name: SkillName,
        /// Language of the program: python, node or bash
        #[arg(long, value_parser = language, default_value = "python")]
        lang: Language,
    },
    /// Check a skill as `push` would, and against the Agent Skills specification
    #[command(
        after_help = "Exits with 1 if a push would be rejected.\n\nExample:\n  skillbox skill lint ./my-skill"
    )]
    Lint {
        #[command(flatten)]
        source: SkillSource,
    },
    /// Pack a skill folder into a reproducible zip archive
    #[command(after_help = "Example:\n  skillbox skill package ./my-skill --out my-skill.zip")]
    Package {
        /// Folder of the skill
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Archive to write; by default the folder's name with .zip
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Write the files of a skill into a new folder, for use in other products
    #[command(
        after_help = "With --strict only the keys of the Agent Skills specification stay in SKILL.md; the others move to skill.toml.\n\n\
                      Example:\n  skillbox skill export ./my-skill --strict --out ./published"
    )]
    Export {
        #[command(flatten)]
        source: SkillSource,
        /// Apply the Agent Skills specification literally
        #[arg(long)]
        strict: bool,
        /// Parent folder of the new folder
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
    },
    /// Publish a skill's folder or zip archive
    #[command(
        after_help = "Examples:\n  skillbox skill push ./my-skill\n  skillbox skill push ./my-skill --bump patch\n  skillbox skill push ./my-skill --requirement pypdf\n  skillbox skill push skills.zip --path pdf-tools"
    )]
    Push {
        #[command(flatten)]
        source: SkillSource,
        /// Raise the version in SKILL.md above every published one first; restored if the push fails
        #[arg(long, value_name = "PART")]
        bump: Option<Bump>,
        #[command(flatten)]
        packages: PackageArguments,
    },
    /// Run a skill at every change of its files
    Dev(Box<DevArgs>),
    /// List, add or remove packages of a published skill that its files do not declare
    #[command(
        after_help = "They are installed for each run of the skill, and later pushes carry them over.\n\n\
                      Examples:\n  skillbox skill requirements pdf-tools\n  skillbox skill requirements pdf-tools add pypdf 'pandas>=2'\n  skillbox skill requirements pdf-tools remove pandas"
    )]
    Requirements(RequirementsArgs),
    /// List skills, or the versions of one
    #[command(
        after_help = "Examples:\n  skillbox skill list\n  skillbox skill list text-summary --format json"
    )]
    List {
        /// List the versions of this skill, most recent push first
        name: Option<SkillName>,
        /// Maximum number of rows
        #[arg(long, default_value_t = limits::PAGE_ROWS as usize, value_parser = rows)]
        limit: usize,
    },
    /// Show a version of a skill with its manifest
    #[command(after_help = "Example:\n  skillbox skill show text-summary --version 1.0.0")]
    Show {
        /// Name of the skill
        name: SkillName,
        /// Version: 1.2.0, latest, or a digest sha256:…
        #[arg(long, default_value = "latest")]
        version: Selector,
    },
    /// Download the archive of a version
    #[command(
        after_help = "Examples:\n  skillbox skill pull text-summary --out text-summary.zip\n  skillbox skill pull text-summary --unpack ./text-summary"
    )]
    Pull {
        /// Name of the skill
        name: SkillName,
        /// Version: 1.2.0, latest, or a digest sha256:…
        #[arg(long, default_value = "latest")]
        version: Selector,
        /// Archive to write; by default NAME.zip
        #[arg(long, value_name = "FILE", conflicts_with = "unpack")]
        out: Option<PathBuf>,
        /// Unpack into this new folder instead
        #[arg(long, value_name = "DIR")]
        unpack: Option<PathBuf>,
    },
    /// Delete a version of a skill
    #[command(after_help = "Example:\n  skillbox skill delete text-summary --version 1.0.0")]
    Delete {
        /// Name of the skill
        name: SkillName,
        /// Version to delete
        #[arg(long)]
        version: Version,
    },
}

fn language(text: &str) -> std::result::Result<Language, String> {
    Language::from_alias(text)
        .ok_or_else(|| format!("one of {}", Language::ALL.map(Language::as_str).join(", ")))
}

pub(crate) fn skill(
    command: SkillCommand,
    config: impl FnOnce() -> Result<Config>,
    console: &Console,
) -> Result<Exit> {
    match command {
        SkillCommand::Init { name, lang } => authoring::init(&name, lang, console),
        SkillCommand::Lint { source } => authoring::lint(&source, &config()?.limits.maxima, console),
        SkillCommand::Package { folder, out } => authoring::package(&folder, out, console),
        SkillCommand::Export { source, strict, out } => {
            let form = if strict {
                ExportForm::Strict
            } else {
                ExportForm::AsItIs
            };
            authoring::export(&source, form, &out, console)
        }
        SkillCommand::Dev(args) => dev::dev(&args, &config()?, console),
        published => {
            let client = Client::open(&config()?, console)?;
            let result = at(published, &client, console);
            client.close();
            result
        }
    }
}

/// Commands on published skills.
fn at(command: SkillCommand, client: &Client, console: &Console) -> Result<Exit> {
    match command {
        SkillCommand::Push {
            source,
            bump,
            packages,
        } => {
            let requirements = packages.read()?;
            let raised = bump.map(|bump| raise(client, &source, bump)).transpose()?;
            let pushed = push(client, &source, requirements, console)
                .map_err(|failure| version_bump::conflict(failure, &source))?;
            if let Some(raised) = raised {
                console.say(&raised.description);
                raised.keep();
            }
            requirements::prefetch(client, &pushed, console)?;
        }
        SkillCommand::Requirements(args) => requirements::requirements(args, client, console)?,
        SkillCommand::List { name, limit } => {
            let listed = match name {
                Some(name) => client.versions(&name, limit)?,
                None => client.skills(limit)?,
            };
            console.data(Format::Table, &listed.items, |items| summaries(items, console))?;
            if listed.more {
                console.say("more rows exist; raise --limit");
            }
        }
        SkillCommand::Show { name, version } => {
            let skill = client.skill(&name, &version);
            let skill = skill.map_err(|failure| suggest(failure, client, &name))?;
            console.data(Format::Json, &skill, details)?;
        }
        SkillCommand::Pull {
            name,
            version,
            out,
            unpack,
        } => pull(
            client,
            &Fetched {
                name,
                version,
                out,
                unpack,
            },
            console,
        )?,
        SkillCommand::Delete { name, version } => {
            let deleted = client.delete(&name, &Selector::Version(version.clone()));
            deleted.map_err(|failure| suggest(failure, client, &name))?;
            console.success(format!("deleted {name} {version}"));
        }
        SkillCommand::Init { .. }
        | SkillCommand::Dev(_)
        | SkillCommand::Lint { .. }
        | SkillCommand::Package { .. }
        | SkillCommand::Export { .. } => {
            unreachable!("these commands need no client and ran before")
        }
    }
    Ok(Exit::Success)
}

/// Adds to a failure what may be meant: a skill with a similar name, or a version that exists.
pub(crate) fn suggest(failure: Failure, client: &Client, name: &SkillName) -> Failure {
    if !failure.is_missing() {
        return failure;
    }
    if client.skill(name, &Selector::Latest).is_ok() {
        let Ok(versions) = client.versions(name, limits::SUGGESTED_VERSIONS) else {
            return failure;
        };
        let versions: Vec<_> = versions
            .items
            .iter()
            .map(|item| item.version.to_string())
            .collect();
        return failure.hint(format!("its newest versions: {}", versions.join(", ")));
    }
    let Ok(skills) = client.skills(limits::ID_SEARCH_ROWS) else {
        return failure;
    };
    let names = skills.items.iter().map(|item| item.name.as_str());
    match did_you_mean(name.as_str(), names) {
        meant if meant.is_empty() => failure.hint("`skillbox skill list` shows all skills"),
        meant => failure.hint(meant.trim_start_matches("; ")),
    }
}

fn raise(client: &Client, source: &SkillSource, bump: Bump) -> Result<RaisedVersion> {
    let local = LocalVersion::read(source)?;
    let latest = match client.skill(&local.name, &Selector::Latest) {
        Ok(skill) => Some(skill.summary.version),
        Err(failure) if failure.is_missing() => None,
        Err(failure) => return Err(failure),
    };
    RaisedVersion::write(source, &local, latest.as_ref(), bump)
}

fn push(
    client: &Client,
    source: &SkillSource,
    requirements: Vec<String>,
    console: &Console,
) -> Result<Skill> {
    let Archive { file, name } = source.open()?;
    let push = Push {
        archive: file,
        fallback_name: name.map(|name| name.to_string()),
        requirements: (!requirements.is_empty()).then_some(requirements),
    };
    let pushed = client.publish(push).map_err(|failure| source.explain(failure))?;
    let Skill {
        summary,
        warnings,
        latest,
        ..
    } = &pushed.skill;
    for warning in warnings {
        let line = warning
            .line
            .map(|line| format!("SKILL.md:{line}: "))
            .unwrap_or_default();
        console.say(format!("warning: {line}{}", warning.message));
    }
    let done = if pushed.existed {
        "is already published, unchanged"
    } else {
        "published"
    };
    let selected = match latest {
        Some(latest) if *latest == summary.version => "; `latest` is this version".to_owned(),
        Some(latest) => format!("; `latest` is {latest}: run this version with --version"),
        None => String::new(),
    };
    console.success(format!("{} {}: {done}{selected}", summary.name, summary.version));
    let version = PushedVersion {
        summary,
        latest,
        requirements: &pushed.skill.requirements,
    };
    console.data(Format::Table, &version, |pushed| {
        summaries(std::slice::from_ref(pushed.summary), console)
    })?;
    Ok(pushed.skill)
}

/// Output of a push.
#[derive(Serialize)]
struct PushedVersion<'a> {
    #[serde(flatten)]
    summary: &'a SkillSummary,
    latest: &'a Option<Version>,
    /// Packages that were added to the version.
    requirements: &'a [String],
}

struct Fetched {
    name: SkillName,
    version: Selector,
    out: Option<PathBuf>,
    unpack: Option<PathBuf>,
}

fn pull(client: &Client, fetched: &Fetched, console: &Console) -> Result<()> {
    use std::io::Seek as _;
    let Fetched {
        name,
        version,
        out,
        unpack,
    } = fetched;
    let mut archive =
        tempfile::tempfile().map_err(|error| Failure::internal("making a temporary file", error))?;
    let fetched = client.archive(name, version, &mut archive);
    fetched.map_err(|failure| suggest(failure, client, name))?;
    archive
        .flush()
        .and_then(|()| archive.rewind())
        .map_err(|error| Failure::internal("keeping the archive", error))?;
    if let Some(folder) = unpack {
        std::fs::create_dir(folder).map_err(|error| Failure::file(folder, &error))?;
        // The same checks as for an upload, since the server is not trusted (O-14).
        if let Err(error) = bundle::unpack(&archive, folder) {
            let _ = std::fs::remove_dir_all(folder);
            return Err(error.into());
        }
        console.success(format!("unpacked {name} {version} into {}", folder.display()));
        return Ok(());
    }
    let out = out
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{name}.zip")));
    keep(&mut archive, &out)?;
    console.success(format!("saved {name} {version} as {}", out.display()));
    Ok(())
}

/// Saves an unnamed file completely or not at all.
pub(super) fn keep(archive: &mut File, path: &Path) -> Result<()> {
    let failed = |error: &std::io::Error| Failure::file(path, error);
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let message = format!("no such folder: `{}`; create it first", folder.display());
        return Err(Failure::refused(message));
    }
    let mut file = readable_file()
        .tempfile_in(folder)
        // The error contains only the temporary name, which the user does not know.
        .map_err(|error| failed(&error.kind().into()))?;
    std::io::copy(archive, &mut file).map_err(|error| failed(&error))?;
    file.persist(path).map_err(|error| failed(&error.error))?;
    Ok(())
}

/// A temporary file with mode 0644.
#[cfg(unix)]
fn readable_file() -> tempfile::Builder<'static, 'static> {
    let mut file = tempfile::Builder::new();
    file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    file
}

/// A temporary file with the ACL of its folder.
#[cfg(windows)]
fn readable_file() -> tempfile::Builder<'static, 'static> {
    tempfile::Builder::new()
}

fn summaries(items: &[SkillSummary], console: &Console) -> Rows {
    let row = |skill: &SkillSummary| {
        let language = skill.language.map_or("-", Language::as_str);
        let brief: String = skill.description.chars().take(60).collect();
        let more = if brief.len() < skill.description.len() {
            "…"
        } else {
            ""
        };
        vec![
            skill.name.to_string(),
            skill.version.to_string(),
            language.to_owned(),
            console.moment(skill.created_at),
            format!("{brief}{more}"),
        ]
    };
    Rows {
        heading: &["skill", "version", "language", "created", "description"],
        rows: items.iter().map(row).collect(),
        optional: &["language", "created", "description"],
    }
}

fn details(skill: &Skill) -> Rows {
    let optional = |text: Option<String>| text.unwrap_or_default();
    let summary = &skill.summary;
    let joined = |mut texts: Vec<&str>| {
        texts.dedup();
        (!texts.is_empty()).then(|| texts.join(", "))
    };
    let scripts = skill.actions.iter().map(|action| action.path.as_str()).collect();
    let mut packages: Vec<_> = skill
        .actions
        .iter()
        .flat_map(|action| &action.dependencies)
        .map(String::as_str)
        .collect();
    packages.sort_unstable();
    let rows = [
        ("skill", summary.name.to_string()),
        ("version", summary.version.to_string()),
        ("digest", summary.digest.to_string()),
        ("description", summary.description.clone()),
        ("form", summary.dialect.as_str().to_owned()),
        (
            "language",
            optional(summary.language.map(|language| language.to_string())),
        ),
        ("entrypoint", optional(skill.entrypoint.clone())),
        ("scripts", optional(joined(scripts))),
        ("packages of scripts", optional(joined(packages))),
        ("added packages", skill.requirements.join(", ")),
        ("image", optional(skill.image.clone())),
        (
            "timeout",
            optional(skill.timeout.map(|seconds| format!("{seconds} s"))),
        ),
        ("license", optional(skill.license.clone())),
        (
            "files",
            format!("{} ({} bytes)", summary.files, summary.unpacked_bytes),
        ),
        ("created", moment::exact(summary.created_at)),
    ];
    Rows::facts(rows)
}
