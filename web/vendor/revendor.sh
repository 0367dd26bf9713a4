#!/bin/sh
# Usage: web/vendor/revendor.sh [--check]
# Makes the bundles of web/vendor from web/package-lock.json. With --check it fails if they differ from what is committed.
set -eu
cd "$(dirname "$0")/.."
npm ci --ignore-scripts --no-audit --no-fund --silent
node vendor/revendor.mjs
if [ "${1:-}" = --check ]; then
    changed=$(git status --porcelain -- vendor)
    [ -z "$changed" ] || { printf 'revendor: these differ from the locked packages:\n%s\n' "$changed" >&2; exit 1; }
fi
