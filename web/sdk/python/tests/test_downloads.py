"""Archives of files: what the server writes is saved, and hostile archives leave nothing, inside and outside of the folder."""

import gzip
import hashlib
import io
import os
import random
import tarfile
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import skillbox
from skillbox import Client, Error

from .scripted import ID, ScriptedServer, answer, envelope, response

HOSTILE = 200


def listed(path, content, **changes):
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    return {"path": path, "size": len(content), "sha256": digest, "media_type": "text/plain", "url": None, **changes}


def tar_gz(*entries):
    """Entries are a name and content, or a TarInfo with content."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.GNU_FORMAT) as tar:
        for entry, content in entries:
            if isinstance(entry, str):
                entry = special(entry, tarfile.REGTYPE)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def special(name, kind, target=""):
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def tree(folder):
    """All that is below a folder: paths with what they are and contain."""
    found = {}
    for base, folders, files in os.walk(folder):
        for name in folders + files:
            path = Path(base, name)
            kind = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else "folder"
            found[str(path.relative_to(folder))] = kind
    return found


class DownloadTest(unittest.TestCase):
    def setUp(self):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        # Folders above the destination, so that `..` leads to a file.
        self.top = Path(top.name)
        self.dest = self.top / "a" / "b" / "dest"
        self.dest.mkdir(parents=True)
        (self.top / "victim").write_bytes(b"untouched")
        (self.top / "a" / "folder").mkdir()

    def download(self, archive, files, **options):
        with ScriptedServer(answer(envelope(files=files)), *[response(body=archive, content_type="application/gzip")] * 4) as server:
            with Client(server.url, "skb_key") as client, mock.patch.object(skillbox, "_PAUSE_SECONDS", 0.01):
                return client.download_files(ID, self.dest, **options)

    def test_saves_folders_long_names_and_exact_bytes(self):
        long = "/".join(["f" * 60] * 5) + "/ü b.txt"
        contents = {"a.txt": b"\x00\xff" * 2000, "sub/b": b"", long: b"x" * 512}
        saved = self.download(tar_gz(*contents.items()), [listed(*item) for item in contents.items()])
        self.assertEqual(saved, [self.dest / path for path in contents])
        self.assertEqual({path: (self.dest / path).read_bytes() for path in contents}, contents)
        self.assertEqual([path.name for path in self.dest.iterdir() if path.name.startswith(".skillbox")], [])

    def test_replaces_files_and_links_but_follows_no_link(self):
        (self.dest / "a").write_bytes(b"old")
        (self.dest / "b").symlink_to(self.top / "victim")
        contents = {"a": b"new", "b": b"new"}
        self.download(tar_gz(*contents.items()), [listed(*item) for item in contents.items()])
        self.assertEqual(tree(self.dest), contents)
        self.assertEqual((self.top / "victim").read_bytes(), b"untouched")

    def test_results_without_files_need_no_request(self):
        self.assertEqual(self.download(b"", []), [])

    def test_limits_are_those_of_the_caller(self):
        files = [listed("a", b"12"), listed("b", b"34")]
        archive = tar_gz(("a", b"12"), ("b", b"34"))
        for options in [{"files_max": 1}, {"bytes_max": 3}]:
            with self.assertRaisesRegex(Error, "raise (files|bytes)_max"):
                self.download(archive, files, **options)
        self.assertEqual(len(self.download(archive, files, files_max=2, bytes_max=4)), 2)

    def test_names_that_windows_reads_otherwise_are_not_plain_there(self):
        for path in ["C:\\x", "..\\x", "a\\b", "x:stream", "CON", "sub/nul.txt", "COM1", "a.", "a ", "a?", "LPT¹"]:
            self.assertFalse(skillbox._is_plain(path, windows=True), path)
        for path in ["console", "a.con", "sub/aux2", "ü b.txt"]:
            self.assertTrue(skillbox._is_plain(path, windows=True), path)

    def test_hostile_archives_leave_nothing(self):
        rng = random.Random(7)
        before = tree(self.top)
        for n in range(HOSTILE):
            make = FORMS[n % len(FORMS)]
            archive, files = make(rng, self.top)
            with self.subTest(form=make.__name__, n=n):
                with self.assertRaises(Error) as found:
                    self.download(archive, files)
                self.assertIn(found.exception.code, ("unsafe_archive", "unexpected_answer"))
                self.assertEqual(tree(self.top), before)

    def test_links_that_exist_in_the_folder_are_not_followed(self):
        (self.dest / "out").symlink_to(self.top / "a" / "folder")
        before = tree(self.top)
        with self.assertRaisesRegex(Error, "no folder"):
            self.download(tar_gz(("first", b"1"), ("out/x", b"2")), [listed("first", b"1"), listed("out/x", b"2")])
        self.assertEqual(tree(self.top), before)


def names(rng, top):
    return rng.choice([
        "../victim", "../../victim", "../../../victim", "a/../../victim", "./x", "a/./b", "a//b", "/", "", ".", "..", "a/", "a/..",
        str(top / "victim"), "/etc/skillbox-test", "//etc/skillbox-test", "../folder/x", "x\n", "\x1b[31m", "a/" * 70 + "b",
        "n" * 300, "/".join(["n" * 200] * 25), "x\x7f",
    ])


def leading_out(rng, top):
    """The listing and the archive agree on a path that leads out."""
    path, content = names(rng, top), rng.randbytes(rng.randrange(2000))
    return tar_gz(("ok", b"1"), (path, content)), [listed("ok", b"1"), listed(path, content)]


def unlisted(rng, top):
    return tar_gz(("ok", b"1"), (names(rng, top), b"2")), [listed("ok", b"1")]


def linked(rng, top):
    """A link in place of a file, or before a file below it."""
    kind = rng.choice([tarfile.SYMTYPE, tarfile.LNKTYPE])
    target = rng.choice([str(top / "victim"), "../../../victim", "/etc/passwd", ".", "ok"])
    entries = [("ok", b"1"), (special("x", kind, target), b""), ("x/y", b"2")]
    return tar_gz(*entries[: rng.choice([2, 3])]), [listed("ok", b"1"), listed("x", b""), listed("x/y", b"2")][: rng.choice([2, 3])]


def devices(rng, _):
    kind = rng.choice([
        tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE, tarfile.DIRTYPE, tarfile.GNUTYPE_SPARSE, tarfile.XHDTYPE,
        tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK, b"V", b"M", b"Z",
    ])
    entry = special("x", kind)
    entry.devmajor, entry.devminor = 1, 3
    return tar_gz(("ok", b"1"), (entry, b"")), [listed("ok", b"1"), listed("x", b"")]


def duplicates(rng, _):
    second = rng.choice(["ok", "ok/x", "ok/x/y"])
    files = [listed("ok", b"1"), listed(second, b"2")]
    return tar_gz(("ok", b"1"), (second, b"2")), files if rng.random() < 0.5 or second != "ok" else files[:1]


def too_much(rng, _):
    """More bytes or files than allowed, by the listing or only in the archive."""
    form = rng.randrange(4)
    if form == 0:
        return tar_gz(("a", b"1")), [listed("a", b"1", size=rng.choice([2**40, 257 * 2**20, -1]))]
    if form == 1:
        return tar_gz(("a", b"1")), [listed("f%d" % n, b"") for n in range(1001)]
    if form == 2:
        return tar_gz(("a", b"0" * rng.randrange(1_000_000, 5_000_000))), [listed("a", b"0")]
    return tar_gz(*[("f%d" % n, b"") for n in range(60)]), [listed("f%d" % n, b"") for n in range(rng.randrange(40))]


def wrong_content(rng, _):
    content = rng.randbytes(rng.randrange(1, 3000))
    other = bytes([content[0] ^ 1]) + content[1:]
    return tar_gz(("ok", b"1"), ("x", other)), [listed("ok", b"1"), listed("x", content)]


def missing(rng, _):
    return tar_gz(("ok", b"1")), [listed("ok", b"1"), listed("x", rng.randbytes(10))]


def damaged(rng, _):
    """Cut off, or with changed bytes."""
    content = rng.randbytes(5000)
    files = [listed("ok", b"1"), listed("x", content)]
    tar = bytearray(gzip.decompress(tar_gz(("ok", b"1"), ("x", content))))
    form = rng.randrange(3)
    if form == 0:
        return tar_gz(("ok", b"1"), ("x", content))[: rng.randrange(1, 4000)], files
    if form == 1:
        # The name, size, checksum or type of a header, or the content.
        at = rng.choice([0, 124, 135, 148, 1024, 1024 + 124, 1024 + 130, 1024 + 148, 1024 + 156, 2000])
        tar[at] ^= rng.randrange(1, 256)
        return gzip.compress(bytes(tar)), files
    return rng.randbytes(2000), files


def bombs(rng, _):
    """Long names and content that expand."""
    if rng.random() < 0.5:
        entry = special("././@LongLink", tarfile.GNUTYPE_LONGNAME)
        return tar_gz((entry, b"a" * rng.randrange(5000, 5_000_000)), ("x", b"")), [listed("x", b"")]
    entries = [(special("././@LongLink", tarfile.GNUTYPE_LONGNAME), b"a" * 200 + b"\0")] * 2
    return tar_gz(*entries, ("x", b"")), [listed("x", b""), listed("a" * 200, b"")]


FORMS = [leading_out, unlisted, linked, devices, duplicates, too_much, wrong_content, missing, damaged, bombs]
