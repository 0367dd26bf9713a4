//! What benches have in common: rows of samples, bars between them, and a server of this very build.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::server::Server;

/// One thing that is measured.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) milliseconds: Vec<f64>,
}

impl Row {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            milliseconds: Vec::new(),
        }
    }

    /// The value below which this part of the samples lies.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.milliseconds.clone();
        sorted.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index into some dozens of samples"
        )]
        let at = ((sorted.len() - 1) as f64 * part).round() as usize;
        sorted[at]
    }

    pub(crate) fn print(&self) {
        let [min, p10, p50, p90] = [0.0, 0.1, 0.5, 0.9].map(|part| self.quantile(part));
        println!(
            "{:<44} min {min:7.2}  p10 {p10:7.2}  median {p50:7.2}  p90 {p90:7.2} ms",
            self.name
        );
    }
}

/// One ratio of medians that must not be exceeded.
pub(crate) struct Bar<'a> {
    pub(crate) ours: &'a Row,
    pub(crate) theirs: &'a Row,
    pub(crate) most: f64,
}

impl Bar<'_> {
    pub(crate) fn is_kept(&self) -> bool {
        let ratio = |part| self.ours.quantile(part) / self.theirs.quantile(part);
        let kept = ratio(0.5) <= self.most;
        println!(
            "{} / {}: {:.2} (p10 {:.2}), bar {}: {}",
            self.ours.name,
            self.theirs.name,
            ratio(0.5),
            ratio(0.1),
            self.most,
            if kept { "kept" } else { "MISSED" }
        );
        kept
    }
}

/// A server of this very build, and a client that keeps its connection.
pub(crate) struct Served {
    pub(crate) server: Server,
    pub(crate) agent: ureq::Agent,
    pub(crate) key: String,
    pub(crate) _folder: tempfile::TempDir,
}

impl Served {
    /// One on the native sandbox, with this setting, that has these skills.
    pub(crate) fn start(pool_slots: &str, archives: Vec<std::fs::File>) -> Self {
        Self::start_with(
            &[
                ("SKILLBOX_SANDBOX_BACKEND", "native"),
                ("SKILLBOX_POOL_SLOTS", pool_slots),
            ],
            archives,
        )
    }

    /// One with these settings.
    pub(crate) fn start_with(env: &[(&str, &str)], archives: Vec<std::fs::File>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start_with(&folder.path().join("data"), env);
        for archive in archives {
            server.publish(archive);
        }
        Self {
            key: server.key(),
            server,
            agent: ureq::Agent::new_with_defaults(),
            _folder: folder,
        }
    }

    /// Runs the skill once: the milliseconds of the whole request, and whether a sandbox had waited.
    pub(crate) fn once(&self, skill: &str) -> (f64, bool) {
        self.once_by(&self.agent, skill)
    }

    /// The same by a client of one's own.
    pub(crate) fn once_by(&self, agent: &ureq::Agent, skill: &str) -> (f64, bool) {
        let body = format!("{{\"skill\": \"{skill}\", \"input\": {{\"x\": 1}}}}");
        let started = Instant::now();
        let mut response = agent
            .post(format!("{}/v1/executions", self.server.url))
            .header("authorization", format!("Bearer {}", self.key))
            .header("content-type", "application/json")
            .send(body.as_bytes())
            .unwrap();
        let text = response.body_mut().read_to_string().unwrap();
        let total = milliseconds(started);
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["status"], "success", "{text}");
        (total, answer["timings"]["warm"] == true)
    }
}

/// Runs a command with no more than this in its environment; how long it took, in milliseconds.
pub(crate) fn timed(command: &mut Command, env: &[(&str, &Path)]) -> f64 {
    let bare = command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .envs(env.iter().copied());
    timed_as_it_is(bare.stdin(Stdio::null()))
}

/// The same in the environment that it has.
pub(crate) fn timed_as_it_is(command: &mut Command) -> f64 {
    let started = Instant::now();
    let output = command.output().unwrap();
    let total = milliseconds(started);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    total
}

pub(crate) fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
