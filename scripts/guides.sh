#!/usr/bin/env bash
# Records the tapes that the pages in docs/ ask (testdata/guides): small programs with one fault each. Needs root, python3, perl,
# sqlite3 and util-linux; a quiet machine makes better tapes. After it: UPDATE_GOLDEN=1 cargo test --workspace --test analyze manual::
# prints the answers anew. `scripts/guides.sh NAME...` records some of them.
set -euo pipefail
cd "$(dirname "$0")/.."
tapes=$PWD/testdata/guides bin=${CARGO_TARGET_DIR:-$PWD/target}/release
[ "$(id -u)" = 0 ] || exec sudo -E env "PATH=$PATH" "$0" "$@"
PATH=${BIN_DIR:-$bin}:/usr/sbin:/usr/bin:/sbin:/bin
# no path of whoever runs this gets into a tape: standard error is a pipe
[ -n "${PIPED:-}" ] || { PIPED=1 scripts/guides.sh "$@" 2>&1 >/dev/null | cat >&2; exit; }
# paths that stand in the pages
work=/srv/app
[ ! -e $work ] || { echo "guides: $work is there already" >&2; exit 1; }
mkdir -p $work && cd $work
trap 'jobs -p | xargs -r kill 2>/dev/null; rm -rf $work; rmdir /sys/fs/cgroup/cpu/shop 2>/dev/null || true' EXIT

wanted() { [ $# = 1 ] || [[ " ${*:2} " == *" $1 "* ]]; }
# keep NAME: the tape, readable for all as the other files of a clone
keep() { install -m 644 "$1.tape" "$tapes/$1.tape" && ls -l "$tapes/$1.tape" >&2; }

# a service of which one request in ten waits for a backend, and a lock around its log
demo() { systape demo . >/dev/null && keep demo; }

# the same service with stacks and CPU samples
flames() { record -g -F 199 -o flames.tape -- systape demo-service >/dev/null && keep flames; }

# a program ends a job that belongs to another
kills() {
    printf '#!/bin/sh\nkill "$(cat job.pid)"\n' >cleanup && chmod +x cleanup
    record -o kill.tape -- sh -c 'sleep 60 & echo $! >job.pid; sleep 0.2; ./cleanup; wait; python3 -c "import os; os.abort()"; ./absent; true' || true
    keep kill
}

# one program writes much and waits once, another writes little and waits each time
disk() {
    cat >orders.py <<'END'
import os
log = os.open("orders.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for number in range(200):
    os.write(log, b"order %d\n" % number)
    os.fsync(log)
END
    record -o disk.tape -- sh -c 'dd if=/dev/zero of=backup bs=1M count=16 conv=fsync 2>/dev/null; /usr/bin/python3 orders.py'
    keep disk
}

# two that want one lock
hung() {
    flock job.lock sleep 30 &
    sleep 0.3
    flock job.lock echo mine >/dev/null &
    local pid=$!
    sleep 0.5
    record -g -p $pid --for 1s -o hung.tape
    keep hung
}

# a name server that takes 300 ms, a peer that refuses, one that answers
network() {
    cat >names.py <<'END'
import socket, time
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.53", 53))
while True:
    query, peer = server.recvfrom(512)
    time.sleep(0.3)
    end = query.index(b"\0", 12) + 5
    kind = query[end - 4:end - 2]
    answer = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4\x7f\0\0\1" if kind == b"\0\1" else b""
    server.sendto(query[:2] + b"\x81\x80\0\1" + (b"\0\1" if answer else b"\0\0") + b"\0\0\0\0" + query[12:end] + answer, peer)
END
    cat >stock.py <<'END'
import socket
server = socket.create_server(("127.0.0.1", 8471))
while True:
    peer, _ = server.accept()
    peer.recv(100)
    peer.sendall(b"x" * 20000)
    peer.close()
END
    cat >shop.py <<'END'
import socket
for turn in range(3):
    with socket.create_connection(("stock.internal", 8471)) as peer:
        peer.sendall(b"how many\n")
        while peer.recv(65536): pass
try:
    socket.create_connection(("127.0.0.1", 9))
except OSError: pass
END
    printf 'nameserver 127.0.0.53\noptions timeout:2 attempts:1\n' >resolv.conf
    printf 'hosts: dns\n' >nsswitch.conf
    /usr/bin/python3 names.py &
    /usr/bin/python3 stock.py &
    sleep 0.5
    unshare -m sh -c "mount --bind resolv.conf /etc/resolv.conf; mount --bind nsswitch.conf /etc/nsswitch.conf
        record --probe dns -o network.tape -- /usr/bin/python3 shop.py"
    keep network
}

# a fifth of a CPU is allowed
quota() {
    printf 'end = 12000000\nwhile end: end -= 1\n' >work.py
    mkdir -p /sys/fs/cgroup/cpu/shop
    echo 20000 >/sys/fs/cgroup/cpu/shop/cpu.cfs_quota_us
    # others do not take its fifth
    echo 262144 >/sys/fs/cgroup/cpu/shop/cpu.shares
    sh -c 'echo $$ >/sys/fs/cgroup/cpu/shop/cgroup.procs; exec /usr/bin/python3 work.py' &
    record -p $! -o quota.tape
    rmdir /sys/fs/cgroup/cpu/shop
    keep quota
}

# the C library looks at /etc/localtime each time, without TZ
compare() {
    record -o before.tape -- env -u TZ perl -e '@t = localtime for 1..30000'
    record -o after.tape -- env TZ=:/etc/localtime perl -e '@t = localtime for 1..30000'
    keep before && keep after
}

# looks at a process with three threads: two take turns with a lock of a file, one computes half of the time
looks() {
    cat >threads.py <<'END'
import fcntl, threading, time
end = time.time() + 3
def holds():
    with open("turn.lock", "w") as file:
        while time.time() < end:
            fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(0.2)
            fcntl.flock(file, fcntl.LOCK_UN)
            time.sleep(0.02)
def computes():
    while time.time() < end:
        began = time.time()
        while time.time() < began + 0.1: pass
        time.sleep(0.1)
for body in (holds, holds, computes): threading.Thread(target=body).start()
END
    record --sample=50 -o looks.tape -- /usr/bin/python3 threads.py
    keep looks
}

# a flight recorder that a death makes write
flight() {
    record --last 5s --after 1s --on kill:sleep --comm sleep --dir flight &
    sleep 2
    sh -c 'sleep 60 & sleep 0.5; kill -9 $!; wait' || true
    sleep 3
    kill -INT %% && wait
    mv flight/*.tape flight.tape && keep flight
}

# two machines, as two network namespaces: one asks, the other is slow once
machines() {
    cp "${tapes%/testdata/guides}/e2e/workloads/machines.py" .
    python3 -B machines.py &
    until [ -s connected ] && [ -s pids ]; do sleep 0.05; done
    local server client
    read -r server client <pids
    unshare --uts sh -c "hostname db-1; exec record -p $server -o db.tape" &
    unshare --uts sh -c "hostname web-1; exec record -p $client -o web.tape" &
    until [ -s db.tape ] && [ -s web.tape ]; do sleep 0.05; done
    sleep 1
    touch go
    wait
    keep web && keep db
}

for name in demo flames kills disk hung network quota compare looks flight machines; do
    wanted $name "$@" || continue
    echo "guides: $name" >&2
    $name
    jobs -p | xargs -r kill 2>/dev/null || true
    wait 2>/dev/null || true
done
