"""Requests, retries and time limits, against scripted servers."""

import json
import os
import pickle
import socket
import threading
import time
import traceback
import unittest
from decimal import Decimal
from unittest import mock

import skillbox
from skillbox import Client, Error

from .scripted import ID, ScriptedServer, answer, envelope, problem, response

KEY = "skb_secret-of-the-test"


class RequestTest(unittest.TestCase):
    def setUp(self):
        faster = mock.patch.object(skillbox, "_PAUSE_SECONDS", 0.01)
        faster.start()
        self.addCleanup(faster.stop)

    def served(self, *answers, **options):
        server = ScriptedServer(*answers)
        self.addCleanup(server.__exit__)
        client = Client(server.url, KEY, **options)
        self.addCleanup(client.close)
        return server, client

    def refused(self, *answers, call=lambda client: client.run_code("1"), **options):
        server, client = self.served(*answers, **options)
        with self.assertRaises(Error) as found:
            call(client)
        return server, found.exception

    def test_run_sends_the_members_of_the_request(self):
        server, client = self.served(answer(envelope()), tenant="acme")
        result = client.run("text-summary", {"n": 1}, timeout=3, files={"a.csv": b"\x00\xff"}, version=None)
        self.assertEqual((result.output, result.status, result.ended), (42, "success", True))
        request = server.requests[0]
        self.assertEqual((request.method, request.target), ("POST", "/v1/executions"))
        self.assertEqual(
            json.loads(request.body), {"skill": "text-summary", "input": {"n": 1}, "timeout": 3, "files": {"a.csv": "AP8="}}
        )
        self.assertEqual(request["authorization"], "Bearer " + KEY)
        self.assertEqual(request["x-skillbox-tenant"], "acme")

    def test_absent_null_and_exact_inputs_differ(self):
        server, client = self.served(*[answer(envelope())] * 3)
        client.run("a")
        client.run("a", None)
        client.run("a", b'{"n": 0.10, "big": 1e400}')
        bodies = [request.body for request in server.requests]
        self.assertEqual(bodies, [b'{"skill":"a"}', b'{"skill":"a","input":null}', b'{"skill":"a","input":{"n": 0.10, "big": 1e400}}'])

    def test_text_as_content_of_a_file_is_rejected(self):
        _, client = self.served()
        with self.assertRaisesRegex(TypeError, "bytes or a pathlib.Path"):
            client.run_code("1", files={"a.txt": "text"})

    def test_output_is_exact(self):
        text = json.dumps(envelope(output="@")).replace('"@"', '{"n": 0.10, "big": ' + "9" * 5000 + ', "a": 12345678901234567890}')
        _, client = self.served(response(body=text.encode()))
        result = client.run_code("1")
        self.assertEqual(result.output["a"], 12345678901234567890)
        self.assertEqual(str(result.output["big"]), "9" * 5000)
        self.assertEqual(result.output_json[:22], b'{"n": 0.10, "big": 999')
        self.assertEqual(json.loads(result.output_json[:10] + b"}", parse_float=Decimal), {"n": Decimal("0.10")})

    def test_busy_server_gets_the_same_request_again(self):
        for status, code in [(429, "rate_limited"), (503, "busy"), (502, "internal"), (504, "internal")]:
            server, client = self.served(problem(status, code), problem(status, code), problem(status, code), answer(envelope()))
            self.assertEqual(client.run_code("1").status, "success")
            self.assertEqual(len({request["idempotency-key"] for request in server.requests}), 1)
            self.assertEqual(len({request.body for request in server.requests}), 1)
            self.assertEqual(len(server.requests), 4)

    def test_the_fourth_error_is_reported(self):
        server, error = self.refused(*[problem(503, "busy", retryable=True)] * 9)
        self.assertEqual((error.status, error.code, error.message), (503, "busy", "what is wrong"))
        self.assertEqual((error.request_id, error.retryable), ("request-1", True))
        self.assertEqual(len(server.requests), 4)

    def test_lost_connections_get_the_same_request_again(self):
        half = answer(envelope())[:-20]
        server, client = self.served(None, half_answer(half), None, answer(envelope()))
        self.assertEqual(client.run_code("1").status, "success")
        self.assertEqual(len({request["idempotency-key"] for request in server.requests}), 1)

    def test_each_run_has_its_own_idempotency_key(self):
        server, client = self.served(*[answer(envelope())] * 3)
        client.run_code("1")
        client.run_code("1")
        client.run_code("1", idempotency_key="order-1")
        keys = [request["idempotency-key"] for request in server.requests]
        self.assertEqual(len(set(keys)), 3)
        self.assertEqual(keys[2], "order-1")

    def test_rejected_requests_are_not_sent_again(self):
        for status in [400, 401, 403, 404, 409, 413, 422, 500, 507]:
            server, error = self.refused(problem(status, "invalid", errors=[{"pointer": "/n", "message": "too small"}]))
            self.assertEqual((error.status, len(server.requests)), (status, 1))
            self.assertEqual(error.errors[0].pointer, "/n")

    def test_errors_reach_other_processes(self):
        _, error = self.refused(problem(400, "invalid", errors=[{"pointer": "/n", "message": "too small"}]))
        copied = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copied), vars(copied)), (str(error), vars(error)))

    def test_a_skill_with_the_name_of_the_code_tool_is_left_out(self):
        for form, definition in [("openai", {"function": {"name": "run_code"}}), ("anthropic", {"name": "run_code"})]:
            _, client = self.served(answer({"items": [definition], "next_page_token": None}))
            self.assertEqual(len(client.tools(form)), 1)

    def test_a_server_that_does_not_run_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as unused:
            url = "http://127.0.0.1:%d" % unused.getsockname()[1]
        with self.assertRaises(Error) as found:
            Client(url, KEY).health()
        self.assertEqual((found.exception.code, found.exception.status, found.exception.retryable), ("no_connection", 0, True))
        self.assertIn(url, found.exception.message)

    def test_waits_as_long_as_the_server_says(self):
        server, client = self.served(problem(429, "rate_limited", retry_after=1), answer(envelope()))
        began = time.monotonic()
        client.run_code("1")
        self.assertGreaterEqual(time.monotonic() - began, 1)

    def test_a_wait_above_the_limit_is_reported_at_once(self):
        for header in ["3600", "Fri, 31 Dec 2999 23:59:59 GMT"]:
            server, error = self.refused(response(503, b"<html>", "text/html", Retry_After=header))
            self.assertEqual((len(server.requests), error.code), (1, "unexpected_answer"))
            self.assertGreater(error.retry_after, 3000)

    def test_wrong_waits_are_ignored(self):
        for header in ["-1", "nan", "1e9", "soon", "9" * 400, "Fri, 99 Dec"]:
            server, client = self.served(response(503, b"", "text/html", Retry_After=header), answer(envelope()))
            client.run_code("1")
            self.assertEqual(len(server.requests), 2)

    def test_timeout_covers_all_tries_and_single_bytes(self):
        def drip(connection, _):
            for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"a" * 10_000:
                connection.sendall(bytes([byte]))
                time.sleep(0.02)

        for answers in [[drip] * 4, [lambda *_: time.sleep(60)] * 4, [problem(503, "busy", retry_after=1)] * 9]:
            began = time.monotonic()
            _, error = self.refused(*answers, timeout=0.5)
            self.assertLess(time.monotonic() - began, 10)
            self.assertIn(error.code, ("timeout", "busy"))

    def test_deletion_whose_answer_was_lost_succeeds(self):
        _, client = self.served(None, problem(404, "not_found"))
        client.delete_execution(ID)
        _, error = self.refused(problem(404, "not_found"), call=lambda client: client.delete_execution(ID))
        self.assertEqual(error.code, "not_found")

    def test_key_is_in_no_error_and_no_repr(self):
        page = ("<html>" + KEY).encode()
        leaks = [
            problem(400, "invalid", detail="the key %s is wrong" % KEY, request_id=KEY),
            response(500, page, "text/html", X_Request_Id=KEY),
            response(302, b"", Location="http://evil.example/" + KEY),
            ("HTTP/9.9 %s\r\n\r\n" % KEY).encode(),
            response(200, page),
        ]
        for leak in leaks:
            _, error = self.refused(*[leak] * 4)
            shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
            for text in [str(error), repr(error), repr(vars(error)), shown]:
                self.assertNotIn(KEY, text)
        self.assertNotIn(KEY, repr(Client("http://x", KEY)))
        with self.assertRaises(ValueError) as found:
            Client("http://x", KEY + "\n")
        self.assertNotIn(KEY, str(found.exception))

    def test_redirects_are_not_followed(self):
        other = ScriptedServer(answer(envelope()))
        self.addCleanup(other.__exit__)
        _, error = self.refused(response(307, b"", Location=other.url + "/v1/executions"))
        self.assertEqual((error.status, error.code, other.requests), (307, "unexpected_answer", []))

    def test_wrong_addresses_are_rejected(self):
        for url in [None, "ftp://x", "x:8080", "http://", "http://u:p@x", "http://x?a=1", "http://x:port"]:
            with mock.patch.dict(os.environ, {"SKILLBOX_SERVER_URL": ""}), self.assertRaisesRegex(ValueError, "base_url"):
                Client(url, KEY)
        for url in ["http://x:1/", "https://[::1]", "https://[::1]:8443/below"]:
            self.assertEqual(Client(url, KEY).base_url, url.rstrip("/"))

    def test_answers_of_another_kind_are_errors(self):
        bad = [
            b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"{}", b"[" * 100_000, b'{"output": ' + b"[" * 100_000,
            json.dumps(envelope(status=1)).encode(), json.dumps(envelope(files=[{}])).encode(), json.dumps(envelope(logs=None)).encode(),
        ]
        for body in bad:
            _, error = self.refused(response(body=body))
            self.assertEqual(error.code, "unexpected_answer", body[:20])

    def test_members_of_a_newer_server_are_ignored(self):
        _, client = self.served(answer(envelope(status="paused", new={"a": 1})))
        self.assertEqual(client.run_code("1").status, "paused")

    def test_large_answers_are_bounded(self):
        def endless(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                connection.sendall(b" " * 65536)

        with mock.patch.object(skillbox, "_ANSWER_BYTES_MAX", 1_000_000):
            _, error = self.refused(endless, call=lambda client: client.read_file(ID, "a", bytes_max=1_000_000))
            self.assertEqual(error.code, "unexpected_answer")

    def test_endless_lists_are_bounded(self):
        page = answer({"items": [], "next_page_token": "again"})
        with mock.patch.object(skillbox, "_PAGES_MAX", 20):
            server, error = self.refused(*[page] * 99, call=lambda client: client.list_skills())
        self.assertEqual((error.code, len(server.requests)), ("unexpected_answer", 20))

    def test_lists_follow_pages_up_to_the_limit(self):
        blob = {"blob_id": "sha256:00", "size": 1, "media_type": "a/b", "created_at": "", "expires_at": ""}
        pages = [answer({"items": [blob] * 2, "next_page_token": "p1"}), answer({"items": [blob] * 2, "next_page_token": "p2"})]
        server, client = self.served(*pages)
        self.assertEqual(len(client.list_blobs(limit=3)), 3)
        self.assertEqual([request.target for request in server.requests], ["/v1/blobs?limit=3", "/v1/blobs?limit=1&page_token=p1"])

    def test_connections_are_reused(self):
        server, client = self.served(*[answer(envelope())] * 5)
        for _ in range(5):
            client.run_code("1")
        self.assertEqual(server.connections, 1)

    def test_threads_share_a_client(self):
        server, client = self.served(*[answer(envelope())] * 40)
        statuses = []
        threads = [
            threading.Thread(target=lambda: statuses.extend(client.run_code("1").status for _ in range(5))) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(statuses, ["success"] * 40)

    def test_early_refusal_of_a_large_body_is_read(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        connections = []

        def refuse():
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(problem(413, "too_large"))
                    connections.append(1)

        threading.Thread(target=refuse, daemon=True).start()
        client = Client("http://127.0.0.1:%d" % listener.getsockname()[1], KEY)
        self.addCleanup(client.close)
        with self.assertRaises(Error) as found:
            client.upload_blob(b"x" * 20_000_000)
        self.assertEqual((found.exception.code, len(connections)), ("too_large", 1))

    def test_names_are_escaped_in_paths(self):
        server, client = self.served(*[response(body=b"x")] * 2)
        client.read_file(ID, "a b/ü?.txt")
        client.download_skill("../keys", "1?x#y")
        self.assertEqual(
            [request.target for request in server.requests],
            ["/v1/executions/%s/files/a%%20b/%%C3%%BC%%3F.txt" % ID, "/v1/skills/..%2Fkeys/1%3Fx%23y/archive"],
        )

    def test_server_without_a_ready_sandbox_is_reported_not_raised(self):
        report = {"ready": False, "checks": [{"name": "sandbox", "ok": False}]}
        server, client = self.served(answer(report, 503))
        self.assertFalse(client.health().ready)
        self.assertEqual(len(server.requests), 1)


def half_answer(data):
    def send(connection, _):
        connection.sendall(data)

    return send
