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

log=$(mktemp) as_root=
trap 'rm -f "$log"' EXIT

# again LOG: each test of systape-e2e that failed there once more, alone. Whoever shares the machine takes the time of a recorder, and no
# recording is repeatable; the other packages' tests are, and are not run again. What passes alone is told, and is to be mended.
again() {
    local binary='' name='' count=0 bad=0
    while read -r binary name; do
        count=$((count + 1))
        if [ "$name" = '?' ] || [ "$count" -gt 5 ]; then
            echo "test: FAILED $binary $name" >&2
            bad=1
        elif (cd e2e && $as_root "$binary" --exact "$name"); then
            echo "test: FLAKY $name failed beside others and passes alone" >&2
            echo "$(date -u +%F) $(git rev-parse --short HEAD 2>/dev/null || echo '?') $(basename "${binary%-*}")::$name" >>"$flaky"
        else
            echo "test: FAILED $binary $name, alone too" >&2
            bad=1
        fi
    done < <(failures "$1")
    [ "$count" -gt 0 ] && [ "$bad" = 0 ]
}

# failures LOG: program and test that failed; ? = it did not come to say which
failures() {
    awk '/^     Running / { binary = $2; named = 0 }
        /^test .* \.\.\. FAILED$/ { print binary, $2; named = 1 }
        /^test: ended with / && !named { print binary, "?" }' "$1"
}

# Tests that ask many thousand questions in their own process: without optimization they take ten minutes instead of two.
heavy=(--test losses --test mutated --test spill)

# record and analyze as users have them, for what asks programs; and the heavy tests, because one build makes both
release() {
    cargo build --release -p systape-recorder -p systape-analyzer -p systape --bins "${heavy[@]}" || return 1
    export SYSTAPE_BIN_DIR=$target/release
}

# cargo's dev profile: our crates are built in a third of the time, and check what overflows
unit() {
    local failed=0
    release || return 1
    cargo test --workspace --exclude systape-e2e --no-fail-fast "$@" || failed=1
    cargo test --release -p systape-recorder -p systape-analyzer --no-fail-fast "${heavy[@]}" "$@" || failed=1
    return "$failed"
}

# Programs of tests that run beside each other: a test that bears no other beside it waits (Lab::with_bpf in e2e/src/lab.rs).
BESIDE=4

# one [as-root.sh] PROGRAM: what a program of tests says, at once when it is over
one() {
    local out status=0
    out=$(mktemp)
    (cd e2e && exec "$@") >"$out" 2>&1 || status=$?
    {
        flock 9
        {
            printf '     Running %s\n' "${@: -1}"
            cat "$out"
            [ "$status" = 0 ] || printf 'test: ended with %s\n' "$status"
        } | tee -a "$log"
    } 9>>"$log"
    rm -f "$out"
    return "$status"
}

# black boxes: record and analyze as users have them
e2e() {
    release || return 1
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null || ! { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
            echo >&2
            echo "test: SKIPPED package systape-e2e: its tests load BPF programs, which needs root, and there is no sudo." >&2
            echo "test: run 'make test' as root for all of it." >&2
            return 0
        fi
        export SYSTAPE_REQUIRE_BPF=1
        as_root=$PWD/scripts/as-root.sh
    fi
    cargo test -p systape-e2e --no-run || return 1
    export log as_root
    export -f one
    cargo test -p systape-e2e --no-run 2>&1 | sed -n "s|^  Executable .*(\(.*\))$|\1|p" | sed "s|^[^/]|$PWD/&|" |
        xargs -P "$BESIDE" -I{} bash -c 'one $as_root "$1"' one {} || again "$log"
}

failed=0
if [ "$what" != e2e ]; then
    unit "$@" || failed=1
    echo "test: tests that record nothing: $SECONDS s"
fi
began=$SECONDS
if [ "$what" != unit ]; then
    e2e || failed=1
    echo "test: tests that record: $((SECONDS - began)) s"
fi
exit $failed
