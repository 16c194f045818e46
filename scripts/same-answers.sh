#!/usr/bin/env bash
# Asks tapes of two builds of `analyze`, this machine's and one of arm64 that qemu-user runs, and compares the text:
#
#   scripts/same-answers.sh ANALYZE ARM_ANALYZE TAPE...
#
# Prints TAPE:REPORT of each answer that differs, and what differs. Fails if one does.
set -euo pipefail

analyze=$(realpath "$1") arm=$(realpath "$2")
shift 2
ask() { # program and words, in its own words of the tape and its own errors
    # no sandbox: qemu-user makes calls of its own
    timeout 300 "$@" --no-sandbox 2>&1 || echo "status $?"
}
failed=0
for tape; do
    for report in 'trace -s' trace summary why kills exec states sched block net files 'callgraph --folded' info; do
        # shellcheck disable=SC2086 # words
        if ! said=$(diff <(ask "$analyze" $report "$tape") <(ask qemu-aarch64-static "$arm" $report "$tape")); then
            printf '%s:%s\n%s\n' "$tape" "$report" "$(head -n 5 <<<"$said")"
            failed=1
        fi
    done
done
exit $failed
