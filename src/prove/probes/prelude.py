# What every Python probe starts with. A probe records verdicts; they become the execution's output.
import atexit, ctypes, errno, json, os, signal, socket, stat, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
HIGH = 1 << 32  # Past the 32 bits that most system calls look at.

verdicts = {}


def conclude():
    with open(os.environ["SANDBOX_OUTPUT"], "w") as file:
        json.dump(verdicts, file)


def skip(reason):
    """Ends a probe that says nothing on this machine."""
    verdicts.clear()
    verdicts["skipped"] = reason
    conclude()
    os._exit(0)


def name(number):
    return errno.errorcode.get(number, str(number))


def call(number, *arguments):
    """A raw system call: `ok` or the errno's name."""
    if os.uname().machine != "x86_64":
        skip("it names system calls by their numbers on x86-64")
    padded = [ctypes.c_ulong(a & (2**64 - 1)) if isinstance(a, int) else a for a in arguments]
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *padded)
    return "ok" if result != -1 else name(ctypes.get_errno())


def attempt(action, *arguments, **named):
    """Any Python call: `ok` or the name of the errno or of the exception."""
    try:
        action(*arguments, **named)
        return "ok"
    except OSError as error:
        return name(error.errno) if error.errno else type(error).__name__
    except Exception as error:
        return type(error).__name__


def write(path, content="x"):
    """Tries to write a file: `ok` or the errno's name."""

    def act():
        with open(path, "w") as file:
            file.write(content)

    return attempt(act)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def in_child(action):
    """Runs `action` in a forked child: its exit code, or the signal that ended it as a name."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = action() or 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return os.WEXITSTATUS(status)


def given():
    """The execution's input."""
    return json.loads(read(os.environ["SANDBOX_INPUT_FILE"]))
