"""Extracts a PDF's text: reads the input JSON, writes text and metadata as JSON and all text as a file."""

import base64
import binascii
import io
import json
import logging
import os
import sys

from pypdf import PdfReader
from pypdf.errors import PyPdfError

PAGE_CHARS_MAX = 20_000
ALL_CHARS_MAX = 200_000
OUTLINE_MAX = 500
FIELDS_MAX = 1000
VALUE_CHARS_MAX = 2000


class InputError(Exception):
    """An error that the caller can correct."""


def open_document(given):
    if "base64" in given:
        try:
            content = base64.b64decode(given["base64"], validate=True)
        except (binascii.Error, ValueError):
            raise InputError("base64: this is no base64; leave out `data:…,` and line breaks")
    elif "path" in given:
        try:
            with open(given["path"], "rb") as file:
                content = file.read()
        except OSError:
            raise InputError(f"path: {given['path']!r} is not there; send the file with the run")
    else:
        raise InputError("give the PDF as `base64`, or the name of a file sent along as `path`")
    if b"%PDF-" not in content[:1024]:
        raise InputError("this is no PDF: it does not begin with %PDF-")
    document = PdfReader(io.BytesIO(content))
    if document.is_encrypted and not document.decrypt(given.get("password", "")):
        raise InputError("password: the PDF is encrypted, and this does not open it")
    return document


def chosen(pages, total):
    """The page numbers of a selection such as `1-3,7` or `5-`, in its order."""
    if not pages:
        return range(1, total + 1)
    found = set()
    for part in pages.split(","):
        first, dash, last = part.partition("-")
        try:
            first = int(first)
            last = int(last) if last else (total if dash else first)
        except ValueError:
            raise InputError("pages: write them as 1-3,7 or 5-")
        if not 1 <= first <= last <= total:
            raise InputError(f"pages: {part!r} is not within 1-{total}")
        found.update(range(first, last + 1))
    return sorted(found)


def text_of(page, layout):
    try:
        return page.extract_text(extraction_mode="layout" if layout else "plain").strip()
    except (PyPdfError, KeyError, TypeError, ValueError, AttributeError) as error:
        # One broken page does not lose the others.
        print(f"a page cannot be read: {error}", file=sys.stderr)
        return ""


def images_on(page):
    try:
        resources = page.get("/Resources", {}).get_object()
        objects = resources.get("/XObject", {}).get_object()
        return sum(objects[name].get_object().get("/Subtype") == "/Image" for name in objects)
    except (PyPdfError, KeyError, TypeError, AttributeError):
        return 0


def metadata(document):
    told = document.metadata or {}
    keys = {"title": "/Title", "author": "/Author", "subject": "/Subject", "creator": "/Creator", "producer": "/Producer"}
    found = {name: told.get(key) for name, key in keys.items()}
    for name, attribute in [("created", "creation_date"), ("modified", "modification_date")]:
        try:
            date = getattr(told, attribute, None)
        except (ValueError, PyPdfError):
            date = None
        found[name] = date.isoformat() if date else None
    return {name: str(value)[:VALUE_CHARS_MAX] for name, value in found.items() if value}


def outline(document):
    entries = []

    def walk(items, level):
        for item in items:
            if len(entries) == OUTLINE_MAX:
                return
            if isinstance(item, list):
                walk(item, level + 1)
                continue
            page = document.get_destination_page_number(item)
            page = None if page is None or page < 0 else page + 1
            entries.append({"title": str(item.title)[:VALUE_CHARS_MAX], "page": page, "level": level})

    try:
        walk(document.outline, 1)
    except (PyPdfError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        print(f"the outline cannot be read: {error}", file=sys.stderr)
    return entries


def fields(document):
    try:
        found = document.get_fields() or {}
    except (PyPdfError, KeyError, TypeError, AttributeError):
        found = {}
    told = {name: field.get("/V") for name, field in list(found.items())[:FIELDS_MAX]}
    return {name: None if value is None else str(value)[:VALUE_CHARS_MAX] for name, value in told.items()}


def main():
    # Standard error is for what matters to the caller.
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    with open(os.environ["SANDBOX_INPUT_FILE"], encoding="utf-8") as file:
        given = json.load(file)
    try:
        document = open_document(given)
        total = len(document.pages)
    except PyPdfError as error:
        raise InputError(f"the PDF is damaged: {error}")
    pages, room = [], ALL_CHARS_MAX
    with open(os.path.join(os.environ["SANDBOX_FILES_DIR"], "text.txt"), "w", encoding="utf-8") as everything:
        for number in chosen(given.get("pages"), total):
            page = document.pages[number - 1]
            text = text_of(page, given.get("layout", False))
            everything.write(text + "\n\f")
            shown = text[: min(PAGE_CHARS_MAX, room)]
            room -= len(shown)
            pages.append({"page": number, "text": shown, "characters": len(text), "images": images_on(page)})
    answer = {
        "pages_total": total,
        "pages": pages,
        "metadata": metadata(document),
        "outline": outline(document),
        "fields": fields(document),
        "text_file": "text.txt",
    }
    with open(os.environ["SANDBOX_OUTPUT"], "w", encoding="utf-8") as file:
        json.dump(answer, file, ensure_ascii=False)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        print(f"pdf-extract: {error}", file=sys.stderr)
        sys.exit(2)
