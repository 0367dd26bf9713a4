#!/usr/bin/env bash
# Prints the folder that holds the Python packages of the tests, installed for one version of Python. See usage() below.
set -euo pipefail

# Raise the number when the list or the recipe changes, so that no machine keeps the old ones.
recipe=1
packages=(
    numpy==2.4.6 pandas==3.1.1 matplotlib==3.11.2 pillow==13.0.0 lxml==6.1.3
    # What those need.
    contourpy==1.3.3 cycler==0.12.1 fonttools==4.68.0 kiwisolver==1.5.1 packaging==26.3 pyparsing==3.3.3
    python-dateutil==4.0.0 tzdata==2026.6
)

usage() {
    cat <<USAGE
Usage: tests/python-packages.sh VERSION MACHINE

Installs packages that many skills use (${packages[*]%%==*}) for Python VERSION (such as 3.11) on
MACHINE (such as x86_64), unless that was done before, and prints their folder. Needs pip, and
installs it as root on Debian or Ubuntu. Nothing of the packages is run.

Environment:
  SKILLBOX_TEST_PACKAGES_DIR   where they are kept (default: /var/cache/skillbox-test-packages
                               for root, else ~/.cache/skillbox-test-packages)
USAGE
}

die() { # exit 69: what is needed is unavailable
    printf 'python-packages: %s\n' "$*" >&2
    exit 69
}

[ $# = 2 ] || { usage >&2; exit 64; }
version=$1 machine=$2
if [ -n "${SKILLBOX_TEST_PACKAGES_DIR:-}" ]; then
    cache=$SKILLBOX_TEST_PACKAGES_DIR
elif [ "$(id -u)" = 0 ]; then
    cache=/var/cache/skillbox-test-packages
else
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/skillbox-test-packages
fi
folder=$cache/$recipe-$version-$machine

find_pip() {
    local python
    for python in /usr/bin/python3 python3; do
        if command -v "$python" >/dev/null && "$python" -m pip --version >/dev/null 2>&1; then
            pip=("$python" -m pip)
            return
        fi
    done
    return 1
}

install_pip() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || die "pip is missing; install it (Debian: python3-pip)"
    {
        apt-get -o DPkg::Lock::Timeout=300 update || true
        DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends python3-pip
    } >"$cache/apt.log" 2>&1 || die "pip cannot be installed; see $cache/apt.log"
    find_pip || die "pip was installed and does not run"
}

umask 022
mkdir -p "$cache"
exec 9>"$cache/lock"
flock -w 600 9 || die "another run has held $cache/lock for ten minutes"
if ! [ -d "$folder" ]; then
    find_pip || install_pip
    rm -rf "$folder.new"
    # Bytecode is left out: it would name this machine's paths and times.
    "${pip[@]}" install --quiet --no-compile --no-deps --only-binary=:all: --root-user-action=ignore \
        --implementation cp --python-version "$version" \
        --platform "manylinux2014_$machine" --platform "manylinux_2_27_$machine" --platform "manylinux_2_28_$machine" \
        --target "$folder.new" "${packages[@]}" >"$cache/pip.log" 2>&1 ||
        { tail -n 5 "$cache/pip.log" >&2; die "the packages cannot be installed; see $cache/pip.log"; }
    mv "$folder.new" "$folder"
fi
echo "$folder"
