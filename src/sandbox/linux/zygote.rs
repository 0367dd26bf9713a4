//! The zygote: a process that is initialised once and forks itself into new namespaces for each native sandbox. It never
//! receives anything of a tenant.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{self, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::cmsg_space;
use rustix::io::retry_on_intr;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, socketpair,
};
use rustix::process::{
    DumpableBehavior, Gid, Pid, PidfdFlags, Signal, Uid, WaitId, WaitIdOptions, pidfd_open,
};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::plan::NOBODY;
use crate::limits;
use crate::sys::{self, Forked};

/// A fork takes a millisecond; a zygote without response for this long counts as dead.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// A killed zygote ends within this time, unless the kernel has a problem.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
const POLL_EVERY: Duration = Duration::from_millis(1);
/// All children of a zygote have the same address layout, so it is replaced after this many.
const FORKS_MAX: u32 = 256;

/// Dropping it kills the zygote.
#[derive(Debug)]
pub(super) struct Zygote {
    orders: OwnedFd,
    process: process::Child,
    forks: u32,
}

#[derive(Debug)]
pub(super) struct Child {
    pub(super) id: Pid,
    pub(super) process: OwnedFd,
}

#[derive(Debug)]
pub(super) struct ForkRequest<'a> {
    /// Becomes descriptor 0. The child first waits for one byte on it.
    pub(super) link: BorrowedFd<'a>,
    /// Becomes descriptor 2.
    pub(super) diagnostics: BorrowedFd<'a>,
    /// Cgroup (version 2) of the child; the server's own if `None`.
    pub(super) cgroup: Option<BorrowedFd<'a>>,
    /// Outer user and group that own the child's namespaces; the server's own if `None`. The kernel charges to the owner
    /// what it limits for each user: inotify instances, queued signals, namespaces.
    pub(super) owner: Option<u32>,
}

/// In place of an owner.
const NO_OWNER: u32 = u32::MAX;
const DESCRIPTORS_MAX: usize = 3;

impl Zygote {
    /// The children of the zygote belong to the calling *thread* and die with it.
    pub(super) fn start(program: &OwnedFd) -> io::Result<Self> {
        let (orders, far) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        set_socket_timeout(&orders, Timeout::Recv, Some(limits::SANDBOX_START_MAX))?;
        set_socket_timeout(&orders, Timeout::Send, Some(ANSWERS_WITHIN))?;
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(program));
        let process = Command::new(path)
            .arg0("skillbox")
            .arg(super::COMMAND)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(far))
            .stdout(Stdio::null())
            .spawn()?;
        let zygote = Self {
            orders,
            process,
            forks: 0,
        };
        zygote.answer()?;
        set_socket_timeout(&zygote.orders, Timeout::Recv, Some(ANSWERS_WITHIN))?;
        Ok(zygote)
    }

    #[cfg(feature = "testing")]
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn is_spent(&self) -> bool {
        self.forks >= FORKS_MAX
    }

    /// After an error the zygote must not be used again.
    pub(super) fn fork(&mut self, order: &ForkRequest<'_>) -> io::Result<Child> {
        self.forks += 1;
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors: Vec<_> = [order.link, order.diagnostics]
            .into_iter()
            .chain(order.cgroup)
            .collect();
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let owner = order.owner.unwrap_or(NO_OWNER).to_ne_bytes();
        rustix::net::sendmsg(
            &self.orders,
            &[IoSlice::new(&owner)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )?;
        let id = Pid::from_raw(self.answer()?).ok_or(io::ErrorKind::InvalidData)?;
        // A child of this process, which alone can reap it, so its id is not reused before.
        match pidfd_open(id, PidfdFlags::empty()) {
            Ok(process) => Ok(Child { id, process }),
            Err(error) => {
                let _ = rustix::process::kill_process(id, Signal::KILL);
                let _ = rustix::process::waitid(WaitId::Pid(id), WaitIdOptions::EXITED);
                Err(error.into())
            }
        }
    }

    /// A process id, or a negative errno.
    fn answer(&self) -> io::Result<i32> {
        let mut number = [0; 4];
        let (bytes, _) = retry_on_intr(|| recv(&self.orders, &mut number, RecvFlags::empty()))?;
        if bytes != number.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let number = i32::from_ne_bytes(number);
        if number < 0 {
            return Err(io::Error::from_raw_os_error(number.saturating_neg()));
        }
        Ok(number)
    }

    /// Kills a zygote without response, and reaps a child whose response was lost: its connection is closed, so it
    /// ends.
    pub(super) fn give_up(mut self) {
        self.end();
        let began = Instant::now();
        let group = Pid::from_raw(i32::try_from(self.process.id()).unwrap_or(0));
        let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        // Children are in the zygote's process group until they receive their plan.
        while rustix::process::waitid(WaitId::Pgid(group), any).is_ok() && began.elapsed() < ENDS_WITHIN {
            std::thread::sleep(POLL_EVERY);
        }
    }

    /// Kills it and waits for a limited time.
    fn end(&mut self) {
        let began = Instant::now();
        let _ = self.process.kill();
        while matches!(self.process.try_wait(), Ok(None)) && began.elapsed() < ENDS_WITHIN {
            std::thread::sleep(POLL_EVERY);
        }
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        self.end();
    }
}

