# Tries to outlive, silence or stop what ends it: S-25, S-26, S-27, S-28, S-32, S-39, R-11. The input names the way.
FILES = os.environ["SANDBOX_FILES_DIR"]


def linger():
    """A process that no signal but SIGKILL ends, and that writes on for ever."""
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    while True:
        with open(f"{FILES}/late", "a") as file:
            file.write("tick\n")
        os.write(1, b"tick\n")


def kill_everything():
    child = os.fork()
    if child == 0:
        signal.pause()
    verdicts["first process"] = sorted({attempt(os.kill, 1, number) for number in range(1, 65)})
    verdicts["everybody"] = attempt(os.kill, -1, signal.SIGKILL)
    verdicts["own child"] = os.WTERMSIG(os.waitpid(child, 0)[1])
    verdicts["stop the first"] = [attempt(os.kill, 1, signal.SIGSTOP), attempt(os.kill, os.getppid(), signal.SIGSTOP)]
    verdicts["queued"] = call(129, 1, signal.SIGKILL, ctypes.create_string_buffer(128))
    conclude()


def kill_itself():
    conclude()
    attempt(os.kill, -1, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def daemonise():
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                linger()
            os._exit(0)
        os.wait()
    while not os.path.exists(f"{FILES}/late"):
        time.sleep(0.01)
    conclude()


def deaf():
    conclude()
    print("before", flush=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    while True:
        time.sleep(60)


def stopped():
    conclude()
    os.kill(os.getpid(), signal.SIGSTOP)


def stopped_family():
    conclude()
    for _ in range(20):
        if os.fork() == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGSTOP)


def sitting_in_vfork():
    conclude()
    # The child shares this stack, so neither ever returns from here.
    libc.syscall(ctypes.c_long(58))
    while True:
        libc.pause()


def spinning():
    conclude()
    for _ in range(6):
        os.fork()
    while True:
        # Wakes the first process as often as sixty-four can.
        os.kill(1, signal.SIGCHLD)


def orphans():
    for _ in range(500):
        child = os.fork()
        if child == 0:
            # The orphaned grandchild is reaped only by the first process.
            os.fork()
            os._exit(0)
        os.waitpid(child, 0)
    conclude()


def zombies():
    made, verdict = 0, "ok"
    while verdict == "ok" and made < 10_000:
        try:
            if os.fork() == 0:
                os._exit(0)
            made += 1
        except OSError as error:
            verdict = name(error.errno)
    verdicts["zombies"] = [made < 128, verdict]
    conclude()


def close_everything():
    conclude()
    print("before", flush=True)
    os.closerange(0, 4096)
    if os.fork() == 0:
        linger()


def pollute():
    """What one sandbox leaves, the next must not find."""
    for folder in ["/workspace", "/tmp", "/sandbox", "/root", "/dev/shm", "/dev/mqueue"]:
        write(f"{folder}/left")
    call(29, 4711, 4096, 0o1666)  # shmget: a segment that outlives its process
    conclude()


def look_for_pollution():
    verdicts["left"] = [folder for folder in ["/workspace", "/tmp", "/sandbox", "/root", "/dev/shm", "/dev/mqueue"] if os.path.exists(f"{folder}/left")]
    verdicts["segment"] = call(29, 4711, 4096, 0o666)
    conclude()


def crash():
    import resource

    child = os.fork()
    if child == 0:
        ctypes.string_at(0)
    verdicts["child"] = signal.Signals(os.WTERMSIG(os.waitpid(child, 0)[1])).name
    verdicts["core limit"] = list(resource.getrlimit(resource.RLIMIT_CORE))
    verdicts["raised"] = attempt(resource.setrlimit, resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    verdicts["cores"] = [entry for folder in ("/workspace", "/tmp", "/") for entry in os.listdir(folder) if entry.startswith("core")]
    conclude()
    ctypes.string_at(0)


def read_all_input():
    verdicts["read"] = len(sys.stdin.read())
    verdicts["then"] = sys.stdin.read()
    conclude()


def ignore_input():
    conclude()


globals()[given()["way"]]()
