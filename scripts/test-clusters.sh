#!/usr/bin/env bash
# Records a container of podman and a job of Slurm, on this machine alone, and looks for their names in the tapes, and checks the DaemonSet:
# test-clusters.sh BIN.
# BIN has record and analyze. Needs root, podman, crun, slurm-wlm, munge and a static busybox; starts munged, slurmctld and slurmd with files of its own,
# and ends them. A machine with both kinds of cgroups at once shows podman those of v1 alone, in a mount namespace.
set -euo pipefail

bin=$(realpath "$1")
cd "$(dirname "$0")/.."
here=$PWD
work=$(mktemp -d)
# the job's user enters its own directory
chmod 755 "$work"
PATH=$bin:$PATH:/usr/sbin:/sbin
user=systape-job
end() {
    for pid in "$work"/*.pid; do [ ! -s "$pid" ] || kill "$(cat "$pid")" 2>/dev/null || true; done
    [ ! -e "$work/made-user" ] || userdel "$user" 2>/dev/null || true
    rm -rf "$work"
}
trap end EXIT
failed=0
check() { # what, expected, seen
    if [ "$2" = "$3" ]; then echo "ok   $1"; else echo "FAIL $1: expected '$2', seen '$3'"; failed=1; fi
}
# what the sums of a command by a key have in a column
key_of() { # tape key comm [column]
    analyze top --by "$2,comm" --format json "$1" 2>/dev/null | jq -r "select(.comm == \"$3\") | .${4:-$2}" | sort -u | xargs
}

podman_names() {
    local root=$work/podman limits
    mkdir -p "$root/root/bin"
    cp "$(command -v busybox)" "$root/root/bin/busybox"
    for tool in sh tac; do ln -s busybox "$root/root/bin/$tool"; done
    tar -C "$root/root" -cf "$root/root.tar" .
    podman import -q "$root/root.tar" systape-test:1 >/dev/null
    # limits that need no right to raise them; nothing of the network
    limits="--network=none --pids-limit=0 --ulimit nofile=1024:1024 --ulimit nproc=1000:1000"
    cat >"$root/run" <<END
set -e
[ ! -d /sys/fs/cgroup/unified ] || umount -l /sys/fs/cgroup/unified
cd "$root"
record -a -o all.tape -- podman run --rm --name systape-web $limits systape-test:1 /bin/sh -c 'tac /no/such/file; tac /bin/busybox >/dev/null' || true
END
    unshare -m bash "$root/run" >"$root/said" 2>&1 || true
    podman rmi -f systape-test:1 >/dev/null 2>&1 || true
    check "podman: the container's name" systape-web "$(key_of "$root/all.tape" container tac container_name)"
    check "podman: its calls by that name" yes "$(analyze -e openat --container systape-web --failure "$root/all.tape" 2>/dev/null | grep -q '"/no/such/file"' && echo yes)"
    [ "$failed" = 0 ] || tail -n 20 "$root/said"
}

slurm_names() {
    local root=$work/slurm id
    mkdir -p "$root"/{state,spool,home}
    if ! id "$user" >/dev/null 2>&1; then useradd -M -d "$root/home" "$user" && touch "$work/made-user"; fi
    chown "$user" "$root/home"
    chmod 755 "$root"
    dd if=/dev/urandom of="$root/key" bs=128 count=1 status=none
    chmod 600 "$root/key"
    mkdir "$root/munge"
    chmod 711 "$root/munge"
    munged --force --key-file="$root/key" --socket="$root/munge/socket" --pid-file="$root/munge/pid" --log-file="$root/munge/log" --seed-file="$root/munge/seed" >/dev/null 2>&1
    cp "$root/munge/pid" "$work/munged.pid"
    for part in prolog epilog; do
        { echo '#!/bin/bash'; echo "export PATH=$PATH SYSTAPE_DIR=$root/tapes"; cat "$here/packaging/slurm/$part.sh"; } >"$root/$part"
        chmod 755 "$root/$part"
    done
    cat >"$root/slurm.conf" <<END
ClusterName=one
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
SlurmctldPort=26817
SlurmdPort=26818
AuthType=auth/munge
AuthInfo=socket=$root/munge/socket
CredType=cred/munge
StateSaveLocation=$root/state
SlurmdSpoolDir=$root/spool
SlurmctldLogFile=$root/slurmctld.log
SlurmdLogFile=$root/slurmd.log
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/builtin
PropagateResourceLimits=NONE
ReturnToService=2
Prolog=$root/prolog
Epilog=$root/epilog
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=1 RealMemory=500 State=UNKNOWN
PartitionName=all Nodes=$(hostname -s) Default=YES State=UP
END
    export SLURM_CONF=$root/slurm.conf
    printf '#!/bin/sh\n#SBATCH --comment=systape\ncat /no/such/file\nsrun -n1 cat /no/such/step\n' >"$root/job"
    slurmctld -f "$SLURM_CONF"
    slurmd -f "$SLURM_CONF"
    for _ in $(seq 60); do sinfo -h -t idle 2>/dev/null | grep -q idle && break; sleep 0.5; done
    id=$(cd "$root/home" && setpriv --reuid "$user" --regid "$user" --clear-groups sbatch --parsable "$root/job")
    for _ in $(seq 120); do
        tape=$(echo "$root"/home/systape-"$id"-*.tape)
        [ -s "$tape" ] && [ ! -e "$root/tapes/job-$id.pid" ] && break
        sleep 0.5
    done
    check "slurm: the tape is the user's own" "$user 600" "$(stat -c '%U %a' "$tape" 2>/dev/null)"
    check "slurm: its label names the job" "job=$id node=$(hostname -s)" "$(key_of "$tape" label cat)"
    check "slurm: programs by the job's variables" yes "$(key_of "$tape" env cat | grep -q "SLURM_JOB_ID=$id" && echo yes)"
    check "slurm: calls of the job and of its step" "/no/such/file /no/such/step" \
        "$(analyze -e openat --failure "$tape" 2>/dev/null | grep -oE '/no/such/[a-z]+' | sort -u | xargs)"
    check "slurm: no node is drained" idle "$(sinfo -h -o %T | sort -u | xargs)"
    [ "$failed" = 0 ] || tail -n 20 "$root"/*.log "$root"/tapes/* 2>/dev/null || true
}

# by the schemas of Kubernetes, which know each field
kubernetes_takes() {
    local version
    # a field that is misspelt shows that they are asked
    sed 's/hostPID/hostPid/' packaging/kubernetes/daemonset.yaml >"$work/misspelt.yaml"
    for version in 1.28 1.37; do
        check "kubernetes $version: the DaemonSet" "0 1" "$(for file in packaging/kubernetes/daemonset.yaml "$work/misspelt.yaml"; do
            PYTHONPATH=$here/target/clusters python3 -m kubernetes_validate -k "$version" --strict "$file" >/dev/null 2>&1 && echo 0 || echo 1
        done | xargs)"
    done
}

kubernetes_takes
podman_names
slurm_names
exit $failed
