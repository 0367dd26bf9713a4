//! One cgroup for each sandbox: limits memory, processes and CPU, and reports usage (P5, P6, P7).

mod find;
mod v1;
mod v2;

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::execution::{ResourceLimits, Usage};
use crate::ids::InstanceId;
use crate::sandbox::linux::advice;

pub(super) use find::{CgroupScope, CgroupSetup};

/// The cgroups of this process's sandboxes.
#[derive(Debug)]
pub(super) struct Cgroups {
    version: CgroupVersion,
    /// Held for life: a folder whose lock can be taken belongs to a dead process.
    _lock: File,
    /// The folders of sandboxes' cgroups, one per hierarchy, the locked one first.
    homes: Vec<PathBuf>,
}

#[derive(Debug, Clone)]
enum CgroupVersion {
    V1(v1::Hierarchies),
    V2,
}

/// The cgroup of a sandbox. Removed by [`Cell::remove`] when it is empty.
#[derive(Debug)]
pub(super) struct Cell {
    version: CgroupVersion,
    /// One folder per hierarchy, in the order of the homes.
    folders: Vec<PathBuf>,
}

/// CPU weight relative to other sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// A sixteenth, for warm sandboxes that are being created.
    Little,
    /// A quarter, for async executions, whose time limit runs.
    Quarter,
    Whole,
}

/// Prefix of our folders, followed by the instance.
const PREFIX: &str = "skillbox-";
/// A cgroup becomes empty shortly after its last process has ended.
const EMPTY_WITHIN: Duration = Duration::from_secs(2);
const POLL_EVERY: Duration = Duration::from_millis(5);
/// The lock is held for a few system calls, which take long only on an overloaded machine.
const BASE_LOCKED_WITHIN: Duration = Duration::from_secs(1);

impl Cgroups {
    /// Creates the folders of this process. Errors contain the remedy.
    pub(super) fn open(found: &CgroupSetup, instance: InstanceId) -> Result<Self, String> {
        let (version, bases) = match found {
            CgroupSetup::V1(hierarchies) => (CgroupVersion::V1(hierarchies.clone()), hierarchies.bases()),
            CgroupSetup::V2(unified) => (CgroupVersion::V2, vec![v2::base(unified)?]),
            CgroupSetup::Unavailable(why) => return Err(why.clone()),
        };
        let name = format!("{PREFIX}{instance}");
        let homes: Vec<_> = bases.iter().map(|base| base.join(&name)).collect();
        let lock = make_homes(&homes).map_err(|(path, error)| {
            format!(
                "cgroups cannot be created in `{}` ({error}); {}",
                path.parent().unwrap_or(&path).display(),
                match version {
                    // No service manager delegates version 1 to a user.
                    CgroupVersion::V1(_) =>
                        "run as root, or let root give this user a folder in each hierarchy",
                    CgroupVersion::V2 => advice::own_cgroup(),
                }
            )
        })?;
        if let CgroupVersion::V2 = version {
            v2::enable(&homes[0])?;
        }
        Ok(Self {
            version,
            _lock: lock,
            homes,
        })
    }

    /// The mechanism, for messages.
    pub(super) fn describe(&self) -> String {
        let version = match self.version {
            CgroupVersion::V1(_) => "1",
            CgroupVersion::V2 => "2",
        };
        format!("cgroup version {version} below {}", self.homes[0].display())
    }

    /// Creates an empty cgroup of this name, with a limit on processes.
    pub(super) fn cell(&self, name: &str, processes_max: u32) -> io::Result<Cell> {
        let cell = Cell {
            version: self.version.clone(),
            folders: self.homes.iter().map(|home| home.join(name)).collect(),
        };
        let made = cell.make(processes_max);
        if made.is_err() {
            cell.remove();
        }
        made.map(|()| cell)
    }

    /// Removes cgroups of dead processes. Returns the number of removed sandboxes.
    pub(super) fn sweep(&self) -> io::Result<usize> {
        let mut removed = 0;
        for (name, _lock) in self.dead_homes()? {
            // The locked folder last, because later sweeps find the others through it.
            for home in self.homes.iter().rev() {
                removed += remove_home(&home.with_file_name(&name))?;
            }
        }
        Ok(removed)
    }

    /// Names of dead processes' folders, with locks that block other sweeps.
    fn dead_homes(&self) -> io::Result<Vec<(OsString, File)>> {
        let Some(base) = self.homes[0].parent() else {
            return Ok(Vec::new());
        };
        let mut names = Vec::new();
        for entry in fs::read_dir(base)? {
            let name = entry?.file_name();
            let id = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            if id.is_some_and(|id| id.parse::<InstanceId>().is_ok()) {
                names.push(name);
            }
        }
        let _no_new_home = lock_base(base, File::try_lock)?;
        let dead = names
            .into_iter()
            .filter_map(|name| lock(&base.join(&name)).ok().map(|lock| (name, lock)));
        Ok(dead.collect())
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        // The locked folder last, as in a sweep. The next process removes the rest.
        for home in self.homes.iter().rev() {
            let _ = fs::remove_dir(home);
        }
    }
}

