# What a program can do with its packages, and what it cannot.
import ctypes
import errno
import json
import os
import subprocess

import given

DEPS = "/sandbox/deps"
TOOL = DEPS + "/given/tool"
libc = ctypes.CDLL(None, use_errno=True)


def refused(act):
    try:
        act()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"


def remount():
    MS_REMOUNT, MS_BIND = 32, 4096
    if libc.mount(b"", DEPS.encode(), None, MS_REMOUNT | MS_BIND, None):
        raise OSError(ctypes.get_errno(), "mount")


flags = os.statvfs(DEPS).f_flag
seen = {
    "answer": given.answer,
    "tool": subprocess.check_output([TOOL], text=True),
    "create": refused(lambda: open(DEPS + "/new", "w")),
    "unlink": refused(lambda: os.unlink(TOOL)),
    "chmod": refused(lambda: os.chmod(TOOL, 0o777)),
    "replace": refused(lambda: os.rename(DEPS, "/sandbox/elsewhere")),
    "remount": refused(remount),
    "lacks": [name for name in ["ST_RDONLY"] if not flags & getattr(os, name)],
}
with open(os.environ["SANDBOX_OUTPUT"], "w") as out:
    json.dump(seen, out)
