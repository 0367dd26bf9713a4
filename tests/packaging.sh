#!/usr/bin/env bash
# Usage: tests/packaging.sh
# Checks the bill of materials of a release against Cargo.lock, what the build says of a target that is not installed, and the
# package for crates.io, which needs a work tree without changes. It is not compiled here; `cargo publish --dry-run` does that, too.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$here/packaging/sbom.py" x86_64-unknown-linux-gnu >sbom.json
python3 - "$here/Cargo.lock" <<'PYTHON'
import json, sys, tomllib
lock = {(entry["name"], entry["version"]) for entry in tomllib.load(open(sys.argv[1], "rb"))["package"]}
bill = json.load(open("sbom.json"))
parts = {(part["name"], part["version"]) for part in bill["components"]}
own = bill["metadata"]["component"]["name"]
assert parts <= lock, f"not in Cargo.lock: {parts - lock}"
names = {name for name, _ in parts}
assert {"tokio", "rusqlite", "libsqlite3-sys", "ring"} <= names, "a linked package is missing"
assert not {"insta", "proptest", "rcgen"} & names, "packages of tests are listed"
assert own == "skillbox" and own not in names
references = {part["bom-ref"] for part in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
assert references == {entry["ref"] for entry in bill["dependencies"]}
print(f"{len(parts)} packages in the bill of materials, {len(lock)} in Cargo.lock")
PYTHON

code=0
"$here/packaging/build.sh" riscv64gc-unknown-linux-gnu out 2>message || code=$?
if [ "$code" != 1 ] || ! grep -q 'rustup target add riscv64gc-unknown-linux-gnu' message; then
    cat message >&2
    echo "packaging: the build of an absent target ended with $code" >&2
    exit 1
fi
echo "the build names the target that is not installed"

(cd "$here" && cargo publish --dry-run --locked --no-verify 2>"$work/publish" && cargo package --list --locked >"$work/files") || {
    cat "$work/publish" >&2
    echo "packaging: cargo would not publish the package" >&2
    exit 1
}
# Cargo warns of what crates.io shows and the manifest lacks.
if grep -v 'aborting upload due to dry run' publish | grep warning >&2; then
    echo "packaging: cargo publish warns" >&2
    exit 1
fi
for file in Cargo.lock LICENSE README.md migrations/sqlite/V1__first.sql src/main.rs web/vendor/preact.js web/dashboard/index.html \
    web/sdk/go/skillbox.go web/sdk/python/skillbox/__init__.py web/sdk/typescript/skillbox.js; do
    grep -qxF "$file" files || { echo "packaging: the package lacks $file" >&2; exit 1; }
done
if grep -E '^(\.ci|\.github|packaging|target|web/node_modules)/' files >&2; then
    echo "packaging: these files do not belong in the package" >&2
    exit 1
fi
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$here/Cargo.toml" | head -n 1)
target=$(cd "$here" && cargo metadata --locked --format-version 1 --no-deps |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
# Where a dry run leaves it below that differs between versions of Cargo.
size=$(find "$target/package" -name "skillbox-$version.crate" -printf "%s\n" | head -1)
if [ "$size" -gt $((5 * 1024 * 1024)) ]; then
    echo "packaging: the package has $size bytes; crates.io takes 10 MiB, and ours has 5 MiB at most" >&2
    exit 1
fi
echo "the package for crates.io has $(wc -l <files) files and $((size / 1024)) KiB"
