# Leaves a hostile tree where files are collected: O-03 to O-09, O-12, O-13. The input names it.
import fcntl

FILES = os.environ["SANDBOX_FILES_DIR"]
MIB = 1024 * 1024
os.chdir(FILES)


def put(path, content="own"):
    with open(path, "w") as file:
        file.write(content)


def sparse(path, size):
    with open(path, "wb") as file:
        file.truncate(size)


def links():
    put("real")
    os.symlink("real", "relative")
    os.symlink("/etc/passwd", "absolute")
    os.symlink("relative", "chain")
    os.symlink("../../../../etc", "folder")
    os.symlink("/proc/1/root", "root")
    os.symlink("/proc/self/fd/0", "descriptor")
    for number, canary in enumerate(given()["canaries"]):
        os.symlink(canary, f"canary-{number}")
    verdicts["hard"] = {
        "skill": attempt(os.link, os.path.abspath(__file__), "skill"),
        "image": attempt(os.link, "/etc/passwd", "image"),
        "input": attempt(os.link, "/sandbox/input.json", "input"),
        "sibling": attempt(os.link, "real", "sibling"),
    }


def special():
    for number in range(1000):
        os.mkfifo(f"fifo-{number}")
    for number in range(100):
        socket.socket(socket.AF_UNIX).bind(f"socket-{number}")
    put("plain")


def replaced():
    put("own")
    os.rename("/sandbox/out", "/sandbox/moved")
    os.symlink("/etc", "/sandbox/out")
    os.rename("/sandbox/moved/files", "/sandbox/moved/elsewhere")
    os.symlink("/etc", "/sandbox/moved/files")
    # The output goes where the collector's own descriptor leads.
    os.environ["SANDBOX_OUTPUT"] = "/sandbox/moved/output.json"


def removed():
    put("own")
    os.chdir("/")
    __import__("shutil").rmtree("/sandbox/out")
    os.symlink("/etc", "/sandbox/out")
    os.environ["SANDBOX_OUTPUT"] = "/sandbox/output.json"


def names():
    tricky = ["new\nline", "tab\tbed", "\x1b[31mred", "quo\"te'", "-rf", "bidi\u202egpj.exe", "n" * 255, "%2e%2e", "trailing ", "back\\slash", "...", " ", "ü", "\\xff", b"\xff", b"half\xc3", "C:\\x", "con", "a:b", "*"]
    for name in tricky:
        put(name, repr(name))
    os.makedirs("/".join("d" * 1 for _ in range(30)))
    deep = FILES
    for _ in range(40):
        deep += "/" + "e" * 3
        os.mkdir(deep)
    put(deep + "/bottom")
    quotes = b'"' * 255
    path = os.fsencode(FILES)
    for _ in range(12):
        path += b"/" + quotes
        os.mkdir(path)
    put(path + b"/deep")


def locked():
    for folder in ("closed", "closed/inner", "blind", "open"):
        os.mkdir(folder)
        put(f"{folder}/file")
    put("unreadable")
    os.chmod("unreadable", 0)
    for folder, mode in (("closed/inner", 0), ("closed", 0), ("blind", 0o300)):
        os.chmod(folder, mode)
    with open("open/file") as file:
        verdicts["immutable"] = attempt(fcntl.ioctl, file, 0x40086602, b"\x10" + bytes(7))
    verdicts["chown"] = attempt(os.chown, "open/file", 0, 0)
    verdicts["trusted"] = attempt(os.setxattr, "open/file", "trusted.x", b"1")


def metadata():
    put("file")
    os.chmod("file", 0o6777)
    os.utime("file", (-1e9, 4e9))
    put("future")
    os.utime("future", (0, 2**33))
    verdicts["xattr"] = attempt(os.setxattr, "file", "user.note", b"x") in ("ok", "ENOTSUP")


def one_sparse():
    sparse("huge", 1 << 40)
    put("small")


def many_sparse():
    for number in range(10_000):
        sparse(f"{number:05}", 64 * MIB)


def many():
    made = 0
    for number in range(100_000):
        if attempt(put, f"{number:06}", "") != "ok":
            break
        made += 1
    verdicts["made"] = made
    # The output needs an inode of its own.
    os.unlink("000000")


def long_paths():
    path = os.fsencode(FILES)
    for _ in range(14):
        path += b"/" + b"d" * 250
        os.mkdir(path)
    # Each byte of these takes two in JSON, and three in a link.
    for number in range(300):
        put(path + b"/" + b'"' * 246 + b"%04d" % number)
    os.chdir(path)
    for number in range(3):
        os.mkdir(str(number) * 250)
        os.chdir(str(number) * 250)
    put("beyond")


def wide():
    for number in range(3000):
        os.mkdir(f"folder-{number:04}")
        put(f"folder-{number:04}/file")


globals()[given()["case"]]()
conclude()
