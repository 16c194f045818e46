#!/usr/bin/env bash
# Records the programs of the stories in docs/guides/stories.md, asks their tapes, and writes the page anew: real commands, real
# output. `make stories` runs this. Needs root (or sudo) and the packages of `setup.sh test`.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh test >&2
cargo build --release -p systape-recorder -p systape-analyzer
if [ "$(id -u)" != 0 ]; then exec sudo -E env "PATH=$PATH" "$0"; fi
PATH_OF_BIN=$(cd "${CARGO_TARGET_DIR:-target}/release" && pwd)
page=$PWD/docs/guides/stories.md workloads=$PWD/e2e/workloads
# a short name, which stands in the page
dir=${TMPDIR:-/tmp}/stories background=()
mkdir "$dir"
# the system's own Python and perl, not those of a version manager
PATH=$PATH_OF_BIN:/usr/sbin:/usr/bin:/sbin:/bin
leave() {
    for pid in "${background[@]}"; do kill "$pid" 2>/dev/null || true; done
    umount -l "$dir/share" 2>/dev/null || true
    rm -rf "$dir"
}
trap leave EXIT
cd "$dir"
out=$dir/page
width=150

# tell: a paragraph from standard input
tell() { { echo; cat; } >>"$out"; }
# story TITLE: a heading
story() {
    printf 'stories: %s\n' "$1" >&2
    printf '\n## %s\n' "$1" >>"$out"
}
# run COMMAND: what the reader types to record; the workload's own output is not shown
run() {
    printf '\n    $ %s\n' "$1" >>"$out"
    local status=0
    sh -c "$1" >/dev/null 2>err || status=$?
    # 125 and more: record failed. Less is the command's own
    if [ "$status" -ge 125 ]; then cat err >&2; exit 1; fi
    grep '^record: ' err | tail -1 | sed 's/^/    /' >>"$out"
}
# show LINES COMMAND: a question, and the head of its answer
show() {
    printf '\n    $ %s\n' "$2" >>"$out"
    sh -c "$2" >answer 2>&1 || { cat answer >&2; exit 1; }
    LC_ALL=C.UTF-8 sed -nE "1,$1s/^(.{$width}).*/\1/;1,$1p" answer | sed -e 's/^/    /' -e 's/ *$//' >>"$out"
    if [ "$(wc -l <answer)" -gt "$1" ]; then echo '    ...' >>"$out"; fi
}

cat >"$out" <<'END'
# Stories

After this page you have seen a dozen questions of people, each answered from one tape.

`make stories` records these programs and writes this page. Commands and output are real. Lines end after 150 characters, and `...` stands for
the rest of an answer. Each recording could have been made before the question was known.
END

story "A job is slow, and the code did not change"
tell <<'END'
A job reads a file on a shared file system. It takes seconds today.
END
cc -O1 -o slowfs "$workloads/slowfs.c" $(pkg-config --cflags --libs fuse3)
mkdir share
./slowfs share &
background+=($!)
for _ in $(seq 50); do [ -e share/big_file ] && break; sleep 0.1; done
cat >job <<'END'
#!/bin/sh
dd if=share/big_file of=copy bs=64k count=20 iflag=direct
END
chmod +x job
run "record -a -o slow.tape -- ./job"
show 6 "analyze why slow.tape"
tell <<'END'
The reads are slow, all on one file. How slow is each?
END
show 8 "analyze --duration 100 --comm=dd slow.tape"
show 16 "analyze top --hist --by file -e read --comm=dd slow.tape"
umount -l share

story "30,000 calls that nobody wrote"
tell <<'END'
A program formats times. Without `TZ` the C library looks at `/etc/localtime` each time.
END
run "record -o without.tape -- env -u TZ perl -e '@t = localtime for 1..30000'"
show 3 "analyze why without.tape"
show 4 "analyze top --by syscall,file without.tape"
tell <<'END'
With `TZ` set, the same program:
END
run "record -o with.tape -- env TZ=:/etc/localtime perl -e '@t = localtime for 1..30000'"
show 9 "analyze diff without.tape with.tape --by syscall,file"

