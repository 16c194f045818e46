#!/usr/bin/env bash
# Boots Debian's cloud kernels under qemu, records a workload there with one static `record`, carries the tape out over
# the serial console and checks its reports with the host's `analyze`.
#
#   [ARCH=arm64] scripts/test-kernels.sh RECORD ANALYZE [RELEASE...]
#
# RECORD must be static (make static) and of the machine ARCH: amd64 (default) or arm64. RELEASE: bullseye (5.10; not for arm64), bookworm
# (6.1), trixie (6.12), sid (the newest that Debian has); default all four, of arm64 bookworm and trixie. With KEEP=DIR in the environment the tapes are kept there as
# RELEASE-NAME.tape. With ARM_ANALYZE=FILE, an `analyze` of arm64, its answers from the tapes are compared with those of ANALYZE (qemu-user).
# Kernels are fetched into target/kernels by apt, from a private copy of this machine's own sources: those of releases once,
# sid's whenever there is a newer one. KVM is used where it runs these kernels; else everything is emulated.
set -euo pipefail
record=$(realpath "$1"); analyze=$(realpath "$2"); shift 2
arch=${ARCH:-amd64}
cd "$(dirname "$0")/.."
here=$PWD
cache=$here/target/kernels
# what depends on the machine: qemu's program, its machine and first console, the compiler of the guest's programs, functions of the kernel
case $arch in
  amd64)
    releases=${*:-bullseye bookworm trixie sid}
    system=qemu-system-x86_64 machine=() console=ttyS0 cc=cc strip=strip chain_flags=()
    execve=__x64_sys_execve never=exc_int3 locked=_raw_spin_lock opens=24 entry='(syscall_exit_to_user_mode|do_syscall_64) entry_SYSCALL_64_after_hwframe'
    bottom=entry_SYSCALL_64_after_hwframe
    ;;
  arm64)
    releases=${*:-bookworm trixie}
    cache=$cache/arm64
    system=qemu-system-aarch64 machine=(-M virt -nic none) console=ttyAMA0 cc=aarch64-linux-gnu-gcc strip=aarch64-linux-gnu-strip
    # with signed return addresses
    chain_flags=(-mbranch-protection=standard)
    execve=__arm64_sys_execve never=el1h_64_sync_handler locked=htab_map_update_elem opens=24 entry='el0_svc el0t_64_sync_handler el0t_64_sync'
    bottom=el0t_64_sync
    ;;
  *) echo "test-kernels: ARCH is amd64 or arm64, not $arch" >&2; exit 2 ;;
esac
mkdir -p "$cache"
# what is known to fail, and why: "RELEASE: CHECK". Listed or not, what a check says is printed; one that is listed and passes
# fails the run as well, so that the list stays true
known=()
calls=10007 # a prime: dd makes this many reads and writes
ios=53      # a prime: direct writes to the disk
chains=1009 # a prime: calls made by the innermost function of a chain
handled=19 # a prime: signals that a handler takes
unlinks=37 # a prime: files that a program unlinks
sleepers=23 # a prime: threads that sleep at once, more than the kernel follows returns of
tapes='dd sh mix unseen hand dwarf fp ns tp kp cg fault lock net nsall apart ways drop want'
others=23 # a prime: calls of a 32-bit program, but for its end
passes=7 # a prime: calls of a probed function, passes of static probes
# what the tests that record have tried on x86-64 is tried here for arm64
[ "$arch" != arm64 ] || tapes="$tapes other probe uring look"

# release -> prints the path of its kernel, fetching it if needed
kernel_of() {
  local series dir=$cache/$1 pkg have parts
  case $1 in
    bullseye) series=5.10.0 ;;
    bookworm) series=6.1.0 ;;
    trixie) series=6.12 ;;
    sid) series='[0-9]' ;;
    *) echo "unknown release $1" >&2; return 2 ;;
  esac
  have=$(cat "$dir/package" 2>/dev/null) || have=
  if [ "$1" = sid ] || [ -z "$have" ]; then
    mkdir -p "$dir"/{lists/partial,parts,cache/archives/partial}
    # a copy of what this machine asks, with the release's name. sid has no updates of its own, for security neither
    awk -v release="$1" 'BEGIN { RS = ""; ORS = "\n\n" } /debian-security/ && release == "sid" { next } {
      gsub(/bookworm|bullseye|trixie/, release); sub(/sid sid-updates/, "sid"); print }' \
      /etc/apt/sources.list.d/debian.sources >"$dir/parts/debian.sources"
    local opts=(-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$dir/parts" -o Dir::State::Lists="$dir/lists"
      -o Dir::Cache="$dir/cache" -o Acquire::Retries=3 -o Acquire::Languages=none -o APT::Sandbox::User=root
      -o APT::Architecture="$arch" -o APT::Architectures="$arch")
    if ! apt-get "${opts[@]}" update -qq -o APT::Update::Error-Mode=any >&2; then
      echo "$1: apt-get update failed" >&2
      # an older one tests less than was asked for
      return 1
    fi
    pkg=$(apt-cache "${opts[@]}" search --names-only "^linux-image-$series.*-cloud-$arch\$" | awk '{print $1}' | sort -V | tail -1)
    if [ -z "$pkg" ]; then echo "$1: there is no package linux-image-$series*-cloud-$arch" >&2; return 1; fi
    if [ "$pkg" != "$have" ]; then
      rm -rf "$dir"/{boot,usr,lib,package}
      # newer packages leave the kernel itself to one they depend on
      parts=$(apt-cache "${opts[@]}" depends "$pkg" | sed -nE 's/^ *Depends: (linux-binary-.*)/\1/p')
      # shellcheck disable=SC2086
      (cd "$dir" && apt-get "${opts[@]}" download -qq "$pkg" $parts $([ "$arch" = amd64 ] || echo busybox-static) >&2 && for deb in ./*.deb; do dpkg -x "$deb" .; done; rm -f ./*.deb)
      find "$dir" -name 'vmlinuz*' | grep -q . || { echo "$1: no kernel came with $pkg" >&2; return 1; }
      echo "$pkg" >"$dir/package"
    fi
  fi
  find "$dir" -name 'vmlinuz*' | tail -1
}

# directory -> `probed` there: calls a function with known arguments, and passes a static probe in each register; of the tests that record:
# threads in known states, operations of io_uring
make_probed() {
  {
    cat <<'C'
#include <stdio.h>
#define KEEP __attribute__((noinline, noclone))
KEEP long scale(long number, int by, const char *name, unsigned long *where)
{
	__asm__ volatile("" : : "r"(name) : "memory");
	*where = number * 1000003UL;
	return number * by;
}
void pass(void);
/* x0 to x30 have 1000 to 1030, and a word of the stack 1007 */
__asm__(".text\n.balign 4\n.global pass\npass:\n\tsub sp, sp, #112\n"
C
    for pair in '19, x20, 0' '21, x22, 16' '23, x24, 32' '25, x26, 48' '27, x28, 64' '29, x30, 80'; do
      echo "\"\\tstp x${pair%, *}, [sp, #${pair##*, }]\\n\""
    done
    for register in $(seq 0 30); do echo "\"\\tmov x$register, #$((1000 + register))\\n\""; done
    echo '"\tstr x7, [sp, #96]\n"'
    note low "$(printf ' -8@x%d' $(seq 0 11))"
    note middle "$(printf ' -4@w%d' $(seq 12 23))"
    note high "$(printf ' -8@x%d' $(seq 24 30)) -8@[sp, 96] -4@-7"
    for pair in '19, x20, 0' '21, x22, 16' '23, x24, 32' '25, x26, 48' '27, x28, 64' '29, x30, 80'; do
      echo "\"\\tldp x${pair%, *}, [sp, #${pair##*, }]\\n\""
    done
    cat <<C
"\tadd sp, sp, #112\n\tret\n"
"\t.pushsection .stapsdt.base,\"aG\",%progbits,.stapsdt.base,comdat\n\t.weak _.stapsdt.base\n_.stapsdt.base:\t.space 1\n\t.popsection\n");
int main(void)
{
	char name[16];
	unsigned long where;
	volatile long sum = 0;

	for (int i = 0; i < $passes; i++) {
		sprintf(name, "name-%02d", i);
		sum += scale(i, -3, name, &where) + (long)where;
		pass();
	}
	return 0;
}
C
  } >"$1/probed.c"
  $cc -static -O2 -o "$1/probed" "$1/probed.c"
  rm "$1/probed.c"
  $cc -static -O2 -pthread -o "$1/looks" e2e/workloads/looks.c
  $cc -static -O2 -o "$1/operations" e2e/workloads/operations.c
}
note() { # name, arguments -> a place to stop at and its note, as lines of a C string
  cat <<C
"990:\tnop\n\t.pushsection .note.stapsdt,\"\",%note\n\t.balign 4\n\t.4byte 992f-991f, 994f-993f, 3\n991:\t.asciz \"stapsdt\"\n"
"992:\t.balign 4\n993:\t.8byte 990b, _.stapsdt.base, 0\n\t.asciz \"regs\", \"$1\", \"${2# }\"\n994:\t.balign 4\n\t.popsection\n"
C
}

