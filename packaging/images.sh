#!/usr/bin/env bash
# Makes the container images of a release from a built binary. See usage() below.
set -euo pipefail

usage() {
    cat <<USAGE
Usage: packaging/images.sh FOLDER ROOT [NAME]

Makes two images, on the engine of DOCKER_HOST or the local one, from the one archive for Linux in FOLDER:
  NAME         only the static binary, for sandboxes of a Docker engine whose socket is mounted
  NAME-native  the binary on ROOT, a tar made by packaging/image-root.sh, for native sandboxes
and saves both as FOLDER/skillbox-VERSION-PLATFORM-images.tar.gz for \`docker load\`. NAME is skillbox:VERSION unless given.
USAGE
}

if [ $# != 2 ] && [ $# != 3 ]; then
    usage >&2
    exit 64
fi
folder=$1 root=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
shopt -s nullglob
archives=("$folder"/skillbox-*-linux.tar.gz)
if [ ${#archives[@]} != 1 ]; then
    echo "images: $folder has ${#archives[@]} archives for Linux; pack one with packaging/build.sh" >&2
    exit 1
fi
release=$(basename "${archives[0]}" .tar.gz)
version=${release#skillbox-}
name=${3:-skillbox:${version%-*-linux}}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

tar -xzf "${archives[0]}" -C "$work"
binary=$work/$release/skillbox
if readelf --program-headers "$binary" | grep -q INTERP; then
    echo "images: the binary of $release is not linked statically" >&2
    exit 1
fi

# By `docker import`, which neither needs a builder nor asks a registry.
changes() { # BACKEND PATH
    printf '%s\n' "ENV SKILLBOX_SANDBOX_BACKEND=$1" 'ENV SKILLBOX_DATA_DIR=/var/lib/skillbox/data' 'ENV SKILLBOX_API_HOST=0.0.0.0' \
        'ENV LANG=C.UTF-8' 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' 'VOLUME /var/lib/skillbox' \
        'EXPOSE 8080 9090' "ENTRYPOINT [\"$2\"]" 'CMD ["serve"]'
}
import() { # FILE IMAGE BACKEND PATH
    local options=() change
    while IFS= read -r change; do options+=(--change "$change"); done < <(changes "$3" "$4")
    docker import "${options[@]}" "$1" "$2" >/dev/null
    echo "$2"
}
pack=(tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}")

small=$work/small
mkdir -p "$small/usr/local/bin" "$small/var/lib/skillbox" "$small/usr/share/doc/skillbox"
mkdir -m 1777 "$small/tmp"
install -m 755 "$binary" "$small/usr/local/bin/skillbox"
install -m 644 "$here/LICENSE" "$small/usr/share/doc/skillbox/"
"${pack[@]}" -cf "$work/small.tar" -C "$small" .
import "$work/small.tar" "$name" docker /usr/local/bin/skillbox

cp "$root" "$work/native.tar"
"${pack[@]}" -rf "$work/native.tar" -C "$small" ./usr/local/bin/skillbox ./var/lib/skillbox ./usr/share/doc/skillbox
import "$work/native.tar" "$name-native" native /usr/local/bin/skillbox

docker save "$name" "$name-native" | gzip -n >"$folder/$release-images.tar.gz.new"
mv "$folder/$release-images.tar.gz.new" "$folder/$release-images.tar.gz"
echo "$folder/$release-images.tar.gz"
