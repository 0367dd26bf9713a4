#!/usr/bin/env bash
# Runs the commands of docs/CLIENTS.md against a server of its own. See usage() below.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD

usage() {
    cat <<USAGE
Usage: tests/clients.sh BINARY

Starts the server BINARY with native sandboxes, generates a Python and a TypeScript client from its OpenAPI document as
docs/CLIENTS.md says, and runs both. Needs curl, Python with venv, and npm; downloads packages from PyPI and npm.
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

cp -r "$repository/examples" "$folder"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
SKILLBOX_DATA_DIR=$folder/data SKILLBOX_API_PORT=$port SKILLBOX_SANDBOX_BACKEND=native \
    "$binary" serve >"$folder/server.log" 2>&1 &
server=$!
export SKILLBOX_SERVER_URL=http://127.0.0.1:$port
curl -sf --retry 60 --retry-delay 1 --retry-all-errors --max-time 60 "$SKILLBOX_SERVER_URL/readyz" >/dev/null ||
    { cat "$folder/server.log" >&2; exit 1; }
SKILLBOX_API_KEY=$(cat "$folder/data/admin.key")
export SKILLBOX_API_KEY

commands=$(sed -n '/^```sh clients$/,/^```$/{/^```/!p}' docs/CLIENTS.md)
printed=$(cd "$folder" && timeout 300 bash -euo pipefail -c "$commands")
# Once for each client: the skill, the size of the blob, the outcome and the number of its lines.
found=$(grep -cx 'text-summary 1.0.0 21 success 2' <<<"$printed" || true)
[ "$found" = 2 ] || { printf 'expected the result of two clients, found %s in:\n%s\n' "$found" "$printed" >&2; exit 1; }
echo "both generated clients published a skill, uploaded a blob and ran code"
