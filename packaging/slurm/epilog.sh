#!/bin/bash
# Epilog of slurmd (slurm.conf: Epilog=/etc/slurm/systape-epilog.sh): ends the recording that systape-prolog.sh began, and puts the tape beside the
# job's output as the job's user, who alone may read it. A node is never drained because of it.
set -u

: "${SYSTAPE_DIR:=/var/spool/systape}"
[ -n "${SLURM_JOB_ID:-}" ] || exit 0
base=$SYSTAPE_DIR/job-$SLURM_JOB_ID
[ -f "$base.pid" ] || exit 0

pid=$(cat "$base.pid")
# the number may be another's by now
if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = record ]; then
    kill -TERM "$pid"
    for _ in $(seq 300); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null
fi
rm -f "$base.pid"
[ -s "$base.tape" ] || { logger -t systape "job $SLURM_JOB_ID: no tape: $(head -c 300 "$base.log")"; exit 0; }

to=${SLURM_JOB_WORK_DIR:-}
uid=${SLURM_JOB_UID:-}
if [ -n "$to" ] && [ -n "$uid" ] && [ "$uid" != 0 ]; then
    # written by the user: root follows no link and fills no directory of theirs
    name=systape-$SLURM_JOB_ID-$(hostname -s).tape
    # shellcheck disable=SC2016 # the shell of the user expands it
    if setpriv --reuid "$uid" --regid "${SLURM_JOB_GID:-$uid}" --clear-groups sh -c 'umask 077; set -C; cat >"$1/$2"' sh "$to" "$name" <"$base.tape"; then
        rm -f "$base.tape" "$base.log"
    fi
fi
exit 0
