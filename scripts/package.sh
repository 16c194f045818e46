#!/usr/bin/env bash
# Makes packages of static programs: package.sh dist|deb|rpm BIN OUT. BIN has record, analyze and systape, with their debug
# information beside them (scripts/split-debug.sh), and analyze-sql if there is one; OUT gets the files and their checksums. Equal programs
# give equal packages: times are those of the last commit, owners are root, names are sorted.
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
case $(readelf -h "$bin/record" | sed -n 's/^ *Machine: *//p') in
    *X86-64) machine=x86_64 debian=amd64 ;;
    *AArch64) machine=aarch64 debian=arm64 ;;
    *) echo "package: $bin/record is of no machine that is known" >&2; exit 1 ;;
esac
# what runs them here, if this machine is another
run=()
[ "$machine" = "$(uname -m)" ] || run=("qemu-$machine-static")
# where shells look for completions of zsh: Debian has a directory of its own
zsh=vendor-completions
[ "$kind" != rpm ] || zsh=site-functions
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# man pages and completions of PROGRAM below ROOT/usr/share
share() { # program root
    local program=$1 to=$2/usr/share view
    mkdir -p "$to/man/man1" "$to/bash-completion/completions" "$to/zsh/$zsh" "$to/fish/vendor_completions.d"
    "${run[@]}" "$bin/$program" --generate man | gzip -9n > "$to/man/man1/$program.1.gz"
    if [ "$program" = analyze ]; then
        "${run[@]}" "$bin/analyze" --generate views | while read -r view; do
            # shellcheck disable=SC2086 # a view may have two words
            "${run[@]}" "$bin/analyze" $view --generate man | gzip -9n > "$to/man/man1/analyze-${view// /-}.1.gz"
        done
    fi
    "${run[@]}" "$bin/$program" --generate bash > "$to/bash-completion/completions/$program"
    "${run[@]}" "$bin/$program" --generate zsh > "$to/zsh/$zsh/_$program"
    "${run[@]}" "$bin/$program" --generate fish > "$to/fish/vendor_completions.d/$program.fish"
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
    local name=systape-$version-$machine
    local root=$work/$name
    mkdir -p "$root"
    install -m 755 "$bin/record" "$bin/analyze" "$bin/systape" "$root"
    share record "$root" && share analyze "$root" && share systape "$root"
    mv "$root/usr/share" "$root/share" && rmdir "$root/usr"
    install -m 644 LICENSE-* README.md CHANGELOG.md packaging/systape.service packaging/systape.conf "$root"
    papers "$root" systape-recorder systape-analyzer systape
    manual "$root"
    cp -r packaging/metrics packaging/upload packaging/kubernetes packaging/container packaging/slurm packaging/htcondor "$root"
    (cd "$root" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum > SHA256SUMS)
    settle "$root"
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$name" | xz -T1 -9 > "$out/$name.tar.xz"
    (cd "$out" && sha256sum "$name.tar.xz" > "$name.tar.xz.sha256")
    echo "$out/$name.tar.xz"
}

# the pages of the manual, with their pictures, into ROOT/docs: as they lie here, so links between them hold
manual() { # root
    local page
    find docs -name '*.md' -o -name '*.png' -o -name '*.svg' -o -path 'docs/reference/schema/*.json' | while read -r page; do
        install -D -m 644 "$page" "$1/$page"
    done
}

# The trees of the packages, each into ROOT, as they are installed on a system.
tree_record() { # root
    local root=$1 doc=$1/usr/share/doc/systape-record
    install -D -m 755 "$bin/record" "$root/usr/bin/record"
    share record "$root"
    install -D -m 644 -t "$root/usr/lib/systemd/system" packaging/systape.service packaging/upload/systape-upload.path packaging/upload/systape-upload.service
    install -D -m 644 -t "$root/etc" packaging/systape.conf packaging/upload/systape-upload.conf
    install -D -m 755 packaging/upload/upload "$root/usr/lib/systape/upload"
    papers "$doc" systape-recorder
    manual "$doc"
    install -d "$doc/examples"
    cp -r packaging/metrics packaging/kubernetes packaging/container packaging/slurm packaging/htcondor "$doc/examples"
}

