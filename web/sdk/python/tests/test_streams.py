"""Event streams that break, stall or lie, against scripted servers; and the asynchronous client."""

import asyncio
import threading
import time
import unittest
from unittest import mock

import skillbox
from skillbox import AsyncClient, Client, EndEvent, Envelope, Error, PrintedEvent

from .scripted import ID, ScriptedServer, answer, envelope, event, events, problem, response

STARTED = event("status", "0-0-0-running", {"execution_id": ID, "status": "running"})
PRINTED = [event("stdout", "%d-0-0-running" % n, {"text": str(n)}) for n in range(1, 6)]
RESULT = event("result", "5-0-0-result", envelope(output={"n": 0.10}))
END = event("end", "5-0-0-end", {"status": "success", "reason": "finished"})
SHUTDOWN = event("end", "2-0-0-end", {"status": "running", "reason": "shutdown"})


class ServedTest(unittest.TestCase):
    def setUp(self):
        faster = mock.patch.object(skillbox, "_PAUSE_SECONDS", 0.01)
        faster.start()
        self.addCleanup(faster.stop)

    def served(self, *answers, kind=Client, **options):
        server = ScriptedServer(*answers)
        self.addCleanup(server.__exit__)
        client = kind(server.url, "skb_key", **options)
        self.addCleanup(client.close)
        return server, client

    def printed(self, found):
        return "".join(at.data.text for at in found if isinstance(at.data, PrintedEvent))


