#!/usr/bin/env bash
# Runs the container images of a release on a Docker engine. See usage() below.
set -euo pipefail

usage() {
    cat <<USAGE
Usage: tests/with-engine.sh tests/container-images.sh BINARY

Makes both images of packaging/images.sh from the static BINARY and checks that each serves and runs a skill, and that
\`doctor\` names the options that a container lacks. Needs root and mmdebstrap; the packages of the image are kept for the next run.
USAGE
}

if [ $# != 1 ]; then
    usage >&2
    exit 64
fi
binary=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export DOCKER_HOST=${SKILLBOX_DOCKER_HOST:-${DOCKER_HOST:-unix:///var/run/docker.sock}}
# The number rises with the recipe of the packages.
cache=${SKILLBOX_TEST_ENGINE_DIR:-/var/cache/skillbox-test-engine} name=skillbox-test/release:$$
root=$cache/image-root-1.tar

options=(--cap-drop ALL --cap-add KILL --cap-add SETGID --cap-add SETUID --cap-add SYS_ADMIN --cap-add SYS_PTRACE
    --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined
    --cgroupns host --volume /sys/fs/cgroup:/sys/fs/cgroup)

fail() {
    echo "container-images: $*" >&2
    exit 1
}
for ((i = 0; i < ${#options[@]}; i += 2)); do
    grep -qF -- "${options[i]} ${options[i + 1]}" "$here/docs/INSTALL.md" || fail "docs/INSTALL.md lacks ${options[i]} ${options[i + 1]}"
done
containers=()
work=$(mktemp -d)
remove() {
    rm -rf "$work"
    [ ${#containers[@]} = 0 ] || docker rm --force --volumes "${containers[@]}" >/dev/null
    docker rmi "$name" "$name-native" >/dev/null 2>&1 || true
}
trap remove EXIT

[ -e "$root" ] || "$here/packaging/image-root.sh" "$root"
"$here/packaging/archive.sh" "$(uname -m)-linux" "$binary" "$work"
"$here/packaging/images.sh" "$work" "$root" "$name"
docker rmi "$name" "$name-native" >/dev/null
docker load --quiet --input "$work"/*-images.tar.gz

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Starts a server, waits for /healthz and runs code in it. The engine of tests has no bridge, so the port is one of the host.
serve() { # IMAGE BACKEND OPTION...
    local image=$1 backend=$2 port container result
    shift 2
    port=$(free_port)
    container=$(docker run --detach --network host --env SKILLBOX_API_HOST=127.0.0.1 --env "SKILLBOX_API_PORT=$port" "$@" "$image")
    containers+=("$container")
    curl --fail --silent --show-error --retry 100 --retry-delay 1 --retry-connrefused --max-time 60 "http://127.0.0.1:$port/healthz" >/dev/null || {
        docker logs "$container" >&2
        fail "$image does not answer"
    }
    result=$(printf 'print(6 * 7)\n6 * 7\n' | timeout 60 docker exec --interactive --env "SKILLBOX_SERVER_URL=http://127.0.0.1:$port" \
        "$container" /usr/local/bin/skillbox run - --lang python --format json) || fail "$image runs no code: $result"
    grep -q '"success"' <<<"$result" || fail "$image: $result"
    grep -q "\"$backend\"" <<<"$result" || fail "$image did not run on $backend: $result"
    echo "$image serves and runs code on $backend"
}

serve "$name-native" native "${options[@]}"
images=()
for image in "${!SKILLBOX_IMAGE_@}"; do images+=(--env "$image"); done
serve "$name" docker --volume "${DOCKER_HOST#unix://}:/var/run/docker.sock" "${images[@]}"

doctor() { timeout 120 docker run --rm --network none "$@" "$name-native" doctor 2>&1; }
code=0
said=$(doctor --cap-drop ALL) || code=$?
[ "$code" != 0 ] || fail "doctor succeeds without the options: $said"
for option in "${options[@]:2}"; do
    # Only where a kernel has AppArmor does its profile hinder.
    [ "$option" != apparmor=unconfined ] || [ -e /sys/kernel/security/apparmor ] || continue
    grep -qF -- "$option" <<<"$said" || fail "doctor does not name $option: $said"
done
said=$(doctor "${options[@]}") || fail "doctor fails with the options: $said"
for language in python node bash; do
    grep -q "a $language skill ran in native" <<<"$said" || fail "$language does not run: $said"
done
# Each option is needed: without it, doctor names it and no other.
without() { # FLAG VALUE
    local kept=() i
    for ((i = 0; i < ${#options[@]}; i += 2)); do
        [ "${options[i]} ${options[i + 1]}" = "$1 $2" ] || kept+=("${options[i]}" "${options[i + 1]}")
    done
    said=$(doctor "${kept[@]}") && fail "doctor succeeds without $1 $2"
    grep -F "docker run $1 $2 …" <<<"$said" >/dev/null || fail "doctor without $1 $2: $said"
}
for capability in KILL SETGID SETUID SYS_ADMIN SYS_PTRACE; do
    [ $capability = SYS_ADMIN ] || without --cap-add $capability
done
without --security-opt seccomp=unconfined
without --security-opt systempaths=unconfined
echo "doctor names the options that a container lacks"
