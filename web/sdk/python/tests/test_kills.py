"""A server that is killed while it runs code: each call ends with a result or an error, and nothing runs twice.

Needs SKILLBOX_TEST_BINARY and SKILLBOX_SDK_TEST_LONG=1; SKILLBOX_TEST_KILLS is the number of kills.
"""

import os
import random
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import uuid
from collections import Counter

from skillbox import Client, Error

BINARY = os.environ.get("SKILLBOX_TEST_BINARY")
KILLS = int(os.environ.get("SKILLBOX_TEST_KILLS", "200"))


@unittest.skipUnless(BINARY and os.environ.get("SKILLBOX_SDK_TEST_LONG") == "1", "SKILLBOX_TEST_BINARY and SKILLBOX_SDK_TEST_LONG are not set")
class KillTest(unittest.TestCase):
    def setUp(self):
        data = tempfile.TemporaryDirectory()
        self.addCleanup(data.cleanup)
        self.data = data.name
        with socket.create_server(("127.0.0.1", 0)) as unused:
            self.port = unused.getsockname()[1]
        self.process = None
        self.addCleanup(self.kill)
        self.start()
        self.client = Client("http://127.0.0.1:%d" % self.port, self.first_key(), timeout=60)
        self.addCleanup(self.client.close)

    def start(self):
        # Without the variables of the tests, which a server rejects.
        variables = {"PATH": os.environ["PATH"], "SKILLBOX_DATA_DIR": self.data, "SKILLBOX_SANDBOX_BACKEND": "native"}
        command = [BINARY, "serve", "--port", str(self.port), "--quiet"]
        self.process = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                self.assertIsNone(self.process.poll(), "the server has ended")
                time.sleep(0.05)

    def first_key(self):
        # The server listens before it writes the key.
        while True:
            try:
                with open(os.path.join(self.data, "admin.key")) as file:
                    key = file.read().strip()
            except FileNotFoundError:
                key = ""
            if key:
                return key
            self.assertIsNone(self.process.poll(), "the server has ended")
            time.sleep(0.05)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def test_nothing_runs_twice_and_every_call_ends(self):
        rng = random.Random(11)
        outcomes, markers = Counter(), []
        for n in range(KILLS):
            marker = "marker-" + uuid.uuid4().hex
            markers.append(marker)

            def call():
                try:
                    if n % 2:
                        events = list(self.client.stream(code="# %s\nimport time\ntime.sleep(0.2)" % marker))
                        outcomes[events[-1].data.status] += 1
                    else:
                        outcomes[self.client.run_code("# %s\nimport time\ntime.sleep(0.2)" % marker).status] += 1
                except Error as error:
                    outcomes[error.code] += 1

            thread = threading.Thread(target=call)
            thread.start()
            time.sleep(rng.uniform(0, 0.5))
            self.kill()
            self.start()
            thread.join(60)
            self.assertFalse(thread.is_alive(), "a call has not ended")
        runs = Counter()
        for execution in self.client.list_executions(limit=KILLS * 4):
            code = (self.client.get_request(execution.execution_id).request or {}).get("code", "")
            runs[code.partition("\n")[0][2:]] += 1
        twice = [marker for marker in markers if runs[marker] > 1]
        print("\n%d kills: %s, %d ran, %d ran twice" % (KILLS, dict(outcomes), len(runs), len(twice)))
        self.assertEqual(sum(outcomes.values()), KILLS)
        self.assertEqual(twice, [])
        self.assertGreater(outcomes["interrupted"], 0)
