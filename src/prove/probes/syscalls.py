# Which system calls are refused, by number (x86-64): S-09, S-10, S-11, S-14, S-39 and P13's high halves.
NAMESPACES = {"NEWTIME": 0x80, "NEWNS": 0x20000, "NEWCGROUP": 0x2000000, "NEWUTS": 0x4000000, "NEWIPC": 0x8000000, "NEWUSER": 0x10000000, "NEWPID": 0x20000000, "NEWNET": 0x40000000}
FORBIDDEN = {
    "mounts": {"chroot": 161, "pivot_root": 155, "mount": 165, "umount2": 166, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "statmount": 457, "listmount": 458, "sysfs": 139},
    "namespaces": {"unshare": 272, "setns": 308, "sethostname": 170, "setdomainname": 171},
    "modules and kernels": {"create_module": 174, "init_module": 175, "delete_module": 176, "finit_module": 313, "kexec_load": 246, "kexec_file_load": 320, "nfsservctl": 180},
    "tracing": {"ptrace": 101, "perf_event_open": 298, "bpf": 321, "userfaultfd": 323, "lookup_dcookie": 212, "syslog": 103},
    "memory of others": {"process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "pidfd_getfd": 438, "process_madvise": 440, "process_mrelease": 448},
    "files by handle": {"name_to_handle_at": 303, "open_by_handle_at": 304, "fanotify_init": 300, "fanotify_mark": 301},
    "administration": {"acct": 163, "swapon": 167, "swapoff": 168, "reboot": 169, "quotactl": 179, "quotactl_fd": 443, "ioprio_set": 251},
    "clocks": {"adjtimex": 159, "settimeofday": 164, "clock_settime": 227, "clock_adjtime": 305},
    "ports and descriptors of the processor": {"iopl": 172, "ioperm": 173, "modify_ldt": 154, "map_shadow_stack": 453},
    "keyrings": {"add_key": 248, "request_key": 249, "keyctl": 250},
    "placement of memory": {"mbind": 237, "set_mempolicy": 238, "get_mempolicy": 239, "migrate_pages": 256, "move_pages": 279, "set_mempolicy_home_node": 450, "remap_file_pages": 216, "memfd_secret": 447},
    "asynchronous input and output": {"io_setup": 206, "io_submit": 209, "io_pgetevents": 333, "vmsplice": 278, "mq_open": 240},
    "io_uring": {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427},
    "other ways to be": {"personality_32bit": 135, "_sysctl": 156, "lsm_get_self_attr": 459, "lsm_set_self_attr": 460},
}
ARGUMENTS = {"personality_32bit": [8]}
CLONE3 = 435  # Calls after it are younger than some engines, which then answer ENOSYS before any filter.


def let_through(results):
    """The labels whose verdicts are not all EPERM."""
    return [label for label, found in results.items() if set(found if isinstance(found, list) else [found]) != {"EPERM"}]


def made(results):
    """The labels where a call did what it was asked for."""
    return [label for label, found in results.items() if "ok" in found]


def refusals(group):
    """Those of a group that are not refused, with what they answered."""
    answers = {label: call(number, *ARGUMENTS.get(label, [0, 0, 0, 0, 0, 0])) for label, number in group.items()}
    return {label: answers[label] for label in let_through(answers) if group[label] < CLONE3 or answers[label] != "ENOSYS"}


def apart(ask):
    """What `ask` answers in a process of its own: a call that is allowed may change its process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, json.dumps(ask()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as file:
        answer = json.load(file)
    os.waitpid(child, 0)
    return answer


def fork_with(flags):
    """Makes a process by clone, which ends at once."""
    ctypes.set_errno(0)
    child = libc.syscall(ctypes.c_long(56), ctypes.c_ulong(flags | 17), *[ctypes.c_ulong(0)] * 4)
    if child == 0:
        os._exit(0)
    if child == -1:
        return name(ctypes.get_errno())
    os.waitpid(child, 0)
    return "ok"


verdicts["forbidden_let_through"] = {label: apart(lambda: refusals(group)) for label, group in FORBIDDEN.items()}
verdicts["forbidden"] = sum(map(len, FORBIDDEN.values()))
# 335 and 336 belong to the kernel's own probes: seccomp itself passes them on.
verdicts["unknown_let_through"] = sorted({call(number) for number in [*range(337, 424), *range(470, 600)]} - {"EPERM", "ENOSYS"})

before = {entry: os.readlink(f"/proc/self/ns/{entry}") for entry in sorted(os.listdir("/proc/self/ns"))}
verdicts["unshare_let_through"] = let_through({label: [apart(lambda: call(272, flag | high)) for high in (0, HIGH)] for label, flag in NAMESPACES.items()})
# The low byte of clone's flags is the signal at exit, so a time namespace can be asked of unshare and clone3 only.
clones = {label: flag for label, flag in NAMESPACES.items() if label != "NEWTIME"}
forks = {label: [fork_with(flag | high) for high in (0, HIGH)] for label, flag in clones.items()}
verdicts["clone_let_through"] = let_through(forks)
verdicts["clone3"] = call(435, ctypes.create_string_buffer(88), 88)
verdicts["setns"] = [call(308, os.open(f"/proc/self/ns/{entry}", os.O_RDONLY), 0) for entry in ("net", "mnt", "pid") if entry in before]
verdicts["same_namespaces"] = before == {entry: os.readlink(f"/proc/self/ns/{entry}") for entry in before}

FAMILIES = {"UNSPEC": 0, "AX25": 3, "IPX": 4, "X25": 9, "KEY": 15, "PACKET": 17, "RDS": 21, "CAN": 29, "TIPC": 30, "BLUETOOTH": 31, "ALG": 38, "VSOCK": 40, "KCM": 41, "SMC": 43, "XDP": 44}
families = {label: [call(41, family | high, kind, 0) for high in (0, HIGH, 1 << 63) for kind in (1, 2)] for label, family in FAMILIES.items()}
verdicts["families_let_through"], verdicts["families_made"] = let_through(families), made(families)
verdicts["families_allowed"] = {label: call(41, family, 2, 0) for label, family in {"UNIX": 1, "INET": 2, "INET6": 10, "NETLINK_ROUTE": 16}.items()}
PROTOCOLS = {"ICMP": (2, 2, 1), "ICMP6": (10, 2, 58), "SCTP": (2, 1, 132), "SCTP_by_type": (2, 5, 0), "DCCP": (2, 6, 33), "DCCP_by_type": (2, 6, 0), "PACKET_by_type": (2, 10, 0), "PACKET6_by_type": (10, 10, 0), "UDPLITE": (2, 2, 136), "MPTCP": (2, 1, 262), "RAW": (2, 3, 255), "NETLINK_AUDIT": (16, 3, 9), "NETLINK_NETFILTER": (16, 3, 12), "NETLINK_XFRM": (16, 3, 6), "NETLINK_UEVENT": (16, 2, 15)}
protocols = {label: [call(41, *low), call(41, *[number | HIGH for number in low])] for label, low in PROTOCOLS.items()}
verdicts["protocols_let_through"], verdicts["protocols_made"] = let_through(protocols), made(protocols)
verdicts["socketpair"] = {label: call(53, family, 1, 0, ctypes.create_string_buffer(8)) for label, family in {"UNIX": 1, "TIPC": 30, "TIPC_high": 30 | HIGH}.items()}

limit = ctypes.create_string_buffer(bytes(16))
mask = ctypes.create_string_buffer(b"\x01" + bytes(127))
zero = ctypes.create_string_buffer(64)
# The limit on core files is 0 before, so that PID 1 can still tell where the call gets through.
ON_PID_ONE = {
    "prlimit64": lambda pid: call(302, pid, 4, limit, 0), "sched_setaffinity": lambda pid: call(203, pid, 128, mask), "sched_setscheduler": lambda pid: call(144, pid, 3, zero),
    "sched_setparam": lambda pid: call(142, pid, zero), "sched_setattr": lambda pid: call(314, pid, zero, 0), "setpriority": lambda pid: call(141, 0, pid, 19),
    "setpriority_user": lambda pid: call(141, 2, 65534, 19), "setpriority_group": lambda pid: call(141, 1, 0 | (pid & HIGH), 19), "ioprio_set": lambda pid: call(251, 1, pid, 3 << 13),
    "kcmp": lambda pid: call(312, pid, os.getpid(), 0, 0, 0), "ptrace_seize": lambda pid: call(101, 0x4206, pid, 0, 0), "process_vm_readv": lambda pid: call(310, pid, zero, 1, zero, 1, 0),
}
verdicts["on_pid_one_let_through"] = let_through({label: [apart(lambda: act(pid)) for pid in (1, 1 | HIGH)] for label, act in ON_PID_ONE.items()})
one = libc.syscall(434, 1, 0)
verdicts["pidfd_of_pid_one"] = {"getfd": call(438, one, 1, 0), "madvise": call(440, one, zero, 1, 9, 0), "signal": call(424, one, 9, 0, 0)}
verdicts["memory_of_pid_one"] = attempt(os.open, "/proc/1/mem", os.O_RDWR)
verdicts["core_scheduling_of_pid_one"] = "ok" in [call(157, 62, command, pid, 0, 0) for command in (1, 2, 3) for pid in (1, 1 | HIGH)]
verdicts["on_itself"] = {"prlimit64": call(302, 0, 7, 0, zero), "sched_setaffinity": call(203, 0, 128, mask), "setpriority": call(141, 0, 0, 17), "setpriority_by_id": call(141, 0, os.getpid(), 18)}
child = os.fork()
if child == 0:
    signal.pause()
verdicts["on_itself"]["prlimit64_of_child"] = call(302, child, 4, limit, 0)
verdicts["on_itself"]["sched_setaffinity_of_child"] = call(203, child, 128, mask)
verdicts["on_itself"]["setpriority_of_child"] = call(141, 0, child, 19)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
# In earnest the first flushes every disk of the host, and the second knows a wrong descriptor.
verdicts["flushes"] = {"sync": call(162), "syncfs": call(306, 4711), "fsync": call(74, 4711)}


def machine_code(code):
    libc.mmap.restype = ctypes.c_void_p
    page = libc.mmap(None, ctypes.c_size_t(4096), 7, 0x22, -1, ctypes.c_long(0))
    ctypes.memmove(page, code, len(code))
    return ctypes.CFUNCTYPE(ctypes.c_int)(page)


def other_abi(code):
    # The result of a call that got through is a process id, so never 0 or negative.
    return in_child(lambda: 1 if machine_code(code)() > 0 else 0)


# mov eax, 20 (getpid of i386); int 0x80; ret. Then the same for x32: mov eax, 0x40000027; syscall; ret.
verdicts["i386"] = other_abi(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
verdicts["x32"] = other_abi(b"\xb8\x27\x00\x00\x40\x0f\x05\xc3")
verdicts["still_alive"] = os.getpid() > 1
conclude()
