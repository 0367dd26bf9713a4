//! Published versions of skills.

use jiff::Timestamp;

use crate::ids::{Digest, KeyId, Tenant};
use crate::skill::{Manifest, Selector, SkillName, Version};
use crate::store::cursor::List;
use crate::store::{Error, acts};

/// One published version of a skill.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillRecord {
    pub tenant: Tenant,
    pub name: SkillName,
    /// A label that never moves to other content.
    pub version: Version,
    pub digest: Digest,
    pub manifest: Manifest,
    /// Size of the archive as uploaded.
    pub archive_bytes: u64,
    /// Size of all files unpacked.
    pub unpacked_bytes: u64,
    pub files: u32,
    /// Name of the pushed folder or archive, if known.
    pub folder: Option<String>,
    /// The API key of the push; `None` for versions of earlier releases.
    pub pushed_by: Option<KeyId>,
    /// Packages that were added to this version, beside its files.
    pub requirements: Vec<String>,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Published {
    New,
    /// The same content was already published under this version; this is its record.
    Same(Box<SkillRecord>),
}

/// A version and the number of its push, by which versions are listed.
#[derive(Debug)]
pub(super) struct PushedSkill {
    pub(super) push: u64,
    pub(super) skill: SkillRecord,
}

impl From<PushedSkill> for SkillRecord {
    fn from(pushed: PushedSkill) -> Self {
        pushed.skill
    }
}

acts! {
    trait Skills {
        /// Adds a version. The same content again is no error, and becomes the most recent push if it declares no version; other
        /// content under a published version is an error (Z-25).
        async fn publish(&self, skill: SkillRecord) -> Result<Published, Error>;
        /// The version that `selector` means. `latest` is the highest release, of two that differ in build metadata only the
        /// most recent push, and if there are only pre-releases the most recent push.
        async fn skill(&self, tenant: &Tenant, name: &SkillName, selector: &Selector) -> Result<SkillRecord, Error>;
        /// Replaces the packages that were added to a version.
        async fn set_requirements(&self, tenant: &Tenant, name: &SkillName, version: &Version, requirements: Vec<String>) -> Result<(), Error>;
        /// Deletes a version and returns its record.
        async fn delete_version(&self, tenant: &Tenant, name: &SkillName, version: &Version) -> Result<SkillRecord, Error>;
        /// Whether any version of any tenant has this content.
        async fn skill_digest_is_used(&self, digest: &Digest) -> Result<bool, Error>;
    }
    lists {
        /// The latest version of each skill, by name, without its instructions: they can be large, and no list shows them.
        async fn skills(&self, tenant: &Tenant) -> SkillRecord
            = List::Skills(tenant), after SkillName: |skill| skill.name.clone();
        /// The versions of one skill, the most recent push first, without their instructions.
        async fn versions(&self, tenant: &Tenant, name: &SkillName) -> SkillRecord as PushedSkill
            = List::Versions(tenant, name), after u64: |pushed| pushed.push;
    }
}
