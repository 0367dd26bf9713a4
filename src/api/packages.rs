//! Installed packages: listed, installed in advance and deleted.

use serde::{Deserialize, Serialize};

use super::{List, RUN_OR_SKILLS, SKILLS, require};
use crate::auth::Caller;
use crate::engine::{Engine, PageRequest};
use crate::error::Error;
use crate::ids::Digest;
use crate::sandbox::ProgressSender;
use crate::skill::{Language, Selector, SkillName};
use crate::store::PackageSet;

/// A set of installed packages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Packages)]
pub struct PackageSetInfo {
    /// Identifies the requirements and the image or interpreter.
    #[schema(value_type = String, format = "digest")]
    pub key: Digest,
    /// Language of the packages.
    pub language: Language,
    /// Requested packages.
    #[schema(example = json!(["numpy", "pandas>=2"]))]
    pub requirements: Vec<String>,
    /// Size of all files, in bytes.
    pub bytes: u64,
    /// Number of files.
    pub files: u32,
    /// Time of installation.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
    /// Last use, to the hour.
    #[schema(value_type = String, format = DateTime)]
    pub used_at: jiff::Timestamp,
}

impl From<&PackageSet> for PackageSetInfo {
    fn from(set: &PackageSet) -> Self {
        Self {
            key: set.key,
            language: set.language,
            requirements: set.wanted.clone(),
            bytes: set.bytes,
            files: set.files,
            created_at: set.created_at,
            used_at: set.used_at,
        }
    }
}

/// The skill whose packages to install.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"skill": "data-analysis"}))]
pub struct Prefetch {
    /// Name of the skill.
    #[schema(value_type = String, format = "skill-name")]
    pub skill: SkillName,
    /// A semantic version, `latest` or a digest `sha256:…`. Default: `latest`.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = "selector")]
    pub version: Option<Selector>,
}

/// Newest first.
pub async fn list(
    engine: &Engine,
    caller: &Caller,
    page: PageRequest,
) -> Result<List<PackageSetInfo>, Error> {
    require(caller, RUN_OR_SKILLS)?;
    Ok(List::of(&engine.packages().list(caller.tenant(), page).await?))
}

/// Installs the packages of a skill's program and scripts.
pub async fn prefetch(
    engine: &Engine,
    caller: &Caller,
    request: Prefetch,
    progress: Option<ProgressSender>,
) -> Result<List<PackageSetInfo>, Error> {
    require(caller, SKILLS)?;
    let Prefetch { skill, version } = request;
    let packages = engine.packages();
    let sets = packages.prefetch(caller.tenant(), skill, version.unwrap_or_default(), progress);
    Ok(List::all(&sets.await?))
}

/// Deletes installed packages, if they exist. Running programs are not affected.
pub async fn delete(engine: &Engine, caller: &Caller, key: &Digest) -> Result<(), Error> {
    require(caller, SKILLS)?;
    engine.packages().delete(caller.tenant(), key).await
}
