#!/usr/bin/env bash
# The Python package systape, a workspace of its own (python/). `python.sh build` makes the wheel, in target/wheels; `python.sh test` tests
# it beside what analyze export parquet writes, with the newest polars and with the oldest that is supported; `python.sh lint` runs clippy
# and the checkers of types.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# what setup.sh installed
tools=$target/python-venv
export CARGO_TARGET_DIR=$target
# dev: minutes less to build, the same answers
profile=${PROFILE:-release}

wheel() {
    "$tools/bin/maturin" build -q --locked --profile "$profile" --manifest-path python/Cargo.toml --interpreter "$tools/bin/python3" --out "$target/wheels" --compatibility linux
    "$tools/bin/python3" -m pip install -q --disable-pip-version-check --force-reinstall --no-deps "$target"/wheels/systape-*.whl
}

case ${1:-} in
build)
    wheel
    ls -l "$target"/wheels/systape-*.whl
    ;;
test)
    wheel
    SQL=yes scripts/sql.sh build-for-tests
    export ANALYZE_SQL=${ANALYZE_SQL:-$(ls -t "$target"/{release,quick}/analyze-sql 2>/dev/null | head -n 1)}
    "$tools/bin/python3" -m pytest -q python/tests
    # the oldest polars there may be: its plans and predicates have another form
    PYTHONPATH=$target/python-oldest "$tools/bin/python3" -m pytest -q python/tests/test_queries.py
    ;;
lint)
    cargo clippy --locked --all-targets --manifest-path python/Cargo.toml -- -D warnings
    "$tools/bin/mypy" --strict python/systape
    ;;
*)
    echo "usage: scripts/python.sh build|test|lint" >&2
    exit 2
    ;;
esac
