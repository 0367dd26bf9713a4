#!/usr/bin/env bash
# Runs a command with a Docker engine that has Skillbox's base images. See usage() below.
set -euo pipefail

cache=${SKILLBOX_TEST_ENGINE_DIR:-/var/cache/skillbox-test-engine}
run=${SKILLBOX_TEST_ENGINE_RUN:-/run/skillbox-test-engine}
private=unix://$run/docker.sock
# Raise both numbers when the recipe below changes, so that no machine keeps images of the old one.
images=$cache/images-2
suite=bookworm
private_images=(python:3.11-slim node:18-slim bash:5)
policy_image=skillbox-test/volumes:2

usage() {
    cat <<USAGE
Usage: tests/with-engine.sh COMMAND [ARG...]
       tests/with-engine.sh --stop | --help

Makes sure that a Docker engine with the base images of Skillbox exists, then runs COMMAND with
the environment that points to it. Standard input and output are those of COMMAND.

The engine you already have is used if it answers and has, or can pull, the images. Otherwise a
private engine is started, as root on Debian or Ubuntu: packages docker.io, mmdebstrap and, on
Debian, runsc (gVisor) are installed where missing, and the images are made from Debian packages, so no registry is needed.
It keeps running for the next call; --stop ends it.

Example:
  tests/with-engine.sh cargo test

Environment:
  SKILLBOX_DOCKER_HOST, DOCKER_HOST   the engine to try first (default: the Docker context)
  SKILLBOX_IMAGE_PYTHON, _NODE, _BASH images to use instead of the default ones
  SKILLBOX_TEST_ENGINE_DIR            data of the private engine (default /var/cache/skillbox-test-engine)
  SKILLBOX_TEST_ENGINE_RUN            its socket, log and lock (default /run/skillbox-test-engine)
USAGE
}

say() { printf 'with-engine: %s\n' "$*" >&2; }

die() { # exit 69: what the command needs is unavailable
    say "$*"
    exit 69
}

bounded() { # SECONDS COMMAND...; macOS has no timeout(1), and there a pull is merely unbounded
    if command -v timeout >/dev/null; then timeout "$@"; else "${@:2}"; fi
}

answers() { bounded 10 docker -H "$1" version >/dev/null 2>&1; }

has() { # HOST IMAGE...
    bounded 30 docker -H "$1" image inspect "${@:2}" >/dev/null 2>&1
}

logged() { # LOG COMMAND...; the output matters only when the command fails
    local log=$1
    shift
    if ! "$@" >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        die "failed: $* (whole log: $log)"
    fi
}

# An image that asks for all that Skillbox must override or refuse, for the tests of image policy.
make_policy_image() { # HOST BASE
    local host=$1 container
    has "$host" "$policy_image" && return
    container=$(docker -H "$host" create "$2" true)
    docker -H "$host" commit --change 'VOLUME /data' --change 'USER root' --change 'ENV LD_PRELOAD=/x' \
        --change 'ENTRYPOINT ["/bin/false"]' --change 'HEALTHCHECK --interval=1s CMD true' \
        "$container" "$policy_image" >/dev/null
    docker -H "$host" rm "$container" >/dev/null
}

