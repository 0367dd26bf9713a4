"""Client of the REST API of Skillbox, which runs skills and code of agents in sandboxes.

One file without dependencies, for Python 3.9 and newer. `Client` blocks, `AsyncClient` is for asyncio. Names of fields and codes are
those of the API: docs/API.md of Skillbox.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import contextvars
import email.utils
import functools
import gzip
import hashlib
import http.client
import io
import json
import os
import random
import re
import shutil
import socket
import ssl
import stat
import tempfile
import threading
import time
import urllib.parse
import uuid
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import (
    IO, TYPE_CHECKING, Any, AsyncIterator, Callable, Coroutine, Iterator, Literal, Mapping, Optional, Sequence, TypedDict,
    TypeVar, Union, cast, get_args, get_origin, get_type_hints,
)

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec, Unpack

    P = ParamSpec("P")

__version__ = "0.1.0"
__all__ = [
    "Action", "AskedLimits", "AsyncClient", "BlobInfo", "CLIENT_CODES", "Client", "CreateExecution", "Dialect", "ERROR_CODES",
    "EndEvent", "EndReason", "Envelope", "EnvelopePart", "Error", "ErrorCode", "Event", "EventName", "ExecutionKey",
    "ExecutionLimits", "Failure", "Fault", "FileLink", "Function", "GrantedLimits", "Language", "Level", "LogLine", "LogSource",
    "LogStream", "LogTexts", "Mode", "OnDisconnect", "Origin", "OutputBlob", "OutputPart", "Part", "PrintedEvent", "Problem",
    "QueuePlace", "Ready", "RerunExecution", "RerunVersion", "RichResult", "ShownFile", "ShownRequest", "Skill", "SkillSummary",
    "SkillWarning", "Skipped", "Status", "StatusEvent", "StreamTexts", "Summary", "Timings", "ToolFormat", "Usage", "Workdir",
]
T = TypeVar("T")

# openapi: ErrorCode
ErrorCode = Literal[
    "invalid", "unauthenticated", "forbidden", "not_found", "method_not_allowed", "request_timeout", "conflict", "key_reused",
    "too_large", "unsupported_media_type", "range_not_satisfiable", "misdirected", "rate_limited", "busy", "sandbox_unavailable",
    "dependencies_failed", "storage_full", "internal",
]

#: The codes of the server's errors. A newer server may send others.
ERROR_CODES = frozenset(get_args(ErrorCode))

#: The codes of errors that are not an answer of the server. Their status is 0, except that of an unexpected answer.
CLIENT_CODES = frozenset({"no_connection", "timeout", "unexpected_answer", "unsafe_archive"})

# openapi: Status
Status = Literal["queued", "running", "success", "failed", "timeout", "oom", "cancelled", "denied", "interrupted"]

# openapi: Language
Language = Literal["python", "node", "bash"]

# openapi: Mode
Mode = Literal["sync", "async"]

# openapi: OnDisconnect
OnDisconnect = Literal["cancel", "continue"]

# openapi: Workdir
Workdir = Literal["request", "skill"]

# openapi: Dialect
Dialect = Literal["program", "function", "toolbox", "instructions"]

# openapi: Level
Level = Literal["debug", "info", "warning", "error"]

# openapi: LogSource
LogSource = Literal["stdout", "stderr", "log"]

# openapi: Origin
Origin = Literal["skill_toml", "metadata", "front_matter", "inferred"]

# openapi: EndReason
EndReason = Literal["finished", "shutdown"]

# openapi: EnvelopePart
EnvelopePart = Literal["logs", "results", "output"]

# openapi: RerunVersion
RerunVersion = Literal["same", "latest"]

# openapi: Events
EventName = Literal["status", "stdout", "stderr", "log", "result", "end"]

ToolFormat = Literal["openai", "anthropic", "mcp"]
LogStream = Literal["both", "stdout", "stderr"]


# openapi: CreateExecution
class CreateExecution(TypedDict, total=False):
    skill: str
    code: str
    language: Language
    version: str
    input: Any
    args: Union[Sequence[str], Mapping[str, Any]]
    files: Mapping[str, Union[bytes, "os.PathLike[str]"]]
    workdir: Workdir
    blobs: Sequence[str]
    script: str
    stdin: str
    mount_skills: Sequence[str]
    requirements: Sequence[str]
    timeout: float
    callback_url: str
    mode: Mode
    on_disconnect: OnDisconnect


# openapi: RerunExecution
class RerunExecution(TypedDict, total=False):
    version: RerunVersion
    mode: Mode
    on_disconnect: OnDisconnect


# openapi: Failure
@dataclass(frozen=True)
class Failure:
    code: str
    message: str
    name: Optional[str] = None
    value: Optional[str] = None
    traceback: Optional[str] = None


# openapi: LogLine
@dataclass(frozen=True)
class LogLine:
    time: Optional[str]
    fields: Any
    level: Level = "info"
    message: str = ""


# openapi: LogTexts
@dataclass(frozen=True)
class LogTexts:
    stdout: str
    stderr: str
    truncated: bool
    lines: list[LogLine]
    lines_truncated: bool


# openapi: OutputPart
@dataclass(frozen=True)
class OutputPart:
    time: Optional[str]
    stream: LogSource
    text: str
    base64: Optional[str] = None
    lines: list[LogLine] = field(default_factory=list)


# openapi: StreamTexts
@dataclass(frozen=True)
class StreamTexts:
    stdout: Optional[str]
    stderr: Optional[str]
    stdout_total: int
    stderr_total: int
    truncated: bool
    lines: list[LogLine]
    lines_truncated: bool
    parts: Optional[list[OutputPart]] = None


# openapi: RichResult
@dataclass(frozen=True)
class RichResult:
    text: Optional[str] = None
    html: Optional[str] = None
    markdown: Optional[str] = None
    svg: Optional[str] = None
    png: Optional[str] = None
    jpeg: Optional[str] = None
    pdf: Optional[str] = None
    latex: Optional[str] = None
    json: Any = None
    javascript: Optional[str] = None
    data: Any = None
    chart: Any = None
    is_main_result: bool = False
    truncated: list[str] = field(default_factory=list)
    urls: dict[str, str] = field(default_factory=dict)


# openapi: FileLink
@dataclass(frozen=True)
class FileLink:
    path: str
    size: int
    sha256: str
    media_type: str
    url: Optional[str]


# openapi: Skipped
@dataclass(frozen=True)
class Skipped:
    path: str
    reason: str


# openapi: OutputBlob
@dataclass(frozen=True)
class OutputBlob:
    blob_id: str
    size: int


# openapi: ExecutionKey
@dataclass(frozen=True)
class ExecutionKey:
    id: str
    name: str


# openapi: AskedLimits
@dataclass(frozen=True)
class AskedLimits:
    timeout_ms: Optional[int]
    memory_bytes: Optional[int]
    cpu_millis: Optional[int]
    workspace_bytes: Optional[int]


# openapi: GrantedLimits
@dataclass(frozen=True)
class GrantedLimits:
    timeout_ms: int
    memory_bytes: int
    cpu_millis: int
    workspace_bytes: int


# openapi: ExecutionLimits
@dataclass(frozen=True)
class ExecutionLimits:
    asked: AskedLimits
    granted: GrantedLimits


# openapi: QueuePlace
@dataclass(frozen=True)
class QueuePlace:
    position: int
    waiting: int
    waited_ms: int


# openapi: Timings
@dataclass(frozen=True)
class Timings:
    queue_ms: float
    sandbox_ms: float
    run_ms: float
    collect_ms: float
    warm: bool = False


# openapi: Usage
@dataclass(frozen=True)
class Usage:
    cpu_ms: int
    memory_peak_bytes: int
    processes_peak: int
    oom_kills: int


# openapi: Envelope
@dataclass(frozen=True)
class Envelope:
    execution_id: str
    status: Status
    skill: Optional[str]
    version: Optional[str]
    digest: Optional[str]
    language: Optional[Language]
    key: Optional[ExecutionKey]
    backend: Optional[str]
    backend_reason: Optional[str]
    degraded: list[str]
    output: Any
    output_preview: Optional[str]
    results: list[RichResult]
    results_truncated: bool
    error: Optional[Failure]
    exit_code: Optional[int]
    logs: LogTexts
    logs_preview: str
    files: list[FileLink]
    files_url: Optional[str]
    files_list: list[str]
    files_skipped: list[Skipped]
    files_skipped_total: int
    output_blobs: list[OutputBlob]
    requirements: Optional[list[str]]
    workdir: Optional[Workdir]
    limits: Optional[ExecutionLimits]
    queue: Optional[QueuePlace]
    duration_ms: Optional[int]
    timings: Optional[Timings]
    usage: Optional[Usage]
    created_at: str
    finished_at: Optional[str]
    omitted: list[EnvelopePart]
    output_json: bytes = b"null"  # not in the API

    # `output_json` is the exact text of `output`: a float of `output` may have lost digits.

    @property
    def ended(self) -> bool:
        """Whether the status is final."""
        return self.status not in ("queued", "running")

    def for_model(self) -> str:
        """What a model needs to continue, as JSON: the previews are short, whatever the program printed."""
        error = self.error and {"code": self.error.code, "message": self.error.message, "traceback": self.error.traceback}
        shown = {"status": self.status, "output_preview": self.output_preview, "logs_preview": self.logs_preview, "error": error}
        return json.dumps({**shown, "files_list": self.files_list} if self.files_list else shown, ensure_ascii=False)


# openapi: Summary
@dataclass(frozen=True)
class Summary:
    execution_id: str
    status: Status
    skill: Optional[str]
    version: Optional[str]
    digest: Optional[str]
    language: Optional[Language]
    backend: Optional[str]
    error: Optional[Failure]
    exit_code: Optional[int]
    key: Optional[ExecutionKey]
    duration_ms: Optional[int]
    created_at: str
    finished_at: Optional[str]


# openapi: StatusEvent
@dataclass(frozen=True)
class StatusEvent:
    execution_id: str
    status: Status
    queue_position: Optional[int] = None


# openapi: PrintedEvent
@dataclass(frozen=True)
class PrintedEvent:
    text: str
    base64: Optional[str] = None


# openapi: EndEvent
@dataclass(frozen=True)
class EndEvent:
    status: Status
    reason: EndReason


@dataclass(frozen=True)
class Event:
    """An event of an execution. `data` is a `PrintedEvent` of `stdout` and `stderr`, and a `LogLine` of `log`."""

    name: EventName
    id: str
    data: Union[StatusEvent, PrintedEvent, LogLine, Envelope, EndEvent]


# openapi: ShownFile
@dataclass(frozen=True)
class ShownFile:
    path: str
    size: int
    sha256: str
    kept: bool


# openapi: ShownRequest
@dataclass(frozen=True)
class ShownRequest:
    kept: bool
    reason: Optional[str]
    request: Optional[dict[str, Any]]
    files: list[ShownFile]


# openapi: SkillSummary
@dataclass(frozen=True)
class SkillSummary:
    name: str
    version: str
    digest: str
    description: str
    dialect: Dialect
    language: Optional[Language]
    files: int
    archive_bytes: int
    unpacked_bytes: int
    created_at: str


# openapi: Function
@dataclass(frozen=True)
class Function:
    module: str
    export: str


# openapi: Action
@dataclass(frozen=True)
class Action:
    path: str
    language: Language
    summary: Optional[str]
    usage: Optional[str]
    requires_python: Optional[str]
    dependencies: list[str] = field(default_factory=list)


# openapi: Warning
@dataclass(frozen=True)
class SkillWarning:
    message: str
    line: Optional[int] = None


# openapi: Skill
@dataclass(frozen=True)
class Skill(SkillSummary):
    entrypoint: Optional[str]
    image: Optional[str]
    timeout: Optional[float]
    memory_bytes: Optional[int]
    cpu_millis: Optional[int]
    disk_bytes: Optional[int]
    input_schema: Any
    output_schema: Any
    license: Optional[str]
    compatibility: Optional[str]
    metadata: dict[str, str]
    allowed_tools: Optional[str]
    instructions: str
    function: Optional[Function]
    secrets: list[str]
    origins: dict[str, Origin]
    actions: list[Action]
    requirements: list[str]
    warnings: list[SkillWarning]
    latest: Optional[str]


# openapi: BlobInfo
@dataclass(frozen=True)
class BlobInfo:
    blob_id: str
    size: int
    media_type: str
    created_at: str
    expires_at: str


# openapi: Part
@dataclass(frozen=True)
class Part:
    name: str
    ok: bool


# openapi: Ready
@dataclass(frozen=True)
class Ready:
    ready: bool
    checks: list[Part]


# openapi: Fault
@dataclass(frozen=True)
class Fault:
    pointer: str
    message: str


# openapi: Problem
@dataclass(frozen=True)
class Problem:
    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    retryable: bool
    retry_after: Optional[int] = None
    errors: list[Fault] = field(default_factory=list)


class Error(Exception):
    """A request that was rejected or not answered. A failing program is no error but a result with a status."""

    def __init__(
        self, code: str, message: str, *, status: int = 0, request_id: Optional[str] = None, retryable: bool = False,
        retry_after: Optional[float] = None, errors: Sequence[Fault] = (),
    ) -> None:
        super().__init__(message)
        #: The HTTP status; 0 without an answer.
        self.status = status
        #: A code of `ERROR_CODES` or `CLIENT_CODES`.
        self.code = code
        #: What is wrong, and what to do.
        self.message = message
        #: The id in the server's log.
        self.request_id = request_id
        #: Whether the same request may succeed later.
        self.retryable = retryable
        #: Seconds to wait before that, if known.
        self.retry_after = retry_after
        #: Where the input violates the schema of a skill.
        self.errors = list(errors)

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), **vars(self)), ()

    def __str__(self) -> str:
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.code}: {self.message}{request}"


_MIB = 1024 * 1024
_TRIES = 4
_RETRIED = frozenset({429, 502, 503, 504})
#: Grows twofold with each try; half of it is random.
_PAUSE_SECONDS = 0.5
#: A server that is busy for longer is reported at once.
_RETRY_AFTER_SECONDS_MAX = 60.0
_CONNECT_SECONDS = 10.0
#: An idle stream sends a comment every 15 seconds.
_STREAM_IDLE_SECONDS = 45.0
#: Below the 60 seconds after which the server closes a connection.
_REUSE_SECONDS = 30.0
_CONNECTIONS_KEPT = 8
_THREADS = 64
_ANSWER_BYTES_MAX = 128 * _MIB
_PROBLEM_BYTES_MAX = _MIB
_PATH_BYTES_MAX = 4096
_PATH_FOLDERS_MAX = 64
_FILES_MAX = 1000
_FILES_BYTES_MAX = 256 * _MIB
_SKILL_FILES_MAX = 10_000
_SKILL_BYTES_MAX = 256 * _MIB
_BLOB_BYTES_MAX = 64 * _MIB
_PAGE = 200
_PAGES_MAX = 1000

_RUN_CODE_MEMBERS = ("code", "language", "requirements")
_TOOLBOX_MEMBERS = ("script", "args", "stdin", "files", "requirements")
_RUN_CODE_SCHEMA = {
    "type": "object",
    "required": ["code"],
    "properties": {
        "code": {"type": "string"},
        "language": {"type": "string", "enum": list(get_args(Language))},
        "requirements": {"type": "array", "items": {"type": "string"}, "description": "Packages to install first."},
    },
    "additionalProperties": False,
}
_RUN_CODE_DESCRIPTION = (
    "Runs code (Python if no language is given) in a new sandbox without a network. "
    "Returns what it prints and the value of its last expression."
)


class Client:
    """A client of one server. Threads may share it.

    `base_url` and `api_key` default to the variables SKILLBOX_SERVER_URL and SKILLBOX_API_KEY. `timeout` is the number of seconds
    for one call with its retries. With `tenant`, the server rejects a key of another tenant.
    """

    def __init__(
        self, base_url: Optional[str] = None, api_key: Optional[str] = None, *, tenant: Optional[str] = None,
        timeout: float = 660.0, ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        self.base_url = _checked_url(base_url or os.environ.get("SKILLBOX_SERVER_URL", ""))
        self.tenant = tenant
        self.timeout = timeout
        self._key = api_key or os.environ.get("SKILLBOX_API_KEY", "")
        # Checked here, since http.client would quote a wrong value in its error.
        if not re.fullmatch(r"[!-~]+", self._key):
            raise ValueError("api_key: must be visible ASCII characters; pass it, or set SKILLBOX_API_KEY")
        if tenant is not None and not re.fullmatch(r"[!-~]+", tenant):
            raise ValueError(f"tenant: must be visible ASCII characters, not {tenant!r}")
        self._tls = ssl_context
        self._idle = _IdleConnections()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r}, tenant={self.tenant!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the idle connections."""
        self._idle.close()

    # openapi: POST /v1/executions
    def run(
        self, skill: Optional[str] = None, input: Any = ..., /, *, idempotency_key: Optional[str] = None,
        **request: Unpack[CreateExecution],
    ) -> Envelope:
        """Runs a skill and returns its result, also if the program failed.

        `input` is any JSON value; bytes are sent as they are, so that `output_json` of one run can be the input of the next.
        `files` are bytes or paths of files to read. A retry never runs twice: each request has an `Idempotency-Key`.
        """
        return self._run(_creation(_named(request, skill=skill, input=input), idempotency_key))

    def run_code(
        self, code: str, input: Any = ..., /, *, idempotency_key: Optional[str] = None, **request: Unpack[CreateExecution]
    ) -> Envelope:
        """Runs code: Python, if `language` does not say `node` or `bash`."""
        return self._run(_creation(_named(request, code=code, input=input), idempotency_key))

    def stream(
        self, skill: Optional[str] = None, input: Any = ..., /, *, idempotency_key: Optional[str] = None,
        **request: Unpack[CreateExecution],
    ) -> Iterator[Event]:
        """Runs a skill, or `code`, and yields its events until `end`. Resumes after a broken connection without loss.

        The run continues if the caller stops to iterate, unless `on_disconnect` is `cancel`.
        """
        started = _creation(_named(request, skill=skill, input=input), idempotency_key)
        return self._events(replace(started, accept="text/event-stream"), "")

    # openapi: GET /v1/executions/{id}/events
    def events(self, execution_id: str, *, last_event_id: str = "") -> Iterator[Event]:
        """Yields the events of an execution from the beginning, or after `last_event_id`."""
        return self._events(_watching(execution_id, last_event_id), execution_id)

    # openapi: GET /v1/executions/{id}
    def get_execution(
        self, execution_id: str, *, wait: Optional[float] = None, omit: Sequence[EnvelopePart] = ()
    ) -> Envelope:
        """The state of an execution; with `wait`, its end or its state after so many seconds, at most 60."""
        return self._run(_Request("GET", _path("executions", execution_id), {"wait": wait, "omit": ",".join(omit)}))

    def wait(self, execution_id: str, timeout: Optional[float] = None) -> Envelope:
        """Waits for the end of an execution, at most `timeout` seconds (by default those of the client)."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            left = max(0.0, end - time.monotonic())
            envelope = self.get_execution(execution_id, wait=min(30.0, left))
            if envelope.ended:
                return envelope
            if left == 0:
                raise Error("timeout", f"execution {execution_id} is {envelope.status}; wait longer, or cancel it")
            self._begin().sleep(min(0.1, left))

    # openapi: POST /v1/executions/{id}/cancel
    def cancel(self, execution_id: str) -> Envelope:
        """Cancels an execution and returns its final state."""
        return self._run(_Request("POST", _path("executions", execution_id, "cancel")))

    # openapi: GET /v1/executions
    def list_executions(
        self, *, limit: int = 50, status: Union[Status, Sequence[Status], None] = None, skill: Optional[str] = None,
        code: Optional[bool] = None, key: Optional[str] = None, since: Optional[str] = None, until: Optional[str] = None,
    ) -> list[Summary]:
        """The newest executions, at most `limit`."""
        words = status if status is None or isinstance(status, str) else ",".join(status)
        query = {"status": words, "skill": skill, "code": None if code is None else str(code).lower(), "key": key, "since": since, "until": until}
        return self._listed(Summary, "/v1/executions", limit, query)

    # openapi: DELETE /v1/executions/{id}
    def delete_execution(self, execution_id: str) -> None:
        """Deletes an ended execution with its request, output, logs and files."""
        self._send(_Request("DELETE", _path("executions", execution_id)))

    # openapi: GET /v1/executions/{id}/request
    def get_request(self, execution_id: str) -> ShownRequest:
        """The request of an execution, as far as it was kept."""
        return self._get(ShownRequest, _path("executions", execution_id, "request"))

    # openapi: POST /v1/executions/{id}/rerun
    def rerun(
        self, execution_id: str, *, idempotency_key: Optional[str] = None, **request: Unpack[RerunExecution]
    ) -> Envelope:
        """Runs the request of an execution again."""
        creation = _creation(cast("CreateExecution", request), idempotency_key)
        return self._run(replace(creation, path=_path("executions", execution_id, "rerun")))

    # openapi: GET /v1/executions/{id}/logs
    def logs(self, execution_id: str, stream: LogStream = "both", *, timestamps: bool = False) -> StreamTexts:
        """What an execution printed and logged; with `timestamps` as `parts` in order of arrival."""
        query = {"stream": stream, "timestamps": "true" if timestamps else None}
        return self._get(StreamTexts, _path("executions", execution_id, "logs"), query)

    # openapi: GET /v1/executions/{id}/files
    def download_files(
        self, result: Union[Envelope, str], dest: Union[str, "os.PathLike[str]"], *, bytes_max: int = _FILES_BYTES_MAX,
        files_max: int = _FILES_MAX,
    ) -> list[Path]:
        """Saves the files of an execution below the folder `dest`, all or none, and returns their paths.

        The archive is compared with the files of the result: it is rejected if a path leads out or is a link, a device or a
        duplicate, if a size or digest differs, or if there is more than `bytes_max` and `files_max` allow. Existing files are replaced.
        """
        envelope = self.get_execution(result, omit=("logs", "results", "output")) if isinstance(result, str) else result
        listed = _checked_files(envelope.files, bytes_max, files_max)
        folder = Path(dest)
        folder.mkdir(parents=True, exist_ok=True)
        if not listed:
            return []
        with tempfile.TemporaryFile() as archive:
            archive_max = sum(file.size for file in listed.values()) + len(listed) * 2 * _PATH_BYTES_MAX + _MIB
            path = _path("executions", envelope.execution_id, "files")
            self._send(_Request("GET", path, accept="application/gzip", bytes_max=archive_max), archive)
            archive.seek(0)
            return _unpack(archive, listed, folder)

    # openapi: GET /v1/executions/{id}/files/{path}
    def read_file(self, execution_id: str, path: str, *, bytes_max: int = _FILES_BYTES_MAX) -> bytes:
        """The content of one file of an execution."""
        encoded = f"{_path('executions', execution_id, 'files')}/{urllib.parse.quote(path, safe='/')}"
        return self._send(_Request("GET", encoded, accept="*/*", bytes_max=bytes_max)).body

    # openapi: GET /v1/executions/{id}/results/{n}/{form}
    def read_result(self, execution_id: str, n: int, form: str) -> bytes:
        """One form of a displayed value, such as `png` or `html`, decoded. It is untrusted."""
        return self._send(_Request("GET", _path("executions", execution_id, "results", str(n), form), accept="*/*")).body

    # openapi: POST /v1/blobs
    def upload_blob(
        self, content: Union[bytes, "os.PathLike[str]"], *, media_type: str = "application/octet-stream",
        ttl: Optional[float] = None,
    ) -> BlobInfo:
        """Stores bytes or a file, for `blobs` of a run."""
        data = _content(content, _BLOB_BYTES_MAX)
        sent = _Request("POST", "/v1/blobs", {"ttl": ttl}, data, media_type)
        blob = _typed(BlobInfo, _parsed(self._send(sent).body))
        if blob.blob_id != _digest(data):
            raise _unexpected("the server stored another content than was sent")
        return blob

    # openapi: GET /v1/blobs/{id}
    def download_blob(self, blob_id: str) -> bytes:
        """The content of a blob, compared with its id."""
        data = self._send(_Request("GET", _path("blobs", blob_id), accept="*/*", bytes_max=_BLOB_BYTES_MAX)).body
        if blob_id != _digest(data):
            raise _unexpected(f"the content is not that of {blob_id}")
        return data

    # openapi: GET /v1/blobs
    def list_blobs(self, *, limit: int = 50) -> list[BlobInfo]:
        """The newest blobs, at most `limit`."""
        return self._listed(BlobInfo, "/v1/blobs", limit)

    # openapi: DELETE /v1/blobs/{id}
    def delete_blob(self, blob_id: str) -> None:
        """Deletes a blob."""
        self._send(_Request("DELETE", _path("blobs", blob_id)))

    # openapi: POST /v1/skills
    def register_skill(self, skill: Union[bytes, str, "os.PathLike[str]"]) -> Skill:
        """Publishes a skill: a folder, a zip archive, or the bytes of one. The same content may be published again."""
        if isinstance(skill, bytes):
            archive = skill
        else:
            path = Path(skill)
            archive = _packed(path) if path.is_dir() else _content(path, _SKILL_BYTES_MAX)
        return _typed(Skill, _parsed(self._send(_Request("POST", "/v1/skills", {}, archive, "application/zip")).body))

    # openapi: GET /v1/skills
    def list_skills(self, *, limit: int = 1000) -> list[SkillSummary]:
        """The latest version of each skill, at most `limit`."""
        return self._listed(SkillSummary, "/v1/skills", limit)

    # openapi: GET /v1/skills/{name}
    def list_skill_versions(self, name: str, *, limit: int = 50) -> list[SkillSummary]:
        """The versions of a skill, the last published first."""
        return self._listed(SkillSummary, _path("skills", name), limit)

    # openapi: GET /v1/skills/{name}/{version}
    def get_skill(self, name: str, version: str = "latest") -> Skill:
        """A version with all that its author declared."""
        return self._get(Skill, _path("skills", name, version))

    # openapi: GET /v1/skills/{name}/{version}/archive
    def download_skill(self, name: str, version: str = "latest") -> bytes:
        """The zip archive as it was uploaded."""
        return self._send(_Request("GET", _path("skills", name, version, "archive"), accept="*/*")).body

    # openapi: DELETE /v1/skills/{name}/{version}
    def delete_skill(self, name: str, version: str) -> None:
        """Deletes a version."""
        self._send(_Request("DELETE", _path("skills", name, version)))

    # openapi: GET /v1/tools
    def tools(self, format: ToolFormat = "openai", *, limit: int = 1000) -> list[dict[str, Any]]:
        """The published skills as tools for a model, after the tool `run_code`. Pass calls to `tool_result`."""
        code = {"name": "run_code", "description": _RUN_CODE_DESCRIPTION}
        of_code: dict[str, dict[str, Any]] = {
            "openai": {"type": "function", "function": {**code, "parameters": _RUN_CODE_SCHEMA}},
            "anthropic": {**code, "input_schema": _RUN_CODE_SCHEMA},
            "mcp": {**code, "inputSchema": _RUN_CODE_SCHEMA},
        }
        skills = self._listed(cast("type[dict[str, Any]]", dict[str, Any]), "/v1/tools", limit, {"format": format})
        # A model's API refuses two tools of one name, which a skill `run.code` would have.
        return [of_code[format], *(skill for skill in skills if skill.get("function", skill).get("name") != "run_code")]

    # openapi: GET /v1/tools/prompt
    def tools_prompt(self) -> str:
        """The published skills as text for a system prompt."""
        first, last, entries, query = "<available_skills>\n", "</available_skills>\n", "", {"limit": str(_PAGE)}
        for _ in range(_PAGES_MAX):
            answer = self._send(_Request("GET", "/v1/tools/prompt", query, accept="text/plain"))
            text = _text(answer.body)
            if not (text.startswith(first) and text.endswith(last)):
                raise _unexpected("the prompt has no <available_skills>")
            entries += text[len(first) : -len(last)]
            following = answer.headers.get("X-Next-Page-Token")
            if not following:
                return first + entries + last
            query = {"limit": str(_PAGE), "page_token": following}
        raise _unexpected("/v1/tools/prompt: the list does not end")

    def call_tool(self, name: str, arguments: Union[str, Mapping[str, Any]]) -> Envelope:
        """Runs the call of a tool of `tools` by a model. `arguments` are an object or its JSON text."""
        given = _arguments(arguments)
        if name == "run_code":
            return self._run(_creation(_only(name, given, _RUN_CODE_MEMBERS), None))
        skill = self.get_skill(name.replace("_", "."))
        # The digest, so that the version that runs is the one whose schema was read.
        pinned: CreateExecution = {"skill": skill.name, "version": skill.digest}
        if skill.dialect == "toolbox":
            members = _only(name, given, _TOOLBOX_MEMBERS)
            return self._run(_creation(cast("CreateExecution", {**members, **pinned}), None))
        if not _takes_objects(skill.input_schema):
            pinned["input"] = _only(name, given, ("input",)).get("input")
        else:
            pinned["input"] = arguments.encode() if isinstance(arguments, str) and arguments.strip() else given
        return self._run(_creation(pinned, None))

    def tool_result(self, name: str, arguments: Union[str, Mapping[str, Any]]) -> str:
        """Runs the call of a tool by a model and returns the text for the model.

        A failing program and a rejected request are results, too: they tell the model what to correct.
        """
        try:
            return self.call_tool(name, arguments).for_model()
        except Error as error:
            if error.code in ("invalid", "not_found", "too_large", "conflict", "dependencies_failed"):
                return json.dumps({"status": "rejected", "error": {"code": error.code, "message": error.message}})
            raise

    # openapi: GET /readyz
    def health(self) -> Ready:
        """Whether the server can run executions now."""
        return _typed(Ready, _parsed(self._send(_Request("GET", "/readyz", expected=(503,))).body))

    def _run(self, request: _Request) -> Envelope:
        return _envelope(self._send(request).body)

    def _get(self, kind: type[T], path: str, query: Optional[Mapping[str, Any]] = None) -> T:
        return _typed(kind, _parsed(self._send(_Request("GET", path, query or {})).body))

    def _listed(self, kind: type[T], path: str, limit: int, query: Optional[Mapping[str, Any]] = None) -> list[T]:
        found: list[T] = []
        token: Optional[str] = None
        # Pages may have fewer items than they were asked for.
        for _ in range(_PAGES_MAX):
            size = min(_PAGE, limit - len(found))
            page = self._get(_Page, path, {**(query or {}), "limit": size, "page_token": token})
            found += [_typed(kind, item) for item in page.items]
            token = page.next_page_token
            if token is None or len(found) >= limit:
                return found[:limit]
        raise _unexpected(f"{path}: the list does not end")

    def _begin(self) -> _Call:
        call = _CALL.get() or _Call()
        call.restart(self.timeout)
        return call

    def _send(self, request: _Request, into: Optional[IO[bytes]] = None) -> _Answer:
        """Sends a request, at most four times."""
        call = self._begin()
        is_unsure = False
        for n in range(_TRIES):
            try:
                with self._opened(request, call) as response:
                    if response.status < 300 or response.status in request.expected:
                        return _Answer(response.headers, _read(response, request.bytes_max, into))
                    error = self._refusal(response)
                # The lost answer to an earlier try was that of the deletion.
                if is_unsure and request.method == "DELETE" and error.status == 404:
                    return _Answer(response.headers, b"")
            except (OSError, http.client.HTTPException) as cause:
                error, is_unsure = self._failure(cause), True
            if not self._may_retry(error, n, call):
                break
        raise error from None

    def _may_retry(self, error: Error, n: int, call: _Call) -> bool:
        """Pauses before the next try; `False` if there must be none."""
        is_temporary = error.status in _RETRIED or (error.code == "no_connection" and error.retryable)
        after = error.retry_after or 0.0
        if not is_temporary or n + 1 >= _TRIES or after > _RETRY_AFTER_SECONDS_MAX:
            return False
        return call.sleep(after + _PAUSE_SECONDS * 2**n * random.uniform(0.5, 1.0))

    def _events(self, request: _Request, execution_id: str) -> Iterator[Event]:
        failures = 0
        while True:
            call = self._begin()
            is_answered = False
            try:
                with self._opened(request, call) as response:
                    if response.status == 204:
                        return
                    if response.status != 200:
                        raise self._refusal(response)
                    is_answered = True
                    call.restart(_STREAM_IDLE_SECONDS)
                    for event in _events_of(response, call):
                        if isinstance(event.data, EndEvent) and event.data.reason == "shutdown":
                            break
                        if isinstance(event.data, StatusEvent):
                            execution_id = event.data.execution_id
                        if execution_id:
                            request = _watching(execution_id, event.id)
                        failures = 0
                        yield event
                        if isinstance(event.data, EndEvent):
                            return
                        call.restart(_STREAM_IDLE_SECONDS)
                    raise ConnectionError("the stream ended before the execution did")
            except (OSError, http.client.HTTPException, Error) as cause:
                error = self._failure(ConnectionError("the stream stopped") if is_answered and _is_timeout(cause) else cause)
            call.restart(self.timeout)
            if not self._may_retry(error, failures, call):
                raise error from None
            failures += 1

    @contextlib.contextmanager
    def _opened(self, request: _Request, call: _Call) -> Iterator[http.client.HTTPResponse]:
        """The head of a response. A connection whose response was read completely is reused."""
        connection = self._idle.take() or self._connect(call)
        is_reusable = False
        try:
            call.watch(connection.sock)
            # A partial application, since the connection calls it like the class.
            connection.response_class = cast(Any, functools.partial(_TimedResponse, call))
            # The server may have answered before it read the whole body.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(request.method, self._target(request), request.body, self._headers(request))
            response = connection.getresponse()
            yield response
            is_reusable = not response.will_close and (response.isclosed() or response.length == 0)
            response.close()
        finally:
            call.watch(None)
            if is_reusable:
                self._idle.put(connection)
            else:
                connection.close()

    def _connect(self, call: _Call) -> http.client.HTTPConnection:
        address = urllib.parse.urlsplit(self.base_url)
        seconds = min(_CONNECT_SECONDS, call.left())
        host = address.hostname or ""
        if address.scheme == "https":
            self._tls = self._tls or ssl.create_default_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, address.port, timeout=seconds, context=self._tls
            )
        else:
            connection = http.client.HTTPConnection(host, address.port, timeout=seconds)
        try:
            connection.connect()
        except (TimeoutError, socket.timeout):
            raise ConnectionError(f"no connection within {seconds:.0f} seconds") from None
        return connection

    def _target(self, request: _Request) -> str:
        query = {name: value for name, value in request.query.items() if value is not None and value != ""}
        path = urllib.parse.urlsplit(self.base_url).path + request.path
        return f"{path}?{urllib.parse.urlencode(query)}" if query else path

    def _headers(self, request: _Request) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self._key}", "Accept": request.accept, "User-Agent": f"skillbox-python/{__version__}"}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if request.method == "POST":
            headers["Idempotency-Key"] = request.idempotency_key
        if request.last_event_id:
            headers["Last-Event-ID"] = request.last_event_id
        if self.tenant is not None:
            headers["X-Skillbox-Tenant"] = self.tenant
        return headers

    def _refusal(self, response: http.client.HTTPResponse) -> Error:
        status = response.status
        try:
            problem = _typed(Problem, _parsed(_read(response, _PROBLEM_BYTES_MAX)))
        except Error:
            request_id = response.headers.get("X-Request-Id")
            message = f"{self.base_url} answered with status {status}; is it the address of a Skillbox server?"
            return Error(
                "unexpected_answer", message, status=status, request_id=request_id and self._masked(request_id),
                retryable=status in _RETRIED, retry_after=_seconds(response.headers.get("Retry-After")),
            )
        after = problem.retry_after
        return Error(
            problem.code, self._masked(problem.detail), status=status, request_id=self._masked(problem.request_id),
            retryable=problem.retryable, errors=problem.errors,
            retry_after=_seconds(response.headers.get("Retry-After")) if after is None else float(after),
        )

    def _failure(self, cause: Exception) -> Error:
        if isinstance(cause, Error):
            return cause
        if _is_timeout(cause):
            return Error("timeout", f"{self.base_url} did not answer within {self.timeout:g} seconds")
        said = self._masked(str(cause) or type(cause).__name__)
        may_pass = not isinstance(cause, ssl.SSLCertVerificationError)
        return Error("no_connection", f"{self.base_url} does not respond ({said}); is the server running?", retryable=may_pass)

    def _masked(self, text: str) -> str:
        """A server might repeat the key."""
        return text.replace(self._key, "***")


def _threaded(
    method: Callable[Concatenate[Client, P], T]
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    @functools.wraps(method)
    async def call(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._in_thread(_Call(), lambda: method(self.client, *args, **kwargs))

    return call


class AsyncClient:
    """`Client` for asyncio. Its requests run in threads; the cancellation of a task ends its connection."""

    def __init__(
        self, base_url: Optional[str] = None, api_key: Optional[str] = None, *, tenant: Optional[str] = None,
        timeout: float = 660.0, ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        self.client = Client(base_url, api_key, tenant=tenant, timeout=timeout, ssl_context=ssl_context)
        self._threads = ThreadPoolExecutor(_THREADS, "skillbox")

    def __repr__(self) -> str:
        return f"Async{self.client!r}"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the idle connections and ends the threads that are idle."""
        self.client.close()
        self._threads.shutdown(wait=False)

    run = _threaded(Client.run)
    run_code = _threaded(Client.run_code)
    get_execution = _threaded(Client.get_execution)
    wait = _threaded(Client.wait)
    cancel = _threaded(Client.cancel)
    list_executions = _threaded(Client.list_executions)
    delete_execution = _threaded(Client.delete_execution)
    get_request = _threaded(Client.get_request)
    rerun = _threaded(Client.rerun)
    logs = _threaded(Client.logs)
    download_files = _threaded(Client.download_files)
    read_file = _threaded(Client.read_file)
    read_result = _threaded(Client.read_result)
    upload_blob = _threaded(Client.upload_blob)
    download_blob = _threaded(Client.download_blob)
    list_blobs = _threaded(Client.list_blobs)
    delete_blob = _threaded(Client.delete_blob)
    register_skill = _threaded(Client.register_skill)
    list_skills = _threaded(Client.list_skills)
    list_skill_versions = _threaded(Client.list_skill_versions)
    get_skill = _threaded(Client.get_skill)
    download_skill = _threaded(Client.download_skill)
    delete_skill = _threaded(Client.delete_skill)
    tools = _threaded(Client.tools)
    tools_prompt = _threaded(Client.tools_prompt)
    call_tool = _threaded(Client.call_tool)
    tool_result = _threaded(Client.tool_result)
    health = _threaded(Client.health)

    def stream(
        self, skill: Optional[str] = None, input: Any = ..., /, *, idempotency_key: Optional[str] = None,
        **request: Unpack[CreateExecution],
    ) -> AsyncIterator[Event]:
        """As `Client.stream`."""
        return self._iterated(self.client.stream(skill, input, idempotency_key=idempotency_key, **request))

    def events(self, execution_id: str, *, last_event_id: str = "") -> AsyncIterator[Event]:
        """As `Client.events`."""
        return self._iterated(self.client.events(execution_id, last_event_id=last_event_id))

    async def _in_thread(self, call: _Call, work: Callable[[], T]) -> T:
        def within() -> T:
            _CALL.set(call)
            return work()

        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, contextvars.copy_context().run, within)
        except asyncio.CancelledError:
            call.cancel()
            raise

    async def _iterated(self, events: Iterator[Event]) -> AsyncIterator[Event]:
        call = _Call()
        try:
            while (event := await self._in_thread(call, lambda: next(events, None))) is not None:
                yield event
        finally:
            # Ends the step that may run in a thread, and with it the connection.
            call.cancel()


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Optional[bytes] = None
    content_type: str = "application/json"
    accept: str = "application/json"
    #: The same for all tries of a request.
    idempotency_key: str = field(default_factory=lambda: str(uuid.uuid4()))
    last_event_id: str = ""
    expected: tuple[int, ...] = ()
    bytes_max: int = _ANSWER_BYTES_MAX