story "Something starts a program again and again"
run "record -a -o storm.tape -- timeout 2 sh -c 'while sleep 0.1; do date; done'"
show 8 "analyze exec --comm=date storm.tape"
show 5 "analyze why storm.tape"

story "fork takes 10 ms"
tell <<'END'
A program with much memory forks. The kernel copies its page tables meanwhile.
END
cat >fat.py <<'END'
import os
memory = bytearray(512 << 20)
for at in range(0, len(memory), 4096):
    memory[at] = 1
for _ in range(5):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
END
run "record -o fat.tape -- python3 fat.py"
show 6 "analyze -e clone --duration 1 fat.tape"

story "Who sent the SIGTERM?"
cat >cleanup <<'END'
#!/bin/sh
kill "$(cat job.pid)"
END
chmod +x cleanup
run "record -a -o kill.tape -- sh -c 'sleep 60 & echo \$! > job.pid; sleep 0.2; ./cleanup; wait; true'"
show 12 "analyze kills kill.tape"

story "Which Python programs ran, and how did they end?"
cat >work.py <<'END'
import sys
sys.exit(int(sys.argv[1]))
END
run "record -a -o python.tape -- sh -c 'python3 work.py 0; python3 work.py 3; true'"
show 8 "analyze exec --comm='python*' python.tape"

story "Which program waits for the disk, and for which files?"
run "record -a -o disk.tape -- sh -c 'dd if=/dev/zero of=a bs=1M count=16 conv=fsync; dd if=/dev/zero of=b bs=4k count=50 oflag=dsync; rm a b'"
show 8 "analyze block --top --by comm,op disk.tape"
show 8 "analyze block --top --by file disk.tape"
show 14 "analyze block --hist disk.tape"

story "Who read ahead, and of what?"
run "record -o ahead.tape -- sh -c 'dd if=/dev/zero of=c bs=1M count=4; python3 -c \"import os; f = os.open(\\\"c\\\", 0); os.posix_fadvise(f, 0, 1 << 20, os.POSIX_FADV_WILLNEED)\"; rm c'"
show 4 "analyze -e readahead,fadvise64 ahead.tape"

story "How many bytes did each user send, and to whom?"
tell <<'END'
`nobody` and `root` each send to the same server.
END
cat >serve.pl <<'END'
use IO::Socket::INET;
my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1:8471", Listen => 5, ReuseAddr => 1) or die;
for (1 .. 2) {
    my $client = $server->accept;
    while (sysread $client, my $data, 65536) { }
}
END
cat >send.pl <<'END'
use IO::Socket::INET;
my $socket = IO::Socket::INET->new("127.0.0.1:8471") or die;
syswrite $socket, "x" x $ARGV[0];
END
chmod 755 . && chmod 644 ./*.pl
run "record -a -o net.tape -- sh -c 'timeout 10 perl serve.pl & sleep 0.5; setpriv --reuid nobody --clear-groups perl send.pl 300000; perl send.pl 5000; wait'"
show 6 "analyze files --sockets --by uid,comm,file --comm=perl -P 'TCP:*' net.tape"
show 6 "analyze net --comm=perl net.tape"

story "A thread has hung since before the recording began"
mkfifo pipe
sh -c 'read line <pipe' &
background+=($!)
sleep 0.3
run "record -a -o hung.tape --for 1"
show 6 "analyze states --at 0.9 --comm=sh hung.tape"

story "Why did this command take so long?"
run "record -o path.tape -- sh -c '(sleep 0.2; echo x) | cat | wc -c'"
show 14 "analyze path path.tape"

tell <<'END'
More: [why](../reading/why.md), [every report](../reading/README.md), [options of record](../reference/record.md).
END
cp "$out" "$page"
printf 'stories: wrote %s\n' docs/guides/stories.md >&2