tree_analyze() { # root
    local root=$1 doc=$1/usr/share/doc/systape-analyze
    install -D -m 755 -t "$root/usr/bin" "$bin/analyze" "$bin/systape"
    share analyze "$root" && share systape "$root"
    papers "$doc" systape-analyzer systape
    install -D -m 644 -t "$doc" README.md
    manual "$doc"
}

tree_sql() { # root
    install -D -m 755 "$bin/analyze-sql" "$1/usr/bin/analyze-sql"
    (cd sql && papers "$1/usr/share/doc/systape-sql" systape-sql)
}

tree_debug() { # root program
    install -D -m 644 "$bin/$2.debug" "$1/usr/lib/debug/usr/bin/$2.debug"
}

# what a package is, one line and a text
summary() { # package
    case $1 in
        systape-record) echo "flight recorder for Linux: records what a machine does" ;;
        systape-analyze) echo "answers questions from tapes of systape's record" ;;
        systape-sql) echo "SQL and Parquet for tapes of systape" ;;
        *) echo "debug information of ${1%-dbgsym}" ;;
    esac
}
text() { # package
    case $1 in
        systape-record) cat <<END
record writes system calls, scheduling, block I/O, signals and connections
of a command, of processes or of the whole machine into a tape. It is one
static program; it needs root or capabilities, and a kernel with BTF.
systape.service is installed and off.
END
            ;;
        systape-analyze) cat <<END
analyze reads a tape that record wrote, on any machine and without rights:
listings, sums, signals, waits, connections, flame graphs. It is one static
program without BPF. systape is one name for both: systape record, systape why.
END
            ;;
        systape-sql) cat <<END
analyze sql and analyze export parquet, json and csv run this program, which
has the engine DataFusion in it.
END
            ;;
        *) echo "Debuggers and the backtrace of a panic find it there." ;;
    esac
}
# the package that must be there in the same version
needs() { # package
    case $1 in
        systape-sql) echo systape-analyze ;;
        *-dbgsym) echo "${1%-dbgsym}" ;;
    esac
}
# licences of PACKAGE's own code, and its changelog
licence() { # package
    cat LICENSE-MIT
    [ "$1" != systape-record ] || { echo; echo "The programs that run in the kernel:"; cat LICENSE-GPL-2.0 LICENSE-BSD-2-Clause; }
    [[ $1 = *-dbgsym ]] || { echo; echo "What is linked in besides: THIRD-PARTY.gz in this directory."; }
}