fn descriptors(ancillary: &mut RecvAncillaryBuffer<'_>) -> Vec<OwnedFd> {
    ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect()
}

/// Serves requests on descriptor 0 until the server exits. Returns in each child, which has a link as descriptor 0, is user nobody,
/// and has every capability in its own namespaces.
pub(super) fn serve() -> io::Result<()> {
    // The server may have inherited descriptors.
    sys::close_all_but_standard()?;
    rustix::thread::set_name(c"skillbox")?;
    // Signals of a terminal are for the server.
    let _ = rustix::process::setsid();
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if let Err(error) = enter_own_user_namespace() {
        answer(&Err(error))?;
        process::exit(1);
    }
    sys::collapse_code_pages();
    answer(&Ok(0))?;
    let outside = Ids {
        user: rustix::process::geteuid(),
        group: rustix::process::getegid(),
    };
    loop {
        let Some(fork) = receive()? else {
            process::exit(0);
        };
        let cgroup = fork.cgroup.as_ref().map(|folder| folder.as_fd());
        match fork_as(fork.owner, cgroup) {
            Ok(Forked::Child) => return fork.begin(outside),
            Ok(Forked::Parent(id)) => answer(&Ok(id.as_raw_nonzero().get()))?,
            Err(error) => answer(&Err(error))?,
        }
    }
}

/// Forks with the effective ids of `owner`, so that it owns the child's namespaces; the child keeps these ids.
fn fork_as(owner: Option<Ids>, cgroup: Option<BorrowedFd<'_>>) -> io::Result<Forked> {
    let Some(owner) = owner else {
        return sys::fork_into_namespaces(cgroup);
    };
    set_effective_ids(owner)?;
    // The cgroup's folder belongs to root.
    sys::set_file_system_ids(0, 0);
    let forked = sys::fork_into_namespaces(cgroup);
    if matches!(forked, Ok(Forked::Child)) {
        return forked;
    }
    set_effective_ids(Ids::both(0))?;
    // The changes of user reset both.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    forked
}

/// Keeps all capabilities in effect: without CAP_SYS_ADMIN some hosts refuse new user namespaces.
fn set_effective_ids(Ids { user, group }: Ids) -> io::Result<()> {
    set_thread_res_gid(Gid::ROOT, group, Gid::ROOT)?;
    set_thread_res_uid(Uid::ROOT, user, Uid::ROOT)?;
    let mut sets = rustix::thread::capabilities(None)?;
    sets.effective = sets.permitted;
    rustix::thread::set_capabilities(None, sets).map_err(Into::into)
}

