# Everyday commands. `make demo` and `make test` need git alone on Debian 12: they install the rest, Rust too, if there is
# no cargo (scripts/setup.sh). What is used, and what black-box tests run, has cargo's release profile; other tests and lints the dev
# profile, which takes a third of the time to build.

PREFIX  ?= /usr/local
DESTDIR ?=
CARGO   ?= cargo
TARGET  := $(or $(CARGO_TARGET_DIR),target)
BIN     := $(TARGET)/release

# what --version names: the commit, with + where something else was built than that; empty outside a clone
SYSTAPE_REVISION := $(or $(SYSTAPE_REVISION),$(shell git describe --always --dirty=+ --abbrev=12 --exclude='*' 2>/dev/null))
export SYSTAPE_REVISION

# no: leave out analyze-sql
SQL     ?= yes

SHELL_SCRIPTS := .ci/run $(wildcard scripts/*.sh)

PROGRAMS := -p systape-recorder -p systape-analyzer -p systape

.DEFAULT_GOAL := help
.PHONY: help demo site pictures build python python-dist python-test static-record static static-sql dist deb rpm image test-packages test-service test-clusters test-kernels viewer viewer-test viewer-shots test test-unit test-e2e test-exports test-sql test-all test-fleet test-recipes package-check cross check clippy lint-sql lint deny fuzz stories bench-peers bench-always bench-why bench-layers bench-scale man install uninstall clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## install what is missing, build, record a service with a fault, find that
	@scripts/demo.sh

build: ## record, analyze, systape and (with Rust 1.94 or newer) analyze-sql in target/release, their man pages and completions in target/share
	@scripts/setup.sh build
	$(CARGO) build --release $(PROGRAMS)
	@SQL=$(SQL) scripts/sql.sh build
	@scripts/split-debug.sh $(BIN)/record $(BIN)/analyze
	@$(MAKE) --no-print-directory man

site: ## the manual as a site with a search, in target/site: open its index.html (builds mdBook once: minutes)
	@scripts/setup.sh site
	$(CARGO) build --release $(PROGRAMS)
	@scripts/site.sh

pictures: ## what analyze prints and its page, as the pictures in docs/images (Chromium)
	@scripts/setup.sh test
	$(CARGO) build --release -p systape-analyzer
	@scripts/pictures.py $(BIN)/analyze
	@$(BIN)/analyze report testdata/guides/flames.tape -o $(TARGET)/flames.html
	@node scripts/page-shots.mjs $(abspath $(TARGET))/browser $$(command -v chromium) $(TARGET)/flames.html docs/images

python: ## the package for Python, as a wheel in target/wheels (docs/guides/python.md)
	@scripts/setup.sh build
	@scripts/setup.sh python
	@scripts/python.sh build

python-dist: ## what PyPI takes, in target/dist: wheels for x86-64 and arm64 (glibc 2.17 or newer), and the sources
	@scripts/setup.sh build
	@scripts/setup.sh python-dist
	@scripts/python.sh dist

python-test: ## the same, its tests beside Parquet, polars, pandas, pyarrow and DuckDB (builds analyze-sql: minutes), and its types
	@scripts/setup.sh test
	@scripts/setup.sh python
	@scripts/python.sh test
	@scripts/python.sh lint

test: ## install what is missing, run every test but those of test-sql and test-kernels (BPF tests need root or sudo)
	@scripts/setup.sh test
	@scripts/test.sh
	@scripts/exports.sh

test-unit: ## only the tests that record nothing
	@scripts/setup.sh test
	@scripts/test.sh unit

test-e2e: ## only the tests that record (root or sudo)
	@scripts/setup.sh test
	@scripts/test.sh e2e

test-exports: ## only what analyze export writes, read by Perfetto's trace_processor, the Firefox Profiler's loader, go tool pprof and a parser of strace's listings
	@scripts/setup.sh test
	$(CARGO) build --release -p systape-recorder -p systape-analyzer
	@scripts/exports.sh

test-sql: ## the tests of analyze sql and analyze export, beside DuckDB (builds their engine: minutes)
	@scripts/setup.sh test
	$(CARGO) build --release -p systape-analyzer
	@SQL=$(SQL) scripts/sql.sh test

# An emulated machine shares its CPU with whoever else is here: what fails runs once more, and fails if it fails again
test-all: test lint-sql test-sql python-test fuzz package-check test-recipes ## test, test-sql, python-test, fuzz, package-check, test-recipes and test-kernels with the oldest kernel and the newest: before a release; docs/internals/reliability.md has the day
	@$(MAKE) --no-print-directory test-kernels SQL=no RELEASES="bullseye sid" || \
		{ echo "test-all: kernels, once more"; $(MAKE) --no-print-directory test-kernels SQL=no RELEASES="bullseye sid"; }

test-fleet: ## the questions of docs/guides/many-machines.md asked of Spark and DuckDB, beside analyze (installs Java and Spark, 700 MB; not part of test)
	@scripts/setup.sh fleet
	$(CARGO) build --release -p systape-analyzer -p systape-benches
	@scripts/sql.sh fleet

test-recipes: ## add a family of events and a report to a copy by CONTRIBUTING's recipes, build it, record and ask (root)
	@scripts/setup.sh test
	@python3 e2e/recipes/try.py

package-check: ## pack the crates as crates.io takes them, and build each of them from its package alone (minutes)
	@scripts/setup.sh build
	CARGO_TARGET_DIR=$(abspath $(TARGET))/packed CARGO_PROFILE_DEV_DEBUG=false $(CARGO) publish --workspace --dry-run --allow-dirty

viewer: ## analyze in a page for browsers, target/viewer/systape.html (rustup's wasm32-wasip1, clang, node; minutes)
	@scripts/setup.sh test
	@scripts/viewer.sh

viewer-test: ## the viewer of make viewer: its answers beside analyze's, damaged tapes, Chromium
	@scripts/setup.sh test
	$(CARGO) build --release -p systape-analyzer
	@scripts/viewer.sh test

viewer-shots: ## the pictures of docs/guides/viewer.md, by Chromium
	@scripts/viewer.sh shots

cross: ## type-check record and analyze for Linux on arm64, analyze for macOS on arm64 and WebAssembly
	@scripts/setup.sh build
	@scripts/cross.sh

check: ## formatting, lock files, shell syntax, packages for crates.io, generated code
	@scripts/setup.sh test
	$(CARGO) fmt --all --check
	@for workspace in . sql fuzz python; do $(CARGO) metadata --locked --format-version 1 --manifest-path $$workspace/Cargo.toml >/dev/null || exit 1; done
	$(CARGO) fmt --check --manifest-path sql/Cargo.toml
	$(CARGO) fmt --check --manifest-path python/Cargo.toml
	for script in $(SHELL_SCRIPTS); do bash -n $$script || exit 1; done
	$(CARGO) package -q --workspace --exclude systape-benches --exclude systape-e2e --no-verify --allow-dirty --target-dir $(abspath $(TARGET))/packed
	$(CARGO) test -q --workspace --test schema --test current

clippy:
	@scripts/setup.sh test
	$(CARGO) clippy --workspace --all-targets -- -D warnings

lint-sql:
	@scripts/setup.sh test
	@SQL=$(SQL) scripts/sql.sh lint

lint: check clippy lint-sql deny ## check, clippy, licences of dependencies

deny: ## licences, sources and advisories of dependencies (cargo-deny, if it is installed)
	@if ! $(CARGO) deny --version >/dev/null 2>&1; then \
		echo "deny: SKIPPED: cargo-deny is not installed (cargo install --locked cargo-deny)" >&2; exit 0; fi; \
	$(CARGO) deny check bans licenses sources || exit 1; \
	(cd sql && $(CARGO) deny check bans licenses sources) || exit 1; \
	(cd python && $(CARGO) deny check bans licenses sources) || exit 1; \
	if $(CARGO) deny fetch db >/dev/null 2>&1; then $(CARGO) deny check advisories; \
	else echo "deny: SKIPPED advisories: the database cannot be fetched" >&2; fi

FUZZ_SECONDS ?= 10
fuzz: ## every fuzz target for FUZZ_SECONDS (10); docs/internals/reliability.md
	@scripts/setup.sh fuzz
	scripts/fuzz.sh $(FUZZ_SECONDS)

BENCH_ARGS ?= --markdown docs/performance.md
bench-peers: ## cost of recording, speed of reading, beside other tracers; writes docs/performance.md (or BENCH_ARGS=--quick)
	@scripts/setup.sh bench
	$(CARGO) build --release -p systape-recorder -p systape-analyzer -p systape-benches
	@if [ "$$(id -u)" = 0 ]; then $(BIN)/bench $(BENCH_ARGS); else sudo $(BIN)/bench $(BENCH_ARGS); fi

stories: ## records the programs of docs/guides/stories.md, asks their tapes, and writes that page anew
	@scripts/stories.sh

ALWAYS_ARGS ?=
bench-always: ## what record --sample costs beside redis, PostgreSQL, a build and idle threads, and perf and a reader of /proc there (ALWAYS_ARGS="--rounds 5 --seconds 2"; an hour and a half, root)
	@scripts/setup.sh bench
	$(CARGO) build --release -p systape-recorder
	@scripts/as-root.sh scripts/bench-always.py --bin $(BIN) $(ALWAYS_ARGS)

WHY_ARGS ?= --markdown docs/reference/why-measured.md
bench-why: ## planted incidents and healthy programs: does analyze why name the cause and its cost? Writes docs/reference/why-measured.md (or WHY_ARGS=--quick)
	@scripts/setup.sh bench
	$(CARGO) build --release -p systape-recorder -p systape-analyzer -p systape-benches
	@scripts/as-root.sh $(BIN)/bench why $(WHY_ARGS)

LAYER_ARGS ?=
bench-layers: ## each layer alone (criterion): ns per row; LAYER_ARGS="--bench encode" for one of them
	@scripts/setup.sh build
	$(CARGO) bench -p systape-benches $(LAYER_ARGS)

SCALE_ARGS ?= --calls 1e7,1e8
bench-scale: ## the same reports on made-up tapes of growing size (SCALE_ARGS="--calls 1e7,1e8,1e9": 10 GB of disk)
	@scripts/setup.sh build
	$(CARGO) build --release -p systape-analyzer -p systape-benches
	$(BIN)/bench scale $(SCALE_ARGS)

# the machine of static programs, of their packages and of test-kernels: amd64, or arm64, which is cross-compiled (Debian)
ARCH    ?= amd64
ifeq ($(ARCH),arm64)
TRIPLE  := aarch64-unknown-linux-gnu
LIBS    := $(abspath $(TARGET))/arm64
CROSS_FLAGS = -C link-arg=-L$(LIBS)/usr/lib/aarch64-linux-gnu
CROSS_ENV   = CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
	LIBBPF_SYS_LIBRARY_PATH_x86_64_unknown_linux_gnu=/usr/lib/x86_64-linux-gnu \
	LIBBPF_SYS_LIBRARY_PATH_aarch64_unknown_linux_gnu=$(LIBS)/usr/lib/aarch64-linux-gnu LIBBPF_SYS_EXTRA_CFLAGS=-I$(LIBS)/usr/include
CROSS_SETUP = scripts/setup.sh arm64 && scripts/arm64.sh $(LIBS)
else
TRIPLE  := x86_64-unknown-linux-gnu
# relocations that the program applies to itself are packed: half a megabyte
CROSS_FLAGS = -C link-arg=-Wl,-z,pack-relative-relocs
CROSS_ENV   = LIBBPF_SYS_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu
CROSS_SETUP = scripts/setup.sh build
endif
STATIC  := $(TARGET)/$(TRIPLE)/release
# paths of this machine are in no program, so that equal sources give equal ones
STATIC_FLAGS = -C target-feature=+crt-static $(CROSS_FLAGS) --remap-path-prefix=$(CURDIR)=. --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=cargo
STATIC_ENV   = CARGO_PROFILE_RELEASE_DEBUG=line-tables-only RUSTFLAGS="$(STATIC_FLAGS)" $(CROSS_ENV)

static-record:
	@$(CROSS_SETUP)
	$(STATIC_ENV) $(CARGO) build --release --target $(TRIPLE) -p systape-recorder --features libbpf-rs/static

static: static-record ## record, analyze and systape as static files that run on any x86-64 Linux, in target/x86_64-unknown-linux-gnu/release; ARCH=arm64: on arm64, in target/aarch64-unknown-linux-gnu/release
	$(STATIC_ENV) $(CARGO) build --release --target $(TRIPLE) -p systape-analyzer -p systape
	@scripts/split-debug.sh $(STATIC)/record $(STATIC)/analyze $(STATIC)/systape

static-sql: ## analyze-sql as a static file beside the others (its engine builds for many minutes)
	@scripts/setup.sh build
	cd sql && $(STATIC_ENV) $(CARGO) rustc --release --bin analyze-sql --target x86_64-unknown-linux-gnu --target-dir $(abspath $(TARGET))/sql-static -- \
		$$(../scripts/sql.sh flags)
	install -m 755 $(TARGET)/sql-static/x86_64-unknown-linux-gnu/release/analyze-sql $(STATIC)/analyze-sql

dist: static ## the static programs in a tar with checksums, in target/dist (ARCH=arm64: those of arm64)
	@scripts/setup.sh pack
	scripts/package.sh dist $(STATIC) $(TARGET)/dist

deb: static ## Debian packages of the static programs, in target/dist
	@scripts/setup.sh pack
	scripts/package.sh deb $(STATIC) $(TARGET)/dist

rpm: static ## packages for Fedora, RHEL and their kin of the static programs, in target/dist
	@scripts/setup.sh pack
	scripts/package.sh rpm $(STATIC) $(TARGET)/dist

image: static ## a container image from scratch with the static programs (OCI layout in a tar), in target/dist
	@scripts/setup.sh pack
	scripts/image.sh $(STATIC) $(TARGET)/dist

test-packages: deb rpm ## install, record, analyze and remove the packages in chroots of Debian 12 and 13, those of rpm by rpm (debootstrap, 300 MB; root)
	@scripts/as-root.sh scripts/test-packages.sh $(TARGET)/dist

test-service: deb ## the service under Debian 13's systemd in qemu: sandbox, watchdog, flight recorder (debootstrap, 200 MB; root)
	@scripts/setup.sh kernels
	@scripts/as-root.sh scripts/test-service.sh $(TARGET)/dist

test-clusters: ## record a container of podman and a job of Slurm on this machine, and find their names, check the DaemonSet (installs all, 80 MB; root)
	@scripts/setup.sh clusters
	$(CARGO) build --release $(PROGRAMS)
	@scripts/as-root.sh scripts/test-clusters.sh $(BIN)

RELEASES ?=
test-kernels: build $(if $(filter arm64,$(ARCH)),static,static-record) ## record under Debian's 5.10, 6.1, 6.12 and newest kernels in qemu (fetches them, 100 MB); RELEASES="bullseye sid"; ARCH=arm64: under 6.1 and 6.12 of arm64
	@ARCH=$(ARCH) scripts/setup.sh kernels
	ARCH=$(ARCH) ARM_ANALYZE=$(if $(filter arm64,$(ARCH)),$(abspath $(STATIC))/analyze) scripts/test-kernels.sh $(STATIC)/record $(BIN)/analyze $(RELEASES)

man: ## man pages and completions of what was built, in target/share
	@mkdir -p $(TARGET)/share/man/man1 $(TARGET)/share/bash-completion/completions \
		$(TARGET)/share/zsh/site-functions $(TARGET)/share/fish/vendor_completions.d
	@for program in record analyze systape; do \
		$(BIN)/$$program --generate man > $(TARGET)/share/man/man1/$$program.1 || exit 1; \
		$(BIN)/$$program --generate bash > $(TARGET)/share/bash-completion/completions/$$program || exit 1; \
		$(BIN)/$$program --generate zsh > $(TARGET)/share/zsh/site-functions/_$$program || exit 1; \
		$(BIN)/$$program --generate fish > $(TARGET)/share/fish/vendor_completions.d/$$program.fish || exit 1; done
	@$(BIN)/analyze --generate views | while read -r view; do \
		$(BIN)/analyze $$view --generate man > "$(TARGET)/share/man/man1/analyze-$$(echo "$$view" | tr ' ' -).1" || exit 1; done

# debuggers look into .debug beside a program for what its .gnu_debuglink names
install: ## what `make build` made, into PREFIX (/usr/local); DESTDIR is honoured
	@test -e $(TARGET)/share/man/man1/record.1 || { echo "install: nothing is built yet: make build" >&2; exit 1; }
	install -d $(DESTDIR)$(PREFIX)/bin/.debug
	install -m 755 $(BIN)/record $(BIN)/analyze $(BIN)/systape $(wildcard $(BIN)/analyze-sql) $(DESTDIR)$(PREFIX)/bin
	for debug in $(wildcard $(BIN)/record.debug $(BIN)/analyze.debug); do \
		install -m 644 $$debug $(DESTDIR)$(PREFIX)/bin || exit 1; done
	scripts/split-debug.sh $(addprefix $(DESTDIR)$(PREFIX)/bin/,record analyze)
	mv -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,record.debug analyze.debug) $(DESTDIR)$(PREFIX)/bin/.debug
	cd $(TARGET)/share && find . -type f -exec install -D -m 644 {} $(DESTDIR)$(PREFIX)/share/{} \;
	if [ -e $(TARGET)/viewer/systape.html ]; then \
		install -D -m 644 $(TARGET)/viewer/systape.html $(DESTDIR)$(PREFIX)/share/systape/systape.html; fi

uninstall: ## what install put there (pages and completions: those that are built)
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,record analyze systape analyze-sql .debug/record.debug .debug/analyze.debug .debug/analyze-sql.debug)
	-rmdir $(DESTDIR)$(PREFIX)/bin/.debug 2>/dev/null
	rm -f $(DESTDIR)$(PREFIX)/share/systape/systape.html
	if cd $(TARGET)/share 2>/dev/null; then find . -type f -exec rm -f $(DESTDIR)$(PREFIX)/share/{} \; ; fi

clean: ## everything that was built
	$(CARGO) clean