make_chain() { # directory -> programs there whose stacks are known: chain, and chain-fp with frame pointers
  cat >"$1/chain.c" <<C
#include <signal.h>
#include <time.h>
#include <unistd.h>
#define KEEP __attribute__((noinline, noclone))
/* the empty asm behind each call keeps it from becoming a jump */
KEEP void leaf_work(void) { getppid(); __asm__ volatile(""); }
KEEP void middle_work(void) { leaf_work(); __asm__ volatile(""); }
KEEP void outer_work(void) { middle_work(); __asm__ volatile(""); }
KEEP void on_signal(int number) { (void)number; getuid(); __asm__ volatile(""); }
KEEP void before_signal(void) { raise(SIGUSR1); __asm__ volatile(""); }
KEEP void hot_loop(void)
{
	clock_t until = clock() + 3 * CLOCKS_PER_SEC;

	while (clock() < until)
		for (volatile int i = 0; i < 5000000; i++)
			;
}
int main(void)
{
	for (int i = 0; i < $chains; i++)
		outer_work();
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < $handled; i++)
		before_signal();
	hot_loop();
	return 0;
}
C
  cat >"$1/kernelwork.c" <<C
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void *rest(void *ms)
{
	struct timespec t = { 0, (long)ms * 1000000 };

	nanosleep(&t, NULL);
	return NULL;
}
int main(void)
{
	char name[32];
	pthread_t threads[$sleepers];

	for (int i = 0; i < $unlinks; i++) {
		sprintf(name, "/tmp/work-%02d", i);
		close(open(name, O_CREAT | O_WRONLY, 0600));
		unlink(name);
		sprintf(name, "name-%02d", i);
		prctl(PR_SET_NAME, name);
	}
	for (int i = 0; i < 11; i++)
		rest((void *)2);
	for (int i = 0; i < 5; i++) {
		pid_t child = fork();

		if (!child) {
			execl("/no/such/program", "program", NULL);
			execl("/bin/true", "true", NULL);
			_exit(1);
		}
		waitpid(child, NULL, 0);
	}
	for (int i = 0; i < $sleepers; i++)
		pthread_create(&threads[i], NULL, rest, (void *)700);
	for (int i = 0; i < $sleepers; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
C
  $cc -static -O2 -pthread -o "$1/kernelwork" "$1/kernelwork.c"
  # of the tests that record
  $cc -static -O2 -pthread -o "$1/apart" e2e/workloads/apart.c
  $cc -static -O2 -o "$1/drops" e2e/workloads/drops.c
  rm "$1/kernelwork.c"
  if [ "$arch" = arm64 ]; then make_probed "$1"; fi
  $cc -static -O2 -g "${chain_flags[@]}" -fomit-frame-pointer -o "$1/chain" "$1/chain.c"
  $cc -static -O2 -g "${chain_flags[@]}" -fno-omit-frame-pointer -o "$1/chain-fp" "$1/chain.c"
  rm "$1/chain.c"
}

# qemu as installed, or as setup.sh unpacked it
qemu=$cache/qemu/usr/bin/$system
if command -v "$system" >/dev/null; then
  qemu=$system
else
  libraries=$cache/qemu/usr/lib/x86_64-linux-gnu:$cache/qemu/lib/x86_64-linux-gnu
fi

# file -> a 32-bit program of arm: getpid() so many times, exit(0)
make_other() {
  python3 - "$1" "$others" <<'PYTHON'
import struct, sys
# mov r4, #n; mov r7, #20; svc 0; subs r4, r4, #1; bne; mov r0, #0; mov r7, #1; svc 0
code = [0xe3a04000 | int(sys.argv[2]), 0xe3a07014, 0xef000000, 0xe2544001, 0x1afffffb, 0xe3a00000, 0xe3a07001, 0xef000000]
size, base = 84 + 4 * len(code), 0x10000
head = b"\x7fELF\1\1\1" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, base + 84, 52, 0, 0x05000000, 52, 32, 1, 0, 0, 0)
load = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 0x10000)
open(sys.argv[1], "wb").write(head + load + struct.pack(f"<{len(code)}I", *code))
PYTHON
  chmod +x "$1"
}

