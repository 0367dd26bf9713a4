//! Finds and unpacks what a request names, and plans it. Nothing is recorded yet, so every rejection is an error to the caller.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::engine::added_packages::AddedPackages;
use crate::engine::plan::{self, PlannedRun, Subject, Target};
use crate::engine::{RunSpec, Runs, UnpublishedArchive, code, secret_guard};
use crate::error::Error;
use crate::ids::Tenant;
use crate::sandbox::SkillFiles;
use crate::skill::{
    Dialect, InvalidScript, Language, Manifest, SCRIPT_HEAD_BYTES_MAX, Script, SkillRef, Version, module_at,
};

impl Runs<'_> {
    pub(super) async fn resolve(
        self,
        tenant: &Tenant,
        archive: Option<UnpublishedArchive>,
        spec: &mut RunSpec,
    ) -> Result<PlannedRun, Error> {
        let settings = &self.engine.settings;
        let mut planned = if let Some(UnpublishedArchive { zip, fallback_name }) = archive {
            let (unpacked, manifest) = self.engine.skills().unpack(zip, fallback_name).await?;
            let digest = unpacked.listing.digest();
            let declared = manifest.version.clone();
            let subject = Subject {
                tenant,
                manifest: &manifest,
                version: &declared.unwrap_or_else(|| Version::unnamed(&digest)),
                files: SkillFiles {
                    name: manifest.name.clone(),
                    digest,
                    folder: unpacked.folder().to_owned(),
                },
                target: target(spec, &manifest, unpacked.folder()).await?,
            };
            PlannedRun {
                _unpacked: Some(unpacked),
                ..plan::plan(subject, spec, settings)?
            }
        } else if let Some(SkillRef { name, selector }) = &spec.skill {
            let record = self.engine.skills().get(tenant, name, selector).await?;
            let folder = self.engine.skills().folder(&record).await?;
            let target = target(spec, &record.manifest, &folder).await?;
            let subject = Subject {
                tenant,
                manifest: &record.manifest,
                version: &record.version,
                files: SkillFiles {
                    name: record.name.clone(),
                    digest: record.digest,
                    folder,
                },
                target,
            };
            let mut planned = plan::plan(subject, spec, settings)?;
            planned.job.recurs = true;
            planned.added.extend(AddedPackages::of(&record));
            planned
        } else {
            let code = spec.code.take().unwrap_or_default();
            code::plan(tenant, code, spec, settings)?
        };
        self.mount(tenant, &mut planned, &spec.mount_skills).await?;
        let adds_python = planned
            .added
            .iter()
            .any(|added| added.language == Language::Python);
        if adds_python || !spec.requirements.is_empty() {
            self.use_called_language_image(&mut planned, Language::Python)?;
        }
        Ok(planned)
    }
}

/// The part of the skill to run. Checks first that the request adds nothing executable to a skill with secrets.
async fn target(spec: &RunSpec, manifest: &Manifest, folder: &Path) -> Result<Target, Error> {
    if !manifest.permissions.secrets.is_empty() {
        secret_guard::check(spec, folder).await?;
    }
    let Some(asked) = spec.script.as_deref() else {
        return Ok(Target::Declared);
    };
    let (path, folder) = (asked.to_owned(), folder.to_owned());
    let blocking = tokio::task::spawn_blocking(move || {
        Script::resolve(&path, |path| {
            // Archives contain no links, so every path below the folder belongs to the skill.
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

/// Suggests scripts with the same name in other folders or with other extensions first.
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
