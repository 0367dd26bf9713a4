//! A world with canaries around it, for hostile programs: when it is closed, nothing may be touched and nothing left.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bollard::models::EventMessage;
use bollard::query_parameters::{EventsOptionsBuilder, ListVolumesOptionsBuilder};
use futures::StreamExt as _;
use skillbox::engine::{PageRequest, RunRequest, RunSpec};
use skillbox::error::Error;
use skillbox::execution::{Execution, Outcome, Status};
use skillbox::skill::Language;
use skillbox::store::ExecutionFilter;
use tokio::sync::watch;

use crate::canaries::{Canary, assert_not_stored, assert_untold};
use crate::outcomes::output;
use crate::world::{Backend, World, archive, docker_settings, json, unpublished};

/// What every Python probe starts with.
const PRELUDE: &str = include_str!("../../src/prove/probes/prelude.py");
/// The engine notices the end of a container late, and removes it off everybody's path.
const REMOVED_WITHIN: Duration = Duration::from_secs(60);

/// One hostile program and what it is given.
pub(crate) struct Attack {
    language: Language,
    program: String,
    front_matter: String,
    pub(crate) ask: RunSpec,
}

impl Attack {
    /// A Python program that finds the prelude's names.
    pub(crate) fn python(probe: &str) -> Self {
        Self::plain(Language::Python, &format!("{PRELUDE}\n{probe}"))
    }

    /// A program as it is.
    pub(crate) fn plain(language: Language, program: &str) -> Self {
        Self {
            language,
            program: program.to_owned(),
            front_matter: String::new(),
            ask: RunSpec::default(),
        }
    }

    /// Adds lines to the skill's front matter.
    pub(crate) fn front_matter(mut self, lines: &str) -> Self {
        self.front_matter.push_str(lines);
        self
    }

    pub(crate) fn input(mut self, text: &str) -> Self {
        self.ask.input = Some(json(text));
        self
    }

    pub(crate) fn seconds(mut self, seconds: f64) -> Self {
        self.ask.timeout = Some(Duration::from_secs_f64(seconds));
        self
    }
}

/// A world whose engine is listened to and whose surroundings are watched.
pub(crate) struct ObservedWorld {
    pub(crate) world: World,
    /// In every canary, and nowhere else.
    token: String,
    canaries: Vec<Canary>,
    /// `None` on the native backend, whose traces are found in the kernel.
    engine: Option<ObservedEngine>,
}

/// An engine, and what was heard of it.
struct ObservedEngine {
    docker: bollard::Docker,
    dangling_before: BTreeSet<String>,
    containers: watch::Receiver<Containers>,
}

/// The containers of one world that were made or started.
#[derive(Clone, Debug, Default)]
struct Containers {
    made: BTreeSet<String>,
    started: BTreeSet<String>,
}

impl ObservedWorld {
    /// A watched world, or `None` where this machine has no such backend.
    pub(crate) async fn on(backend: Backend) -> Option<Self> {
        let world = World::on(backend).await?;
        let engine = match backend {
            Backend::Docker => Some(ObservedEngine::to(&world).await),
            Backend::Native => None,
        };
        let neighbour = world.folder.path().join("other-tenant");
        fs::create_dir(&neighbour).unwrap();
        let project = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let token = uuid::Uuid::now_v7().simple().to_string();
        // An ordinary user cannot write into the project.
        let writable = |folder: &&PathBuf| rustix::fs::access(*folder, rustix::fs::Access::WRITE_OK).is_ok();
        let canaries = [neighbour, std::env::temp_dir(), project]
            .iter()
            .filter(writable)
            .map(|folder| Canary::plant(folder, &token))
            .collect();
        Some(Self {
            world,
            token,
            canaries,
            engine,
        })
    }

    /// The container engine that is listened to.
    pub(crate) fn engine(&self) -> &bollard::Docker {
        &self.listened().docker
    }

    fn listened(&self) -> &ObservedEngine {
        self.engine.as_ref().expect("this backend has no engine")
    }

    /// Where the canaries are: for programs that try to reach them.
    pub(crate) fn canary_paths(&self) -> Vec<String> {
        self.canaries
            .iter()
            .map(|canary| canary.path.display().to_string())
            .collect()
    }

    pub(crate) async fn try_execution(&self, attack: Attack) -> Result<Execution, Error> {
        let archive = archive(attack.language, &attack.front_matter, &attack.program);
        let archive = unpublished(archive);
        self.world
            .runs()
            .run(
                self.world.tenant(),
                RunRequest {
                    archive,
                    ..RunRequest::from(attack.ask)
                },
            )
            .await
    }

    pub(crate) async fn execution(&self, attack: Attack) -> Execution {
        self.try_execution(attack).await.unwrap()
    }

