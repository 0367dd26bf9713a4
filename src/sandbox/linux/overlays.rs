//! Read-only overlays of host folders, one per tenant. An overlay has inodes of its own, so neither locks nor file events
//! pass through it. They exist only in the mount namespace of one thread, and disappear with this process.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::time::Instant;

use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount_change,
    move_mount, open_tree, unmount,
};

use super::init;
use super::plan::HOST;
use crate::limits;
use crate::sys::{self, MountScope};

#[derive(Debug)]
pub(super) struct Overlays {
    requests: Sender<Request>,
}

#[derive(Debug)]
struct Request {
    tenant: String,
    paths: Vec<PathBuf>,
    reply: SyncSender<io::Result<Vec<OwnedFd>>>,
}

impl Overlays {
    /// Fails if this process may not create mount namespaces.
    pub(super) fn start() -> io::Result<Self> {
        let (requests, received) = mpsc::channel();
        let (report, ready) = mpsc::sync_channel(1);
        std::thread::Builder::new()
            .name("overlays".to_owned())
            .spawn(move || {
                let entered = enter_own_mounts();
                let has_entered = entered.is_ok();
                if report.send(entered).is_ok() && has_entered {
                    serve(&received);
                }
            })?;
        ready.recv().map_err(|_| ended())??;
        Ok(Self { requests })
    }

    /// Detached read-only mounts of these folders and files, in their order. Blocks for some microseconds, or about a
    /// tenth of a millisecond for each new overlay.
    pub(super) fn mounts(&self, tenant: String, paths: Vec<PathBuf>) -> io::Result<Vec<OwnedFd>> {
        let (reply, answer) = mpsc::sync_channel(1);
        let request = Request { tenant, paths, reply };
        self.requests.send(request).map_err(|_| ended())?;
        answer.recv().map_err(|_| ended())?
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread that keeps overlays has ended")
}

/// Second layer of each overlay: without a writable layer the kernel wants two.
const EMPTY: &str = "/empty";
const KEPT: &str = "/kept";
const ETC: &str = "/etc";

/// A mount namespace of this thread alone, with a root of its own and the host below [`HOST`]. Unmounts of the host reach
/// it, so that it keeps no file system busy.
fn enter_own_mounts() -> io::Result<()> {
    sys::unshare_namespaces(libc::CLONE_NEWNS)?;
    let receives = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", receives)?;
    init::replace_root(limits::MIB, 4096)?;
    fs::create_dir(EMPTY)?;
    fs::create_dir(KEPT)
}

fn serve(requests: &Receiver<Request>) {
    let mut keeper = Keeper::default();
    loop {
        let request = if keeper.kept.is_empty() {
            requests.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            requests.recv_timeout(limits::OVERLAY_AGE_MAX)
        };
        match request {
            Ok(Request { tenant, paths, reply }) => {
                let mounts = paths.iter().map(|path| keeper.mount(&tenant, path)).collect();
                let _ = reply.send(mounts);
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The mounts disappear with this thread.
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let evicted = keeper.evict(Instant::now());
        evicted.iter().for_each(|mount_point| detach(mount_point));
    }
}

/// A tenant, and a folder of the host.
type Key = (String, PathBuf);

#[derive(Debug, Default)]
struct Keeper {
    kept: HashMap<Key, Kept>,
    made: u64,
}

#[derive(Debug)]
struct Kept {
    mount_point: String,
    /// Another folder may have taken its path.
    folder: FolderId,
    /// Mounts of the host below the folder, which an overlay does not contain.
    submounts: Vec<PathBuf>,
    created: Instant,
    used: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FolderId {
    device: u64,
    inode: u64,
}

impl Keeper {
    fn mount(&mut self, tenant: &str, path: &Path) -> io::Result<OwnedFd> {
        let below_etc = path.strip_prefix(ETC).ok();
        let folder = below_etc.map_or(path, |_| Path::new(ETC));
        let overlay = self.overlay(tenant, folder).and_then(|kept| {
            if kept.submounts.iter().any(|mount| mount.starts_with(path)) {
                return Err(io::Error::other("another file system is mounted there"));
            }
            match below_etc {
                Some(below) => copy(&format!("{}/{}", kept.mount_point, below.display())),
                None => copy(&kept.mount_point),
            }
        });
        overlay.or_else(|error| {
            tracing::debug!(path = %path.display(), %error, "No overlay of a host folder; its inodes are shared");
            plain(Path::new(&of_host(path)))
        })
    }

    fn overlay(&mut self, tenant: &str, path: &Path) -> io::Result<&Kept> {
        let host = of_host(path);
        let metadata = fs::metadata(&host)?;
        let folder = FolderId {
            device: metadata.dev(),
            inode: metadata.ino(),
        };
        let now = Instant::now();
        let key = (tenant.to_owned(), path.to_owned());
        if self
            .kept
            .get(&key)
            .is_none_or(|kept| !kept.is_current(folder, now))
        {
            if let Some(old) = self.kept.remove(&key) {
                detach(&old.mount_point);
            }
            self.made += 1;
            let kept = Kept {
                mount_point: format!("{KEPT}/{}", self.made),
                folder,
                submounts: submounts(path)?,
                created: now,
                used: now,
            };
            attach(&new_overlay(&host)?, &kept.mount_point)?;
            self.kept.insert(key.clone(), kept);
        }
        let kept = self.kept.get_mut(&key).ok_or_else(ended)?;
        kept.used = now;
        Ok(kept)
    }

    /// Removes expired overlays, then the least recently used ones above the limit. Returns their mount points.
    /// Sandboxes that use an overlay have mounts of their own.
    fn evict(&mut self, now: Instant) -> Vec<String> {
        let expired = self.kept.extract_if(|_, kept| kept.has_expired(now));
        let mut evicted: Vec<_> = expired.map(|(_, kept)| kept.mount_point).collect();
        while self.kept.len() > limits::OVERLAYS_MAX {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used);
            let key = oldest.map(|(key, _)| key.clone());
            evicted.extend(
                key.and_then(|key| self.kept.remove(&key))
                    .map(|kept| kept.mount_point),
            );
        }
        evicted
    }
}

impl Kept {
    fn is_current(&self, folder: FolderId, now: Instant) -> bool {
        self.folder == folder && !self.has_expired(now)
    }

    fn has_expired(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.created) >= limits::OVERLAY_AGE_MAX
    }
}

fn of_host(path: &Path) -> String {
    format!("{HOST}{}", path.display())
}

fn copy(mount_point: &str) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    open_tree(CWD, mount_point, flags).map_err(Into::into)
}

/// Mount points of the host below a path.
fn submounts(path: &Path) -> io::Result<Vec<PathBuf>> {
    let table = fs::read_to_string(format!("{HOST}/proc/thread-self/mountinfo"))?;
    let mount_points = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4)?.strip_prefix(HOST));
    let submounts = mount_points
        .map(PathBuf::from)
        .filter(|mount| mount.starts_with(path) && mount != path);
    Ok(submounts.collect())
}

