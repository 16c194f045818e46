#!/usr/bin/env bash
# Type-checks for machines that nothing is built on: `record` for Linux on arm64; `analyze` for Linux and macOS on arm64, and for WebAssembly
# (make viewer links it). No C is compiled for them: a compiler that writes empty objects stands in, so no other system's headers are
# needed, and Rust alone is checked. The BPF programs of arm64 are compiled: clang makes them anywhere.
set -euo pipefail
cd "$(dirname "$0")/.."

# packages, and the targets that they are checked for: all of one line at once, so that no CPU waits for the last crate of a target
checks=(
    "systape-recorder systape-analyzer: aarch64-unknown-linux-gnu"
    "systape-analyzer: aarch64-apple-darwin wasm32-wasip1"
)
targets=()
for check in "${checks[@]}"; do
    read -ra more <<<"${check#*:}"
    targets+=("${more[@]}")
done
if ! command -v rustup >/dev/null || ! rustup target add "${targets[@]}" 2>/dev/null; then
    echo "cross: SKIPPED: rustup has no ${targets[*]} here" >&2
    exit 0
fi
stub=$(mktemp -d)
trap 'rm -rf "$stub"' EXIT
cat >"$stub/cc" <<'END'
#!/bin/sh
while [ $# -gt 0 ]; do
    [ "$1" = -o ] && : >"$2"
    shift
done
END
cat >"$stub/ar" <<'END'
#!/bin/sh
for a; do case $a in *.a) : >"$a" ;; esac; done
END
chmod +x "$stub/cc" "$stub/ar"
# for these targets alone: what runs here while they are checked, the maker of the BPF programs, is linked with real C
for target in "${targets[@]}"; do
    export "CC_${target//-/_}=$stub/cc" "CXX_${target//-/_}=$stub/cc" "AR_${target//-/_}=$stub/ar"
done
# beside the others: paths of stubs are of one run, and would have the C of another compiled again
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/cross
for check in "${checks[@]}"; do
    echo "cross: $check"
    read -ra packages <<<"${check%:*}"
    read -ra for_targets <<<"${check#*:}"
    RUSTFLAGS="-D warnings" cargo check --quiet "${packages[@]/#/--package=}" "${for_targets[@]/#/--target=}"
done
