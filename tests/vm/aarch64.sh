#!/usr/bin/env bash
# Runs sandboxes on an emulated machine with an ARM processor. See usage() below.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
suite=bookworm

usage() {
    cat <<USAGE
Usage: tests/vm/aarch64.sh BINARY

Boots Debian's kernel for aarch64 with a few of Debian's programs in memory, and there runs \`doctor\`, code in each
language, a skill, code as an ordinary user, and \`prove\` with the static BINARY for aarch64. Takes 10 minutes. Needs root on
Debian and 1 GiB of disk; installs qemu-system-arm and mmdebstrap where they are missing.
USAGE
}

die() {
    echo "vm: $*" >&2
    exit 69
}

[ $# = 1 ] || { usage >&2; exit 64; }
binary=$(realpath "$1")
[ -x "$binary" ] || die "no such program: $1"
[ "$(id -u)" = 0 ] || die "making the machine needs root"
run=$(mktemp -d)
trap 'rm -rf --one-file-system "$run"' EXIT

logged() { # COMMAND...; the output matters only when the command fails
    "$@" >"$run/log" 2>&1 || { tail -n 30 "$run/log" >&2; die "failed: $*"; }
}

missing=()
command -v qemu-system-aarch64 >/dev/null || missing+=(qemu-system-arm)
command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
command -v cpio >/dev/null || missing+=(cpio)
if [ ${#missing[@]} -gt 0 ]; then
    logged apt-get -o DPkg::Lock::Timeout=300 update
    logged env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}"
fi

# shellcheck disable=SC2016 # apt expands these, not the shell
mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $2 == "Debian" && $3 == "main" && $4 ~ /^https?:/ && !n++ { print $4 }')
files=$run/files
# Only unpacked: the scripts of these packages are programs for another processor.
logged env TMPDIR="$run" mmdebstrap --mode=root --variant=extract --architectures=arm64 \
    --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
    --include='?essential' --include='busybox-static,iproute2,kmod,mawk,mount,nodejs,procps,python3,linux-image-cloud-arm64' \
    --format=directory "$suite" "$files" "deb ${mirror:-http://deb.debian.org/debian} $suite main"
mv "$files"/boot/vmlinuz-* "$run/kernel"
mkdir "$files/modules"
find "$files/usr/lib/modules" -name overlay.ko -exec mv {} "$files/modules/" \;
rm -rf "${files:?}"/usr/lib/modules "${files:?}"/boot "$files"/usr/share/{doc,man,locale} "$files"/var/{cache,lib}/apt
cp "$files/usr/share/base-passwd/passwd.master" "$files/etc/passwd"
cp "$files/usr/share/base-passwd/group.master" "$files/etc/group"
echo 'tester:*:1000:1000::/home/tester:/bin/bash' >>"$files/etc/passwd"
echo 'tester:*:1000:' >>"$files/etc/group"
ln -s mawk "$files/usr/bin/awk"
install -m 755 "$binary" "$files/usr/bin/skillbox"
install -m 755 "$here/aarch64-init.sh" "$files/init"
cp -r "$here/../../examples" "$files/examples"
(cd "$files" && find . | cpio --quiet -o -H newc -R 0:0) | gzip -1 >"$run/files.gz"
rm -rf --one-file-system "$files"

timeout --foreground 5400 qemu-system-aarch64 -machine virt -accel tcg,thread=multi -cpu cortex-a72 -smp 2 -m 3500 -nographic \
    -no-user-config -nodefaults -serial stdio -kernel "$run/kernel" -initrd "$run/files.gz" \
    -append "console=ttyAMA0 quiet panic=5" -no-reboot </dev/null | tee "$run/console" ||
    echo "vm: the emulator ended with an error or after 90 minutes" >&2

failed=0
for step in $(sed -n 's/^step \([a-z]*\) [0-9].*/\1/p' "$here/aarch64-init.sh"); do
    line=$(tr -d '\r' <"$run/console" | grep "^step $step: " | tail -n 1) || line="step $step: FAILED: no report"
    echo "$line"
    case $line in *": ok"*) ;; *) failed=1 ;; esac
done
exit $failed
