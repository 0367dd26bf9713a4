# Which packages fit the Python of this sandbox.
import json
import os
import platform
import sys

told = {"version": "%d.%d" % sys.version_info[:2], "machine": platform.machine()}
with open(os.environ["SANDBOX_OUTPUT"], "w") as out:
    json.dump(told, out)
