//! The process that becomes every native sandbox: it has done already all that needs no sandbox, and copies itself into new
//! namespaces for each. Nothing of a tenant ever comes to it.

use std::fs::{self, File};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{self, Command, Stdio};
use std::time::Duration;

use rustix::cmsg_space;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, socketpair,
};
use rustix::process::{DumpableBehavior, Gid, Pid, Signal, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::identity::Groups;
use super::plan::NOBODY;
use crate::sys::{self, Child, Forked};

/// A birth takes a millisecond; a zygote that has not answered for so long is taken for dead.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// Copies of one zygote: they have their program at the same addresses, so it is renewed.
const BIRTHS_MAX: u32 = 256;

/// The server's end of a zygote, which ends with this.
#[derive(Debug)]
pub(super) struct Zygote {
    orders: OwnedFd,
    process: process::Child,
    births: u32,
}

/// What a newborn gets.
#[derive(Debug)]
pub(super) struct Order<'a> {
    /// Becomes descriptor 0. The newborn waits for one byte on it before it does anything.
    pub(super) link: BorrowedFd<'a>,
    /// Becomes descriptor 2.
    pub(super) diagnostics: BorrowedFd<'a>,
    /// The cgroup (version 2) that it is born in; the server's own if `None`.
    pub(super) birthplace: Option<BorrowedFd<'a>>,
    pub(super) groups: Groups,
}

/// Descriptors of an [`Order`].
const DESCRIPTORS_MAX: usize = 3;

impl Zygote {
    /// Starts `program` as one. What it makes are children of the calling *thread*, and die with it.
    pub(super) fn start(program: &File) -> io::Result<Self> {
        let (orders, far) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        set_socket_timeout(&orders, Timeout::Recv, Some(ANSWERS_WITHIN))?;
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
        Ok(Self {
            orders,
            process,
            births: 0,
        })
    }

    #[cfg(feature = "testing")]
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether it has made so many that another should take its place.
    pub(super) fn is_spent(&self) -> bool {
        self.births >= BIRTHS_MAX
    }

    /// Makes a process. After an error it is not to be used again.
    pub(super) fn birth(&mut self, order: &Order<'_>) -> io::Result<Child> {
        self.births += 1;
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors: Vec<_> = [order.link, order.diagnostics]
            .into_iter()
            .chain(order.birthplace)
            .collect();
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let groups = [u8::from(order.groups == Groups::Replaced)];
        rustix::net::sendmsg(
            &self.orders,
            &[IoSlice::new(&groups)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )?;
        self.answer()
    }

    /// The id of the newborn and a descriptor that stands for it, or the number of the error.
    fn answer(&self) -> io::Result<Child> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut number = [0; 4];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let answer = rustix::net::recvmsg(
            &self.orders,
            &mut [IoSliceMut::new(&mut number)],
            &mut ancillary,
            flags,
        )?;
        if answer.bytes != number.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let number = i32::from_ne_bytes(number);
        let id = Some(number).filter(|number| *number > 0).and_then(Pid::from_raw);
        match (descriptors(&mut ancillary).pop(), id) {
            (Some(process), Some(id)) => Ok(Child { id, process }),
            _ => Err(io::Error::from_raw_os_error(number.saturating_neg())),
        }
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
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

/// Serves as one on descriptor 0 until the server has gone. Returns in each process that it makes, which has a link as
/// descriptor 0, is nobody, and has every capability in its own namespaces.
pub(super) fn serve() -> io::Result<()> {
    // Whoever started the server may have left it descriptors.
    sys::close_all_but_standard()?;
    rustix::thread::set_name(c"skillbox")?;
    // Signals of a terminal are the server's business.
    let _ = rustix::process::setsid();
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let users = own_users();
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    loop {
        let Some(birth) = receive()? else {
            process::exit(0);
        };
        if let Err(error) = &users {
            answer(-error.raw_os_error().unwrap_or(libc::EIO), None)?;
            continue;
        }
        let birthplace = birth.birthplace.as_ref().map(|folder| folder.as_fd());
        match sys::fork_into_namespaces(birthplace) {
            Ok(Forked::Child) => return birth.begin((user.as_raw(), group.as_raw())),
            Ok(Forked::Parent(child)) => {
                answer(child.id.as_raw_nonzero().get(), Some(child.process.as_fd()))?
            }
            Err(error) => answer(-error.raw_os_error().unwrap_or(libc::EIO), None)?,
        }
    }
}

/// An ordinary user's zygote is executed anew in a user namespace of its own. Whoever may look at a process that hides is decided by
/// the namespace in which its program was executed, and that user's server, which watches its sandboxes, has power over this one.
fn own_users() -> io::Result<()> {
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
    map_alone((user.as_raw(), user.as_raw()), (group.as_raw(), group.as_raw()))?;
    let program = Command::new("/proc/self/exe")
        .arg0("skillbox")
        .args([super::COMMAND, AGAIN])
        .exec();
    Err(program)
}

/// Maps one user and one group, given as the id inside and the one outside, in this process's new user namespace.
pub(super) fn map_alone(user: (u32, u32), group: (u32, u32)) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{} {} 1", user.0, user.1))?;
    fs::write("/proc/self/gid_map", format!("{} {} 1", group.0, group.1))
}

fn answer(number: i32, process: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let process: Vec<_> = process.into_iter().collect();
    if !process.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&process));
    }
    let number = number.to_ne_bytes();
    let orders = rustix::stdio::stdin();
    rustix::net::sendmsg(
        orders,
        &[IoSlice::new(&number)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// What came of an [`Order`].
struct Birth {
    link: OwnedFd,
    diagnostics: OwnedFd,
    birthplace: Option<OwnedFd>,
    groups: Groups,
}

/// The next order; none if there will be no more.
fn receive() -> io::Result<Option<Birth>> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut groups = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let orders = rustix::stdio::stdin();
    let order = rustix::net::recvmsg(orders, &mut [IoSliceMut::new(&mut groups)], &mut ancillary, flags)?;
    if order.bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = descriptors(&mut ancillary).into_iter();
    let (Some(link), Some(diagnostics), birthplace) =
        (descriptors.next(), descriptors.next(), descriptors.next())
    else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let groups = if groups == [1] {
        Groups::Replaced
    } else {
        Groups::Kept
    };
    Ok(Some(Birth {
        link,
        diagnostics,
        birthplace,
        groups,
    }))
}

impl Birth {
    /// The newborn's first steps; `outside` are the zygote's user and group. It takes the link first of all: what it was born with is the zygote's.
    fn begin(self, outside: (u32, u32)) -> io::Result<()> {
        rustix::stdio::dup2_stdin(&self.link)?;
        rustix::stdio::dup2_stderr(&self.diagnostics)?;
        let groups = self.groups;
        drop(self);
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if groups == Groups::Kept {
            map_alone((NOBODY, outside.0), (NOBODY, outside.1))?;
        }
        if rustix::io::read(rustix::stdio::stdin(), &mut [0; 1])? == 0 {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the server has gone"));
        }
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        if groups == Groups::Replaced {
            set_thread_groups(&[group])?;
        }
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)?;
        // Becoming somebody else undid both.
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        Ok(())
    }
}