    /// Runs a program and returns how it ended.
    pub(crate) async fn run(&self, attack: Attack) -> Outcome {
        let outcome = self.execution(attack).await.outcome.unwrap();
        assert_untold(&self.token, &outcome);
        outcome
    }

    /// Runs a probe, which must succeed, and returns what it recorded.
    pub(crate) async fn verdicts(&self, attack: Attack) -> serde_json::Value {
        let outcome = self.run(attack).await;
        let found = output(&outcome);
        assert_eq!(outcome.status, Status::Success, "{:?} {found:#}", outcome.error);
        found
    }

    /// The container of the only program that was started, as soon as it is.
    pub(crate) async fn started(&self) -> String {
        let mut containers = self.listened().containers.clone();
        let any = containers.wait_for(|containers| !containers.started.is_empty());
        let heard = tokio::time::timeout(REMOVED_WITHIN, any).await;
        let heard = heard.expect("nothing was started").unwrap();
        heard.started.iter().next().unwrap().clone()
    }

    /// Stops the sandbox whose program sleeps for `duration`, from outside; returns how long it lived since that slept.
    pub(crate) async fn freeze(&self, duration: &str) -> Duration {
        let mut pace = tokio::time::interval(Duration::from_millis(10));
        // Else a look at many processes, which takes longer, would never let the run continue.
        pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let began = Instant::now();
        let family = loop {
            assert!(began.elapsed() < REMOVED_WITHIN, "it was never seen");
            match sleeping(duration) {
                Some(family) => break family,
                None => pace.tick().await,
            };
        };
        let seen = Instant::now();
        // Its first process may be about to say that the program has started.
        tokio::time::sleep(Duration::from_millis(500)).await;
        match &self.engine {
            Some(engine) => {
                engine
                    .docker
                    .pause_container(&self.started().await)
                    .await
                    .unwrap();
            }
            None => family
                .iter()
                .for_each(|pid| rustix::process::kill_process(*pid, rustix::process::Signal::STOP).unwrap()),
        }
        while family
            .iter()
            .any(|pid| rustix::process::test_kill_process(*pid).is_ok())
        {
            assert!(seen.elapsed() < REMOVED_WITHIN, "a process is left");
            pace.tick().await;
        }
        seen.elapsed()
    }

    /// How many sandboxes were made up to now. Only certain after a later one was.
    pub(crate) async fn has_made(&self) -> usize {
        match &self.engine {
            Some(engine) => engine.containers.borrow().made.len(),
            // Each that was made for a program is recorded; nothing else is known of them from outside.
            None => {
                let page = PageRequest {
                    after: None,
                    rows: 10,
                };
                let (engine, filter) = (&self.world.engine, ExecutionFilter::default());
                let listed = engine.executions().list(self.world.tenant(), filter, page).await;
                listed.unwrap().items.len()
            }
        }
    }

    /// O-a, O-b, O-d: nothing was touched, nothing is left, no execution is without an end.
    pub(crate) async fn close(self) {
        self.world.engine.sandbox().drain().await;
        match &self.engine {
            Some(engine) => engine.assert_nothing_left().await,
            None => self.assert_no_cgroup_and_no_mount_left(),
        }
        for canary in &self.canaries {
            canary.assert_untouched();
        }
        assert_not_stored(&self.token, self.world.folder.path());
        for name in ["tmp", "cache"] {
            let left = names_in(&self.world.folder.path().join(name));
            assert!(left.is_empty(), "left in {name}: {left:?}");
        }
        let filter = ExecutionFilter {
            statuses: Some(Status::Running).into(),
            ..ExecutionFilter::default()
        };
        let page = PageRequest {
            after: None,
            rows: 10,
        };
        let running = self
            .world
            .executions()
            .list(self.world.tenant(), filter, page)
            .await
            .unwrap();
        assert!(
            running.items.is_empty(),
            "still recorded as running: {:?}",
            running.items
        );
    }

