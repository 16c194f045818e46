#!/usr/bin/env bash
# Builds record and analyze, records a real program, and asks the tape a few questions. `make demo` runs this.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh build
cargo build --release -p systape-recorder -p systape-analyzer
bin=${CARGO_TARGET_DIR:-target}/release
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tape=$dir/demo.tape

root=()
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "demo: built, but recording needs root (or CAP_BPF and CAP_PERFMON) and there is no sudo." >&2
        echo "demo: run as root: $bin/record -o demo.tape -- ls -l /etc; then: $bin/analyze demo.tape" >&2
        exit 1
    fi
    root=(sudo)
fi

width=100
if [ -t 1 ]; then width=$(tput cols 2>/dev/null || echo 100); fi
# show COMMAND LINES: the command as typed and the head of what it prints, cut to the terminal
show() {
    printf '\n$ %s\n' "$1"
    sh -c "$1" | sed -n "1,$2p" | cut -c "1-$width"
}
PATH=$(cd "$bin" && pwd):$PATH
cd "$dir"

program="find /etc -name '*.conf' -newer /etc/hostname -exec head -c 64 {} +"
printf '\n$ %srecord -o demo.tape -- %s > /dev/null\n' "${root:+sudo }" "$program"
# head complains about files it may not read: part of the demo
"${root[@]}" "$(command -v record)" -o "$tape" -- sh -c "$program" >/dev/null || [ $? -lt 125 ]
"${root[@]}" chown "$(id -u)" "$tape"

show "analyze demo.tape" 12
show "analyze demo.tape -e file --failure" 8
show "analyze demo.tape --summary --summary-mode process" 24
show "analyze info demo.tape" 40
show "analyze check demo.tape" 4
