"""Runs the bench's program in llm-sandbox: one word a line in, a line of milliseconds out: until the answer, and until all is gone."""

import os
import sys
import time

from llm_sandbox import SandboxBackend, SandboxSession

CODE = """import json
value = json.loads('{"x": 1}')
json.dump({"got": value}, open("/tmp/output.json", "w"))
print("done")
"""


def session(backend):
    # Its set-up of a virtual environment takes seconds and is nothing that a program without packages needs.
    options = {"lang": "python", "backend": backend, "verbose": False, "skip_environment_setup": True}
    if backend == SandboxBackend.DOCKER:
        options |= {"image": os.environ["SKILLBOX_IMAGE_PYTHON"], "keep_template": True}
    return SandboxSession(**options)


def run(one):
    result = one.run(CODE)
    assert result.exit_code == 0 and "done" in result.stdout, result


def whole(backend):
    with session(backend) as one:
        run(one)
        return time.perf_counter()


def main():
    reused = None
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    # What the library prints is not an answer.
    os.dup2(2, 1)
    for word in map(str.strip, sys.stdin):
        if word == "reused" and reused is None:
            reused = session(SandboxBackend.DOCKER)
            reused.open()
        began = answered = time.perf_counter()
        if word == "cold":
            answered = whole(SandboxBackend.DOCKER)
        elif word == "reused":
            run(reused)
            answered = time.perf_counter()
        elif word == "bwrap":
            answered = whole(SandboxBackend.BUBBLEWRAP)
        gone = time.perf_counter()
        print((answered - began) * 1000, (gone - began) * 1000, file=answers)
    if reused is not None:
        reused.close()


main()
