#!/usr/bin/env bash
# Makes the image with LibreOffice that tests/it/office.rs runs, from Debian packages. Needs root, mmdebstrap and DOCKER_HOST or a local engine:
#   tests/with-engine.sh tests/office-image.sh
set -euo pipefail

image=skillbox-test/office:1
host=${SKILLBOX_DOCKER_HOST:-${DOCKER_HOST:-}}
docker=(docker ${host:+-H "$host"})
"${docker[@]}" image inspect "$image" >/dev/null 2>&1 && exit
mmdebstrap --variant=minbase --include=python3,libreoffice-writer-nogui,fonts-dejavu-core bookworm - |
    "${docker[@]}" import --change 'CMD ["bash"]' - "$image"
