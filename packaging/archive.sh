#!/usr/bin/env bash
# Packs one built binary for a release. See usage() below.
set -euo pipefail

usage() {
    cat <<USAGE
Usage: packaging/archive.sh PLATFORM BINARY FOLDER [RUNNER...]

Writes FOLDER/skillbox-VERSION-PLATFORM.tar.gz with the binary, completions, man pages, license and README. The same input
gives the same bytes. The binary writes its own completions and man pages; RUNNER is the emulator for a foreign processor.

Example:
  packaging/archive.sh aarch64-linux target/aarch64-unknown-linux-gnu/dist/skillbox out qemu-aarch64-static
USAGE
}

if [ $# -lt 3 ]; then
    usage >&2
    exit 64
fi
platform=$1 binary=$2 folder=$3
shift 3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

version=$("$@" "$binary" version)
version=${version#skillbox }
name=skillbox-$version-$platform
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
mkdir -p "$work/$name/completions" "$work/$name/man" "$folder"
install -m 755 "$binary" "$work/$name/skillbox"
install -m 644 "$here/LICENSE" "$here/README.md" "$work/$name/"
"$@" "$binary" completions bash >"$work/$name/completions/skillbox.bash"
"$@" "$binary" completions zsh >"$work/$name/completions/_skillbox"
"$@" "$binary" completions fish >"$work/$name/completions/skillbox.fish"
"$@" "$binary" man-pages "$work/$name/man" >/dev/null

# Without the builder's times, owners and order.
pack=(tar -cf "$work/archive.tar")
if tar --version 2>/dev/null | grep -q GNU; then
    pack+=(--sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}")
fi
"${pack[@]}" -C "$work" "$name"
gzip -9n <"$work/archive.tar" >"$folder/$name.tar.gz.new"
mv "$folder/$name.tar.gz.new" "$folder/$name.tar.gz"
echo "$folder/$name.tar.gz"
