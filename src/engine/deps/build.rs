//! Installs packages in a sandbox with larger limits and network access to the configured indexes only.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::bundle::artifacts::ArtifactTar;
use crate::egress::PackageProxy;
use crate::engine::deps::check::InstallationCheck;
use crate::engine::deps::requested::RequestedPackages;
use crate::engine::deps::transfer::{PackageCount, Transfer};
use crate::engine::deps::{
    InstallWaiter, Installation, PackageSetKey, caller_disconnected, packages_of, pip_file,
};
use crate::engine::plan::PlannedRun;
use crate::engine::{Packages, failure};
use crate::error::{Code, Error};
use crate::execution::{JsonText, ResourceLimits, Transcript};
use crate::ids::ExecutionId;
use crate::limits;
use crate::sandbox::{
    BackendChoice, Collect, Completion, Dependencies, Egress, ImageOf, InputFile, Job, JobKind, ProgramRun,
    Progress, Report, RunContext, SandboxSpec, Urgency,
};
use crate::secret::Mask;
use crate::skill::Language;

/// Usual paths of a host's certificate authorities.
const CA_BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/opt/homebrew/etc/ca-certificates/cert.pem",
];
/// Installs with pip; fetches pip first if the interpreter lacks it.
const PYTHON_INSTALLER: &str = include_str!("install.py");
/// Installs with npm.
const NODE_INSTALLER: &str = include_str!("install.cjs");

/// Where an installer's packages and lines go.
struct InstallOutput<'a> {
    artifacts: &'a mut ArtifactTar,
    transcript: &'a Transcript,
}