install_packages() { # PACKAGE..., docker.io meaning a client too, which Debian 13 and later package on its own
    [ $# -gt 0 ] || return 0
    say "installing $*"
    export DEBIAN_FRONTEND=noninteractive
    local lock=(-o DPkg::Lock::Timeout=300)
    # An unreachable third-party source must not stop what the Debian mirror can give.
    apt-get "${lock[@]}" update >"$cache/apt.log" 2>&1 || say "apt-get update had errors, see $cache/apt.log"
    logged "$cache/apt.log" apt-get "${lock[@]}" install -y --no-install-recommends "$@"
    if ! command -v docker >/dev/null; then
        logged "$cache/apt.log" apt-get "${lock[@]}" install -y --no-install-recommends docker-cli
    fi
}

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# --- The engine that the user already has ---

user_host() {
    if [ -n "${SKILLBOX_DOCKER_HOST:-${DOCKER_HOST:-}}" ]; then
        echo "${SKILLBOX_DOCKER_HOST:-$DOCKER_HOST}"
    elif command -v docker >/dev/null; then
        docker context inspect -f '{{.Endpoints.docker.Host}}' 2>/dev/null || true
    elif [ -S /var/run/docker.sock ]; then
        echo unix:///var/run/docker.sock
    fi
}

pull_missing() { # HOST IMAGE...
    local host=$1 image
    shift
    for image; do
        has "$host" "$image" && continue
        say "pulling $image"
        if ! bounded 300 docker -H "$host" pull -q "$image" </dev/null >&2; then
            say "the engine at $host cannot pull $image"
            return 1
        fi
    done
}

# --- The private engine ---

# After a crash the number in a pid file may be another process's, or a zombie's, which has no command line.
live_pid() { # FILE PROGRAM
    local pid
    pid=$(cat "$1" 2>/dev/null) || return 1
    grep -aq "^[^ ]*$2" "/proc/$pid/cmdline" 2>/dev/null && echo "$pid"
}

engine_pid() { live_pid "$run/dockerd.pid" dockerd; }

# gVisor beside the engine's own runtime, where there is one. On the platform ptrace it needs nothing of the machine, and
# its own network stack would look for a namespace that containers of Skillbox do not have.
runtimes() {
    local runsc
    if runsc=$(command -v runsc); then
        printf '{"runtimes": {"runsc": {"path": "%s", "runtimeArgs": ["--platform=ptrace", "--network=none"]}}}\n' "$runsc"
    else
        echo '{}'
    fi
}

start_engine() { # sets engine to its process id
    engine=$(engine_pid) && return
    say "starting a private Docker engine at $private"
    # After a crash dockerd would wait forever for the containerd that crashed with it.
    local containerd=$run/exec/containerd/containerd.pid orphan
    if orphan=$(live_pid "$containerd" containerd); then kill -9 "$orphan"; fi
    rm -f "$run/dockerd.pid" "$containerd"
    # An empty configuration and own containerd namespaces keep it apart from an engine of the system.
    runtimes >"$run/daemon.json"
    (
        # No descriptor of the caller may stay open in the engine: a pipe from us would never end.
        for fd in /proc/self/fd/*; do
            fd=${fd##*/}
            if [ "$fd" -gt 2 ]; then exec {fd}>&-; fi
        done
        cd /
        # Containers of Skillbox have no network, so the engine needs neither a bridge nor iptables.
        exec setsid dockerd --host "$private" --group root --config-file "$run/daemon.json" \
            --data-root "$cache/engine" --exec-root "$run/exec" --pidfile "$run/dockerd.pid" \
            --containerd-namespace skillbox-test --containerd-plugins-namespace skillbox-test-plugins \
            --bridge=none --iptables=false --ip6tables=false --ip-forward=false
    ) </dev/null >"$run/dockerd.log" 2>&1 &
    engine=$!
}

await_engine() {
    local deadline=$((SECONDS + 60))
    until answers "$private"; do
        if [ $SECONDS -ge $deadline ] || ! [ -d "/proc/$engine" ]; then
            tail -n 20 "$run/dockerd.log" >&2
            die "the private engine does not answer; its whole log is $run/dockerd.log"
        fi
        sleep 0.2
    done
}

stop_engine() {
    local pid
    pid=$(engine_pid) || { say "no private engine runs"; return; }
    kill "$pid"
    for _ in $(seq 150); do
        engine_pid >/dev/null || { say "stopped the private engine"; return; }
        sleep 0.2
    done
    die "the private engine (process $pid) does not stop"
}

mirror() { # of the machine's own apt sources
    local site
    # shellcheck disable=SC2016 # apt expands these, not the shell
    site=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
        awk '$1 == "Debian" && $2 == "Debian" && $3 == "main" && $4 ~ /^https?:/ && !n++ { print $4 }')
    echo "${site:-http://deb.debian.org/debian}"
}

