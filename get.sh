#!/bin/sh
# Downloads a released Skillbox, verifies its checksum and installs it. See usage() below.
set -eu

usage() {
    cat <<USAGE
Usage: sh get.sh [OPTION...]

Downloads a released binary for this machine, verifies its SHA-256 checksum and installs it. Run it again to upgrade.
If the folder is named bin, completions and man pages go to share beside it.

Options:
  --version VERSION  install this version, as 1.2.3 (default: the latest)
  --dir DIR          install the binary into DIR (default: /usr/local/bin as root, else ~/.local/bin)
  --help             print this help

Environment:
  SKILLBOX_RELEASES_URL  where the releases are, for a mirror (default: $default_releases)

Examples:
  sh get.sh
  sh get.sh --version 0.1.0 --dir ~/bin
USAGE
}

default_releases=https://github.com/skillbox-rs/skillbox/releases

say() { printf 'get: %s\n' "$*"; }

die() {
    printf 'get: %s\n' "$*" >&2
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

platform() {
    system=$(uname -s) machine=$(uname -m)
    case $machine in
        x86_64 | amd64) machine=x86_64 ;;
        aarch64 | arm64) machine=aarch64 ;;
        *) die "no release for the processor $machine: build from source with ./install.sh" ;;
    esac
    case $system in
        Linux) echo "$machine-linux" ;;
        Darwin) echo "$machine-macos" ;;
        *) die "no release for $system: build from source with cargo install" ;;
    esac
}

download() { # URL FILE
    if has curl; then
        curl --fail --silent --show-error --location --retry 2 --connect-timeout 20 --max-time 600 --output "$2" "$1"
    elif has wget; then
        wget -q -T 20 -t 3 -O "$2" "$1"
    else
        die "curl or wget is missing: install one of them"
    fi
}

checksum() { # FILE: into $actual
    if has sha256sum; then
        actual=$(sha256sum "$1")
    elif has shasum; then
        actual=$(shasum -a 256 "$1")
    else
        die "sha256sum or shasum is missing: without one the download cannot be verified"
    fi
    actual=${actual%% *}
}

download_list() { # URL: the names and checksums of a release, into $work/SHA256SUMS
    download "$1/SHA256SUMS" "$work/SHA256SUMS" ||
        die "cannot download $1/SHA256SUMS: check the version, the network and SKILLBOX_RELEASES_URL"
}

# The list of the latest release names its version, so that both downloads are of one release.
find_archive() {
    if [ -n "$version" ]; then
        download_list "$releases/download/v$version"
    else
        download_list "$releases/latest/download"
    fi
    line=$(grep -E "^[0-9a-f]{64}  skillbox-[0-9][0-9A-Za-z.-]*-$platform\.tar\.gz\$" "$work/SHA256SUMS" | head -n 1)
    [ -n "$line" ] || die "the release has no archive for $platform: build from source with ./install.sh"
    expected=${line%% *} archive=${line##* }
    found=${archive#skillbox-}
    found=${found%"-$platform.tar.gz"}
    [ -z "$version" ] || [ "$version" = "$found" ] || die "asked for version $version, but the release has $found"
    version=$found
}

fetch_archive() {
    say "downloading $archive"
    download "$releases/download/v$version/$archive" "$work/$archive" ||
        die "cannot download $releases/download/v$version/$archive: try again, or check the network"
    checksum "$work/$archive"
    [ "$actual" = "$expected" ] ||
        die "wrong checksum of $archive: expected $expected, got $actual; nothing was installed, try again later"
    tar -xzf "$work/$archive" -C "$work" || die "cannot unpack $archive"
    unpacked=$work/${archive%.tar.gz}
    "$unpacked/skillbox" version >/dev/null || die "the binary for $platform does not run on this machine"
}

put() { # MODE SOURCE TARGET: replaces the file atomically, also while the old binary runs
    if ! { mkdir -p "$(dirname "$3")" && cp "$2" "$3.new" && chmod "$1" "$3.new" && mv -f "$3.new" "$3"; }; then
        die "cannot write $3: choose another folder with --dir, or run as a user who may write there"
    fi
    installed="$installed $3"
}

install_all() {
    before=
    if [ -x "$dir/skillbox" ]; then before=$("$dir/skillbox" version 2>/dev/null) || before='a broken binary'; fi
    put 755 "$unpacked/skillbox" "$dir/skillbox"
    case $dir in
        */bin)
            share=${dir%/bin}/share
            put 644 "$unpacked/completions/skillbox.bash" "$share/bash-completion/completions/skillbox"
            put 644 "$unpacked/completions/_skillbox" "$share/zsh/site-functions/_skillbox"
            put 644 "$unpacked/completions/skillbox.fish" "$share/fish/vendor_completions.d/skillbox.fish"
            for page in "$unpacked"/man/*.1; do
                [ ! -f "$page" ] || put 644 "$page" "$share/man/man1/$(basename "$page")"
            done
            ;;
    esac
    after=$("$dir/skillbox" version)
    if [ -z "$before" ]; then
        say "installed $after in $dir"
    elif [ "$before" = "$after" ]; then
        say "installed $after in $dir again"
    else
        say "replaced $before by $after in $dir"
    fi
    case ":$PATH:" in
        *":$dir:"*) ;;
        *) say "note: $dir is not in your PATH" ;;
    esac
    say "check this machine with: skillbox doctor"
    say "uninstall with: rm -f$installed"
}

main() {
    version='' dir='' installed=''
    releases=${SKILLBOX_RELEASES_URL:-$default_releases}
    releases=${releases%/}
    while [ $# -gt 0 ]; do
        case $1 in
            --version | --dir)
                [ -n "${2:-}" ] || die "$1 needs a value"
                if [ "$1" = --dir ]; then dir=$2; else version=${2#v}; fi
                shift
                ;;
            -h | --help)
                usage
                exit
                ;;
            *)
                usage >&2
                exit 2
                ;;
        esac
        shift
    done
    case $version in
        *[!0-9A-Za-z.-]*) die "invalid version \`$version\`: write it as 1.2.3" ;;
    esac
    if [ -z "$dir" ]; then
        if [ "$(id -u)" = 0 ]; then
            dir=/usr/local/bin
        else
            [ -n "${HOME:-}" ] || die "HOME is not set: name a folder with --dir"
            dir=$HOME/.local/bin
        fi
    fi
    case $dir in
        /*) ;;
        *) dir=$PWD/$dir ;;
    esac
    dir=${dir%/}
    platform=$(platform)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT TERM HUP
    find_archive
    fetch_archive
    install_all
}

# Last, so that a truncated download of this script does nothing.
main "$@"
