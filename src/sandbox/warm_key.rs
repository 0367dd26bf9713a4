//! Identifies interchangeable warm sandboxes.

use sha2::{Digest as _, Sha256};

use crate::execution::ResourceLimits;
use crate::ids::Digest;
use crate::limits;
use crate::sandbox::job::FOLLOWED;
use crate::sandbox::{Dependencies, Environment, Job, JobKind, SandboxSpec, SkillFiles};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct WarmKey {
    digest: Digest,
    /// Number of arguments of the pre-started interpreter; 0 without interpreter.
    arguments: usize,
    /// Memory of such a warm sandbox.
    pub(super) bytes: u64,
}

impl WarmKey {
    /// `None` for jobs that run once.
    pub(super) fn of(job: &Job) -> Option<Self> {
        let JobKind::Run = job.kind else { return None };
        if !job.recurs {
            return None;
        }
        let (arguments, bytes) = pre_started(&job.program.argv);
        let mut fields = Fields(Sha256::new());
        fields.add_spec(&job.sandbox);
        let argv = &job.program.argv[..arguments];
        fields.add_count(argv.len());
        argv.iter().for_each(|argument| fields.add(argument.as_bytes()));
        for (name, value) in start_up(arguments, &job.program.env) {
            fields.add(name.as_bytes());
            fields.add(value.as_bytes());
        }
        Some(Self {
            digest: Digest::from_bytes(fields.0.finalize().into()),
            arguments,
            bytes,
        })
    }

    #[cfg(test)]
    pub(super) fn named(name: &str, bytes: u64) -> Self {
        Self {
            digest: Digest::of(name.as_bytes()),
            arguments: 0,
            bytes,
        }
    }

    /// Arguments of the pre-started interpreter; empty without interpreter.
    pub(super) fn argv(&self, job: &Job) -> Vec<String> {
        job.program.argv[..self.arguments].to_vec()
    }

