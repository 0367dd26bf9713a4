"""What no schema can say about a valid request, for tests/schemathesis.sh.

Each rule relates a value to the state of the server, to the clock or to another value. Only requests that follow the schema are changed.
"""

import io
import itertools
import zipfile

import schemathesis
import urllib3.connection
from hypothesis import strategies

NUMBERS = itertools.count()

SKILL_MD = """---
name: {name}
description: A skill of the API test.
---
"""


def archive(name):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("SKILL.md", SKILL_MD.format(name=name))
        archive.writestr("main.py", "print('{}')\n")
    return content.getvalue()


# An archive that is any bytes is no skill.
schemathesis.openapi.media_type(
    "application/zip", strategies.from_regex(r"[a-z][a-z0-9]{0,20}", fullmatch=True).map(archive)
)


@schemathesis.hook
def before_call(context, case, kwargs):
    # A blob is returned with the type that its upload claimed, and bytes of another type cannot be decoded.
    if case.method == "POST" and case.path == "/v1/blobs":
        case.headers = {**(case.headers or {}), "Content-Type": "application/octet-stream"}
    if not case.meta:
        return
    query, headers = case.query or {}, case.headers or {}
    body = case.body if isinstance(case.body, dict) else {}
    if not case.meta.generation.mode.is_positive:
        # A form has a field for each item: what is no list of texts has none, or looks like a text.
        if case.media_type == "multipart/form-data":
            case.body = {**body, "requirements": ["not a requirement"]}
        return
    # Only the server makes page tokens, each for one list, and ids of events, each for one execution.
    query.pop("page_token", None)
    query.pop("last_event_id", None)
    headers.pop("Last-Event-ID", None)
    # A key belongs to one request.
    if "Idempotency-Key" in headers:
        headers["Idempotency-Key"] = f"request-{next(NUMBERS)}"
    # `wait` in the query belongs to `mode` in the body.
    if case.path in ("/v1/executions", "/v1/executions/{id}/rerun") and body.get("mode") != "async":
        query.pop("wait", None)
    # Parameters that exclude each other: no schema can say it of a query.
    if "code" in query:
        query.pop("skill", None)
    if "follow" in query:
        query.pop("timestamps", None)
    # A period starts before its end.
    if "until" in query:
        query.pop("since", None)
    # Paths are limited in bytes, and no path is a file and the folder of another.
    if body.get("files"):
        body["files"] = {f"folder/{number}": content for number, content in enumerate(body["files"].values())}
    # A URL has to have a public host, and a package has to exist.
    if body.get("callback_url"):
        body["callback_url"] = "https://hooks.example/skillbox"
    if body.get("requirements"):
        body["requirements"] = []
    # A script is a file of the skill.
    if body.get("script") is not None:
        body["script"] = "scripts/main.py"
    # A skill is mounted once, in one version.
    if body.get("mount_skills"):
        names = {reference.partition("@")[0]: reference for reference in body["mount_skills"]}
        body["mount_skills"] = list(names.values())
    # An expiry lies in the future.
    if case.path == "/v1/keys" and body.get("expires_at"):
        body["expires_at"] = "2100-01-01T00:00:00Z"


# The server limits wrong keys by address, so each request comes from another one.
ADDRESSES = itertools.cycle(f"127.1.{high}.{low}" for high in range(8) for low in range(1, 251))
send = urllib3.connection.HTTPConnection.request


def send_from_another_address(self, *args, **kwargs):
    self.close()
    self.source_address = (next(ADDRESSES), 0)
    return send(self, *args, **kwargs)


urllib3.connection.HTTPConnection.request = send_from_another_address