impl Packages<'_> {
    /// Installs packages for a planned run and stores them. `None` if the skill's own image lacks an interpreter that
    /// the program itself does not need.
    pub(super) async fn build(
        self,
        installation: Installation<'_>,
        wanted: &RequestedPackages,
        name: &PackageSetKey,
    ) -> Result<Option<Dependencies>, Error> {
        let Installation {
            plan,
            choice,
            waiting,
        } = installation;
        let names = wanted.names();
        if let Some(progress) = waiting.progress {
            let (packages, count) = (names.join(", "), names.len());
            let _ = progress.try_send(Progress::Installing { packages, count });
        }
        let began = Instant::now();
        let (egress, tunnels) = Egress::new();
        let job = self.installer_job(plan, wanted, egress).await?;
        let deps = &self.engine.settings.deps;
        let index = match wanted {
            RequestedPackages::Python(_) => &deps.python_index,
            RequestedPackages::Node(_) => &deps.node_registry,
        };
        let proxy = Arc::new(PackageProxy::new(deps.reachable(index), deps.upstream.clone()));
        let mut artifacts = ArtifactTar::create_in(&self.engine.settings.tmp_dir);
        // Dropping it closes every tunnel.
        let mut gate = JoinSet::new();
        gate.spawn(proxy.clone().serve(tunnels));
        let transcript = Transcript::default();
        let transfer = Transfer {
            proxy: &proxy,
            printed: &transcript,
            packages: PackageCount::of(wanted.language(), &names),
        };
        // Boxed: it holds the future of a whole run.
        let output = InstallOutput {
            artifacts: &mut artifacts,
            transcript: &transcript,
        };
        let install = Box::pin(self.install(&job, choice, output, waiting));
        let report = match waiting.progress {
            Some(progress) => transfer.report_while(install, progress).await?,
            None => install.await?,
        };
        drop(gate);
        // A skill's own image may lack the interpreter of the other language.
        let may_lack = plan.job.sandbox.image_of == ImageOf::Skill && plan.language != wanted.language();
        if may_lack && let Completion::NotStarted(_) = report.end {
            return Ok(None);
        }
        let check = InstallationCheck {
            report: &report,
            granted: &job.sandbox.limits,
            set_bytes: deps.set_bytes,
        };
        check.check(proxy.first_failure())?;
        if let Some(progress) = waiting.progress {
            let _ = progress.try_send(Progress::Storing);
        }
        let (tar, _) = artifacts.finish().map_err(failure::of_io)?;
        let (set, folder) = self.store_set(name, wanted, tar).await?;
        if let Some(progress) = waiting.progress {
            let (bytes, took) = (set.bytes, began.elapsed());
            let _ = progress.try_send(Progress::Installed { bytes, took });
        }
        tracing::info!(packages = %set.key, bytes = set.bytes, "Installed packages {}", set.key);
        Ok(Some(Dependencies {
            packages: packages_of(set.language),
            digest: set.digest,
            folder,
        }))
    }

    /// Runs the installer; cancels it if the caller disconnects or this process ends.
    async fn install(
        self,
        job: &Job,
        choice: &BackendChoice,
        output: InstallOutput<'_>,
        waiting: InstallWaiter<'_>,
    ) -> Result<Report, Error> {
        let cancel = self.engine.running.stopping();
        let (start_signal, start) = oneshot::channel();
        let _ = start_signal.send(());
        // An installer returns no blobs.
        let mut blobs = ArtifactTar::create_in(&self.engine.settings.tmp_dir);
        let context = RunContext {
            artifacts: output.artifacts,
            blobs: &mut blobs,
            cancel: cancel.clone(),
            start,
            transcript: output.transcript,
        };
        let running = self.engine.sandbox.run(choice, job, context);
        tokio::pin!(running);
        let report = tokio::select! {
            report = &mut running => report,
            () = waiting.gone.cancelled() => {
                cancel.cancel();
                running.await
            }
        };
        let report = report.map_err(failure::of_sandbox)?;
        if report.end == Completion::Cancelled {
            return Err(caller_disconnected());
        }
        Ok(report)
    }

    /// The job of the installer: no secrets, no inputs, nothing of the request but the package list.
    async fn installer_job(
        self,
        plan: &PlannedRun,
        wanted: &RequestedPackages,
        egress: Egress,
    ) -> Result<Job, Error> {
        let deps = &self.engine.settings.deps;
        let (program, installer, files, index) = match wanted {
            RequestedPackages::Python(requirements) => {
                let files = vec![
                    file("requirements.txt", pip_file::text(requirements.iter())?),
                    file("constraints.txt", pip_file::text(requirements.constraints())?),
                ];
                ("install.py", PYTHON_INSTALLER, files, &deps.python_index)
            }
            RequestedPackages::Node(packages) => {
                let mut files = vec![file("package.json", packages.package_json().to_owned())];
                files.extend(
                    packages
                        .lock()
                        .map(|lock| file("package-lock.json", lock.to_owned())),
                );
                ("install.cjs", NODE_INSTALLER, files, &deps.node_registry)
            }
        };
        let language = wanted.language();
        let mut all = vec![
            file(program, installer.to_owned()),
            file("ca.pem", ca_bundle(deps.ca_bundle.as_deref()).await?),
        ];
        all.extend(files);
        let proxy = format!("http://127.0.0.1:{}", Egress::PORT);
        let input = json!({
            "index": index.url(),
            "proxy": proxy,
            "seen_at": packages_of(language).folder(),
            "prereleases": wanted.allows_prereleases(),
        });
        let mut argv = vec![language.interpreter().to_owned()];
        if language == Language::Python {
            argv.push("-I".to_owned());
        }
        argv.push(format!("/workspace/{program}"));
        let mut variables = plan.job.program.env.variables().iter();
        let path = variables.find(|(key, _)| key == "PATH");
        let own = [
            ("HOME", "/workspace"),
            ("LANG", "C.UTF-8"),
            // Same file system as the packages, so that they are moved instead of copied.
            ("TMPDIR", "/sandbox/tmp"),
        ];
        let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Ok(Job {
            sandbox: self.installer_sandbox(&plan.job.sandbox),
            program: ProgramRun {
                execution: ExecutionId::generate(),
                argv,
                env: path.cloned().into_iter().chain(own).collect::<Vec<_>>().into(),
                mask: Mask::default(),
                input: JsonText::parse(input.to_string().as_bytes()).map_err(Error::internal)?,
                code: None,
                stdin: Some(bytes::Bytes::new()),
                files: all,
                blobs: Vec::new(),
                collect: Collect::Out,
            },
            kind: JobKind::Build { egress },
            recurs: false,
            urgency: Urgency::default(),
        })
    }

    /// The image of the program, without its skill.
    fn installer_sandbox(self, program: &SandboxSpec) -> SandboxSpec {
        SandboxSpec {
            tenant: program.tenant.clone(),
            image: program.image.clone(),
            image_of: program.image_of,
            skill: None,
            mounted: Vec::new(),
            deps: Vec::new(),
            limits: self.installer_limits(),
        }
    }

    /// Limits of an installer: more memory than a program, most of it for files.
    fn installer_limits(self) -> ResourceLimits {
        let maxima = &self.engine.settings.maxima;
        let small = 16 * limits::MIB;
        let sandbox_bytes = limits::builder_files_bytes(self.engine.settings.deps.set_bytes);
        let others =
            3 * small + limits::ROOT_BYTES + limits::BLOBS_BYTES_MIN + limits::MEMORY_BEYOND_SCRATCH_BYTES;
        let memory_bytes = sandbox_bytes + others + limits::BUILDER_MEMORY_BYTES;
        ResourceLimits {
            memory_bytes: memory_bytes.max(maxima.memory_bytes),
            cpu_millis: maxima.cpu_millis,
            processes_max: limits::PROCESSES_MAX,
            timeout: limits::BUILDER_TIMEOUT,
            workspace_bytes: small,
            sandbox_bytes,
            tmp_bytes: small,
            root_bytes: limits::ROOT_BYTES,
            shm_bytes: small,
            blobs_bytes: limits::BLOBS_BYTES_MIN,
        }
    }
}

fn file(path: &str, content: String) -> InputFile {
    InputFile {
        path: path.to_owned(),
        content: content.into(),
    }
}

async fn ca_bundle(configured: Option<&Path>) -> Result<String, Error> {
    let failed = |why: &str| Error::new(Code::DependenciesFailed, why);
    if let Some(path) = configured {
        return authorities(path).await.map_err(|_| {
            failed("deps.ca_bundle cannot be read or is too large for a list of certificate authorities; set another file")
        });
    }
    for path in CA_BUNDLES {
        if let Ok(text) = authorities(Path::new(path)).await {
            return Ok(text);
        }
    }
    Err(failed(
        "this host has no certificate authorities to verify package indexes; install them (Debian: ca-certificates), or set deps.ca_bundle",
    ))
}

/// Reads a file up to the size limit.
async fn authorities(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = tokio::fs::File::open(path).await?;
    let mut file = file.take(limits::CA_BUNDLE_BYTES_MAX + 1);
    let read = file.read_to_string(&mut text).await?;
    if read as u64 > limits::CA_BUNDLE_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[tokio::test]
    async fn limits_the_size_of_a_certificate_file() {
        let error = ca_bundle(Some(Path::new("/dev/zero"))).await.unwrap_err();
        assert!(error.to_string().contains("deps.ca_bundle"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, "-----BEGIN CERTIFICATE-----\n").unwrap();
        assert!(ca_bundle(Some(&path)).await.unwrap().starts_with("-----"));
    }
}
