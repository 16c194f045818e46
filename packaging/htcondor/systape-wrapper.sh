#!/bin/sh
# Job wrapper of HTCondor (condor_config: USER_JOB_WRAPPER = /usr/libexec/systape-wrapper.sh): a job with `+Systape = true` in its description runs
# under record, and its tape comes home with its output. A machine where users may not record (record needs root or file capabilities, see
# docs/guides/always-on.md) runs the job as ever.
ad=${_CONDOR_JOB_AD:-/dev/null}
if grep -qix 'systape *= *true' "$ad" && record --quiet -o - -- true >/dev/null 2>&1; then
    job=$(sed -n 's/^ClusterId *= *//p' "$ad").$(sed -n 's/^ProcId *= *//p' "$ad")
    # exit status and signals of the job are record's
    exec record --quiet --duration 10ms --errno '!EAGAIN' --any --max-size 200M --label "job=$job" -o "systape-$job.tape" -- "$@"
fi
exec "$@"
