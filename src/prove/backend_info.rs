//! The attacked backend: its form and its degraded promises.

use crate::engine::Engine;
use crate::sandbox::Sandbox;

use super::probe::GVISOR;

#[derive(Clone, Debug, Default)]
pub(super) struct BackendInfo {
    pub(super) backend: &'static str,
    /// Human-readable.
    pub(super) form: String,
    /// From general to specific: backend, `gvisor`, `ordinary` or `root`, `degraded`.
    pub(super) traits: Vec<String>,
    pub(super) degraded: Vec<String>,
    /// Promises whose mechanism depends on this host, with the mechanism.
    pub(super) mechanisms: Vec<(&'static str, String)>,
}

impl BackendInfo {
    pub(super) async fn of(engine: &Engine, runtime: Option<&str>) -> Self {
        match engine.sandbox() {
            Sandbox::Docker(docker) => {
                let facts = docker.facts().await.ok();
                let used = runtime.map(ToOwned::to_owned);
                let used = used.or_else(|| facts.as_ref().map(|facts| facts.runtime.clone()));
                let version = facts.map(|facts| format!("Docker {}", facts.version));
                Self {
                    backend: "docker",
                    form: [version, used.map(|name| format!("runtime {name}"))]
                        .into_iter()
                        .flatten()
                        .collect::<Vec<_>>()
                        .join(", "),
                    traits: [Some("docker"), docker.is_on_gvisor().then_some(GVISOR)]
                        .into_iter()
                        .flatten()
                        .map(ToOwned::to_owned)
                        .collect(),
                    ..Self::default()
                }
            }
            #[cfg(target_os = "linux")]
            Sandbox::Native(native) => Self::native(native.setup().await),
            other => Self {
                backend: other.name(),
                traits: vec![other.name().to_owned()],
                ..Self::default()
            },
        }
    }

    #[cfg(target_os = "linux")]
    fn native(setup: crate::sandbox::linux::HostSetup) -> Self {
        let ordinary = !rustix::process::geteuid().is_root();
        let mechanisms = setup.mechanisms;
        let degraded: Vec<_> = mechanisms
            .iter()
            .filter(|mechanism| !mechanism.kept)
            .map(|mechanism| mechanism.promise.to_owned())
            .collect();
        let traits = [
            Some("native"),
            Some(if ordinary { "ordinary" } else { "root" }),
            (!degraded.is_empty()).then_some("degraded"),
        ];
        Self {
            backend: "native",
            form: if ordinary {
                "this kernel, as an ordinary user".to_owned()
            } else {
                "this kernel, as root".to_owned()
            },
            traits: traits.into_iter().flatten().map(ToOwned::to_owned).collect(),
            degraded,
            mechanisms: mechanisms
                .into_iter()
                .map(|mechanism| (mechanism.promise, mechanism.by))
                .collect(),
        }
    }
}
