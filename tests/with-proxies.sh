#!/usr/bin/env bash
# Runs a command with nginx, Caddy and OpenSSL in its PATH. See usage() below.
set -euo pipefail

cache=${SKILLBOX_TEST_PROXIES_DIR:-/var/cache/skillbox-test-proxies}
programs=(nginx caddy openssl)

usage() {
    cat <<USAGE
Usage: tests/with-proxies.sh COMMAND [ARG...]
       tests/with-proxies.sh --help

Makes sure that nginx, Caddy and OpenSSL can be called, then runs COMMAND. Those that are missing are unpacked from the packages
of Debian or Ubuntu into a folder of their own, as root. Nothing is installed, so no service starts.

Example:
  tests/with-proxies.sh cargo test --test it proxies::

Environment:
  SKILLBOX_TEST_PROXIES_DIR   where they are unpacked (default /var/cache/skillbox-test-proxies)
USAGE
}

die() { # exit 69: what the command needs is unavailable
    echo "with-proxies: $*" >&2
    exit 69
}

missing() { # prints the programs that are missing; each package has the name of its program
    local program
    for program in "${programs[@]}"; do
        command -v "$program" >/dev/null || echo "$program"
    done
}

unpack() { # PACKAGE...
    local package
    cd "$cache"
    rm -f ./*.deb
    # The lists of packages may be absent or older than the mirror.
    if ! apt-get -o APT::Sandbox::User=root download "$@" >apt.log 2>&1; then
        { apt-get -o DPkg::Lock::Timeout=300 update && apt-get -o APT::Sandbox::User=root download "$@"; } >apt.log 2>&1 ||
            { tail -n 20 apt.log >&2; die "cannot download $*"; }
    fi
    for package in ./*.deb; do dpkg-deb --extract "$package" .; done
    rm -f ./*.deb
}

case ${1:-} in
    '') usage >&2; exit 64 ;;
    -h | --help) usage; exit ;;
    --) shift ;;
    -*) usage >&2; exit 64 ;;
esac

# Debian has nginx in a folder that is not in the PATH of ordinary users.
PATH=$PATH:/usr/sbin:$cache/usr/sbin:$cache/usr/bin
export PATH
if [ -n "$(missing)" ]; then
    { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; } || die "install $(missing | paste -sd ' ')"
    mkdir -p "$cache"
    exec {lock}>"$cache/lock"
    flock -w 300 "$lock" || die "another run has held $cache/lock for five minutes"
    mapfile -t absent < <(missing)
    if [ ${#absent[@]} -gt 0 ]; then (unpack "${absent[@]}") </dev/null; fi
    exec {lock}>&-
    [ -z "$(missing)" ] || die "the packages lack $(missing | paste -sd ' ')"
fi
exec "$@"
