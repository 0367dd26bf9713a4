#!/usr/bin/env bash
# Runs the agents of examples/agents with their real SDKs and a scripted model. See usage() below.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD

usage() {
    cat <<USAGE
Usage: tests/agents.sh BINARY [EXAMPLE...]

Starts the server BINARY with native sandboxes and a scripted model, both on loopback, and runs each file of examples/agents: the
model calls a skill, and code twice. Each agent must print what the sandboxes returned. Needs curl, Python 3.10 or newer with venv, and npm;
downloads the SDKs from PyPI and npm.
USAGE
}

[ $# -ge 1 ] || { usage >&2; exit 64; }
case $1 in -*) usage; exit ;; esac
binary=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- openai_sdk.py anthropic_sdk.py langchain_agent.py openai_agents.py vercel_ai.mjs

folder=$(mktemp -d)
started=()
finish() {
    for process in "${started[@]}"; do kill "$process" && wait "$process" || true; done
    rm -rf "$folder"
}
trap finish EXIT
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

mkdir -p "$folder/web"
cp -r "$repository/examples" "$folder"
cp -r "$repository/web/sdk" "$folder/web"
cd "$folder/examples/agents"
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt "$folder/web/sdk/python"
case " $* " in *.mjs*) npm install --silent --no-save --no-audit --no-fund ;; esac

port=$(free_port)
SKILLBOX_DATA_DIR=$folder/data SKILLBOX_API_PORT=$port SKILLBOX_SANDBOX_BACKEND=native \
    "$binary" serve >"$folder/server.log" 2>&1 &
started+=($!)
model=$(free_port)
python3 "$repository/tests/agents_model.py" "$model" 2>"$folder/model.log" &
started+=($!)
export SKILLBOX_SERVER_URL=http://127.0.0.1:$port
curl -sf --retry 60 --retry-delay 1 --retry-all-errors --max-time 60 "$SKILLBOX_SERVER_URL/readyz" >/dev/null ||
    { cat "$folder/server.log" >&2; exit 1; }
SKILLBOX_API_KEY=$(cat "$folder/data/admin.key")
export SKILLBOX_API_KEY
"$folder/venv/bin/python" -c 'from skillbox import Client; Client().register_skill("../skills/text-summary")'

# No SDK may connect to another host: the Agents SDK sends traces unless that is disabled.
export OPENAI_BASE_URL=http://127.0.0.1:$model/v1 OPENAI_API_KEY=none OPENAI_AGENTS_DISABLE_TRACING=1
export ANTHROPIC_BASE_URL=http://127.0.0.1:$model ANTHROPIC_API_KEY=none
digest=$(printf skillbox | sha256sum | cut -d ' ' -f 1)
expected="The text has 6 words, the first code had a NameError, the digest is $digest."
for example; do
    case $example in *.py) runner=$folder/venv/bin/python ;; *) runner=node ;; esac
    printed=$(timeout 120 "$runner" "$example" "How many words, and which digest?" 2>"$folder/error.log") ||
        { cat "$folder/error.log" "$folder/model.log" >&2; echo "$example failed" >&2; exit 1; }
    [ "$printed" = "$expected" ] || { printf '%s printed: %s\nexpected: %s\n' "$example" "$printed" "$expected" >&2; exit 1; }
    echo "$example: $printed"
done
