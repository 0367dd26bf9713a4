//! Sends a plan to a blank process: one frame, with mounts as descriptors.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, IoSlice, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::{Deserialize, Serialize};

use super::step::SetupPlan;
use crate::limits;

#[derive(Debug)]
pub(super) struct ReceivedPlan {
    pub(super) plan: SetupPlan,
    /// The server's mount namespace, as `/proc` names it.
    pub(super) host_mounts: String,
    /// Mounts that only the server can make, in the order of the plan's steps.
    pub(super) mounts: VecDeque<OwnedFd>,
}

#[derive(Serialize, Deserialize)]
struct Frame {
    plan: SetupPlan,
    host_mounts: String,
}

/// Larger than any plan.
const FRAME_BYTES_MAX: u32 = 256 * 1024;
/// Mounts per frame, of which the kernel allows 253: folders of the host, the skill, mounted skills, and packages of both
/// kinds.
const MOUNTS_MAX: usize = limits::HOST_MOUNTS_MAX + 1 + limits::MOUNTED_SKILLS_MAX + 2;

/// This process's mount namespace, as `/proc` names it.
pub(super) fn own_mounts() -> io::Result<String> {
    fs::read_link("/proc/self/ns/mnt").map(|link| link.to_string_lossy().into_owned())
}

/// A frame: its length as 4 bytes, big endian, then JSON.
pub(super) fn frame(plan: SetupPlan, host_mounts: String) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, &Frame { plan, host_mounts })?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

/// Sends a frame; the mounts go with its first byte. Does not block, since the frame fits into the socket's buffer.
pub(super) fn send(link: BorrowedFd<'_>, frame: &[u8], mounts: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOUNTS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !mounts.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(mounts)) {
        return Err(io::Error::other("too many mounts for one sandbox"));
    }
    let sent = rustix::net::sendmsg(link, &[IoSlice::new(frame)], &mut ancillary, SendFlags::NOSIGNAL)?;
    if sent == frame.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}

/// Reads exactly one frame: the rest of the connection belongs to the guest.
pub(super) fn receive(link: BorrowedFd<'_>) -> io::Result<ReceivedPlan> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOUNTS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut length = [0; 4];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
    let received = rustix::net::recvmsg(link, &mut [IoSliceMut::new(&mut length)], &mut ancillary, flags)?;
    if received.bytes != length.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut mounts = VecDeque::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            mounts.extend(descriptors);
        }
    }
    let length = u32::from_be_bytes(length);
    if length > FRAME_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::with_capacity(length as usize + 1);
    let mut reader = std::fs::File::from(link.as_fd().try_clone_to_owned()?).take(u64::from(length));
    reader.read_to_end(&mut bytes)?;
    let Frame { plan, host_mounts } = serde_json::from_slice(&bytes)?;
    Ok(ReceivedPlan {
        plan,
        host_mounts,
        mounts,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::sandbox::linux::step::Then;

    #[test]
    fn receives_a_frame_with_its_mounts_and_nothing_after_it() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let plan = SetupPlan {
            steps: Vec::new(),
            then: Then::Wait,
        };
        let bytes = frame(plan.clone(), "mnt:[1]".to_owned()).unwrap();
        let mount = fs::File::open("/").unwrap();
        send(near.as_fd(), &bytes, &[mount.as_fd(); MOUNTS_MAX]).unwrap();
        (&near).write_all(b"next").unwrap();
        let received = receive(far.as_fd()).unwrap();
        assert_eq!((received.plan, received.mounts.len()), (plan, MOUNTS_MAX));
        assert_eq!(received.host_mounts, "mnt:[1]");
        drop(near);
        let mut rest = Vec::new();
        far.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"next");
    }

    #[test]
    fn closed_link_is_an_error() {
        let (near, far) = UnixStream::pair().unwrap();
        drop(near);
        assert!(receive(far.as_fd()).is_err());
    }
}
