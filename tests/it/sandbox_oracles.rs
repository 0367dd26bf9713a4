//! A world with canaries around it, for hostile programs: when it is closed, nothing may be touched and nothing left.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::models::EventMessage;
use bollard::query_parameters::{EventsOptionsBuilder, ListVolumesOptionsBuilder};
use futures::StreamExt as _;
use skillbox::engine::{Ask, PageRequest, RunRequest, What};
use skillbox::error::Error;
use skillbox::execution::{Execution, Outcome, Status};
use skillbox::skill::Language;
use skillbox::store::ExecutionFilter;
use tokio::sync::watch;

use crate::world::{World, archive, docker_settings, json, output};

/// What every Python probe starts with.
const PRELUDE: &str = include_str!("probes/prelude.py");
/// The engine notices the end of a container late, and removes it off everybody's path.
const REMOVED_WITHIN: Duration = Duration::from_secs(20);

/// One hostile program and what it is given.
pub(crate) struct Attack {
    language: Language,
    program: String,
    front_matter: String,
    pub(crate) ask: Ask,
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
            ask: Ask::default(),
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
pub(crate) struct Watched {
    pub(crate) world: World,
    pub(crate) docker: bollard::Docker,
    /// In every canary, and nowhere else.
    token: String,
    canaries: Vec<Canary>,
    dangling_before: BTreeSet<String>,
    containers: watch::Receiver<Containers>,
}

/// The containers of one world: all that were made or started, whose processes have ended, and those that have gone.
#[derive(Clone, Debug, Default)]
struct Containers {
    made: BTreeSet<String>,
    started: BTreeSet<String>,
    dead: BTreeSet<String>,
    gone: BTreeSet<String>,
}

impl Watched {
    /// A watched world, or `None` where there is no engine.
    pub(crate) async fn docker() -> Option<Self> {
        let world = World::docker().await?;
        let docker = connect().await;
        let containers = listen(&docker, &world.engine.instance().to_string());
        let neighbour = world.folder.path().join("other-tenant");
        fs::create_dir(&neighbour).unwrap();
        let project = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let token = uuid::Uuid::now_v7().simple().to_string();
        let canaries = [neighbour, std::env::temp_dir(), project]
            .iter()
            .map(|folder| Canary::plant(folder, &token))
            .collect();
        let dangling_before = dangling_volumes(&docker).await;
        Some(Self {
            world,
            docker,
            token,
            canaries,
            dangling_before,
            containers,
        })
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
        let what = What::Archive {
            archive,
            fallback_name: None,
        };
        self.world
            .engine
            .run(
                &self.world.admin,
                RunRequest {
                    what,
                    ask: attack.ask,
                    progress: None,
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
        let any = |containers: &Containers| !containers.started.is_empty();
        let containers = self.until("nothing was started", any).await;
        containers.started.iter().next().unwrap().clone()
    }

    /// Waits until no process of any started container is left.
    pub(crate) async fn all_dead(&self) {
        let all = |containers: &Containers| containers.started == containers.dead;
        self.until("a process is left", all).await;
    }

    async fn until(&self, or_else: &str, holds: impl FnMut(&Containers) -> bool) -> Containers {
        let mut containers = self.containers.clone();
        let held = tokio::time::timeout(REMOVED_WITHIN, containers.wait_for(holds)).await;
        held.expect(or_else).unwrap().clone()
    }

    /// Whether no container was made up to now. Only certain after a later one was.
    pub(crate) fn has_made(&self) -> usize {
        self.containers.borrow().made.len()
    }

    /// O-a, O-b, O-d: nothing was touched, nothing is left, no execution is without an end.
    pub(crate) async fn close(self) {
        self.world.engine.sandbox().settle().await;
        let all_gone = |containers: &Containers| containers.made == containers.gone;
        let containers = self.until("a container is left", all_gone).await;
        for id in &containers.made {
            assert_no_trace_on_this_host(id);
        }
        self.assert_no_volume_left().await;
        for canary in &self.canaries {
            canary.assert_untouched();
        }
        assert_not_stored(&self.token, self.world.folder.path());
        for name in ["tmp", "cache"] {
            let left = names_in(&self.world.folder.path().join(name));
            assert!(left.is_empty(), "left in {name}: {left:?}");
        }
        let filter = ExecutionFilter {
            status: Some(Status::Running),
            ..ExecutionFilter::default()
        };
        let page = PageRequest {
            after: None,
            rows: 10,
        };
        let running = self
            .world
            .engine
            .executions(&self.world.admin, filter, page)
            .await
            .unwrap();
        assert!(
            running.items.is_empty(),
            "still recorded as running: {:?}",
            running.items
        );
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
            "die" => self.dead.insert(id),
            "destroy" => self.gone.insert(id),
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

/// Where the engine is on this host: no cgroup and no mount of a container that has gone.
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

/// A file of this host that no sandbox may read or change.
struct Canary {
    path: PathBuf,
    content: String,
    planted: Metadata,
}

impl Canary {
    fn plant(folder: &Path, token: &str) -> Self {
        let path = folder.join(format!("canary-{}", uuid::Uuid::now_v7()));
        let content = format!("{token} of {}", path.display());
        fs::write(&path, &content).unwrap();
        let planted = fs::metadata(&path).unwrap();
        Self {
            path,
            content,
            planted,
        }
    }

    fn assert_untouched(&self) {
        assert_eq!(fs::read_to_string(&self.path).unwrap(), self.content);
        let now = fs::metadata(&self.path).unwrap();
        let stamp = |m: &Metadata| {
            (
                m.mode(),
                m.uid(),
                m.gid(),
                m.mtime(),
                m.mtime_nsec(),
                m.ino(),
                m.nlink(),
            )
        };
        let path = self.path.display();
        assert_eq!(stamp(&now), stamp(&self.planted), "{path} was changed");
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Paths may be repeated by a program that was given them; the token is known to nobody.
fn assert_untold(token: &str, outcome: &Outcome) {
    let output = outcome.output.as_ref().map_or("", |output| output.as_str());
    let error = outcome.error.as_ref().map_or("", |error| &error.message);
    let logs = &outcome.logs;
    for text in [output.as_bytes(), error.as_bytes(), &logs.stdout, &logs.stderr] {
        assert!(!contains(text, token), "the token of a canary came out");
    }
}

fn assert_not_stored(token: &str, folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        let is_canary = entry.file_name().to_string_lossy().starts_with("canary-");
        if kind.is_dir() {
            assert_not_stored(token, &entry.path());
        } else if kind.is_file() && !is_canary {
            let found = contains(&fs::read(entry.path()).unwrap(), token);
            assert!(!found, "{} holds the token of a canary", entry.path().display());
        }
    }
}

fn contains(text: &[u8], token: &str) -> bool {
    String::from_utf8_lossy(text).contains(token)
}
