//! Names of objects. They consist of checked names only, so no key leaves its folder or equals another (T-11).

use std::fmt;

use crate::ids::{BlobObject, Digest, ExecutionId, Tenant};
use crate::skill::{SkillName, Version};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    /// A skill's archive as it was uploaded: `{tenant}/{skill}/{version}/skill.zip`.
    SkillArchive {
        tenant: Tenant,
        skill: SkillName,
        /// `+` is written `_`, which no version contains: some object stores return `+` as a blank.
        version: Version,
    },
    /// A blob: `{tenant}/blobs/{object}/blob`. No version of a skill `blobs` is an id.
    Blob { tenant: Tenant, object: BlobObject },
    /// The files of an execution: `{tenant}/{execution}/files.tar`.
    Artifacts { tenant: Tenant, execution: ExecutionId },
    /// Installed packages: `{tenant}/_packages/{key}/files.tar`. No skill name contains `_`.
    Packages {
        tenant: Tenant,
        /// The list of requirements, and what it was built for.
        key: Digest,
    },
}

/// The folder of a tenant's blobs.
pub(super) const BLOBS: &str = "blobs";

impl Key {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::SkillArchive { .. } => "skills",
            Self::Blob { .. } => "blobs",
            Self::Artifacts { .. } => "artifacts",
            Self::Packages { .. } => "packages",
        }
    }

    /// The folders above it, outermost first.
    pub(super) fn folders(&self) -> Vec<String> {
        match self {
            Self::SkillArchive {
                tenant,
                skill,
                version,
            } => vec![
                tenant.to_string(),
                skill.to_string(),
                version.to_string().replace('+', "_"),
            ],
            Self::Blob { tenant, object } => vec![tenant.to_string(), BLOBS.to_owned(), object.to_string()],
            Self::Artifacts { tenant, execution } => vec![tenant.to_string(), execution.to_string()],
            Self::Packages { tenant, key } => vec![tenant.to_string(), "_packages".to_owned(), key.hex()],
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::SkillArchive { .. } => "skill.zip",
            Self::Blob { .. } => "blob",
            Self::Artifacts { .. } | Self::Packages { .. } => "files.tar",
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.folders().join("/"), self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(tenant: &str, skill: &str, version: &str) -> String {
        let key = Key::SkillArchive {
            tenant: tenant.parse().unwrap(),
            skill: skill.parse().unwrap(),
            version: version.parse().unwrap(),
        };
        key.to_string()
    }

    #[test]
    fn displays_keys_as_documented() {
        assert_eq!(
            archive("acme", "a.b-c", "1.0.0-rc.1"),
            "acme/a.b-c/1.0.0-rc.1/skill.zip"
        );
        assert_eq!(
            archive("acme", "a", "0.0.0+0123456789ab"),
            "acme/a/0.0.0_0123456789ab/skill.zip"
        );
        let execution = ExecutionId::generate();
        let key = Key::Artifacts {
            tenant: Tenant::default_tenant(),
            execution,
        };
        assert_eq!(key.to_string(), format!("default/{execution}/files.tar"));
        let object = BlobObject::generate();
        let key = Key::Blob {
            tenant: Tenant::default_tenant(),
            object,
        };
        assert_eq!(key.to_string(), format!("default/blobs/{object}/blob"));
    }
}
