"""What is called, and where its value goes. Whatever may not be needed is imported late: it would cost every call."""
import _ast
import builtins
import os
import sys
import types

from _skillbox import results

NAME = "<code>"
OUTPUT = "/sandbox/out/output.json"
LIKE_A_CELL = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
CO_COROUTINE = 0x80
CO_VARARGS = 0x04
CO_VARKEYWORDS = 0x08


def main(words):
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    sys.stderr.reconfigure(errors="backslashreplace")
    # Whatever the code does to files, its results go where they go.
    results.open_file()
    kind, words = words[0], words[1:]
    try:
        if kind == "code":
            run_code(words)
        else:
            call_function(*words[:2])
        status = 0
    except SystemExit as exit:
        status = exit_status(exit)
    except BaseException as error:
        from _skillbox import failures

        failures.tell(error)
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
    watch_imports(source)
    tree = compile(source, NAME, "exec", _ast.PyCF_ONLY_AST | LIKE_A_CELL)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], _ast.Expr) else None
    loop = Loop()
    try:
        loop.run(compile(tree, NAME, "exec", LIKE_A_CELL), module.__dict__)
        value = None
        if last is not None:
            code = compile(_ast.Expression(last.value), NAME, "eval", LIKE_A_CELL)
            value = loop.finish(loop.run(code, module.__dict__))
        function = module.__dict__.get("main")
        is_called = callable(function) and not calls_main(tree, last)
        if is_called:
            value = loop.finish(call(function))
    finally:
        loop.close()
    # To be looked at, even if it can be no output.
    if value is not None:
        results.display_main(value)
    if is_called:
        write_output(value)
    elif value is not None and not os.path.lexists(OUTPUT):
        write_output_if_any(value)


def call_function(module, export):
    import importlib
    import importlib.util

    watch_imports("")
    # As for a script: its neighbours are found without the whole path.
    spec = importlib.util.find_spec(module)
    if spec is not None and spec.origin:
        sys.path[0] = os.path.dirname(spec.origin)
    function = getattr(importlib.import_module(module), export, None)
    if not callable(function):
        raise AttributeError(f"module {module!r} has no function {export!r}")
    loop = Loop()
    try:
        value = loop.finish(call(function))
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

            self.runner = getattr(asyncio, "Runner", Runner)()
        if isinstance(value, types.CoroutineType):
            return self.runner.run(value)

        async def wait():
            return await value

        return self.runner.run(wait())

    def close(self):
        if self.runner is not None:
            self.runner.close()


