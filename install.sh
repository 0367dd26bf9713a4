#!/usr/bin/env bash
# Installs Skillbox from this folder. See usage() below.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
unit=/etc/systemd/system/skillbox.service

usage() {
    cat <<USAGE
Usage: ./install.sh [OPTION...]

Builds the static binary with cargo and installs it with man pages and completions for bash, zsh and fish.
Downloads nothing except what cargo needs for the build. Run it again to update an installation.

Options:
  --prefix DIR    install into DIR (default: /usr/local as root, else ~/.local)
  --binary FILE   install this binary instead of building one
  --systemd       also install the hardened service unit (as root), without starting it
  --uninstall     remove the installed files; data and configuration stay
  --help          print this help

Examples:
  ./install.sh
  sudo ./install.sh --binary ./skillbox --systemd
USAGE
}

say() { printf 'install: %s\n' "$*"; }

die() {
    printf 'install: %s\n' "$*" >&2
    exit 1
}

replace() { # MODE SOURCE TARGET: atomically, also while the old binary runs
    install -d "$(dirname "$3")"
    install -m "$1" "$2" "$3.new"
    mv -f "$3.new" "$3"
}

put() { # MODE SOURCE TARGET
    replace "$@"
    say "installed $3"
}

completion_file() { # SHELL
    case $1 in
        bash) echo "$prefix/share/bash-completion/completions/skillbox" ;;
        zsh) echo "$prefix/share/zsh/site-functions/_skillbox" ;;
        fish) echo "$prefix/share/fish/vendor_completions.d/skillbox.fish" ;;
    esac
}

build() { # into $work/bin/skillbox
    command -v cargo >/dev/null || die "cargo is missing: install Rust from your distribution or https://rustup.rs, or use --binary FILE"
    say "building; the first build takes some minutes"
    # --root keeps cargo's records out of the prefix.
    cargo install --locked --quiet --path "$here" --root "$work" --no-track
}

has_systemd() { [ -d /run/systemd/system ] && command -v systemctl >/dev/null; }

install_unit() {
    [ "$(id -u)" = 0 ] || die "--systemd needs root"
    command -v systemctl >/dev/null || die "--systemd needs systemd"
    sed "s|^ExecStart=/usr/local/bin/skillbox |ExecStart=$prefix/bin/skillbox |" \
        "$here/deploy/systemd/skillbox.service" >"$work/skillbox.service"
    put 644 "$work/skillbox.service" "$unit"
    getent group docker >/dev/null || say "note: group docker not found; remove SupplementaryGroups from $unit or set SKILLBOX_DOCKER_HOST"
    if has_systemd; then systemctl daemon-reload; fi
    say "start it with: systemctl enable --now skillbox"
    say "it then writes the first key to /var/lib/skillbox/admin.key"
}

install_all() {
    if [ -n "$binary" ]; then
        [ -f "$binary" ] || die "no such file: $binary"
    else
        build
        binary=$work/bin/skillbox
    fi
    "$binary" version >/dev/null || die "$binary does not run on this machine"
    put 755 "$binary" "$prefix/bin/skillbox"
    local shell
    for shell in bash zsh fish; do
        "$prefix/bin/skillbox" completions "$shell" >"$work/completion"
        put 644 "$work/completion" "$(completion_file "$shell")"
    done
    "$prefix/bin/skillbox" man-pages "$work/man" >/dev/null
    local page
    # A command of an older version may be gone.
    for page in "$man/skillbox.1" "$man"/skillbox-*.1; do
        if ! [ -e "$work/man/$(basename "$page")" ]; then remove "$page"; fi
    done
    for page in "$work/man"/*.1; do
        replace 644 "$page" "$man/$(basename "$page")"
    done
    say "installed $(find "$work/man" -name '*.1' | wc -l | tr -d ' ') man pages in $man"
    if [ -n "$systemd" ]; then install_unit; fi
    case ":$PATH:" in
        *":$prefix/bin:"*) ;;
        *) say "note: $prefix/bin is not in your PATH; add it with: export PATH=\"$prefix/bin:\$PATH\"" ;;
    esac
    say "done: $("$prefix/bin/skillbox" version); check this machine with: skillbox doctor"
}

remove() {
    if [ -e "$1" ]; then
        rm -f "$1"
        say "removed $1"
    fi
}

uninstall() {
    # Only root can remove the unit. A unit that runs a binary of another prefix belongs to another installation.
    if [ "$(id -u)" = 0 ] && grep -qs "^ExecStart=$prefix/bin/skillbox " "$unit"; then
        if has_systemd; then systemctl disable --now skillbox || true; fi
        remove "$unit"
        if has_systemd; then systemctl daemon-reload; fi
    fi
    local shell
    for shell in bash zsh fish; do
        remove "$(completion_file "$shell")"
    done
    local page pages=0
    for page in "$man/skillbox.1" "$man"/skillbox-*.1; do
        if [ -e "$page" ]; then
            rm -f "$page"
            pages=$((pages + 1))
        fi
    done
    if [ $pages -gt 0 ]; then say "removed $pages man pages from $man"; fi
    remove "$prefix/bin/skillbox"
    say "done; data folders and /etc/skillbox are unchanged"
}

prefix='' binary='' systemd='' action=install_all
while [ $# -gt 0 ]; do
    case $1 in
        --prefix | --binary)
            [ -n "${2:-}" ] || die "$1 needs a value"
            if [ "$1" = --prefix ]; then prefix=$2; else binary=$2; fi
            shift
            ;;
        --systemd) systemd=1 ;;
        --uninstall) action=uninstall ;;
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
# Services and provisioning tools run without HOME, which only an ordinary user's default needs.
if [ -z "$prefix" ]; then
    if [ "$(id -u)" = 0 ]; then
        prefix=/usr/local
    elif [ -n "${HOME:-}" ]; then
        prefix=$HOME/.local
    else
        die "HOME is not set: set it or use --prefix DIR"
    fi
fi
case $prefix in
    /*) ;;
    *) prefix=$PWD/$prefix ;;
esac

man=$prefix/share/man/man1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
$action