/// Creates all folders and locks the first.
fn make_homes(homes: &[PathBuf]) -> Result<File, (PathBuf, io::Error)> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| (path, error)
    };
    let base = homes[0].parent().unwrap_or(&homes[0]);
    fs::create_dir_all(base).map_err(failed(base))?;
    // A new folder has no lock yet and would look like a dead process's, so no sweep may run until it is locked. Any
    // local user can hold this lock. After the wait it is ignored, because it blocks sweeps, too.
    let _no_sweep = lock_base(base, File::try_lock_shared).ok();
    for home in homes {
        fs::create_dir_all(home).map_err(failed(home))?;
    }
    lock(&homes[0]).map_err(failed(&homes[0]))
}

/// Locks the parent folder of the homes: shared to create one, exclusive to find dead ones. Version 2 cannot rename
/// cgroups, so homes cannot be created under a temporary name.
fn lock_base(base: &Path, try_lock: fn(&File) -> Result<(), TryLockError>) -> io::Result<File> {
    let file = File::open(base)?;
    let started = Instant::now();
    loop {
        match try_lock(&file) {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if started.elapsed() < BASE_LOCKED_WITHIN => {
                std::thread::sleep(POLL_EVERY);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Locks a folder. The kernel releases the lock however its holder ends.
fn lock(folder: &Path) -> io::Result<File> {
    let file = File::open(folder)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::ResourceBusy.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes a dead process's folder, including cgroups with running processes.
fn remove_home(home: &Path) -> io::Result<usize> {
    let entries = match fs::read_dir(home) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut removed = 0;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            kill_all(&entry.path());
            remove_when_empty(&entry.path());
            removed += 1;
        }
    }
    match fs::remove_dir(home) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(removed),
    }
}

/// Kills the processes of a dead server's cgroup: at once if the kernel can. Otherwise it suffices to kill the first
/// process of the PID namespace, which ends the others.
fn kill_all(folder: &Path) {
    if kill_at_once(folder).is_ok() {
        return;
    }
    for pid in members(folder) {
        let Ok(process) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else {
            continue;
        };
        // Process ids are reused: check that the process is still the listed one.
        if members(folder).contains(&pid) {
            let _ = rustix::process::pidfd_send_signal(&process, rustix::process::Signal::KILL);
        }
    }
}

fn members(folder: &Path) -> Vec<Pid> {
    let listed = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    listed
        .lines()
        .filter_map(|line| line.parse().ok())
        .filter_map(Pid::from_raw)
        .collect()
}

/// Version 2, since Linux 5.14.
fn kill_at_once(folder: &Path) -> io::Result<()> {
    let mut file = File::options().write(true).open(folder.join("cgroup.kill"))?;
    file.write_all(b"1")
}

fn remove_when_empty(folder: &Path) {
    let started = Instant::now();
    loop {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && started.elapsed() < EMPTY_WITHIN => {
                std::thread::sleep(POLL_EVERY);
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "Left cgroup {} to the next round", folder.display());
                return;
            }
            Ok(()) | Err(_) => return,
        }
    }
}

impl Cell {
    /// An existing folder of version 2 without limits.
    #[cfg(feature = "testing")]
    pub(super) fn unbounded(folder: &Path) -> Self {
        Self {
            version: CgroupVersion::V2,
            folders: vec![folder.to_owned()],
        }
    }

    fn make(&self, processes_max: u32) -> io::Result<()> {
        for folder in &self.folders {
            fs::create_dir(folder)?;
        }
        match &self.version {
            CgroupVersion::V1(hierarchies) => hierarchies.set_process_limit(&self.folders, processes_max),
            CgroupVersion::V2 => v2::set_process_limit(&self.folders[0], processes_max),
        }
    }

    /// The folder to fork into, if the kernel supports that.
    pub(super) fn cgroup_folder(&self) -> io::Result<Option<OwnedFd>> {
        match self.version {
            CgroupVersion::V1(_) => Ok(None),
            CgroupVersion::V2 => File::open(&self.folders[0]).map(|folder| Some(folder.into())),
        }
    }

    /// Moves a process into the cgroup, if the kernel cannot fork into it. Takes 10 ms and more.
    pub(super) fn add_process(&self, pid: Pid) -> io::Result<()> {
        match &self.version {
            CgroupVersion::V1(hierarchies) => hierarchies.add_process(&self.folders, pid),
            CgroupVersion::V2 => Ok(()),
        }
    }

