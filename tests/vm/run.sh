#!/usr/bin/env bash
# Tests a binary on the machine that most users have. See usage() below.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${SKILLBOX_TEST_VM_DIR:-/var/cache/skillbox-test-vm}
suite=bookworm
# In all; each step has its own limit within the guest.
limit=${SKILLBOX_TEST_VM_SECONDS:-7200}

usage() {
    cat <<USAGE
Usage: tests/vm/run.sh BINARY [STEP...]
       tests/vm/run.sh --list | --help

Boots a virtual Debian machine with systemd, cgroups of version 2, AppArmor, Docker and an ordinary user, and runs the
steps of tests/vm/steps.sh in it with this static binary. Without STEP it runs all of them, which takes about half an
hour: the machine is emulated, because KVM is rarely available in CI. Needs root on Debian, about 4 GiB of disk, and a Docker
engine for the images of the guest:

  tests/with-engine.sh tests/vm/run.sh target/x86_64-unknown-linux-gnu/ci/skillbox

Prints the console of the machine, then one line per step. Exits with 1 if a step failed or did not report.

Environment:
  SKILLBOX_TEST_VM_DIR       where the disk of the machine is cached (default /var/cache/skillbox-test-vm)
  SKILLBOX_TEST_VM_SECONDS   limit of the whole run (default 7200)
USAGE
}

say() { printf 'vm: %s\n' "$*" >&2; }

die() {
    say "$*"
    exit 69
}

logged() { # LOG COMMAND...
    local log=$1
    shift
    "$@" >"$log" 2>&1 || { tail -n 30 "$log" >&2; die "failed: $* (whole log: $log)"; }
}

packages=(systemd systemd-sysv dbus dbus-user-session libpam-systemd udev kmod apparmor docker.io iproute2 curl ca-certificates python3 nodejs sudo procps
    linux-image-cloud-amd64)

mirror() { # of the machine's own apt sources
    local site
    # shellcheck disable=SC2016 # apt expands these, not the shell
    site=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
        awk '$1 == "Debian" && $2 == "Debian" && $3 == "main" && $4 ~ /^https?:/ && !n++ { print $4 }')
    echo "${site:-http://deb.debian.org/debian}"
}

install_tools() {
    local missing=()
    command -v qemu-system-x86_64 >/dev/null || missing+=(qemu-system-x86)
    command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
    command -v mke2fs >/dev/null || missing+=(e2fsprogs)
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${missing[*]}"
    logged "$cache/apt.log" apt-get -o DPkg::Lock::Timeout=300 update
    logged "$cache/apt.log" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y \
        --no-install-recommends "${missing[@]}"
}

# The disk, the kernel and its first file system, made once for each version of this recipe.
make_machine() {
    local recipe
    recipe=$(cat "$here/run.sh" "$here/boot.sh" "$here/boot.service" | sha256sum | cut -c1-16)
    machine=$cache/$recipe
    [ -e "$machine/disk.img" ] && return
    say "making the machine from packages of Debian $suite"
    # Machines of other recipes, which are named by 16 digits.
    find "$cache" -mindepth 1 -maxdepth 1 -type d -regex '.*/[0-9a-f]*' -exec rm -rf --one-file-system {} +
    rm -rf --one-file-system "$cache/work"
    mkdir -p "$cache/work" "$machine"
    local files=$cache/work/files
    logged "$cache/mmdebstrap.log" env TMPDIR="$cache/work" mmdebstrap --mode=root --variant=minbase \
        --include="$(IFS=,; echo "${packages[*]}")" --dpkgopt=force-unsafe-io --format=directory \
        "$suite" "$files" "deb $(mirror) $suite main"
    install -m 755 "$here/boot.sh" "$files/usr/local/sbin/skillbox-test"
    install -m 644 "$here/boot.service" "$files/etc/systemd/system/skillbox-test.service"
    ln -s ../skillbox-test.service "$files/etc/systemd/system/multi-user.target.wants/skillbox-test.service"
    ln -sf /dev/null "$files/etc/systemd/system/serial-getty@ttyS0.service"
    echo skillbox-vm >"$files/etc/hostname"
    printf '127.0.0.1 localhost skillbox-vm\n' >"$files/etc/hosts"
    printf '/dev/vda / ext4 rw,relatime 0 1\n' >"$files/etc/fstab"
    chroot "$files" useradd --create-home --shell /bin/bash tester
    mkdir -p "$files/var/lib/systemd/linger"
    touch "$files/var/lib/systemd/linger/tester"
    cp "$files"/boot/vmlinuz-* "$machine/kernel"
    cp "$files"/boot/initrd.img-* "$machine/initrd"
    logged "$cache/mke2fs.log" mke2fs -q -t ext4 -d "$files" "$machine/disk.new" 4G
    mv "$machine/disk.new" "$machine/disk.img"
    rm -rf --one-file-system "$cache/work"
}

