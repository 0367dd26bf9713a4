//! The user of a sandbox on the host: never root; with a root server, a different user for each live sandbox.

use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use rustix::process::Pid;
use rustix::thread::CapabilitySet;

use super::plan::NOBODY;

/// The first outer id, and the number of outer ids: above all that distributions, service managers and container
/// engines assign, below 2^31. Documented as 1,900,000,000 to 1,900,065,535.
pub(super) const OUTER_FIRST: u32 = 1_900_000_000;
pub(super) const OUTER_COUNT: u32 = 65_536;
/// Attempts to find a free id. An id is taken only if a live sandbox of another server has it.
const TRIES: u32 = 64;

/// To use other ids, to make namespaces that belong to them, and to end and watch their processes.
const ROOT_NEEDS: [(CapabilitySet, &str); 5] = [
    (CapabilitySet::SETUID, "CAP_SETUID"),
    (CapabilitySet::SETGID, "CAP_SETGID"),
    (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN"),
    (CapabilitySet::KILL, "CAP_KILL"),
    (CapabilitySet::SYS_PTRACE, "CAP_SYS_PTRACE"),
];

/// What root needs and this process lacks.
pub(super) fn missing_capabilities() -> Vec<&'static str> {
    let held = rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    ROOT_NEEDS
        .iter()
        .filter(|(capability, _)| !held.contains(*capability))
        .map(|(_, name)| *name)
        .collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Privilege {
    /// Each sandbox can have an id of its own.
    Root,
    /// An ordinary user, with one identity.
    Ordinary { uid: u32, gid: u32 },
}

impl Privilege {
    pub(super) fn of_this_process() -> Result<Self, String> {
        let (uid, gid) = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        if uid != 0 {
            return Ok(Self::Ordinary { uid, gid });
        }
        let missing = missing_capabilities();
        if !missing.is_empty() {
            return Err(format!(
                "root lacks {}, which it needs to give each sandbox a user of its own; grant it, or run as an ordinary user",
                missing.join(" and ")
            ));
        }
        let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        if !covers_outer(&map) {
            return Err(format!(
                "this user namespace lacks the ids {OUTER_FIRST} and up that sandboxes get; map them, or run as an ordinary user of the host"
            ));
        }
        Ok(Self::Root)
    }
}

/// Whether a `uid_map` contains all outer ids.
fn covers_outer(map: &str) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(|word| word.parse::<u64>());
        let (Some(Ok(first)), Some(_), Some(Ok(count))) = (numbers.next(), numbers.next(), numbers.next())
        else {
            return false;
        };
        first <= u64::from(OUTER_FIRST) && first + count >= u64::from(OUTER_FIRST + OUTER_COUNT)
    })
}

/// An outer user and group, reserved until dropped.
#[derive(Debug)]
pub(super) struct Identity {
    uid: u32,
    gid: u32,
    privilege: Privilege,
    /// An abstract socket name, which only one process of this host can bind.
    _claim: Option<UnixDatagram>,
}

impl Identity {
    /// An identity that no other live sandbox has; for an ordinary user, the only one.
    pub(super) fn claim(privilege: Privilege) -> io::Result<Self> {
        let (uid, gid, claim) = match privilege {
            Privilege::Ordinary { uid, gid } => (uid, gid, None),
            Privilege::Root => {
                let (id, claim) = claim_outer()?;
                (id, id, Some(claim))
            }
        };
        Ok(Self {
            uid,
            gid,
            privilege,
            _claim: claim,
        })
    }

    /// Who owns the namespaces, if the server can choose: user and group have the same number.
    pub(super) fn owner(&self) -> Option<u32> {
        (self.privilege == Privilege::Root).then_some(self.uid)
    }

    /// Maps the ids of a process in its new user namespace. With an ordinary user's server, the process maps them
    /// itself.
    pub(super) fn map(&self, process: Pid) -> io::Result<()> {
        if let Privilege::Ordinary { .. } = self.privilege {
            return Ok(());
        }
        let folder = format!("/proc/{}", process.as_raw_nonzero());
        let folder = Path::new(&folder);
        fs::write(folder.join("uid_map"), format!("{NOBODY} {} 1", self.uid))?;
        fs::write(folder.join("gid_map"), format!("{NOBODY} {} 1", self.gid))
    }
}

fn claim_outer() -> io::Result<(u32, UnixDatagram)> {
    for _ in 0..TRIES {
        let mut bytes = [0; 2];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let id = OUTER_FIRST + u32::from(u16::from_ne_bytes(bytes));
        let name = SocketAddr::from_abstract_name(format!("skillbox-id-{id}"))?;
        match UnixDatagram::bind_addr(&name) {
            Ok(claim) => return Ok((id, claim)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(
        "no outer id is free; too many sandboxes run on this host",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P3: two live sandboxes are never the same user, and none is root.
    #[test]
    fn live_identities_differ_and_are_never_root() {
        let claimed: Vec<_> = (0..200)
            .map(|_| Identity::claim(Privilege::Root).unwrap())
            .collect();
        let ids: std::collections::BTreeSet<_> = claimed.iter().map(|identity| identity.uid).collect();
        assert_eq!(ids.len(), claimed.len());
        assert!(
            ids.iter()
                .all(|id| (OUTER_FIRST..OUTER_FIRST + OUTER_COUNT).contains(id))
        );
    }

    #[test]
    fn detects_namespace_without_the_ids() {
        assert!(covers_outer("         0          0 4294967295\n"));
        assert!(!covers_outer("0 100000 65536\n"));
        assert!(covers_outer("0 1000 1\n1 100000 4000000000\n"));
        assert!(!covers_outer(""));
    }
}
