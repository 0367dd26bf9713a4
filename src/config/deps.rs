//! Settings of package installation.

use std::path::PathBuf;

use super::error::Error;
use super::read::{SettingsReader, boolean};
use super::values;
use crate::egress::{NamedBy, PackageHost, Upstream};
use crate::engine::{DependencySettings, Index};
use crate::limits;
use crate::skill::parse_bytes;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepsConfig {
    pub python_index: Index,
    pub node_registry: Index,
    /// Further hosts of package files.
    pub hosts: Vec<PackageHost>,
    /// Certificate authorities of these hosts.
    pub ca_bundle: Option<PathBuf>,
    /// Whether requests may ask for packages.
    pub requests: bool,
    /// Maximum size of all installed packages.
    pub cache_bytes: u64,
    /// Maximum size of one package set.
    pub set_bytes: u64,
}

impl DepsConfig {
    pub(super) fn read(reader: &SettingsReader<'_>) -> Result<Self, Error> {
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
            .map(|host| reader.check("deps.hosts", PackageHost::parse(host, named_by)));
        let cache_bytes = reader.required("deps.cache", |text| {
            parse_bytes(text, limits::PACKAGES_BYTES_SMALL)
        })?;
        Ok(Self {
            python_index: index("deps.python_index")?,
            node_registry: index("deps.node_registry")?,
            hosts: hosts.collect::<Result<_, _>>()?,
            ca_bundle: reader.optional("deps.ca_bundle", values::existing_file)?,
            requests: reader.required("deps.requests", boolean)?,
            cache_bytes,
            // A set larger than the total would be evicted at once.
            set_bytes: reader.required("deps.set_size", set_bytes)?.min(cache_bytes),
        })
    }

    /// The proxy comes from the environment of this process.
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
            requests: self.requests,
            cache_bytes: self.cache_bytes,
            set_bytes: self.set_bytes,
            folder,
        }
    }
}

/// A size, or `auto` for a size that fits the memory of this host.
fn set_bytes(text: &str) -> Result<u64, String> {
    if text == "auto" {
        return Ok(auto_set_bytes(host_memory_bytes()));
    }
    let bytes =
        parse_bytes(text, limits::PACKAGES_BYTES_MIN).map_err(|problem| format!("{problem}, or auto"))?;
    let gibibytes = limits::PACKAGES_BYTES_MAX / limits::MIB / 1024;
    (bytes <= limits::PACKAGES_BYTES_MAX)
        .then_some(bytes)
        .ok_or_else(|| format!("must be at most {gibibytes}Gi"))
}

fn auto_set_bytes(host_memory_bytes: Option<u64>) -> u64 {
    host_memory_bytes.map_or(limits::PACKAGES_BYTES_SMALL, |all| {
        (all / limits::PACKAGES_HOST_SHARE).clamp(limits::PACKAGES_BYTES_SMALL, limits::PACKAGES_BYTES)
    })
}

#[cfg(target_os = "linux")]
fn host_memory_bytes() -> Option<u64> {
    let told = rustix::system::sysinfo();
    u64::from(told.mem_unit).checked_mul(told.totalram)
}

#[cfg(not(target_os = "linux"))]
fn host_memory_bytes() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_package_sets_by_host_memory() {
        let gibibyte = 1024 * limits::MIB;
        assert_eq!(auto_set_bytes(Some(64 * gibibyte)), limits::PACKAGES_BYTES);
        assert_eq!(auto_set_bytes(Some(4 * gibibyte)), gibibyte);
        for small in [Some(gibibyte), None] {
            assert_eq!(auto_set_bytes(small), limits::PACKAGES_BYTES_SMALL);
        }
        let host = set_bytes("auto").unwrap();
        assert!((limits::PACKAGES_BYTES_SMALL..=limits::PACKAGES_BYTES).contains(&host));
        assert_eq!(set_bytes("6Gi").unwrap(), 6 * gibibyte);
        assert!(set_bytes("1Mi").unwrap_err().contains("auto"));
        assert!(set_bytes("9Gi").unwrap_err().contains("8Gi"));
    }
}
