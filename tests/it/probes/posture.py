# Writes down everything about this sandbox that a step of its plan could have made: the same text each time.
import ctypes
import json
import os
import pty
import re
import resource
import socket


def attempt(act):
    try:
        return act()
    except OSError as error:
        return error.strerror


def text(path):
    with open(path, errors="replace") as file:
        return file.read()


def listing(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        found[name] = os.readlink(path) if os.path.islink(path) else oct(os.lstat(path).st_mode)
    return found


def write(path):
    with open(path, "w") as file:
        file.write("x")
    os.unlink(path)
    return "written"


def mounts():
    found = []
    for line in text("/proc/self/mountinfo").splitlines():
        before, after = line.split(" - ")
        _, _, _, root, place, options, *shared = before.split(" ")
        kind, _, more = after.split(" ")
        shared = [word.split(":")[0] for word in shared]
        # The sandbox's outside user differs each time.
        more = re.sub(r"\b[ug]id=\d+", "", more)
        found.append(" ".join([place, root, options, *shared, kind, more]))
    return found


def status():
    wanted = ("Uid", "Gid", "Groups", "Cap", "NoNewPrivs", "Seccomp")
    return [line for line in text("/proc/self/status").splitlines() if line.startswith(wanted)]


def loopback():
    server = socket.create_server(("127.0.0.1", 0))
    with socket.create_connection(server.getsockname(), timeout=5):
        return "connected"


def terminal():
    for descriptor in pty.openpty():
        os.close(descriptor)
    return "opened"


def watched():
    """How many inotify watches and further instances there are."""
    libc = ctypes.CDLL(None)
    instance = libc.inotify_init1(0)
    watches = 0
    # One for each file.
    for number in range(8200):
        path = f"/workspace/{number}"
        os.close(os.open(path, os.O_CREAT))
        if libc.inotify_add_watch(instance, path.encode(), 2) < 0:
            break
        watches += 1
    instances = 0
    while instances < 20 and libc.inotify_init1(0) >= 0:
        instances += 1
    return watches, instances


limits = {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")}
found = {
    "host name": os.uname().nodename,
    "session": os.getsid(0),
    "cgroup": attempt(lambda: text("/proc/self/cgroup")),
    "users": [attempt(lambda: text(f"/proc/self/{file}").split()) for file in ("uid_map", "gid_map", "setgroups")],
    "status": attempt(status),
    "limits": limits,
    "inotify": attempt(watched),
    "mounts": attempt(mounts),
    "folders": {folder: attempt(lambda: listing(folder)) for folder in ("/", "/dev", "/etc", "/skills")},
    "files": {path: attempt(lambda: text(f"/etc/{path}")) for path in ("passwd", "group", "hosts", "nsswitch.conf")},
    "written": {
        folder: attempt(lambda: write(f"{folder}/probe"))
        for folder in ("", "/dev", "/dev/shm", "/etc", "/proc/sys/kernel", "/root", "/sandbox", "/skills",
                       "/skills/probe", "/tmp", "/usr", "/workspace")
    },
    "loopback": attempt(loopback),
    "terminal": attempt(terminal),
    "processes": sum(name.isdigit() for name in os.listdir("/proc")),
    "first process": attempt(lambda: os.readlink("/proc/1/exe")),
}
with open("/sandbox/out/output.json", "w") as file:
    json.dump(found, file)
