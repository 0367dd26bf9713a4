#!/usr/bin/env bash
# Makes the files of the image for native sandboxes. See usage() below.
set -euo pipefail

usage() {
    cat <<USAGE
Usage: packaging/image-root.sh FILE

Writes FILE, a tar of Debian packages with Python, Node.js, bash and certificates, for packaging/images.sh. Needs root,
mmdebstrap and debian-archive-keyring, but no registry. MIRROR is the address of a Debian mirror.
USAGE
}

if [ $# != 1 ]; then
    usage >&2
    exit 64
fi
file=$1 suite=bookworm mirror=${MIRROR:-http://deb.debian.org/debian}
if [ "$(id -u)" != 0 ]; then
    echo "image-root: run this as root" >&2
    exit 1
fi
for program in mmdebstrap tar; do
    command -v "$program" >/dev/null || {
        echo "image-root: $program is missing: apt-get install mmdebstrap debian-archive-keyring" >&2
        exit 1
    }
done
keys=/usr/share/keyrings/debian-archive-keyring.gpg
umask 022
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
mmdebstrap --mode=root --variant=essential --quiet --keyring="$keys" --dpkgopt=force-unsafe-io --format=directory \
    --include=python3,nodejs,libstdc++6,ca-certificates "$suite" "$work/root" "deb [signed-by=$keys] $mirror $suite main"
# Most of the packages' size besides the programs. Licenses stay.
rm -rf "$work/root/usr/share/"{info,locale,man} "$work/root/var/lib/apt/lists" "$work/root/var/cache/apt"
tar -C "$work/root" --one-file-system --sort=name --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' \
    --exclude='./tmp/*' --exclude=./etc/resolv.conf --exclude=./etc/hostname -cf "$file.new" .
mv "$file.new" "$file"
