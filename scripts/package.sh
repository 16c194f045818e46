#!/usr/bin/env bash
# Makes packages of static programs: package.sh dist|deb BIN OUT. BIN has record, analyze and systape, with their debug
# information beside them (scripts/split-debug.sh); OUT gets the files and their checksums. Equal programs give equal
# packages: times are those of the last commit, owners are root, names are sorted.
set -euo pipefail

kind=$1 bin=$(realpath "$2") out=$3
cd "$(dirname "$0")/.."
here=$PWD
mkdir -p "$out"
out=$(realpath "$out")
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH LC_ALL=C
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# man pages and completions of PROGRAM below ROOT/usr/share
share() { # program root
    local program=$1 to=$2/usr/share view
    mkdir -p "$to/man/man1" "$to/bash-completion/completions" "$to/zsh/vendor-completions" "$to/fish/vendor_completions.d"
    "$bin/$program" --generate man | gzip -9n > "$to/man/man1/$program.1.gz"
    if [ "$program" = analyze ]; then
        "$bin/analyze" --generate views | while read -r view; do
            # shellcheck disable=SC2086 # a view may have two words
            "$bin/analyze" $view --generate man | gzip -9n > "$to/man/man1/analyze-${view// /-}.1.gz"
        done
    fi
    "$bin/$program" --generate bash > "$to/bash-completion/completions/$program"
    "$bin/$program" --generate zsh > "$to/zsh/vendor-completions/_$program"
    "$bin/$program" --generate fish > "$to/fish/vendor_completions.d/$program.fish"
}

# pages, licences of what is linked in and the list of it, and examples: into DIR, for PACKAGE of cargo
papers() { # dir package...
    local to=$1
    shift
    install -d "$to"
    "$here/scripts/third-party.py" licences "$@" > "$to/THIRD-PARTY"
    "$here/scripts/third-party.py" sbom "$@" > "$to/sbom.cdx.json"
    gzip -9n "$to/THIRD-PARTY"
}

