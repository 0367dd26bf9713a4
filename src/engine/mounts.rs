//! The other skills that an execution sees.

use crate::auth::Caller;
use crate::engine::Engine;
use crate::error::{Code, Error};
use crate::limits;
use crate::sandbox::{Job, SkillFiles};
use crate::skill::SkillRef;

/// Refuses what cannot be seen side by side: every skill has one place.
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

impl Engine {
    /// Adds the skills to the job; the one that is run is there already.
    pub(super) async fn mount(
        &self,
        caller: &Caller,
        job: &mut Job,
        mounts: &[SkillRef],
    ) -> Result<(), Error> {
        for SkillRef { name, selector } in mounts {
            if job.skill.as_ref().is_some_and(|own| own.name == *name) {
                continue;
            }
            let record = self
                .skill(caller, name, selector)
                .await
                .map_err(|error| match error.code() {
                    Code::NotFound => Error::new(Code::NotFound, format!("mount_skills: {error}")),
                    _ => error,
                })?;
            job.mounted.push(SkillFiles {
                folder: self.folder(&record).await?,
                digest: record.digest,
                name: record.name,
            });
        }
        Ok(())
    }
}