    /// A cgroup can be removed only when it is empty.
    fn assert_no_cgroup_and_no_mount_left(&self) {
        let home = format!("skillbox-{}", self.world.engine.instance());
        for hierarchy in ["", "memory", "pids", "cpu", "cpuacct"] {
            let home = Path::new("/sys/fs/cgroup")
                .join(hierarchy)
                .join("skillbox")
                .join(&home);
            let Ok(entries) = fs::read_dir(&home) else {
                continue;
            };
            let cells = entries
                .map(Result::unwrap)
                .filter(|entry| entry.file_type().unwrap().is_dir());
            assert_eq!(cells.count(), 0, "left in {}", home.display());
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let folder = self.world.folder.path().display().to_string();
        assert!(!mounts.contains(&folder), "a mount of {folder} is left");
    }
}

/// The process that sleeps so long and those it descends from, up to the first of its sandbox.
fn sleeping(duration: &str) -> Option<Vec<rustix::process::Pid>> {
    let of = |pid: &str, file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
    let mut pid = names_in(Path::new("/proc"))
        .into_iter()
        .find(|pid| of(pid, "cmdline").is_some_and(|line| line == format!("sleep\0{duration}\0")))?;
    let mut family = Vec::new();
    loop {
        let status = of(&pid, "status")?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        family.push(rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap());
        if field("NSpid:").split_whitespace().next_back() == Some("1") {
            return Some(family);
        }
        field("PPid:").trim().clone_into(&mut pid);
    }
}

impl ObservedEngine {
    async fn to(world: &World) -> Self {
        let docker = connect().await;
        let containers = listen(&docker, &world.engine.instance().to_string());
        let dangling_before = dangling_volumes(&docker).await;
        Self {
            docker,
            dangling_before,
            containers,
        }
    }

    async fn knows(&self, id: &str) -> bool {
        use bollard::errors::Error::DockerResponseServerError as Refused;
        match self.docker.inspect_container(id, None).await {
            Err(Refused { status_code: 404, .. }) => false,
            found => found.is_ok() || panic!("{found:?}"),
        }
    }

    /// Asks for each: a busy engine may leave out an event.
    async fn assert_nothing_left(&self) {
        let made = self.containers.borrow().made.clone();
        let asked = Instant::now();
        for id in made {
            while self.knows(&id).await {
                assert!(asked.elapsed() < REMOVED_WITHIN, "container {id} is left");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert_no_trace_on_this_host(&id);
        }
        self.assert_no_volume_left().await;
    }

    /// A volume that no container holds belongs to nobody. Other tests' come and go, so only what stays counts.
    async fn assert_no_volume_left(&self) {
        let mut left = dangling_volumes(&self.docker).await;
        let mut pace = tokio::time::interval(Duration::from_millis(200));
        for _ in 0..20 {
            left.retain(|name| !self.dangling_before.contains(name));
            if left.is_empty() {
                return;
            }
            pace.tick().await;
            let now = dangling_volumes(&self.docker).await;
            left.retain(|name| now.contains(name));
        }
        panic!("volumes are left: {left:?}");
    }
}

/// A connection of the test's own to the engine of this machine.
pub(crate) async fn connect() -> bollard::Docker {
    let docker = match docker_settings().host {
        Some(host) => bollard::Docker::connect_with_host(&host),
        None => bollard::Docker::connect_with_defaults(),
    };
    docker.unwrap().negotiate_version().await.unwrap()
}

/// Listens to what becomes of the containers of one instance, from now on.
fn listen(docker: &bollard::Docker, instance: &str) -> watch::Receiver<Containers> {
    let label = format!("dev.skillbox.instance={instance}");
    let wanted = HashMap::from([("type", vec!["container"]), ("label", vec![label.as_str()])]);
    // The request goes out later than the first container may be made.
    let since = jiff::Timestamp::now().as_second().to_string();
    let options = EventsOptionsBuilder::default()
        .since(&since)
        .filters(&wanted)
        .build();
    let docker = docker.clone().with_timeout(Duration::from_secs(3600));
    let (sender, receiver) = watch::channel(Containers::default());
    tokio::spawn(async move {
        let mut events = Box::pin(docker.events(Some(options)));
        while let Some(Ok(event)) = events.next().await {
            sender.send_modify(|containers| containers.take(event));
        }
    });
    receiver
}

impl Containers {
    fn take(&mut self, event: EventMessage) {
        let (Some(action), Some(id)) = (event.action, event.actor.and_then(|actor| actor.id)) else {
            return;
        };
        match action.as_str() {
            "create" => self.made.insert(id),
            "start" => self.started.insert(id),
            _ => false,
        };
    }
}

async fn dangling_volumes(docker: &bollard::Docker) -> BTreeSet<String> {
    let options = ListVolumesOptionsBuilder::default()
        .filters(&HashMap::from([("dangling", vec!["true"])]))
        .build();
    let listed = docker.list_volumes(Some(options)).await.unwrap();
    listed
        .volumes
        .unwrap_or_default()
        .into_iter()
        .map(|volume| volume.name)
        .collect()
}

/// Where the engine is on this host: no cgroup and no mount of a removed container.
fn assert_no_trace_on_this_host(id: &str) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    assert!(!mounts.contains(id), "a mount of {id} is left");
    let groups = ["", "memory", "pids", "cpu", "unified"];
    for group in groups.map(|group| Path::new("/sys/fs/cgroup").join(group).join("docker").join(id)) {
        assert!(!group.exists(), "{} is left", group.display());
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}