/// The layers are relative paths, because a sandbox finds them in its `mountinfo`.
fn new_overlay(host: &str) -> io::Result<OwnedFd> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::process::chdir(host)?;
    let configured = layers(&context);
    rustix::process::chdir("/")?;
    configured?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(Into::into)
}

fn layers(context: &OwnedFd) -> io::Result<()> {
    fsconfig_set_string(context, "source", "overlay")?;
    fsconfig_set_string(context, "lowerdir", format!(".:{EMPTY}"))?;
    fsconfig_set_flag(context, "ro")?;
    fsconfig_create(context).map_err(Into::into)
}

fn attach(mount: &OwnedFd, mount_point: &str) -> io::Result<()> {
    fs::create_dir(mount_point)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(mount, "", CWD, mount_point, flags).map_err(Into::into)
}

fn detach(mount_point: &str) {
    let removed = unmount(mount_point, UnmountFlags::DETACH)
        .map_err(io::Error::from)
        .and_then(|()| fs::remove_dir(mount_point));
    if let Err(error) = removed {
        tracing::warn!(%error, "Overlay not unmounted; it remains until this process ends");
    }
}

/// Without an overlay: the host's own inodes, with all mounts below them.
pub(super) fn plain(path: &Path) -> io::Result<OwnedFd> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    let mount = open_tree(CWD, path, flags)?;
    sys::mount_setattr(mount.as_fd(), init::LOCKED, MountScope::All)?;
    Ok(mount)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn add(keeper: &mut Keeper, name: usize, used: Instant) {
        let kept = Kept {
            mount_point: format!("{KEPT}/{name}"),
            folder: FolderId { device: 1, inode: 1 },
            submounts: Vec::new(),
            created: used,
            used,
        };
        keeper
            .kept
            .insert(("tenant".to_owned(), PathBuf::from(format!("/{name}"))), kept);
    }

    #[test]
    fn overlays_above_the_limit_are_evicted_by_use() {
        let (mut keeper, start) = (Keeper::default(), Instant::now());
        for name in 0..limits::OVERLAYS_MAX + 2 {
            let name_of_age = (name + 7) % (limits::OVERLAYS_MAX + 2);
            add(
                &mut keeper,
                name_of_age,
                start + Duration::from_millis(name as u64),
            );
        }
        let now = start + Duration::from_secs(1);
        assert_eq!(keeper.evict(now), ["/kept/7", "/kept/8"]);
        assert_eq!(
            (keeper.kept.len(), keeper.evict(now).len()),
            (limits::OVERLAYS_MAX, 0)
        );
    }

    /// What has changed on the host shows after this time.
    #[test]
    fn overlays_expire() {
        let (mut keeper, start) = (Keeper::default(), Instant::now());
        add(&mut keeper, 1, start);
        add(&mut keeper, 2, start + Duration::from_secs(1));
        let last = start + limits::OVERLAY_AGE_MAX;
        assert!(keeper.evict(last - Duration::from_millis(1)).is_empty());
        assert_eq!(keeper.evict(last), ["/kept/1"]);
        let kept = keeper.kept.values().next().unwrap();
        let replaced = FolderId {
            inode: 2,
            ..kept.folder
        };
        assert!(kept.is_current(kept.folder, last) && !kept.is_current(replaced, last));
    }
}
