#!/usr/bin/env bash
# Compares a server with its OpenAPI document. See usage() below.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD

usage() {
    cat <<USAGE
Usage: tests/schemathesis.sh BINARY

Starts the server BINARY with native sandboxes and lets schemathesis send requests made from its OpenAPI document, valid and
invalid, with all checks, in all phases, first with a key of the scopes run and skills, then with the administrator's. Any failure ends it with 1.
Takes 2 to 5 minutes. Needs curl and Python with venv; downloads packages from PyPI.

  SCHEMATHESIS_EXAMPLES  requests per operation and phase (50)
  SCHEMATHESIS_SEED      another number makes other requests (1)
USAGE
}

[ $# = 1 ] || { usage >&2; exit 64; }
binary=$(realpath "$1")
folder=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server" || true; }
    rm -rf "$folder"
}
trap finish EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet schemathesis==4.32.5 hypothesis==6.170.15

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
# No package is installed, and no request leaves the machine.
export SKILLBOX_DATA_DIR=$folder/data SKILLBOX_API_PORT=$port SKILLBOX_SANDBOX_BACKEND=native
"$binary" serve >"$folder/server.log" 2>&1 &
server=$!
export SKILLBOX_SERVER_URL=http://127.0.0.1:$port
curl -sf --retry 60 --retry-delay 1 --retry-all-errors --max-time 60 "$SKILLBOX_SERVER_URL/readyz" >/dev/null ||
    { cat "$folder/server.log" >&2; exit 1; }
SKILLBOX_API_KEY=$(cat "$folder/data/admin.key")
export SKILLBOX_API_KEY

# Also something to find: a skill and a blob.
"$binary" skill push examples/skills/text-summary >/dev/null
second=$("$binary" key create second --tenant second --scope run --scope skills --format json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["api_key"])')
SKILLBOX_API_KEY=$second "$binary" skill push examples/skills/text-summary >/dev/null

check() { # NAME KEY
    printf '\n-- %s key\n' "$1"
    (cd "$folder" && SKILLBOX_API_KEY=$2 PYTHONPATH=$repository/tests timeout 400 venv/bin/schemathesis \
        --config-file "$repository/tests/schemathesis.toml" run "$SKILLBOX_SERVER_URL/openapi.json" \
        --checks all --phases examples,coverage,fuzzing,stateful --no-color \
        --seed "${SCHEMATHESIS_SEED:-1}" --max-examples "${SCHEMATHESIS_EXAMPLES:-50}")
}
# The administrator's requests may revoke the second key.
check second "$second"
check administrator "$SKILLBOX_API_KEY"
