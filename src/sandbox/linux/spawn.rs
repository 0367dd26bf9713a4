//! Forks blank processes through the zygote: each in its own namespaces and cgroup, waiting for its plan.

use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::cgroup::{self, Cell};
use super::identity::Identity;
use super::zygote::{Child, ForkRequest, Zygote};
use crate::limits;

#[derive(Debug)]
pub(super) struct Spawner {
    /// Calls to the thread that is the parent of all sandboxes. A sandbox dies with its parent thread, and the
    /// runtime's threads may end.
    parent: mpsc::Sender<mpsc::SyncSender<io::Result<Zygote>>>,
    zygote: Mutex<Option<Zygote>>,
}

/// As in containers.
const OOM_SCORE: &str = "500";

struct Spawned {
    link: UnixStream,
    diagnostics: OwnedFd,
    child: Child,
}

/// Dropping it kills all processes inside and removes its cgroup.
#[derive(Debug)]
pub(super) struct BlankProcess {
    pub(super) link: UnixStream,
    pub(super) diagnostics: Diagnostics,
    pub(super) body: FirstProcess,
    /// `None` if it can still become a sandbox of any tenant.
    pub(super) tenant: Option<TenantMounts>,
}

/// The tenant whose overlays of host folders are attached.
#[derive(Debug)]
pub(super) struct TenantMounts {
    pub(super) tenant: String,
    pub(super) attached: Instant,
}

/// The first process of a sandbox, its cgroup and its ids.
#[derive(Debug)]
pub(super) struct FirstProcess {
    /// Not reused until dropped.
    pub(super) id: Pid,
    process: OwnedFd,
    /// `None` in the degraded form only.
    pub(super) cell: Option<Cell>,
    identity: Identity,
    /// The mount namespace before the final one. Held, or the process would wait for the kernel to free it.
    _left_mounts: Option<File>,
}

/// Standard error of the process before it becomes the guest.
#[derive(Debug)]
pub(super) struct Diagnostics(OwnedFd);

impl Spawner {
    /// Reads the program once into a sealed file in memory, so that it cannot change while the server runs.
    pub(super) fn start(program: &Path) -> io::Result<Self> {
        let program = sealed(program)?;
        let (parent, orders) = mpsc::channel::<mpsc::SyncSender<_>>();
        std::thread::Builder::new()
            .name("sandbox-parent".to_owned())
            .spawn(move || {
                for wanted in orders {
                    // Dropped, and thus ended, if the caller has disconnected.
                    let _ = wanted.send(Zygote::start(&program));
                }
            })?;
        Ok(Self {
            parent,
            zygote: Mutex::default(),
        })
    }

    /// Blocking; with cgroups of version 1 while the process is moved.
    pub(super) fn make(&self, identity: Identity, cell: Option<Cell>) -> io::Result<BlankProcess> {
        let spawned = match self.fork(cell.as_ref(), identity.owner()) {
            Ok(spawned) => spawned,
            Err(error) => {
                if let Some(cell) = cell {
                    cell.remove();
                }
                return Err(error);
            }
        };
        let Spawned {
            link,
            diagnostics,
            child: Child { id, process },
        } = spawned;
        let mounts = File::open(format!("/proc/{}/ns/mnt", id.as_raw_nonzero())).ok();
        let waiting = BlankProcess {
            link,
            diagnostics: Diagnostics(diagnostics),
            body: FirstProcess {
                id,
                process,
                cell,
                identity,
                _left_mounts: mounts,
            },
            tenant: None,
        };
        waiting.body.identity.map(id)?;
        if let Some(cell) = &waiting.body.cell {
            cell.add_process(id)?;
        }
        // If the host runs out of memory, the kernel kills sandboxes before the server. Set from outside, so that
        // they cannot lower it.
        std::fs::write(format!("/proc/{}/oom_score_adj", id.as_raw_nonzero()), OOM_SCORE)?;
        (&waiting.link).write_all(&[1])?;
        Ok(waiting)
    }

    /// By the current zygote, or by a new one if it has ended or has forked often enough. Each attempt has its own
    /// connection: a child whose response was lost ends with it.
    fn fork(&self, cell: Option<&Cell>, owner: Option<u32>) -> io::Result<Spawned> {
        let mut place = self.zygote.lock().unwrap_or_else(PoisonError::into_inner);
        let there = place.take().filter(|zygote| !zygote.is_spent());
        let (zygote, spawned) = match there.map(|zygote| fork_by(zygote, cell, owner)) {
            Some(Ok(forked)) => forked,
            Some(Err(error)) => {
                tracing::warn!(%error, "Zygote did not fork; starting another");
                fork_by(self.zygote()?, cell, owner)?
            }
            None => fork_by(self.zygote()?, cell, owner)?,
        };
        *place = Some(zygote);
        Ok(spawned)
    }

    /// The next fork starts another zygote.
    pub(super) fn stop_zygote(&self) {
        let zygote = self.zygote.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(zygote);
    }

