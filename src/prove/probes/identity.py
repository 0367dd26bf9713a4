# Who the program is and what it may: S-01, S-02, S-03, S-04, S-08.
import glob, shutil, subprocess

FIELDS = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups"]
WRITABLE = ["/workspace", "/sandbox", "/tmp", "/root", "/dev/shm"]


def status(text):
    fields = dict(line.split(":", 1) for line in text.splitlines())
    # Other kernels tell fewer.
    return {field: " ".join(fields[field].split()) for field in FIELDS if field in fields}


verdicts["self"] = status(read("/proc/self/status").decode())
grandchild = ["sh", "-c", "sh -c 'cat /proc/self/status; true'; true"]
verdicts["grandchild_differs"] = status(subprocess.check_output(grandchild, text=True)) != verdicts["self"]


def ends_as_somebody_else(*command):
    out = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    return out.strip() not in ("", "65534 65534")


# The same, asked by a call.
verdicts["no_new_privileges"] = libc.prctl(39, 0, 0, 0, 0)
verdicts["ambient"] = [capability for capability in range(64) if libc.prctl(47, 1, capability, 0, 0) == 1]
verdicts["further_groups"] = sorted(set(verdicts["self"].get("Groups", "").split() + [str(group) for group in os.getgroups()]) - {"65534"})
verdicts["opened_by_group"] = [path for path in ["/etc/shadow", "/etc/gshadow", "/dev/kmsg"] if attempt(open, path) == "ok"]

ids = "import os; print(os.geteuid(), os.getegid())"
verdicts["su"] = ends_as_somebody_else("su", "root", "-c", f"{sys.executable} -c '{ids}'")
verdicts["become_root"] = [attempt(os.setuid, 0), attempt(os.setgid, 0), attempt(os.setgroups, [0])]
verdicts["capset"] = call(126, ctypes.create_string_buffer(b"\x22\x05\x08\x20" + bytes(4)), ctypes.create_string_buffer(b"\xff" * 24))

copies = {}
for folder in WRITABLE:
    copy = f"{folder}/own-id"
    shutil.copy("/usr/bin/id", copy)
    os.chmod(copy, 0o4755)
    copies[folder] = attempt(subprocess.run, [copy], check=True)
    os.unlink(copy)
verdicts["own_program"] = copies

# The dynamic loader and mmap are ways around noexec on some systems.
shutil.copy("/usr/bin/id", "/tmp/mapped")
with open("/tmp/mapped", "rb") as file:
    libc.mmap.restype = ctypes.c_long
    mapped = libc.mmap(None, ctypes.c_size_t(4096), 5, 2, file.fileno(), ctypes.c_long(0))
verdicts["map_executable"] = "ok" if mapped != -1 else name(ctypes.get_errno())

mounts = {}
for line in open("/proc/self/mountinfo"):
    fields = line.split()
    point, options = fields[4], set(fields[5].split(","))
    if os.access(point, os.W_OK) and os.path.isdir(point):
        mounts[point] = sorted({"rw", "nosuid", "nodev", "noexec"} - options)
verdicts["writable_mounts_lack"] = mounts
conclude()
