#!/usr/bin/env bash
# Runs the commands of docs/GRPC.md and two real clients against a server of its own. See usage() below.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD

usage() {
    cat <<USAGE
Usage: tests/grpc-clients.sh BINARY

Starts the server BINARY with native sandboxes, and calls its gRPC API with grpcio (Python) and @grpc/grpc-js (Node.js): as docs/GRPC.md says,
then each method, with deadlines, two tenants, oversized messages and 1,000 calls of 8 clients at once, after which the server's memory must be
what it was. Needs curl, Python with venv, and npm; downloads packages from PyPI and npm.
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

cp -r "$repository/examples" "$repository/proto" "$folder"
read -r port grpc < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(2)]
for each in sockets: each.bind(("127.0.0.1", 0))
print(*(each.getsockname()[1] for each in sockets))')
SKILLBOX_DATA_DIR=$folder/data SKILLBOX_API_PORT=$port SKILLBOX_GRPC_PORT=$grpc SKILLBOX_SANDBOX_BACKEND=native \
    "$binary" serve >"$folder/server.log" 2>&1 &
server=$!
export SKILLBOX_SERVER_URL=http://127.0.0.1:$port SKILLBOX_GRPC=127.0.0.1:$grpc
curl -sf --retry 60 --retry-delay 1 --retry-all-errors --max-time 60 "$SKILLBOX_SERVER_URL/readyz" >/dev/null ||
    { cat "$folder/server.log" >&2; exit 1; }
SKILLBOX_API_KEY=$(cat "$folder/data/admin.key")
export SKILLBOX_API_KEY

commands=$(sed -n '/^```sh grpc$/,/^```$/{/^```/!p}' docs/GRPC.md)
printed=$(cd "$folder" && timeout 600 bash -euo pipefail -c "$commands")
expected=$'EXECUTION_STATUS_SUCCESS 42\nstdout hello\nNOT_FOUND not_found\nstdout 2\nEXECUTION_STATUS_SUCCESS\nNOT_FOUND'
[ "$printed" = "$expected" ] || { printf 'expected:\n%s\nprinted:\n%s\n' "$expected" "$printed" >&2; exit 1; }
echo "both clients of docs/GRPC.md ran code with a file, read its events and a problem"

cd "$folder"
grpc/venv/bin/pip install --quiet grpcio-health-checking==1.85.1
PYTHONPATH=grpc SKILLBOX_PID=$server grpc/venv/bin/python "$repository/tests/grpc_clients.py"
cp "$repository/tests/grpc_clients.mjs" grpc
node grpc/grpc_clients.mjs grpc/proto/skillbox/v1/skillbox.proto
