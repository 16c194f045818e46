#!/usr/bin/env bash
# Builds record and analyze, records a real program, and asks the tape a few questions. `make demo` runs this.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh build
cargo build --release -p systape-recorder -p systape-analyzer
bin=${CARGO_TARGET_DIR:-target}/release
root=()
dir=$(mktemp -d)
trap '"${root[@]}" rm -rf "$dir"' EXIT
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "demo: built, but recording needs root (or CAP_BPF and CAP_PERFMON) and there is no sudo." >&2
        echo "demo: run as root: $bin/record -o demo.tape -- ls -l /etc; then: $bin/analyze demo.tape" >&2
        exit 1
    fi
    root=(sudo)
fi

width=130
if [ -t 1 ]; then width=$(tput cols 2>/dev/null || echo 130); fi
# show COMMAND LINES: the command as typed and the head of what it prints, cut to the terminal
show() {
    printf '\n$ %s\n' "$1"
    sh -c "$1" | sed -n "1,$2p" | cut -c "1-$width"
}
PATH=$(cd "$bin" && pwd):$PATH
cd "$dir"

printf '\n$ %srecord -o demo.tape -- tar -C / -czf etc.tgz etc\n' "${root:+sudo }"
# tar ends with 1 when a file changed while it was read
"${root[@]}" "$(command -v record)" -o demo.tape -- tar -C / -czf etc.tgz etc || [ $? -lt 125 ]
"${root[@]}" chown "$(id -u)" demo.tape

show "analyze demo.tape -e execve,exit_group" 8     # what ran
show "analyze demo.tape --duration 1" 8             # what took longer than 1 ms
show "analyze demo.tape -e file --failure" 6        # what failed
show "analyze demo.tape --summary --summary-mode total" 16
show "analyze info demo.tape" 40
show "analyze check demo.tape" 4

# the whole machine while something is killed and the disk is written to
work='sleep 60 & sleep 0.3; kill $!; wait; dd if=/dev/zero of=big bs=1M count=8 2>/dev/null; sync'
printf '\n$ %srecord -a -o who.tape -- sh -c '"'%s'\n" "${root:+sudo }" "$work"
"${root[@]}" "$(command -v record)" -a -o who.tape -- sh -c "$work"
"${root[@]}" chown "$(id -u)" who.tape

show "analyze kills who.tape" 6                     # who killed whom
show "analyze exec --tree --comm=sh who.tape" 16    # who started what
show "analyze block --top who.tape" 6               # who used the disks
show "analyze sched latency who.tape" 10            # who waited for a CPU
show "analyze states --at 0.2 who.tape" 8           # what everybody was doing
