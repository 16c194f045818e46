#!/usr/bin/env bash
# Runs every fuzz target for SECONDS (10) each, with the seeds in testdata/fuzz and what earlier runs found in fuzz/corpus.
# Stable Rust is enough: coverage without a sanitizer. `scripts/fuzz.sh 1800 payload reports` runs two targets for half an hour.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-10}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then targets=(open payload reports unwind kallsyms perf_map demangle answers symbol_file static_probes control strace_log); fi
cargo fuzz build --sanitizer none
failed=()
for target in "${targets[@]}"; do
    seeds=("testdata/fuzz/$target")
    case $target in
        open) seeds=(testdata/fuzz/tapes) ;;
        reports) seeds+=(testdata/fuzz/payload) ;;
    esac
    mkdir -p "fuzz/corpus/$target" "${seeds[@]}"
    # no input may take 10 s, no process 512 MiB; of a short run only what it found is worth a line
    log=(-print_final_stats=1)
    if [ "$seconds" -le 60 ]; then log=(-verbosity=0); fi
    echo "fuzz: $target"
    cargo fuzz run --sanitizer none "$target" "fuzz/corpus/$target" "${seeds[@]}" -- -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=512 -max_len=65536 "${log[@]}" || failed+=("$target")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "fuzz: FAILED: ${failed[*]} (inputs in fuzz/artifacts)" >&2
    exit 1
fi
