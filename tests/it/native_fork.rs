//! Processes that wait to be native sandboxes: where they are born, and what they begin as.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use skillbox::sandbox::linux::{TestProcess, TestSpawner};

use crate::world::missing;

const PROGRAM: &str = env!("CARGO_BIN_EXE_skillbox");

/// A folder in a hierarchy of version 2, which may have no controllers; `None` (and a word) where there is none.
fn folder_of_version_2() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let top = mount.and_then(|line| line.split(' ').nth(4));
    let folder = top.map(|top| Path::new(top).join(format!("skillbox-test-{}", std::process::id())));
    let made = folder
        .clone()
        .is_some_and(|folder| fs::create_dir(folder).is_ok());
    if !made {
        println!("skipped: no cgroup of version 2 can be made here");
    }
    folder.filter(|_| made)
}

/// What makes processes here; `None` (and a word) where this host cannot.
fn spawner() -> Option<TestSpawner> {
    let spawner = TestSpawner::open(Path::new(PROGRAM)).unwrap();
    match spawner.fork(None) {
        Ok(_) => Some(spawner),
        Err(error) => {
            missing("linux", &error.to_string());
            None
        }
    }
}

/// Where a process has its program, as far as this user may know.
fn addresses(process: &TestProcess) -> String {
    let maps = fs::read_to_string(format!("/proc/{}/maps", process.id())).unwrap();
    maps.lines().next().unwrap_or_default().to_owned()
}

/// P15: a sandbox is in its cgroup before its first instruction, and ends with it.
#[test]
fn cgroup_v2_forks_into_cgroup_and_kills_it_when_frozen() {
    let (Some(spawner), Some(folder)) = (spawner(), folder_of_version_2()) else {
        return;
    };
    let process = spawner.fork(Some(&folder)).unwrap();
    let inside = fs::read_to_string(folder.join("cgroup.procs")).unwrap();
    assert_eq!(inside.trim(), process.id().to_string());
    // Frozen it dies all the same.
    fs::write(folder.join("cgroup.freeze"), "1").unwrap();
    drop(process);
    assert!(!folder.exists());
}

/// P15: if the zygote is killed, its sandboxes live on, and a new one makes others.
#[test]
fn sandboxes_outlive_their_zygote() {
    let Some(spawner) = spawner() else { return };
    let process = spawner.fork(None).unwrap();
    let zygote = spawner.zygote().unwrap();
    let killed = Command::new("/bin/kill")
        .args(["-9", &zygote.to_string()])
        .status();
    assert!(killed.unwrap().success());
    let next = spawner.fork(None).unwrap();
    assert!(process.is_alive() && next.is_alive());
    assert_ne!(spawner.zygote(), Some(zygote));
}

/// P15: one that does not answer is not waited for for ever, and what became of its copies is reaped.
#[test]
fn replaces_hanging_zygote() {
    let Some(spawner) = spawner() else { return };
    let zygote = spawner.zygote().unwrap();
    let stopped = Command::new("/bin/kill")
        .args(["-STOP", &zygote.to_string()])
        .status();
    assert!(stopped.unwrap().success());
    assert!(spawner.fork(None).unwrap().is_alive());
    assert_ne!(spawner.zygote(), Some(zygote));
    assert!(!Path::new(&format!("/proc/{zygote}")).exists(), "it was reaped");
}

/// P16: what waits has its link, nothing, and its voice; nothing of the server and of its like.
#[test]
fn forked_child_has_three_descriptors() {
    let Some(spawner) = spawner() else { return };
    let _other = spawner.fork(None).unwrap();
    let process = spawner.fork(None).unwrap();
    let folder = format!("/proc/{}/fd", process.id());
    let began = Instant::now();
    loop {
        let mut held: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        held.sort();
        if held == ["0", "1", "2"] {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "it holds {held:?}");
    }
}

/// Where the kernel can (Linux 6.1), the program that newborns are copies of lies in huge pages, most of its code.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
#[test]
fn forked_children_share_huge_pages() {
    /// A kernel with much to do may have no memory in such pieces at the moment.
    const TRIES: usize = 20;
    const HUGE_PAGE: u64 = 2 * 1024 * 1024;
    if spawner().is_none() {
        return;
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map_while(|part| part.parse::<u32>().ok());
    let is_old = (numbers.next(), numbers.next()) < (Some(6), Some(1));
    let shared = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    if is_old || shared.map_or(true, |chosen| chosen.contains("[deny]")) {
        return println!("skipped: Linux {release} makes no huge pages when it is asked to");
    }
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let code = code_of(spawner().unwrap().zygote().unwrap());
        assert_eq!(code.start % HUGE_PAGE, code.offset % HUGE_PAGE);
        if code.huge_kib * 2 > code.kib {
            return;
        }
        seen.push(code);
        std::thread::sleep(Duration::from_millis(500));
    }
    panic!("{seen:?}");
}

/// Where a process has its code, and how much of it is mapped in huge pages.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
#[derive(Debug)]
struct Code {
    start: u64,
    offset: u64,
    kib: u64,
    huge_kib: u64,
}

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn code_of(process: u32) -> Code {
    let maps = fs::read_to_string(format!("/proc/{process}/smaps")).unwrap();
    let code: Vec<_> = maps.lines().skip_while(|line| !line.contains(" r-xp ")).collect();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let (start, rest) = code[0].split_once('-').unwrap();
    let kib = |key: &str| {
        let line = code.iter().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    Code {
        start: number(start),
        offset: number(rest.split(' ').nth(2).unwrap()),
        kib: kib("Size:"),
        huge_kib: kib("ShmemPmdMapped:"),
    }
}

/// P16: what many sandboxes have in common, the places of their first process's program, changes after a while.
#[test]
fn renews_zygote() {
    let Some(spawner) = spawner() else { return };
    let first = spawner.fork(None).unwrap();
    let last = (0..300).map(|_| spawner.fork(None).unwrap()).last().unwrap();
    assert_ne!(addresses(&first), addresses(&last));
    assert!(first.is_alive());
}
