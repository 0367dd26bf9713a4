#!/usr/bin/env bash
# Runs a command with Chromium and axe-core for the tests of the dashboard. See usage() below.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

usage() {
    cat <<USAGE
Usage: tests/with-browser.sh COMMAND [ARG...]
       tests/with-browser.sh --help

Makes sure that chromium and chromedriver can be called and that axe-core is in web/node_modules, then runs COMMAND. What is missing is
installed: the browser from the packages of Debian, as root, and axe-core with npm by web/package-lock.json.

Example:
  tests/with-browser.sh cargo test --test it dashboard::
USAGE
}

die() { # exit 69: what the command needs is unavailable
    echo "with-browser: $*" >&2
    exit 69
}

has_browser() { command -v chromium >/dev/null && command -v chromedriver >/dev/null; }
axe=$root/web/node_modules/axe-core/axe.min.js

case ${1:-} in
    '') usage >&2; exit 64 ;;
    -h | --help) usage; exit ;;
    --) shift ;;
    -*) usage >&2; exit 64 ;;
esac

# Two runs at once would install into each other's files.
exec {lock}>"${TMPDIR:-/tmp}/skillbox-web.lock"
flock -w 600 "$lock" || die "another run has installed for ten minutes"
if ! has_browser; then
    { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; } || die "install chromium and chromedriver"
    packages=(chromium chromium-driver fonts-dejavu-core)
    install() { apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends "${packages[@]}"; }
    # The lists of packages may be absent or older than the mirror.
    log=$(install 2>&1 </dev/null) || { apt-get -q update >/dev/null && log=$(install 2>&1 </dev/null); } ||
        { tail -n 20 <<<"$log" >&2; die "cannot install ${packages[*]}"; }
    has_browser || die "the packages lack chromium or chromedriver"
fi
if [ ! -f "$axe" ]; then
    command -v npm >/dev/null || die "install npm, which fetches axe-core"
    log=$(npm ci --prefix "$root/web" --ignore-scripts --no-audit --no-fund 2>&1 </dev/null) ||
        { tail -n 20 <<<"$log" >&2; die "cannot fetch axe-core"; }
fi
exec {lock}>&-
exec "$@"