# a static busybox of the guest's machine: with arm64 from the package that came with the first kernel
busybox_of() { if [ "$arch" = amd64 ]; then command -v busybox; else find "$cache" -path '*/bin/busybox' -type f | head -1; fi; }

make_initramfs() { # -> path
  local root
  # nobody may not search its root directory: names are looked up all the same
  root=$(mktemp -d)
  mkdir -p "$root"/{bin,proc,sys,dev,tmp,etc}
  cp "$(busybox_of)" "$root/bin/busybox"
  cp "$record" "$root/bin/record"
  $strip "$root/bin/record"
  make_chain "$root/bin"
  if [ "$arch" = arm64 ]; then make_other "$root/bin/other"; fi
  for tool in sh dd cat mount umount poweroff sleep ln base64 gzip uname kill env ls true sync mkdir unshare nc ifconfig sed; do ln -s busybox "$root/bin/$tool"; done
  echo 'root:x:0:0::/:/bin/sh' >"$root/etc/passwd"
  cat >"$root/init" <<INIT
#!/bin/sh
export PATH=/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev 2>/dev/null
mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null
echo SYSTAPE-BOOTED
cat /etc/passwd >/tmp/file; exec 3</tmp/file
(sleep 1; exec sleep 30) & sleeper=\$!
record -o /tmp/dd.tape -- dd if=/dev/zero of=/dev/null bs=1 count=$calls; echo SYSTAPE-STATUS \$?
record -o /tmp/sh.tape -- sh -c 'cat /tmp/file >/dev/null; cat /no/such/file; ln -s /tmp/file /tmp/link; cat /tmp/link >/dev/null; exit 7'; echo SYSTAPE-STATUS \$?
mkdir -p /mnt; mount -t ext4 /dev/nvme0n1 /mnt; echo SYSTAPE-MOUNT \$?
dd if=/dev/zero of=/mnt/direct bs=4096 count=$ios 2>/dev/null; sync
# a process that has 32 MiB in memory the whole time
dd if=/dev/zero bs=32M count=1 2>/dev/null | sleep 1000 &
# a thread that sleeps in read() the whole time, and one that is killed
sleep 1000 | cat >/dev/null &
record -a -o /tmp/mix.tape -- sh -c 'sleep 100 & sleep 0.2; kill -TERM \$!; wait; sh -c "exit 3"; dd if=/mnt/direct of=/dev/null bs=4096 count=1 2>/dev/null; dd if=/dev/zero of=/mnt/direct bs=4096 count=$ios oflag=direct conv=notrunc; dd if=/dev/zero of=/mnt/buffered bs=4096 count=7; sync'; echo SYSTAPE-STATUS \$?
record -a --families block --force unseen-ios=5 -o /tmp/unseen.tape -- dd if=/mnt/direct of=/dev/null bs=4096 iflag=direct 2>/dev/null; echo SYSTAPE-STATUS \$?
record -a --force registers-by-hand -o /tmp/hand.tape -- sh -c 'sleep 100 & sleep 0.2; kill -TERM \$!; wait; true'; echo SYSTAPE-STATUS \$?
record --call-graph dwarf --kernel-stacks -F 99 -o /tmp/dwarf.tape -- chain; echo SYSTAPE-STATUS \$?
record -g --kernel-stacks -F 99 -o /tmp/fp.tape -- chain-fp; echo SYSTAPE-STATUS \$?
record -e 'task:task_newtask/comm == "sh" && !(common_pid < 1)/' -o /tmp/tp.tape -- sh -c 'true & true & true & wait'; echo SYSTAPE-STATUS \$?
# functions of the kernel
record -g --kernel-stacks --kprobe 'vfs_unlink->int' --kprobe '__set_task_comm(whose=hex,name=string)' --kprobe '$execve(regs=hex)->long' \
  --kprobe 'do_sys_openat2(dir=int,path=ustring)->long' --kprobe 'hrtimer_nanosleep->int' -o /tmp/kp.tape -- kernelwork; echo SYSTAPE-STATUS \$?
for one in vfs_unlinkk $never $locked 'vfs_*' '*_sys_open?t'; do echo SYSTAPE-REFUSED \$(record --kprobe "\$one" -o /tmp/no.tape -- true 2>&1); done
umount /sys/kernel/tracing; echo SYSTAPE-REFUSED by the kernel \$(record --kprobe $never -o /tmp/no.tape -- true 2>&1); mount -t tracefs nodev /sys/kernel/tracing
# cgroups that are made meanwhile, of v2 and of v1
mkdir -p /v1 /v2; mount -t cgroup -o pids none /v1; mount -t cgroup2 none /v2
record -o /tmp/cg.tape -- sh -c '(mkdir -p /v2/system.slice/two.service; echo 0 >/v2/system.slice/two.service/cgroup.procs; exec sleep 0.1)
  (mkdir -p /v1/docker/one; echo 0 >/v1/docker/one/cgroup.procs; exec ls /)' >/dev/null; echo SYSTAPE-STATUS \$?
# a connection from before, idle; one that is closed: 7,000 bytes to the server, 11 back
ifconfig lo up; (sleep 100 | nc -l -p 77 >/dev/null) & sleep 0.2; (sleep 100 | nc 127.0.0.1 77 >/dev/null) & sleep 0.2
record -a -o /tmp/net.tape -- sh -c '(echo 1234567890; sleep 2) | nc -l -p 78 >/dev/null & sleep 0.2; dd if=/dev/zero bs=1000 count=7 2>/dev/null | nc 127.0.0.1 78 >/dev/null; wait'; echo SYSTAPE-STATUS \$?
# faults of memory that is mapped from a file; a variable of the environment
JOB=7 record --families syscall,fault --env JOB -o /tmp/fault.tape -- cat /tmp/file >/dev/null; echo SYSTAPE-STATUS \$?
# two that wait for one another's lock of a file, which each holds while it writes to the disk
record --families syscall,lock -g -o /tmp/lock.tape -- sh -c 'dd if=/dev/zero of=/mnt/locked bs=4096 count=$((ios * 20)) oflag=direct & dd if=/dev/zero of=/mnt/locked bs=4096 count=$((ios * 20)) oflag=direct; wait'; echo SYSTAPE-STATUS \$?
# in a container: its own process, by dwarf; the whole machine, with a process outside that is in a call at the end
unshare -p -f --mount-proc record --call-graph dwarf -o /tmp/ns.tape -- chain; echo SYSTAPE-STATUS \$?
(until [ -s /tmp/nsall.tape ]; do sleep 0.2; done; exec sleep 100) &
unshare -p -f --mount-proc record -a -o /tmp/nsall.tape -- sh -c 'sleep 4; chain'; echo SYSTAPE-STATUS \$?
# threads with descriptors of their own since before; files that are written through a mapping and by sendfile; dropped packets
mkdir /tmp/apart; apart /tmp/apart /tmp/apart/go & threads=\$!
until [ -e /tmp/apart/ready ]; do sleep 0.1; done
(until [ -s /tmp/apart.tape ]; do sleep 0.2; done; sleep 3; >/tmp/apart/go) & record -p \$threads -o /tmp/apart.tape; echo SYSTAPE-STATUS \$?
record -a --families syscall,block -o /tmp/ways.tape -- apart /mnt; echo SYSTAPE-STATUS \$?
record --duration 10ms --errno '!EAGAIN' --any -o /tmp/want.tape -- sh -c 'cat /nowhere 2>/dev/null; sleep 0.05'; echo SYSTAPE-STATUS \$?
record -a -e skb:kfree_skb -o /tmp/drop.tape -- drops >/tmp/drops; echo SYSTAPE-STATUS \$?; echo SYSTAPE-DROPS \$(cat /tmp/drops)
[ ! -x /bin/other ] || { record -o /tmp/other.tape -- other; echo SYSTAPE-STATUS \$?; }
# functions and static probes of a program, operations of io_uring, looks (of 6.7 and later)
if [ -x /bin/probed ]; then
  record --uprobe '/bin/probed:scale(number=long,by=int,name=string,where=*ulong)->long' --usdt '/bin/probed:regs:*' -o /tmp/probe.tape -- probed; echo SYSTAPE-STATUS \$?
  mkdir /mnt/uring; record -o /tmp/uring.tape -- operations uring /mnt/uring >/tmp/uring; echo SYSTAPE-STATUS \$?; sed 's/^/SYSTAPE-URING /' /tmp/uring
  record --sample=20 -o /tmp/look.tape -- looks 6 >/tmp/look 2>/tmp/look.said; sed 's/^/SYSTAPE-LOOK /' /tmp/look /tmp/look.said
fi
for tape in $tapes; do echo SYSTAPE-BEGIN \$tape; gzip -c /tmp/\$tape.tape | base64; echo SYSTAPE-END \$tape; done
poweroff -f
INIT
  chmod +x "$root/init"
  (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$cache/initramfs.gz"
  rm -rf "$root"
  echo "$cache/initramfs.gz"
}

failed=0 # of all releases
is_known() { local one; for one in "${known[@]}"; do [ "$one" = "$release: $1" ] && return; done; false; }
check() { # what, expected, seen
  if [ "$2" = "$3" ]; then
    if is_known "$1"; then echo "FAIL $release: $1: passes, and is listed as known to fail"; bad=1; else echo "ok   $release: $1"; fi
  elif is_known "$1"; then
    echo "known $release: $1: expected '$2', seen '$3'"
  else
    echo "FAIL $release: $1: expected '$2', seen '$3'"; bad=1
  fi
}

# Whether the guest that writes into the file came to its end. `patience` are seconds of its CPU time for each of its steps, or four times as
# many by the clock: others may take the CPUs
watch() { # pid, console, patience to boot, patience in all
  local clock=0 at
  while kill -0 "$1" 2>/dev/null; do
    at=$(awk -v ticks="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($12 + $13) / ticks) }' "/proc/$1/stat" 2>/dev/null) || at=0
    if [ $((clock / 4)) -gt "${at:-0}" ]; then at=$((clock / 4)); fi
    if [ "${at:-0}" -ge "$4" ] || grep -q 'KVM internal error' "$2" || { [ "${at:-0}" -ge "$3" ] && ! grep -q SYSTAPE-BOOTED "$2"; }; then
      kill "$1"
    fi
    sleep 1; clock=$((clock + 1))
  done
  wait "$1" || true
  grep -q "SYSTAPE-END ${tapes##* }" "$2"
}
# emulated by one thread for both CPUs: with two, a CPU may go on with code that the other has patched (a tracepoint switched on),
# and the kernel loops at a breakpoint that is gone or dies of half an instruction
emulated=(-accel "tcg,thread=single")
# the guest's time is that of its instructions (two ns each), and jumps where it only waits: what shares the machine with it takes none of it
[ "$arch" = amd64 ] || emulated+=(-icount "shift=1,sleep=off")
# 7.2: without cmpxchg16b the kernel allocates nothing where tracing programs run (kmalloc_nolock), so that no task gets storage
cpu_of() { if [ "$arch" = arm64 ]; then echo max,pauth-impdef=on,sve=off; return; fi; case $1 in bullseye | bookworm | trixie) echo qemu64,-cx16 ;; *) echo qemu64 ;; esac; }
has_kvm=$([ "$arch" = amd64 ] && [ -w /dev/kvm ] && echo yes || true)
boot() { # kernel, directory with the disk -> console there
  local accel attempt patience=200
  # a boot that dies before init's marker is qemu's, not ours: tried again
  for attempt in 1 2 3 4 5; do
    accel=("${emulated[@]}" -cpu "$(cpu_of "$release")")
    # a guest that is not emulated boots in seconds; there are /dev/kvm with which none ever does
    [ -z "$has_kvm" ] || { accel=(-accel kvm -cpu host); patience=30; }
    cp "$2/disk" "$2/disk.copy"; : >"$2/console"
    LD_LIBRARY_PATH=${libraries:-${LD_LIBRARY_PATH:-}} "$qemu" "${machine[@]}" "${accel[@]}" -m 1G -smp 2 -nographic -no-reboot -kernel "$1" \
      -drive "file=$2/disk.copy,if=none,id=d,format=raw" -device nvme,drive=d,serial=systape -initrd "$initramfs" \
      -append "console=$console panic=-1 ${KERNEL_ARGS:-quiet}" </dev/null >"$2/console" 2>&1 &
    if watch $! "$2/console" $patience 900; then return; fi
    if [ -n "$has_kvm" ]; then
      echo "note $release: KVM does not run this kernel to the end here; everything is emulated"
      has_kvm= patience=200
    elif grep -q SYSTAPE-BOOTED "$2/console"; then
      return
    fi
  done
}

