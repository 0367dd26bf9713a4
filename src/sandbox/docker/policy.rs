//! The container of a sandbox as a plain value: the reviewed posture, enforced by a snapshot test.
//!
//! There is no parameter to loosen anything here, and there must never be one: the caller chooses *what* runs,
//! only this file chooses *how*.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum,
};

use crate::execution::ResourceLimits;
use crate::guest;
use crate::ids::{ExecutionId, InstanceId};
use crate::limits;
use crate::sandbox::docker::guest_binary::Loader;
use crate::sandbox::kernel_files;
use crate::skill::ApprovedImage;

/// The user inside: nobody, in no other group.
const USER: &str = "65534:65534";
/// Mount point of PID 1.
pub(super) const GUEST_FOLDER: &str = "/.skillbox";
pub(super) const GUEST: &str = "/.skillbox/init";

/// Label: `run` or `keeper`.
pub(super) const LABEL_ROLE: &str = "dev.skillbox.role";
/// Label: the process that created it.
pub(super) const LABEL_INSTANCE: &str = "dev.skillbox.instance";
/// Label: creation time, in seconds since 1970.
pub(super) const LABEL_CREATED: &str = "dev.skillbox.created";
/// Label: expiry, in seconds since 1970.
pub(super) const LABEL_EXPIRES: &str = "dev.skillbox.expires";
/// Label: the execution.
pub(super) const LABEL_EXECUTION: &str = "dev.skillbox.execution";

/// Role of a container that runs an execution.
pub(super) const ROLE_RUN: &str = "run";
/// Role of a volume container, which is never started.
pub(super) const ROLE_VOLUME_CONTAINER: &str = "keeper";

#[derive(Debug)]
pub(super) struct ContainerSpec<'a> {
    pub(super) execution: ExecutionId,
    pub(super) instance: InstanceId,
    pub(super) image: &'a ApprovedImage,
    pub(super) limits: &'a ResourceLimits,
    /// Volumes mounted read-only: the guest's first, then the skill's.
    pub(super) volume_containers: &'a [String],
    /// Seccomp profile for the engine's architecture, as JSON text.
    pub(super) seccomp: &'a str,
    /// Configured runtime, for example `runsc`; the engine's default if `None`.
    pub(super) runtime: Option<&'a str>,
    pub(super) loader: Loader,
    /// Seconds since 1970.
    pub(super) created: i64,
}

pub(super) fn container(spec: &ContainerSpec<'_>) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(spec.image.as_str().to_owned()),
        entrypoint: Some(vec![GUEST.to_owned(), guest::COMMAND.to_owned()]),
        cmd: Some(Vec::new()),
        env: Some(Vec::new()),
        user: Some(USER.to_owned()),
        working_dir: Some("/".to_owned()),
        hostname: Some("sandbox".to_owned()),
        // Otherwise dockerd executes itself again at each start, although the mode below is `none`: 0.2 s with version 28.
        // It also shows the host's `/etc/resolv.conf`. The price is an empty `/etc/hosts`.
        network_disabled: Some(true),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        // The connection is stdin: the guest exits when it ends.
        stdin_once: Some(true),
        tty: Some(false),
        healthcheck: Some(HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..HealthConfig::default()
        }),
        stop_signal: Some("SIGKILL".to_owned()),
        labels: Some(labels(spec)),
        host_config: Some(host_config(spec)),
        ..ContainerCreateBody::default()
    }
}

fn labels(spec: &ContainerSpec<'_>) -> HashMap<String, String> {
    let life = limits::SANDBOX_START_MAX
        + spec.limits.timeout
        + limits::KILL_GRACE
        + limits::COLLECT_MAX
        + limits::CLOCKS_APART_MAX;
    let expires = spec
        .created
        .saturating_add(i64::try_from(life.as_secs()).unwrap_or(i64::MAX));
    HashMap::from([
        (LABEL_ROLE.to_owned(), ROLE_RUN.to_owned()),
        (LABEL_INSTANCE.to_owned(), spec.instance.to_string()),
        (LABEL_EXECUTION.to_owned(), spec.execution.to_string()),
        (LABEL_CREATED.to_owned(), spec.created.to_string()),
        (LABEL_EXPIRES.to_owned(), expires.to_string()),
    ])
}

