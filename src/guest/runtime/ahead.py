"""Standard modules that an interpreter imports while it waits for its program (docs/PERFORMANCE.md lists them)."""
import os
import sys

# Those that nearly every program imports, and no more: whatever is imported is cleaned up when the program ends, used or
# not, and that takes longer than many programs run.
MODULES = ("json", "time")
# What was imported for no other reason.
imported = set()


def load(*more):
    known = set(sys.modules)
    for name in (*MODULES, *more):
        try:
            __import__(name)
        except Exception:
            # The program that imports it will get the error.
            pass
    news = set(sys.modules) - known
    imported.update(name for name in news if not name.startswith("_skillbox"))


def forget_if_shadowed(folders):
    """A program may have modules of its own by these names: then it imports everything itself, in its own order."""
    own = set()
    for folder in folders:
        try:
            own.update(name.partition(".")[0] for name in os.listdir(folder))
        except OSError:
            pass
    if not own.isdisjoint({name.partition(".")[0] for name in imported}):
        for name in imported:
            sys.modules.pop(name, None)
        imported.clear()
