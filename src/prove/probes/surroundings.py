# What can be seen and reached: S-13, S-15, S-18, S-20, S-22, S-23, S-24, T-20.
import glob

given_by_test = given()

# Before anything else is opened. The last descriptor is the listing's own.
links = {}
for number in os.listdir("/proc/self/fd"):
    try:
        links[number] = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        pass
verdicts["descriptors"] = {number: link.split(":")[0] for number, link in sorted(links.items())}

pids = {int(entry) for entry in os.listdir("/proc") if entry.isdigit()}
verdicts["processes"] = sorted(pids - {os.getpid()})
verdicts["answering_processes"] = [pid for pid in range(2, 32769) if pid != os.getpid() and call(62, pid, 0) != "ESRCH"]
first = {entry: attempt(read, f"/proc/1/{entry}") for entry in ["environ", "maps", "mem", "auxv", "io", "stack", "syscall", "root/etc/passwd", "cwd"]}
first["fd"] = attempt(os.listdir, "/proc/1/fd")
tuning = {entry: write(f"/proc/1/{entry}", "0") for entry in ["oom_score_adj", "coredump_filter", "timens_offsets", "comm", "attr/current"]}
verdicts["first_process_shows"] = [entry for entry, verdict in first.items() if verdict not in ("EACCES", "EPERM")]
verdicts["likelier_to_go_than_first"] = int(read("/proc/self/oom_score_adj")) > int(read("/proc/1/oom_score_adj"))
# 500 is what the engine gave PID 1: nobody may become less likely than it to go when memory runs out.
verdicts["oom_score_lowered"] = [score for score in (-1000, 0, 499) if write("/proc/self/oom_score_adj", str(score)) == "ok"]
verdicts["first_process_tuned"] = [entry for entry, verdict in tuning.items() if verdict == "ok"]

MASKED = ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/latency_stats", "/proc/interrupts", "/proc/acpi", "/proc/scsi",
          "/proc/asound", "/sys/firmware", "/sys/devices/virtual/powercap", "/proc/kmsg", "/proc/vmcore"]


def gives(path):
    try:
        if os.path.isdir(path):
            return len(os.listdir(path)) > 0
        with open(path, "rb") as file:
            return len(file.read(64)) > 0
    except OSError:
        return False


verdicts["masked_paths_that_give"] = [path for path in MASKED if gives(path)]

DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "shm", "mqueue", "fd", "stdin", "stdout", "stderr", "core", "console"}
verdicts["further_devices"] = sorted(set(os.listdir("/dev")) - DEVICES)
FORBIDDEN = ["kmsg", "mem", "port", "vda", "sda", "loop-control", "loop0", "fuse", "net/tun", "vsock", "kvm", "tty0", "console"]
verdicts["opened_devices"] = [path for path in FORBIDDEN if attempt(os.open, f"/dev/{path}", os.O_RDWR) == "ok"]
made, led_somewhere = set(), []
# The null device; then the host's memory, disks and their like.
NUMBERS = {stat.S_IFCHR: [(1, 3), (1, 1), (1, 4), (1, 11), (10, 232), (10, 237)], stat.S_IFBLK: [(1, 0), (7, 0), (8, 0), (252, 0), (253, 0), (254, 0), (259, 0)]}
for folder in ["/workspace", "/tmp", "/sandbox", "/dev/shm"]:
    for kind, number in [(kind, number) for kind, numbers in NUMBERS.items() for number in numbers]:
        device = f"{folder}/device"
        made.add(verdict := attempt(os.mknod, device, kind | 0o666, os.makedev(*number)))
        if verdict == "ok":
            led_somewhere += [[kind, *number]] if attempt(os.open, device, os.O_RDONLY) == "ok" else []
            os.unlink(device)
verdicts["made_devices"] = sorted(made)
verdicts["made_devices_opened"] = led_somewhere

