#!/usr/bin/env bash
# Runs real clients of the Model Context Protocol against a server of its own. See usage() below.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD

usage() {
    cat <<USAGE
Usage: tests/mcp-clients.sh BINARY

Starts the server BINARY with native sandboxes and prints what each client does: the Python SDK and fastmcp, the TypeScript SDK over HTTP and over
stdio, the inspector both ways, and the conformance suite. Needs curl, Python with venv, and npm; downloads packages from PyPI and npm.
USAGE
}

[ $# = 1 ] || { usage >&2; exit 64; }
binary=$(realpath "$1")
folder=$(mktemp -d)
started=()
finish() {
    for process in "${started[@]}"; do kill "$process" 2>/dev/null && wait "$process" || true; done
    rm -rf "$folder"
}
trap finish EXIT
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
fail() { echo "mcp-clients: $*" >&2; exit 1; }

(cd "$folder" && npm init --yes >/dev/null && npm install --silent --no-audit --no-fund node@22 @modelcontextprotocol/sdk@1.32.0 \
    @modelcontextprotocol/inspector@2.12.0 @modelcontextprotocol/conformance@0.1.16) || fail "npm failed"
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet mcp==2.3.0 fastmcp==4.1.0
cp tests/mcp_clients/*.mjs "$folder"
node=$folder/node_modules/node/bin/node

port=$(free_port)
export SKILLBOX_SERVER_URL=http://127.0.0.1:$port
SKILLBOX_DATA_DIR=$folder/data SKILLBOX_API_PORT=$port SKILLBOX_SANDBOX_BACKEND=native "$binary" serve >"$folder/server.log" 2>&1 &
started+=($!)
curl -sf --retry 60 --retry-delay 1 --retry-all-errors --max-time 60 "$SKILLBOX_SERVER_URL/readyz" >/dev/null ||
    { cat "$folder/server.log" >&2; exit 1; }
SKILLBOX_API_KEY=$(cat "$folder/data/admin.key")
export SKILLBOX_API_KEY
"$binary" skill push examples/skills/text-summary >/dev/null
other=$("$binary" key create other --tenant other --format json | python3 -c 'import json, sys; print(json.load(sys.stdin)["api_key"])')

echo "== Python SDK, both generations, two tenants"
timeout 300 "$folder/venv/bin/python" tests/mcp_clients/session.py "$SKILLBOX_SERVER_URL/mcp" "$SKILLBOX_API_KEY" "$other"
echo "== fastmcp"
timeout 120 "$folder/venv/bin/python" tests/mcp_clients/fastmcp_session.py "$SKILLBOX_SERVER_URL/mcp" "$SKILLBOX_API_KEY"
echo "== TypeScript SDK, over HTTP and stdio"
(cd "$folder" && timeout 120 "$node" session.mjs "$SKILLBOX_SERVER_URL/mcp" "$SKILLBOX_API_KEY" "$binary")

ended=$("$binary" exec list --status cancelled --format json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)))')
[ "$ended" = 4 ] || fail "4 runs were cancelled by clients, but $ended executions are"
echo "the 4 long runs that clients cancelled are cancelled"

echo "== inspector, over HTTP and stdio"
inspect() { (cd "$folder" && timeout 120 "$node" node_modules/.bin/mcp-inspector --cli "$@" 2>/dev/null); }
over_http=$(inspect "$SKILLBOX_SERVER_URL/mcp" --transport http --header "Authorization: Bearer $SKILLBOX_API_KEY" --method tools/list)
over_stdio=$(inspect "$binary" mcp --method tools/list -e "SKILLBOX_SERVER_URL=$SKILLBOX_SERVER_URL" -e "SKILLBOX_API_KEY=$SKILLBOX_API_KEY")
grep -q text-summary <<<"$over_http" || fail "the inspector lists no skill over HTTP: $over_http"
[ "$over_http" = "$over_stdio" ] || fail "the inspector lists other tools over stdio: $over_stdio"
echo "the inspector lists the same tools both ways"

echo "== conformance suite"
# Its tools are skills here: a dot of a skill's name is `_` in its tool's.
png=iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==
write_png="import base64; open('/sandbox/out/files/a.png', 'wb').write(base64.b64decode('$png'))"
push() { # NAME CODE
    mkdir -p "$folder/fixtures/$1/scripts"
    printf -- '---\nname: %s\ndescription: Fixture of the conformance suite.\nlang: python\n---\nA fixture.\n' "$1" >"$folder/fixtures/$1/SKILL.md"
    printf '%s\n' "$2" >"$folder/fixtures/$1/scripts/main.py"
    "$binary" skill push "$folder/fixtures/$1" >/dev/null 2>&1 || fail "$1 was not pushed"
}
push test.simple.text "print('This is a simple text response for testing.')"
push test.image.content "$write_png"
push test.embedded.resource "open('/sandbox/out/files/a.txt', 'w').write('This is an embedded resource content.')"
push test.multiple.content.types "print('Multiple content types test:'); open('/sandbox/out/files/a.json', 'w').write('{}'); $write_png"
push test.error.handling "raise SystemExit('This tool intentionally returns an error for testing')"
push test.tool.with.progress "from runtime import log; [log.info(f'step {n}') for n in range(3)]"

# The suite sends no key.
proxy=$(free_port)
(cd "$folder" && exec "$node" add_key.mjs "$proxy" "$SKILLBOX_SERVER_URL" "$SKILLBOX_API_KEY") &
started+=($!)
curl -sf --retry 60 --retry-delay 1 --retry-all-errors --max-time 60 "http://127.0.0.1:$proxy/readyz" >/dev/null
(cd "$folder" && timeout 300 "$node" node_modules/@modelcontextprotocol/conformance/dist/index.js server --url "http://127.0.0.1:$proxy/mcp" >conformance.log 2>&1) || true
sed -n 's/^✓ \(.*\): \([0-9]*\) passed, 0 failed$/passes: \1 (\2)/p' "$folder/conformance.log"
# What is not offered, with the reason. All others must pass.
cat >"$folder/reasons" <<'REASONS'
logging-set-level: levels of the server's log are no capability
completion-complete: no completion
tools-call-audio: audio files are links
tools-call-with-logging: log lines are progress, not log messages
tools-call-sampling: the server sends no requests to clients
tools-call-elicitation: the server sends no requests to clients
elicitation-sep1034-defaults: the server sends no requests to clients
elicitation-sep1330-enums: the server sends no requests to clients
resources-read-text: resources have the schemes skill and skillbox, not test
resources-read-binary: resources have the schemes skill and skillbox, not test
resources-templates-read: resources have the schemes skill and skillbox, not test
resources-subscribe: no subscriptions
resources-unsubscribe: no subscriptions
prompts-list: no prompts
prompts-get-simple: no prompts
prompts-get-with-args: no prompts
prompts-get-embedded-resource: no prompts
prompts-get-with-image: no prompts
REASONS
sed 's/^/not offered: /' "$folder/reasons"
failed=$(sed -n 's/^✗ \(.*\): .*$/\1/p' "$folder/conformance.log" | sort)
expected=$(sed 's/:.*//' "$folder/reasons" | sort)
[ "$failed" = "$expected" ] || { diff <(echo "$expected") <(echo "$failed") >&2 || true; tail -40 "$folder/conformance.log" >&2; fail "other scenarios fail than expected"; }
[ "$(grep -c '^✓' "$folder/conformance.log")" = 12 ] || fail "the suite has other scenarios than expected"
cd "$repository"
