# Takes more than there is. The input names of what.
import mmap, resource

MIB = 1024 * 1024


def count(make, most=1_000_000):
    """How often `make` works, and what stops it."""
    made = 0
    while made < most:
        verdict = attempt(make)
        if verdict != "ok":
            return made, verdict
        made += 1
    return made, "ok"


def rounds():
    """Without end, unless the input says how often: where nothing bounds it, a probe must not take the whole host."""
    return range(given().get("rounds", 1 << 62))


def survive():
    """Nothing stopped it."""
    verdicts["survived"] = True
    conclude()
    os._exit(0)


def fork():
    if os.fork() == 0:
        while True:
            signal.pause()


def processes():
    made, verdict = count(fork, 1000)
    verdicts["processes"] = [100 < made < 127, verdict]
    conclude()


def threads():
    started = threading.Event()
    # So that their number ends them, and not their size.
    threading.stack_size(1 << 18)
    made, verdict = count(lambda: threading.Thread(target=started.wait, daemon=True).start(), 1000)
    verdicts["threads"] = [100 < made < 127, verdict]
    conclude()
    os._exit(0)


def fork_bomb():
    for _ in rounds():
        attempt(os.fork)
    while True:
        signal.pause()


def fork_bomb_that_eats():
    for _ in rounds():
        attempt(os.fork)
        hoard.append(bytearray(MIB))
    # The others need their time; the end of the first process would be theirs.
    time.sleep(5)
    survive()


hoard = []


def anonymous():
    for _ in rounds():
        hoard.append(bytearray(MIB))
    survive()


def shared():
    for _ in rounds():
        block = mmap.mmap(-1, MIB)
        block.write(b"x" * MIB)
        hoard.append(block)
    survive()


def stack():
    """A mapping of the kind that thread stacks are (MAP_STACK | MAP_NORESERVE), dug to its bottom."""
    libc.mmap.restype = libc.memset.restype = ctypes.c_void_p
    size = ctypes.c_size_t(512 * MIB)
    libc.memset(ctypes.c_void_p(libc.mmap(None, size, 3, 0x24022, -1, ctypes.c_long(0))), 1, size)
    survive()


def memory_files():
    for _ in rounds():
        file = os.memfd_create("hoard")
        os.write(file, b"x" * MIB)
    survive()


def system_v():
    libc.shmat.restype = ctypes.c_void_p
    for _ in rounds():
        segment = libc.shmget(0, ctypes.c_size_t(8 * MIB), 0o1600)
        libc.memset(ctypes.c_void_p(libc.shmat(segment, None, 0)), 1, ctypes.c_size_t(8 * MIB))
    survive()


def system_v_and_leave():
    """The segments outlive the program: nothing is left for another process to collect."""
    conclude()
    for _ in range(2):
        if os.fork() == 0:
            system_v()
        os.wait()


def scratch_and_leave():
    """All scratch full to the last page: enough must be left to collect it."""
    conclude()
    for folder, size in FOLDERS.items():
        with open(f"{folder}/full", "wb", buffering=0) as file:
            attempt(lambda: [file.write(b"x" * 65536) for _ in pieces(size)])


def pipes():
    def fill():
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            __import__("fcntl").fcntl(writer, 1031, MIB)
        except OSError:
            pass
        while True:
            try:
                os.write(writer, b"x" * 65536)
            except BlockingIOError:
                break
        hoard.append((reader, writer))

    def child():
        if os.fork() == 0:
            count(fill)
            while True:
                signal.pause()

    # As likely as PID 1 to be chosen when memory runs out, and smaller: pipes are on nobody's account.
    verdicts["as likely"] = write("/proc/self/oom_score_adj", "500")
    # One process cannot hold enough of them.
    for _ in range(20):
        child()
    verdicts["pipes"] = count(fill)[1]
    conclude()


def sockets():
    def fill():
        near, far = socket.socketpair()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * MIB)
        near.setblocking(False)
        try:
            while True:
                near.send(b"x" * 65536)
        except BlockingIOError:
            hoard.append((near, far))

    verdicts["sockets"] = count(fill, given().get("rounds", 1_000_000))[1]
    conclude()