# what was lost: the cause of each gap
gaps_of() { "$analyze" info "$out/$1.tape" --format json 2>/dev/null | grep -oE '"cause":"[^"]*"' | cut -d'"' -f4 || true; }
# how many events of some families that is; not a number: unknown
lost_of() { # tape, families as in fam|fam
  "$analyze" info "$out/$1.tape" --format json 2>/dev/null | grep -oE '"lost":\{[^}]*' | grep -oE "\"($2)\":[0-9a-z]+" | cut -d: -f2 |
    awk '{ n += $1; bad = bad || $1 !~ /^[0-9]+$/ } END { print bad ? "unknown" : n + 0 }' || true
}
# as check, of a number of events of a tape. Where the kernel skips runs, those the tape says are lost may be missing, and no others
check_all() { # what, expected, seen, tape, families
  local lost=0
  if [ -n "$skips" ]; then lost=$(lost_of "$4" "$5"); fi
  if [ "$lost" != unknown ] && [ "$3" -lt "$2" ] && [ $(($3 + lost)) -ge "$2" ]; then
    check "$1, or told that it is lost" "$2" "$2"
  else
    check "$1" "$2" "$3"
  fi
}
count_of() { "$analyze" "$1" --summary --summary-mode total --format json | sed -nE "s/.*\"syscall\":\"$2\".*/&/p" | grep -oE '"calls":[0-9]+' | cut -d: -f2; }

