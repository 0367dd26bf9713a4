"""Runs a module as `python -m` does, found where its skill's scripts stand, whatever the working directory."""
import runpy
import sys


def main(script, folder, module, *words):
    sys.path[0] = folder
    sys.argv = [script, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
