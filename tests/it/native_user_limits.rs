//! What the kernel counts for each user: sandboxes take nothing of root's share.

use std::os::fd::OwnedFd;

use rustix::fs::inotify::{CreateFlags, init};
use skillbox::engine::RunSpec;
use skillbox::execution::Status;
use skillbox::skill::Language;

use crate::outcomes::{output, stderr};
use crate::world::{Backend, World, archive, missing};

/// Runs at the same time: as many as a world admits.
const RUNS: usize = 4;
const PROGRAM: &str = "import ctypes, json, os, time
libc = ctypes.CDLL(None)
held = 0
while libc.inotify_init1(0) >= 0:
    held += 1
time.sleep(2)
json.dump(held, open(os.environ['SANDBOX_OUTPUT'], 'w'))
";

/// How many inotify instances this process can still create.
fn instances_left() -> usize {
    let created: Vec<OwnedFd> = std::iter::from_fn(|| init(CreateFlags::CLOEXEC).ok()).collect();
    created.len()
}

///
#[tokio::test]
async fn sandboxes_leave_inotify_instances_to_root() {
    if !rustix::process::geteuid().is_root() {
        return missing("linux", "only root gives each sandbox a user of its own");
    }
    let Some(world) = World::on(Backend::Native).await else {
        return;
    };
    let zip = archive(Language::Python, "", PROGRAM);
    world.skills().publish(world.tenant(), zip, None).await.unwrap();
    let before = instances_left();
    let runs = async {
        let run = || world.run_latest("probe", RunSpec::default());
        tokio::join!(run(), run(), run(), run()).into()
    };
    tokio::pin!(runs);
    let mut least = before;
    let ended: [_; RUNS] = loop {
        tokio::select! {
            ended = &mut runs => break ended,
            () = tokio::time::sleep(std::time::Duration::from_millis(50)) => least = least.min(instances_left()),
        }
    };
    for execution in ended {
        let outcome = execution.unwrap().outcome.unwrap();
        assert_eq!(outcome.status, Status::Success, "{}", stderr(&outcome));
        assert_eq!(output(&outcome), 16, "each has the number of its own namespace");
    }
    // Other programs of root may use a few meanwhile.
    assert!(least + 8 >= before, "{least} of {before} were left to root");
}
