#!/usr/bin/env bash
# analyze-sql, a workspace of its own (sql/): its engine needs Rust 1.94 and takes minutes to build. `sql.sh build` makes it beside
# analyze, `sql.sh test` compares it with analyze and DuckDB, `sql.sh fleet` what it exports with Spark, `sql.sh lint` runs clippy,
# `sql.sh build-for-tests` makes what other tests compare with.
# SQL=no leaves all out.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${SQL:-yes}" = no ]; then exit 0; fi
minor=$(rustc --version | sed -n 's/^rustc 1\.\([0-9]*\)\..*/\1/p')
if [ -n "$minor" ] && [ "$minor" -lt 94 ]; then
    echo "sql: SKIPPED analyze-sql: its engine needs Rust 1.94 or newer, this is $(rustc --version)" >&2
    exit 0
fi
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# what was built to be used is tested; else a build that takes less time and answers the same
if [ -e "$target/release/analyze-sql" ]; then profile=release; else profile=quick; fi
# flags for the linker that make the program smaller, those that it knows: equal functions once, relocations packed
flags() {
    local try flag
    try=$(mktemp -d)
    for flag in -Wl,--icf=all -Wl,-z,pack-relative-relocs; do
        if echo 'fn main() {}' | rustc -C link-arg="$flag" -o "$try/it" - 2>/dev/null; then echo -C "link-arg=$flag"; fi
    done
    rm -r "$try"
    echo -C strip=symbols
}
make() { # profile
    # shellcheck disable=SC2046 # words
    cargo rustc --locked --profile "$1" --bin analyze-sql --manifest-path sql/Cargo.toml --target-dir "$target" -- $(flags)
}

case ${1:-} in
flags)
    flags
    ;;
build)
    make release
    ;;
test)
    make "$profile"
    PYTHONPATH=$PWD/target/python ANALYZE=$target/release/analyze ANALYZE_SQL=$target/$profile/analyze-sql \
        python3 sql/tests/against_duckdb.py
    ;;
build-for-tests)
    make "$profile"
    ;;
fleet)
    make "$profile"
    PYTHONPATH=$PWD/target/python:$PWD/target/spark ANALYZE=$target/release/analyze ANALYZE_SQL=$target/$profile/analyze-sql \
        BENCH=$target/release/bench python3 fleet/test_fleet.py
    ;;
lint)
    cargo clippy --locked --profile "$profile" --all-targets --manifest-path sql/Cargo.toml --target-dir "$target" -- -D warnings
    ;;
*)
    echo "usage: scripts/sql.sh flags|build|build-for-tests|test|fleet|lint" >&2
    exit 2
    ;;
esac
