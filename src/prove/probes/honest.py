# What honest programs do, all of which must simply work: S-12. All of it, or only the parts that the arguments name.
import asyncio, concurrent.futures, ctypes.util, decimal, fcntl, mmap, multiprocessing, multiprocessing.shared_memory, resource, selectors, shutil, sqlite3, ssl, subprocess, tempfile, zipfile


def square(number):
    return number * number


def threads():
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(square, range(1000))) == 332833500


def processes():
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map(square, range(10))[-1] == 81
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]
    with multiprocessing.get_context("forkserver").Pool(1) as pool:
        assert pool.apply(abs, [-3]) == 3
    with multiprocessing.Manager() as manager:
        shared = manager.dict(a=1)
        child = multiprocessing.Process(target=shared.update, kwargs={"b": 2})
        child.start()
        child.join(10)
        assert dict(shared) == {"a": 1, "b": 2}


def shared_memory():
    block = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
    block.buf[:5] = b"hello"
    other = multiprocessing.shared_memory.SharedMemory(block.name)
    assert bytes(other.buf[:5]) == b"hello"
    other.close()
    block.close()
    block.unlink()
    lock = multiprocessing.Lock()
    with lock:
        pass


def children():
    out = subprocess.run("echo $((6*7)) | tr 4 5 && sleep 0 & wait", shell=True, capture_output=True, text=True, check=True, timeout=10).stdout
    assert out.strip() == "52", out
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, preexec_fn=lambda: os.nice(5))
    assert child.communicate(b"through", timeout=10)[0] == b"through"
    terminated = subprocess.Popen(["sleep", "60"])
    terminated.terminate()
    assert terminated.wait(10) == -signal.SIGTERM
    resource.prlimit(os.getpid(), resource.RLIMIT_CPU, (100, 100))


def tls():
    context = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname="example.org")
    try:
        session.do_handshake()
    except ssl.SSLWantReadError:
        pass
    assert len(outgoing.read()) > 100 and len(os.urandom(16)) == 16


def database():
    for path in (":memory:", "/workspace/test.db", "/tmp/test.db"):
        connection = sqlite3.connect(path)
        connection.execute("pragma journal_mode = wal")
        connection.execute("create table numbers (number integer)")
        connection.executemany("insert into numbers values (?)", [(n,) for n in range(1000)])
        connection.commit()
        assert connection.execute("select sum(number) from numbers").fetchone() == (499500,)
        connection.close()


def files():
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as named:
        with zipfile.ZipFile(f"{folder}/a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a", b"x" * 100_000)
        shutil.copytree(folder, f"{folder}-copy", copy_function=shutil.copy2)
        os.mkfifo(f"{folder}/fifo")
        os.symlink("a.zip", f"{folder}/link")
        os.link(f"{folder}/a.zip", f"{folder}/hard")
        fcntl.flock(named, fcntl.LOCK_EX)
        named.write(b"x" * 8192)
        named.flush()
        os.fsync(named.fileno())
        os.posix_fallocate(named.fileno(), 0, 65536)
        with mmap.mmap(named.fileno(), 4096) as mapped:
            mapped[:1] = b"y"
        assert os.sendfile(os.open("/tmp/sent", os.O_CREAT | os.O_WRONLY), named.fileno(), 0, 10) == 10
        os.chmod(f"{folder}/hard", 0o400)
        os.sync()


def local_sockets():
    async def main():
        async def serve(reader, writer):
            writer.write(await reader.readexactly(4))
            await writer.drain()
            writer.close()

        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_UNIX, None)):
            if address:
                server = await asyncio.start_server(serve, address, 0)
                reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            else:
                server = await asyncio.start_unix_server(serve, "/tmp/socket")
                reader, writer = await asyncio.open_unix_connection("/tmp/socket")
            writer.write(b"ping")
            assert await reader.readexactly(4) == b"ping"
            writer.close()
            server.close()
        piped = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        processes = [await asyncio.create_subprocess_exec("cat", **piped), await asyncio.create_subprocess_shell("tr a b | tr b c", **piped)]
        answers = await asyncio.gather(*[process.communicate(b"aa") for process in processes])
        assert [out for out, _ in answers] == [b"aa", b"cc"]
        assert await asyncio.to_thread(square, 3) == 9

    asyncio.run(main())
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_UNIX, "/tmp/datagrams")):
        with socket.socket(family, socket.SOCK_DGRAM) as receiver, socket.socket(family, socket.SOCK_DGRAM) as sender:
            receiver.bind((address, 0) if family == socket.AF_INET else address)
            sender.sendto(b"ping", receiver.getsockname())
            assert receiver.recv(9) == b"ping"
    selectors.DefaultSelector().close()
    socket.if_nameindex()
    socket.getaddrinfo("127.0.0.1", 80)


def clocks_and_signals():
    hits = []
    signal.signal(signal.SIGALRM, lambda *_: hits.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    signal.pause()
    assert hits and time.monotonic() > 0 and time.localtime() and decimal.Decimal("0.1") * 3
    timer = threading.Timer(0.01, hits.append, [2])
    timer.start()
    timer.join()
    assert hits == [1, 2]
    resource.getrusage(resource.RUSAGE_SELF)
    os.sched_getaffinity(0)
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    os.setpriority(os.PRIO_PROCESS, os.getpid(), os.getpriority(os.PRIO_PROCESS, os.getpid()) + 1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))


def terminal():
    """Its own: what `script`, `expect` and test runners make to see what people would."""
    import pty

    child, own = pty.fork()
    if child == 0:
        os.execlp("bash", "bash", "-ic", "sleep 30 & stty -echo; stty size; kill %1; wait %1; tty")
    seen = b""
    while b"/dev/pts/" not in seen:
        seen += os.read(own, 4096)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and b"0 0" in seen, seen


def main():
    for work in (threads, processes, shared_memory, children, tls, database, files, local_sockets, clocks_and_signals, terminal):
        if sys.argv[1:] and work.__name__ not in sys.argv[1:]:
            continue
        try:
            work()
            verdicts[work.__name__] = "ok"
        except BaseException as error:
            verdicts[work.__name__] = repr(error)
    conclude()


if __name__ == "__main__":
    main()