class StreamTest(ServedTest):
    def test_events_have_their_types(self):
        server, client = self.served(events(b": still here\n", b"retry: 1000\n", STARTED, *PRINTED, RESULT, END))
        found = list(client.stream(code="1"))
        self.assertEqual([at.name for at in found], ["status", *["stdout"] * 5, "result", "end"])
        self.assertIsInstance(found[-2].data, Envelope)
        self.assertEqual(found[-2].data.output_json, b'{"n": 0.1}')
        self.assertEqual(found[-1].data, EndEvent("success", "finished"))
        self.assertEqual(server.requests[0]["accept"], "text/event-stream")

    def test_broken_stream_resumes_after_the_last_event(self):
        server, client = self.served(
            events(STARTED, *PRINTED[:2], ends=False), events(PRINTED[2], PRINTED[3][:20]), None, events(*PRINTED[3:], RESULT, END)
        )
        self.assertEqual(self.printed(client.stream(code="1")), "12345")
        self.assertEqual([request.method for request in server.requests], ["POST", "GET", "GET", "GET"])
        self.assertEqual(
            [request["last-event-id"] for request in server.requests],
            [None, "2-0-0-running", "3-0-0-running", "3-0-0-running"],
        )
        self.assertEqual(server.requests[1].target, "/v1/executions/%s/events" % ID)

    def test_stream_that_breaks_before_its_first_event_is_the_same_run(self):
        server, client = self.served(None, events(ends=False), events(STARTED, *PRINTED, RESULT, END))
        self.assertEqual(self.printed(client.stream(code="1")), "12345")
        self.assertEqual(len({request["idempotency-key"] for request in server.requests}), 1)
        self.assertEqual([request.method for request in server.requests], ["POST"] * 3)

    def test_stream_of_a_server_that_stops_resumes(self):
        server, client = self.served(events(STARTED, *PRINTED[:2], SHUTDOWN), events(*PRINTED[2:], RESULT, END))
        found = list(client.stream(code="1"))
        self.assertEqual(self.printed(found), "12345")
        self.assertEqual([at.name for at in found].count("end"), 1)
        self.assertEqual(server.requests[1]["last-event-id"], "2-0-0-running")

    def test_stream_without_progress_ends_with_an_error(self):
        server, client = self.served(events(STARTED), *[events()] * 9)
        with self.assertRaises(Error) as found:
            list(client.stream(code="1"))
        self.assertEqual((found.exception.code, len(server.requests)), ("no_connection", 4))

    def test_stalled_stream_resumes(self):
        def stall(connection, _):
            events(STARTED, PRINTED[0], ends=False)(connection, _)
            time.sleep(30)

        server, client = self.served(stall, events(*PRINTED[1:], RESULT, END))
        with mock.patch.object(skillbox, "_STREAM_IDLE_SECONDS", 1.5):
            self.assertEqual(self.printed(client.stream(code="1")), "12345")
        self.assertEqual(server.requests[1]["last-event-id"], "1-0-0-running")

    def test_comments_of_an_idle_stream_keep_it_open(self):
        def slow(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + STARTED)
            for _ in range(12):
                time.sleep(0.2)
                connection.sendall(b": still here\n")
            connection.sendall(b"".join(PRINTED) + RESULT + END)

        server, client = self.served(slow)
        with mock.patch.object(skillbox, "_STREAM_IDLE_SECONDS", 1.5):
            self.assertEqual(self.printed(client.stream(code="1")), "12345")
        self.assertEqual(len(server.requests), 1)

    def test_refused_stream_is_an_error(self):
        server, client = self.served(problem(400, "invalid"))
        with self.assertRaises(Error) as found:
            next(client.stream(code="1"))
        self.assertEqual((found.exception.code, len(server.requests)), ("invalid", 1))

    def test_busy_server_gets_the_stream_again(self):
        _, client = self.served(problem(503, "busy"), events(STARTED, *PRINTED, RESULT, END))
        self.assertEqual(self.printed(client.stream(code="1")), "12345")

    def test_ended_stream_has_no_more_events(self):
        _, client = self.served(response(204))
        self.assertEqual(list(client.events(ID, last_event_id="5-0-0-end")), [])

    def test_hostile_events_are_errors(self):
        for data in [b"event: stdout\ndata: {}\n\n", b"event: result\ndata: 1\n\n", b"event: end\ndata: \xff\n\n"]:
            _, client = self.served(events(data))
            with self.assertRaises(Error) as found:
                list(client.stream(code="1"))
            self.assertEqual(found.exception.code, "unexpected_answer")

    def test_unknown_events_are_ignored(self):
        _, client = self.served(events(STARTED, event("news", "0-0-0-running", 1), END))
        self.assertEqual([at.name for at in client.stream(code="1")], ["status", "end"])

    def test_endless_event_is_bounded(self):
        def endless(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                connection.sendall(b"data: " + b"x" * 65536 + b"\n")

        with mock.patch.object(skillbox, "_ANSWER_BYTES_MAX", 1_000_000):
            _, client = self.served(endless)
            with self.assertRaises(Error) as found:
                list(client.stream(code="1"))
        self.assertEqual(found.exception.code, "unexpected_answer")

    def test_stopping_to_iterate_closes_the_connection(self):
        closed = threading.Event()

        def watch(connection, _):
            events(STARTED, ends=False)(connection, _)
            connection.settimeout(5)
            if connection.recv(1) == b"":
                closed.set()

        _, client = self.served(watch)
        for _ in client.stream(code="1"):
            break
        self.assertTrue(closed.wait(5))


class AsyncTest(ServedTest):
    def test_calls_run_at_the_same_time(self):
        barrier = threading.Barrier(8)

        def together(connection, _):
            barrier.wait(10)
            connection.sendall(answer(envelope()))

        _, client = self.served(*[together] * 8, kind=AsyncClient)

        async def main():
            return await asyncio.gather(*[client.run_code("1") for _ in range(8)])

        self.assertEqual([result.output for result in asyncio.run(main())], [42] * 8)

    def test_events_are_iterated(self):
        _, client = self.served(events(STARTED, *PRINTED[:2], ends=False), events(*PRINTED[2:], RESULT, END), kind=AsyncClient)

        async def main():
            return [found async for found in client.stream(code="1")]

        self.assertEqual(self.printed(asyncio.run(main())), "12345")

    def cancelled(self, begin, head=b""):
        """Cancels what `begin` makes of a client when the server has its request, and returns whether its connection was closed."""
        asked, closed = threading.Event(), threading.Event()

        def watch(connection, _):
            connection.sendall(head)
            asked.set()
            connection.settimeout(10)
            if connection.recv(1) == b"":
                closed.set()

        server, client = self.served(watch, kind=AsyncClient)

        async def main():
            task = asyncio.ensure_future(begin(client))
            await asyncio.get_running_loop().run_in_executor(None, asked.wait, 10)
            await asyncio.sleep(0.1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        began = time.monotonic()
        asyncio.run(main())
        client._threads.shutdown(wait=True)
        self.assertLess(time.monotonic() - began, 9)
        self.assertEqual(len(server.requests), 1)
        return closed.wait(5)

    def test_cancellation_ends_the_connection_and_the_thread(self):
        self.assertTrue(self.cancelled(lambda client: client.run_code("1")))

    def test_cancellation_of_a_stream_ends_the_connection(self):
        async def begin(client):
            async for _ in client.stream(code="1"):
                pass

        self.assertTrue(self.cancelled(begin, b"HTTP/1.1 200 OK\r\n\r\n" + STARTED))
