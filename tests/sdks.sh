#!/usr/bin/env bash
# Tests the client libraries of web/sdk against a server. See usage() below.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)

usage() {
    cat <<USAGE
Usage: tests/sdks.sh BINARY [go|python|typescript]...

Starts the server BINARY with native sandboxes. Then, for each language (all by default): checks types, runs the library's own tests, installs the
package by the tool of the language, runs the example of its README, and kills a server 200 times while programs run
(SKILLBOX_TEST_KILLS): no program may run twice. Needs curl, Python with venv, npm and Go; Go is installed from Debian's packages if it is missing.
USAGE
}

[ $# -ge 1 ] || { usage >&2; exit 64; }
SKILLBOX_TEST_BINARY=$(realpath "$1")
export SKILLBOX_TEST_BINARY
shift
languages=("${@:-go}")
[ $# != 0 ] || languages=(go python typescript)

if [[ " ${languages[*]} " == *" go "* ]] && ! command -v go >/dev/null; then
    { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; } || { echo "sdks: install Go 1.19 or newer" >&2; exit 69; }
    install() { apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends golang-go; }
    log=$(install 2>&1 </dev/null) || { apt-get -q update >/dev/null && log=$(install 2>&1 </dev/null); } ||
        { tail -n 20 <<<"$log" >&2; echo "sdks: cannot install golang-go" >&2; exit 69; }
fi

folder=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || { kill "$server" && wait "$server" || true; }
    chmod -R u+w "$folder"
    rm -rf "$folder"
}
trap finish EXIT
cp -r "$repository/web/sdk" "$folder/sdk"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
SKILLBOX_DATA_DIR=$folder/data SKILLBOX_API_PORT=$port SKILLBOX_SANDBOX_BACKEND=native \
    "$SKILLBOX_TEST_BINARY" serve >"$folder/server.log" 2>&1 &
server=$!
export SKILLBOX_SERVER_URL=http://127.0.0.1:$port
curl -sf --retry 60 --retry-delay 1 --retry-all-errors --max-time 60 "$SKILLBOX_SERVER_URL/readyz" >/dev/null ||
    { cat "$folder/server.log" >&2; exit 1; }
SKILLBOX_API_KEY=$(cat "$folder/data/admin.key")
export SKILLBOX_API_KEY PYTHONDONTWRITEBYTECODE=1
# Go gets nothing from a network: the library has no dependencies.
export GOPROXY=off GOFLAGS=-mod=mod GOTOOLCHAIN=local GOCACHE=$folder/go-cache GOPATH=$folder/go-path

block() { # LANGUAGE: the first such block of the README
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/!p;/^\`\`\`\$/q}" README.md
}

expect_example() { # reads what the example of the README printed
    diff <(block text) - || { echo "sdks: the example of $PWD/README.md printed something else" >&2; exit 1; }
}

check_length() { # LANGUAGE
    [ "$(block "$1" | grep -c .)" -le 10 ] || { echo "sdks: the example of $PWD/README.md has more than 10 lines" >&2; exit 1; }
}

test_go() {
    cd "$folder/sdk/go"
    go version
    [ -z "$(gofmt -l .)" ] || { gofmt -d . >&2; exit 1; }
    go vet ./...
    go test ./...
    check_length go
    mkdir "$folder/go-example"
    {
        printf 'package main\n\nimport (\n\t"context"\n\t"fmt"\n\t"log"\n\t"os"\n\n\tskillbox "%s"\n)\n\nfunc main() {\n' "$(sed -n 's/^module //p' go.mod)"
        block go
        echo '}'
    } >"$folder/go-example/main.go"
    (
        cd "$folder/go-example"
        go mod init example
        module=$(sed -n 's/^module //p' ../sdk/go/go.mod)
        go mod edit -replace "$module=../sdk/go" -require "$module@v0.0.0"
        go vet .
        go run .
    ) >"$folder/go-printed"
    expect_example <"$folder/go-printed"
}

test_python() {
    cd "$folder/sdk/python"
    /usr/bin/python3 --version
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet mypy==2.4.1 vermin==1.9.2 "$folder/sdk/python"
    "$folder/venv/bin/mypy"
    # A branch for 3.11 imports `Unpack`.
    "$folder/venv/bin/vermin" --quiet --target=3.9- --no-tips --violations --exclude typing.Unpack skillbox
    /usr/bin/python3 -m unittest
    check_length python
    # Outside of the folder, so that the installed package is imported.
    mkdir "$folder/python-example"
    block python >"$folder/python-example/example.py"
    "$folder/venv/bin/mypy" --strict "$folder/python-example/example.py"
    (cd "$folder/python-example" && "$folder/venv/bin/python" example.py) >"$folder/python-printed"
    expect_example <"$folder/python-printed"
}

test_typescript() {
    local node
    mkdir "$folder/node-example"
    cd "$folder/sdk/typescript"
    check_length js
    block js >"$folder/node-example/example.mts"
    (
        cd "$folder/node-example"
        echo '{"type": "module"}' >package.json
        npm install --silent --no-audit --no-fund ../sdk/typescript typescript@7.0.2 typescript5@npm:typescript@5.9.3 @types/node@22.20.5 \
            node18@npm:node@18.20.8 node20@npm:node@20.20.2 node22@npm:node@22.23.3
        node_modules/.bin/tsc --project ../sdk/typescript
        for compiler in typescript typescript5; do
            node "node_modules/$compiler/bin/tsc" --strict --module nodenext --target es2022 --types node example.mts
        done
    )
    for node in "$folder"/node-example/node_modules/node{18,20,22}/bin/node; do
        "$node" --version
        (PATH=$(dirname "$node"):$PATH && node --test) >"$folder/node-tests" || { cat "$folder/node-tests" >&2; exit 1; }
        grep -E '(pass|skipped) [0-9]' "$folder/node-tests"
        if [ "$("$node" -p 'process.versions.node.split(".")[0]')" = 22 ]; then
            (SKILLBOX_SDK_TEST_LONG=1 "$node" --test tests/archives.test.js) >"$folder/node-tests" || { cat "$folder/node-tests" >&2; exit 1; }
        fi
        (cd "$folder/node-example" && "$node" example.mjs) >"$folder/node-printed"
        expect_example <"$folder/node-printed"
    done
    # In Chromium, if that is installed.
    SKILLBOX_SDK_TEST_LONG=1 node --test tests/browser.test.js >"$folder/browser-tests" || { cat "$folder/browser-tests" >&2; exit 1; }
}

kill_go() { cd "$folder/sdk/go" && go test -count=1 -v -run TestServerKilled ./... | grep -v '^=== '; }
kill_python() { cd "$folder/sdk/python" && /usr/bin/python3 -m unittest tests.test_kills; }
kill_typescript() { cd "$folder/sdk/typescript" && node --test tests/killed.test.js; }

for language in "${languages[@]}"; do
    echo "-- $language"
    ("test_$language")
done

began=$SECONDS
waiting=()
for language in "${languages[@]}"; do
    (SKILLBOX_SDK_TEST_LONG=1 "kill_$language") >"$folder/kill-$language.log" 2>&1 &
    waiting+=("$language:$!")
done
failed=
for entry in "${waiting[@]}"; do
    wait "${entry#*:}" || { failed=1; echo "-- ${entry%:*}: the test with a killed server failed" >&2; }
    tail -n 30 "$folder/kill-${entry%:*}.log"
done
[ -z "$failed" ] || exit 1
echo "servers were killed while programs ran, in $((SECONDS - began)) s; no program ran twice"
