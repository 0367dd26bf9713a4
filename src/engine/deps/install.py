"""Installs Python packages from the configured index into the folder whose files the sandbox hands back.

Runs inside a sandbox that reaches that index alone, by the proxy. Only wheels are installed: nothing of a package is run.
"""

import compileall
import hashlib
import html.parser
import importlib.util
import json
import os
import py_compile
import re
import ssl
import subprocess
import sys
import urllib.parse
import urllib.request

OUT = "/sandbox/out/files"
CA = "/workspace/ca.pem"
INDEX_PAGE_BYTES_MAX = 8 << 20
PIP_BYTES_MAX = 32 << 20
NAME = re.compile(r"pip-(\d+(?:\.\d+)*)-(?:py2\.)?py3-none-any\.whl")


class Links(html.parser.HTMLParser):
    """The files that a page of a simple index (PEP 503) lists."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "a" and attributes.get("href") and "data-yanked" not in attributes:
            self.found.append((attributes["href"], attributes.get("data-requires-python") or ""))


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def suits(requires):
    """Whether this interpreter is one of those that `>=3.9,<4` means; what cannot be read does not hinder."""
    own = sys.version_info[:3]
    for clause in filter(None, (clause.strip() for clause in requires.split(","))):
        match = re.fullmatch(r"(>=|<=|!=|==|>|<)\s*(\d+(?:\.\d+)*)(\.\*)?", clause)
        if not match:
            continue
        operator, other = match[1], numbers(match[2])
        mine = own[: len(other)]
        if not {
            ">=": mine >= other, ">": own > other, "<=": mine <= other,
            "<": own < other, "==": mine == other, "!=": mine != other,
        }[operator]:
            return False
    return True


def fetch_pip(index, proxy):
    """Fetches the newest pip for this interpreter and returns what Python runs it by."""
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({"https": proxy}),
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=CA)),
    )

    def fetch(url, bytes_max):
        if not url.startswith("https://"):
            raise SystemExit("the index refers to %r, which is not fetched" % url)
        with opener.open(urllib.request.Request(url, headers={"Accept": "text/html"}), timeout=30) as answer:
            content = answer.read(bytes_max + 1)
            if len(content) > bytes_max:
                raise SystemExit("%s is too large" % url)
            return content, answer.geturl()

    page, base = fetch(index + "/pip/", INDEX_PAGE_BYTES_MAX)
    links = Links()
    links.feed(page.decode("utf-8", "replace"))
    known = []
    for href, requires in links.found:
        url, _, fragment = urllib.parse.urljoin(base, href).partition("#")
        name = NAME.fullmatch(urllib.parse.unquote(url.rsplit("/", 1)[-1]))
        if name and suits(requires):
            known.append((numbers(name[1]), url, fragment))
    if not known:
        raise SystemExit("the index has no pip for Python %d.%d" % sys.version_info[:2])
    version, url, fragment = max(known)
    wheel, _ = fetch(url, PIP_BYTES_MAX)
    if fragment.startswith("sha256=") and hashlib.sha256(wheel).hexdigest() != fragment[7:]:
        raise SystemExit("pip was damaged on its way")
    path = "/sandbox/tmp/pip-%s-py3-none-any.whl" % ".".join(map(str, version))
    with open(path, "wb") as file:
        file.write(wheel)
    return [path + "/pip"]


def main():
    with open("/sandbox/input.json") as file:
        job = json.load(file)
    os.mkdir(os.environ["TMPDIR"])
    if importlib.util.find_spec("pip"):
        pip = ["-I", "-m", "pip"]
    else:
        try:
            pip = fetch_pip(job["index"], job["proxy"])
        except OSError as error:
            raise SystemExit("pip cannot be fetched from the index: %s" % error)
    done = subprocess.run([
        sys.executable, "-u", *pip, "--isolated", "--no-input", "--disable-pip-version-check", "--no-cache-dir",
        "--proxy", job["proxy"], "--cert", CA, "--retries", "2", "--timeout", "30",
        "install", "--progress-bar", "off", "--no-warn-script-location", "--no-compile",
        "--only-binary", ":all:", "--index-url", job["index"], "--target", OUT,
        *(["--pre"] if job["prereleases"] else []), "-c", "/workspace/constraints.txt", "-r", "/workspace/requirements.txt",
    ])
    if done.returncode < 0:
        # The host learns why the installation ended.
        os.kill(os.getpid(), -done.returncode)
    if done.returncode:
        sys.exit(done.returncode)
    # Checked by nobody when it is loaded: the files never change. Sources that no version of Python reads stay as they are.
    compileall.compile_dir(
        OUT, maxlevels=40, ddir=job["seen_at"], quiet=2, workers=1,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


main()