# every file of ROOT has the time of the commit
settle() { # root
    find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

dist() {
    local name=systape-$version-x86_64
    local root=$work/$name
    mkdir -p "$root"
    install -m 755 "$bin/record" "$bin/analyze" "$bin/systape" "$root"
    share record "$root" && share analyze "$root" && share systape "$root"
    mv "$root/usr/share" "$root/share" && rmdir "$root/usr"
    install -m 644 LICENSE-* README.md CHANGELOG.md packaging/systape.service packaging/systape.conf "$root"
    papers "$root" systape-recorder systape-analyzer systape
    install -D -m 644 -t "$root/docs" docs/*.md
    cp -r packaging/metrics packaging/upload packaging/kubernetes packaging/container packaging/slurm packaging/htcondor "$root"
    (cd "$root" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum > SHA256SUMS)
    settle "$root"
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$name" | xz -T1 -9 > "$out/$name.tar.xz"
    (cd "$out" && sha256sum "$name.tar.xz" > "$name.tar.xz.sha256")
    echo "$out/$name.tar.xz"
}

# a package from ROOT, whose DEBIAN/control lacks Version, Architecture and Installed-Size
build() { # package root description-lines on stdin
    local package=$1 root=$2
    mkdir -p "$root/DEBIAN" "$root/usr/share/doc/$package"
    gzip -9n < CHANGELOG.md > "$root/usr/share/doc/$package/changelog.gz"
    {
        cat LICENSE-MIT
        [ "$package" != systape-record ] || { echo; echo "The programs that run in the kernel:"; cat LICENSE-GPL-2.0 LICENSE-BSD-2-Clause; }
        echo
        echo "What is linked in besides: THIRD-PARTY.gz in this directory."
    } > "$root/usr/share/doc/$package/copyright"
    {
        echo "Package: $package"
        echo "Version: $version-1"
        echo "Architecture: amd64"
        echo "Maintainer: systape <systape@users.noreply.github.com>"
        echo "Installed-Size: $(du -k --apparent-size -s --exclude=DEBIAN "$root" | cut -f1)"
        echo "Homepage: https://github.com/systape/systape"
        cat
    } > "$root/DEBIAN/control"
    (cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\n' | sort | xargs md5sum > DEBIAN/md5sums)
    settle "$root"
    dpkg-deb --root-owner-group -Zxz --build "$root" "$out/${package}_$version-1_amd64.deb" >/dev/null
    echo "$out/${package}_$version-1_amd64.deb"
}

debug() { # program
    local root=$work/$1-dbgsym
    install -D -m 644 "$bin/$1.debug" "$root/usr/lib/debug/usr/bin/$1.debug"
    build "systape-$1-dbgsym" "$root" <<END
Section: debug
Priority: optional
Depends: systape-$1 (= $version-1)
Description: debug information of systape-$1
 Debuggers and the backtrace of a panic find it there.
END
}

deb() {
    local root=$work/record
    install -D -m 755 "$bin/record" "$root/usr/bin/record"
    share record "$root"
    install -D -m 644 packaging/systape.service "$root/usr/lib/systemd/system/systape.service"
    install -D -m 644 packaging/systape.conf "$root/etc/systape.conf"
    mkdir -p "$root/DEBIAN"
    echo /etc/systape.conf > "$root/DEBIAN/conffiles"
    install -m 755 packaging/deb/postinst packaging/deb/prerm packaging/deb/postrm "$root/DEBIAN"
    papers "$root/usr/share/doc/systape-record" systape-recorder
    install -D -m 644 -t "$root/usr/share/doc/systape-record" docs/record.md docs/production.md docs/reliability.md docs/performance.md
    install -d "$root/usr/share/doc/systape-record/examples"
    cp -r packaging/metrics packaging/kubernetes packaging/container packaging/slurm packaging/htcondor "$root/usr/share/doc/systape-record/examples"
    # uploading is off, too
    install -D -m 755 packaging/upload/upload "$root/usr/lib/systape/upload"
    install -m 644 packaging/upload/systape-upload.path packaging/upload/systape-upload.service "$root/usr/lib/systemd/system"
    install -m 644 packaging/upload/systape-upload.conf "$root/etc/systape-upload.conf"
    echo /etc/systape-upload.conf >> "$root/DEBIAN/conffiles"
    build systape-record "$root" <<END
Section: admin
Priority: optional
Suggests: systape-analyze
Description: flight recorder for Linux: records what a machine does
 record writes system calls, scheduling, block I/O, signals and connections
 of a command, of processes or of the whole machine into a tape. It is one
 static program; it needs root or capabilities, and a kernel with BTF.
 .
 systape.service is installed and off.
END
    root=$work/analyze
    install -D -m 755 -t "$root/usr/bin" "$bin/analyze" "$bin/systape"
    share analyze "$root" && share systape "$root"
    papers "$root/usr/share/doc/systape-analyze" systape-analyzer systape
    install -D -m 644 -t "$root/usr/share/doc/systape-analyze" README.md docs/*.md
    build systape-analyze "$root" <<END
Section: admin
Priority: optional
Suggests: systape-record, systape-sql
Description: answers questions from tapes of systape's record
 analyze reads a tape that record wrote, on any machine and without rights:
 listings, sums, signals, waits, connections, flame graphs. It is one static
 program without BPF. systape is one name for both: systape record, systape why.
END
    debug record
    debug analyze
    if [ -x "$bin/analyze-sql" ]; then
        root=$work/sql
        install -D -m 755 "$bin/analyze-sql" "$root/usr/bin/analyze-sql"
        (cd sql && papers "$root/usr/share/doc/systape-sql" systape-sql)
        build systape-sql "$root" <<END
Section: admin
Priority: optional
Depends: systape-analyze (= $version-1)
Description: SQL and Parquet for tapes of systape
 analyze sql and analyze export parquet, json and csv run this program, which
 has the engine DataFusion in it.
END
    fi
    (cd "$out" && sha256sum systape-*_"$version"-1_amd64.deb > "systape_$version-1_amd64.sha256")
}

"$kind"
