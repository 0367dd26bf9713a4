#!/bin/bash
# The first process of the emulated ARM machine. Each step prints `step NAME: ok (SECONDS s)` or `step NAME: FAILED`.
set -uo pipefail
export PATH=/usr/sbin:/usr/bin HOME=/root

# No process can change its root away from the kernel's first file system, as sandboxes do.
if ! [ -e /switched ]; then
    mkdir /new
    mount -t tmpfs -o size=2g tmpfs /new
    cp -a bin etc examples home init lib modules root sbin tmp usr var /new/
    mkdir /new/{proc,sys,dev,run}
    touch /new/switched
    exec busybox switch_root /new /init
fi

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir /dev/shm /dev/pts
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
insmod /modules/overlay.ko
exec </dev/null >/dev/console 2>&1
ln -s /proc/self/fd /dev/fd
cd /

step() { # NAME SECONDS COMMAND...
    local name=$1 began=$SECONDS
    if timeout "$2" "${@:3}" 2>&1 | cat; then
        echo "step $name: ok ($((SECONDS - began)) s)"
    else
        echo "step $name: FAILED"
    fi
}

runs() { # TEXT COMMAND...: the command prints the text
    local text=$1 printed
    printed=$("${@:2}" 2>&1)
    printf '%s\n' "$printed"
    grep -qF -- "$text" <<<"$printed"
}

# With a cgroup of its own, as a service manager would delegate one.
as_user() {
    local folder=/sys/fs/cgroup/tester
    mkdir -p "$folder"
    for controller in cpu memory pids; do echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control; done
    chown -R 1000:1000 "$folder" /home/tester
    (
        echo "$BASHPID" >"$folder/cgroup.procs"
        cd /home/tester || exit 1
        HOME=/home/tester exec setpriv --reuid 1000 --regid 1000 --clear-groups "$@"
    )
}
export -f runs as_user

cat >/root/a.py <<'PROGRAM'
import platform
print(platform.machine(), 6 * 7)
PROGRAM
echo 'console.log(process.arch, 6 * 7)' >/root/a.js
# shellcheck disable=SC2016 # the sandbox's shell expands it
echo 'echo "$(uname -m) $((6 * 7))"' >/root/a.sh
mkdir -p /home/tester
cp /root/a.* /home/tester/

uname -a
step doctor 300 skillbox doctor
step python 120 bash -c 'runs "aarch64 42" skillbox run /root/a.py'
step node 120 bash -c 'runs "arm64 42" skillbox run /root/a.js'
step bash 120 bash -c 'runs "aarch64 42" skillbox run /root/a.sh'
step skill 120 bash -c 'runs "\"status\": \"success\"" skillbox run /examples/skills/text-summary --input @/examples/skills/text-summary/input.json --format json'
step user 120 bash -c 'runs "aarch64 42" as_user skillbox run a.py'
# Probes that hit their time limits on this slow machine are named; a breach is not forgiven.
proves() {
    skillbox prove --backend native >/tmp/prove 2>&1
    local code=$?
    grep -E -A 4 'BREACH|inconclusive' /tmp/prove
    grep -F ' native: ' /tmp/prove
    { [ $code = 0 ] || [ $code = 75 ]; } && ! grep -q BREACH /tmp/prove && grep -qE ' native: [0-9]{2,} kept, ' /tmp/prove
}
export -f proves
step prove 3600 bash -c proves
echo o >/proc/sysrq-trigger
sleep 60