# The documentation goes here and not by dpkg's path-exclude, which makes mmdebstrap four times slower.
pack() { # ROOT NAME: the files of ROOT as NAME.tar
    tar -C "$1" --one-file-system --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' \
        --exclude='./tmp/*' --exclude='./var/lib/apt/lists/*' --exclude='./var/cache/apt/*' \
        --exclude='./usr/share/doc/*' --exclude='./usr/share/info/*' --exclude='./usr/share/locale/*' \
        --exclude='./usr/share/man/*' --exclude=./etc/resolv.conf --exclude=./etc/hostname -cf "$images/$2.new" .
    mv "$images/$2.new" "$images/$2.tar"
}

derive() { # NAME PACKAGES COMMAND...: the base with packages, and the first one's commands where official images have them
    local name=$1 packages root=$work/$1 command
    read -ra packages <<<"$2"
    shift 2
    cp -a --one-file-system "$work/bash" "$root"
    logged "$images/$name.log" apt-get -o Dir="$root" -o DPkg::Chroot-Directory="$root" \
        -o APT::Sandbox::User=root install -y --no-install-recommends "${packages[@]}"
    for command; do
        ln -s "/usr/bin/${packages[0]}" "$root/usr/local/bin/$command"
    done
    pack "$root" "$name"
}

make_root_filesystems() (
    say "making the base images from packages of Debian $suite"
    work=$images/work
    # A killed run may have left mounts below; those are not ours to delete.
    rm -rf --one-file-system "$work"
    mkdir -p "$work"
    trap 'rm -rf --one-file-system "$work"' EXIT
    # The package lists stay for derive(). Syncing to disk would take most of the time, and for nothing.
    logged "$images/bash.log" env TMPDIR="$work" mmdebstrap --mode=root --variant=essential --skip=cleanup/apt \
        --dpkgopt=force-unsafe-io --format=directory "$suite" "$work/bash" "deb $(mirror) $suite main"
    ln -s /usr/bin/bash "$work/bash/usr/local/bin/bash"
    # Official images have it for apt's sake, and many Python packages need it.
    derive python 'python3 libstdc++6' python python3 &
    local python=$!
    derive node nodejs node nodejs &
    local node=$!
    pack "$work/bash" bash
    wait "$python"
    wait "$node"
)

import() { # IMAGE
    local name=${1%%:*}
    docker -H "$private" import --change "CMD [\"$name\"]" --change 'ENV LANG=C.UTF-8' \
        --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
        "$images/$name.tar" "$1" >/dev/null
}

set_up_private() ( # a subshell: the lock, the umask and the environment end with it
    umask 022
    mkdir -p "$cache" "$run"
    exec 9>"$run/lock"
    flock -w 1800 9 || die "another run has held $run/lock for half an hour"
    has "$private" "${private_images[@]}" "$policy_image" && return

    local packages=() jobs=() build='' image job
    mkdir -p "$images"
    { command -v dockerd && command -v docker; } >/dev/null || packages+=(docker.io)
    if ! [ -e "$images/bash.tar" ] || ! [ -e "$images/python.tar" ] || ! [ -e "$images/node.tar" ]; then
        build=1
        command -v mmdebstrap >/dev/null || packages+=(mmdebstrap)
        [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || packages+=(debian-archive-keyring)
    fi
    # Ubuntu has no such package; the tests on gVisor then say that they were skipped.
    command -v runsc >/dev/null || ! apt-cache show runsc >/dev/null 2>&1 || packages+=(runsc)
    install_packages "${packages[@]}"
    start_engine
    if [ -n "$build" ]; then make_root_filesystems; fi
    await_engine
    # Also those that are there: the policy image, made last, says of which recipe they are.
    for image in "${private_images[@]}"; do
        say "importing $image"
        import "$image" &
        jobs+=($!)
    done
    for job in "${jobs[@]}"; do wait "$job"; done
    make_policy_image "$private" bash:5
)

run_on_private() { # COMMAND...
    unset DOCKER_CONTEXT DOCKER_TLS_VERIFY DOCKER_CERT_PATH
    export DOCKER_HOST=$private SKILLBOX_DOCKER_HOST=$private
    export SKILLBOX_IMAGE_PYTHON=${SKILLBOX_IMAGE_PYTHON:-${private_images[0]}}
    export SKILLBOX_IMAGE_NODE=${SKILLBOX_IMAGE_NODE:-${private_images[1]}}
    export SKILLBOX_IMAGE_BASH=${SKILLBOX_IMAGE_BASH:-${private_images[2]}}
    exec "$@"
}

run_on() { # HOST COMMAND...
    local host=$1
    shift
    say "using the Docker engine at $host"
    make_policy_image "$host" "${SKILLBOX_IMAGE_BASH:-bash:5}" </dev/null >&2 || say "could not make $policy_image"
    if [ -z "${SKILLBOX_DOCKER_HOST:-}" ] && [ "$host" != unix:///var/run/docker.sock ]; then
        export SKILLBOX_DOCKER_HOST=$host
    fi
    exec "$@"
}

case ${1:-} in
    '') usage >&2; exit 64 ;;
    -h | --help) usage; exit ;;
    --stop) stop_engine; exit ;;
    --) shift ;;
    -*) usage >&2; exit 64 ;;
esac

wanted=("${SKILLBOX_IMAGE_PYTHON:-python:3.12-slim}" "${SKILLBOX_IMAGE_NODE:-node:20-slim}" "${SKILLBOX_IMAGE_BASH:-bash:5}")
host=$(user_host)
if [ -n "$host" ] && ! command -v docker >/dev/null && can_install; then
    mkdir -p "$cache"
    install_packages docker.io
fi
reachable=
if [ -n "$host" ] && answers "$host"; then reachable=1; fi
if [ -n "$reachable" ] && has "$host" "${wanted[@]}"; then
    run_on "$host" "$@"
fi
# A private engine that is ready comes before a pull, which may take long only to fail.
if [ -S "$run/docker.sock" ] && has "$private" "${private_images[@]}" "$policy_image"; then
    run_on_private "$@"
fi
if [ -n "$reachable" ] && pull_missing "$host" "${wanted[@]}"; then
    run_on "$host" "$@"
fi
can_install || die "no usable Docker engine, and starting one needs root on Debian or Ubuntu: install and start Docker, then run this again"
set_up_private </dev/null >&2
run_on_private "$@"
