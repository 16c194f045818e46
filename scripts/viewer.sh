#!/usr/bin/env bash
# The viewer: `analyze` as WebAssembly (`viewer.sh module`), packed with its page into one file (`viewer.sh page`). Without a word: both.
# `viewer.sh test` tests what was made, `viewer.sh shots` makes the pictures of docs/guides/viewer.md too.
#
# It needs rustup's target wasm32-wasip1, clang and llvm-ar for the C of zstd, and node to pack. There is no other system's library in
# it: zstd's crate has the headers that its C needs.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
module=$target/viewer/analyze.wasm
# the largest memory that a report may have: past that it ends with a sentence (viewer/worker.js), not with the browser
most=$((1 << 30))
# as much stack as the first thread of a program has
stack=$((8 << 20))

build() {
    if ! command -v rustup >/dev/null || ! rustup target add wasm32-wasip1 2>/dev/null; then
        echo "viewer: it needs rustup, and its target wasm32-wasip1" >&2
        exit 1
    fi
    local clang ar
    clang=$(command -v clang) || {
        echo "viewer: there is no clang (scripts/setup.sh build installs it)" >&2
        exit 1
    }
    # binutils' ar makes archives without an index of such objects
    ar=$(command -v llvm-ar || find /usr/lib/llvm-*/bin -name llvm-ar | tail -n 1)
    local flags="-C link-arg=--max-memory=$most -C link-arg=-zstack-size=$stack"
    # paths of this machine are in no program
    flags+=" --remap-path-prefix=$PWD=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
    # no header of this machine: the compiler's own, and those of zstd's crate
    CC_wasm32_wasip1=$clang AR_wasm32_wasip1=$ar CFLAGS_wasm32_wasip1="-ffreestanding -fbuiltin -nostdlibinc" \
        CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS=$flags \
        cargo build --profile viewer --package systape-analyzer --bin analyze --target wasm32-wasip1
    mkdir -p "$target/viewer"
    cp "$target/wasm32-wasip1/viewer/analyze.wasm" "$module"
}

page() {
    node viewer/pack.mjs "$module" "$target/viewer/systape.html"
}

# what is asked of the module and of the program, and the page in a browser
try() {
    [ -e "$target/viewer/systape.html" ] || {
        echo "viewer: SKIPPED: there is no $target/viewer/systape.html: make viewer" >&2
        exit 0
    }
    node viewer/test/worker.mjs
    node viewer/test/parity.mjs
    node viewer/test/damage.mjs
    node viewer/test/browser.mjs "$(realpath "$target/browser")" "$(command -v chromium)" "$@"
    node viewer/test/firefox.mjs "$(realpath "$target/browser")"
}

case ${1:-all} in
    module) build ;;
    page) page ;;
    test) try ;;
    shots) try docs/images ;;
    all)
        build
        page
        ;;
    *)
        echo "viewer.sh: module, page, test or shots" >&2
        exit 2
        ;;
esac
