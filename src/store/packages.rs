//! Installed packages.

use jiff::Timestamp;

use crate::ids::{Digest, Tenant};
use crate::skill::Language;
use crate::store::cursor::{List, Moment};
use crate::store::{Error, acts};

/// The packages that one list of requirements installs.
#[derive(Clone, Debug, PartialEq)]
pub struct PackageSet {
    pub tenant: Tenant,
    /// The list, and what it was built for.
    pub key: Digest,
    pub language: Language,
    /// The list, human-readable.
    pub wanted: Vec<String>,
    pub digest: Digest,
    /// Size of all files.
    pub bytes: u64,
    pub files: u32,
    pub created_at: Timestamp,
    /// To the hour.
    pub used_at: Timestamp,
}

acts! {
    trait Packages {
        /// Saves a set, in place of the one with this key.
        async fn put_packages(&self, set: PackageSet) -> Result<(), Error>;
        async fn packages(&self, tenant: &Tenant, key: &Digest) -> Result<PackageSet, Error>;
        /// Records that a set was used; without effect if it was deleted.
        async fn touch_packages(&self, tenant: &Tenant, key: &Digest, at: Timestamp) -> Result<(), Error>;
        /// Deletes a set and returns its record.
        async fn delete_packages(&self, tenant: &Tenant, key: &Digest) -> Result<PackageSet, Error>;
        /// At most `rows` of all tenants' sets that exceed `bytes_max`: first of the tenant with the most bytes, of one tenant
        /// the least recently used first.
        async fn surplus_packages(&self, bytes_max: u64, rows: u32) -> Result<Vec<PackageSet>, Error>;
        /// Size of a tenant's sets in bytes.
        async fn packages_used(&self, tenant: &Tenant) -> Result<u64, Error>;
        /// Whether a set of the tenant has this content.
        async fn packages_digest_is_used(&self, tenant: &Tenant, digest: &Digest) -> Result<bool, Error>;
    }
    lists {
        /// A tenant's installed packages, the newest first.
        async fn package_sets(&self, tenant: &Tenant) -> PackageSet
            = List::Packages(tenant), after Moment<Digest>: |set| Moment::new(set.created_at, set.key);
    }
}