@dataclass(frozen=True)
class _Answer:
    headers: http.client.HTTPMessage
    body: bytes


@dataclass(frozen=True)
class _Page:
    items: list[Any]
    next_page_token: Optional[str]


class _Call:
    """The time that a call has left, and its connection, so that another thread can end it."""

    def __init__(self) -> None:
        self._end = 0.0
        self._cancelled = threading.Event()
        self._socket: Optional[socket.socket] = None

    def restart(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        left = self._end - time.monotonic()
        if left <= 0 or self._cancelled.is_set():
            raise TimeoutError
        return left

    def sleep(self, seconds: float) -> bool:
        """`False` if the call ends before."""
        if time.monotonic() + seconds >= self._end:
            return False
        return not self._cancelled.wait(seconds)

    def watch(self, connected: Optional[socket.socket]) -> None:
        self._socket = connected
        if connected is not None:
            connected.settimeout(self.left())

    def cancel(self) -> None:
        self._cancelled.set()
        connected = self._socket
        if connected is not None:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)


#: The call of an asynchronous client that runs in this thread.
_CALL: contextvars.ContextVar[Optional[_Call]] = contextvars.ContextVar("skillbox_call", default=None)


class _TimedReader(io.RawIOBase):
    """Sets the time limit before each read, so that a server that sends single bytes cannot extend it."""

    def __init__(self, raw: io.RawIOBase, connected: socket.socket, call: _Call) -> None:
        self._raw, self._socket, self._call = raw, connected, call
        self.is_in_head = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        self._socket.settimeout(self._call.left())
        size = cast("Optional[int]", cast(Any, self._raw).readinto(buffer))
        # http.client takes the end of the connection for the end of the headers.
        if size == 0 and self.is_in_head:
            raise ConnectionError("the connection was closed before the response")
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedResponse(http.client.HTTPResponse):
    def __init__(self, call: _Call, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self._reader = _TimedReader(cast(Any, self.fp).detach(), sock, call)
        self.fp: Any = io.BufferedReader(self._reader)

    def begin(self) -> None:
        super().begin()
        self._reader.is_in_head = False


class _IdleConnections:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._kept: list[tuple[float, http.client.HTTPConnection]] = []

    def take(self) -> Optional[http.client.HTTPConnection]:
        oldest = time.monotonic() - _REUSE_SECONDS
        with self._lock:
            # After a fork, the parent uses these connections; a close here leaves them open there.
            if self._process != os.getpid():
                self._process, inherited, self._kept = os.getpid(), self._kept, []
                for _, connection in inherited:
                    connection.close()
            while self._kept:
                since, connection = self._kept.pop()
                if since > oldest:
                    return connection
                connection.close()
        return None

    def put(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._kept) < _CONNECTIONS_KEPT and self._process == os.getpid():
                self._kept.append((time.monotonic(), connection))
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            kept, self._kept = self._kept, []
        for _, connection in kept:
            connection.close()


def _checked_url(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    # The value is not in the message, since it may contain a password.
    if parts.username or parts.password:
        raise ValueError("base_url: must have no user and no password; pass the key as api_key")
    has_port = re.fullmatch(r"[^:]*|.*\]|.*:[0-9]{1,5}", parts.netloc)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or not has_port:
        raise ValueError(f"base_url: must be an http or https URL, not {url!r}; pass it, or set SKILLBOX_SERVER_URL")
    return url.rstrip("/")


def _path(*parts: str) -> str:
    return "/v1/" + "/".join(urllib.parse.quote(part, safe="") for part in parts)


def _watching(execution_id: str, last_event_id: str) -> _Request:
    path = _path("executions", execution_id, "events")
    return _Request("GET", path, accept="text/event-stream", last_event_id=last_event_id)


def _named(request: CreateExecution, **named: Any) -> CreateExecution:
    given = {name: value for name, value in named.items() if value is not ... and (value is not None or name == "input")}
    encoded = {
        path: base64.b64encode(_content(content, _FILES_BYTES_MAX)).decode() for path, content in (request.get("files") or {}).items()
    }
    return cast("CreateExecution", {**request, **given, **({"files": encoded} if encoded else {})})


def _creation(request: CreateExecution, idempotency_key: Optional[str]) -> _Request:
    """The request of an execution. `input` may be JSON already."""
    members = {name: value for name, value in request.items() if value is not None or name == "input"}
    encoded = (
        _json(name) + b":" + (value if isinstance(value, bytes) and name == "input" else _json(value))
        for name, value in members.items()
    )
    body = b"{" + b",".join(encoded) + b"}"
    created = _Request("POST", "/v1/executions", body=body)
    return created if idempotency_key is None else replace(created, idempotency_key=idempotency_key)


def _arguments(arguments: Union[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    if not isinstance(arguments, str):
        return arguments
    try:
        given = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Error("invalid", f"arguments: not JSON ({error})") from None
    if not isinstance(given, dict):
        raise Error("invalid", "arguments: must be a JSON object")
    return given


def _only(tool: str, given: Mapping[str, Any], known: Sequence[str]) -> CreateExecution:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise Error("invalid", f"{unknown[0]}: not an argument of {tool}; it has {', '.join(known)}")
    return cast("CreateExecution", dict(given))


def _takes_objects(schema: Any) -> bool:
    """Whether a skill's input is the arguments of its tool, or their member `input`."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind is None or kind == "object" or (isinstance(kind, list) and "object" in kind)


def _content(content: Union[bytes, "os.PathLike[str]"], bytes_max: int) -> bytes:
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    if isinstance(content, str):
        raise TypeError("content: must be bytes or a pathlib.Path, not text; encode the text")
    with open(content, "rb") as file:
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise ValueError(f"{os.fspath(content)}: larger than {bytes_max // _MIB} MiB")
    return data


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _is_timeout(cause: Exception) -> bool:
    # Two classes before Python 3.10.
    return isinstance(cause, (TimeoutError, socket.timeout))


def _seconds(header: Optional[str]) -> Optional[float]:
    """The value of `Retry-After`: seconds or a date."""
    if header is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", header.strip()):
        return float(header)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _read(response: http.client.HTTPResponse, bytes_max: int, into: Optional[IO[bytes]] = None) -> bytes:
    sink = io.BytesIO() if into is None else into
    # An earlier try may have been interrupted.
    sink.seek(0)
    sink.truncate()
    size = 0
    while piece := response.read1(_MIB):
        size += len(piece)
        if size > bytes_max:
            raise _unexpected(f"more than {bytes_max} bytes")
        sink.write(piece)
    if response.length:
        raise ConnectionError("the connection was closed in the middle of the response")
    return sink.getvalue() if isinstance(sink, io.BytesIO) else b""


def _events_of(response: http.client.HTTPResponse, call: _Call) -> Iterator[Event]:
    name, event_id, data, size = "", "", [], 0
    while line := response.readline(_ANSWER_BYTES_MAX):
        # Also after a comment, which an idle stream sends.
        call.restart(_STREAM_IDLE_SECONDS)
        size += len(line)
        if size > _ANSWER_BYTES_MAX:
            raise _unexpected("an event is too large")
        if not line.endswith(b"\n"):
            raise ConnectionError("the stream ended within an event")
        member, _, value = _text(line).rstrip("\r\n").partition(":")
        value = value[1:] if value.startswith(" ") else value
        if member == "event":
            name = value
        elif member == "id":
            event_id = value
        elif member == "data":
            data.append(value)
        elif not member and not value:
            kind = _EVENTS.get(name)
            if kind is not None and data:
                yield Event(cast(EventName, name), event_id, kind("\n".join(data).encode()))
            name, data, size = "", [], 0


def _envelope(text: bytes) -> Envelope:
    members = _members(_text(text))
    envelope = _typed(Envelope, {name: value for name, (value, _) in members.items()})
    return replace(envelope, output_json=members["output"][1].encode())


def _parsed_event(kind: Any) -> Callable[[bytes], Any]:
    return lambda text: _typed(kind, _parsed(text))


_EVENTS: dict[str, Callable[[bytes], Any]] = {
    "status": _parsed_event(StatusEvent),
    "stdout": _parsed_event(PrintedEvent),
    "stderr": _parsed_event(PrintedEvent),
    "log": _parsed_event(LogLine),
    "result": _envelope,
    "end": _parsed_event(EndEvent),
}


def _integer(digits: str) -> Any:
    try:
        return int(digits)
    except ValueError:
        # Python 3.11 converts at most 4,300 digits; a Decimal is exact, too.
        import decimal

        return decimal.Decimal(digits)


_DECODER = json.JSONDecoder(parse_int=_integer)
_SPACE = re.compile(r"[ \t\r\n]*")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _unexpected("not UTF-8") from None


def _parsed(data: bytes) -> Any:
    try:
        return _DECODER.decode(_text(data))
    except (ValueError, RecursionError) as error:
        raise _unexpected(f"not JSON: {error}") from None


def _members(text: str) -> dict[str, tuple[Any, str]]:
    """The members of an object: the value and its exact text."""
    found: dict[str, tuple[Any, str]] = {}

    def after_space(at: int, expected: str) -> int:
        at = cast("re.Match[str]", _SPACE.match(text, at)).end()
        if text[at : at + 1] not in (expected or text[at : at + 1]):
            raise ValueError(f"expected {expected} at {at}")
        return at

    try:
        at = after_space(0, "{") + 1
        while text[after_space(at, "")] != "}":
            name, at = _DECODER.raw_decode(text, after_space(at, ""))
            start = after_space(after_space(at, ":") + 1, "")
            value, end = _DECODER.raw_decode(text, start)
            found[name] = (value, text[start:end])
            at = after_space(end, ",}")
            at += text[at] == ","
    except (ValueError, IndexError, TypeError, RecursionError) as error:
        raise _unexpected(f"not a JSON object: {error}") from None
    return found


def _unexpected(reason: str) -> Error:
    return Error("unexpected_answer", f"{reason}; does the server have another version?")


def _typed(kind: type[T], value: Any) -> T:
    return cast(T, _checked(kind, value, getattr(kind, "__name__", "value")))


@functools.lru_cache(maxsize=None)
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _checked(kind: Any, value: Any, where: str) -> Any:
    """The value as an object of this type. Unknown members are ignored: a newer server may have more."""
    origin, parameters = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin is Union:
        return None if value is None else _checked(parameters[0], value, where)
    if origin is list and isinstance(value, list):
        return [_checked(parameters[0], item, where) for item in value]
    if origin is dict and isinstance(value, dict):
        return {name: _checked(parameters[1], item, f"{where}.{name}") for name, item in value.items()}
    if origin is Literal and isinstance(value, str):
        return value
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict):
        hints = _hints(kind)
        absent = [at.name for at in fields(kind) if at.name not in value and at.default is at.default_factory is MISSING]
        if absent:
            raise _unexpected(f"{where}.{absent[0]} is missing")
        known = (at.name for at in fields(kind) if at.name in value)
        return kind(**{name: _checked(hints[name], value[name], f"{where}.{name}") for name in known})
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if origin is None and isinstance(kind, type) and isinstance(value, kind) and isinstance(value, bool) is (kind is bool):
        return value
    raise _unexpected(f"{where} has an unexpected type")


def _unsafe(reason: str) -> Error:
    return Error("unsafe_archive", reason)


#: And halves of surrogate pairs, which are no text.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
#: Names that are devices in every folder on Windows.
_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\.|$)")


def _is_plain(path: str, windows: bool = os.name == "nt") -> bool:
    """Whether a path leads to a file below the folder that it is added to."""
    parts = path.split("/")
    if len(path.encode("utf-8", "replace")) > _PATH_BYTES_MAX or len(parts) > _PATH_FOLDERS_MAX:
        return False
    if any(part in ("", ".", "..") or len(part.encode("utf-8", "replace")) > 255 or _CONTROL.search(part) for part in parts):
        return False
    return not windows or not any(re.search(r'[\\:*?"<>|]|[. ]$', part) or _DEVICES.match(part) for part in parts)


def _checked_files(files: Sequence[FileLink], bytes_max: int, files_max: int) -> dict[str, FileLink]:
    listed: dict[str, FileLink] = {}
    if len(files) > files_max:
        raise _unsafe(f"{len(files)} files, more than {files_max}; raise files_max")
    if any(file.size < 0 for file in files) or sum(file.size for file in files) > bytes_max:
        raise _unsafe(f"the files have more than {bytes_max} bytes; raise bytes_max")
    for file in files:
        if not _is_plain(file.path) or file.path in listed:
            raise _unsafe(f"{file.path!r}: not a plain relative path, or a duplicate")
        listed[file.path] = file
    return listed


def _unpack(archive: IO[bytes], listed: Mapping[str, FileLink], folder: Path) -> list[Path]:
    """Unpacks into a folder of its own first, so that a rejected archive leaves nothing."""
    staging = Path(tempfile.mkdtemp(prefix=".skillbox-", dir=folder))
    try:
        with cast("IO[bytes]", gzip.GzipFile(fileobj=archive)) as tar:
            missing = dict(listed)
            for path, size in _headers(tar):
                file = missing.pop(path, None)
                if file is None or file.size != size:
                    raise _unsafe(f"{path!r}: not among the files of the result, a duplicate, or of another size")
                target = staging / path
                target.parent.mkdir(parents=True, exist_ok=True)
                with open(target, "xb") as out:
                    _copy(tar, out, file)
        if missing:
            raise _unsafe(f"{next(iter(missing))!r} is missing")
        return _moved(staging, folder, listed)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _unsafe(f"the archive is damaged: {error}") from None
    # Two names can be one on a file system that ignores case.
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise _unsafe(f"two files have one name: {error.filename}") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _headers(tar: IO[bytes]) -> Iterator[tuple[str, int]]:
    """The paths and sizes of a tar that has only what the server writes: regular files, and long names before them."""
    long_name: Optional[bytes] = None
    while (block := _exactly(tar, 512)) != bytes(512):
        checksum = sum(block) - sum(block[148:156]) + 8 * 32
        kind, size = block[156:157], _octal(block[124:136])
        if _octal(block[148:156]) != checksum:
            raise _unsafe("a header has a wrong checksum")
        if kind == b"L" and long_name is None and size <= _PATH_BYTES_MAX + 1:
            long_name = _exactly(tar, size + -size % 512)[:size].rstrip(b"\0")
            continue
        name = block[:100].rstrip(b"\0") if long_name is None else long_name
        if kind not in (b"0", b"\0"):
            raise _unsafe(f"{name!r}: a link, a device or another special entry")
        try:
            path = name.decode()
        except UnicodeDecodeError:
            raise _unsafe(f"{name!r}: not UTF-8") from None
        yield path, size
        _exactly(tar, -size % 512)
        long_name = None


def _octal(digits: bytes) -> int:
    text = digits.strip(b" \0")
    if not re.fullmatch(rb"[0-7]{1,11}", text):
        raise _unsafe("a header has a wrong number")
    return int(text, 8)


def _exactly(tar: IO[bytes], size: int) -> bytes:
    data = tar.read(size)
    if len(data) != size:
        raise EOFError("it is truncated")
    return data


def _copy(tar: IO[bytes], out: IO[bytes], file: FileLink) -> None:
    digest, left = hashlib.sha256(), file.size
    while left:
        piece = _exactly(tar, min(left, _MIB))
        digest.update(piece)
        out.write(piece)
        left -= len(piece)
    if f"sha256:{digest.hexdigest()}" != file.sha256:
        raise _unsafe(f"{file.path!r}: its content has another digest than the result says")


def _moved(staging: Path, folder: Path, listed: Mapping[str, FileLink]) -> list[Path]:
    targets = [folder / path for path in listed]
    for path, target in zip(listed, targets):
        # A link that is already there could lead out of the folder.
        for parent in [folder / above for above in Path(path).parents if above.parts]:
            if os.path.lexists(parent) and not stat.S_ISDIR(parent.lstat().st_mode):
                raise _unsafe(f"{parent}: exists and is no folder")
        if target.is_dir() and not target.is_symlink():
            raise _unsafe(f"{target}: exists and is a folder")
    for path, target in zip(listed, targets):
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(staging / path, target)
    return targets


#: Left out in any folder, as `skillbox skill push` does.
_IGNORED = {
    ".git", ".hg", ".svn", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".venv", ".DS_Store", "Thumbs.db",
    "__MACOSX",
}


def _packed(folder: Path) -> bytes:
    """The zip archive of a skill's folder; the same for the same files."""
    root = folder.resolve()
    found: list[tuple[str, Path, int]] = []
    for base, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _IGNORED]
        for name in folders + [name for name in files if name not in _IGNORED]:
            path = Path(base, name)
            target = path.resolve()
            # A link to a missing file is left out.
            mode = target.stat().st_mode if target.exists() else 0
            if mode and path.is_symlink() and (root not in target.parents or stat.S_ISDIR(mode)):
                raise ValueError(f"{path}: a link to a folder, or out of the skill; replace it by its target")
            if stat.S_ISREG(mode):
                found.append((path.relative_to(root).as_posix(), path, mode))
            elif mode and not stat.S_ISDIR(mode):
                raise ValueError(f"{path}: not a file; remove it from the skill")
        if len(found) > _SKILL_FILES_MAX:
            raise ValueError(f"{folder}: more than {_SKILL_FILES_MAX} files")
    packed, left = io.BytesIO(), _SKILL_BYTES_MAX
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path, mode in sorted(found):
            content = _content(path, left)
            left -= len(content)
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if mode & 0o100 else 0o100644) << 16
            archive.writestr(entry, content)
    return packed.getvalue()
