#!/usr/bin/env bash
# Runs every test; `test.sh unit` those that record nothing, `test.sh e2e` the others. `make test` runs this, after setup.sh.
# BPF can be loaded by root only: a user's tests run as the user, those of package systape-e2e through sudo.
set -euo pipefail
cd "$(dirname "$0")/.."

what=all
case ${1:-} in unit | e2e | all)
    what=$1
    shift
    ;;
esac
if [ -n "${CI:-}" ]; then export SYSTAPE_REQUIRE_BPF=1; fi
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# what failed beside others and passed alone, over all runs: a line each with the day and the commit
flaky=$target/flaky.txt

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# again LOG: each test of systape-e2e that failed there once more, alone. Whoever shares the machine takes the time of a recorder, and no
# recording is repeatable; the other packages' tests are, and are not run again. What passes alone is told, and is to be mended.
again() {
    local binary='' name='' count=0 bad=0
    while read -r binary name; do
        count=$((count + 1))
        if [ "$name" = '?' ] || ! grep -q ' e2e/tests/' "$binary.d" || [ "$count" -gt 5 ]; then
            echo "test: FAILED $binary $name" >&2
            bad=1
        elif (cd e2e && "$binary" --exact "$name"); then
            echo "test: FLAKY $name failed beside others and passes alone" >&2
            echo "$(date -u +%F) $(git rev-parse --short HEAD 2>/dev/null || echo '?') $(basename "${binary%-*}")::$name" >>"$flaky"
        else
            echo "test: FAILED $binary $name, alone too" >&2
            bad=1
        fi
    done < <(failures "$1")
    [ "$count" -gt 0 ] && [ "$bad" = 0 ]
}

# failures LOG: program and test that failed; ? = it did not come to say which, or it is no program of ours
failures() {
    awk -v here="$PWD" '
        function tell() { if (named != failed) print binary, "?" }
        /^     Running .*\(.*\)$/ { tell(); binary = $0; sub(/^.*\(/, "", binary); sub(/\)$/, "", binary)
            if (binary !~ /^\//) binary = here "/" binary
            named = failed = 0 }
        /^   Doc-tests / { tell(); binary = "doc"; named = failed = 0 }
        /^test .* \.\.\. FAILED$/ { print binary, $2; named = 1; failed = 1 }
        /^error: test failed|^error: doctest failed/ { failed = 1 }
        /^error: could not|^error: process didn/ { print "cargo", "?" }
        END { tell() }' "$1"
}

# Tests that ask very many questions in their own process: without optimization they take ten minutes instead of two.
heavy=(--test heavy)

# record and analyze as users have them, for what asks programs; and the heavy tests, because one build makes both
release() {
    cargo build --release -p systape-recorder -p systape-analyzer -p systape --bins "${heavy[@]}" || return 1
    export SYSTAPE_BIN_DIR=$target/release
}

# cargo's dev profile: our crates are built in a third of the time, and check what overflows. Always the whole workspace: of parts of it
# dependencies have other features, and would be built again. Examples are not linked for nothing: clippy looks at them
unit() {
    local failed=0
    release || return 1
    cargo test --workspace --no-fail-fast --lib --bins --tests "$@" || failed=1
    cargo test --workspace --no-fail-fast --doc "$@" || failed=1
    cargo test --release -p systape-recorder -p systape-analyzer --no-fail-fast "${heavy[@]}" "$@" || failed=1
    return "$failed"
}

# black boxes: record and analyze as users have them. Tests that bear others beside them run so, most of their time is waiting; the others
# are alone (Lab::with_bpf in e2e/src/lab.rs)
e2e() {
    local triple beside=(-- --test-threads 4)
    release || return 1
    if [ "$(id -u)" = 0 ]; then
        cargo test --workspace --test all --no-fail-fast "$@" "${beside[@]}" 2>&1 | tee "$log" || again "$log"
    elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
        triple=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
        env "CARGO_TARGET_${triple}_RUNNER=$PWD/scripts/as-root.sh" SYSTAPE_REQUIRE_BPF=1 \
            cargo test --workspace --test all --no-fail-fast "$@" "${beside[@]}"
    else
        echo >&2
        echo "test: SKIPPED package systape-e2e: its tests load BPF programs, which needs root, and there is no sudo." >&2
        echo "test: run 'make test' as root for all of it." >&2
    fi
}

failed=0
if [ "$what" != e2e ]; then
    unit "$@" || failed=1
    echo "test: tests that record nothing: $SECONDS s"
fi
began=$SECONDS
if [ "$what" != unit ]; then
    e2e "$@" || failed=1
    echo "test: tests that record: $((SECONDS - began)) s"
fi
exit $failed
