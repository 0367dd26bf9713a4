# Leaves one strange thing where the output belongs: O-01, O-02, O-11, O-19. The input names it.
PATH = os.environ["SANDBOX_OUTPUT"]
MIB = 1024 * 1024


def text(content):
    def leave():
        with open(PATH, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())

    return leave


def sparse(size):
    def leave():
        with open(PATH, "wb") as file:
            file.truncate(size)

    return leave


def listening_socket():
    socket.socket(socket.AF_UNIX).bind(PATH)


def locked():
    text("1")()
    os.chmod(PATH, 0)


CASES = {
    "link to a file of the image": lambda: os.symlink("/etc/passwd", PATH),
    "link to a canary": lambda: os.symlink(given()["canary"], PATH),
    "link to the environment": lambda: os.symlink("/proc/self/environ", PATH),
    "link to the first process": lambda: os.symlink("/proc/1/environ", PATH),
    "link to itself": lambda: os.symlink(PATH, PATH),
    "link to nowhere": lambda: os.symlink("/nowhere", PATH),
    "link to a device": lambda: os.symlink("/dev/zero", PATH),
    "link to the input": lambda: os.symlink("/sandbox/input.json", PATH),
    "fifo": lambda: os.mkfifo(PATH),
    "socket": listening_socket,
    "folder": lambda: os.mkdir(PATH),
    "missing": lambda: None,
    "empty": text(""),
    "locked": locked,
    "100 MB": sparse(100 * 1000 * 1000),
    "1 TiB": sparse(1 << 40),
    "one byte above the cap": lambda: text('"' + "x" * (10 * MIB - 1) + '"')(),
    "at the cap": lambda: text('"' + "x" * (10 * MIB - 2) + '"')(),
    "100,000 deep": text("[" * 100_000 + "]" * 100_000),
    "100,000 digits": text("7" * 100_000),
    "NaN": text("NaN"),
    "duplicate keys": text('{"a": 1, "a": 2}'),
    "UTF-16": text('{"a": 1}'.encode("utf-16")),
    "invalid UTF-8": text(b'"\xff"'),
    "lone surrogate": text('"\\ud800"'),
    "NUL after it": text('{"a": 1}\0'),
    "two values": text("1 2"),
    "bare string": text('"bare"'),
    "null": text("null"),
    "numbers": text('{"big": 9007199254740993, "precise": 0.1000000000000000055511151231257827021181, "zero": -0, "huge": 1e400}'),
}
CASES[given()["case"]]()
