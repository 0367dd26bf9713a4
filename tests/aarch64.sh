#!/usr/bin/env bash
# Tests the release for 64-bit ARM processors under emulation. See usage() below.
set -euo pipefail

usage() {
    cat <<USAGE
Usage: tests/aarch64.sh [ARCHIVE]

Builds the release for aarch64 Linux with packaging/build.sh, unless ARCHIVE names one, and tests its binary under QEMU's
emulation of programs: what it prints, its server with a skill and a blob, and what \`doctor\` finds. That emulation knows
no namespaces; sandboxes then run on an emulated machine (tests/vm/aarch64.sh). Takes 15 minutes on two cores. Needs root on Debian,
and installs the cross compiler, QEMU and mmdebstrap where they are missing, and with rustup the Rust target.
USAGE
}

case $#${1:-} in
    0) archive='' ;;
    1-h | 1--help) usage; exit ;;
    1-*) usage >&2; exit 64 ;;
    1*) archive=$(realpath "$1") ;;
    *) usage >&2; exit 64 ;;
esac
cd "$(dirname "$0")/.."
repository=$PWD target=aarch64-unknown-linux-gnu
folder=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

fail() {
    echo "aarch64: $*" >&2
    exit 1
}

expect() { # TEXT: standard input has it
    local text
    text=$(cat)
    grep -qF -- "$1" <<<"$text" || fail "expected \`$1\` in:"$'\n'"$text"
}

missing=()
command -v qemu-aarch64-static >/dev/null || missing+=(qemu-user-static)
command -v aarch64-linux-gnu-gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
if [ ${#missing[@]} -gt 0 ]; then
    { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; } || fail "install ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update && apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}"; } >"$folder/apt.log" 2>&1 ||
        { tail -n 20 "$folder/apt.log" >&2; fail "cannot install ${missing[*]}"; }
fi
if [ -z "$archive" ]; then
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ] || rustup target add "$target" >&2
    packaging/build.sh "$target" "$folder/out" >&2
    archive=$(echo "$folder"/out/*.tar.gz)
fi

tar -xzf "$archive" -C "$folder"
packed=$(echo "$folder"/skillbox-*-aarch64-linux)
binary=$packed/skillbox
cmp "$packed/LICENSE" LICENSE
cmp "$packed/README.md" README.md
for file in completions/skillbox.bash completions/_skillbox completions/skillbox.fish man/skillbox.1 man/skillbox-run.1; do
    [ -s "$packed/$file" ] || fail "the archive lacks $file"
done
readelf --file-header "$binary" | expect AArch64
if readelf --program-headers "$binary" | grep -q INTERP; then fail "the binary is not linked statically"; fi

emulated() { timeout 120 qemu-aarch64-static "$binary" "$@"; }
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
export SKILLBOX_DATA_DIR=$folder/data
emulated --version | expect "skillbox $version"
emulated run --help | expect "Usage: skillbox run"
emulated config | expect "SKILLBOX_DATA_DIR"
emulated skill lint examples/skills/text-summary 2>&1 | expect "no problems found"
# It finds no sandbox, and exits with 1 for that.
emulated doctor >"$folder/doctor" 2>&1 || [ $? = 1 ] || fail "doctor: $(cat "$folder/doctor")"
for finding in '✓ configuration' '✓ data folder' '✓ database' '✓ files'; do
    expect "$finding" <"$folder/doctor"
done

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
SKILLBOX_API_PORT=$port timeout 300 qemu-aarch64-static "$binary" serve >"$folder/server.log" 2>&1 &
server=$!
export SKILLBOX_SERVER_URL=http://127.0.0.1:$port
curl -sf --retry 60 --retry-delay 1 --retry-all-errors --max-time 60 "$SKILLBOX_SERVER_URL/healthz" >/dev/null ||
    fail "the server does not answer: $(cat "$folder/server.log")"
SKILLBOX_API_KEY=$(cat "$folder/data/admin.key")
export SKILLBOX_API_KEY
emulated skill push "$repository/examples/skills/text-summary" >/dev/null
emulated skill list | expect text-summary
digest=$(emulated blob put README.md)
emulated blob get "$digest" --out "$folder/blob"
cmp "$folder/blob" README.md
kill "$server"
wait "$server" || true
server=
expect Ended <"$folder/server.log"
echo "$(basename "$archive"): $(stat --format %s "$archive") bytes; the binary has $(stat --format %s "$binary")"
tests/vm/aarch64.sh "$binary"
