//! Mounts other skills into an execution.

use crate::engine::Runs;
use crate::engine::added_packages::AddedPackages;
use crate::engine::plan::{self, PlannedRun};
use crate::error::{Code, Error};
use crate::ids::Tenant;
use crate::limits;
use crate::sandbox::{ImageOf, SkillFiles};
use crate::skill::{Language, SkillRef};

/// Rejects duplicate names: each skill has one folder.
pub(super) fn check(mounts: &[SkillRef]) -> Result<(), Error> {
    let max = limits::MOUNTED_SKILLS_MAX;
    if mounts.len() > max {
        return Err(Error::invalid(format!(
            "mount_skills: {} skills, the limit is {max}",
            mounts.len()
        )));
    }
    for (index, mount) in mounts.iter().enumerate() {
        if mounts[..index].iter().any(|earlier| earlier.name == mount.name) {
            return Err(Error::invalid(format!(
                "mount_skills: `{}` is named twice",
                mount.name
            )));
        }
    }
    Ok(())
}

impl Runs<'_> {
    /// Adds the skills to the job, except the one that is run.
    pub(super) async fn mount(
        self,
        tenant: &Tenant,
        planned: &mut PlannedRun,
        mounts: &[SkillRef],
    ) -> Result<(), Error> {
        let mut actions = Vec::new();
        for SkillRef { name, selector } in mounts {
            if planned
                .job
                .sandbox
                .skill
                .as_ref()
                .is_some_and(|own| own.name == *name)
            {
                continue;
            }
            let record =
                self.engine
                    .skills()
                    .get(tenant, name, selector)
                    .await
                    .map_err(|error| match error.code() {
                        Code::NotFound => Error::new(Code::NotFound, format!("mount_skills: {error}")),
                        _ => error,
                    })?;
            planned.added.extend(AddedPackages::of(&record));
            planned.job.sandbox.mounted.push(SkillFiles {
                folder: self.engine.skills().folder(&record).await?,
                digest: record.digest,
                name: record.name,
            });
            actions.extend(record.manifest.actions);
        }
        // A shell script next to scripts of another language probably calls them.
        match plan::called_by_shell(actions.iter()) {
            Some(other) => self.use_called_language_image(planned, other),
            None => Ok(()),
        }
    }

    /// Gives a shell without an image of its own the image of a language that it calls.
    pub(super) fn use_called_language_image(
        self,
        planned: &mut PlannedRun,
        other: Language,
    ) -> Result<(), Error> {
        let images = &self.engine.settings.images;
        let is_plain_shell = planned.language == Language::Bash
            && planned.job.sandbox.image_of == ImageOf::Language
            && planned.job.sandbox.image.as_str() == images.of(Language::Bash);
        if is_plain_shell {
            planned.job.sandbox.image = plan::approve(images.of(other), None, &self.engine.settings)?;
        }
        Ok(())
    }
}
