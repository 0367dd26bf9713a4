//! Blank processes: forked in the background, used by cold runs and by the warm pool.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::advice;
use super::cgroup::{CgroupScope, CgroupSetup, Cgroups};
use super::identity::{Identity, Privilege};
use super::spawn::{BlankProcess, Spawner, TenantMounts};
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
    pending_for_tenant: usize,
    latest_tenant: Option<String>,
}

/// A slot of the queue, to be given back by [`BlankProcesses::add`] even after a failure.
#[derive(Debug)]
pub(super) struct Reservation {
    /// The tenant whose mounts are to be attached in advance.
    pub(super) tenant: Option<String>,
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
            (Err(why), degraded @ (Degraded::Refused | Degraded::UnusedByAuto)) => {
                return Err(advice::without_cgroups(&why, degraded));
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

    /// The oldest live one with the mounts of this tenant, or else with those of none.
    pub(super) fn take(&self, tenant: &str) -> Option<BlankProcess> {
        loop {
            let waiting = self.queue().take(tenant, Instant::now())?;
            if waiting.is_alive() {
                return Some(waiting);
            }
        }
    }

    /// A slot if another one is needed. Half of them get the mounts of the tenant that ran last.
    pub(super) fn reserve_slot(&self) -> Option<Reservation> {
        let mut queue = self.queue();
        if queue.ready.len() + queue.pending >= self.max {
            return None;
        }
        queue.pending += 1;
        let dressed = queue
            .ready
            .iter()
            .filter(|waiting| waiting.tenant.is_some())
            .count();
        let tenant = queue.latest_tenant.clone();
        let tenant = tenant.filter(|_| dressed + queue.pending_for_tenant < self.max / 2);
        queue.pending_for_tenant += usize::from(tenant.is_some());
        Some(Reservation { tenant })
    }

    pub(super) fn add(&self, reservation: &Reservation, made: Option<BlankProcess>) {
        let mut queue = self.queue();
        queue.pending -= 1;
        queue.pending_for_tenant -= usize::from(reservation.tenant.is_some());
        queue.ready.extend(made);
    }

    /// Those whose mounts are too old to be used. Dropping them blocks.
    pub(super) fn take_expired(&self) -> Vec<BlankProcess> {
        let (now, mut queue) = (Instant::now(), self.queue());
        let all = std::mem::take(&mut queue.ready).into_iter();
        let (expired, ready) = all.partition(|waiting| {
            waiting
                .tenant
                .as_ref()
                .is_some_and(|mounts| mounts.have_expired(now))
        });
        queue.ready = ready;
        expired.into()
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

impl BlankQueue {
    fn take(&mut self, tenant: &str, now: Instant) -> Option<BlankProcess> {
        self.latest_tenant = Some(tenant.to_owned());
        let suits = |mounts: &TenantMounts| mounts.tenant == tenant && !mounts.have_expired(now);
        let prepared = |waiting: &BlankProcess| waiting.tenant.as_ref().is_some_and(suits);
        let place = self.ready.iter().position(prepared);
        let place = place.or_else(|| self.ready.iter().position(|waiting| waiting.tenant.is_none()))?;
        self.ready.remove(place)
    }
}
