#!/usr/bin/env bash
# Type-checks for machines that nothing is built on: `analyze` for Linux and macOS on arm64, and for WebAssembly (make viewer links it).
# No C is compiled for them: a compiler that writes empty objects stands in, so no other system's headers are needed, and Rust alone is
# checked.
set -euo pipefail
cd "$(dirname "$0")/.."

# packages, and the targets that they are checked for: all of one line at once, so that no CPU waits for the last crate of a target
checks=(
    "systape-analyzer: aarch64-unknown-linux-gnu aarch64-apple-darwin wasm32-wasip1"
)
read -ra targets <<<"${checks[*]#*:}"
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
export CC=$stub/cc CXX=$stub/cc AR=$stub/ar CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/cross
for check in "${checks[@]}"; do
    echo "cross: $check"
    read -ra packages <<<"${check%:*}"
    read -ra for_targets <<<"${check#*:}"
    RUSTFLAGS="-D warnings" cargo check --quiet "${packages[@]/#/--package=}" "${for_targets[@]/#/--target=}"
done