# Runs a release's kernel; `console` in its directory is what came of it, `kernel` is there if it could be had
run() { # release, directory
  local release=$1 begun=$SECONDS kernel
  kernel=$(kernel_of "$release") || return
  echo "$kernel" >"$2/kernel"
  truncate -s 32M "$2/disk"; mkfs.ext4 -q "$2/disk"
  boot "$kernel" "$2"
  echo "time $release: $(basename "$(cat "$cache/$release/package")"): $((SECONDS - begun)) s"
}

# the guest's busybox comes with a kernel
if [ "$arch" != amd64 ]; then kernel_of "${releases%% *}" >/dev/null; fi
initramfs=$(make_initramfs)
# an emulated machine takes one CPU: as many at once as there are
declare -A dirs=() runs=()
begun=()
for release in $releases; do
  if [ ${#begun[@]} -ge "$(nproc)" ]; then wait "${runs[${begun[0]}]}" || true; begun=("${begun[@]:1}"); fi
  dirs[$release]=$(mktemp -d)
  run "$release" "${dirs[$release]}" &
  runs[$release]=$!
  begun+=("$release")
done

for release in $releases; do
  bad=0 out=${dirs[$release]}
  # 7.0 and later: programs may be preempted, and another task's run of the same program on that CPU is skipped and counted
  skips=$([ "$release" = sid ] && echo skipped || true)
  wait "${runs[$release]}" || true
  if [ ! -e "$out/kernel" ]; then echo "FAIL $release: its kernel cannot be had"; failed=1; continue; fi
  tr -d '\r' <"$out/console" >"$out/log"
  for tape in $tapes; do
    sed -n "/^SYSTAPE-BEGIN $tape/,/^SYSTAPE-END $tape/p" "$out/log" | sed '1d;$d' | base64 -d 2>/dev/null | gzip -dc >"$out/$tape.tape" 2>/dev/null || true
  done
  if [ -n "${KEEP:-}" ]; then for tape in $tapes; do cp "$out/$tape.tape" "$KEEP/$release-$tape.tape"; done; fi
  # a load that the verifier refuses makes record fall back to what only 5.10 needs: it must not do so elsewhere
  if [ "$release" = bullseye ]; then old=1; else old=0; fi
  check "only 5.10 keeps nothing with a task" "$old" "$("$analyze" info "$out/dd.tape" --format json | grep -c 'keep nothing with a task' || true)"
  check "only 5.10 refuses programs, those of any tracepoint and any function" "$([ $old = 0 ] || echo the kernel refused the program any_tracepoint the kernel refused the program packet_tracepoint the kernel refused the program probe_entry)" "$(grep -ao 'the kernel refused the program [a-z_]*' "$out/log" | sort -u | xargs || true)"
  # without tracepoints there is nothing to record of drops
  check "status of the commands" "0 7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0$([ "$arch" = amd64 ] || echo " 0 0 0")" "$(sed -nE 's/^SYSTAPE-STATUS //p' "$out/log" | xargs)"
  check_all "dd: reads" "$((calls + 0))" "$("$analyze" "$out/dd.tape" -e read --format json 2>/dev/null | grep -c '"/dev/zero"')" dd 'syscall'
  check_all "dd: writes" "$calls" "$("$analyze" "$out/dd.tape" -e write --format json 2>/dev/null | grep -c '"/dev/null"')" dd 'syscall'
  check "dd: check" "0" "$("$analyze" check "$out/dd.tape" >/dev/null 2>&1; echo $?)"
  # those of `unseen` are made, and `want` leaves calls out
  gaps=$(for tape in ${tapes/unseen /}; do [ "$tape" != want ] && [ "$tape" != other ] || continue; gaps_of "$tape" | grep -vx "${skips:-none}"; done | sort -u | xargs || true)
  check "nothing lost${skips:+ but runs that the kernel skips}" "" "$gaps"
  listing=$("$analyze" "$out/sh.tape" 2>/dev/null || true)
  check "sh: exec by name" "1" "$(grep -cE 'execve\(filename: "/bin/sh", argv: \["sh", "-c"' <<<"$listing")"
  check "sh: failed open by path" "1" "$(grep -cE 'open(at)?\(.*"/no/such/file".* = -1 ENOENT' <<<"$listing")"
  check "sh: a symlink shows its target" "yes" "$(grep -qE 'open(at)?\(.*"/tmp/link"' <<<"$listing" && grep -qE '(read\(fd|in_fd): [0-9]+</tmp/file>' <<<"$listing" && echo yes)"
  check "sh: exit status" "1" "$(grep -cE 'exit_group\(error_code: 7\)' <<<"$listing")"
  mix() { local report=$1; shift; "$analyze" "$report" "$out/mix.tape" --format json "$@" 2>/dev/null || true; }
  check "mix: check" "0" "$("$analyze" check "$out/mix.tape" >/dev/null 2>&1; echo $?)"
  check "kills: who, how, whom" "1" "$(mix kills | grep '"signal_name":"SIGTERM"' | grep '"via":"kill"' |
    grep -F '"cmdline":["sh","-c",' | grep -cF '"cmdline":["sleep","100"]')"
  check "registers: where they are expected" "0 0" "$(for tape in mix hand; do
    "$analyze" info "$out/$tape.tape" --format json 2>/dev/null | grep -c 'registers of tasks' || true; done | xargs)"
  check "registers: without the kernel's helper" "1" "$("$analyze" kills "$out/hand.tape" --format json 2>/dev/null |
    grep '"signal_name":"SIGTERM"' | grep '"via":"kill"' | grep -cF '"cmdline":["sleep","100"]')"
  check "kills: what came of it" "1" "$(mix kills | grep '"signal_name":"SIGTERM"' | grep -cE '"exit_signal":(15|"SIGTERM")')"
  check "exec: exit status" "1" "$(mix exec | grep -cE '"exit_code":3[,}]')"
  check "block: direct writes, by whom" "$ios" "$(mix block | grep '"cause":"direct"' | grep '"op":"write"' |
    grep -E '"owner":\{[^}]*"comm":"dd"' | grep -cE '"bytes":"?4096"?[,}]')"
  check "block: the files of direct and of other writes" "$ios 28672" "$(mix block | grep '"op":"write"' | awk '
    /"file":"\/mnt\/direct"/ { direct++ } /"file":"\/mnt\/buffered"/ && match($0, /"bytes":"?[0-9]+/) {
      bytes = substr($0, RSTART, RLENGTH); gsub(/[^0-9]/, "", bytes); buffered += bytes } END { print direct, buffered + 0 }')"
  check "block: the writer of what was written back" "yes" "$(mix block | grep '"cause":"dirtier"' |
    grep -qE '"owner":\{[^}]*"comm":"dd"' && echo yes)"
  stored=$("$analyze" block "$out/unseen.tape" --format json 2>/dev/null | grep -c '"disk":"' || true)
  unseen=$("$analyze" info "$out/unseen.tape" --format json 2>/dev/null | grep -oE '"lost":\{[^}]*' | grep -oE '"block":[0-9]+' | cut -d: -f2 || true)
  check "block: stored, and told that their end was not seen" "yes $(((stored + ${unseen:-0} + 4) / 5))" \
    "$([ $((stored + ${unseen:-0})) -ge "$ios" ] && echo yes) ${unseen:-0}"
  # on 5.10 the tape says that it has none, instead of showing none
  if [ "$old" = 1 ]; then
    check "any tracepoint: not recorded" "2" "$("$analyze" "$out/tp.tape" -e task:task_newtask >/dev/null 2>&1; echo $?)"
  else
    check_all "any tracepoint: new tasks, by a filter" 3 "$("$analyze" "$out/tp.tape" -e task:task_newtask --format json 2>/dev/null |
      grep -c '"event":"task:task_newtask"' || true)" tp tracepoint
  fi
  kp() { "$analyze" "$out/kp.tape" -e "kprobe:$1" --format json "${@:2}" 2>/dev/null || true; }
  if [ "$old" = 1 ]; then
    check "kprobe: not recorded" "2" "$("$analyze" "$out/kp.tape" -e kprobe:vfs_unlink >/dev/null 2>&1; echo $?)"
  else
    check_all "kprobe: calls, results, durations" "$unlinks" "$(kp vfs_unlink | grep '"ret":0[,}]' | grep -cE '"dur_ns":"?[1-9]' || true)" kp tracepoint
    check_all "kprobe: strings in the kernel" "$unlinks" "$(kp __set_task_comm | grep -oE '"name":"name-[0-9]{2}"' | sort -u | wc -l)" kp tracepoint
    # of each file one, by open
    check "kprobe: strings of the process" "$unlinks $unlinks" "$(kp do_sys_openat2 | grep -oE '"path":"/tmp/work-[0-9]{2}"' |
      sort | uniq -c | awk '{ n += $1 } END { print n, NR }')"
    # the program's own, and those of its children; each of these fails once before
    check "kprobe: entered before an exec, returned after it" "6 5" "$(kp "$execve" | awk '/"ret":"?0[,"}]/ { ok++ } /"ret":"?-2[,"}]/ { no++ } END { print ok, no }')"
    # the kernel follows the returns of some only, those of the whole machine, and the others are said
    check_all "kprobe: paired and not" "$((sleepers + 11))" "$(($(kp hrtimer_nanosleep | wc -l) + $(kp hrtimer_nanosleep.unpaired | grep -c '"end":"entry"')))" kp tracepoint
    check "kprobe: a sleep takes its time" "yes" "$(kp hrtimer_nanosleep | sed -nE 's/.*"dur_ns":"?([0-9]+).*/\1/p' | sort -n |
      awk '$1 < 2000000 { bad = 1 } $1 >= 700000000 { long++ } END { print bad || long < 5 ? "no" : "yes" }')"
    check "kprobe: nothing else is unpaired" "" "$(for one in vfs_unlink __set_task_comm do_sys_openat2 "$execve"; do kp $one.unpaired; done)"
    check "kprobe: stacks" "$unlinks" "$(kp vfs_unlink --call-graph | grep -cE '"sym":"[a-z_0-9]*unlink[a-z_]*".*'"$bottom" || true)"
    check "kprobe: what is refused" "4" "$(grep -a '^SYSTAPE-REFUSED record: --kprobe' "$out/log" |
      grep -cE "vfs_unlinkk.*the nearest are .*vfs_unlink|$never.*allows no probe|$locked.*hold a lock|functions match .*$opens can be recorded")"
    check "kprobe: what the kernel refuses" "1" "$(grep -a '^SYSTAPE-REFUSED by the kernel record: ' "$out/log" | grep -c "the kernel refuses a probe on $never")"
  fi
  # what dd used that wrote directly, and what the dd with 32 MiB has
  check "usage: blocks written, faults, memory" "yes" "$("$analyze" "$out/mix.tape" -e process:usage --format json 2>/dev/null | grep '"comm":"dd"' | tr -d '"' |
    grep "out_blocks:$((ios * 8))[,}]" | grep -E 'minor_faults:[1-9]' | grep -qE 'maxrss:[1-9]' && echo yes)"
  check "memory of a process, at the start and at the end" "2" "$("$analyze" "$out/mix.tape" -e process:memory --format json 2>/dev/null | grep '"comm":"dd"' | tr -d '"' |
    grep -oE ',rss:[0-9]+' | cut -d: -f2 | awk '$1 >= 32 * 1048576 && $1 < 36 * 1048576' | wc -l)"
  for one in sleep:/system.slice/two.service ls:/docker/one; do
    check "cgroup made meanwhile: $one" "yes" "$("$analyze" "$out/cg.tape" --comm="${one%%:*}" --format json 2>/dev/null |
      grep -q "\"cgroup\":\"${one#*:}\"" && echo yes)"
  done
  net() { "$analyze" net "$out/net.tape" --format json 2>/dev/null | grep -E '"[lr]port":'"$1[,}]" | grep -v '"direction":"listen"' || true; }
  done_by() { net "$1" | sed -nE 's/.*"sent_bytes":"?([0-9]+).*"received_bytes":"?([0-9]+).*/\1 \2/p' | sort -n | xargs; }
  # not what was sent again: an emulated machine is slow to acknowledge
  # the helper that finds a mapping is in 5.17
  # arm64 has no tracepoint of page faults
  faults=$([ "$arch" != amd64 ] || echo yes)
  check "fault: only arm64 has none" "$([ "$arch" = amd64 ] || echo fault is not recorded: this kernel has no tracepoint page_fault_user)" \
    "$(grep -aoE 'fault is not recorded: this kernel has no tracepoint page_fault_user' "$out/log" | sort -u || true)"
  check "fault: in which file" "$([ $old = 1 ] || echo "$faults")" "$("$analyze" "$out/fault.tape" -e fault:page_fault_user --format json 2>/dev/null | grep '"comm":"cat"' |
    grep -c '"memory":"[^"]*busybox"' | sed 's/^0$//; s/^[1-9].*/yes/')"
  check "fault: every other kernel has them" "$faults" "$("$analyze" "$out/fault.tape" -e fault:page_fault_user --format json 2>/dev/null | grep -c '"comm":"cat"' | sed 's/^0$//; s/^[1-9].*/yes/')"
  # 5.19 has the tracepoints
  check "lock: only 5.10 has none" "$([ $old = 0 ] || echo lock is not recorded: this kernel has no tracepoint contention_begin or contention_end)" \
    "$(grep -aoE 'lock is not recorded: this kernel has no tracepoint [a-z_]* or [a-z_]*' "$out/log" | sort -u || true)"
  check "lock: of the file, with who waited" "$([ $old = 1 ] || echo yes)" "$("$analyze" "$out/lock.tape" -e lock:contention --call-graph --format json 2>/dev/null | grep '"comm":"dd"' |
    grep '"kind":"rwsem:W"' | grep -c '"sym":"ext4_' | sed 's/^0$//; s/^[1-9].*/yes/')"
  check "a variable of the environment" "JOB=7" "$("$analyze" "$out/fault.tape" -s --comm=cat --by env --format json 2>/dev/null | grep -oE '"env":"[^"]*"' | cut -d'"' -f4 | sort -u | xargs)"
  check "structures: the status of a child" "yes" "$("$analyze" "$out/mix.tape" -e wait4 2>/dev/null | grep -c 'WEXITSTATUS(s) == 3' | sed 's/^[1-9].*/yes/')"
  check "net: what connections did" "11 7000 7000 11" "$(done_by 78)"
  check "net: an idle one from before" "0 0 0 0 at least" "$(done_by 77) $(net 77 | grep -c '"sent_bytes_at_least":true' | sed 's/^2$/at least/')"
  check "net: whose they are" "nc nc nc nc" "$(net '7[78]' | grep -oE '"comm":"[^"]*"' | cut -d'"' -f4 | xargs)"
  check "sched: switches of dd" "yes" "$(mix sched | grep -q '"comm":"dd"' && echo yes)"
  check "states: asleep in read all the time" "yes" "$(mix states --by comm,state,syscall | grep '"comm":"cat"' |
    grep '"state":"S"' | grep -q '"syscall":"read"' && echo yes)"
  # tape, functions from the innermost outwards, more of a line: how many calls have them in that order
  stacks_of() { "$analyze" "$out/$1.tape" -e getppid --call-graph --format json 2>/dev/null |
    grep -E "$(sed -E 's/[^ ]+/"sym":"&"/g; s/ /.*/g' <<<"$2")" | grep -cE "${3:-.}" || true; }
  # tape, function: whether it has nine of ten samples of main; a busy host leaves a guest fewer than it asked for
  most_samples() { "$analyze" callgraph "$out/$1.tape" --of cpu --metric count --folded 2>/dev/null |
    awk -v name=";$2(;|$)" '/;main;/ { n = $NF; sub(/ [0-9]+$/, ""); all += n; if ($0 ~ name) some += n }
      END { print (all >= 80 && some >= 0.9 * all) ? "yes" : (some + 0) " of " (all + 0) }'; }
  check_all "stacks: by unwind information, to the top" "$chains" "$(stacks_of dwarf \
    'getppid leaf_work middle_work outer_work main __libc_start_call_main __libc_start_main_impl _start' '"stack_status":"complete"')" dwarf 'syscall|stack'
  check_all "stacks: source lines" "$chains" "$(stacks_of dwarf leaf_work '"file":"[^"]*chain.c"[^}]*"line":[0-9]+[^}]*"sym":"main"')" dwarf 'syscall|stack'
  check_all "stacks: through a signal's handler" "$handled" "$("$analyze" "$out/dwarf.tape" -e getuid --call-graph --format json 2>/dev/null |
    grep -cE '"sym":"(__)?getuid".*"sym":"on_signal".*"sym":"before_signal".*"sym":"main"' || true)" dwarf 'syscall|stack'
  # getppid makes no frame of its own: the register is still leaf_work's, and its return address lies in middle_work
  check_all "stacks: by frame pointers" "$chains" "$(stacks_of fp 'getppid middle_work outer_work main')" fp 'syscall|stack'
  for tape in dwarf fp; do
    check "stacks: $tape: check" "0" "$("$analyze" check "$out/$tape.tape" >/dev/null 2>&1; echo $?)"
    # the function with the tracepoint in it has been one of the two
    check_all "stacks: $tape: frames of the kernel" "$chains" "$(stacks_of $tape \
      "$entry getppid")" $tape 'syscall|stack'
    check "stacks: $tape: samples in the loop" "yes" "$(most_samples $tape hot_loop)"
    if [ -z "$skips" ]; then
      check "stacks: $tape: every event has its own" "1" "$("$analyze" info "$out/$tape.tape" --format json 2>/dev/null |
        grep -c '"complete":true' || true)"
    fi
  done
  check_all "container: stacks" "$chains" "$(stacks_of ns 'getppid leaf_work middle_work outer_work main' '"stack_status":"complete"')" ns 'syscall|stack'
  check_all "container: calls, from inside" "$chains" "$("$analyze" "$out/nsall.tape" --comm=chain -e getppid --format json 2>/dev/null | grep -c '"getppid"')" nsall 'syscall'
  check "container: asleep outside" "1" "$("$analyze" "$out/nsall.tape" --comm=sleep --format json 2>/dev/null | grep nanosleep |
    grep -c '"incomplete":"in-flight"')"
  # the command before its execve is all there is of that name
  check "container: not itself" "$("$analyze" "$out/mix.tape" --comm=record --format json 2>/dev/null | grep -c '"dur_ns"')" "$("$analyze" "$out/nsall.tape" --comm=record --format json 2>/dev/null |
    grep -c '"dur_ns"')"
  for tape in ns nsall; do
    check "container: $tape: check" "0" "$("$analyze" check "$out/$tape.tape" >/dev/null 2>&1; echo $?)"
  done
  reads_of() { "$analyze" "$out/apart.tape" -e pread64 --format json 2>/dev/null | grep -c "/tmp/apart/$1\"" || true; }
  # what systape.conf asks for
  wanted() { "$analyze" "$out/want.tape" --format json 2>/dev/null | grep -c "$1" || true; }
  check "slow or failed: the rest is counted" "1 0" "$(wanted '"filename":"/nowhere"') $(wanted '"syscall":"brk"')"
  check "threads apart: whose descriptors they are" "7 11" "$(reads_of shared) $(reads_of own)"
  check "ways to write: what is stored of their files" "20480 12288" "$("$analyze" block "$out/ways.tape" --format json 2>/dev/null | grep '"op":"write"' | awk '
    match($0, /"bytes":"?[0-9]+/) { bytes = substr($0, RSTART, RLENGTH); gsub(/[^0-9]/, "", bytes) }
    /"file":"\/mnt\/mapped"/ { mapped += bytes } /"file":"\/mnt\/sent"/ { sent += bytes } END { print mapped + 0, sent + 0 }')"
  drops() { "$analyze" "$out/drop.tape" -e skb:kfree_skb --format json 2>/dev/null | grep '"reason":"SOCKET_RCVBUFF"' | grep -c "$1" || true; }
  full=$((61 - $(sed -nE 's/^SYSTAPE-DROPS .*received=([0-9]+).*/\1/p' "$out/log")))
  if [ "$old" = 1 ]; then
    check "drops: not recorded" "2" "$("$analyze" "$out/drop.tape" -e skb:kfree_skb >/dev/null 2>&1; echo $?)"
  else
    check_all "drops: of a full socket" "$full" "$(drops .)" drop tracepoint
    # 6.11 tells the socket of a packet that is on its way to it; 6.1 tells none
    check_all "drops: whose socket it is" "$([ "$release" = bookworm ] && echo 0 || echo "$full")" "$(drops '"owner_comm":"drop-taker".*"socket":"UDP:')" drop tracepoint
  fi
  if [ "$arch" = arm64 ]; then
    check "a 32-bit program: its calls are lost, and counted" "$((others + 1)) other-abi" \
      "$(lost_of other 'syscall') $(gaps_of other | grep -v string-fault | sort -u | xargs)"
    check "a 32-bit program: no call has a wrong name" "0" "$("$analyze" "$out/other.tape" --comm=other --format json 2>/dev/null | grep -c '"getpid"\|"writev"\|"io_setup"' || true)"
    check "the tape names its machine" "aarch64" "$("$analyze" info "$out/dd.tape" --format json 2>/dev/null | grep -oE '"machine":"[^"]*"' | cut -d'"' -f4)"
  fi
  if [ "$arch" = arm64 ]; then
    # event, names of arguments: their values, a line for each time
    probed() { "$analyze" "$out/probe.tape" -e "$1" --format json 2>/dev/null | python3 -c 'import json, sys
for row in map(json.loads, sys.stdin): print(*(row["args"].get(name) for name in sys.argv[1].split()), sep=",")' "$2" || true; }
    values() { probed "usdt:regs:$1" "$(printf 'arg%d ' $(seq 0 "$2"))" | sort | uniq -c | xargs; }
    check "static probes: registers" "$passes $(seq -s, 1000 1011) $passes $(seq -s, 1012 1023) $passes $(seq -s, 1024 1030),1007,-7" \
      "$(values low 11) $(values middle 11) $(values high 8)"
    check "uprobe: arguments" "$(for i in $(seq 0 $((passes - 1))); do printf '%d,-3,name-%02d,%d\n' "$i" "$i" $((i * 1000003)); done)" \
      "$(probed uprobe:scale 'number by name where')"
    check "uprobe: results" "$(seq -s' ' 0 -3 $((-3 * (passes - 1))))" \
      "$("$analyze" "$out/probe.tape" -e uprobe:scale --format json 2>/dev/null | grep -oE '"ret":"?-?[0-9]+' | tr -d '"' | cut -d: -f2 | xargs)"
    check "io_uring: operations, their files and results" "$(sed -n 's/^SYSTAPE-URING //p' "$out/log" | grep ' ')" \
      "$("$analyze" "$out/uring.tape" -e io_uring:complete --format json 2>/dev/null | python3 -c 'import json, sys
for row in map(json.loads, sys.stdin):
    a = row["args"]
    print(a["op"], a["file"] or "?", a["result"] if a["result"] is not None else -a["error"])')"
    # the calls that the vdso makes for clock()
    clocks() { "$analyze" "$out/dwarf.tape" --comm=chain -e clock_gettime --call-graph --format json 2>/dev/null | grep -c "${1:-.}" || true; }
    check "stacks: through the vdso" "yes $(clocks)" "$([ "$(clocks)" -ge 2 ] && echo yes) $(clocks '"sym":"hot_loop".*"sym":"main"')"
    if [ "$release" = bookworm ]; then
      check "looks: only 6.1 has none" "1" "$(grep -ac '^SYSTAPE-LOOK .*--sample takes Linux 6.7' "$out/log")"
    else
      # what the program's own clocks say is within the bars of what was seen (e2e/tests/all/single/looks.rs)
      check "looks: states of threads" "vfork D, mutex S, pipe S" "$("$analyze" stays "$out/look.tape" --by comm,state --format json 2>/dev/null | python3 -c 'import json, sys
truth = {line.split()[1]: float(line.split()[2]) for line in open(sys.argv[1], errors="replace") if line.startswith("SYSTAPE-LOOK ") and len(line.split()) == 5}
rows = [json.loads(line) for line in sys.stdin]
said = []
for comm, state in [("vfork", "D"), ("mutex", "S"), ("pipe", "S")]:
    time, low, high = [sum(float(row[name]) for row in rows if (row["comm"], row["state"]) == (comm, state)) for name in ("time_ns", "time_low_ns", "time_high_ns")]
    within = low - (time - low) - 0.02 * time <= truth[comm] <= high + (high - time) + 0.02 * time
    said.append(f"{comm} {state}" if within else f"{comm} {state}: {truth[comm]} is not within {low} to {high}")
print(", ".join(said))' "$out/log")"
    fi
  fi
  # answers of an analyze of arm64, and of this machine's
  if [ -n "${ARM_ANALYZE:-}" ]; then
    check "analyze of arm64: the same text" "" "$(cd "$out" && for tape in $tapes; do "$here/scripts/same-answers.sh" "$analyze" "$ARM_ANALYZE" "$tape.tape" || true; done)"
  fi
  if [ "$bad" != 0 ]; then failed=1; grep -v '^[A-Za-z0-9+/=]\{60,\}$' "$out/log" | tail -40; echo "console and tapes are in $out"; else rm -rf "$out"; fi
done
# tapes of x86-64 and of older versions
if [ -n "${ARM_ANALYZE:-}" ]; then
  release=testdata bad=0
  check "analyze of arm64: the same text" "" "$(find testdata -name '*.tape' | sort | xargs scripts/same-answers.sh "$analyze" "$ARM_ANALYZE")"
  [ "$bad" = 0 ] || failed=1
fi
exit $failed
