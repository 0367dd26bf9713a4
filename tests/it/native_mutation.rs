//! Removes the steps of a native sandbox's plan, one after the other, from real sandboxes: each must be missed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use skillbox::bundle::artifacts::ArtifactTar;
use skillbox::execution::{Maxima, ResourceLimits};
use skillbox::ids::{Digest, ExecutionId};
use skillbox::sandbox::linux::{self, Native};
use skillbox::sandbox::{
    BackendChoice, BackendKind, Collect, Completion, ImageOf, Job, JobKind, ProgramOutput, ProgramRun,
    RunContext, Sandbox, SandboxSpec, SkillFiles, Urgency,
};
use skillbox::skill::{ImageAllowlist, Resources, SkillName};

use crate::world::{instance_in, missing, native_settings};

const PROBE: &str = include_str!("probes/posture.py");
/// Set in the mount namespace that the test makes for itself.
const INSIDE: &str = "SKILLBOX_TEST_IN_SHARED_MOUNTS";

/// Steps that no program inside can miss, because something else does the same.
const SECOND_LAYERS: &[(&str, &str)] = &[
    (
        "landlock",
        "mounts are read-only already: without both it is missed, as shown below",
    ),
    (
        "die_with_server",
        "set at birth already; kept here should an exec or a change of user undo that (F-01 kills servers)",
    ),
    (
        "hide_first_process",
        "the guest does it again before anything else",
    ),
];

/// The plan's steps and a way to leave some out.
struct Laboratory {
    sandbox: Sandbox,
    job: Job,
    steps: Vec<Value>,
    _folder: tempfile::TempDir,
    _instance: skillbox::store::Instance,
}

/// What a sandbox without some steps is like: how its program ended and what it found, or that there was none.
#[derive(Debug)]
enum Verdict {
    Ran(Completion, ProgramOutput),
    NeverCameUp(skillbox::sandbox::Error),
}

impl Laboratory {
    fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let instance = instance_in(folder.path());
        let settings = linux::Settings {
            // Each is made as the plan then says.
            waiting_max: 0,
            ..native_settings()
        };
        let sandbox = Sandbox::native(settings, instance.id());
        let skill = folder.path().join("probe");
        std::fs::create_dir(&skill).unwrap();
        std::fs::write(skill.join("probe.py"), PROBE).unwrap();
        let job = job(&skill);
        let steps = linux::steps(&"probe".parse::<SkillName>().unwrap(), &job.sandbox.limits);
        Self {
            sandbox,
            job,
            steps,
            _folder: folder,
            _instance: instance,
        }
    }

    fn native(&self) -> &Native {
        match &self.sandbox {
            Sandbox::Native(native) => native,
            _ => unreachable!("it was made so"),
        }
    }

    /// The places of steps of this kind.
    fn places(&self, kind: &str) -> BTreeSet<usize> {
        let all = self.steps.iter().enumerate();
        all.filter(|(_, step)| step["do"] == kind)
            .map(|(place, _)| place)
            .collect()
    }

    async fn without(&self, places: BTreeSet<usize>) -> Verdict {
        self.native().remove_steps(places).await.unwrap();
        let mut artifacts = ArtifactTar::create_in(&std::env::temp_dir());
        let mut blobs = ArtifactTar::create_in(&std::env::temp_dir());
        let (go, start) = tokio::sync::oneshot::channel();
        go.send(()).unwrap();
        let run = RunContext {
            transcript: &skillbox::execution::Transcript::default(),
            artifacts: &mut artifacts,
            blobs: &mut blobs,
            cancel: tokio_util::sync::CancellationToken::new(),
            start,
        };
        let choice = BackendChoice {
            kind: BackendKind::Native,
            reason: String::new(),
            degraded: &[],
        };
        match self.sandbox.run(&choice, &self.job, run).await {
            Ok(report) => Verdict::Ran(report.end, report.output),
            Err(error) => Verdict::NeverCameUp(error),
        }
    }

    /// Whether a program could not tell: a step about something that this kernel does not have does nothing.
    fn is_about_nothing(&self, place: usize) -> bool {
        let step = &self.steps[place];
        let kind = step["do"].as_str().unwrap();
        let path = step["path"].as_str().unwrap_or_default();
        matches!(kind, "mask" | "freeze") && !Path::new(path).exists()
    }
}

