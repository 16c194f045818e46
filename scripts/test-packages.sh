#!/usr/bin/env bash
# Installs the packages in fresh chroots of Debian 12 and 13, records, analyzes, and removes them: test-packages.sh DIST
# [RELEASE...]. Those of rpm go into the last one, by rpm with a database of its own. Needs root, debootstrap and a kernel that records.
# CHROOTS=DIR keeps the chroots for the next time.
set -euo pipefail

dist=$(realpath "$1")
shift
releases=("$@")
[ $# -gt 0 ] || releases=(bookworm trixie)
command -v debootstrap >/dev/null || { echo "test-packages: debootstrap is missing" >&2; exit 1; }
kept=${CHROOTS:-}
base=${kept:-$(mktemp -d)}
root=
leave() {
    for mount in sys/kernel/tracing sys/fs/cgroup sys proc; do
        ! mountpoint -q "$root/$mount" || umount "$root/$mount"
    done
}
end() {
    [ -z "$root" ] || leave
    [ -n "$kept" ] || rm -rf --one-file-system "$base"
}
trap end EXIT

# the size of a program, and that nothing is linked to it
check_program() { # root program most-bytes
    local file=$1/usr/bin/$2 size
    size=$(stat -c %s "$file")
    [ "$size" -le "$3" ] || { echo "$2 has $size bytes, at most $3 are allowed" >&2; return 1; }
    ! readelf -d "$file" | grep -q NEEDED || { echo "$2 needs libraries" >&2; return 1; }
    readelf -h "$file" | grep -q 'Type:.*DYN' || { echo "$2 is not position-independent" >&2; return 1; }
}

# files of the system, but those that package managers note
files() {
    (cd "$root" && find etc usr var -xdev ! -path 'var/lib/dpkg/*' ! -path 'var/lib/rpm/*' ! -path 'var/log/*' ! -path 'var/cache/*' | sort)
}

# enter RELEASE: a chroot in which BPF works
enter() {
    root=$base/$1
    [ -x "$root/usr/bin/dpkg" ] || debootstrap --variant=minbase "$1" "$root" "${MIRROR:-http://deb.debian.org/debian}" >/dev/null
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    mount -t tracefs tracefs "$root/sys/kernel/tracing" 2>/dev/null || true
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup" 2>/dev/null || true
}

# what is installed works, and is as it should be
works() {
    rm -f "$root"/tmp/*.tape
    check_program "$root" record 10485760
    check_program "$root" analyze 26000000
    ! strings -n 6 "$root/usr/bin/analyze" | grep -qi libbpf || { echo "analyze has libbpf" >&2; return 1; }
    [ "$(chroot "$root" record --version | grep -c static)" = 1 ]
    # the service is off
    [ ! -e "$root/etc/systemd/system/multi-user.target.wants/systape.service" ]
    chroot "$root" sh -c 'cd /tmp && record -o t.tape -- sh -c "cat /etc/debian_version; exit 3"' >/dev/null && status=0 || status=$?
    [ "$status" = 3 ] || { echo "record ended with $status" >&2; return 1; }
    chroot "$root" systape check /tmp/t.tape
    chroot "$root" analyze -e openat --format json /tmp/t.tape | grep -q debian_version
    [ "$(chroot "$root" analyze why /tmp/t.tape | grep -c 'the command that was recorded')" = 1 ]
    chroot "$root" analyze cut /tmp/t.tape /tmp/cut.tape --time 0%,50% >/dev/null
    local page package said
    for page in record analyze systape analyze-why; do [ -s "$root/usr/share/man/man1/$page.1.gz" ]; done
    [ -s "$root/usr/share/bash-completion/completions/analyze" ]
    for package in systape-record systape-analyze; do
        # not grep -q: zcat would die of the closed pipe
        [ "$(zcat "$root/usr/share/doc/$package/THIRD-PARTY.gz" | grep -c 'Apache License')" -gt 0 ]
        python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["components"]' "$root/usr/share/doc/$package/sbom.cdx.json"
    done
    if [ -x "$root/usr/bin/analyze-sql" ]; then
        [ "$(chroot "$root" analyze sql --format csv 'select count(*) > 0 as some from syscalls' /tmp/t.tape | tail -n 1)" = true ]
    else
        said=$(chroot "$root" analyze sql 'select 1' /tmp/t.tape 2>&1 || true)
        [[ $said = *systape-sql* ]] || { echo "the package of analyze-sql is not named: $said" >&2; return 1; }
    fi
    rm -f "$root"/tmp/*.tape
}

# nothing is left of what was not there BEFORE
is_clean() { # name before
    local left
    left=$(comm -13 <(echo "$2") <(files))
    [ -z "$left" ] || { echo "$1: left behind: $left" >&2; return 1; }
}

for release in "${releases[@]}"; do
    enter "$release"
    before=$(files)
    cp "$dist"/systape-{record,analyze}_*_amd64.deb "$root/tmp/"
    ! [ -e "$(echo "$dist"/systape-sql_*_amd64.deb)" ] || cp "$dist"/systape-sql_*_amd64.deb "$root/tmp/"
    chroot "$root" sh -c 'dpkg -i /tmp/systape-*.deb' >/dev/null
    works
    rm -f "$root"/tmp/systape-*.deb
    chroot "$root" sh -c 'dpkg --purge $(dpkg-query -W -f "\${binary:Package} \${db:Status-Abbrev}\n" "systape-*" | sed -n "s/ ii *$//p")' >/dev/null
    is_clean "$release" "$before"
    leave
    root=
    echo "$release: installs, records, analyzes, and leaves nothing behind"
done

release=${releases[-1]}
enter "$release"
chroot "$root" sh -c 'command -v rpm || { apt-get -q update && apt-get -q -y install --no-install-recommends rpm; }' >/dev/null
before=$(files)
cp "$dist"/systape-*-1.x86_64.rpm "$root/tmp/"
rm -f "$root"/tmp/*-dbgsym-*
# a database of its own has none of the system's packages: the shell of the scripts is there nevertheless. A plugin would give
# scripts mounts of their own, which needs a root that is a mount
chroot "$root" sh -c 'rpm -i --noplugins --nodeps /tmp/systape-*.rpm'
chroot "$root" sh -c 'rpm -V --nodeps systape-record systape-analyze'
works
rm -f "$root"/tmp/systape-*.rpm
chroot "$root" sh -c 'rpm -e --noplugins $(rpm -qa "systape-*")'
is_clean rpm "$before"
leave
root=
echo "$release, rpm: installs, records, analyzes, and leaves nothing behind"
