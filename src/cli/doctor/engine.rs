//! Checks of the store, the file store and the container engine.

#[cfg(target_os = "linux")]
use super::native::{self, Need};
use super::trial;
use super::{CheckResult, CheckState, DoctorReport};
use crate::cli::client::EmbeddedClient;
use crate::cli::failure::Result;
use crate::cli::progress::Spinner;
use crate::config::Config;
use crate::sandbox::Sandbox;
use crate::sandbox::docker::{Docker, EngineFacts};
use crate::skill::{ApprovedImage, Language};

pub(super) fn check(
    local: &Result<EmbeddedClient>,
    config: &Config,
    report: &mut DoctorReport<'_>,
) -> Result<()> {
    let local = match local {
        Ok(local) => local,
        Err(failure) => return report.add(CheckResult::failed("API key", failure)),
    };
    for check in local
        .readiness()
        .checks
        .into_iter()
        .filter(|check| matches!(check.name, "store" | "blob"))
    {
        let part = if check.name == "store" {
            "database"
        } else {
            "files"
        };
        let message = check.message.unwrap_or_default();
        report.add(if check.ok {
            CheckResult::ok(part, "can be read and written")
        } else {
            CheckResult::failed(part, message)
        })?;
    }
    match local.engine().sandbox() {
        Sandbox::Docker(docker) => EngineCheck {
            local,
            docker,
            config,
            fallback: Fallback::None,
        }
        .check(report),
        #[cfg(target_os = "linux")]
        Sandbox::Native(native) => match native::check(local, native, Need::Only, report)? {
            true => trial::run_each(local, &Language::ALL, report),
            false => Ok(()),
        },
        Sandbox::Auto(auto) => {
            #[cfg(target_os = "linux")]
            let fallback = match native::check(local, auto.native(), Need::OneOfTwo, report)? {
                true if local.wait(auto.docker().facts()).is_err() => {
                    let found = "none responds, and none is needed: the native sandbox is available";
                    report.add(CheckResult::ok("container engine", found))?;
                    return trial::run_each(local, &Language::ALL, report);
                }
                true => Fallback::Native,
                false => Fallback::None,
            };
            #[cfg(not(target_os = "linux"))]
            let fallback = Fallback::None;
            EngineCheck {
                local,
                docker: auto.docker(),
                config,
                fallback,
            }
            .check(report)
        }
        #[cfg(feature = "testing")]
        Sandbox::Scripted(_) => trial::run_each(local, &Language::ALL, report),
    }
}

/// What runs a program that the engine cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fallback {
    None,
    /// With `auto`.
    #[cfg(target_os = "linux")]
    Native,
}

impl Fallback {
    /// A warning, if programs run all the same.
    fn soften(self, finding: CheckResult) -> CheckResult {
        match self {
            #[cfg(target_os = "linux")]
            Self::Native if finding.state == CheckState::Failed => CheckResult {
                state: CheckState::Warning,
                remedy: Some(match &finding.remedy {
                    Some(remedy) => format!("{remedy}; until then native sandboxes run these programs"),
                    None => "until then native sandboxes run these programs".to_owned(),
                }),
                ..finding
            },
            _ => finding,
        }
    }
}

struct EngineCheck<'a> {
    local: &'a EmbeddedClient,
    docker: &'a Docker,
    config: &'a Config,
    fallback: Fallback,
}

impl EngineCheck<'_> {
    fn check(&self, report: &mut DoctorReport<'_>) -> Result<()> {
        let facts = match self.local.wait(self.docker.facts()) {
            Ok(facts) => facts,
            Err(error) => return report.add(CheckResult::failed("container engine", error)),
        };
        let EngineFacts {
            version,
            api_version,
            os,
            architecture,
            kernel,
            ..
        } = &facts;
        report.add(CheckResult::ok(
            "container engine",
            format!("Docker {version}, API {api_version}, {os}/{architecture}, kernel {kernel}"),
        ))?;
        let EngineFacts {
            cgroup_version,
            storage_driver,
            runtime,
            security_options,
            ..
        } = &facts;
        report.add(CheckResult::ok(
            "engine set-up",
            format!(
                "cgroup v{cgroup_version}, storage {storage_driver}, runtime {runtime}, security {}",
                security_options.join(" ")
            ),
        ))?;
        for finding in limits(&facts) {
            report.add(self.fallback.soften(finding))?;
        }
        report.add(CheckResult::ok(
            "guest",
            format!("{} is static and fits the engine", facts.guest.display()),
        ))?;
        let mut ready = Vec::new();
        for language in Language::ALL {
            let found = self.image(language);
            let is_missing = found.state == CheckState::Failed;
            let finding = self.fallback.soften(found);
            let runs_natively = is_missing && finding.state == CheckState::Warning;
            if finding.state == CheckState::Ok || runs_natively {
                ready.push(language);
            }
            report.add(finding)?;
        }
        trial::run_each(self.local, &ready, report)
    }

    fn image(&self, language: Language) -> CheckResult {
        let name = self.config.sandbox.images.of(language);
        let approved: ApprovedImage = match self.config.sandbox.allowlist.approve(name) {
            Ok(approved) => approved,
            Err(refused) => {
                return CheckResult::warning(
                    "image",
                    refused,
                    "add it to `sandbox.image_allowlist` to use this language",
                );
            }
        };
        let _spinner = Spinner::start(format!("looking for image {name}"));
        match self.local.wait(self.docker.ensure_image(&approved, None)) {
            Ok(()) => CheckResult::ok("image", format!("{name} for {language} exists")),
            Err(error) => CheckResult::failed("image", error),
        }
    }
}

/// Checks that the engine supports all limits. A missing one breaks a promise.
fn limits(facts: &EngineFacts) -> Vec<CheckResult> {
    let missing = |name: &str| facts.limits.iter().any(|(limit, held)| *limit == name && !held);
    let mut findings = Vec::new();
    for (name, promise) in [("memory", "P6"), ("pids", "P5"), ("cpu", "P7")] {
        if missing(name) {
            let found = format!("the engine cannot limit {name} (promise {promise})");
            findings.push(CheckResult::failed_with(
                "limits",
                found,
                "enable this cgroup controller in the kernel and restart the engine",
            ));
        }
    }
    if missing("swap") {
        let remedy = "disable swap, or boot with swapaccount=1";
        findings.push(CheckResult::warning(
            "limits",
            "the engine cannot limit swap, so that programs may exceed their memory",
            remedy,
        ));
    }
    if !facts
        .security_options
        .iter()
        .any(|option| option.contains("seccomp"))
    {
        let remedy = "use an engine and a kernel with seccomp";
        findings.push(CheckResult::failed_with(
            "limits",
            "the engine has no seccomp (promise P13)",
            remedy,
        ));
    }
    if findings.is_empty() {
        findings.push(CheckResult::ok(
            "limits",
            "memory, swap, processes and CPU can be limited; seccomp is supported",
        ));
    }
    findings
}
