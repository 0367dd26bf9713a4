//! Processes that wait for an execution, made while nobody waits for them.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::cgroup::{Cgroups, Found, Reach};
use super::identity::{Identity, Power};
use super::spawn::{Maker, Waiting};
use super::{Degraded, Settings};
use crate::ids::InstanceId;
use crate::limits;

/// Makes processes and keeps those that wait.
#[derive(Debug)]
pub(super) struct Pool {
    maker: Maker,
    /// `None` in the degraded form only.
    cgroups: Option<Cgroups>,
    shelf: Mutex<Shelf>,
    waiting_max: usize,
    made: AtomicU64,
}

#[derive(Debug, Default)]
struct Shelf {
    ready: VecDeque<Waiting>,
    /// How many are being made for it.
    coming: usize,
}

impl Pool {
    pub(super) fn open(settings: &Settings, instance: InstanceId, power: Power) -> Result<Self, String> {
        let reach = match power {
            Power::Root => Reach::Top,
            Power::Ordinary { .. } => Reach::Own,
        };
        let cgroups = match (
            Cgroups::open(&Found::look(reach), instance),
            settings.allow_degraded,
        ) {
            (Ok(cgroups), _) => Some(cgroups),
            (Err(_), Degraded::Allowed) => None,
            (Err(why), Degraded::Refused) => {
                return Err(format!(
                    "memory and CPU of a native sandbox cannot be bounded: {why}; or set sandbox.native.allow_degraded, which leaves promises P6 and P7 to limits on each process and a watchdog"
                ));
            }
        };
        let program = settings.program.as_deref().unwrap_or(Path::new("/proc/self/exe"));
        let maker = Maker::start(program)
            .map_err(|error| format!("`{}` cannot become a sandbox: {error}", program.display()))?;
        Ok(Self {
            maker,
            cgroups,
            shelf: Mutex::default(),
            waiting_max: settings.waiting_max,
            made: AtomicU64::new(0),
        })
    }

    pub(super) fn cgroups(&self) -> Option<&Cgroups> {
        self.cgroups.as_ref()
    }

    /// Makes one process that waits. Blocks.
    pub(super) fn make(&self, power: Power) -> io::Result<Waiting> {
        let identity = Identity::claim(power)?;
        let name = self.made.fetch_add(1, Ordering::Relaxed).to_string();
        let cell = self
            .cgroups
            .as_ref()
            .map(|cgroups| cgroups.cell(&name, limits::PROCESSES_MAX));
        self.maker.make(identity, cell.transpose()?)
    }

    /// One that waits and lives.
    pub(super) fn take(&self) -> Option<Waiting> {
        loop {
            let waiting = self.shelf().ready.pop_front()?;
            if waiting.is_alive() {
                return Some(waiting);
            }
        }
    }

    /// Whether one more may be made to wait; then [`Self::put`] follows, whatever comes of it.
    pub(super) fn wants_one(&self) -> bool {
        let mut shelf = self.shelf();
        let is_room = shelf.ready.len() + shelf.coming < self.waiting_max;
        shelf.coming += usize::from(is_room);
        is_room
    }

    pub(super) fn put(&self, made: Option<Waiting>) {
        let mut shelf = self.shelf();
        shelf.coming -= 1;
        shelf.ready.extend(made);
    }

    /// Ends all that wait, and what they are copies of. Blocks.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut self.shelf().ready);
        drop(all);
        self.maker.rest();
    }

    /// Removes what dead processes left.
    pub(super) fn sweep(&self) -> io::Result<usize> {
        self.cgroups.as_ref().map_or(Ok(0), Cgroups::sweep)
    }

    fn shelf(&self) -> std::sync::MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
