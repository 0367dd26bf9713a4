#!/usr/bin/env bash
# Checks the dashboard's JavaScript. See usage() below.
set -euo pipefail
cd "$(dirname "$0")/../web"

usage() {
    cat <<USAGE
Usage: tests/web-checks.sh

Makes the bundles of web/vendor again from web/package-lock.json and compares them with the committed ones, checks the types of web/dashboard
(TypeScript, strict, from JSDoc), lints it (Biome), tests its pure modules, and compares its size with brotli with its budget. Needs npm and Python, and Linux for Biome.
Building Skillbox needs none of this.
USAGE
}

[ $# = 0 ] || { usage >&2; exit 64; }

# tests/with-browser.sh installs into the same folder.
exec {lock}>"${TMPDIR:-/tmp}/skillbox-web.lock"
flock -w 600 "$lock" || { echo "web-checks: another run has installed for ten minutes" >&2; exit 69; }

vendor/revendor.sh --check
node_modules/.bin/tsc --project .
case $(uname -m) in
    x86_64) cpu=x64 ;;
    *) cpu=arm64 ;;
esac
"node_modules/@biomejs/cli-linux-$cpu/biome" ci --colors=off --error-on-warnings .
node --import ./tests/resolve.mjs --test --test-reporter dot tests/
node served.mjs
