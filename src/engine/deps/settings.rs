//! What the operator decided about packages.

use std::path::PathBuf;

use crate::egress::{NamedBy, PackageHost, Upstream};
use crate::engine::deps::Index;
use crate::limits;

/// Where packages come from, and how many are kept.
#[derive(Clone, Debug)]
pub struct DependencySettings {
    /// Python's index.
    pub python_index: Index,
    /// Node's registry.
    pub node_registry: Index,
    /// Further hosts that keep their files.
    pub hosts: Vec<PackageHost>,
    /// The authorities that indexes are believed by; the usual file of this host if absent.
    pub ca_bundle: Option<PathBuf>,
    /// The proxy that this server goes through.
    pub upstream: Option<Upstream>,
    /// Bytes of all installed packages that are kept.
    pub cache_bytes: u64,
    /// Bytes of one set of them.
    pub set_bytes: u64,
    /// Where they are unpacked, private to this installation.
    pub folder: PathBuf,
}

impl DependencySettings {
    /// Nothing but the public indexes, and packages in this folder.
    #[must_use]
    pub fn in_folder(folder: PathBuf) -> Self {
        let ours = "what this program names is well-formed";
        Self {
            python_index: Index::parse(Index::PYTHON, NamedBy::Default).expect(ours),
            node_registry: Index::parse(Index::NODE, NamedBy::Default).expect(ours),
            hosts: vec![PackageHost::parse(Index::PYTHON_FILES, NamedBy::Default).expect(ours)],
            ca_bundle: None,
            upstream: None,
            cache_bytes: limits::PACKAGES_CACHE_BYTES,
            set_bytes: limits::PACKAGES_BYTES,
            folder,
        }
    }

    /// Every host that a builder may reach.
    pub(super) fn reachable(&self, index: &Index) -> Vec<PackageHost> {
        let mut hosts = vec![index.host().clone()];
        hosts.extend_from_slice(&self.hosts);
        hosts
    }
}
