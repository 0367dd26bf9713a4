#!/usr/bin/env bash
# The steps of the test machine, in order. Each prints `step NAME: ok (SECONDS s)` or `step NAME: FAILED: ...`.
set -uo pipefail
cd /root/test || exit 1
export HOME=/root PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin
binary=/usr/local/bin/skillbox
install -m 755 skillbox "$binary"

# As the ordinary user in a scope with delegated cgroups, as the documents say.
as_user() { # COMMAND
    local id
    id=$(id -u tester)
    runuser -u tester -- env -C /home/tester HOME=/home/tester XDG_RUNTIME_DIR="/run/user/$id" \
        DBUS_SESSION_BUS_ADDRESS="unix:path=/run/user/$id/bus" SKILLBOX_SANDBOX_BACKEND=native \
        systemd-run --user --quiet --scope --property=Delegate=yes -- bash -c "$1"
}

expect() { # TEXT, in standard input
    local found
    found=$(cat)
    grep -qF -- "$1" <<<"$found" || {
        printf '%s\n' "$found" | tail -n 40
        echo "not found: $1"
        return 1
    }
}

step_machine() { # 60
    [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] || { echo "no cgroups of version 2"; return 1; }
    [ "$(cat /sys/module/apparmor/parameters/enabled)" = Y ] || { echo "no AppArmor"; return 1; }
    uname -r
    systemctl is-active docker
}

step_doctor() { # 120
    SKILLBOX_SANDBOX_BACKEND=native "$binary" doctor
}

step_doctor_as_user() { # 120
    as_user "$binary doctor"
}

step_example() { # 120
    SKILLBOX_SANDBOX_BACKEND=native "$binary" run examples/skills/text-summary --input @examples/skills/text-summary/input.json |
        expect '"status": "success"'
}

step_example_as_user() { # 120
    cp -r examples /home/tester/ && chown -R tester: /home/tester/examples
    as_user "$binary run examples/skills/text-summary --input @examples/skills/text-summary/input.json" |
        expect '"status": "success"'
}

