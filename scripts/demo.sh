#!/usr/bin/env bash
# Builds the programs, records a small service with a fault in it, and finds that. `make demo` runs this.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=${CARGO_TARGET_DIR:-target}/release
[ -x "$bin/systape" ] || echo "demo: the build takes about five minutes on two CPUs, and 1 GB of disk in ${bin%/release}" >&2
scripts/setup.sh build
cargo build --release -p systape-recorder -p systape-analyzer -p systape
if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    echo "demo: built, but recording needs root (or CAP_BPF and CAP_PERFMON) and there is no sudo. As root: $bin/systape demo" >&2
    exit 1
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/systape-demo.XXXXXX")
scripts/as-root.sh "$bin/systape" demo "$dir"
# the tape and the page are for whoever typed this
scripts/as-root.sh chown -R "$(id -u)" "$dir"
echo "More questions: $bin/analyze --help"
