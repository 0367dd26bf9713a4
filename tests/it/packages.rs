//! Python packages that many skills use, given to a sandbox: they import and work under the table of system calls.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use skillbox::bundle::artifacts::ArtifactTar;
use skillbox::execution::{Maxima, ResourceLimits};
use skillbox::ids::ExecutionId;
use skillbox::sandbox::{
    Collect, Completion, Dependencies, ImageOf, Job, JobKind, PackageKind, ProgramOutput, ProgramRun, Report,
    RunContext, Sandbox, SandboxSpec, Urgency,
};
use skillbox::skill::{ImageAllowlist, Resources};
use tokio_util::sync::CancellationToken;

use crate::world::{self, Backend, json, missing};

/// A sandbox without the engine above it, which gives programs no packages yet.
pub(crate) struct Bare {
    sandbox: Sandbox,
    _folder: tempfile::TempDir,
}

impl Bare {
    /// One on this backend, or `None` (and a word about it) where this machine has none.
    pub(crate) async fn on(backend: Backend) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let instance = world::instance_in(folder.path()).id();
        let (what, sandbox) = match backend {
            Backend::Docker => ("docker", Sandbox::docker(world::docker_settings(), instance)),
            #[cfg(target_os = "linux")]
            Backend::Native => ("linux", Sandbox::native(world::native_settings(), instance)),
            #[cfg(not(target_os = "linux"))]
            Backend::Native => unreachable!("there is no native sandbox here"),
        };
        if let Err(error) = sandbox.check().await {
            missing(what, &error.to_string());
            return None;
        }
        let _folder = folder;
        Some(Self { sandbox, _folder })
    }

    /// Runs a Python program that must succeed, and returns its output.
    pub(crate) async fn python(&self, program: &str, deps: Option<Dependencies>) -> serde_json::Value {
        let report = self.run(&job(program, deps)).await;
        let errors = String::from_utf8_lossy(&report.logs.stderr).into_owned();
        assert_eq!(report.end, Completion::Exited(0), "{errors}");
        let ProgramOutput::Json(text) = report.output else {
            panic!("{:?} {errors}", report.output);
        };
        serde_json::from_str(text.as_str()).unwrap()
    }

    /// Runs a job to its end.
    pub(crate) async fn run(&self, job: &Job) -> Report {
        let choice = self.sandbox.prepare(job, None).await.unwrap();
        let mut artifacts = ArtifactTar::create_in(&std::env::temp_dir());
        let mut blobs = ArtifactTar::create_in(&std::env::temp_dir());
        let (go, start) = tokio::sync::oneshot::channel();
        go.send(()).unwrap();
        let run = RunContext {
            transcript: &skillbox::execution::Transcript::default(),
            artifacts: &mut artifacts,
            blobs: &mut blobs,
            cancel: CancellationToken::new(),
            start,
        };
        let report = self.sandbox.run(&choice, job, run).await.unwrap();
        println!(
            "{choice:?} ran {:?}, {} MiB at most",
            report.run_time,
            report.usage.memory_peak_bytes >> 20
        );
        report
    }

    pub(crate) async fn close(self) {
        self.sandbox.drain().await;
    }
}

pub(crate) fn job(program: &str, deps: Option<Dependencies>) -> Job {
    let image = world::images().python;
    let env = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/workspace"),
        ("LANG", "C.UTF-8"),
        ("TMPDIR", "/tmp"),
        ("PYTHONPATH", "/sandbox/runtime:/sandbox/deps"),
        ("SANDBOX_OUTPUT", "/sandbox/out/output.json"),
    ];
    Job {
        sandbox: SandboxSpec {
            tenant: "acme".parse().unwrap(),
            image: ImageAllowlist::new([image.clone()]).approve(&image).unwrap(),
            image_of: ImageOf::Language,
            skill: None,
            mounted: Vec::new(),
            deps: deps.into_iter().collect(),
            limits: ResourceLimits::clamp(
                &Resources::default(),
                None,
                Some(Duration::from_secs(120)),
                &Maxima::default(),
            ),
        },
        program: ProgramRun {
            execution: ExecutionId::generate(),
            argv: ["python3", "-c", program].map(ToOwned::to_owned).to_vec(),
            env: env
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .to_vec()
                .into(),
            mask: Default::default(),
            input: json("{}"),
            code: None,
            stdin: None,
            files: Vec::new(),
            blobs: Vec::new(),
            collect: Collect::Out,
        },
        kind: JobKind::Run,
        recurs: false,
        urgency: Urgency::default(),
    }
}

/// A folder of packages as a sandbox takes it.
pub(crate) fn dependencies(folder: &Path) -> Dependencies {
    Dependencies {
        packages: PackageKind::Python,
        digest: skillbox::bundle::list(folder).unwrap().digest(),
        folder: folder.to_owned(),
    }
}

#[tokio::test]
async fn well_known_packages_work_in_a_container() {
    well_known_packages_work(Backend::Docker).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn well_known_packages_work_in_a_native_sandbox() {
    well_known_packages_work(Backend::Native).await;
}

async fn well_known_packages_work(backend: Backend) {
    let Some(bare) = Bare::on(backend).await else {
        return;
    };
    let interpreter = bare.python(include_str!("probes/interpreter.py"), None).await;
    let Some(folder) = installed(&interpreter) else {
        return;
    };
    let deps = dependencies(&folder);
    let seen = bare.python(include_str!("probes/packages.py"), Some(deps)).await;
    println!("{seen:#}");
    let parts = seen.as_object().unwrap();
    assert_eq!(parts.len(), 5, "{seen:#}");
    assert!(parts.values().all(|verdict| verdict == "ok"), "{seen:#}");
    bare.close().await;
}

/// The packages for this interpreter, installed by the script beside the tests.
pub(crate) fn installed(interpreter: &serde_json::Value) -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python-packages.sh");
    let told = ["version", "machine"].map(|key| interpreter[key].as_str().unwrap());
    let done = Command::new(script).args(told).output().unwrap();
    if !done.status.success() {
        missing("packages", String::from_utf8_lossy(&done.stderr).trim());
        return None;
    }
    Some(PathBuf::from(String::from_utf8(done.stdout).unwrap().trim()))
}
