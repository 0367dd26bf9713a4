#!/usr/bin/env bash
# Usage: packaging/checksums.sh FOLDER
# Writes FOLDER/SHA256SUMS with the checksums of all other files in it, as get.sh and `sha256sum --check` read them.
set -euo pipefail
cd "${1:?folder of the release files}"
rm -f SHA256SUMS
sums=$(LC_ALL=C sha256sum -- *)
printf '%s\n' "$sums" >SHA256SUMS
