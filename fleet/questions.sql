-- Questions to the tapes of many machines, in the SQL that DuckDB and Spark have in common: over the tables and views
-- (_systape/views.sql) of an export. `fleet/ask.py` asks them; docs/guides/many-machines.md shows them.

-- question: losses
-- Which tapes are not complete, before anything else is believed. Where `in_ledger` is true the calls were counted: sums have them.
SELECT host, tape, family, cause, in_ledger, sum(events) AS events
FROM gaps
WHERE is_loss
GROUP BY host, tape, family, cause, in_ledger
ORDER BY events DESC, host, tape, family, cause, in_ledger;

-- question: summary
-- Which calls took the time on which machine. Calls that were counted instead of stored are in it; `at_least` is 1 where some are missing.
SELECT host, syscall, sum(calls) AS calls, sum(errors) AS errors, sum(total_ns) AS total_ns, max(at_least) AS at_least
FROM calls_by_syscall
GROUP BY host, syscall
ORDER BY total_ns DESC, host, syscall;

-- question: slow_calls
-- The longest calls of all machines: of those that are stored. `dur_ns_at_least` is true of those that had not ended.
SELECT host, tape, rel_ns, dur_ns, dur_ns_at_least, pid, comm, syscall, file
FROM slow_calls
ORDER BY dur_ns DESC, host, tape, rel_ns, pid
LIMIT 100;

-- question: kills
-- Who sent a signal that ended a process, on any machine.
SELECT host, tape, rel_ns, sender_comm, signal_name, target_pid, target_comm, outcome_exit_signal
FROM kills
WHERE outcome_exit_signal IS NOT NULL
ORDER BY ts_ns, host, tape, target_pid;

-- question: storms
-- In which seconds a machine started most programs.
SELECT host, tape, second_rel_ns, programs
FROM life_by_second
WHERE programs > 0
ORDER BY programs DESC, host, tape, second_rel_ns
LIMIT 100;

-- question: slow_machines
-- Which calls take longer on one machine than on the others: `extra_ns` is the time that it would not have spent at their mean.
WITH by_host AS (
    SELECT host, syscall, sum(calls) AS calls, sum(total_ns) AS total_ns, max(at_least) AS at_least
    FROM calls_by_syscall
    GROUP BY host, syscall
), by_call AS (
    SELECT syscall, sum(calls) AS calls, sum(total_ns) AS total_ns, max(at_least) AS at_least
    FROM by_host
    GROUP BY syscall
)
SELECT one.host, one.syscall, one.calls,
    one.total_ns / one.calls AS mean_ns,
    (all_.total_ns - one.total_ns) / (all_.calls - one.calls) AS mean_of_others_ns,
    one.total_ns - one.calls * ((all_.total_ns - one.total_ns) / (all_.calls - one.calls)) AS extra_ns,
    all_.at_least
FROM by_host one
JOIN by_call all_ ON all_.syscall = one.syscall
WHERE all_.calls > one.calls
ORDER BY extra_ns DESC, one.host, one.syscall
LIMIT 100;
