#!/usr/bin/env bash
# Installs what `cargo bench --bench peers` compares with: bubblewrap, crun and runc from Debian, llm-sandbox from PyPI.
# Run it as root on Debian or Ubuntu; the bench leaves out what is missing, and says so. Node.js and Docker are not installed
# here: `tests/with-engine.sh` brings an engine.
set -euo pipefail

venv=${SKILLBOX_BENCH_VENV:-/var/cache/skillbox-peers/venv}
llm_sandbox=0.3.46

export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends bubblewrap crun runc python3 python3-venv
if ! "$venv/bin/python" -c 'import llm_sandbox' 2>/dev/null; then
    mkdir -p "$(dirname "$venv")"
    /usr/bin/python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet "llm-sandbox[docker]==$llm_sandbox"
fi
echo "bubblewrap, crun, runc and $venv are there"
