//! The server's side of a birth: a process in namespaces of its own and inside its bounds that waits to be told what to be.

use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::cgroup::{self, Cell};
use super::identity::{Identity, Power};
use super::plan::NOBODY;
use crate::sys::{self, Birth, Child};

/// The argument that turns the binary into the maker of its own sandbox.
pub(super) const COMMAND: &std::ffi::CStr = c"sandbox-native";

/// Gives birth on a thread of its own that lives as long as this: a sandbox dies with the thread that made it, and the
/// runtime's threads come and go.
#[derive(Debug)]
pub(super) struct Maker {
    orders: Mutex<mpsc::Sender<Order>>,
}

/// As in the posture of containers.
const OOM_SCORE: &str = "500";

/// A process that was told to go on becomes its program, which is in memory, within this time.
const OWN_MEMORY_WITHIN: Duration = Duration::from_secs(5);

/// What the thread is asked for.
struct Order {
    link: OwnedFd,
    diagnostics: OwnedFd,
    birthplace: Option<OwnedFd>,
    born: mpsc::SyncSender<io::Result<Child>>,
}

/// A process that waits. Dropping it kills it, all in it, and removes its cgroup.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) link: UnixStream,
    pub(super) diagnostics: Diagnostics,
    pub(super) body: Body,
}

/// What must be gone in the end.
#[derive(Debug)]
pub(super) struct Body {
    /// The first process; its id is nobody else's until this is dropped.
    pub(super) id: Pid,
    process: OwnedFd,
    /// `None` in the degraded form only.
    pub(super) cell: Option<Cell>,
    identity: Identity,
    /// The mount namespace that it is born in and leaves for one whose mounts are locked. Held, or it would have to wait until
    /// the kernel has taken the old one apart.
    _left_mounts: Option<File>,
}

/// What the process says on its standard error before it is the guest.
#[derive(Debug)]
pub(super) struct Diagnostics(OwnedFd);

impl Maker {
    /// Reads the program once into a sealed file in memory, so that nobody can change what sandboxes begin with.
    pub(super) fn start(program: &Path, power: Power) -> io::Result<Self> {
        let program = sealed(program)?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let (orders, received) = mpsc::channel::<Order>();
        std::thread::Builder::new()
            .name("sandbox-maker".to_owned())
            .spawn(move || {
                for order in received {
                    let born = sys::clone_into_namespaces(&Birth {
                        cgroup: cgroup::borrowed(order.birthplace.as_ref()),
                        program: program.as_fd(),
                        command: COMMAND,
                        link: order.link.as_fd(),
                        null: null.as_fd(),
                        diagnostics: order.diagnostics.as_fd(),
                        id: NOBODY,
                        groups: power.groups(),
                    });
                    // Whoever asked may have gone; then the process meets a closed link and ends.
                    let _ = order.born.send(born);
                }
            })?;
        Ok(Self {
            orders: Mutex::new(orders),
        })
    }

    /// Makes a process that waits inside `cell`. Blocks, on version 1 for the time that moving it takes.
    pub(super) fn make(&self, identity: Identity, cell: Option<Cell>) -> io::Result<Waiting> {
        let (link, far_link) = UnixStream::pair()?;
        let (diagnostics, far_diagnostics) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK)?;
        let (born, answer) = mpsc::sync_channel(1);
        let order = Order {
            link: far_link.into(),
            diagnostics: far_diagnostics,
            birthplace: cell.as_ref().map_or(Ok(None), Cell::birthplace)?,
            born,
        };
        let gone = |_| io::Error::other("the thread that makes sandboxes has ended");
        self.orders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .send(order)
            .map_err(|_| gone(mpsc::RecvError))?;
        let Child { id, process, cradle } = answer.recv().map_err(gone)??;
        let mounts = File::open(format!("/proc/{}/ns/mnt", id.as_raw_nonzero())).ok();
        let waiting = Waiting {
            link,
            diagnostics: Diagnostics(diagnostics),
            body: Body {
                id,
                process,
                cell,
                identity,
                _left_mounts: mounts,
            },
        };
        waiting.body.identity.map(id)?;
        if let Some(cell) = &waiting.body.cell {
            cell.admit(id)?;
        }
        (&waiting.link).write_all(&[1])?;
        // Not before it has memory of its own, or the score would be that of whoever shares it.
        cradle.wait(OWN_MEMORY_WITHIN)?;
        // When the host runs out of memory, sandboxes go before the server; set from outside, it is their floor.
        let score = format!("/proc/{}/oom_score_adj", id.as_raw_nonzero());
        match std::fs::write(score, OOM_SCORE) {
            // It has ended, and whoever wants to use it learns why.
            Err(_) if !waiting.is_alive() => Ok(waiting),
            written => written.map(|()| waiting),
        }
    }
}

impl Waiting {
    /// Whether it still waits.
    pub(super) fn is_alive(&self) -> bool {
        !has_ended(&self.body.process, NOW)
    }
}

const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
/// A killed process of PID namespace is gone within this time, or the kernel is in trouble.
const GONE_WITHIN: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};

fn has_ended(process: &OwnedFd, within: Timespec) -> bool {
    let mut wanted = [PollFd::new(process, PollFlags::IN)];
    poll(&mut wanted, Some(&within)).is_ok_and(|ready| ready > 0)
}

impl Body {
    /// Another descriptor that stands for the first process.
    pub(super) fn process(&self) -> io::Result<OwnedFd> {
        self.process.try_clone()
    }

    /// How the first process ended, if it has, for people.
    pub(super) fn fate(&self) -> String {
        const SOON: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 200_000_000,
        };
        if !has_ended(&self.process, SOON) {
            return "its first process still lives".to_owned();
        }
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let status = rustix::process::waitid(WaitId::PidFd(self.process.as_fd()), peek)
            .ok()
            .flatten();
        match status.map(|status| (status.exit_status(), status.terminating_signal())) {
            Some((Some(code), _)) => format!("its first process exited with {code}"),
            Some((None, Some(signal))) => format!("its first process was ended by signal {signal}"),
            Some((None, None)) | None => "its first process has gone".to_owned(),
        }
    }

    /// Kills everything inside: the end of its PID 1 is the end of a PID namespace.
    pub(super) fn kill(&self) {
        if let Some(cell) = &self.cell {
            cell.kill();
        }
        let _ = rustix::process::pidfd_send_signal(&self.process, Signal::KILL);
    }
}

impl Drop for Body {
    /// Waits for the end of what was killed: some milliseconds.
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

/// Bytes that are kept of what the process said.
const DIAGNOSTICS_BYTES_MAX: u64 = 4096;

impl Diagnostics {
    /// The text so far, safe to log.
    pub(super) fn text(&self) -> String {
        let Ok(copy) = self.0.try_clone() else {
            return String::new();
        };
        let mut bytes = Vec::new();
        // The end is that nothing more is there: reading does not wait.
        let _ = File::from(copy)
            .take(DIAGNOSTICS_BYTES_MAX)
            .read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes)
            .trim_end()
            .escape_debug()
            .to_string()
    }
}

/// A copy in memory that nobody can write to.
fn sealed(program: &Path) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know that a file in memory may be meant for execution, and refuse to hear it.
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
