"""Mounted skills as modules: `skills.salesforce.leads.sync` is `code/sync.py` of the skill `salesforce.leads`.

A dot of a skill's name is a package, a hyphen an underscore. Beside `code/`, `scripts/` and the skill's own folder are
looked at, in this order.
"""
import os as _os
import sys as _sys
from importlib.machinery import ModuleSpec as _Spec
from importlib.util import spec_from_file_location as _from_file

_ROOT = "/skills"


def _mounted():
    """Every mounted skill by its import path."""
    try:
        names = sorted(_os.listdir(_ROOT))
    except OSError:
        names = []
    return {name.replace("-", "_"): _os.path.join(_ROOT, name) for name in names}


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith("skills."):
            return None
        wanted = name[len("skills."):]
        mounted = _mounted()
        # The longest name of a skill that the wanted one begins with; what remains is a module of it.
        parts = wanted.split(".")
        for count in range(len(parts), 0, -1):
            folder = mounted.get(".".join(parts[:count]))
            if folder is not None:
                found = _in_skill(name, folder, parts[count:])
                if found is not None:
                    return found
        # Part of a dotted name: a package of packages.
        if any(known == wanted or known.startswith(wanted + ".") for known in mounted):
            spec = _Spec(name, None, is_package=True)
            spec.submodule_search_locations = []
            return spec
        return None


def _in_skill(name, folder, parts):
    for inner in ("code", "scripts", ""):
        beside = _os.path.join(folder, inner)
        # Modules that import their neighbours by bare names find them, after everything else.
        if inner and beside not in _sys.path and _os.path.isdir(beside):
            _sys.path.append(beside)
        base = _os.path.join(folder, inner, *parts) if parts else _os.path.join(folder, inner)
        if parts and _os.path.isfile(base + ".py"):
            return _from_file(name, base + ".py")
        init = _os.path.join(base, "__init__.py")
        if _os.path.isfile(init):
            return _from_file(name, init, submodule_search_locations=[base])
        if parts and _os.path.isdir(base):
            spec = _Spec(name, None, is_package=True)
            spec.submodule_search_locations = [base]
            return spec
    if not parts:
        spec = _Spec(name, None, is_package=True)
        spec.submodule_search_locations = []
        return spec
    return None


__path__ = []
_sys.meta_path.append(_Finder)
