# What cannot be changed: S-05, S-06, S-16, S-17, S-21.
import glob, hashlib

FOLDERS = ["/", "/etc", "/usr", "/usr/bin", "/usr/lib", "/opt", "/var", "/var/tmp", "/home", "/skills", "/.skillbox", "/dev", "/run"]
FILES = ["/etc/passwd", "/etc/hosts", "/etc/resolv.conf", "/etc/hostname", "/usr/bin/env"]
verdicts["root"] = sorted({write(path) for path in FILES + [f"{folder}/planted" for folder in FOLDERS]})
verdicts["remount"] = call(165, b"none", b"/", b"none", 32 | 4096, 0)

skill = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
main = os.path.abspath(__file__)
opened = os.open(main, os.O_RDONLY)
verdicts["skill"] = {
    "chmod": attempt(os.chmod, main, 0o777),
    "chown": attempt(os.chown, main, 65534, 65534),
    "rename": attempt(os.rename, main, main + ".old"),
    "unlink": attempt(os.unlink, main),
    "truncate": attempt(os.truncate, main, 0),
    "utime": attempt(os.utime, main, (0, 0)),
    "new": write(f"{skill}/planted"),
    "write": write(main),
    "write_through_descriptor": write(f"/proc/self/fd/{opened}"),
    "hard_link": attempt(os.link, main, f"{skill}/linked"),
    "hard_link_out": attempt(os.link, main, "/workspace/linked"),
    "bind_over": call(165, b"/tmp", skill.encode(), b"none", 4096, 0),
    "unmount": call(166, skill.encode(), 2),
    "immutable_flag": attempt(lambda: __import__("fcntl").ioctl(opened, 0x40086602, b"\x10" + bytes(7))),
    "xattr": attempt(os.setxattr, main, "user.planted", b"x"),
}

verdicts["skill_times"] = sorted({int(os.stat(f"{folder}/{entry}").st_mtime) for folder, folders, files in os.walk(skill) for entry in folders + files})

KNOBS = [
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/shmmax", "/proc/sys/vm/overcommit_memory",
    "/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/binfmt_misc/register", "/proc/sys/fs/mqueue/queues_max",
    "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/sys/kernel/uevent_helper",
    "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/profiling", "/sys/power/state",
]
# Opened only: were one of them writable, a word in it could hurt the whole machine.
verdicts["knobs_opened"] = [path for path in KNOBS if attempt(os.open, path, os.O_WRONLY) == "ok"]


def writable_below(root):
    found = []
    for folder, folders, files in os.walk(root):
        found += [path for entry in files + ["."] if os.access(path := os.path.join(folder, entry), os.W_OK)]
        if len(found) > 20:
            break
    return found


def mutable_below(root):
    """Access bits may say yes where the mount says no: only an open decides."""
    return [path for path in writable_below(root) if attempt(open, path, "r+b") == "ok" or write(f"{path}/planted") == "ok"]


verdicts["writable"] = {root: mutable_below(root) for root in ["/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/sys"]}

cgroup = {}
for path in ["release_agent", "notify_on_release", "cgroup.procs", "tasks", "memory.max", "memory.limit_in_bytes", "pids.max", "cpu.max", "devices.allow", "cgroup.subtree_control"]:
    for found in glob.glob(f"/sys/fs/cgroup/{path}") + glob.glob(f"/sys/fs/cgroup/*/{path}"):
        cgroup[found] = attempt(os.open, found, os.O_WRONLY)
verdicts["cgroup_files"] = len(cgroup) > 0
verdicts["cgroup_opened"] = [path for path, verdict in cgroup.items() if verdict == "ok"]
verdicts["cgroup_made"] = [path for path in ["/sys/fs/cgroup"] + glob.glob("/sys/fs/cgroup/*") if os.path.isdir(path) and attempt(os.mkdir, f"{path}/planted") == "ok"]


def write_while_running(path):
    """Opens a program for writing again and again while it is being executed (CVE-2019-5736)."""
    results = set()
    for _ in range(50):
        pid = os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", ""], {})
        results.add(attempt(os.open, path, os.O_WRONLY))
        os.waitpid(pid, 0)
    return sorted(results)


verdicts["own_interpreter"] = write_while_running("/proc/self/exe")
verdicts["first_process"] = attempt(os.open, "/proc/1/exe", os.O_WRONLY)
verdicts["first_process_read"] = attempt(os.open, "/proc/1/exe", os.O_RDONLY)
verdicts["guest_binary"] = [attempt(open, "/.skillbox/init", mode) for mode in ("rb", "r+b")]
verdicts["interpreter_digest"] = hashlib.sha256(read(os.path.realpath(sys.executable))).hexdigest()
conclude()
