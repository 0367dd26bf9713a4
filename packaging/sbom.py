#!/usr/bin/env python3
"""Prints the bill of materials of one platform's binary, in CycloneDX 1.5.

Usage: packaging/sbom.py TARGET
"""

import json
import pathlib
import subprocess
import sys


def metadata(target):
    manifest = pathlib.Path(__file__).resolve().parents[1] / "Cargo.toml"
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    command += ["--manifest-path", str(manifest)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=300).stdout)


def linked(nodes, root):
    """Ids of packages that are part of the binary or of its build: not those of tests alone."""
    found, todo = set(), [root]
    while todo:
        current = todo.pop()
        if current in found:
            continue
        found.add(current)
        for dependency in nodes[current]["deps"]:
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    return found


def component(package):
    entry = {
        "type": "library",
        "bom-ref": package["id"],
        "name": package["name"],
        "version": package["version"],
        "purl": f"pkg:cargo/{package['name']}@{package['version']}",
    }
    if package.get("license"):
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return entry


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    data = metadata(sys.argv[1])
    root = data["resolve"]["root"]
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    kept = linked(nodes, root)
    packages = {package["id"]: package for package in data["packages"] if package["id"] in kept}
    own = component(packages.pop(root)) | {"type": "application"}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": [component(packages[key]) for key in sorted(packages)],
        "dependencies": [
            {"ref": key, "dependsOn": sorted(set(nodes[key]["dependencies"]) & kept)} for key in sorted(kept)
        ],
    }
    json.dump(document, sys.stdout, indent=1)
    print()


main()
