#!/usr/bin/env bash
# Builds the static binary of a release and packs it. See usage() below.
set -euo pipefail

usage() {
    cat <<USAGE
Usage: packaging/build.sh TARGET FOLDER

Builds TARGET with the profile \`dist\` and writes its archive into FOLDER. TARGET is x86_64-unknown-linux-gnu or
aarch64-unknown-linux-gnu; a foreign one needs its cross compiler and qemu-user-static. An apple-darwin target builds on a Mac
only; its binary is not tested.
USAGE
}

if [ $# != 2 ]; then
    usage >&2
    exit 64
fi
target=$1 folder=$(mkdir -p "$2" && cd "$2" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
    echo "build: this Rust has no standard library for $target: rustup target add $target" >&2
    exit 1
fi
runner=()
if [ "${target%%-*}" != "$(uname -m | sed s/arm64/aarch64/)" ]; then
    prefix=${target/-unknown/}
    command -v "$prefix-gcc" >/dev/null || {
        echo "build: $prefix-gcc is missing: install the cross compiler for ${target%%-*}" >&2
        exit 1
    }
    variable=${target//-/_}
    export "CC_$variable=$prefix-gcc" "AR_$variable=$prefix-ar" "CARGO_TARGET_${variable^^}_LINKER=$prefix-gcc"
    runner=("qemu-${target%%-*}-static")
fi

cargo build --locked --profile dist --bin skillbox --target "$target"
built=$(cargo metadata --locked --format-version 1 --no-deps |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/$target/dist/skillbox
case $target in
    *-linux-*)
        # Not by `ldd`, which cannot read binaries for another processor.
        if readelf --program-headers "$built" | grep -q INTERP; then
            echo "build: $built is not linked statically" >&2
            exit 1
        fi
        platform=${target%%-*}-linux
        ;;
    *) platform=${target%%-*}-macos ;;
esac
packaging/archive.sh "$platform" "$built" "$folder" ${runner[@]+"${runner[@]}"}
