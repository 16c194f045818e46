#!/usr/bin/env bash
# Builds record and analyze, records a real program, and asks the tape a few questions. `make demo` runs this. The tapes
# stay in a directory of their own, whose name is printed.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh build
cargo build --release -p systape-recorder -p systape-analyzer
bin=${CARGO_TARGET_DIR:-target}/release
root=()
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "demo: built, but recording needs root (or CAP_BPF and CAP_PERFMON) and there is no sudo." >&2
        echo "demo: run as root: $bin/record -o demo.tape -- ls -l /etc; then: $bin/analyze demo.tape" >&2
        exit 1
    fi
    root=(sudo)
fi

dir=$(mktemp -d "${TMPDIR:-/tmp}/systape-demo.XXXXXX")
width=130
if [ -t 1 ]; then width=$(tput cols 2>/dev/null || echo 130); fi
bold='' plain=''
if [ -t 1 ]; then bold=$(tput bold 2>/dev/null || true) plain=$(tput sgr0 2>/dev/null || true); fi
# say CAPTION: what comes next
say() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
# show CAPTION COMMAND LINES: the command as typed and the head of what it prints, cut to the terminal
show() {
    say "$1"
    printf '$ %s\n' "$2"
    sh -c "$2" | sed -n "1,$3p" | cut -c "1-$width"
}
# run CAPTION TAPE OPTIONS... -- COMMAND...: records
run() {
    local caption=$1 tape=$2 status=0
    shift 2
    say "$caption"
    printf '$ %srecord -o %s' "${root:+sudo }" "$tape"
    printf ' %s' "${@@Q}" | sed "s/'\\([-+.,:=@%\/A-Za-z0-9_]*\\)'/\\1/g"
    printf '\n'
    "${root[@]}" "$(command -v record)" -o "$tape" "$@" || status=$?
    # 125 and more: record failed. Less is the command's own; tar ends with 1 when a file changed while it was read
    [ "$status" -lt 125 ] || exit "$status"
    "${root[@]}" chown "$(id -u)" "$tape"
}
PATH=$(cd "$bin" && pwd):$PATH
cd "$dir"

run "Record a backup, with all of its children:" demo.tape -- tar -C / -czf etc.tgz etc
show "Which programs ran?" "analyze demo.tape -e execve,exit_group" 8
show "Which calls took longer than 1 ms?" "analyze demo.tape --duration 1" 8
show "Which calls that name a file failed?" "analyze demo.tape -e file --failure" 6
show "Where did the time go? Calls, errors and times, of all threads together:" \
    "analyze demo.tape --summary --summary-mode total" 16
show "What is on this tape, and was anything lost?" "analyze info demo.tape" 40
show "Is the file whole?" "analyze check demo.tape" 4

work='sleep 60 & sleep 0.3; kill $!; wait; dd if=/dev/zero of=big bs=1M count=8 2>/dev/null; sync'
run "Record the whole machine while a process is killed and the disk is written to:" who.tape -a -- sh -c "$work"
rm -f big
show "Who killed whom?" "analyze kills who.tape" 6
show "Who started what?" "analyze exec --tree --comm=sh who.tape" 16
show "Who used the disks?" "analyze block --top who.tape" 6
show "Who waited for a CPU?" "analyze sched latency who.tape" 10
show "What was everybody doing 0.2 s after the start?" "analyze states --at 0.2 who.tape" 8

say "The tapes are in $dir. Ask them more ('analyze --help' has the questions), for example:"
printf '$ %s/analyze -s --by file %s/demo.tape\n' "$(dirname "$(command -v analyze)")" "$dir"
printf 'To delete them: rm -r %s\n' "$dir"
