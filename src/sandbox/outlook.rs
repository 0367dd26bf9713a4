//! Which backend would run the next execution, and why the others would not.

use super::Backend as _;
use super::{Error, Sandbox, promises};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// `None` if none can run anything now.
    pub chosen: Option<&'static str>,
    pub reason: String,
    pub others: Vec<OtherBackend>,
    /// Promises that are only partly kept on this host.
    pub degraded: Vec<&'static str>,
    /// How each promise is kept, in order; of the chosen backend, or of the one that would be.
    pub mechanisms: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherBackend {
    pub backend: &'static str,
    pub why_not: String,
}

impl OtherBackend {
    pub(super) fn new(backend: &'static str, why_not: impl Into<String>) -> Self {
        Self {
            backend,
            why_not: why_not.into(),
        }
    }
}

impl Outlook {
    pub(super) fn of(backend: &'static str, reason: String, others: Vec<OtherBackend>) -> Self {
        let all = promises::PROMISES.iter();
        let mechanisms = all.map(|(promise, _)| promises::mechanism(promise, backend).to_owned());
        Self {
            chosen: Some(backend),
            reason,
            others,
            degraded: Vec::new(),
            mechanisms: mechanisms.collect(),
        }
    }

    /// Of a backend that cannot run anything now.
    fn unless_failed(self, checked: Result<(), Error>) -> Self {
        match checked {
            Ok(()) => self,
            Err(error) => Self {
                chosen: None,
                reason: first_clause(&error.to_string()).to_owned(),
                ..self
            },
        }
    }

    /// With what this host has for native sandboxes.
    #[cfg(target_os = "linux")]
    pub(super) fn on_host(mut self, setup: &super::linux::HostSetup) -> Self {
        for found in &setup.mechanisms {
            let known = promises::PROMISES.iter().zip(&mut self.mechanisms);
            for (_, mechanism) in known.filter(|((promise, _), _)| *promise == found.promise) {
                // Callers over the network see no path of the host; `doctor` names it.
                found
                    .by
                    .split(" below ")
                    .next()
                    .unwrap_or_default()
                    .clone_into(mechanism);
            }
            if !found.kept {
                self.degraded.push(found.promise);
            }
        }
        self
    }
}

impl Sandbox {
    /// Checks which backend can be used now.
    pub async fn outlook(&self) -> Outlook {
        let configured = |name| format!("`sandbox.backend` is `{name}`");
        match self {
            Self::Docker(docker) => {
                let native = OtherBackend::new("native", configured("docker"));
                let outlook = Outlook::of("docker", "configured".to_owned(), vec![native]);
                outlook.unless_failed(docker.check().await)
            }
            #[cfg(target_os = "linux")]
            Self::Native(native) => {
                let docker = OtherBackend::new("docker", configured("native"));
                let checked = native.check().await;
                let outlook = Outlook::of("native", native.choice().reason, vec![docker]);
                outlook.on_host(&native.setup().await).unless_failed(checked)
            }
            Self::Auto(auto) => Box::pin(auto.outlook()).await,
            #[cfg(feature = "testing")]
            Self::Scripted(scripted) => {
                let outlook = Outlook::of(
                    super::BackendKind::Scripted.as_str(),
                    "test".to_owned(),
                    Vec::new(),
                );
                outlook.unless_failed(scripted.check().await)
            }
        }
    }
}

/// What is wrong, without the remedies that follow: `doctor` has them.
pub(super) fn first_clause(message: &str) -> &str {
    message.split(['\n', ';']).next().unwrap_or(message)
}
