#!/usr/bin/env bash
# Boots Debian's systemd in qemu with the package installed, and has the unit record: test-service.sh DIST [RELEASE]. What it may do is
# confined there as on a machine of a user's; the watchdog and restarts are systemd's. Needs root, debootstrap, and qemu as scripts/setup.sh
# kernels gets it. Nothing else of the machine is used.
set -euo pipefail

dist=$(realpath "$1") release=${2:-trixie}
here=$(cd "$(dirname "$0")/.." && pwd)
command -v debootstrap >/dev/null || { echo "test-service: debootstrap is missing" >&2; exit 1; }
unpacked=$here/target/kernels/qemu # where setup.sh puts it
qemu=(qemu-system-x86_64)
if ! command -v "${qemu[0]}" >/dev/null; then
    qemu=(env "LD_LIBRARY_PATH=$unpacked/usr/lib/x86_64-linux-gnu:$unpacked/lib/x86_64-linux-gnu" "$unpacked/usr/bin/qemu-system-x86_64"
        -L "$unpacked/usr/share/qemu" -L "$unpacked/usr/share/seabios")
fi
base=$(mktemp -d)
trap 'rm -rf --one-file-system "$base"' EXIT
root=$base/root

debootstrap --variant=minbase --include=systemd-sysv "$release" "$root" "${MIRROR:-http://deb.debian.org/debian}" >/dev/null
cp "$dist"/systape-{record,analyze}_*_amd64.deb "$root/tmp/"
chroot "$root" sh -c 'dpkg -i /tmp/systape-*.deb' >/dev/null
kernel=$(chroot "$root" sh -c 'apt-cache depends linux-image-cloud-amd64' | sed -n 's/^ *Depends: \(linux-image-[0-9]\S*\)/\1/p')
(cd "$base" && chroot "$root" sh -c "cd /tmp && apt-get -qq download '$kernel'" && dpkg-deb -x "$root"/tmp/linux-image-*.deb kernel)
rm -rf "$root"/tmp/*.deb "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/usr/share/{doc,locale}

cat >"$root/usr/local/bin/try-service" <<'EOF'
#!/bin/bash
# each line is "ok WHAT" or "FAIL WHAT"
exec >/dev/ttyS0 2>&1
is() { local what=$1; shift; if "$@" >/tmp/said 2>&1; then echo "ok   $what"; else echo "FAIL $what: $*"; cat /tmp/said; fi; }
show() { systemctl show systape -p "$1" --value; }
shows() { [ "$(show "$1")" = "$2" ] || { echo "$1 is $(show "$1")"; journalctl -u systape -o cat --no-pager | tail -n 30; return 1; }; }
until_true() { local i; for ((i = 0; i < 120; i++)); do "$@" >/dev/null 2>&1 && return; sleep 1; done; "$@"; }
tapes=/var/lib/systape
has() { compgen -G "$tapes/$1" >/dev/null; }
good() { local tape; for tape in $tapes/$1; do analyze check "$tape" || return; done; }
echo "SYSTAPE-BOOTED $(uname -r), systemd $(systemctl --version | awk 'NR == 1 { print $2 }')"

is "off after the installation" shows UnitFileState disabled
is "starts" systemctl start systape
is "says that it records" shows ActiveState active
sleep 2
bash -c "sh -c 'kill -KILL \$\$'; true" 2>/dev/null
is "a process killed gives a tape" until_true has '*-signal*.tape'
is "a good tape" good '*-signal*.tape'
is "which says who it was" bash -c "analyze kills $tapes/*-signal*.tape | grep -q SIGKILL"
is "which has findings" bash -c "analyze why $tapes/*-signal*.tape | grep -q SIGKILL"
is "stops" systemctl stop systape
is "ends well" shows Result success
rm -f $tapes/*.tape

printf '%s\n' 'SYSTAPE_ARGS="--all --last 5s -g -F 49 --dir /var/lib/systape --keep-free 0 --after 1s --on slow:clock_nanosleep>1s:sleep"' >/etc/systape.conf
mkdir -p /etc/systemd/system/systape.service.d
printf '[Service]\nWatchdogSec=20\nRestartSec=1\n' >/etc/systemd/system/systape.service.d/test.conf
systemctl daemon-reload
is "a flight recorder starts" systemctl start systape
is "answers" record status --dir $tapes
sleep 2
is "a slow call gives a tape" until_true has '*-slow-*.tape'
is "by hand, too" record trigger hand --dir $tapes
is "these tapes are good" good '*-*.tape'
is "with names in stacks" bash -c "analyze info $tapes/*-hand.tape | grep -Eq '[1-9][0-9]* of [0-9]+ places in code have names'"
is "nobody else may read them" bash -c "! ls -l $tapes/*.tape | grep -v '^-rw-------'"
before=$(show MainPID)
kill -STOP "$before"
again() { [ "$(show NRestarts)" = 1 ] && [ "$(show ActiveState)" = active ] && [ "$(show MainPID)" != "$before" ]; }
is "one that hangs is replaced" until_true again
is "which answers" record status --dir $tapes
is "stops again" systemctl stop systape
is "ends well again" shows Result success
is "is removed" dpkg --purge systape-record systape-analyze
echo SYSTAPE-END
systemctl poweroff --force --force
EOF
chmod +x "$root/usr/local/bin/try-service"
printf '[Unit]\nAfter=multi-user.target\n[Service]\nExecStart=/usr/local/bin/try-service\n' >"$root/etc/systemd/system/try-service.service"
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../try-service.service "$root/etc/systemd/system/multi-user.target.wants/"
ln -s usr/lib/systemd/systemd "$root/init"
(cd "$root" && find . -xdev -print0 | cpio --null -o -H newc --quiet | gzip -1) >"$base/root.gz"

# emulated, as in test-kernels.sh: nothing but qemu is needed
timeout 1200 "${qemu[@]}" -accel tcg,thread=single -cpu qemu64,-cx16 -m 2G -smp 2 -nographic -no-reboot -kernel "$base"/kernel/boot/vmlinuz-* \
    -initrd "$base/root.gz" -append "console=ttyS0 panic=-1 quiet" </dev/null >"$base/console" 2>&1 || true
tr -d '\r' <"$base/console" | sed -n '/SYSTAPE-BOOTED/,/SYSTAPE-END/p' | tee "$base/said"
grep -q SYSTAPE-END "$base/said" || { echo "test-service: the test did not end" >&2; tail -n 40 "$base/console" >&2; exit 1; }
! grep -q '^FAIL' "$base/said"