# each package whose programs are there: its tree in $work/PACKAGE, made once
trees() {
    local program
    tree_record "$work/systape-record"
    tree_analyze "$work/systape-analyze"
    for program in record analyze; do tree_debug "$work/systape-$program-dbgsym" "$program"; done
    [ ! -x "$bin/analyze-sql" ] || tree_sql "$work/systape-sql"
    for root in "$work"/systape-*; do
        local doc=$root/usr/share/doc/${root##*/}
        install -d "$doc"
        gzip -9n < CHANGELOG.md > "$doc/changelog.gz"
        licence "${root##*/}" > "$doc/copyright"
    done
}

build_deb() { # package
    local package=$1 root=$work/$1 needs
    mkdir -p "$root/DEBIAN"
    if [ "$package" = systape-record ]; then
        (cd "$root" && find etc -type f -printf '/%p\n' | sort) > "$root/DEBIAN/conffiles"
        install -m 755 packaging/deb/postinst packaging/deb/prerm packaging/deb/postrm "$root/DEBIAN"
    fi
    needs=$(needs "$package")
    {
        echo "Package: $package"
        echo "Version: $version-1"
        echo "Architecture: $debian"
        echo "Maintainer: systape <systape@users.noreply.github.com>"
        echo "Installed-Size: $(du -k --apparent-size -s --exclude=DEBIAN "$root" | cut -f1)"
        echo "Homepage: https://github.com/systape/systape"
        [[ $package = *-dbgsym ]] && echo "Section: debug" || echo "Section: admin"
        echo "Priority: optional"
        [ -z "$needs" ] || echo "Depends: $needs (= $version-1)"
        [ "$package" != systape-record ] || echo "Suggests: systape-analyze"
        [ "$package" != systape-analyze ] || echo "Suggests: systape-record, systape-sql"
        echo "Description: $(summary "$package")"
        text "$package" | sed 's/^/ /'
    } > "$root/DEBIAN/control"
    (cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\n' | sort | xargs md5sum > DEBIAN/md5sums)
    settle "$root"
    dpkg-deb --root-owner-group -Zxz --build "$root" "$out/${package}_$version-1_$debian.deb" >/dev/null
    echo "$out/${package}_$version-1_$debian.deb"
}

deb() {
    trees
    for root in "$work"/systape-*; do build_deb "${root##*/}"; done
    (cd "$out" && sha256sum systape-*_"$version"-1_"$debian".deb > "systape_$version-1_$debian.sha256")
}

# what rpmbuild is told: the tree is there, nothing is compiled, stripped or looked through
spec() { # package
    local package=$1 needs
    needs=$(needs "$package")
    cat <<END
Name: $package
Version: $version
Release: 1
Summary: $(summary "$package")
License: $([ "$package" = systape-record ] && echo "(MIT OR Apache-2.0) AND (GPL-2.0-only OR BSD-2-Clause)" || echo "MIT OR Apache-2.0")
URL: https://github.com/systape/systape
AutoReqProv: no
$([ -z "$needs" ] || echo "Requires: $needs = $version-1")
%description
$(text "$package")
%install
cp -a $work/$package/. %{buildroot}
END
    if [ "$package" = systape-record ]; then
        cat <<'END'
%post
[ ! -d /run/systemd/system ] || systemctl daemon-reload || :
%preun
[ "$1" != 0 ] || [ ! -d /run/systemd/system ] || systemctl disable --now systape.service systape-upload.path || :
%postun
[ ! -d /run/systemd/system ] || systemctl daemon-reload || :
[ "$1" != 0 ] || rmdir --ignore-fail-on-non-empty /var/lib/systape 2>/dev/null || :
END
    fi
    echo "%files"
    # its own directories go with it, and those of shells that are not installed: any package may own them
    (cd "$work/$package" && find . \( -type f -path './etc/*' -printf '%%config(noreplace) /%P\n' \) -o \( -type f -printf '/%P\n' \) \
        -o \( -type d -regex './usr/\(.*/systape.*\|share/\(fish\|zsh\|bash-completion\)\(/.*\)?\)' -printf '%%dir /%P\n' \) | sort)
}

rpm() {
    trees
    for root in "$work"/systape-*; do
        local package=${root##*/}
        settle "$root"
        spec "$package" > "$work/$package.spec"
        rpmbuild --quiet -bb --target "$machine-linux" --define "_topdir $work/rpm" --define "_rpmdir $out" \
            --define '_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm' --define '_binary_payload w6.xzdio' \
            --define 'debug_package %{nil}' --define '__os_install_post %{nil}' --define '_build_id_links none' \
            --define '_buildhost localhost' --define 'use_source_date_epoch_as_buildtime 1' \
            --define 'clamp_mtime_to_source_date_epoch 1' "$work/$package.spec"
        echo "$out/$package-$version-1.$machine.rpm"
    done
    (cd "$out" && sha256sum systape-*-"$version-1.$machine.rpm" > "systape-$version-1.$machine.rpm.sha256")
}

"$kind"
