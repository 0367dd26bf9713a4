//! Canaries, listeners and host state that attacks must neither read nor change.

use std::fs::{self, File, Metadata};
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::execution::Outcome;

/// Kernel settings that no sandbox may change.
const KNOBS: [&str; 6] = [
    "kernel/core_pattern",
    "kernel/hostname",
    "kernel/modprobe",
    "kernel/randomize_va_space",
    "kernel/sysrq",
    "vm/overcommit_memory",
];

/// Programs of the host that are locked during the attacks. Images have files of their own under these names.
const LOCKED: [&str; 2] = ["/usr/bin/env", "/usr/bin/id"];

/// The surroundings of one `prove` run, in a folder of its own.
#[derive(Debug)]
pub(super) struct Surroundings {
    folder: PathBuf,
    /// In every canary, and nowhere else.
    token: String,
    /// Granted to the only program that declares it.
    secret: String,
    canaries: Vec<Canary>,
    listeners: Listeners,
    received: AtomicUsize,
    token_leaks: AtomicUsize,
    before: Vec<(String, Vec<u8>)>,
    /// Open as long as they are locked.
    _locked: Vec<File>,
}

impl Surroundings {
    /// Places canaries in `folder`, in the temporary folder and in this user's home, if possible.
    pub(super) fn set_up(folder: &Path) -> io::Result<Self> {
        let token = uuid::Uuid::now_v7().simple().to_string();
        let neighbour = folder.join("other-tenant");
        fs::create_dir(&neighbour)?;
        let places = [Some(neighbour), Some(std::env::temp_dir()), std::env::home_dir()];
        let canaries = places
            .into_iter()
            .flatten()
            .filter_map(|place| Canary::plant(&place, &token).ok())
            .collect();
        Ok(Self {
            folder: folder.to_owned(),
            token,
            // As in JSON and file names, in several spellings.
            secret: format!("{}/\"\\ü", uuid::Uuid::now_v7().simple()),
            canaries,
            listeners: Listeners::on_every_address()?,
            received: AtomicUsize::new(0),
            token_leaks: AtomicUsize::new(0),
            before: host_state(),
            _locked: LOCKED.into_iter().filter_map(locked).collect(),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn secret(&self) -> &str {
        &self.secret
    }

    /// Input of every program: places of the canaries, which it must not find.
    pub(super) fn input(&self) -> Map<String, Value> {
        let canaries: Vec<_> = self
            .canaries
            .iter()
            .map(|canary| canary.path.display().to_string())
            .collect();
        let input = json!({
            "canary": canaries.first(),
            "canaries": canaries,
            "addresses": addresses(),
            "tcp": self.listeners.tcp_port,
            "udp": self.listeners.udp_port,
            "locked": LOCKED,
        });
        input.as_object().cloned().unwrap_or_default()
    }

    /// Connections and packets received by the listeners.
    pub(super) fn received(&self) -> usize {
        let now = self.listeners.arrived();
        self.received.fetch_add(now, Ordering::SeqCst) + now
    }

    /// Looks for the token in all results of an execution.
    pub(super) fn check_for_token(&self, seen: &Value, outcome: &Outcome) {
        let logs = [&outcome.logs.stdout, &outcome.logs.stderr].map(|log| holds(log, &self.token));
        if logs.contains(&true) || seen.to_string().contains(&self.token) {
            self.token_leaks.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// State of this host after all attacks.
    pub(super) fn after(&self) -> Value {
        let mut changed: Vec<_> = host_state()
            .into_iter()
            .filter(|state| !self.before.contains(state))
            .map(|(name, _)| name)
            .collect();
        changed.sort();
        let canaries = self.canaries.iter().filter(|canary| !canary.is_untouched());
        json!({
            "canaries": self.canaries.len(),
            "canaries_changed": canaries.map(|canary| canary.path.display().to_string()).collect::<Vec<_>>(),
            "token_told": self.token_leaks.load(Ordering::SeqCst),
            "token_stored": stored(&self.token, &self.folder),
            "secret_stored": stored(self.secret.split('/').next().unwrap_or_default(), &self.folder),
            "arrived": self.received(),
            "host_changed": changed,
        })
    }
}

/// `None` if it is missing, or another process has locked it, which serves as well.
fn locked(path: &str) -> Option<File> {
    let file = File::open(path).ok()?;
    file.try_lock().is_ok().then_some(file)
}

/// This program, which is every sandbox's first process, and kernel settings.
fn host_state() -> Vec<(String, Vec<u8>)> {
    let knob = |name: &str| Some((name.to_owned(), fs::read(Path::new("/proc/sys").join(name)).ok()?));
    let mut state: Vec<_> = KNOBS.into_iter().filter_map(knob).collect();
    if let Ok(program) = std::env::current_exe().and_then(fs::read) {
        state.push(("skillbox".to_owned(), Sha256::digest(program).to_vec()));
    }
    state
}

/// Listeners on every address of this host, which sandboxes must not reach.
#[derive(Debug)]
struct Listeners {
    tcp: Vec<TcpListener>,
    udp: Vec<UdpSocket>,
    tcp_port: u16,
    udp_port: u16,
}

impl Listeners {
    fn on_every_address() -> io::Result<Self> {
        let (tcp, udp) = (TcpListener::bind("0.0.0.0:0")?, UdpSocket::bind("0.0.0.0:0")?);
        let (tcp_port, udp_port) = (tcp.local_addr()?.port(), udp.local_addr()?.port());
        // If this host has IPv6, the same ports there.
        let tcp: Vec<_> = [Some(tcp), TcpListener::bind(("::", tcp_port)).ok()]
            .into_iter()
            .flatten()
            .collect();
        let udp: Vec<_> = [Some(udp), UdpSocket::bind(("::", udp_port)).ok()]
            .into_iter()
            .flatten()
            .collect();
        for listener in &tcp {
            listener.set_nonblocking(true)?;
        }
        for socket in &udp {
            socket.set_nonblocking(true)?;
        }
        Ok(Self {
            tcp,
            udp,
            tcp_port,
            udp_port,
        })
    }

    /// Received bytes since the last call.
    fn arrived(&self) -> usize {
        let accepted = |listener: &TcpListener| std::iter::from_fn(|| listener.accept().ok()).count();
        let received =
            |socket: &UdpSocket| std::iter::from_fn(|| socket.recv_from(&mut [0; 64]).ok()).count();
        self.tcp.iter().map(accepted).sum::<usize>() + self.udp.iter().map(received).sum::<usize>()
    }
}

/// Addresses of this host, and some that are often reachable from containers.
fn addresses() -> Vec<String> {
    // The kernel's routing trie lists local addresses below a line with their type.
    let trie = fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let lines: Vec<&str> = trie.lines().map(str::trim).collect();
    let local = lines.windows(2).filter(|pair| pair[1].contains("host LOCAL"));
    let mut addresses: Vec<&str> = local.filter_map(|pair| pair[0].strip_prefix("|-- ")).collect();
    addresses.extend(["127.0.0.1", "::1", "172.17.0.1", "169.254.169.254", "192.0.2.1"]);
    addresses.sort_unstable();
    addresses.dedup();
    addresses.into_iter().map(ToOwned::to_owned).collect()
}

/// A file of this host that no sandbox may read or change.
#[derive(Debug)]
struct Canary {
    path: PathBuf,
    content: String,
    planted: Metadata,
}

impl Canary {
    fn plant(folder: &Path, token: &str) -> io::Result<Self> {
        let path = folder.join(format!("skillbox-canary-{}", uuid::Uuid::now_v7()));
        let content = format!("{token} of {}", path.display());
        fs::write(&path, &content)?;
        let planted = fs::metadata(&path)?;
        Ok(Self {
            path,
            content,
            planted,
        })
    }

    fn is_untouched(&self) -> bool {
        let now = fs::metadata(&self.path);
        now.is_ok_and(|now| stamp(&now) == stamp(&self.planted))
            && fs::read_to_string(&self.path).is_ok_and(|content| content == self.content)
    }
}

#[cfg(unix)]
fn stamp(found: &Metadata) -> impl PartialEq + use<> {
    use std::os::unix::fs::MetadataExt as _;
    (
        found.mode(),
        found.uid(),
        found.gid(),
        found.mtime_nsec(),
        found.ctime(),
        found.ino(),
    )
}

#[cfg(windows)]
fn stamp(found: &Metadata) -> impl PartialEq + use<> {
    use std::os::windows::fs::MetadataExt as _;
    (
        found.file_attributes(),
        found.creation_time(),
        found.last_write_time(),
        found.file_size(),
    )
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Files below `folder` that contain the token, except canaries.
fn stored(token: &str, folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_canary = entry
                .file_name()
                .to_string_lossy()
                .starts_with("skillbox-canary-");
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(entry.path()),
                Ok(kind) if kind.is_file() && !is_canary => {
                    if fs::read(entry.path()).is_ok_and(|content| holds(&content, token)) {
                        found.push(entry.path().display().to_string());
                    }
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    found
}

fn holds(text: &[u8], token: &str) -> bool {
    text.windows(token.len()).any(|window| window == token.as_bytes())
}
