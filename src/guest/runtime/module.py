"""Runs a module as `python -m` does, found where its skill's scripts stand, whatever the working directory."""
import runpy
import sys


def main(script, folder, package, module, *words):
    sys.path[0] = folder
    sys.argv = [script, *words]
    if package:
        load(package, folder)
        module = f"{package}.{module}"
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def load(package, folder):
    """Makes the folder itself a package, whatever its name."""
    import os
    from importlib import machinery, util

    path = os.path.join(folder, "__init__.py")
    if os.path.exists(path):
        spec = util.spec_from_file_location(package, path, submodule_search_locations=[folder])
    else:
        spec = machinery.ModuleSpec(package, None, is_package=True)
        spec.submodule_search_locations = [folder]
    made = util.module_from_spec(spec)
    sys.modules[package] = made
    if spec.loader is not None:
        spec.loader.exec_module(made)


if __name__ == "__main__":
    main(*sys.argv[1:])
