//! What a program can change, see and reach, compared with the host from outside.

use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::sandbox_oracles::{Attack, ObservedWorld};
use crate::world::{Backend, of};

/// Every verdict must be expected: a probe that says more than its table fails, too.
fn assert_table(mut seen: Value, expected: &Value) {
    let whole = format!("{seen:#}");
    let found = seen.as_object_mut().unwrap();
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(found.remove(key).as_ref(), Some(value), "{key} of {whole}");
    }
    assert!(found.is_empty(), "nothing is expected of {found:?}");
}

/// S-05, S-06, S-16, S-17, S-21, S-38.
#[tokio::test]
async fn root_skill_kernel_settings_cgroup_and_programs_are_read_only() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let host = host_state();
    let probe = || Attack::python(include_str!("../../src/prove/probes/frozen.py"));
    let mut seen = watched.verdicts(probe()).await;
    let interpreter = seen["interpreter_digest"].take();
    // An ordinary user's own files are the program's own, too. A read-only overlay comes before their permissions.
    let truncated = of(super::BACKEND, "EACCES", "EROFS");
    let has_overlays = super::BACKEND == Backend::Native && rustix::process::geteuid().is_root();
    let interpreter_opened = if has_overlays { "EROFS" } else { "EACCES" };
    let expected = json!({
        // An engine adds files such as /etc/resolv.conf, of which there are none in the native sandbox.
        "root": of(super::BACKEND, ["EACCES", "EROFS"], ["ENOENT", "EROFS"]),
        "remount": "EPERM",
        "skill": {
            "chmod": "EROFS", "chown": "EROFS", "rename": "EROFS", "unlink": "EROFS", "truncate": truncated,
            "utime": "EROFS", "new": "EROFS", "write": "EROFS", "write_through_descriptor": "EROFS",
            "hard_link": "EROFS", "hard_link_out": "EXDEV", "bind_over": "EPERM", "unmount": "EPERM",
            "immutable_flag": "EROFS", "xattr": "EROFS",
        },
        "skill_times": [skillbox::bundle::MTIME_SECONDS],
        "knobs_opened": [],
        "writable": { "/proc/sys": [], "/proc/irq": [], "/proc/bus": [], "/proc/fs": [], "/sys": [] },
        "cgroup_files": of(super::BACKEND, true, false),
        "cgroup_opened": [],
        "cgroup_made": [],
        "own_interpreter": [interpreter_opened],
        "first_process": "EACCES",
        "first_process_read": "EACCES",
        "guest_binary": of(super::BACKEND, ["EACCES", "EACCES"], ["ENOENT", "ENOENT"]),
        "interpreter_digest": null,
    });
    assert_table(seen, &expected);
    assert_eq!(host_state(), host, "the host was changed");
    // The same content, so the same keeper: what the first run did to the skill would show in the second.
    let again = watched.verdicts(probe()).await;
    assert_eq!(again["interpreter_digest"], interpreter);
    watched.close().await;
}

/// What no sandbox may change on this host: the binary that is every sandbox's PID 1, and kernel settings.
fn host_state() -> Vec<Vec<u8>> {
    let knobs = ["core_pattern", "hostname", "modprobe", "randomize_va_space"];
    let mut state: Vec<_> = knobs
        .iter()
        .map(|knob| std::fs::read(format!("/proc/sys/kernel/{knob}")).unwrap_or_default())
        .collect();
    let guest = std::fs::read(env!("CARGO_BIN_EXE_skillbox")).unwrap();
    state.push(Sha256::digest(guest).to_vec());
    state
}

