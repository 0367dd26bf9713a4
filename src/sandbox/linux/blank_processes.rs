//! Blank processes: forked in the background, used by cold runs and by the warm pool.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::cgroup::{CgroupScope, CgroupSetup, Cgroups};
use super::identity::{Identity, Privilege};
use super::spawn::{BlankProcess, Spawner};
use super::{Degraded, Settings};
use crate::ids::InstanceId;
use crate::limits;

#[derive(Debug)]
pub(super) struct BlankProcesses {
    spawner: Spawner,
    /// `None` in the degraded form only.
    cgroups: Option<Cgroups>,
    queue: Mutex<BlankQueue>,
    max: usize,
    made: AtomicU64,
}

#[derive(Debug, Default)]
struct BlankQueue {
    ready: VecDeque<BlankProcess>,
    pending: usize,
}

impl BlankProcesses {
    pub(super) fn open(
        settings: &Settings,
        instance: InstanceId,
        privilege: Privilege,
    ) -> Result<Self, String> {
        let reach = match privilege {
            Privilege::Root => CgroupScope::Top,
            Privilege::Ordinary { .. } => CgroupScope::Own,
        };
        let cgroups = match (
            Cgroups::open(&CgroupSetup::detect(reach), instance),
            settings.allow_degraded,
        ) {
            (Ok(cgroups), _) => Some(cgroups),
            (Err(_), Degraded::Allowed) => None,
            (Err(why), Degraded::Refused) => {
                return Err(format!(
                    "memory and CPU of native sandboxes cannot be limited: {why}; or set sandbox.native.allow_degraded, which keeps promises P6 and P7 only by limits on each process and a watchdog"
                ));
            }
        };
        let program = settings.program.as_deref().unwrap_or(Path::new("/proc/self/exe"));
        let spawner = Spawner::start(program)
            .map_err(|error| format!("`{}` cannot become a sandbox: {error}", program.display()))?;
        Ok(Self {
            spawner,
            cgroups,
            queue: Mutex::default(),
            max: settings.waiting_max,
            made: AtomicU64::new(0),
        })
    }

    pub(super) fn cgroups(&self) -> Option<&Cgroups> {
        self.cgroups.as_ref()
    }

    /// Blocking.
    pub(super) fn make(&self, privilege: Privilege) -> io::Result<BlankProcess> {
        let identity = Identity::claim(privilege)?;
        let name = self.made.fetch_add(1, Ordering::Relaxed).to_string();
        let cell = self
            .cgroups
            .as_ref()
            .map(|cgroups| cgroups.cell(&name, limits::PROCESSES_MAX));
        self.spawner.make(identity, cell.transpose()?)
    }

    /// The oldest live one.
    pub(super) fn take(&self) -> Option<BlankProcess> {
        loop {
            let waiting = self.queue().ready.pop_front()?;
            if waiting.is_alive() {
                return Some(waiting);
            }
        }
    }

    /// Whether another one is needed; if so, the caller must call [`Self::add`], even after a failure.
    pub(super) fn reserve_slot(&self) -> bool {
        let mut queue = self.queue();
        let is_room = queue.ready.len() + queue.pending < self.max;
        queue.pending += usize::from(is_room);
        is_room
    }

    pub(super) fn add(&self, made: Option<BlankProcess>) {
        let mut queue = self.queue();
        queue.pending -= 1;
        queue.ready.extend(made);
    }

    /// Ends all of them and the zygote. Blocking.
    pub(super) fn drain(&self) {
        let all = std::mem::take(&mut self.queue().ready);
        drop(all);
        self.spawner.stop_zygote();
    }

    /// Removes cgroups of dead servers.
    pub(super) fn sweep(&self) -> io::Result<usize> {
        self.cgroups.as_ref().map_or(Ok(0), Cgroups::sweep)
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, BlankQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
