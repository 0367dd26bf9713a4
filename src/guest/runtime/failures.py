"""Why a call came to nothing: an exception, or a value that is not JSON."""
import json
import os
import sys
import traceback

from _skillbox import results

OWN = os.path.dirname(__file__) + os.sep


class NotJson(Exception):
    """The value of a call that has no JSON."""


def tell(error):
    """Prints what happened as Python does, and hands it over with name and value."""
    if isinstance(error, NotJson):
        print(f"output: {error}", file=sys.stderr)
        results.write("not_json", results.clean(str(error)))
        return
    whole = traceback.TracebackException.from_exception(error)
    pending, seen = [whole], set()
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        frames = [frame for frame in one.stack if not is_own(frame)]
        while frames and is_of_the_loop(frames[0]):
            frames.pop(0)
        one.stack = traceback.StackSummary.from_list(frames)
        pending.extend([one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or [])])
    text = "".join(whole.format())
    print(text, end="", file=sys.stderr)
    try:
        value = str(error)
    except Exception:
        value = "<its text cannot be had>"
    told = {"name": type_name(error), "value": results.clean(value)[:8000], "traceback": results.clean(text)[-60000:]}
    results.write("exception", told)


def is_own(frame):
    return frame.filename.startswith((OWN, "<frozen "))


def is_of_the_loop(frame):
    return "/asyncio/" in frame.filename or "/importlib/" in frame.filename


def why_not_json(value):
    """The path of the first value that JSON cannot hold."""
    pending = [(value, "$", ())]
    while pending:
        value, path, above = pending.pop()
        if value is None or isinstance(value, (bool, int)):
            continue
        if isinstance(value, str):
            if any("\ud800" <= character <= "\udfff" for character in value):
                return f"{path} is a text with half a surrogate pair, which UTF-8 cannot hold"
        elif isinstance(value, float):
            if value != value or value in (float("inf"), float("-inf")):
                return f"{path} is {float(value)!r}, which JSON cannot hold; return None or a text instead"
        elif id(value) in above:
            return f"{path} contains itself"
        elif len(above) > 200:
            return f"{shortened(path)} is nested too deep"
        elif isinstance(value, dict):
            for key in reversed(value):
                if not (key is None or isinstance(key, (str, int, float))):
                    return f"{path} has the key {shortened(repr(key))}, a {type_name(key)}; keys must be texts"
                pending.append((value[key], path + step(key), (*above, id(value))))
        elif isinstance(value, (list, tuple)):
            for index in reversed(range(len(value))):
                pending.append((value[index], f"{path}[{index}]", (*above, id(value))))
        else:
            return f"{path} is a {type_name(value)}; return only dicts, lists, texts, numbers, booleans and None"
    return "$ holds something that JSON cannot hold"


def shortened(text):
    """What is cut says so: the server masks beginnings of secrets only at cuts that it sees."""
    return text if len(text) <= 100 else text[:100] + "…"


def step(key):
    return f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{json.dumps(key)}]"


def type_name(value):
    kind = type(value)
    hidden = kind.__module__ in ("builtins", "__main__")
    return kind.__qualname__ if hidden else f"{kind.__module__}.{kind.__qualname__}"
