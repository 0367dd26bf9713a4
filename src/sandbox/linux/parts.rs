//! What all sandboxes of this process have in common, and how one of them is told what it is to be.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::mount::{OpenTreeFlags, open_tree};

use super::identity::Power;
#[cfg(feature = "testing")]
use super::mutation;
use super::plan::{self, Bounds, HostRoot, Source, Wanted, Ways};
use super::pool::Pool;
use super::spawn::Waiting;
use super::{Settings, handover, host, init};
use crate::execution::ResourceLimits;
use crate::ids::InstanceId;
use crate::sandbox::Mounted;
use crate::sys::{self, Reach};

/// What all sandboxes of this process have in common.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) host: HostRoot,
    pub(super) power: Power,
    pub(super) pool: Pool,
    /// This process's mount namespace, as `/proc` names it.
    pub(super) own_mounts: String,
    #[cfg(feature = "testing")]
    pub(super) removed: mutation::Removed,
}

impl Parts {
    pub(super) fn open(settings: &Settings, instance: InstanceId) -> Result<Self, String> {
        host::check_kernel()?;
        let power = Power::of_this_process()?;
        let own_mounts =
            handover::own_mounts().map_err(|error| format!("/proc cannot be read: {error}; mount it"))?;
        Ok(Self {
            host: host::root(),
            power,
            pool: Pool::open(settings, instance, power)?,
            own_mounts,
            #[cfg(feature = "testing")]
            removed: mutation::Removed::default(),
        })
    }

    /// Makes a process that waits and does already what is the same for every sandbox. Blocks.
    pub(super) fn make(&self) -> std::io::Result<Waiting> {
        let waiting = self.pool.make(self.power)?;
        let plan = plan::before(&self.host, self.ways());
        #[cfg(feature = "testing")]
        let plan = self.removed.from(plan, 0);
        let frame = handover::frame(plan, self.own_mounts.clone())?;
        handover::send(waiting.link.as_fd(), &frame, &[])?;
        Ok(waiting)
    }

    fn ways(&self) -> Ways {
        match self.power {
            Power::Root => Ways::Handed,
            Power::Ordinary { .. } => Ways::Walked,
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        self.pool.cgroups().map_or(Bounds::Rlimits, |_| Bounds::Cgroup)
    }

    pub(super) fn hand_over(
        &self,
        link: &std::os::unix::net::UnixStream,
        files: &[Mounted<'_>],
        bounds: &ResourceLimits,
    ) -> std::io::Result<()> {
        let mut mounts = Vec::new();
        let sources = files
            .iter()
            .map(|mounted| Ok((mounted.at.as_str(), self.source(mounted.folder, &mut mounts)?)))
            .collect::<std::io::Result<_>>()?;
        let plan = plan::after(&Wanted {
            files: sources,
            limits: bounds,
            bounds: self.bounds(),
            ways: self.ways(),
        });
        #[cfg(feature = "testing")]
        let plan = self
            .removed
            .from(plan, plan::before(&self.host, self.ways()).steps.len());
        let frame = handover::frame(plan, self.own_mounts.clone())?;
        let borrowed: Vec<_> = mounts.iter().map(|mount| mount.as_fd()).collect();
        handover::send(link.as_fd(), &frame, &borrowed)
    }

    /// How the sandbox gets at a folder; what only this process can mount is added to `mounts`.
    fn source(&self, folder: &Path, mounts: &mut Vec<OwnedFd>) -> std::io::Result<Source> {
        match self.power {
            Power::Root => {
                mounts.push(detached(folder)?);
                Ok(Source::Handed)
            }
            Power::Ordinary { .. } => {
                let path = std::fs::canonicalize(folder)?;
                let text = path.into_os_string().into_string();
                text.map(Source::Path)
                    .map_err(|_| std::io::Error::other("the data folder's path is not UTF-8; move it"))
            }
        }
    }
}

/// A read-only mount of a folder that is nowhere yet: the way to the folder stays closed to the sandbox's user.
fn detached(folder: &Path) -> std::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = open_tree(rustix::fs::CWD, folder, flags)?;
    sys::mount_setattr(mount.as_fd(), init::LOCKED, Reach::One)?;
    Ok(mount)
}
