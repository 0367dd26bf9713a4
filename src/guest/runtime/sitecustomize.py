"""Makes an interpreter wait in its own start-up until there is a program for it; then it is as if this had never been."""
import os
import sys
from _frozen_importlib_external import PathFinder

from _skillbox import ahead

SHIMS = "/sandbox/runtime/_skillbox"
CALLS = SHIMS + "/main.py"
# Folders that are filled when there is a program.
LATE = ("/workspace", "/sandbox/skills/")
# Before the program's path if a client follows: see followed.py.
FOLLOWED = "/sandbox/runtime/followed:"
# Names what else will be on the path.
LATER = "/sandbox/.path"


def set_aside():
    """Everything that there is so far ends with the process, and is not searched for garbage before: that takes longer than
    many programs run. Not so the program's own names, which are objects that existed before it, too."""
    is_news = "gc" not in sys.modules
    import gc
    main = sys.modules["__main__"]
    names = vars(main)
    kept = dict(names)
    # An empty namespace is none of the collector's; it will be again when it is filled.
    names.clear()
    gc.collect()
    if hasattr(gc, "freeze") and not gc.is_tracked(names):
        # They live until the end, when what a program has put into them is taken out of each.
        modules = [module for module in sys.modules.values() if module is not main and module is not sys]
        modules.append(modules)
        gc.freeze()
    names.update(kept)
    if is_news:
        del sys.modules["gc"]


def take_job():
    """Says that this waits, waits, and returns what comes: texts, the last of which is empty."""
    ready = os.open("/sandbox/.ready", os.O_WRONLY)
    job = os.open("/sandbox/.job", os.O_RDONLY)
    os.write(ready, b"\n")
    os.close(ready)

    def read(size):
        parts = []
        while size:
            parts.append(os.read(job, size))
            size -= len(parts[-1])
        return b"".join(parts)

    body = read(int(read(10)))
    os.close(job)
    return os.fsdecode(body).split("\0")


def put_in_place(texts):
    stdin, count = texts[0], int(texts[1])
    arguments, variables = texts[2:2 + count], texts[2 + count:-1]
    if stdin:
        file = os.open(stdin, os.O_RDONLY)
        os.dup2(file, 0)
        os.close(file)
        os.unlink(stdin)
    sys.argv[1:] = [*sys.argv[1:], *arguments]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv += arguments
    given = dict(variable.split("=", 1) for variable in variables)
    for key in [*os.environ]:
        if key not in given:
            del os.environ[key]
    # In their order, and not each taken out of the process before.
    os.environ._data.clear()
    os.environ.update(given)
    if given.get("PYTHONPATH", "").startswith(FOLLOWED) and sys.stdout is not None:
        sys.stdout.reconfigure(line_buffering=True)


def wait():
    """Returns whether there is a module that this one stands in place of."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.remove(here)
    # The program's own folders: nothing is imported from them before it runs.
    with open(LATER, encoding="utf-8") as file:
        later = [*dict.fromkeys(path for path in file.read().split(":") if path)]
    program = sys.argv[0]
    folder = os.path.dirname(program)
    set_aside()
    ahead.load(*(["_skillbox.calls"] if program == CALLS else []))
    late = [path for path in (folder, *later) if path.startswith(LATE)]
    there = [path for path in (folder, *later) if path not in late]
    ahead.forget_if_shadowed(there)
    name = __spec__.name
    found = PathFinder.find_spec(name, [*sys.path, *there])
    put_in_place(take_job())
    ahead.forget_if_shadowed([os.getcwd(), *late])
    # After `/sandbox/runtime`, where they would stand.
    sys.path[1:1] = later
    if folder != SHIMS:
        for shim in ("_skillbox", "_skillbox.ahead"):
            sys.modules.pop(shim, None)
    # What was not there a moment ago may be there now.
    for path, finder in [*sys.path_importer_cache.items()]:
        if finder is None or path.startswith(LATE):
            del sys.path_importer_cache[path]
    return bool(found or PathFinder.find_spec(name, late))


stands_in = wait()
del sys.modules[__name__]
if not stands_in:
    # As start-up expects where there is none, without looking through all folders once more.
    raise ModuleNotFoundError(f"No module named {__name__!r}", name=__name__)
import sitecustomize
