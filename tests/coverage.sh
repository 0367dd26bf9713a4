#!/usr/bin/env bash
# Prints line coverage of the core rooms, and fails below the bar. Run it as: tests/with-engine.sh tests/coverage.sh
set -euo pipefail
cd "$(dirname "$0")/.."

bar=80
# The major version of LLVM that this compiler was built with reads its own profiles; Debian has it as a package.
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
profdata=$(command -v "llvm-profdata-$llvm" || true)
cov=$(command -v "llvm-cov-$llvm" || true)
if [[ -z $profdata || -z $cov ]]; then
    echo "coverage: installing llvm-$llvm" >&2
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "llvm-$llvm" >&2
    profdata=llvm-profdata-$llvm cov=llvm-cov-$llvm
fi

out=$PWD/target/coverage
rm -rf "$out/profiles" && mkdir -p "$out/profiles"
# RUSTFLAGS replaces what .cargo/config.toml says, so how programs are linked is said again.
export RUSTFLAGS="-C target-feature=+crt-static -C link-arg=-Wl,-z,max-page-size=2097152 -C instrument-coverage"
export CARGO_TARGET_DIR=$out LLVM_PROFILE_FILE=$out/profiles/%p-%m.profraw CARGO_INCREMENTAL=0

cargo test --locked --no-run --message-format=json --tests |
    python3 -c 'import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable"): print(message["executable"])' >"$out/binaries"
cargo test --locked --tests >&2

"$profdata" merge -sparse "$out"/profiles/*.profraw -o "$out/all.profdata"
objects=()
while read -r binary; do objects+=(--object "$binary"); done <"$out/binaries"
rooms='skill|bundle|execution|auth|store|blob|sandbox|engine'
"$cov" export --summary-only --instr-profile "$out/all.profdata" "${objects[@]}" |
    python3 -c '
import json, os, re, sys
rooms, bar = sys.argv[1], float(sys.argv[2])
total, covered = {}, {}
for file in json.load(sys.stdin)["data"][0]["files"]:
    match = re.match(os.getcwd() + r"/src/(" + rooms + r")\b", file["filename"])
    if match:
        lines = file["summary"]["lines"]
        for name in (match[1], "all core rooms"):
            total[name] = total.get(name, 0) + lines["count"]
            covered[name] = covered.get(name, 0) + lines["covered"]
for name in sorted(total):
    print(f"{name:16} {covered[name]:6} of {total[name]:6} lines  {100 * covered[name] / total[name]:5.1f} %")
sys.exit(100 * covered["all core rooms"] / total["all core rooms"] < bar)
' "$rooms" "$bar"
