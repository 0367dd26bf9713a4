//! Finds leftovers of sandboxes on this host, from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Origin, Target};

use crate::auth::Caller;
use crate::engine::{Engine, PageRequest};
use crate::execution::Status;
use crate::ids::InstanceId;
use crate::sandbox::Sandbox;
use crate::store::ExecutionFilter;

/// An engine reports the end of a container late, and it is removed in the background.
const REMOVED_WITHIN: Duration = Duration::from_secs(60);
/// The kernel frees the namespaces of a killed sandbox before its process ends.
const ENDED_WITHIN: Duration = Duration::from_secs(20);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Maximum depth of a service's own subtree below the cgroups' root.
const CGROUP_DEPTH_MAX: usize = 12;

pub(super) async fn find(target: &Target<'_>) -> Map<String, Value> {
    let Target {
        engine,
        caller,
        folder,
        ..
    } = *target;
    engine.sandbox().drain().await;
    // A published skill stays unpacked, which is not a leftover.
    let places = match target.origin {
        Origin::Cold => &["tmp", "cache"][..],
        Origin::Warm => &["tmp"],
    };
    let files: Vec<_> = places
        .iter()
        .flat_map(|name| names_in(&folder.join(name)))
        .collect();
    let mut left = json!({
        "processes": remaining_children().await,
        "cgroups": cgroups(engine.instance()),
        "mounts": mounts(folder),
        "files": files,
        "running": running(engine, caller).await,
    });
    if let Sandbox::Docker(_) = engine.sandbox() {
        left["containers"] = containers(engine.sandbox()).await;
    }
    left.as_object().cloned().unwrap_or_default()
}

/// Containers that still exist after a grace period.
async fn containers(sandbox: &Sandbox) -> Value {
    let Sandbox::Docker(docker) = sandbox else {
        return Value::Null;
    };
    let patience = tokio::time::Instant::now() + REMOVED_WITHIN;
    loop {
        match docker.live_runs().await {
            Ok(standing) if standing > 0 && tokio::time::Instant::now() < patience => {
                tokio::time::sleep(LOOK_AGAIN_AFTER).await;
            }
            Ok(standing) => return json!(standing),
            Err(error) => return json!(error.to_string()),
        }
    }
}

/// Children that still exist after a grace period.
async fn remaining_children() -> Vec<String> {
    let patience = tokio::time::Instant::now() + ENDED_WITHIN;
    loop {
        let children = children();
        if children.is_empty() || tokio::time::Instant::now() >= patience {
            return children;
        }
        tokio::time::sleep(LOOK_AGAIN_AFTER).await;
    }
}

/// Children of this process that were not reaped, with their names: each is a native sandbox.
fn children() -> Vec<String> {
    let own = format!("PPid:\t{}", std::process::id());
    let named_child = |pid: String| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let name = status.lines().next()?.strip_prefix("Name:")?.trim();
        status
            .lines()
            .any(|line| line == own)
            .then(|| format!("{pid} ({name})"))
    };
    names_in(Path::new("/proc"))
        .into_iter()
        .filter_map(named_child)
        .collect()
}

/// Cgroups of this process's sandboxes: one can only be removed when it is empty.
fn cgroups(instance: InstanceId) -> Vec<String> {
    let home = format!("skillbox-{instance}");
    let mut found = Vec::new();
    let mut pending = vec![(PathBuf::from("/sys/fs/cgroup"), 0)];
    while let Some((folder, depth)) = pending.pop() {
        let is_home = folder.file_name().is_some_and(|name| name == home.as_str());
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if is_home {
                found.push(entry.path().display().to_string());
            } else if depth < CGROUP_DEPTH_MAX {
                pending.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// Mounts of this host that lead into the folder.
fn mounts(folder: &Path) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let folder = folder.display().to_string();
    let leads_there = |line: &&str| line.contains(&folder);
    mounts
        .lines()
        .filter(leads_there)
        .map(ToOwned::to_owned)
        .collect()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Executions without an end.
async fn running(engine: &Engine, caller: &Caller) -> Value {
    let filter = ExecutionFilter {
        statuses: Some(Status::Running).into(),
        ..ExecutionFilter::default()
    };
    let page = PageRequest {
        after: None,
        rows: 100,
    };
    match engine.executions().list(caller.tenant(), filter, page).await {
        Ok(page) => json!(page.items.len()),
        Err(error) => json!(error.to_string()),
    }
}