fn host_config(spec: &ContainerSpec<'_>) -> HostConfig {
    let memory = signed(spec.limits.memory_bytes);
    HostConfig {
        auto_remove: Some(true),
        network_mode: Some("none".to_owned()),
        ipc_mode: Some("private".to_owned()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        privileged: Some(false),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec![
            "no-new-privileges:true".to_owned(),
            format!("seccomp={}", spec.seccomp),
        ]),
        readonly_rootfs: Some(true),
        masked_paths: Some(
            kernel_files::MASKED
                .iter()
                .map(|path| (*path).to_owned())
                .collect(),
        ),
        readonly_paths: Some(
            kernel_files::READONLY
                .iter()
                .map(|path| (*path).to_owned())
                .collect(),
        ),
        pids_limit: Some(i64::from(spec.limits.processes_max * spec.loader.tasks_each())),
        memory: Some(memory),
        // Equal to `memory`, or the engine would grant as much swap again.
        memory_swap: Some(memory),
        nano_cpus: Some(i64::from(spec.limits.cpu_millis) * 1_000_000),
        // If the host runs out of memory, the kernel kills sandboxes before the server.
        oom_score_adj: Some(500),
        ulimits: Some(vec![
            ulimit("nofile", signed(limits::OPEN_FILES_MAX)),
            ulimit("core", 0),
            ulimit("memlock", 65_536),
        ]),
        tmpfs: Some(tmpfs(spec.limits)),
        shm_size: Some(signed(spec.limits.shm_bytes)),
        volumes_from: Some(
            spec.volume_containers
                .iter()
                .map(|name| format!("{name}:ro"))
                .collect(),
        ),
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: None,
        }),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        runtime: spec.runtime.map(ToOwned::to_owned),
        init: Some(false),
        ..HostConfig::default()
    }
}

/// Mount points of tmpfs: no volume of an image is created there.
pub(super) const SCRATCH: [&str; 5] = ["/workspace", "/sandbox", "/tmp", "/root", "/blobs"];

fn tmpfs(limits: &ResourceLimits) -> HashMap<String, String> {
    let sizes = [
        limits.workspace_bytes,
        limits.sandbox_bytes,
        limits.tmp_bytes,
        limits.root_bytes,
        limits.blobs_bytes,
    ];
    std::iter::zip(SCRATCH, sizes)
        .map(|(path, bytes)| (path.to_owned(), tmpfs_options(bytes)))
        .collect()
}

fn tmpfs_options(bytes: u64) -> String {
    let inodes = limits::tmpfs_inodes(bytes);
    format!("rw,noexec,nosuid,nodev,size={bytes},nr_inodes={inodes},mode=0700,uid=65534,gid=65534")
}