class Runner:
    """What `asyncio` has only since Python 3.11."""

    def __init__(self):
        import asyncio

        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)

    def run(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def close(self):
        import asyncio

        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self.run(asyncio.wait(tasks))
        self.run(self.loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        self.loop.close()


def call(function):
    """Calls it with the input: as one value, or with its members by name where it takes several."""
    code = getattr(function, "__code__", None)
    named = 0 if code is None else code.co_kwonlyargcount or code.co_flags & CO_VARKEYWORDS
    variable = code is not None and code.co_flags & CO_VARARGS
    if code is not None and not (code.co_argcount or named or variable):
        return function()
    import json

    with open("/sandbox/input.json", encoding="utf-8") as file:
        given = json.load(file)
    if code is None or variable or code.co_argcount == 1:
        return function(given)
    import inspect

    signature = inspect.signature(function)
    parameters = signature.parameters.values()
    whole = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    needed = [each for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    if len(whole) == 1:
        return function(given)
    why = "it is no object"
    if isinstance(given, dict):
        try:
            signature.bind(**given)
        except TypeError as error:
            why = error
        else:
            return function(**given)
    # `main(args, verbose=False)`, and nothing that means its parameters.
    means_them = isinstance(given, dict) and not signature.parameters.keys().isdisjoint(given)
    if whole and not means_them and needed in ([], whole[:1]):
        return function(given)
    raise TypeError(f"main{signature} takes the members of the input, which do not fit: {why}")


def calls_main(tree, last):
    """Whether the code calls `main` by itself, as under `if __name__ == "__main__":`, or in a function that it calls."""
    definitions = (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef)
    defined, called = {}, set()
    pending = [*tree.body, *([last] if last else [])]
    while pending:
        node = pending.pop()
        if isinstance(node, definitions) and node.name not in called:
            # Looked into once it is called.
            defined.setdefault(node.name, []).append(node)
            continue
        if isinstance(node, _ast.Lambda):
            continue
        if isinstance(node, _ast.Call):
            if isinstance(node.func, _ast.Name) and node.func.id == "main":
                return True
            # Methods by their names; and what is handed on is called, too, as by a thread.
            for each in [node.func, *node.args, *(keyword.value for keyword in node.keywords)]:
                name = getattr(each, "id", None) or getattr(each, "attr", None)
                if name is not None and name != "main":
                    called.add(name)
                    pending.extend(defined.pop(name, []))
        for field in node._fields:
            child = getattr(node, field, None)
            children = child if isinstance(child, list) else [child]
            pending.extend(each for each in children if isinstance(each, _ast.AST))
    return False


def write_output(value):
    """Writes the value of a call, in place of what the program may have written itself unless there is none."""
    if value is None and os.path.lexists(OUTPUT):
        return
    try:
        text = results.json_of(value).encode()
    except (TypeError, ValueError, RecursionError):
        from _skillbox import failures

        raise failures.NotJson(failures.why_not_json(value)) from None
    with open(OUTPUT, "wb") as file:
        file.write(text)


def write_output_if_any(value):
    """A value that is only to be looked at is no output."""
    try:
        text = results.json_of(value).encode()
    except (TypeError, ValueError, RecursionError):
        return
    with open(OUTPUT, "wb") as file:
        file.write(text)


def exit_status(exit):
    if exit.code is None:
        return 0
    if isinstance(exit.code, int):
        return exit.code & 0xFF
    print(exit.code, file=sys.stderr)
    return 1


def watch_imports(source):
    """Makes ready, without importing anything, what code finds when it imports these."""
    os.environ["MPLBACKEND"] = "module://_skillbox.figures"

    def prime(linecache):
        """Tracebacks show the lines of the code."""
        linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)

    sys.meta_path.insert(0, Watch({"threading": watch_threads, "linecache": prime}))
    sys.meta_path.append(StandIn)
    for name, then in (("threading", watch_threads), ("linecache", prime)):
        if name in sys.modules:
            then(sys.modules[name])


class Watch:
    """Does something to modules once they are imported."""

    def __init__(self, wanted):
        self.wanted = wanted

    def find_spec(self, name, path=None, target=None):
        then = self.wanted.pop(name, None)
        if then is None:
            return None
        spec = sys.modules["_frozen_importlib"]._find_spec(name, path)
        execute = spec.loader.exec_module

        def execute_and_then(module):
            execute(module)
            then(module)

        try:
            spec.loader.exec_module = execute_and_then
        except (AttributeError, TypeError):
            # A frozen module has a loader of all such modules.
            pass
        return spec


def watch_threads(threading):
    """An exception that ends a thread ends nothing else: it is printed as ever, and logged."""
    usual = threading.excepthook

    def note(args):
        usual(args)
        if args.exc_type is not SystemExit:
            from runtime import log

            thread = args.thread.name if args.thread else "?"
            log.error(f"exception in thread {thread}: {args.exc_type.__name__}: {args.exc_value}")

    threading.excepthook = note


class StandIn:
    """After all others: only where IPython is not installed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in ("IPython", "IPython.display", "IPython.core", "IPython.core.display"):
            return None
        from importlib.util import spec_from_file_location

        here = os.path.join(os.path.dirname(__file__), "ipython.py")
        return spec_from_file_location(name, here, submodule_search_locations=[])
