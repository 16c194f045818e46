#!/usr/bin/env bash
# Installs the packages in fresh chroots of Debian 12 and 13, records, analyzes, and removes them: test-packages.sh DIST
# [RELEASE...]. Needs root, debootstrap and a kernel that records. CHROOTS=DIR keeps the chroots for the next time.
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

for release in "${releases[@]}"; do
    root=$base/$release
    [ -x "$root/usr/bin/dpkg" ] || debootstrap --variant=minbase "$release" "$root" "${MIRROR:-http://deb.debian.org/debian}" >/dev/null
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    mount -t tracefs tracefs "$root/sys/kernel/tracing" 2>/dev/null || true
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup" 2>/dev/null || true
    before=$(cd "$root" && find etc usr var -xdev ! -path 'var/lib/dpkg/*' ! -path 'var/log/*' ! -path 'var/cache/*' | sort)
    cp "$dist"/systape-{record,analyze}_*_amd64.deb "$root/tmp/"
    chroot "$root" sh -c 'dpkg -i /tmp/systape-*.deb' >/dev/null
    check_program "$root" record 10485760
    check_program "$root" analyze 26000000
    ! strings -n 6 "$root/usr/bin/analyze" | grep -qi libbpf || { echo "analyze has libbpf" >&2; exit 1; }
    [ "$(chroot "$root" record --version | grep -c static)" = 1 ]
    # the service is off
    [ ! -e "$root/etc/systemd/system/multi-user.target.wants/systape.service" ]
    chroot "$root" sh -c 'cd /tmp && record -o t.tape -- sh -c "cat /etc/debian_version; exit 3"' >/dev/null && status=0 || status=$?
    [ "$status" = 3 ] || { echo "record ended with $status" >&2; exit 1; }
    chroot "$root" systape check /tmp/t.tape
    chroot "$root" analyze -e openat --format json /tmp/t.tape | grep -q debian_version
    chroot "$root" analyze cut /tmp/t.tape /tmp/cut.tape --time 0%,50% >/dev/null
    rm -f "$root"/tmp/*.tape "$root"/tmp/systape-*.deb
    chroot "$root" dpkg --purge systape-record systape-analyze >/dev/null
    after=$(cd "$root" && find etc usr var -xdev ! -path 'var/lib/dpkg/*' ! -path 'var/log/*' ! -path 'var/cache/*' | sort)
    left=$(comm -13 <(echo "$before") <(echo "$after"))
    [ -z "$left" ] || { echo "$release: left behind: $left" >&2; exit 1; }
    leave
    root=
    echo "$release: installs, records, analyzes, and leaves nothing behind"
done