fn ulimit(name: &str, value: i64) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(value),
        hard: Some(value),
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// A volume container with its volume at `mount_point`.
pub(super) fn volume_container(
    image: &ApprovedImage,
    mount_point: &str,
    created: i64,
) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(image.as_str().to_owned()),
        entrypoint: Some(vec!["/never-started".to_owned()]),
        cmd: Some(Vec::new()),
        user: Some(USER.to_owned()),
        network_disabled: Some(true),
        volumes: Some(vec![mount_point.to_owned()]),
        labels: Some(HashMap::from([
            (LABEL_ROLE.to_owned(), ROLE_VOLUME_CONTAINER.to_owned()),
            (LABEL_CREATED.to_owned(), created.to_string()),
        ])),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges:true".to_owned()]),
            // An image may declare volumes at scratch paths, which must not be mounted from here.
            tmpfs: Some(SCRATCH.map(|path| (path.to_owned(), String::new())).into()),
            log_config: Some(HostConfigLogConfig {
                typ: Some("none".to_owned()),
                config: None,
            }),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::execution::Maxima;
    use crate::skill::{ImageAllowlist, Resources};

    fn posture() -> Value {
        let image = ImageAllowlist::new(["python:3.12-slim".to_owned()])
            .approve("python:3.12-slim")
            .unwrap();
        let limits = ResourceLimits::clamp(&Resources::default(), None, None, &Maxima::default());
        let spec = ContainerSpec {
            execution: "01987c5c-0000-7000-8000-000000000001".parse().unwrap(),
            instance: "01987c5c-0000-7000-8000-000000000002".parse().unwrap(),
            image: &image,
            limits: &limits,
            volume_containers: &["skillbox-guest".to_owned(), "skillbox-skill".to_owned()],
            seccomp: "{}",
            runtime: None,
            loader: Loader::Kernel,
            created: 1_000_000,
        };
        serde_json::to_value(container(&spec)).unwrap()
    }

    /// S-33: the snapshot is the reviewed posture; any change to it is a change of policy.
    #[test]
    fn the_container_is_the_reviewed_posture() {
        insta::with_settings!({ sort_maps => true }, { insta::assert_json_snapshot!(posture()) });
    }

    /// What the test above compares with.
    const REVIEWED: &str = include_str!(
        "snapshots/skillbox__sandbox__docker__policy__tests__the_container_is_the_reviewed_posture.snap"
    );

    /// The value with any single member, element or scalar of it removed, however deep; each with the path of what is gone.
    fn mutants(value: &Value) -> Vec<(String, Value)> {
        let keys: Vec<String> = match value {
            Value::Object(members) => members.keys().cloned().collect(),
            Value::Array(elements) => (0..elements.len()).map(|index| index.to_string()).collect(),
            _ => Vec::new(),
        };
        let mut all = Vec::new();
        for key in keys {
            let at = format!("/{}", key.replace('/', "~1"));
            let mut without = value.clone();
            match &mut without {
                Value::Object(members) => drop(members.shift_remove(&key)),
                Value::Array(elements) => drop(elements.remove(key.parse().unwrap())),
                _ => unreachable!("nothing else has members"),
            }
            all.push((at.clone(), without));
            for (deeper, mutant) in mutants(value.pointer(&at).unwrap()) {
                let mut changed = value.clone();
                *changed.pointer_mut(&at).unwrap() = mutant;
                all.push((format!("{at}{deeper}"), changed));
            }
        }
        all
    }

    /// Whichever field goes, or element of a list in one, the snapshot is not met.
    #[test]
    fn removing_any_field_of_the_posture_is_detected() {
        let (_, reviewed) = REVIEWED.rsplit_once("---\n").unwrap();
        let reviewed: Value = serde_json::from_str(reviewed).unwrap();
        let whole = posture();
        assert_eq!(whole, reviewed);
        let mutants = mutants(&whole);
        assert!(mutants.len() > 60, "{}", mutants.len());
        for (path, mutant) in mutants {
            assert_ne!(mutant, reviewed, "without {path}");
        }
    }

    /// One line for each entry of the profile, as the engine gets it.
    #[test]
    fn the_seccomp_profile_is_the_reviewed_table() {
        let profile = crate::sandbox::seccomp::docker_profile("amd64");
        insta::assert_snapshot!(crate::sandbox::seccomp::lines(&profile));
    }

    #[test]
    fn volume_container_has_a_volume_and_nothing_else() {
        let image = ImageAllowlist::new(["bash:5".to_owned()])
            .approve("bash:5")
            .unwrap();
        let body = volume_container(&image, "/skills/probe", 1_000_000);
        insta::with_settings!({ sort_maps => true }, { insta::assert_json_snapshot!(body) });
    }

    #[test]
    fn nothing_in_the_posture_reaches_the_host() {
        let host = &posture()["HostConfig"];
        for absent in [
            "Binds",
            "Mounts",
            "Devices",
            "DeviceRequests",
            "CapAdd",
            "GroupAdd",
            "PidMode",
            "UTSMode",
            "UsernsMode",
            "PortBindings",
        ] {
            assert!(host.get(absent).is_none_or(Value::is_null), "{absent}");
        }
    }
}
