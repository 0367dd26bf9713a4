//! Where packages come from, as the operator set it.

use std::path::PathBuf;

use super::error::Error;
use super::read::Reader;
use super::values;
use crate::engine::{DependencySettings, Host, Index, NamedBy, Upstream};
use crate::limits;
use crate::skill::parse_bytes;

/// Packages that programs ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deps {
    /// Python's index.
    pub python_index: Index,
    /// Node's registry.
    pub node_registry: Index,
    /// Further hosts that keep their files.
    pub hosts: Vec<Host>,
    /// The authorities that they are believed by.
    pub ca_bundle: Option<PathBuf>,
    /// Bytes of installed packages that are kept.
    pub cache_bytes: u64,
}

impl Deps {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Self, Error> {
        let index = |key| {
            let named_by = if reader.is_set(key) {
                NamedBy::Operator
            } else {
                NamedBy::Default
            };
            reader.required(key, |text| Index::parse(text, named_by))
        };
        let hosts = match reader.list("deps.hosts") {
            None => vec![Index::PYTHON_FILES.to_owned()],
            Some(hosts) => hosts,
        };
        let named_by = if reader.is_set("deps.hosts") {
            NamedBy::Operator
        } else {
            NamedBy::Default
        };
        let hosts = hosts
            .iter()
            .map(|host| reader.check("deps.hosts", Host::parse(host, named_by)));
        Ok(Self {
            python_index: index("deps.python_index")?,
            node_registry: index("deps.node_registry")?,
            hosts: hosts.collect::<Result<_, _>>()?,
            ca_bundle: reader.optional("deps.ca_bundle", values::existing_file)?,
            cache_bytes: reader
                .required("deps.cache", |text| parse_bytes(text, limits::PACKAGES_BYTES_MAX))?,
        })
    }

    /// What the engine is told; the proxy of this process is its environment's.
    pub(super) fn settings(&self, folder: PathBuf) -> DependencySettings {
        let variable = |names: [&str; 2]| {
            let set = names.into_iter().filter_map(|name| std::env::var(name).ok());
            set.into_iter()
                .find(|value| !value.is_empty())
                .unwrap_or_default()
        };
        let proxy = variable(["HTTPS_PROXY", "https_proxy"]);
        DependencySettings {
            python_index: self.python_index.clone(),
            node_registry: self.node_registry.clone(),
            hosts: self.hosts.clone(),
            ca_bundle: self.ca_bundle.clone(),
            upstream: Upstream::parse(&proxy, &variable(["NO_PROXY", "no_proxy"])),
            cache_bytes: self.cache_bytes,
            folder,
        }
    }
}
