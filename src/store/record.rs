//! What goes into the store and comes out of it, as far as no lower room has a word for it.

use jiff::Timestamp;

use crate::execution::{NewExecution, Status};
use crate::ids::{BlobObject, Digest, ExecutionId, IdempotencyKey, Tenant};
use crate::skill::{Language, Manifest, SecretName, SkillName, Version};
use crate::store::Cursor;

/// One published version of a skill.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillRecord {
    /// Whose it is.
    pub tenant: Tenant,
    /// The skill.
    pub name: SkillName,
    /// The version: a label that never moves to other content.
    pub version: Version,
    /// The content.
    pub digest: Digest,
    /// What the author declared.
    pub manifest: Manifest,
    /// Size of the archive as uploaded, in bytes.
    pub archive_bytes: u64,
    /// Size of all files unpacked, in bytes.
    pub unpacked_bytes: u64,
    /// How many files.
    pub files: u32,
    /// When it was published.
    pub created_at: Timestamp,
}

/// Installed packages that are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct PackageSet {
    /// Whose they are.
    pub tenant: Tenant,
    /// What was asked for, and for what it was built.
    pub key: Digest,
    /// Whose packages.
    pub language: Language,
    /// What was asked for, for people.
    pub wanted: Vec<String>,
    /// The content.
    pub digest: Digest,
    /// Size of all files, in bytes.
    pub bytes: u64,
    /// How many files.
    pub files: u32,
    /// When they were installed.
    pub created_at: Timestamp,
    /// When they were last used, to the hour.
    pub used_at: Timestamp,
}

/// What became of a publication.
#[derive(Clone, Debug, PartialEq)]
pub enum Published {
    /// It was not there before.
    New,
    /// The very same content was already there under this version; this is its record.
    Same(Box<SkillRecord>),
}

/// A secret as it is kept: sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSecret {
    /// Whose it is.
    pub tenant: Tenant,
    /// What it is called.
    pub name: SecretName,
    /// The value, sealed for exactly this tenant and name.
    pub sealed: Vec<u8>,
    /// When it was set.
    pub at: Timestamp,
}

/// What may be known of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRecord {
    /// Whose it is.
    pub tenant: Tenant,
    /// What it is called.
    pub name: SecretName,
    /// When it was first set.
    pub created_at: Timestamp,
    /// When it was last set.
    pub updated_at: Timestamp,
}

/// Whether something was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It was not.
    New,
    /// It was.
    Again,
}

/// A blob, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRecord {
    /// Whose it is.
    pub tenant: Tenant,
    /// The content, and its name.
    pub digest: Digest,
    /// Where its bytes lie.
    pub object: BlobObject,
    /// Size in bytes.
    pub size: u64,
    /// What it was said to be.
    pub media_type: String,
    /// When it came.
    pub created_at: Timestamp,
    /// From then on it is not there.
    pub expires_at: Timestamp,
}

/// What became of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptBlob {
    /// It was not there before.
    New {
        /// Bytes of the same content that had expired and that nothing names any more.
        replaced: Option<BlobObject>,
    },
    /// Its content was there; this is its record.
    Again(BlobRecord),
}

/// How much one tenant may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobQuota {
    /// Blobs.
    pub count: u64,
    /// Bytes of all together.
    pub bytes: u64,
}

/// An execution that will wait for its turn.
#[derive(Clone, Debug)]
pub struct Queued {
    /// What is known of it.
    pub execution: NewExecution,
    /// What it will be given, for whoever starts it; `None` where its caller waits and keeps that.
    pub request: Option<Vec<u8>>,
    /// The key that it was asked for under.
    pub key: Option<KeyedRequest>,
}

/// A request and the key that it was sent with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRequest {
    /// The key.
    pub key: IdempotencyKey,
    /// The digest of all that was asked for.
    pub fingerprint: Digest,
    /// The key of an earlier request holds no more.
    pub since: Timestamp,
}

/// What became of an execution that was to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// It waits.
    New,
    /// The very same was asked for before; that is it.
    Known(ExecutionId),
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The rows, in the list's order.
    pub items: Vec<T>,
    /// Where the next page starts; `None` at the end of the list.
    pub next: Option<Cursor>,
}

/// Which executions a list shows; each `None` shows all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionFilter {
    /// Only those in this state.
    pub status: Option<Status>,
    /// Only those of this skill.
    pub skill: Option<SkillName>,
    /// Only those accepted at this time or later.
    pub since: Option<Timestamp>,
    /// Only those accepted before this time.
    pub until: Option<Timestamp>,
}

/// Which executions need not be kept; each `None` lets all stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Those that ended before this time may go.
    pub ended_before: Option<Timestamp>,
    /// Of each tenant only this many stay: the most recent.
    pub per_tenant: Option<u64>,
}
