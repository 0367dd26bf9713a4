"""Rich results: every form in which a value can be shown, line by line into a file that outlives the program."""
import os
import sys

COUNT_MAX = 100
BYTES_MAX = 16 * 1024 * 1024 - 4096
TEXT_MAX = 1024 * 1024
ROWS_MAX = 1000

# The member of a result for each media type, and the methods that give it.
FORMS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    "text/javascript": "javascript",
}
METHODS = {
    "_repr_html_": "html",
    "_repr_markdown_": "markdown",
    "_repr_svg_": "svg",
    "_repr_png_": "png",
    "_repr_jpeg_": "jpeg",
    "_repr_pdf_": "pdf",
    "_repr_latex_": "latex",
    "_repr_json_": "json",
    "_repr_javascript_": "javascript",
}
BINARY = {"png", "jpeg", "pdf"}
VALUES = {"json", "data", "chart"}

_file = None
_count = 0
_bytes = 0
_full = False


def open_file():
    global _file
    _file = os.open("/sandbox/out/results.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def write(kind, value):
    """One line. What does not fit any more is left out, and that is said once; an end is always told."""
    global _count, _bytes, _full
    text = value if kind == "result" else json_of(value)
    line = f'{{"{kind}":{text}}}\n'.encode("utf-8", "backslashreplace")
    if kind == "result":
        if _count >= COUNT_MAX or _bytes + len(line) > BYTES_MAX:
            if not _full:
                _full = True
                _append(b'{"truncated": true}\n')
            return
        _count += 1
        _bytes += len(line)
    _append(line)


def _append(line):
    try:
        view = memoryview(line)
        while view:
            view = view[os.write(_file, view):]
    except OSError as error:
        print(f"a result was lost: {error}", file=sys.stderr)


def json_of(value):
    """The JSON of a value, without the module where it can be done without: importing it would cost every call."""
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if kind is str and value.isascii():
        from _json import encode_basestring_ascii

        return encode_basestring_ascii(value)
    import json

    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def result_of(members):
    """As `json_of`, for what is mostly text."""
    return "{" + ",".join(f'"{name}":{json_of(value)}' for name, value in members.items()) + "}"


def display(*values, **options):
    """Shows values in every form they have."""
    for value in values:
        show(value, raw=bool(options.get("raw")))


def display_main(value):
    show(value, is_main=True)


def show(value, is_main=False, raw=False):
    _flush()
    forms = dict(_by_type(value)) if raw and isinstance(value, dict) else _forms(value)
    result, truncated = {}, []
    for name, form in forms.items():
        try:
            if isinstance(form, _Cut):
                truncated.append(name)
                form = form.head
            form = _checked(name, form)
        except _TooLarge:
            truncated.append(name)
            continue
        except Exception as error:
            print(f"the form {name} of a result was lost: {error!r}", file=sys.stderr)
            continue
        if isinstance(form, str) and name not in BINARY and len(form) > TEXT_MAX:
            truncated.append(name)
            if name not in ("text", "markdown"):
                continue
            form = form[:TEXT_MAX]
        result[name] = form
    result["is_main_result"] = is_main
    if truncated:
        result["truncated"] = truncated
    write("result", result_of(result))


class _TooLarge(Exception):
    pass


class _Cut:
    """A form of which only the head is there."""

    def __init__(self, head):
        self.head = head


def _forms(value):
    forms = {"text": _text(value)}
    bundle = _ask(value, "_repr_mimebundle_")
    if bundle:
        forms.update(_by_type(bundle))
    for method, name in METHODS.items():
        if name not in forms:
            form = _ask(value, method)
            if form is not None:
                forms[name] = form
    forms.update(_known(value))
    return forms


def _text(value):
    try:
        return repr(value)
    except Exception as error:
        print(f"the repr of a result failed: {error!r}", file=sys.stderr)
        return f"<{type(value).__name__} whose repr failed>"


def _ask(value, method):
    # By its type: an object that has every attribute one asks for, as a mock does, has no such form.
    function = getattr(type(value), method, None)
    if function is None or isinstance(value, type):
        return None
    try:
        form = function(value)
    except NotImplementedError:
        return None
    except Exception as error:
        print(f"{method} of a result failed: {error!r}", file=sys.stderr)
        return None
    # Forms may come with metadata.
    return form[0] if isinstance(form, tuple) else form


def _by_type(bundle):
    if isinstance(bundle, dict):
        for kind, form in bundle.items():
            if kind in FORMS and form is not None:
                yield FORMS[kind], form


def _known(value):
    """What packages do not say of their values by themselves."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    try:
        if package == "pandas" and kind.__name__ == "DataFrame":
            table = _table(value)
            return {"data": _Cut(table) if len(value) > ROWS_MAX else table}
        if package == "matplotlib" and kind.__name__ == "Figure":
            from _skillbox import figures

            return {"png": figures.png(value)}
    except Exception as error:
        print(f"a form of a result was lost: {error!r}", file=sys.stderr)
    return {}


def _table(frame):
    """Each column with its values, times in ISO 8601, what is missing as null."""
    import json

    text = frame.head(ROWS_MAX).to_json(orient="split", date_format="iso", default_handler=str)
    split = json.loads(text)
    columns = [name if isinstance(name, str) else json.dumps(name) for name in split["columns"]]
    return {name: [row[index] for row in split["data"]] for index, name in enumerate(columns)}


def _checked(name, form):
    if name in BINARY:
        if isinstance(form, (bytes, bytearray, memoryview)):
            if len(form) > BYTES_MAX * 3 // 4:
                raise _TooLarge
            from binascii import b2a_base64

            return b2a_base64(form, newline=False).decode()
        return "".join(str(form).split())
    if name in VALUES:
        if len(json_of(form)) > TEXT_MAX:
            raise _TooLarge
        return form
    return clean(str(form))


def clean(text):
    """Text that UTF-8 can hold."""
    return text.encode("utf-8", "backslashreplace").decode()


def _flush():
    try:
        sys.stdout.flush()
    except Exception:
        pass


def finish():
    """Shows the figures that are still open."""
    if "matplotlib._pylab_helpers" in sys.modules:
        try:
            from _skillbox import figures

            figures.show_all()
        except Exception as error:
            print(f"the open figures were lost: {error!r}", file=sys.stderr)
    _flush()
