"""Runs code that came with a request, or calls a function of a skill: `python3 …/_skillbox/main.py code|function …`."""
import os
import sys

# As for a script in the working directory.
sys.path[0] = os.getcwd()

from _skillbox import calls

sys.exit(calls.main(sys.argv[1:]))
