#!/usr/bin/env bash
# What analyze export writes, read by the programs that it is for: trace_processor and Perfetto's protos, the Firefox Profiler's loader, go
# tool pprof, a parser of strace's listings; JSON beside its schemas; analyze mcp asked by a client; and strace beside a recording of the
# same programs. Part of `make test`; alone: make test-exports.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
export PYTHONPATH=$PWD/target/python ANALYZE=$PWD/$target/release/analyze TRACE_PROCESSOR=$PWD/target/trace_processor
export PROFILER_CLI=$PWD/target/profiler_cli
case $target in /*) ANALYZE=$target/release/analyze ;; esac
checks=analyzer/tests/exports tapes=testdata/tapes

# with root fresh ones beside those that there are: with more stacks, with exchanges on connections, of looks at all threads
record=${ANALYZE%analyze}record
fresh=
if [ "$(id -u)" = 0 ] && [ -x "$record" ]; then
    export RECORD=$record
    fresh=$(mktemp -d)
    trap 'rm -rf "$fresh"' EXIT
    "$record" -o "$fresh/stacks-fresh.tape" -g -F 99 -- sh -c 'seq 100000 | sort -R | sort | sha256sum >/dev/null; sleep 0.1'
    "$record" -o "$fresh/exchanges-fresh.tape" -- python3 $checks/exchanges.py
    "$record" -o "$fresh/looks-fresh.tape" --sample 50 -- python3 $checks/exchanges.py
elif [ -n "${CI:-}" ]; then
    echo "exports: recording needs root and target/release/record" >&2
    exit 1
else
    echo "exports: SKIPPED tapes of its own, and those beside strace: recording needs root and target/release/record" >&2
fi
# tapes that there are, or none
new=()
[ -z "$fresh" ] || new=("$fresh"/*.tape)

# of each kind: whole, with samples, with losses, of several kernels, before there were families
python3 $checks/check_perfetto.py $tapes/{mix-1.5,stacks-1.2,ledger-1.3,kernel-6.1-mix,kernel-6.12-sh,mix-1.1}.tape "${new[@]}"
python3 $checks/check_firefox.py $tapes/{mix-1.5,stacks-1.2,ledger-1.3,kernel-6.1-mix,kernel-6.12-sh,mix-1.1}.tape "${new[@]}"
# lines of JSON beside their schemas
python3 $checks/check_schema.py $tapes/*.tape "${new[@]}"
python3 $checks/check_pprof.py $tapes/stacks-1.2.tape cpu syscall offcpu block signal
# the official client of the Model Context Protocol asks every tool
PYTHONPATH=$PWD/target/mcp python3 $checks/check_mcp.py $tapes/{mix-1.5,ledger-1.3,kernel-6.12-sh}.tape "${new[@]}"

# with root strace's listings are compared with recordings
python3 $checks/check_strace.py $tapes/*.tape