/// S-13, S-15, S-18, S-20, S-22, S-23, S-24.
#[tokio::test]
async fn program_sees_only_its_sandbox_and_reaches_nothing() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let listeners = Listeners::on_every_address();
    let seen = watched
        .verdicts(
            Attack::python(include_str!("../../src/prove/probes/surroundings.py"))
                .input(&listeners.described()),
        )
        .await;
    let expected = json!({
        "descriptors": { "0": "/sandbox/input.json", "1": "pipe", "2": "pipe" },
        "processes": [1],
        "answering_processes": [],
        "first_process_shows": [],
        "likelier_to_go_than_first": true,
        "first_process_tuned": [],
        "oom_score_lowered": oom_scores_that_may_be_lowered(),
        "masked_paths_that_give": [],
        "further_devices": [],
        "opened_devices": [],
        "made_devices": ["EPERM"],
        "made_devices_opened": [],
        // An image has files of its own, none of the host.
        "etc_read": of(super::BACKEND, seen["etc_read"].clone(), json!([])),
        "etc_writable": [],
        "engine_sockets": [],
        "sockets_in_files": [],
        "named_unix_sockets": [],
        "terminal": {
            "/dev/tty": of(super::BACKEND, "ENXIO", "ENOENT"), "TIOCSTI": "EPERM", "TIOCLINUX": "EPERM", "TIOCSTI_high": "EPERM",
            "own_pty_TIOCSTI": "EPERM", "own_pty_works": "ok",
            "line_disciplines": ["EPERM"],
        },
        "interfaces": ["lo"],
        "routes": 0,
        "loopback": "ok",
        "reached": [],
        "resolver": of(super::BACKEND, "-3", "-2"),
        "icmp": ["EPERM", "EPERM"],
        // `prove` locks programs of the host, this test none.
        "locks_of_the_host": [],
    });
    assert_table(seen, &expected);
    listeners.assert_silent();
    watched.close().await;
}

/// The engine's score is a floor only where the engine may raise floors (CAP_SYS_RESOURCE). Without it, as on some
/// virtual machines and in rootless engines, a program may undo what the engine gave it.
fn oom_scores_that_may_be_lowered() -> Value {
    const CAP_SYS_RESOURCE: u64 = 1 << 24;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    match effective {
        Some(capabilities) if capabilities & CAP_SYS_RESOURCE == 0 => json!([0, 499]),
        Some(_) | None => json!([]),
    }
}

/// Canary listeners on every address of this host.
struct Listeners {
    tcp: Vec<TcpListener>,
    udp: Vec<UdpSocket>,
}

impl Listeners {
    fn on_every_address() -> Self {
        let (tcp, udp) = (
            TcpListener::bind("0.0.0.0:0").unwrap(),
            UdpSocket::bind("0.0.0.0:0").unwrap(),
        );
        let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
        // Where this host has IPv6, the same ports there.
        let tcp: Vec<_> = [Some(tcp), TcpListener::bind(("::", tcp_port)).ok()]
            .into_iter()
            .flatten()
            .collect();
        let udp: Vec<_> = [Some(udp), UdpSocket::bind(("::", udp_port)).ok()]
            .into_iter()
            .flatten()
            .collect();
        tcp.iter()
            .for_each(|listener| listener.set_nonblocking(true).unwrap());
        udp.iter()
            .for_each(|socket| socket.set_nonblocking(true).unwrap());
        Self { tcp, udp }
    }

    fn described(&self) -> String {
        // Every local address of the host stands in the kernel's routing trie, below a line that says so.
        let trie = std::fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
        let lines: Vec<&str> = trie.lines().map(str::trim).collect();
        let local = lines.windows(2).filter(|pair| pair[1].contains("host LOCAL"));
        let mut addresses: Vec<&str> = local.filter_map(|pair| pair[0].strip_prefix("|-- ")).collect();
        addresses.extend(["127.0.0.1", "::1", "172.17.0.1", "169.254.169.254", "192.0.2.1"]);
        addresses.sort_unstable();
        addresses.dedup();
        let tcp = self.tcp[0].local_addr().unwrap().port();
        let udp = self.udp[0].local_addr().unwrap().port();
        json!({ "addresses": addresses, "tcp": tcp, "udp": udp }).to_string()
    }

    fn assert_silent(&self) {
        for listener in &self.tcp {
            assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        }
        for socket in &self.udp {
            assert_eq!(
                socket.recv_from(&mut [0; 64]).unwrap_err().kind(),
                ErrorKind::WouldBlock
            );
        }
    }
}
