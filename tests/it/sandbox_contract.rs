//! The contract: the probes of `skillbox prove`, all of them, on every backend and as everybody who may run one.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::attempts::print_forgiven;
use crate::cli_shell::{CommandOutput, Shell, command_output, has_docker};
#[cfg(target_os = "linux")]
use crate::ordinary::{AS_DELEGATED, AS_ORDINARY, home_of_ordinary};
use crate::world::missing;

/// What `skillbox prove --format json` says of the one backend it was asked about.
pub(crate) struct Proof {
    said: CommandOutput,
    backend: Value,
}

impl Proof {
    pub(crate) fn of(said: CommandOutput) -> Self {
        let report: Value = serde_json::from_str(&said.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", said.stdout, said.stderr));
        assert_eq!(report["backends"].as_array().unwrap().len(), 1, "{report:#}");
        let late = said.stderr.lines().filter(|line| line.contains("tried again"));
        print_forgiven(&late.map(str::to_owned).collect::<Vec<_>>());
        let backend = report["backends"][0].clone();
        Self { said, backend }
    }

    fn findings(&self, verdict: &str) -> Vec<&Value> {
        let findings = self.backend["findings"].as_array().unwrap();
        findings
            .iter()
            .filter(|finding| finding["verdict"] == verdict)
            .collect()
    }

    /// Nearly all attacks are programs of Python and Node.
    fn assert_waited(self) -> Self {
        assert!(self.backend["waited"].as_u64() >= Some(50), "{:#}", self.backend);
        self
    }

    /// Nothing but `kept`, and where `excused`, those promises `degraded`.
    pub(crate) fn assert_kept_but(&self, excused: &[&str]) {
        let (breach, skipped) = (self.findings("breach"), self.findings("skipped"));
        assert!(breach.is_empty(), "{breach:#?}\n{}", self.said.stderr);
        assert!(skipped.is_empty(), "{skipped:#?}");
        let mut degraded: Vec<_> = self
            .findings("degraded")
            .into_iter()
            .map(|finding| finding["promise"].as_str().unwrap())
            .collect();
        degraded.dedup();
        assert_eq!(degraded, excused);
        assert_eq!(self.backend["degraded"], serde_json::json!(excused));
        assert!(self.findings("kept").len() + self.findings("degraded").len() >= 150);
        let tested = self.backend["promises"].as_array().unwrap();
        assert_eq!(tested.len(), 16, "{tested:#?}");
        assert_eq!(self.said.code, 0, "{}", self.said.stderr);
    }
}

/// Makes `prove` log the probes that it runs again because they took too long.
const LOG_RETRIES: (&str, &str) = ("SKILLBOX_LOG", "skillbox::prove=warn");
pub(crate) const PROVE_DOCKER: [&str; 5] = ["prove", "--backend", "docker", "--format", "json"];
const PROVE_NATIVE: [&str; 5] = ["prove", "--backend", "native", "--format", "json"];

pub(crate) fn prover() -> Shell {
    Shell::new().with(LOG_RETRIES.0, LOG_RETRIES.1)
}

#[test]
fn containers_keep_every_promise() {
    if !has_docker() {
        return;
    }
    let shell = prover().with_engine();
    let said = shell.run(&PROVE_DOCKER);
    Proof::of(said).assert_kept_but(&[]);
    assert!(!shell.data().exists(), "the operator's data folder was touched");
}

#[cfg(target_os = "linux")]
#[test]
fn native_sandboxes_keep_every_promise() {
    let said = prover().run(&PROVE_NATIVE);
    if said.code == 69 {
        return missing("linux", &said.stderr);
    }
    Proof::of(said).assert_kept_but(&[]);
}

/// The same probes, each from a sandbox that has waited for it: a sandbox is never weaker for having been made in advance.
#[test]
fn warm_containers_keep_every_promise() {
    if !has_docker() {
        return;
    }
    let shell = prover().with_engine();
    let said = shell.run(&[&PROVE_DOCKER[..], &["--warm"]].concat());
    Proof::of(said).assert_waited().assert_kept_but(&[]);
}

#[cfg(target_os = "linux")]
#[test]
fn warm_native_sandboxes_keep_every_promise() {
    let said = prover().run(&[&PROVE_NATIVE[..], &["--warm"]].concat());
    if said.code == 69 {
        return missing("linux", &said.stderr);
    }
    Proof::of(said).assert_waited().assert_kept_but(&[]);
}

/// Runs `skillbox` as a user who owns nothing but a folder, by way of `script` as a shell knows it.
#[cfg(target_os = "linux")]
fn as_ordinary(way: &[&str], degraded: &str) -> Option<CommandOutput> {
    if !rustix::process::geteuid().is_root() {
        missing("linux", "only root can become an ordinary user");
        return None;
    }
    let folder = home_of_ordinary();
    let mut command = Command::new(way[0]);
    command
        .args(&way[1..])
        .arg(env!("CARGO_BIN_EXE_skillbox"))
        .args(PROVE_NATIVE)
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", folder.path())
        .env("TMPDIR", folder.path())
        .env(LOG_RETRIES.0, LOG_RETRIES.1)
        .env("SKILLBOX_NATIVE_ALLOW_DEGRADED", degraded);
    let said = command_output(command.output().unwrap());
    assert_empty_but_for_caches(folder.path());
    Some(said)
}

#[cfg(target_os = "linux")]
fn assert_empty_but_for_caches(folder: &Path) {
    let left: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_ordinary_user_with_a_delegated_subtree_keeps_every_promise() {
    if let Some(said) = as_ordinary(AS_DELEGATED, "false") {
        Proof::of(said).assert_kept_but(&[]);
    }
}

/// The degraded form: exactly P6 and P7, and said so.
#[cfg(target_os = "linux")]
#[test]
fn an_ordinary_user_without_cgroups_keeps_all_but_two_promises() {
    if let Some(said) = as_ordinary(AS_ORDINARY, "true") {
        Proof::of(said).assert_kept_but(&["P6", "P7"]);
    }
    if let Some(said) = as_ordinary(AS_ORDINARY, "false") {
        assert_eq!(said.code, 69, "{}", said.stderr);
        assert!(said.stderr.contains("ALLOW_DEGRADED"), "{}", said.stderr);
    }
}

/// A backend that is named must be there; one that is not named is passed over, with the reason.
#[test]
fn missing_backend_is_an_error_only_if_named() {
    let nowhere = Shell::new().with("SKILLBOX_DOCKER_HOST", "unix:///nonexistent/docker.sock");
    let named = nowhere.run(&["prove", "--backend", "docker", "--only", "S-01a"]);
    assert_eq!(named.code, 69, "{}", named.stderr);
    assert!(named.stderr.contains("docker: "), "{}", named.stderr);
    let any = nowhere.run(&["prove", "--only", "S-19a", "--format", "json"]);
    let report: Value = serde_json::from_str(&any.stdout).unwrap();
    assert_eq!(report["skipped"][0]["backend"], "docker");
    assert!(!report["skipped"][0]["reason"].as_str().unwrap().is_empty());
    let tried = report["backends"].as_array().unwrap().len();
    assert_eq!(any.code, if tried == 0 { 69 } else { 0 }, "{}", any.stderr);
}

#[test]
fn unknown_probe_is_a_usage_error() {
    let said = Shell::new().run(&["prove", "--only", "S-99"]);
    assert_eq!(said.code, 2);
    assert!(
        said.stderr.contains("S-99") && said.stderr.contains("P1 to P16"),
        "{}",
        said.stderr
    );
}
