//! Brings up the loopback interface of a network namespace.

use std::io;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Index of `lo` in every network namespace.
const LOOPBACK: i32 = 1;

/// Raises `lo` in this network namespace.
pub(super) fn start() -> io::Result<()> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // Protocol 0 is `NETLINK_ROUTE`.
        None,
    )?;
    rustix::net::sendto(
        &socket,
        &message(),
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )?;
    let mut answer = [0; 256];
    let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    errno(&answer[..length])
}

/// `RTM_NEWLINK` of `rtnetlink(7)`: a header, then `ifinfomsg` with one flag and the mask of what changes.
fn message() -> Vec<u8> {
    const RTM_NEWLINK: u16 = 16;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;
    const IFF_UP: u32 = 1;
    const LENGTH: u32 = 32;
    let mut message = Vec::new();
    message.extend(LENGTH.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    // Sequence and port: there is one message.
    message.extend([0; 8]);
    // Family and type: any.
    message.extend([0; 4]);
    message.extend(LOOPBACK.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message
}

/// The response is an error message; its error is 0 on success.
fn errno(answer: &[u8]) -> io::Result<()> {
    let code = answer.get(16..20).and_then(|bytes| bytes.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_length_matches_its_header() {
        let message = message();
        assert_eq!(message.len(), 32);
        assert_eq!(u32::from_ne_bytes(message[..4].try_into().unwrap()), 32);
    }

    #[test]
    fn parses_netlink_answers() {
        let mut answer = [0; 36];
        assert!(errno(&answer).is_ok());
        answer[16..20].copy_from_slice(&(-1_i32).to_ne_bytes());
        assert_eq!(errno(&answer).unwrap_err().raw_os_error(), Some(1));
        assert!(errno(&answer[..8]).is_err());
    }
}