# R-18: what the kernel counts per user is counted for the user of the sandbox, not for root.
step_inotify() { # 120
    cat >/tmp/inotify.py <<'PROGRAM'
import ctypes, time
libc = ctypes.CDLL(None)
held = 0
while libc.inotify_init1(0) >= 0:
    held += 1
print('held', held, flush=True)
time.sleep(20)
PROGRAM
    local left runs=() run
    for run in 1 2 3 4; do
        SKILLBOX_SANDBOX_BACKEND=native "$binary" run /tmp/inotify.py --format json >"/tmp/inotify-$run" 2>&1 &
        runs+=($!)
    done
    sleep 15
    left=$(python3 -c "
import ctypes
libc = ctypes.CDLL(None)
print(sum(1 for _ in iter(lambda: libc.inotify_init1(0), -1)))")
    wait "${runs[@]}"
    expect 'held 16' </tmp/inotify-1 || return 1
    echo "left to root: $left"
    [ "$left" -ge 64 ]
}

# The program, never PID 1 of its sandbox: output survives.
step_out_of_memory_as_user() { # 180
    cat >/home/tester/hog.py <<'PROGRAM'
import os
print('own score', open('/proc/self/oom_score_adj').read().strip(), 'of PID 1', open('/proc/1/oom_score_adj').read().strip())
open(os.environ['SANDBOX_OUTPUT'], 'w').write('{"kept": true}')
parts = []
while True:
    parts.append(bytearray(16 * 1024 * 1024))
PROGRAM
    local seen
    seen=$(as_user "$binary run hog.py --format json")
    expect '"status": "oom"' <<<"$seen" && expect '"kept": true' <<<"$seen" && expect 'own score 1000 of PID 1 500' <<<"$seen"
}

prove() { # NAME, output in standard input: 0 breaches; inconclusive probes are listed, since this machine is slow
    cat >"/tmp/prove-$1"
    grep -E 'BREACH|inconclusive|[0-9]+ kept, ' "/tmp/prove-$1" | tail -n 60
    ! grep -q BREACH "/tmp/prove-$1" && grep -qE "^. $1: [0-9]+ kept, " "/tmp/prove-$1"
}

step_prove_native() { # 1500
    "$binary" prove --backend native 2>&1 | prove native
}

step_prove_as_user() { # 1500
    as_user "$binary prove --backend native 2>&1" | prove native
}

# The sysctl of Debian's kernel names itself in the error, for root too: a sandbox makes a second namespace inside. Ubuntu
# restricts user namespaces by AppArmor instead, which is not in this kernel.
step_no_user_namespaces() { # 240
    sysctl -q kernel.unprivileged_userns_clone=0
    local failed=0
    echo 'print(1)' >/home/tester/one.py
    SKILLBOX_SANDBOX_BACKEND=native "$binary" run /home/tester/one.py 2>&1 |
        expect 'sysctl -w kernel.unprivileged_userns_clone=1' || failed=1
    as_user "$binary run ./one.py" 2>&1 | expect 'sysctl -w kernel.unprivileged_userns_clone=1' || failed=1
    sysctl -q kernel.unprivileged_userns_clone=1
    return $failed
}

import_images() { # IMAGE...
    local image
    for image; do
        docker image inspect "$image" >/dev/null 2>&1 && continue
        docker import --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
            "images/${image%%:*}.tar" "$image" || return 1
    done
}

step_example_on_docker() { # 600
    import_images python:3.12-slim || return 1
    local seen
    seen=$(SKILLBOX_SANDBOX_BACKEND=docker "$binary" run examples/skills/text-summary --input @examples/skills/text-summary/input.json)
    expect '"status": "success"' <<<"$seen" && expect '"backend": "docker"' <<<"$seen"
}

step_prove_docker() { # 1800
    import_images python:3.12-slim node:20-slim bash:5 || return 1
    "$binary" prove --backend docker 2>&1 | prove docker
}

# The unit, with both backends, its restart, and the exposure that systemd computes.
service_key() { cat /var/lib/skillbox/admin.key; }

step_service() { # 600
    import_images python:3.12-slim || return 1
    ./install.sh --binary "$binary" --prefix /usr/local --systemd || return 1
    [ -s /usr/local/share/man/man1/skillbox-run.1 ] || { echo "no man page"; return 1; }
    systemctl enable --now skillbox || return 1
    wait_for_service || return 1
    export SKILLBOX_SERVER_URL=http://127.0.0.1:8080 SKILLBOX_API_KEY
    SKILLBOX_API_KEY=$(service_key)
    "$binary" skill push examples/skills/text-summary || return 1
    local seen backend
    for backend in docker native; do
        mkdir -p /etc/skillbox
        echo "SKILLBOX_SANDBOX_BACKEND=$backend" >/etc/skillbox/environment
        systemctl restart skillbox && wait_for_service || return 1
        seen=$("$binary" run text-summary --input @examples/skills/text-summary/input.json)
        expect '"status": "success"' <<<"$seen" && expect "\"backend\": \"$backend\"" <<<"$seen" || return 1
    done
    exposure
}

# Below a limit, and the unit gives the reason for each setting that is absent.
exposure() {
    systemd-analyze security skillbox.service --no-pager >/tmp/exposure
    grep -E '^✗|Overall' /tmp/exposure
    local setting failed=0
    for setting in $(sed -n 's/^✗ \([A-Za-z]*=\(~@[a-z]*\)\{0,1\}\).*/\1/p' /tmp/exposure | sed 's/=$//' | sort -u); do
        grep -q "^#.*$setting" /etc/systemd/system/skillbox.service || { echo "no reason for the absent $setting"; failed=1; }
    done
    sed -n 's/.*Overall exposure level for skillbox.service: \([0-9.]*\).*/\1/p' /tmp/exposure |
        awk '{ exit !($1 <= 3.0) }' || failed=1
    return $failed
}

wait_for_service() {
    local try
    for try in $(seq 60); do
        curl -sf -o /dev/null http://127.0.0.1:8080/healthz && return
        sleep 1
    done
    journalctl -u skillbox --no-pager | tail -n 30
    return 1
}

# Queued executions of a machine that loses power run after its start. This is the last step: it continues after the reboot.
step_reboot() { # 600
    export SKILLBOX_SERVER_URL=http://127.0.0.1:8080 SKILLBOX_API_KEY
    SKILLBOX_API_KEY=$(service_key)
    if ! [ -e /root/queued ]; then
        echo 'import time; time.sleep(10)' >/root/slow.py
        local number
        for number in $(seq 6); do
            "$binary" run /root/slow.py --async || return 1
        done >/root/queued.new
        mv /root/queued.new /root/queued
        sync
        echo "rebooting without a shutdown"
        echo b >/proc/sysrq-trigger
        sleep 60
        return 1
    fi
    wait_for_service || return 1
    local id statuses=()
    while read -r id; do
        statuses+=("$(timeout 200 "$binary" exec wait "$id" --format json | sed -n 's/^  "status": "\([a-z]*\)".*/\1/p')")
    done </root/queued
    echo "after the reboot: ${statuses[*]}"
    # Those that had started are lost with the machine and say so; the others ran.
    [ "${#statuses[@]}" = 6 ] && [ "$(printf '%s\n' "${statuses[@]}" | grep -c '^success$')" -ge 3 ] &&
        ! printf '%s\n' "${statuses[@]}" | grep -qvE '^(success|interrupted)$'
}

run_step() { # NAME
    local name=$1 limit began=$SECONDS log=/root/log-$1
    limit=$(sed -n "s/^step_$name() { # \([0-9]*\)$/\1/p" steps.sh)
    echo "== $name (at most $limit s)"
    export -f as_user expect prove import_images service_key wait_for_service exposure "step_$name"
    export binary
    timeout --kill-after=10 "$limit" bash -c "step_$name" >"$log" 2>&1
    local code=$?
    tail -n 80 "$log"
    if [ $code = 0 ]; then
        echo "step $name: ok ($((SECONDS - began)) s)"
    else
        echo "step $name: FAILED: exit code $code after $((SECONDS - began)) s"
    fi
}

while read -r name; do
    # After the reboot only the step that caused it goes on.
    if [ -e /root/queued ] && [ "$name" != reboot ]; then continue; fi
    run_step "$name" </dev/null
done <steps
