# What honest shell scripts do, all of which must simply work: S-12.
set -euo pipefail

job_control() {
    set -m
    sleep 30 &
    local job=$!
    kill -STOP "$job" && kill -CONT "$job" && kill "$job"
    ! wait "$job"
    (exit 3) &
    wait -n && return 1
    sleep 0.5 &
    fg >/dev/null
    [ -z "$(jobs -r)" ]
}

perl_scripts() {
    command -v perl >/dev/null || return 0
    [ "$(perl -e 'use Socket; socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or die $!; if (!fork) { syswrite($b, "from a child\n"); exit } print scalar <$a>; wait; exit($? >> 8)')" = 'from a child' ]
    perl -e 'open(my $tail, "-|", "seq 3 | tail -n 1") or die $!; exit(<$tail> != 3)'
    perl -e '$less = getpriority(0, $$) + 3; setpriority(0, $$, $less) or die $!; exit(getpriority(0, $$) != $less)'
}

pipes() {
    mkfifo /tmp/fifo
    echo through >/tmp/fifo &
    [ "$(cat /tmp/fifo)" = through ] && wait
    [ "$(printf '%s\n' c a b | sort | tail -n 1)" = c ]
}

substitution() {
    [ "$(cat <(echo one) <(echo two) | wc -l)" -eq 2 ]
    coproc CAT { cat; }
    echo hello >&"${CAT[1]}"
    read -r line <&"${CAT[0]}"
    [ "$line" = hello ]
}

tools() {
    tar -C /tmp -cf /workspace/a.tar . && gzip -k /workspace/a.tar
    find /usr/bin -type f -name 'b*' | sed -n 1,5p | xargs -r -n 1 wc -c >/dev/null
    timeout 5 nice -n 3 date >/dev/null
    renice -n $(($(nice) + 2)) -p "$BASHPID" >/dev/null
    flock /tmp/lock setsid -w true
    sync && sync -f /tmp && sync /tmp/lock
    dd if=/dev/urandom of=/tmp/random bs=64k count=4 status=none && sha256sum /tmp/random >/dev/null
    cp -a /tmp/random /workspace/ && mv /workspace/random /sandbox/ && rm /sandbox/random
    awk 'BEGIN { exit 0 }' && sed -n 1p /etc/os-release >/dev/null
}

limits() {
    (ulimit -n 64 && ulimit -t 10 && ulimit -s 1024 && true)
    (trap 'exit 0' TERM && kill "$BASHPID" && sleep 5 && exit 1)
}

sourced() {
    echo 'here=1' >/tmp/here.sh && . /tmp/here.sh && [ "$here" = 1 ]
    printf '#!/bin/sh\necho ran\n' >/workspace/run.sh
    [ "$(bash /workspace/run.sh)" = ran ]
    cat >/tmp/document <<TEXT
$HOME
TEXT
    [ "$(cat /tmp/document)" = /workspace ]
}

separator='{'
for work in ${*:-job_control perl_scripts pipes substitution tools limits sourced}; do
    # A subshell of its own: `set -e` does not count within a condition.
    set +e
    (set -e; "$work") 2>/tmp/error
    code=$?
    set -e
    printf '%s"%s": "%s"' "$separator" "$work" "$([ "$code" = 0 ] && echo ok || echo "$code $(tr -d '"\\\n' </tmp/error)")"
    separator=', '
done >"$SANDBOX_OUTPUT"
echo '}' >>"$SANDBOX_OUTPUT"