# The host's own, or the image's, which has none. Natively /etc is made for the sandbox, with folders of document tools.
KEPT_BACK = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/machine-id", "/etc/fstab", "/etc/krb5.keytab", "/etc/skillbox", "/etc/ssh", "/etc/ssl/private",
             "/etc/docker", "/etc/environment", "/etc/pip.conf", "/etc/npmrc", "/etc/maven/settings.xml", "/etc/systemd", "/etc/NetworkManager", "/etc/wireguard"]


def private(path):
    return (read(path) if not os.path.isdir(path) else os.listdir(path)) != ""


verdicts["etc_read"] = [path for path in KEPT_BACK if attempt(private, path) == "ok"]
verdicts["etc_writable"] = [path for top, folders, files in os.walk("/etc") for path in [os.path.join(top, entry) for entry in folders + files] if os.access(path, os.W_OK)]

SOCKETS = ["/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock"]
verdicts["engine_sockets"] = [path for path in SOCKETS if os.path.exists(path)]
verdicts["sockets_in_files"] = [path for top in ["/run", "/var", "/tmp", "/sandbox", "/workspace"] for path in glob.glob(f"{top}/**", recursive=True) if stat.S_ISSOCK(os.lstat(path).st_mode)]
# The eighth field is a name, in a file system or abstract; those of the guest have none.
verdicts["named_unix_sockets"] = [line for line in open("/proc/net/unix").read().splitlines()[1:] if len(line.split()) > 7]

import fcntl, termios


def lock(path):
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


verdicts["locks_of_the_host"] = [path for path in given_by_test.get("locked", []) if attempt(lock, path) == "EAGAIN"]

controlled = attempt(os.open, "/dev/tty", os.O_RDWR)
inject = attempt(fcntl.ioctl, 0, termios.TIOCSTI, b"x")
paste = call(16, 0, 0x541C, ctypes.create_string_buffer(b"\x03"))
high = call(16, 0, 0x5412 | HIGH, ctypes.create_string_buffer(b"x"))
own, other = os.openpty()
disciplines = [attempt(fcntl.ioctl, side, termios.TIOCSETD, bytes([number, 0, 0, 0])) for side in (own, other) for number in (0, 13, 21)]
disciplines.append(call(16, other, termios.TIOCSETD | HIGH, ctypes.create_string_buffer(4)))
verdicts["terminal"] = {"line_disciplines": sorted(set(disciplines)), "/dev/tty": controlled, "TIOCSTI": inject, "TIOCLINUX": paste, "TIOCSTI_high": high, "own_pty_TIOCSTI": attempt(fcntl.ioctl, other, termios.TIOCSTI, b"x"), "own_pty_works": attempt(termios.tcgetattr, other)}

verdicts["interfaces"] = [entry for _, entry in socket.if_nameindex()]
verdicts["routes"] = len(open("/proc/net/route").read().splitlines()[1:])


def loopback(family, address):
    server = socket.create_server((address, 0), family=family)
    client = socket.create_connection(server.getsockname()[:2], timeout=2)
    peer, _ = server.accept()
    client.sendall(b"hello")
    return peer.recv(5) == b"hello"


verdicts["loopback"] = attempt(loopback, socket.AF_INET, "127.0.0.1")


def tcp(address, port):
    socket.create_connection((address, port), timeout=1).close()


def udp(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.sendto(b"canary", (address, port))


reached = []
for address in given_by_test["addresses"]:
    # The sandbox has a loopback of its own; there the host's ports are silent, which the test's listeners tell.
    for kind, port in [(tcp, given_by_test["tcp"]), (udp, given_by_test["udp"]), (tcp, 2375), (tcp, 2376), (udp, 53)]:
        verdict = attempt(kind, address, port)
        if verdict == "ok" and not (kind is udp and (address.startswith("127.") or address == "::1")):
            reached.append([address, port])
verdicts["reached"] = reached
verdicts["resolver"] = attempt(socket.getaddrinfo, "allowed.example", 80)
verdicts["icmp"] = [attempt(socket.socket, socket.AF_INET, kind, 1) for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM)]
conclude()
