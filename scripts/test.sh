#!/usr/bin/env bash
# Builds and runs every test. BPF can be loaded by root only: a user's tests run as the user, those of package
# systape-e2e through sudo. `make test` runs this, after setup.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

# one profile for build, tests, lint and demo: one set of compiled dependencies
profile=(--release)
if [ -n "${CI:-}" ]; then export SYSTAPE_REQUIRE_BPF=1; fi

# the black-box tests run these
cargo build "${profile[@]}" --workspace --lib --bins --tests --examples

if [ "$(id -u)" = 0 ]; then
    cargo test "${profile[@]}" --workspace --no-fail-fast "$@"
elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    cargo test "${profile[@]}" --workspace --exclude systape-e2e --no-fail-fast "$@"
    triple=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
    env "CARGO_TARGET_${triple}_RUNNER=$PWD/scripts/as-root.sh" SYSTAPE_REQUIRE_BPF=1 \
        cargo test "${profile[@]}" -p systape-e2e --no-fail-fast "$@"
else
    cargo test "${profile[@]}" --workspace --exclude systape-e2e --no-fail-fast "$@"
    echo >&2
    echo "test: SKIPPED package systape-e2e: its tests load BPF programs, which needs root, and there is no sudo." >&2
    echo "test: run 'make test' as root for all of it." >&2
fi
