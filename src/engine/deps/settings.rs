//! Settings of package installation.

use std::path::PathBuf;

use crate::egress::{NamedBy, PackageHost, Upstream};
use crate::engine::deps::Index;
use crate::limits;

#[derive(Clone, Debug)]
pub struct DependencySettings {
    pub python_index: Index,
    pub node_registry: Index,
    /// Further hosts of package files.
    pub hosts: Vec<PackageHost>,
    /// Certificate authorities of the indexes; those of this host if absent.
    pub ca_bundle: Option<PathBuf>,
    pub upstream: Option<Upstream>,
    /// Whether requests may ask for packages; otherwise only published skills have some.
    pub requests: bool,
    /// Maximum size of all installed packages.
    pub cache_bytes: u64,
    /// Maximum size of one package set.
    pub set_bytes: u64,
    /// Private to this installation.
    pub folder: PathBuf,
}

impl DependencySettings {
    /// The public indexes, with packages in `folder`.
    #[must_use]
    pub fn in_folder(folder: PathBuf) -> Self {
        let ours = "what this program names is well-formed";
        Self {
            python_index: Index::parse(Index::PYTHON, NamedBy::Default).expect(ours),
            node_registry: Index::parse(Index::NODE, NamedBy::Default).expect(ours),
            hosts: vec![PackageHost::parse(Index::PYTHON_FILES, NamedBy::Default).expect(ours)],
            ca_bundle: None,
            upstream: None,
            requests: true,
            cache_bytes: limits::PACKAGES_CACHE_BYTES,
            set_bytes: limits::PACKAGES_BYTES,
            folder,
        }
    }

    /// Hosts that an installer may reach.
    pub(super) fn reachable(&self, index: &Index) -> Vec<PackageHost> {
        let mut hosts = vec![index.host().clone()];
        hosts.extend_from_slice(&self.hosts);
        hosts
    }
}
