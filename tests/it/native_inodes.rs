//! Files of the host that native sandboxes see carry neither locks nor file events in or out.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};
use skillbox::engine::RunSpec;
use skillbox::execution::Status;
use skillbox::skill::Language;

use crate::outcomes::{output, stderr};
use crate::world::{Backend, World, archive, missing};

/// Watches and locks for two seconds. It opens a watched file itself, so that its own events show that it can see some.
const WATCHER: &str = "import ctypes, fcntl, json, os, struct, time
libc = ctypes.CDLL(None)
queue = libc.inotify_init1(os.O_NONBLOCK)
assert queue >= 0
for folder in ('/usr/bin', '/etc/alternatives', '/usr/lib'):
    if os.path.isdir(folder):
        assert libc.inotify_add_watch(queue, folder.encode(), 0x20) >= 0, folder
open('/usr/bin/env', 'rb').close()
held = []
for path in ('/usr/bin/env', '/etc/ld.so.cache'):
    if os.path.exists(path):
        try:
            fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append(path)
time.sleep(2)
names = []
while True:
    try:
        data = os.read(queue, 65536)
    except BlockingIOError:
        break
    while data:
        length = struct.unpack('iIII', data[:16])[3]
        names.append(data[16:16 + length].rstrip(b'\\0').decode())
        data = data[16 + length:]
shown = open('/proc/self/mountinfo').read()
json.dump({'names': names, 'held': held, 'mounts': shown}, open(os.environ['SANDBOX_OUTPUT'], 'w'))
";

/// T-20. A host that opens and locks files while a sandbox watches them.
#[tokio::test(flavor = "multi_thread")]
async fn sandbox_sees_no_file_events_and_locks_of_the_host() {
    if !rustix::process::geteuid().is_root() {
        return missing("linux", "only root can make overlays of the host's folders");
    }
    let Some(world) = World::on(Backend::Native).await else {
        return;
    };
    let zip = archive(Language::Python, "", WATCHER);
    world.skills().publish(world.tenant(), zip, None).await.unwrap();
    let locked: Vec<File> = ["/usr/bin/env", "/etc/ld.so.cache"]
        .iter()
        .filter_map(|path| File::open(path).ok())
        .inspect(|file| flock(file, FlockOperation::NonBlockingLockExclusive).unwrap())
        .collect();
    assert!(!locked.is_empty());
    let run = world.run_latest("probe", RunSpec::default());
    tokio::pin!(run);
    let execution = loop {
        tokio::select! {
            execution = &mut run => break execution.unwrap(),
            () = tokio::time::sleep(std::time::Duration::from_millis(20)) => drop(File::open("/usr/bin/id").unwrap()),
        }
    };
    let outcome = execution.outcome.unwrap();
    assert_eq!(outcome.status, Status::Success, "{}", stderr(&outcome));
    let seen = output(&outcome);
    let names: Vec<&str> = seen["names"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|name| name.as_str())
        .collect();
    assert!(names.contains(&"env"), "the watch works: {names:?}");
    assert!(!names.contains(&"id"), "it saw what the host opened: {names:?}");
    assert_eq!(seen["held"], serde_json::json!([]), "it saw the host's locks");
    let mounts = seen["mounts"].as_str().unwrap();
    let data = world.folder.path().to_str().unwrap();
    assert!(!mounts.contains(data), "{mounts}");
    let usr = mounts.lines().find(|line| line.contains(" /usr ")).unwrap();
    assert!(usr.contains("overlay") && usr.contains("lowerdir=."), "{usr}");
}

/// T-20. The overlays are in no mount table that outlives the server, not even in its own.
#[tokio::test(flavor = "multi_thread")]
async fn overlays_are_in_no_mount_table_of_the_host() {
    if !rustix::process::geteuid().is_root() {
        return missing("linux", "only root can make overlays of the host's folders");
    }
    let overlays = || {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        table
            .lines()
            .filter(|line| line.contains("lowerdir=.:/empty"))
            .count()
    };
    let Some(world) = World::on(Backend::Native).await else {
        return;
    };
    let zip = archive(Language::Bash, "", "true");
    world.skills().publish(world.tenant(), zip, None).await.unwrap();
    world.run_latest("probe", RunSpec::default()).await.unwrap();
    assert!(threads_with_overlays() > 0, "this process keeps some");
    assert_eq!(overlays(), 0);
}

/// Threads of this process whose mount tables contain overlays of ours.
fn threads_with_overlays() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let tables =
        threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("mountinfo")).ok());
    tables.filter(|table| table.contains("lowerdir=.:/empty")).count()
}