def inotify():
    def instance():
        if libc.inotify_init1(0) < 0:
            raise OSError(ctypes.get_errno(), "inotify")

    made, verdict = count(instance, 1000)
    verdicts["inotify"] = [1 <= made <= 16, verdict]
    conclude()


def timers():
    def timer():
        identity = ctypes.c_void_p()
        if libc.timer_create(1, None, ctypes.byref(identity)) < 0:
            raise OSError(ctypes.get_errno(), "timer")

    made, verdict = count(timer, 10_000)
    verdicts["timers"] = [500 < made <= 1024, verdict]
    conclude()


def locked():
    libc.mlock.restype = ctypes.c_int
    block = mmap.mmap(-1, 32 * MIB)
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    verdicts["mlock"] = call(149, address, 32 * MIB)
    verdicts["mlockall"] = call(151, 3)
    conclude()


def small_maps():
    verdicts["maps"] = count(lambda: hoard.append(mmap.mmap(-1, 4096, prot=1 + len(hoard) % 2)), 100_000)[1]
    hoard.clear()
    conclude()


FOLDERS = {"/workspace": 256, "/tmp": 64, "/sandbox/out/files": 64, "/dev/shm": 64, "/root": 1}


def pieces(size):
    """Pieces of 64 KiB, four times as many as fit into so many MiB: no probe fills a disk that nothing bounds."""
    return range(4 * size * 16)


def disk():
    """How many MiB fit into each folder, each way; each folder is empty again afterwards."""

    def write_all(path, size):
        with open(path, "wb", buffering=0) as file:
            for _ in pieces(size):
                file.write(b"x" * 65536)

    def allocate(path, size):
        with open(path, "wb") as file:
            for part in range(16 * len(pieces(size))):
                os.posix_fallocate(file.fileno(), part * 4096, 4096)

    def sparse_then_write(path, size):
        with open(path, "wb", buffering=0) as file:
            file.truncate(1 << 40)
            for _ in pieces(size):
                file.write(b"x" * 65536)

    def renames(path, size):
        for part in pieces(size):
            with open(f"{path}.new", "wb", buffering=0) as file:
                while file.tell() < 65536:
                    file.write(b"x" * 65536)
            os.rename(f"{path}.new", f"{path}.{part}")

    for folder, size in FOLDERS.items():
        before = os.statvfs(folder)
        used = []
        for way in (write_all, allocate, sparse_then_write, renames):
            verdict = attempt(way, f"{folder}/filled", size)
            now = os.statvfs(folder)
            used.append([verdict, (before.f_bfree - now.f_bfree) * now.f_frsize <= size * MIB, now.f_bfree == 0])
            for entry in os.listdir(folder):
                if entry.startswith("filled"):
                    os.unlink(f"{folder}/{entry}")
        verdicts[folder] = used
    conclude()


def inodes():
    for folder in ("/workspace", "/tmp", "/sandbox/out/files", "/root"):
        numbers = iter(range(20_000))
        made, verdict = count(lambda: os.mkdir(f"{folder}/{next(numbers)}"))
        verdicts[folder] = [verdict, made < 16_384]
    # One for the output.
    os.rmdir("/sandbox/out/files/0")
    conclude()


def descriptors():
    opened, verdict = count(lambda: os.open("/dev/null", os.O_RDONLY), 10_000)
    os.closerange(100, 4096)
    near, far = socket.socketpair()
    near.setblocking(False)
    own = [os.dup(0) for _ in range(200)]
    flying = count(lambda: socket.send_fds(near, [b"x"], own), 10_000)
    verdicts["open"] = [3900 < opened < 4096, verdict]
    verdicts["in flight"] = [flying[0] * 200 <= 4296, flying[1] != "ok"]
    verdicts["raised"] = attempt(resource.setrlimit, resource.RLIMIT_NOFILE, (8192, 8192))
    conclude()


def spin():
    while True:
        pass


def cpu():
    for _ in range(60):
        threading.Thread(target=spin, daemon=True).start()
    for _ in range(3):
        if os.fork() == 0:
            spin()
    spin()


def swap():
    import glob

    for path in glob.glob("/sys/fs/cgroup/memory.swap.max") + glob.glob("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"):
        verdicts["limit"] = int(read(path)) in (0, 64 * MIB)
    conclude()
    anonymous()


globals()[given()["of"]]()