    /// Variables of the pre-started interpreter.
    pub(super) fn env(&self, job: &Job) -> Vec<(String, String)> {
        start_up(self.arguments, &job.program.env)
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}

/// The number of arguments that an interpreter can be pre-started with, and its memory: `python3 FILE …`, `python3 -m
/// MODULE …` and `node FILE …`.
fn pre_started(argv: &[String]) -> (usize, u64) {
    let [interpreter, file, ..] = argv else {
        return (0, limits::WARM_SANDBOX_BYTES);
    };
    match (interpreter.as_str(), file.as_str()) {
        ("python3", "-m") if argv.len() > 2 => (3, limits::WARM_PYTHON_BYTES),
        ("python3", file) if !file.starts_with('-') => (2, limits::WARM_PYTHON_BYTES),
        ("node", file) if !file.starts_with('-') => (2, limits::WARM_NODE_BYTES),
        _ => (0, limits::WARM_SANDBOX_BYTES),
    }
}

/// Variables that interpreters, their loader and their libraries read at start-up.
///
/// No secret can have one of these names: it would be in a sandbox that waits.
const START_UP_VARIABLES: [&str; 7] = [
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "TMPDIR",
    "TZ",
    "UV_THREADPOOL_SIZE",
];
const START_UP_PREFIXES: [&str; 6] = ["PYTHON", "NODE_", "LC_", "LD_", "MALLOC_", "GLIBC_"];

fn start_up(arguments: usize, env: &Environment) -> impl Iterator<Item = (&str, &str)> {
    let is_read = |name: &str| {
        START_UP_VARIABLES.contains(&name) || START_UP_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    let variables = env.variables().iter();
    // One interpreter waits for runs that a client follows and for those that none follows.
    variables
        .filter(move |(name, _)| arguments > 0 && is_read(name))
        .map(|(name, value)| (name.as_str(), value.strip_prefix(FOLLOWED).unwrap_or(value)))
}

/// Hashes each field with its length, so that adjacent fields cannot be confused.
struct Fields(Sha256);

impl Fields {
    fn add(&mut self, bytes: &[u8]) {
        self.add_count(bytes.len());
        self.0.update(bytes);
    }

    fn add_count(&mut self, count: usize) {
        self.0.update((count as u64).to_le_bytes());
    }

    /// Destructures every field: a new one does not compile until it is hashed or discarded.
    fn add_spec(&mut self, spec: &SandboxSpec) {
        let SandboxSpec {
            tenant,
            image,
            // The origin of the image, which is hashed itself.
            image_of: _,
            skill,
            mounted,
            deps,
            limits,
        } = spec;
        // A warm start must not reveal what another tenant has run, not even that it has run code.
        self.add(tenant.as_str().as_bytes());
        self.add(image.as_str().as_bytes());
        self.add_skills(skill.as_slice());
        self.add_skills(mounted);
        self.add_count(deps.len());
        for deps in deps {
            let Dependencies {
                packages,
                digest,
                // A path of this host; the digest identifies the content.
                folder: _,
            } = deps;
            self.add(packages.as_str().as_bytes());
            self.add(digest.as_bytes());
        }
        self.add_limits(limits);
    }

    fn add_skills(&mut self, skills: &[SkillFiles]) {
        self.add_count(skills.len());
        for skill in skills {
            let SkillFiles {
                name,
                digest,
                // A path of this host; the digest identifies the content.
                folder: _,
            } = skill;
            self.add(name.as_str().as_bytes());
            self.add(digest.as_bytes());
        }
    }

    fn add_limits(&mut self, limits: &ResourceLimits) {
        let ResourceLimits {
            memory_bytes,
            cpu_millis,
            processes_max,
            // The guest counts wall clock from the program's start.
            timeout: _,
            workspace_bytes,
            sandbox_bytes,
            tmp_bytes,
            root_bytes,
            shm_bytes,
            blobs_bytes,
        } = limits;
        let (cpu, processes) = (u64::from(*cpu_millis), u64::from(*processes_max));
        for bytes in [
            memory_bytes,
            workspace_bytes,
            sandbox_bytes,
            tmp_bytes,
            root_bytes,
            shm_bytes,
            blobs_bytes,
            &cpu,
            &processes,
        ] {
            self.add(&bytes.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use crate::execution::JsonText;
    use crate::ids::ExecutionId;
    use crate::sandbox::{Collect, Egress, ImageOf, PackageKind, Urgency};
    use crate::skill::{ApprovedImage, ImageAllowlist};

    fn approved(image: &str) -> ApprovedImage {
        ImageAllowlist::new([image.to_owned()]).approve(image).unwrap()
    }

    fn skill(name: &str, content: &str) -> SkillFiles {
        SkillFiles {
            name: name.parse().unwrap(),
            digest: Digest::of(content.as_bytes()),
            folder: PathBuf::from("/data/skill"),
        }
    }

    fn packages(packages: PackageKind, content: &str) -> Dependencies {
        Dependencies {
            packages,
            digest: Digest::of(content.as_bytes()),
            folder: PathBuf::from("/data/packages"),
        }
    }

    fn variables(variables: &[(&str, &str)]) -> Environment {
        let owned = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        owned.collect::<Vec<_>>().into()
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(ToOwned::to_owned).collect()
    }

    fn job() -> Job {
        let mut job = Job::sample();
        job.sandbox.image = approved("python:3.12");
        job.sandbox.skill = Some(skill("report", "a"));
        job.sandbox.mounted = vec![skill("tables", "b")];
        job.sandbox.deps = vec![packages(PackageKind::Python, "c")];
        job.program.argv = words("python3 main.py --verbose");
        job.program.env = variables(&[("PATH", "/bin"), ("PYTHONPATH", "/lib"), ("TOKEN", "x")]);
        job.recurs = true;
        job
    }

    fn key_with(change: impl FnOnce(&mut Job)) -> WarmKey {
        let mut job = job();
        change(&mut job);
        WarmKey::of(&job).unwrap()
    }

    #[test]
    fn each_field_that_a_warm_sandbox_is_made_from_changes_its_key() {
        let changes: &[fn(&mut Job)] = &[
            |_| {},
            |job| job.sandbox.tenant = "other".parse().unwrap(),
            |job| job.sandbox.image = approved("python:3.13"),
            |job| job.sandbox.skill = None,
            |job| job.sandbox.skill = Some(skill("reports", "a")),
            |job| job.sandbox.skill = Some(skill("report", "aa")),
            |job| job.sandbox.mounted.clear(),
            |job| job.sandbox.mounted = vec![skill("tables", "bb")],
            |job| job.sandbox.mounted = vec![skill("table", "b")],
            |job| job.sandbox.mounted.push(skill("more", "d")),
            |job| job.sandbox.deps.clear(),
            |job| job.sandbox.deps = vec![packages(PackageKind::Node, "c")],
            |job| job.sandbox.deps = vec![packages(PackageKind::Python, "cc")],
            |job| job.sandbox.deps.push(packages(PackageKind::Node, "c")),
            |job| job.sandbox.limits.memory_bytes += 1,
            |job| job.sandbox.limits.cpu_millis += 1,
            |job| job.sandbox.limits.processes_max += 1,
            |job| job.sandbox.limits.workspace_bytes += 1,
            |job| job.sandbox.limits.sandbox_bytes += 1,
            |job| job.sandbox.limits.tmp_bytes += 1,
            |job| job.sandbox.limits.root_bytes += 1,
            |job| job.sandbox.limits.shm_bytes += 1,
            |job| job.sandbox.limits.blobs_bytes += 1,
            |job| job.program.argv = words("python3 other.py --verbose"),
            |job| job.program.argv = words("python3 -m main.py"),
            |job| job.program.argv = words("bash main.py"),
            |job| {
                job.program.env = variables(&[("PATH", "/usr/bin"), ("PYTHONPATH", "/lib"), ("TOKEN", "x")])
            },
            |job| job.program.env = variables(&[("PATH", "/bin"), ("TOKEN", "x")]),
            |job| job.program.env = variables(&[("PATH", "/bin"), ("PYTHONHOME", "/lib"), ("TOKEN", "x")]),
        ];
        let digests: BTreeSet<_> = changes.iter().map(|change| key_with(change).digest).collect();
        assert_eq!(digests.len(), changes.len());
    }

    #[test]
    fn start_data_and_host_folders_do_not_change_the_key() {
        let changes: &[fn(&mut Job)] = &[
            |job| job.sandbox.image_of = ImageOf::Skill,
            |job| job.sandbox.skill.as_mut().unwrap().folder = PathBuf::from("/elsewhere"),
            |job| job.sandbox.mounted[0].folder = PathBuf::from("/elsewhere"),
            |job| job.sandbox.deps[0].folder = PathBuf::from("/elsewhere"),
            |job| job.sandbox.limits.timeout += Duration::from_secs(1),
            |job| job.program.execution = ExecutionId::generate(),
            |job| job.program.argv = words("python3 main.py --quiet more"),
            |job| job.program.env = variables(&[("PATH", "/bin"), ("PYTHONPATH", "/lib"), ("TOKEN", "y")]),
            |job| job.program.input = JsonText::parse(b"[1]").unwrap(),
            |job| job.program.code = Some("1".to_owned()),
            |job| job.program.stdin = Some("x".into()),
            |job| job.program.collect = Collect::Workspace,
            |job| job.urgency = Urgency::Deferred,
        ];
        for (index, change) in changes.iter().enumerate() {
            assert_eq!(key_with(change), key_with(|_| {}), "change {index}");
        }
    }

    /// Decision 18: a warm start reveals nothing about another tenant.
    #[test]
    fn tenants_share_no_warm_sandbox() {
        let contents: &[fn(&mut Job)] = &[
            |_| {},
            |job| job.sandbox.skill = Some(skill("report", "a")),
            |job| job.sandbox.mounted = vec![skill("tables", "b")],
            |job| job.sandbox.deps = vec![packages(PackageKind::Node, "c")],
        ];
        for (index, add) in contents.iter().enumerate() {
            let key_of = |tenant: &str| {
                key_with(|job| {
                    job.sandbox.tenant = tenant.parse().unwrap();
                    job.sandbox.skill = None;
                    job.sandbox.mounted.clear();
                    job.sandbox.deps.clear();
                    add(job);
                })
            };
            assert_ne!(key_of("acme"), key_of("other"), "content {index}");
        }
    }

    #[test]
    fn adjacent_fields_are_not_confused() {
        let moved: [[fn(&mut Job); 2]; 5] = [
            [
                |job| job.program.argv = words("python3 -m ab c"),
                |job| job.program.argv = words("python3 -m a bc"),
            ],
            [
                |job| job.program.env = variables(&[("LC_A", "BC")]),
                |job| job.program.env = variables(&[("LC_AB", "C")]),
            ],
            [
                |job| job.program.env = variables(&[("LC_A", "LC_B"), ("LC_C", "")]),
                |job| job.program.env = variables(&[("LC_A", ""), ("LC_B", "LC_C")]),
            ],
            // The same skills, run or only mounted.
            [
                |job| job.sandbox.mounted.clear(),
                |job| job.sandbox.mounted = job.sandbox.skill.take().into_iter().collect(),
            ],
            [
                |job| {
                    job.sandbox.tenant = "acme".parse().unwrap();
                    job.sandbox.image = approved("node:24");
                },
                |job| {
                    job.sandbox.tenant = "acmen".parse().unwrap();
                    job.sandbox.image = approved("ode:24");
                },
            ],
        ];
        for (index, [one, other]) in moved.into_iter().enumerate() {
            assert_ne!(key_with(one), key_with(other), "pair {index}");
        }
    }

    #[test]
    fn jobs_that_run_once_have_no_key() {
        let once: [fn(&mut Job); 2] = [
            |job| job.recurs = false,
            |job| {
                job.kind = JobKind::Build {
                    egress: Egress::closed(),
                }
            },
        ];
        for change in once {
            let mut job = job();
            change(&mut job);
            assert_eq!(WarmKey::of(&job), None);
        }
    }

    #[test]
    fn only_an_interpreter_with_a_file_or_a_module_is_pre_started() {
        let commands = [
            "python3 main.py -v",
            "python3 -m pack.age",
            "node main.js",
            "python3 -c 1",
            "python3",
            "python3 -m",
            "bash main.sh",
            "./tool",
        ];
        let arguments = commands.map(|command| pre_started(&words(command)).0);
        assert_eq!(arguments, [2, 3, 2, 0, 0, 0, 0, 0]);
    }
}