    pub(super) fn set_limits(&self, limits: &ResourceLimits) -> io::Result<()> {
        match &self.version {
            CgroupVersion::V1(hierarchies) => hierarchies.set_limits(&self.folders, limits),
            CgroupVersion::V2 => v2::set_limits(&self.folders[0], limits),
        }
    }

    /// The share of contended CPU; the limit stays the same.
    pub(super) fn set_weight(&self, weight: Weight) -> io::Result<()> {
        match &self.version {
            CgroupVersion::V1(hierarchies) => hierarchies.set_weight(&self.folders, weight),
            CgroupVersion::V2 => v2::set_weight(&self.folders[0], weight),
        }
    }

    /// Usage so far; 0 if the kernel does not report it.
    pub(super) fn usage(&self) -> Usage {
        match &self.version {
            CgroupVersion::V1(hierarchies) => hierarchies.usage(&self.folders),
            CgroupVersion::V2 => v2::usage(&self.folders[0]),
        }
    }

    /// Kills all processes at once, if the kernel can.
    pub(super) fn kill(&self) {
        if let CgroupVersion::V2 = self.version {
            // The caller also kills PID 1.
            let _ = kill_at_once(&self.folders[0]);
        }
    }

    /// Waits for the last process to end.
    pub(super) fn remove(&self) {
        for folder in &self.folders {
            remove_when_empty(folder);
        }
    }
}

/// The error names the file.
fn write(folder: &Path, file: &str, value: impl ToString) -> io::Result<()> {
    let path = folder.join(file);
    fs::write(&path, value.to_string())
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// The kernel returns the whole file in one read, and it is far below the limit.
fn text(folder: &Path, file: &str) -> Option<String> {
    let mut buffer = [0; 4096];
    let length = File::open(folder.join(file)).ok()?.read(&mut buffer).ok()?;
    Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

fn number(folder: &Path, file: &str) -> Option<u64> {
    text(folder, file)?.trim().parse().ok()
}

/// The number after `key` in lines of `key number`.
fn keyed(folder: &Path, file: &str, key: &str) -> Option<u64> {
    text(folder, file)?
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

pub(super) fn borrowed(folder: Option<&OwnedFd>) -> Option<BorrowedFd<'_>> {
    folder.map(std::os::fd::AsFd::as_fd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cgroups(lock: File, homes: &[PathBuf]) -> Cgroups {
        Cgroups {
            version: CgroupVersion::V2,
            _lock: lock,
            homes: homes.to_vec(),
        }
    }

    fn homes(bases: &[tempfile::TempDir; 2]) -> [PathBuf; 2] {
        let name = format!("{PREFIX}{}", InstanceId::generate());
        [bases[0].path().join(&name), bases[1].path().join(&name)]
    }

    /// F-03: processes start, sweep and end beside each other without a failure.
    #[test]
    fn start_succeeds_while_other_processes_sweep() {
        let bases = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let live = || {
            for _ in 0..100 {
                let homes = homes(&bases);
                let process = cgroups(make_homes(&homes).unwrap(), &homes);
                process.sweep().unwrap();
                assert!(homes.iter().all(|home| home.exists()));
            }
        };
        std::thread::scope(|scope| {
            let threads = [(); 10].map(|()| scope.spawn(live));
            let ended = threads.map(std::thread::ScopedJoinHandle::join);
            assert!(ended.iter().all(Result::is_ok));
        });
    }

    /// A local user who locks the base delays a start, but does not prevent it.
    #[test]
    fn start_succeeds_while_another_process_locks_the_base() {
        let bases = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let base = File::open(bases[0].path()).unwrap();
        base.lock().unwrap();
        let homes = homes(&bases);
        let lock = make_homes(&homes).unwrap();
        assert!(homes.iter().all(|home| home.exists()));
        base.unlock().unwrap();
        assert_eq!(cgroups(lock, &homes).sweep().unwrap(), 0);
    }

    /// P15, F-03: a locked home is not removed, an unlocked one is.
    #[test]
    fn sweeps_only_unlocked_folders() {
        let base = tempfile::tempdir().unwrap();
        let homes = [
            InstanceId::generate(),
            InstanceId::generate(),
            InstanceId::generate(),
        ]
        .map(|id| base.path().join(format!("{PREFIX}{id}")));
        let own = make_homes(&homes[..1]).unwrap();
        let _other = make_homes(&homes[1..2]).unwrap();
        drop(make_homes(&homes[2..]).unwrap());
        fs::create_dir(homes[2].join("cell")).unwrap();
        fs::create_dir(base.path().join("skillbox-other")).unwrap();
        let cgroups = cgroups(own, &homes[..1]);
        assert_eq!(cgroups.sweep().unwrap(), 1);
        assert!(homes[0].exists() && homes[1].exists() && !homes[2].exists());
        assert!(base.path().join("skillbox-other").exists());
    }
}
