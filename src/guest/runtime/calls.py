"""What is called, how it ends, and where its value goes."""
import _ast as ast
import builtins
import json
import os
import sys
import types

from _skillbox import results

OWN = os.path.dirname(__file__) + os.sep
NAME = "<code>"


class NotJson(Exception):
    """The value of a call that has no JSON."""


def main(words):
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    sys.stderr.reconfigure(errors="backslashreplace")
    # Whatever the code does to files, its results go where they go.
    results.open_file()
    watch_threads()
    kind, words = words[0], words[1:]
    try:
        if kind == "code":
            run_code(words)
        else:
            call_function(*words[:2])
        status = 0
    except SystemExit as exit:
        status = exit_status(exit)
    except NotJson as refused:
        results.write("not_json", str(refused))
        print(f"output: {refused}", file=sys.stderr)
        status = 1
    except BaseException as error:
        tell(error)
        status = 1
    results.finish()
    return status


def run_code(words):
    with open("/sandbox/code", encoding="utf-8", newline="") as file:
        source = file.read()
    module = types.ModuleType("__main__")
    module.display = results.display
    module.__builtins__ = builtins
    sys.modules["__main__"] = module
    sys.argv = [NAME, *words]
    prime_linecache(source)
    results.watch_imports()
    tree = compile(source, NAME, "exec", ast.PyCF_ONLY_AST | LIKE_A_CELL)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    loop = Loop()
    try:
        loop.run(compile(tree, NAME, "exec", LIKE_A_CELL), module.__dict__)
        value = None
        if last is not None:
            code = compile(ast.Expression(last.value), NAME, "eval", LIKE_A_CELL)
            value = loop.finish(loop.run(code, module.__dict__))
        function = module.__dict__.get("main")
        if callable(function) and not calls_main(tree, last):
            value = loop.finish(function(*arguments(function)))
            # To be looked at, even if it can be no output.
            if value is not None:
                results.display_main(value)
            write_output(value)
            value = None
        elif value is not None and not os.path.lexists(output_path()):
            try:
                write_output(value)
            except NotJson:
                # A value to look at, which is no output.
                pass
    finally:
        loop.close()
    if value is not None:
        results.display_main(value)


LIKE_A_CELL = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
CO_COROUTINE = 0x80
CO_VARARGS = 0x04


def call_function(module, export):
    import importlib
    import importlib.util

    # As for a script: its neighbours are found without the whole path.
    spec = importlib.util.find_spec(module)
    if spec is not None and spec.origin:
        sys.path[0] = os.path.dirname(spec.origin)
    function = getattr(importlib.import_module(module), export, None)
    if not callable(function):
        raise AttributeError(f"module {module!r} has no function {export!r}")
    loop = Loop()
    try:
        value = loop.finish(function(*arguments(function)))
    finally:
        loop.close()
    write_output(value)


class Loop:
    """One event loop for all that is awaited, made when something is."""

    def __init__(self):
        self.runner = None

    def run(self, code, names):
        value = eval(code, names)
        return self.finish(value) if code.co_flags & CO_COROUTINE else value

    def finish(self, value):
        if not hasattr(type(value), "__await__"):
            return value
        if self.runner is None:
            import asyncio

            self.runner = asyncio.Runner()
        if isinstance(value, types.CoroutineType):
            return self.runner.run(value)

        async def wait():
            return await value

        return self.runner.run(wait())

    def close(self):
        if self.runner is not None:
            self.runner.close()


def arguments(function):
    """The input, for a function that takes something."""
    code = getattr(function, "__code__", None)
    if code is not None and not code.co_argcount and not code.co_flags & CO_VARARGS:
        return []
    with open(os.environ.get("SANDBOX_INPUT_FILE", "/sandbox/input.json"), encoding="utf-8") as file:
        return [json.load(file)]


def calls_main(tree, last):
    """Whether the code calls `main` by itself, as a script does under `if __name__ == "__main__":`."""
    pending = [*tree.body, *([last] if last else [])]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "main":
            return True
        for field in node._fields:
            child = getattr(node, field, None)
            children = child if isinstance(child, list) else [child]
            pending.extend(each for each in children if isinstance(each, ast.AST))
    return False


def output_path():
    return "/sandbox/out/output.json"


def write_output(value):
    """Writes the value of a call, in place of what the program may have written itself unless there is none."""
    if value is None and os.path.lexists(output_path()):
        return
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise NotJson(why_not_json(value)) from None
    with open(output_path(), "wb") as file:
        file.write(text)


def why_not_json(value):
    """The path of the first value that JSON cannot hold."""
    pending, above = [(value, "$", ())], ()
    while pending:
        value, path, above = pending.pop()
        if value is None or isinstance(value, (bool, int)):
            continue
        if isinstance(value, str):
            if any("\ud800" <= character <= "\udfff" for character in value):
                return f"{path} is a text with half a surrogate pair, which UTF-8 cannot hold"
        elif isinstance(value, float):
            if value != value or value in (float("inf"), float("-inf")):
                return f"{path} is {value!r}, which JSON cannot hold; return None or a text instead"
        elif id(value) in above:
            return f"{path} contains itself"
        elif len(above) > 200:
            return f"{path[:100]}… is nested too deep"
        elif isinstance(value, dict):
            for key in reversed(value):
                if not (key is None or isinstance(key, (str, int, float))):
                    return f"{path} has the key {key!r:.80}, a {type_name(key)}; keys must be texts"
                pending.append((value[key], path + step(key), (*above, id(value))))
        elif isinstance(value, (list, tuple)):
            for index in reversed(range(len(value))):
                pending.append((value[index], f"{path}[{index}]", (*above, id(value))))
        else:
            return f"{path} is a {type_name(value)}; return only dicts, lists, texts, numbers, booleans and None"
    return "$ changed while it was written"


def step(key):
    return f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{json.dumps(key)}]"


def type_name(value):
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def exit_status(exit):
    if exit.code is None:
        return 0
    if isinstance(exit.code, int):
        return exit.code & 0xFF
    print(exit.code, file=sys.stderr)
    return 1


def prime_linecache(source):
    """Tracebacks show the lines of the code."""
    import linecache

    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)


def tell(error):
    """Prints a traceback as Python does, and hands it over with name and value."""
    import traceback

    whole = traceback.TracebackException.from_exception(error)
    pending = [whole]
    while pending:
        one = pending.pop()
        if one is not None:
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
    results.write("exception", {"name": type_name(error), "value": results.clean(value)[:8000], "traceback": results.clean(text)[-60000:]})


def is_own(frame):
    return frame.filename.startswith((OWN, "<frozen "))


def is_of_the_loop(frame):
    return "/asyncio/" in frame.filename or "/importlib/" in frame.filename


def watch_threads():
    """An exception that ends a thread ends nothing else: it is printed as ever, and logged."""
    import threading

    usual = threading.excepthook

    def note(args):
        usual(args)
        if args.exc_type is not SystemExit:
            from runtime import log

            thread = args.thread.name if args.thread else "?"
            log.error(f"exception in thread {thread}: {args.exc_type.__name__}: {args.exc_value}")

    threading.excepthook = note