    #[cfg(feature = "testing")]
    pub(super) fn zygote_id(&self) -> Option<u32> {
        let place = self.zygote.lock().unwrap_or_else(PoisonError::into_inner);
        place.as_ref().map(Zygote::id)
    }

    fn zygote(&self) -> io::Result<Zygote> {
        let gone = || io::Error::other("the thread that sandboxes are children of has ended");
        let (wanted, started) = mpsc::sync_channel(1);
        self.parent.send(wanted).map_err(|_| gone())?;
        started.recv().map_err(|_| gone())?
    }
}

/// Kills the zygote after an error.
fn fork_by(mut zygote: Zygote, cell: Option<&Cell>, owner: Option<u32>) -> io::Result<(Zygote, Spawned)> {
    match ask(&mut zygote, cell, owner) {
        Ok(spawned) => Ok((zygote, spawned)),
        Err(error) => {
            zygote.give_up();
            Err(error)
        }
    }
}

fn ask(zygote: &mut Zygote, cell: Option<&Cell>, owner: Option<u32>) -> io::Result<Spawned> {
    let (link, far_link) = UnixStream::pair()?;
    let (diagnostics, far_diagnostics) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK)?;
    let cgroup = cell.map_or(Ok(None), Cell::cgroup_folder)?;
    let child = zygote.fork(&ForkRequest {
        link: far_link.as_fd(),
        diagnostics: far_diagnostics.as_fd(),
        cgroup: cgroup::borrowed(cgroup.as_ref()),
        owner,
    })?;
    Ok(Spawned {
        link,
        diagnostics,
        child,
    })
}

impl TenantMounts {
    pub(super) fn have_expired(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.attached) >= limits::OVERLAY_AGE_MAX
    }
}

impl BlankProcess {
    pub(super) fn is_alive(&self) -> bool {
        !has_ended(&self.body.process, NOW)
    }
}

const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
/// A process whose connection is closed ends soon.
const SOON: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};
/// A killed PID namespace ends within this time, unless the kernel has a problem.
const GONE_WITHIN: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};

fn has_ended(process: &OwnedFd, within: Timespec) -> bool {
    let mut wanted = [PollFd::new(process, PollFlags::IN)];
    poll(&mut wanted, Some(&within)).is_ok_and(|ready| ready > 0)
}

impl FirstProcess {
    pub(super) fn process(&self) -> io::Result<OwnedFd> {
        self.process.try_clone()
    }

    /// How the process ended, for messages.
    pub(super) async fn exit_description(&self) -> String {
        if !self.ends_soon().await {
            return "its first process is still running".to_owned();
        }
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let status = rustix::process::waitid(WaitId::PidFd(self.process.as_fd()), peek)
            .ok()
            .flatten();
        match status.map(|status| (status.exit_status(), status.terminating_signal())) {
            Some((Some(code), _)) => format!("its first process exited with {code}"),
            Some((None, Some(signal))) => format!("its first process was killed by signal {signal}"),
            Some((None, None)) | None => "its first process ended".to_owned(),
        }
    }

    async fn ends_soon(&self) -> bool {
        let Ok(process) = self.process() else {
            return has_ended(&self.process, NOW);
        };
        tokio::task::spawn_blocking(move || has_ended(&process, SOON))
            .await
            .unwrap_or(false)
    }

    /// Kills all processes inside: a PID namespace ends with its PID 1.
    pub(super) fn kill(&self) {
        if let Some(cell) = &self.cell {
            cell.kill();
        }
        let _ = rustix::process::pidfd_send_signal(&self.process, Signal::KILL);
    }
}

impl Drop for FirstProcess {
    /// Waits for killed processes: some milliseconds.
    fn drop(&mut self) {
        self.kill();
        if has_ended(&self.process, GONE_WITHIN) {
            let _ = rustix::process::waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED);
        }
        if let Some(cell) = &self.cell {
            cell.remove();
        }
    }
}

const DIAGNOSTICS_BYTES_MAX: u64 = 4096;

impl Diagnostics {
    /// The text so far, safe to log.
    pub(super) fn text(&self) -> String {
        let Ok(copy) = self.0.try_clone() else {
            return String::new();
        };
        let mut bytes = Vec::new();
        // Non-blocking: ends when no more bytes are available.
        let _ = File::from(copy)
            .take(DIAGNOSTICS_BYTES_MAX)
            .read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes)
            .trim_end()
            .escape_debug()
            .to_string()
    }
}

/// A read-only copy in memory.
fn sealed(program: &Path) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 reject the flag.
    let memory = rustix::fs::memfd_create("skillbox", flags | MemfdFlags::EXEC)
        .or_else(|_| rustix::fs::memfd_create("skillbox", flags))?;
    let mut copy = File::from(memory);
    io::copy(&mut File::open(program)?, &mut copy)?;
    copy.set_permissions(Permissions::from_mode(0o555))?;
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&copy, seals)?;
    // Only a descriptor without the right to write can be executed.
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&copy));
    File::open(path).map(Into::into)
}
