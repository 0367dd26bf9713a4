//! Creates the sandboxes of this process: forks blank processes and sends each its plan.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::mount::{OpenTreeFlags, open_tree};
use tokio_util::task::TaskTracker;

use super::blank_processes::BlankProcesses;
use super::identity::Privilege;
#[cfg(feature = "testing")]
use super::mutation;
use super::plan::{self, LimitMechanism, MountAccess, MountSource, SandboxInput};
use super::spawn::BlankProcess;
use super::visible::HostRoot;
use super::{Settings, host, init, plan_frame};
use crate::execution::ResourceLimits;
use crate::ids::InstanceId;
use crate::sandbox::Mount;
use crate::sys::{self, MountScope};

#[derive(Debug)]
pub(super) struct SandboxFactory {
    pub(super) host: HostRoot,
    pub(super) privilege: Privilege,
    pub(super) blank: BlankProcesses,
    /// Ends sandboxes.
    pub(super) background: TaskTracker,
    /// This process's mount namespace, as `/proc` names it.
    pub(super) own_mounts: String,
    #[cfg(feature = "testing")]
    pub(super) removed: mutation::Removed,
}

impl SandboxFactory {
    pub(super) fn open(
        settings: &Settings,
        instance: InstanceId,
        background: TaskTracker,
    ) -> Result<Self, String> {
        host::check_kernel()?;
        let privilege = Privilege::of_this_process()?;
        let own_mounts =
            plan_frame::own_mounts().map_err(|error| format!("/proc cannot be read: {error}; mount it"))?;
        Ok(Self {
            host: host::root(&settings.folders),
            privilege,
            blank: BlankProcesses::open(settings, instance, privilege)?,
            background,
            own_mounts,
            #[cfg(feature = "testing")]
            removed: mutation::Removed::default(),
        })
    }

    /// Forks a blank process and sends it the steps that are the same for every sandbox. Blocks.
    pub(super) fn make(&self) -> std::io::Result<BlankProcess> {
        let waiting = self.blank.make(self.privilege)?;
        let plan = plan::host_plan(&self.host, self.ways());
        #[cfg(feature = "testing")]
        let plan = self.removed.from(plan, 0);
        let frame = plan_frame::frame(plan, self.own_mounts.clone())?;
        plan_frame::send(waiting.link.as_fd(), &frame, &[])?;
        Ok(waiting)
    }

    fn ways(&self) -> MountAccess {
        match self.privilege {
            Privilege::Root => MountAccess::Passed,
            Privilege::Ordinary { .. } => MountAccess::ByPath,
        }
    }

    pub(super) fn bounds(&self) -> LimitMechanism {
        self.blank
            .cgroups()
            .map_or(LimitMechanism::Rlimits, |_| LimitMechanism::Cgroup)
    }

    pub(super) fn send_plan(
        &self,
        link: &std::os::unix::net::UnixStream,
        files: &[Mount<'_>],
        bounds: &ResourceLimits,
    ) -> std::io::Result<()> {
        let mut mounts = Vec::new();
        let sources = files
            .iter()
            .map(|mounted| Ok((mounted.at.as_str(), self.source(mounted.folder, &mut mounts)?)))
            .collect::<std::io::Result<_>>()?;
        let plan = plan::run_plan(&SandboxInput {
            files: sources,
            limits: bounds,
            bounds: self.bounds(),
            ways: self.ways(),
        });
        #[cfg(feature = "testing")]
        let plan = self
            .removed
            .from(plan, plan::host_plan(&self.host, self.ways()).steps.len());
        let frame = plan_frame::frame(plan, self.own_mounts.clone())?;
        let borrowed: Vec<_> = mounts.iter().map(|mount| mount.as_fd()).collect();
        plan_frame::send(link.as_fd(), &frame, &borrowed)
    }

    /// How the sandbox reaches a folder. Mounts that only this process can make are added to `mounts`.
    fn source(&self, folder: &Path, mounts: &mut Vec<OwnedFd>) -> std::io::Result<MountSource> {
        match self.privilege {
            Privilege::Root => {
                mounts.push(detached(folder)?);
                Ok(MountSource::Passed)
            }
            Privilege::Ordinary { .. } => {
                let path = std::fs::canonicalize(folder)?;
                let text = path.into_os_string().into_string();
                text.map(MountSource::Path)
                    .map_err(|_| std::io::Error::other("the data folder's path is not UTF-8; move it"))
            }
        }
    }
}

/// A detached read-only mount: the sandbox's user cannot reach the folder by its path.
fn detached(folder: &Path) -> std::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = open_tree(rustix::fs::CWD, folder, flags)?;
    sys::mount_setattr(mount.as_fd(), init::LOCKED, MountScope::One)?;
    Ok(mount)
}
