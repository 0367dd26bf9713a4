"""A server on loopback that answers each request by a script, and remembers the requests."""

import json
import socket
import threading

ID = "019a0000-0000-7000-8000-000000000000"


class Request:
    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body

    def __getitem__(self, header):
        return self.headers.get(header.lower())


class ScriptedServer:
    """Each answer is the bytes of a response, None to close the connection, or a function of the connection and the request."""

    def __init__(self, *answers, tls=None):
        self.answers = list(answers)
        self.requests = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._tls = tls
        self.url = "%s://127.0.0.1:%d" % ("https" if tls else "http", self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Without it, the thread would wait in `accept` and hold the port.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection):
        if self._tls:
            try:
                connection = self._tls.wrap_socket(connection, server_side=True)
            except OSError:
                return
        with connection, connection.makefile("rb") as reader:
            while (request := read_request(reader)) is not None:
                self.requests.append(request)
                answer = self.answers.pop(0) if self.answers else None
                if answer is None:
                    return
                try:
                    if callable(answer):
                        answer(connection, request)
                        return
                    connection.sendall(answer)
                except OSError:
                    return


def read_request(reader):
    try:
        line = reader.readline().decode()
        if not line:
            return None
        method, target, _ = line.split()
        headers = {}
        while (line := reader.readline().decode().strip()):
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return Request(method, target, headers, reader.read(int(headers.get("content-length", 0))))
    except OSError:
        return None


def response(status=200, body=b"", content_type="application/json", **headers):
    lines = ["HTTP/1.1 %d Some" % status, "Content-Type: " + content_type, "Content-Length: %d" % len(body)]
    lines += ["%s: %s" % (name.replace("_", "-"), value) for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def answer(value, status=200, **headers):
    return response(status, json.dumps(value).encode(), **headers)


def problem(status, code, **more):
    document = {
        "type": "urn:skillbox:problem:" + code, "title": "Title", "status": status, "detail": "what is wrong", "code": code,
        "request_id": "request-1", "retryable": False, **more,
    }
    return answer(document, status)


def envelope(**changes):
    return {
        "execution_id": ID, "status": "success", "skill": None, "version": None, "digest": None, "language": "python", "key": None,
        "backend": "native", "backend_reason": None, "degraded": [], "output": 42, "output_preview": "42", "results": [],
        "results_truncated": False, "error": None, "exit_code": 0,
        "logs": {"stdout": "", "stderr": "", "truncated": False, "lines": [], "lines_truncated": False}, "logs_preview": "",
        "files": [], "files_url": None, "files_list": [], "files_skipped": [], "files_skipped_total": 0, "output_blobs": [],
        "requirements": None, "workdir": None, "limits": None, "queue": None, "duration_ms": 1, "timings": None, "usage": None,
        "created_at": "2026-11-24T08:00:00Z", "finished_at": "2026-11-24T08:00:00Z", "omitted": [], **changes,
    }


def events(*parts, ends=True):
    """A chunked response of events; without its end, the connection closes in the middle."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)

    def send(connection, _):
        connection.sendall(head + chunks + (b"0\r\n\r\n" if ends else b""))

    return send


def event(name, event_id, data):
    return ("event: %s\nid: %s\ndata: %s\n\n" % (name, event_id, json.dumps(data))).encode()