/// Executes an ordinary user's zygote again in its own user namespace. The namespace of exec decides about access to
/// a non-dumpable process, and the server must be able to watch its sandboxes.
fn enter_own_user_namespace() -> io::Result<()> {
    const AGAIN: &str = "in-own-users";
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if user.is_root()
        || std::env::args_os()
            .nth(2)
            .is_some_and(|argument| argument == AGAIN)
    {
        return Ok(());
    }
    sys::unshare_namespaces(libc::CLONE_NEWUSER)?;
    let same = Ids { user, group };
    map_single_ids(same, same)?;
    let program = Command::new("/proc/self/exe")
        .arg0("skillbox")
        .args([super::COMMAND, AGAIN])
        .exec();
    Err(program)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Ids {
    pub(super) user: Uid,
    pub(super) group: Gid,
}

impl Ids {
    pub(super) fn both(id: u32) -> Self {
        Self {
            user: Uid::from_raw(id),
            group: Gid::from_raw(id),
        }
    }
}

/// Maps one user and one group in this process's new user namespace.
pub(super) fn map_single_ids(inside: Ids, outside: Ids) -> io::Result<()> {
    let line = |inside: u32, outside: u32| format!("{inside} {outside} 1");
    fs::write("/proc/self/setgroups", "deny")?;
    let users = line(inside.user.as_raw(), outside.user.as_raw());
    fs::write("/proc/self/uid_map", users)?;
    let groups = line(inside.group.as_raw(), outside.group.as_raw());
    fs::write("/proc/self/gid_map", groups)
}

fn answer(number: &io::Result<i32>) -> io::Result<()> {
    let number = match number {
        Ok(number) => *number,
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO).saturating_neg(),
    };
    let orders = rustix::stdio::stdin();
    rustix::net::send(orders, &number.to_ne_bytes(), SendFlags::NOSIGNAL)?;
    Ok(())
}

struct ReceivedFork {
    link: OwnedFd,
    diagnostics: OwnedFd,
    cgroup: Option<OwnedFd>,
    owner: Option<Ids>,
}

/// `None` at end of file.
fn receive() -> io::Result<Option<ReceivedFork>> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut owner = [0; 4];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let orders = rustix::stdio::stdin();
    let order = retry_on_intr(|| {
        rustix::net::recvmsg(orders, &mut [IoSliceMut::new(&mut owner)], &mut ancillary, flags)
    })?;
    if order.bytes == 0 {
        return Ok(None);
    }
    let owner = u32::from_ne_bytes(owner);
    let mut descriptors = descriptors(&mut ancillary).into_iter();
    let (Some(link), Some(diagnostics), cgroup) =
        (descriptors.next(), descriptors.next(), descriptors.next())
    else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    Ok(Some(ReceivedFork {
        link,
        diagnostics,
        cgroup,
        owner: (owner != NO_OWNER).then(|| Ids::both(owner)),
    }))
}

impl ReceivedFork {
    /// The child's first steps; `outside` are the zygote's ids. First replaces the inherited descriptors.
    fn begin(self, outside: Ids) -> io::Result<()> {
        rustix::stdio::dup2_stdin(&self.link)?;
        rustix::stdio::dup2_stderr(&self.diagnostics)?;
        drop(self);
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // A root server maps the ids, and the child drops its groups. The kernel permits neither to an ordinary user.
        let is_roots = outside.user.is_root();
        if !is_roots {
            map_single_ids(Ids::both(NOBODY), outside)?;
        }
        if rustix::io::read(rustix::stdio::stdin(), &mut [0; 1])? == 0 {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the server has exited"));
        }
        let Ids { user, group } = Ids::both(NOBODY);
        if is_roots {
            set_thread_groups(&[group])?;
        }
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)?;
        // The change of user reset both.
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        Ok(())
    }
}
