//! Creates the sandboxes of this process: forks blank processes and sends each its plan.

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tokio_util::task::TaskTracker;

use super::blank_processes::BlankProcesses;
use super::identity::Privilege;
#[cfg(feature = "testing")]
use super::mutation;
use super::overlays::{self, Overlays};
use super::plan::{self, LimitMechanism, MountAccess, MountSource, SandboxInput};
use super::spawn::{BlankProcess, TenantMounts};
use super::step::SetupPlan;
use super::visible::HostRoot;
use super::{Settings, host, plan_frame, plan_host};
use crate::execution::ResourceLimits;
use crate::ids::InstanceId;
use crate::sandbox::{Mount, SandboxSpec};

#[derive(Debug)]
pub(super) struct SandboxFactory {
    pub(super) host: HostRoot,
    pub(super) privilege: Privilege,
    pub(super) blank: BlankProcesses,
    /// `None` for an ordinary user, and where the kernel has no overlays: sandboxes then share inodes with the host.
    overlays: Option<Overlays>,
    /// Ends sandboxes.
    pub(super) background: TaskTracker,
    /// This process's mount namespace, as `/proc` names it.
    pub(super) own_mounts: String,
    #[cfg(feature = "testing")]
    pub(super) removed: mutation::Removed,
}

/// The part of a [`SandboxSpec`] that a native sandbox consists of.
#[derive(Debug)]
pub(super) struct SandboxParts<'a> {
    pub(super) tenant: &'a str,
    pub(super) mounts: Vec<Mount<'a>>,
    pub(super) limits: &'a ResourceLimits,
}

impl<'a> From<&'a SandboxSpec> for SandboxParts<'a> {
    fn from(spec: &'a SandboxSpec) -> Self {
        Self {
            tenant: spec.tenant.as_str(),
            mounts: spec.mounts(),
            limits: &spec.limits,
        }
    }
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
            overlays: overlays_for(privilege),
            blank: BlankProcesses::open(settings, instance, privilege)?,
            background,
            own_mounts,
            #[cfg(feature = "testing")]
            removed: mutation::Removed::default(),
        })
    }

    /// Forks a blank process and sends it the steps that are the same for every sandbox, or for all of a tenant. Blocks.
    pub(super) fn make(&self, tenant: Option<&str>) -> std::io::Result<BlankProcess> {
        let mut waiting = self.blank.make(self.privilege)?;
        let plan = plan_host::host_plan(&self.host, self.ways());
        #[cfg(feature = "testing")]
        let plan = self.removed.from(plan, 0);
        self.send(&waiting.link, plan, &[])?;
        if let Some(tenant) = tenant {
            waiting.tenant = self.attach_tenant_mounts(&waiting.link, tenant)?;
        }
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

    /// Folders of the host. An ordinary user's blank processes have them already.
    fn attach_tenant_mounts(&self, link: &UnixStream, tenant: &str) -> std::io::Result<Option<TenantMounts>> {
        if self.ways() == MountAccess::ByPath {
            return Ok(None);
        }
        let attached = Instant::now();
        let folders = plan_host::shown_folders(&self.host).map(PathBuf::from);
        let mounts = self.mounts(tenant, folders.collect())?;
        let plan = plan_host::tenant_plan(&self.host);
        #[cfg(feature = "testing")]
        let plan = self
            .removed
            .from(plan, plan_host::host_plan(&self.host, self.ways()).steps.len());
        self.send(link, plan, &mounts)?;
        Ok(Some(TenantMounts {
            tenant: tenant.to_owned(),
            attached,
        }))
    }

    /// The rest of a plan, for a blank process that has these mounts.
    pub(super) fn send_plan(
        &self,
        link: &UnixStream,
        parts: &SandboxParts<'_>,
        attached: Option<&TenantMounts>,
    ) -> std::io::Result<()> {
        if attached.is_none() {
            self.attach_tenant_mounts(link, parts.tenant)?;
        }
        let mut handed = Vec::new();
        let sources = parts
            .mounts
            .iter()
            .map(|mounted| Ok((mounted.at.as_str(), self.source(mounted.folder, &mut handed)?)))
            .collect::<std::io::Result<_>>()?;
        let mounts = self.mounts(parts.tenant, handed)?;
        let plan = plan::run_plan(&SandboxInput {
            files: sources,
            limits: parts.limits,
            bounds: self.bounds(),
            ways: self.ways(),
        });
        #[cfg(feature = "testing")]
        let plan = self
            .removed
            .from(plan, plan_host::before_run(&self.host, self.ways()).len());
        self.send(link, plan, &mounts)
    }

    fn send(&self, link: &UnixStream, plan: SetupPlan, mounts: &[OwnedFd]) -> std::io::Result<()> {
        let frame = plan_frame::frame(plan, self.own_mounts.clone())?;
        let mounts: Vec<_> = mounts.iter().map(OwnedFd::as_fd).collect();
        plan_frame::send(link.as_fd(), &frame, &mounts)
    }

    /// How the sandbox reaches a folder. One that only this process can mount is added to `handed`.
    fn source(&self, folder: &Path, handed: &mut Vec<PathBuf>) -> std::io::Result<MountSource> {
        let path = std::fs::canonicalize(folder)?;
        match self.privilege {
            Privilege::Root => {
                handed.push(path);
                Ok(MountSource::Passed)
            }
            Privilege::Ordinary { .. } => {
                let text = path.into_os_string().into_string();
                text.map(MountSource::Path)
                    .map_err(|_| std::io::Error::other("the data folder's path is not UTF-8; move it"))
            }
        }
    }

    /// Detached read-only mounts: the sandbox's user cannot reach these paths.
    fn mounts(&self, tenant: &str, paths: Vec<PathBuf>) -> std::io::Result<Vec<OwnedFd>> {
        match &self.overlays {
            _ if paths.is_empty() => Ok(Vec::new()),
            Some(overlays) => overlays.mounts(tenant.to_owned(), paths),
            None => paths.iter().map(|path| overlays::plain(path)).collect(),
        }
    }
}

fn overlays_for(privilege: Privilege) -> Option<Overlays> {
    let Privilege::Root = privilege else {
        return None;
    };
    Overlays::start()
        .inspect_err(|error| tracing::warn!(%error, "No overlays: programs in sandboxes see file events and locks of the host"))
        .ok()
}