fn job(skill: &Path) -> Job {
    let image = ImageAllowlist::new(["host".to_owned()]).approve("host").unwrap();
    Job {
        sandbox: SandboxSpec {
            tenant: "acme".parse().unwrap(),
            image,
            image_of: ImageOf::Language,
            skill: Some(SkillFiles {
                name: "probe".parse().unwrap(),
                digest: Digest::of(PROBE.as_bytes()),
                folder: skill.to_owned(),
            }),
            mounted: Vec::new(),
            deps: Vec::new(),
            limits: ResourceLimits::clamp(&Resources::default(), None, None, &Maxima::default()),
        },
        program: ProgramRun {
            execution: ExecutionId::generate(),
            argv: ["/usr/bin/python3", "-I", "-S", "/skills/probe/probe.py"]
                .map(ToOwned::to_owned)
                .to_vec(),
            env: Default::default(),
            mask: Default::default(),
            input: crate::world::json("{}"),
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

/// S-37: without any single step, a program inside finds a difference, or no sandbox starts.
///
/// The host's mounts may be shared with nobody, and then one of the steps has nothing to cut: the test makes a mount
/// namespace of its own in which they are shared.
#[test]
fn removing_any_plan_step_fails_a_test() {
    if !rustix::process::geteuid().is_root() {
        return missing("linux", "only root can share its mounts");
    }
    if std::env::var_os(INSIDE).is_none() {
        let command = Command::new("unshare")
            .args(["--mount", "--propagation", "shared"])
            .arg(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "native_mutation::removing_any_plan_step_fails_a_test",
                "--nocapture",
            ])
            .env(INSIDE, "yes")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&command.stdout).into_owned();
        let errors = String::from_utf8_lossy(&command.stderr).into_owned();
        assert!(
            command.status.success() && said.contains("1 passed"),
            "{said}\n{errors}"
        );
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let laboratory = Laboratory::open();
        if let Err(error) = laboratory.native().try_host().await {
            return missing("linux", &error.to_string());
        }
        remove_each(&laboratory).await;
        remove_both_layers(&laboratory).await;
    });
}

async fn remove_each(laboratory: &Laboratory) {
    let whole = laboratory.without(BTreeSet::new()).await;
    assert!(
        matches!(whole, Verdict::Ran(Completion::Exited(0), ProgramOutput::Json(_))),
        "{whole:?}"
    );
    let expected: BTreeSet<usize> = SECOND_LAYERS
        .iter()
        .flat_map(|(kind, _)| laboratory.places(kind))
        .chain((0..laboratory.steps.len()).filter(|place| laboratory.is_about_nothing(*place)))
        .collect();
    for (place, step) in laboratory.steps.iter().enumerate() {
        let verdict = laboratory.without([place].into()).await;
        let turned = turned(&whole, &verdict);
        println!("{step} {turned:?}");
        assert_eq!(turned.is_empty(), expected.contains(&place), "{step} {turned:?}");
    }
}

/// What differs between a whole sandbox and another.
fn turned(whole: &Verdict, other: &Verdict) -> Vec<String> {
    let (
        Verdict::Ran(_, ProgramOutput::Json(whole)),
        Verdict::Ran(Completion::Exited(0), ProgramOutput::Json(found)),
    ) = (whole, other)
    else {
        return vec![match other {
            Verdict::Ran(end, _) => format!("{end:?}"),
            Verdict::NeverCameUp(error) => error.to_string(),
        }];
    };
    let [whole, found] = [whole, found].map(|text| serde_json::from_str::<Value>(text.as_str()).unwrap());
    let members = whole.as_object().unwrap().iter();
    let differing = members.filter(|(key, value)| found[key.as_str()] != **value);
    differing
        .map(|(key, value)| format!("{key}: {value} became {}", found[key.as_str()]))
        .collect()
}

/// A second layer alone holds what the first would, and without both nothing does.
async fn remove_both_layers(laboratory: &Laboratory) {
    let written = |verdict: Verdict| match verdict {
        Verdict::Ran(Completion::Exited(0), ProgramOutput::Json(text)) => {
            let found: Value = serde_json::from_str(text.as_str()).unwrap();
            found["written"][""].as_str().unwrap().to_owned()
        }
        other => panic!("{other:?}"),
    };
    let (first, second) = (laboratory.places("freeze_root"), laboratory.places("landlock"));
    let both = &first | &second;
    assert_eq!(written(laboratory.without(second).await), "Read-only file system");
    assert_eq!(written(laboratory.without(first).await), "Permission denied");
    assert_eq!(written(laboratory.without(both).await), "written");
}
