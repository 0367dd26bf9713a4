"""Structured log lines: `log.info("read the table", rows=12)`. Logging never fails and never waits for long."""
import json as _json
import os as _os
import sys as _sys
from datetime import datetime as _datetime, timezone as _timezone

# A pipe takes this much in one piece, even if other processes write to it.
_LINE_MAX = 4096
_pipe = None


def debug(message, **fields):
    """For its author."""
    _write("debug", message, fields)


def info(message, **fields):
    """As a rule."""
    _write("info", message, fields)


def warning(message, **fields):
    """Worth a look."""
    _write("warning", message, fields)


def error(message, **fields):
    """Something went wrong."""
    _write("error", message, fields)


def _write(level, message, fields):
    global _pipe
    line = {"time": _datetime.now(_timezone.utc).isoformat(timespec="milliseconds"), "level": level}
    try:
        message = str(message)
    except Exception:
        message = _text(message)
    line["message"] = message.encode("utf-8", "backslashreplace").decode()
    if fields:
        line["fields"] = fields
    try:
        text = _encoded(line)
    except Exception:
        # Values that JSON cannot represent are logged as text.
        line["fields"] = {name: _text(value) for name, value in fields.items()}
        text = _encoded(line)
    try:
        if _pipe is None:
            _pipe = _os.open("/sandbox/log", _os.O_WRONLY | _os.O_CLOEXEC)
        _os.write(_pipe, text)
    except OSError:
        print(f"{level.upper()} {line['message']}", file=_sys.stderr)


def _encoded(line):
    """One line that is short enough; fields go before the message is cut."""
    text = _json.dumps(line, allow_nan=False, default=_text, skipkeys=True, ensure_ascii=False)
    text = text.encode("utf-8", "backslashreplace") + b"\n"
    if len(text) <= _LINE_MAX:
        return text
    if line.pop("fields", None) is not None:
        line["message"] += " [fields left out: too long]"
    else:
        line["message"] = line["message"][: len(line["message"]) // 2 - 8] + "… [cut]"
    return _encoded(line)


def _text(value):
    try:
        text = repr(value)
        # Truncated text is marked: the server masks beginnings of secrets only where it sees a mark.
        return text if len(text) <= 1000 else text[:1000] + "…"
    except Exception:
        return f"<{type(value).__name__}>"
