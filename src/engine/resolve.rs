//! What a request names, found, unpacked and planned. Nothing is recorded yet, so every refusal is an error to the caller.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::auth::Caller;
use crate::engine::cache::Unpacked;
use crate::engine::plan::{self, Plan, Subject, Target};
use crate::engine::{Ask, Engine, Settings, What, code, secret_guard};
use crate::error::Error;
use crate::ids::Digest;
use crate::sandbox::SkillFiles;
use crate::skill::{
    Dialect, InvalidScript, Language, Manifest, Permissions, SCRIPT_HEAD_BYTES_MAX, Script, SkillName,
    Version, module_at,
};

/// What is run, found and unpacked.
pub(super) struct Found {
    pub(super) name: Option<SkillName>,
    pub(super) version: Option<Version>,
    pub(super) digest: Digest,
    pub(super) plan: Plan,
    /// What its skill declares and has not got yet.
    pub(super) permissions: Permissions,
    /// An archive that was not published lives as long as its execution.
    _unpacked: Option<Unpacked>,
}

/// A skill whose files are on this host.
struct Unfolded<'a> {
    manifest: &'a Manifest,
    version: &'a Version,
    digest: Digest,
    folder: &'a Path,
}

impl Engine {
    /// Finds what is asked for and plans the job.
    pub(super) async fn find(&self, caller: &Caller, what: What, ask: &Ask) -> Result<Found, Error> {
        let mut found = match what {
            What::Skill { name, selector } => {
                let record = self.skill(caller, &name, &selector).await?;
                let unfolded = Unfolded {
                    manifest: &record.manifest,
                    version: &record.version,
                    digest: record.digest,
                    folder: &self.folder(&record).await?,
                };
                let mut found = found(unfolded, ask, &self.0.settings).await?;
                found.plan.job.recurs = true;
                found
            }
            What::Archive {
                archive,
                fallback_name,
            } => {
                let (unpacked, manifest) = self.unpack(archive, fallback_name).await?;
                let digest = unpacked.listing.digest();
                let declared = manifest.version.clone();
                let unfolded = Unfolded {
                    manifest: &manifest,
                    version: &declared.unwrap_or_else(|| Version::unnamed(&digest)),
                    digest,
                    folder: unpacked.folder(),
                };
                let found = found(unfolded, ask, &self.0.settings).await?;
                Found {
                    _unpacked: Some(unpacked),
                    ..found
                }
            }
            What::Code(code) => {
                code.check()?;
                Found {
                    name: None,
                    version: None,
                    digest: Digest::of(code.text.as_bytes()),
                    plan: code::plan(code, ask, &self.0.settings)?,
                    permissions: Permissions::default(),
                    _unpacked: None,
                }
            }
        };
        self.mount(caller, &mut found.plan, &ask.mount_skills).await?;
        if !ask.requirements.is_empty() {
            self.surround_shell(&mut found.plan, Language::Python)?;
        }
        Ok(found)
    }
}

async fn found(skill: Unfolded<'_>, ask: &Ask, settings: &Settings) -> Result<Found, Error> {
    let Unfolded {
        manifest,
        version,
        digest,
        folder,
    } = skill;
    if !manifest.permissions.secrets.is_empty() {
        secret_guard::check(ask, folder).await?;
    }
    let subject = Subject {
        manifest,
        version,
        files: SkillFiles {
            name: manifest.name.clone(),
            digest,
            folder: folder.to_owned(),
        },
        target: target(ask, manifest, folder).await?,
    };
    Ok(Found {
        name: Some(manifest.name.clone()),
        version: Some(version.clone()),
        digest,
        plan: plan::plan(subject, ask, settings)?,
        permissions: manifest.permissions.clone(),
        _unpacked: None,
    })
}

/// What of the skill is run: what it declares, or the script that is asked for, found in its folder.
async fn target(ask: &Ask, manifest: &Manifest, folder: &Path) -> Result<Target, Error> {
    let Some(asked) = ask.script.as_deref() else {
        return Ok(Target::Declared);
    };
    let (path, folder) = (asked.to_owned(), folder.to_owned());
    let blocking = tokio::task::spawn_blocking(move || {
        Script::resolve(&path, |path| {
            // Archives hold no links, so what is below the folder is the skill's.
            let file = File::open(folder.join(path)).ok()?;
            let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
            let mut head = Vec::new();
            let read = file.take(SCRIPT_HEAD_BYTES_MAX as u64).read_to_end(&mut head);
            (is_file && read.is_ok()).then_some(head)
        })
    });
    let refused = |error: InvalidScript| refused(&error, asked, manifest);
    let script = blocking.await.map_err(Error::internal)?.map_err(refused)?;
    match module_at(&manifest.name, script.path()) {
        Some(called) if manifest.dialect == Dialect::Function => called
            .map(Target::Module)
            .map_err(|error| Error::invalid(format!("script: {error}"))),
        Some(_) | None => Ok(Target::Script(script)),
    }
}

/// Names what could be meant: scripts of the same name in other folders or of other extensions first.
fn refused(error: &InvalidScript, asked: &str, manifest: &Manifest) -> Error {
    let stem = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.split('.')
            .next()
            .unwrap_or(name)
            .replace('_', "-")
            .to_lowercase()
    };
    let (near, others): (Vec<_>, Vec<_>) = manifest
        .actions
        .iter()
        .map(|action| action.path.as_str())
        .partition(|path| stem(path) == stem(asked));
    let known: Vec<_> = near.into_iter().chain(others).take(plan::SCRIPTS_NAMED).collect();
    Error::invalid(if known.is_empty() {
        format!("script: {error}")
    } else {
        format!("script: {error}; it has {}", known.join(", "))
    })
}
