"""Everything against a real server, named by SKILLBOX_SERVER_URL and SKILLBOX_API_KEY (scopes `run` and `skills`)."""

import asyncio
import io
import json
import os
import socket
import tempfile
import threading
import time
import unittest
import uuid
import zipfile
from pathlib import Path
from unittest import mock
from urllib.parse import urlsplit

import skillbox
from skillbox import AsyncClient, Client, Envelope, Error, LogLine, PrintedEvent

HAS_SERVER = bool(os.environ.get("SKILLBOX_SERVER_URL") and os.environ.get("SKILLBOX_API_KEY"))
HAS_TIME = os.environ.get("SKILLBOX_SDK_TEST_LONG") == "1"

SKILL_MD = """---
name: %s
description: Adds numbers. Use it for totals.
version: 1.0.0
---
Send numbers.
"""
SKILL_TOML = """name = "%s"
version = "1.0.0"
description = "Adds numbers. Use it for totals."

[input_schema]
type = "object"
required = ["numbers"]
properties = { numbers = { type = "array", items = { type = "number" } } }
"""
MAIN = 'def main(args):\n    print("adding")\n    return {"total": sum(args["numbers"])}\n'


@unittest.skipUnless(HAS_SERVER, "SKILLBOX_SERVER_URL and SKILLBOX_API_KEY are not set")
class ServerTest(unittest.TestCase):
    def setUp(self):
        self.client = Client(timeout=60)
        self.addCleanup(self.client.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def skill(self, name):
        folder = self.folder / name
        (folder / "code").mkdir(parents=True)
        (folder / "skill.toml").write_text(SKILL_TOML % name)
        (folder / "code" / "main.py").write_text(MAIN)
        return folder

    def toolbox(self, name):
        folder = self.folder / name
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL_MD % name)
        for script in ("first.py", "second.py"):
            (folder / "scripts" / script).write_text("import sys\nprint(open(sys.argv[1]).read().upper())\n")
        return folder

    def test_server_is_ready(self):
        self.assertTrue(self.client.health().ready)

    def test_code_runs_and_a_failing_program_is_a_result(self):
        result = self.client.run_code("def main(args):\n    print('here')\n    return args['n'] * 2", {"n": 21})
        self.assertEqual((result.status, result.output, result.output_json), ("success", 42, b"42"))
        self.assertEqual(result.logs.stdout, "here\n")
        self.assertGreater(result.usage.memory_peak_bytes, 0)
        self.assertGreater(result.limits.granted.timeout_ms, 0)
        failed = self.client.run_code("1 / 0")
        self.assertEqual((failed.status, failed.error.name), ("failed", "ZeroDivisionError"))
        self.assertIn("ZeroDivisionError", json.loads(failed.for_model())["error"]["traceback"])
        self.assertEqual(self.client.run_code("echo $((6 * 7))", language="bash").logs.stdout, "42\n")

    def test_output_is_byte_for_byte(self):
        text = '{"float": 0.10, "big": %s, "exponent": 1e400}' % ("9" * 40)
        result = self.client.run_code("import os\nopen(os.environ['SANDBOX_OUTPUT'], 'w').write(%r)" % text)
        self.assertEqual(result.output_json.decode(), text)
        self.assertEqual(result.output["big"], int("9" * 40))
        again = self.client.run_code("import os\nprint(os.environ['SANDBOX_INPUT'])", result.output_json)
        self.assertEqual(again.logs.stdout, text + "\n")

    def test_results_have_their_forms(self):
        code = "from IPython.display import display, HTML\nlog = __import__('runtime').log\nlog.info('made', n=1)\ndisplay(HTML('<b>x</b>'))"
        result = self.client.run_code(code)
        self.assertEqual(result.results[0].html, "<b>x</b>")
        self.assertEqual(self.client.read_result(result.execution_id, 0, "html"), b"<b>x</b>")
        self.assertEqual((result.logs.lines[0].message, result.logs.lines[0].fields), ("made", {"n": 1}))

    def test_files_go_in_and_come_out(self):
        (self.folder / "b.csv").write_bytes(b"1\n\xff")
        code = "import os\nos.makedirs('out/sub')\nopen('out/sub/\\u00fc b', 'wb').write(open('a', 'rb').read() + open('b.csv', 'rb').read())\nopen('big', 'wb').write(os.urandom(3_000_000))"
        result = self.client.run_code(code, files={"a": b"\x00", "b.csv": self.folder / "b.csv"})
        self.assertEqual(result.status, "success", result.error)
        saved = self.client.download_files(result, self.folder / "saved")
        self.assertEqual(sorted(saved), [self.folder / "saved" / "big", self.folder / "saved" / "out" / "sub" / "ü b"])
        self.assertEqual(saved[1].read_bytes() if saved[1].name != "big" else saved[0].read_bytes(), b"\x001\n\xff")
        self.assertEqual(self.client.download_files(result.execution_id, self.folder / "saved"), saved)
        self.assertEqual(self.client.read_file(result.execution_id, "out/sub/ü b"), b"\x001\n\xff")

    def test_events_arrive_in_order(self):
        code = "import time\nfrom runtime import log\nfor n in range(3):\n    print(n, flush=True)\n    time.sleep(0.05)\nlog.info('end')\n7"
        found = list(self.client.stream(code=code))
        self.assertEqual([found[0].name, found[-2].name, found[-1].name], ["status", "result", "end"])
        self.assertEqual("".join(at.data.text for at in found if isinstance(at.data, PrintedEvent)), "0\n1\n2\n")
        self.assertEqual([at.data.message for at in found if isinstance(at.data, LogLine)], ["end"])
        result = found[-2].data
        self.assertIsInstance(result, Envelope)
        self.assertEqual(result.output, 7)
        middle = next(at for at in found if at.name == "stdout")
        rest = list(self.client.events(result.execution_id, last_event_id=middle.id))
        self.assertEqual(rest[-1].name, "end")
        self.assertEqual(list(self.client.events(result.execution_id, last_event_id=found[-1].id)), [])

    def test_stream_through_a_connection_that_breaks_loses_nothing(self):
        proxy = BreakingProxy(self.client.base_url, bytes_max=1500, breaks=4)
        self.addCleanup(proxy.close)
        code = "import time\nfor n in range(40):\n    print('line', n, flush=True)\n    time.sleep(0.03)"
        with mock.patch.object(skillbox, "_PAUSE_SECONDS", 0.01), Client(proxy.url, timeout=30) as client:
            found = list(client.stream(code=code))
        printed = "".join(at.data.text for at in found if isinstance(at.data, PrintedEvent))
        self.assertEqual(printed, "".join("line %d\n" % n for n in range(40)))
        self.assertGreater(proxy.connections, 3)

    def test_lost_answers_run_once(self):
        proxy = BreakingProxy(self.client.base_url, bytes_max=100, breaks=4)
        self.addCleanup(proxy.close)
        marker = "marker-" + uuid.uuid4().hex
        with mock.patch.object(skillbox, "_PAUSE_SECONDS", 0.01), Client(proxy.url, timeout=30) as client:
            with self.assertRaises(Error) as found:
                client.run_code("# %s\n1" % marker)
        self.assertEqual((found.exception.code, proxy.connections), ("no_connection", 4))
        newest = [self.client.get_request(at.execution_id) for at in self.client.list_executions(limit=20)]
        self.assertEqual(len([at for at in newest if at.request and marker in at.request.get("code", "")]), 1)

    def test_async_executions_are_waited_for_listed_and_cancelled(self):
        queued = self.client.run_code("import time\ntime.sleep(0.3)\n1", mode="async")
        self.assertFalse(queued.ended)
        with self.assertRaises(Error) as found:
            self.client.wait(queued.execution_id, timeout=0)
        self.assertEqual(found.exception.code, "timeout")
        self.assertEqual(self.client.wait(queued.execution_id).status, "success")
        self.assertIn(queued.execution_id, [at.execution_id for at in self.client.list_executions(status=["success", "failed"], code=True)])
        long = self.client.run_code("import time\ntime.sleep(100)", mode="async")
        self.assertEqual(self.client.cancel(long.execution_id).status, "cancelled")
        self.client.delete_execution(long.execution_id)
        with self.assertRaises(Error) as found:
            self.client.get_execution(long.execution_id)
        self.assertEqual((found.exception.status, found.exception.code), (404, "not_found"))
        self.assertTrue(found.exception.request_id)

    def test_requests_are_kept_and_run_again(self):
        first = self.client.run_code("def main(args):\n    return args['n']", {"n": 5})
        self.assertEqual(self.client.get_request(first.execution_id).request["input"], {"n": 5})
        again = self.client.rerun(first.execution_id)
        self.assertNotEqual(again.execution_id, first.execution_id)
        self.assertEqual(again.output, 5)

    def test_idempotency_key_runs_once(self):
        key = uuid.uuid4().hex
        first, second = [self.client.run_code("1", idempotency_key=key) for _ in range(2)]
        self.assertEqual(first.execution_id, second.execution_id)
        with self.assertRaises(Error) as found:
            self.client.run_code("2", idempotency_key=key)
        self.assertEqual((found.exception.code, found.exception.status), ("key_reused", 422))

    def test_logs_are_read_in_order(self):
        result = self.client.run_code("import sys\nprint('out', flush=True)\n__import__('time').sleep(0.1)\nprint('err', file=sys.stderr)")
        self.assertEqual(self.client.logs(result.execution_id).stdout, "out\n")
        self.assertIsNone(self.client.logs(result.execution_id, "stdout").stderr)
        parts = self.client.logs(result.execution_id, timestamps=True).parts
        self.assertEqual([part.stream for part in parts], ["stdout", "stderr"])

    def test_blobs_are_stored_and_mounted(self):
        blob = self.client.upload_blob(b"one\ntwo\n", media_type="text/plain", ttl=600)
        self.assertEqual(self.client.download_blob(blob.blob_id), b"one\ntwo\n")
        self.assertIn(blob.blob_id, [at.blob_id for at in self.client.list_blobs()])
        result = self.client.run_code("import glob\nlen(open(glob.glob('/blobs/*')[0]).readlines())", blobs=[blob.blob_id])
        self.assertEqual(result.output, 2)
        self.client.delete_blob(blob.blob_id)
        with self.assertRaises(Error):
            self.client.download_blob(blob.blob_id)

    def test_skills_are_registered_from_folders_and_archives(self):
        name = "adds-" + uuid.uuid4().hex[:8]
        folder = self.skill(name)
        (folder / "__pycache__").mkdir()
        (folder / "__pycache__" / "x.pyc").write_bytes(b"x")
        skill = self.client.register_skill(folder)
        self.assertEqual((skill.name, skill.version, skill.dialect, skill.files), (name, "1.0.0", "function", 2))
        again = self.client.register_skill(self.client.download_skill(name))
        self.assertEqual(again.digest, skill.digest)
        self.assertEqual(self.client.run(name, {"numbers": [1, 2, 3.5]}).output, {"total": 6.5})
        self.assertEqual(self.client.run(name, {"numbers": [1]}, version=skill.digest).output, {"total": 1})
        self.assertIn(name, [at.name for at in self.client.list_skills()])
        self.assertEqual([at.digest for at in self.client.list_skill_versions(name)], [skill.digest])
        with self.assertRaises(Error) as found:
            self.client.run(name, {"numbers": ["x"]})
        self.assertEqual((found.exception.code, found.exception.errors[0].pointer), ("invalid", "/numbers/0"))
        self.client.delete_skill(name, "1.0.0")
        with self.assertRaises(Error) as found:
            self.client.get_skill(name)
        self.assertEqual(found.exception.code, "not_found")

    def test_folders_with_links_out_and_devices_are_rejected(self):
        folder = self.skill("linked")
        (folder / "secret").symlink_to("/etc/passwd")
        with self.assertRaisesRegex(ValueError, "a link"):
            self.client.register_skill(folder)
        (folder / "secret").unlink()
        (folder / "inside").symlink_to("skill.toml")
        os.mkfifo(folder / "pipe")
        with self.assertRaisesRegex(ValueError, "not a file"):
            self.client.register_skill(folder)
        (folder / "pipe").unlink()
        with zipfile.ZipFile(io.BytesIO(skillbox._packed(folder))) as archive:
            self.assertEqual(archive.read("inside"), archive.read("skill.toml"))

    def test_tools_are_exported_and_called(self):
        function, toolbox = "math.adds-" + uuid.uuid4().hex[:8], "upper-" + uuid.uuid4().hex[:8]
        self.client.register_skill(self.skill(function))
        self.client.register_skill(self.toolbox(toolbox))
        named = function.replace(".", "_")
        openai = {tool["function"]["name"]: tool["function"]["parameters"] for tool in self.client.tools("openai")}
        self.assertEqual(openai[named]["required"], ["numbers"])
        self.assertEqual(openai[toolbox]["required"], ["script"])
        anthropic = {tool["name"]: tool["input_schema"] for tool in self.client.tools("anthropic")}
        self.assertEqual(anthropic["run_code"]["required"], ["code"])
        self.assertEqual(set(openai), set(anthropic))
        self.assertIn("<name>%s</name>" % function, self.client.tools_prompt())

        self.assertEqual(self.client.call_tool(named, '{"numbers": [0.10, 2]}').output, {"total": 2.1})
        self.assertEqual(self.client.call_tool("run_code", {"code": "6 * 7"}).output, 42)
        called = {"script": "scripts/first.py", "args": ["a.txt"], "files": {"a.txt": "c21hbGw="}}
        self.assertEqual(self.client.call_tool(toolbox, called).logs.stdout, "SMALL\n")
        for name, arguments in [
            ("run_code", '{"code": "1", "callback_url": "http://evil"}'), ("run_code", "{"), ("run_code", "[]"),
            ("no-such-tool", "{}"), (named, '{"numbers": "x"}'), (toolbox, {"script": "x.py", "skill": "other"}),
        ]:
            self.assertEqual(json.loads(self.client.tool_result(name, arguments))["status"], "rejected", (name, arguments))

    def test_wrong_keys_are_rejected(self):
        with self.assertRaises(Error) as found, Client(api_key="skb_wrong") as client:
            client.list_skills()
        self.assertEqual((found.exception.status, found.exception.code), (401, "unauthenticated"))

    def test_tenant_of_the_key_is_compared(self):
        with Client(tenant="default") as client:
            client.list_skills()
        with self.assertRaises(Error) as found, Client(tenant="another") as client:
            client.list_skills()
        self.assertEqual((found.exception.status, found.exception.code), (403, "forbidden"))

    def test_asynchronous_client_does_the_same(self):
        async def main():
            async with AsyncClient() as client:
                results = await asyncio.gather(*[client.run_code("%d * 2" % n) for n in range(6)])
                names = [at.name async for at in client.stream(code="print(1)")]
                saved = await client.download_files(await client.run_code("open('a', 'w').write('x')"), self.folder)
                with self.assertRaises(Error):
                    await client.get_skill("no-such-skill")
                return [result.output for result in results], names[-1], [path.name for path in saved]

        self.assertEqual(asyncio.run(main()), ([0, 2, 4, 6, 8, 10], "end", ["a"]))


class BreakingProxy:
    """Forwards connections, and breaks the first ones after so many bytes of the response."""

    def __init__(self, url, bytes_max, breaks):
        self.target, self.bytes_max, self.breaks, self.connections = urlsplit(url), bytes_max, breaks, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._forward, args=[connection], daemon=True).start()

    def _forward(self, connection):
        with connection, socket.create_connection((self.target.hostname, self.target.port)) as server:
            threading.Thread(target=self._send, args=[connection, server], daemon=True).start()
            left = self.bytes_max if self.connections <= self.breaks else 2**30
            while left and (data := server.recv(left)):
                connection.sendall(data)
                left -= len(data)
            # A close alone would wait for the other thread.
            server.shutdown(socket.SHUT_RDWR)
            connection.shutdown(socket.SHUT_RDWR)

    def _send(self, connection, server):
        try:
            while data := connection.recv(65536):
                server.sendall(data)
        except OSError:
            pass
