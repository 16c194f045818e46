#!/usr/bin/env bash
# The Python package systape, a workspace of its own (python/). `python.sh build` makes the wheel, in target/wheels; `python.sh dist` makes
# what PyPI takes, in target/dist; `python.sh test` tests the wheel beside what analyze export parquet writes, with the newest polars and with
# the oldest that is supported; `python.sh lint` runs clippy and the checkers of types.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# what setup.sh installed
tools=$target/python-venv
export CARGO_TARGET_DIR=$target
# dev: minutes less to build, the same answers
profile=${PROFILE:-release}

# most bytes of the module in a wheel
MOST=15000000

# licences of what is linked into a wheel
third_party() {
    (cd python && TARGET=${1:-x86_64-unknown-linux-gnu} ../scripts/third-party.py licences systape-python >THIRD-PARTY)
}

# what is in a wheel: the module, its size, the licences
check_wheel() {
    "$tools/bin/python3" - "$1" $MOST <<'END'
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
[module] = [entry for entry in wheel.infolist() if entry.filename.endswith(".so")]
names = {name.rsplit("/", 1)[-1] for name in wheel.namelist()}
missing = {"LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY", "py.typed", "_native.pyi"} - names
if missing or module.file_size > int(sys.argv[2]):
    sys.exit(f"{sys.argv[1]}: without {missing}, or too large: {module.file_size} bytes")
print(f"{sys.argv[1]}: {sum(entry.compress_size for entry in wheel.infolist())} bytes, {module.filename} has {module.file_size}")
END
}

wheel() {
    third_party
    "$tools/bin/maturin" build -q --locked --profile "$profile" --manifest-path python/Cargo.toml --interpreter "$tools/bin/python3" --out "$target/wheels" --compatibility linux
    "$tools/bin/python3" -m pip install -q --disable-pip-version-check --force-reinstall --no-deps "$target"/wheels/systape-*.whl
}

case ${1:-} in
build)
    wheel
    check_wheel "$target"/wheels/systape-*.whl
    ;;
dist)
    # zig links against the oldest glibc that Rust's library takes, also for another machine
    "$tools/bin/python3" -m ziglang version >/dev/null 2>&1 || { echo "python: ziglang is missing: scripts/setup.sh python-dist" >&2; exit 1; }
    for machine in x86_64 aarch64; do
        third_party "$machine-unknown-linux-gnu"
        PATH=$tools/bin:$PATH "$tools/bin/maturin" build -q --locked --profile release --zig --target "$machine-unknown-linux-gnu" \
            --manifest-path python/Cargo.toml --out "$target/dist" --compatibility manylinux2014
        check_wheel "$target"/dist/systape-*"$machine".whl
    done
    third_party
    "$tools/bin/maturin" sdist --manifest-path python/Cargo.toml --out "$target/dist"
    ls -l "$target"/dist/systape-*.tar.gz
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
    echo "usage: scripts/python.sh build|dist|test|lint" >&2
    exit 2
    ;;
esac