# What the guest unpacks: the binary, the steps, the images and the examples.
make_payload() { # BINARY STEPS...
    local binary=$1 folder name image
    shift
    folder=$run/payload
    mkdir -p "$folder/images"
    install -m 755 "$binary" "$folder/skillbox"
    cp -r "$here/steps.sh" "$root/examples" "$root/deploy" "$root/install.sh" "$folder"
    printf '%s\n' "$@" >"$folder/steps"
    for name in python node bash; do
        case $name in
            python) image=${SKILLBOX_IMAGE_PYTHON:-python:3.12-slim} ;;
            node) image=${SKILLBOX_IMAGE_NODE:-node:20-slim} ;;
            bash) image=${SKILLBOX_IMAGE_BASH:-bash:5} ;;
        esac
        export_image "$image" "$folder/images/$name.tar"
    done
    tar -C "$folder" -cf "$run/payload.tar" .
    rm -rf "$folder"
}

export_image() { # IMAGE FILE
    local container
    container=$(docker create --network none "$1" true) || die "image $1 not found; run this with tests/with-engine.sh"
    docker export -o "$2" "$container"
    docker rm "$container" >/dev/null
}

boot() {
    say "booting; the emulated machine is about 20 times slower than this one"
    cp --sparse=always "$machine/disk.img" "$run/disk.img"
    # A reboot of the guest continues in the same emulator, and so with the same disk.
    timeout --foreground "$limit" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 3072 -nographic \
        -no-user-config -nodefaults -serial stdio -kernel "$machine/kernel" -initrd "$machine/initrd" \
        -append 'root=/dev/vda rw console=ttyS0 quiet systemd.show_status=false' \
        -drive "file=$run/disk.img,if=virtio,format=raw,cache=unsafe" \
        -drive "file=$run/payload.tar,if=virtio,format=raw,readonly=on" \
        </dev/null | tee "$run/console" || say "the emulator ended with an error or after $limit s"
}

report() { # STEPS...
    local step line failed=0
    say "steps:"
    for step; do
        line=$(tr -d '\r' <"$run/console" | grep "^step $step: " | tail -n 1) || line="step $step: FAILED: no report"
        printf '%s\n' "$line"
        case $line in *": ok"*) ;; *) failed=1 ;; esac
    done
    return $failed
}

all=$(sed -n 's/^step_\([a-z_]*\)() .*/\1/p' "$here/steps.sh")
case ${1:-} in
    '') usage >&2; exit 64 ;;
    -h | --help) usage; exit ;;
    --list) echo "$all"; exit ;;
esac
binary=$1
shift
[ -x "$binary" ] || die "no such program: $binary"
[ "$(id -u)" = 0 ] || die "making the machine needs root"
# shellcheck disable=SC2086 # one word for each step
[ $# -gt 0 ] || set -- $all
mkdir -p "$cache"
exec 9>"$cache/lock"
flock -w 60 9 || die "another run holds $cache/lock"
# A killed run leaves its disk.
rm -rf --one-file-system "$cache"/run-*
run=$(mktemp -d "$cache/run-XXXXXX")
trap 'rm -rf "$run"' EXIT
install_tools
make_machine
make_payload "$binary" "$@"
boot
report "$@"
