#!/bin/bash
# Prolog of slurmd (slurm.conf: Prolog=/etc/slurm/systape-prolog.sh): records each job on this node into a tape, as root. The job's number is
# the tape's label. A job is never held up or failed by it: whatever goes wrong is in the log.
#
# Only jobs that ask are recorded: sbatch --comment=systape (all jobs: SYSTAPE_ALL=1 here).
set -u

: "${SYSTAPE_ALL:=0}"
: "${SYSTAPE_DIR:=/var/spool/systape}"
# calls that are slow or fail in full, all others as totals. The tape will be the job's user's alone; redaction here would take out the label too
: "${SYSTAPE_ARGS:=--duration 10ms --errno !EAGAIN --any --max-size 1G}"

[ -n "${SLURM_JOB_ID:-}" ] || exit 0
[ "$SYSTAPE_ALL" = 1 ] || [ "${SLURM_JOB_COMMENT:-}" = systape ] || exit 0
[ -d "$SYSTAPE_DIR" ] || (umask 077 && mkdir -p "$SYSTAPE_DIR") || exit 0
base=$SYSTAPE_DIR/job-$SLURM_JOB_ID

# with cgroups (proctrack/cgroup) exactly the job's processes, else those of its user on this node
target=(--uid "${SLURM_JOB_UID:-0}")
for group in "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_$SLURM_JOB_ID" "/sys/fs/cgroup/system.slice/${SLURMD_NODENAME:-}_slurmstepd.scope/job_$SLURM_JOB_ID"; do
    if [ -d "$group" ]; then target=(--cgroup "$group"); fi
done

# the recorder is no child of the job, and ends with the epilog
# shellcheck disable=SC2086 # options
setsid record "${target[@]}" $SYSTAPE_ARGS --quiet --env SLURM_JOB_ID,SLURM_STEP_ID,SLURM_PROCID --label "job=$SLURM_JOB_ID" --label "node=$(hostname -s)" \
    -o "$base.tape" </dev/null >"$base.log" 2>&1 &
echo $! >"$base.pid"
# the first calls of the job are recorded too: it waits until events are, but not for long
for _ in $(seq 50); do
    [ -s "$base.tape" ] && break
    kill -0 $! 2>/dev/null || break
    sleep 0.1
done
exit 0
