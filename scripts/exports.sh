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

# of each kind: whole, with samples, with losses, of several kernels, before there were families
python3 $checks/check_perfetto.py $tapes/{mix-1.5,stacks-1.2,ledger-1.3,kernel-6.1-mix,kernel-6.12-sh,mix-1.1}.tape
python3 $checks/check_firefox.py $tapes/{mix-1.5,stacks-1.2,ledger-1.3,kernel-6.1-mix,kernel-6.12-sh,mix-1.1}.tape
# lines of JSON beside their schemas
python3 $checks/check_schema.py $tapes/*.tape
python3 $checks/check_pprof.py $tapes/stacks-1.2.tape cpu syscall offcpu block signal
# the official client of the Model Context Protocol asks every tool
PYTHONPATH=$PWD/target/mcp python3 $checks/check_mcp.py $tapes/{mix-1.5,ledger-1.3,kernel-6.12-sh}.tape

# with root strace's listings are compared with recordings
record=${ANALYZE%analyze}record
if [ "$(id -u)" = 0 ] && [ -x "$record" ]; then
    export RECORD=$record
    # a fresh one with more stacks than the tapes there are
    fresh=$(mktemp -d)
    trap 'rm -rf "$fresh"' EXIT
    "$record" -o "$fresh/t.tape" -g -F 99 -- sh -c 'seq 100000 | sort -R | sort | sha256sum >/dev/null; sleep 0.1'
    python3 $checks/check_firefox.py "$fresh/t.tape"
elif [ -n "${CI:-}" ]; then
    echo "exports: recording beside strace needs root and target/release/record" >&2
    exit 1
else
    echo "exports: SKIPPED beside strace: recording needs root and target/release/record" >&2
fi
python3 $checks/check_strace.py $tapes/*.tape
