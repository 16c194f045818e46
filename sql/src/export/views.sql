-- Views for reports over the tables of an export. Numbers are exact where the tapes are: what was counted instead of stored is
-- added, and what is missing makes `at_least` 1. In the SQL that DuckDB and Spark have in common. Reports whose rows are tables
-- (summary, kills, exec, files, block, net, offcpu, states, sched_latency, locks, why ...) need no view.

-- Calls that are missing from both syscalls and ledger, by process; pid 0: it is not known whose they are.
CREATE OR REPLACE VIEW missing_calls AS
SELECT host, date, tape, coalesce(pid, 0) AS pid, count(*) AS gaps, sum(events) AS events
FROM gaps
WHERE is_loss AND NOT in_ledger AND family IN ('syscall', 'state', 'unknown')
GROUP BY host, date, tape, coalesce(pid, 0);

-- One row a call, and one a sum of calls that were counted instead of stored.
CREATE OR REPLACE VIEW all_calls AS
SELECT host, date, tape, pid, upid, abi, syscall, errno, 1 AS calls, 0 AS ledger_calls,
    CASE WHEN failed THEN 1 ELSE 0 END AS errors,
    CASE WHEN dur_ns_at_least OR incomplete = 'lost-enter' THEN 1 ELSE 0 END AS incomplete_calls,
    dur_ns AS total_ns,
    CASE WHEN NOT dur_ns_at_least THEN dur_ns END AS min_ns,
    CASE WHEN NOT dur_ns_at_least OR dur_ns > 0 THEN dur_ns END AS max_ns
FROM syscalls
UNION ALL
SELECT host, date, tape, pid, upid, abi, syscall, errno, calls, calls AS ledger_calls,
    CASE WHEN failed THEN calls ELSE 0 END AS errors,
    CASE WHEN (sum_ns IS NOT NULL AND NOT exact) OR incomplete = 'lost-enter' THEN calls ELSE 0 END AS incomplete_calls,
    sum_ns AS total_ns,
    CASE WHEN exact THEN min_ns END AS min_ns,
    CASE WHEN exact OR max_ns > 0 THEN max_ns END AS max_ns
FROM ledger
WHERE reason <> 'checked';

-- analyze --summary --summary-mode process
CREATE OR REPLACE VIEW calls_by_process AS
SELECT c.host, c.date, c.tape, c.pid, c.upid, c.abi, c.syscall,
    sum(c.calls) AS calls, sum(c.errors) AS errors, coalesce(sum(c.total_ns), 0) AS total_ns,
    min(c.min_ns) AS min_ns, max(c.max_ns) AS max_ns,
    sum(c.incomplete_calls) AS incomplete_calls, sum(c.ledger_calls) AS ledger_calls,
    max(CASE WHEN own.gaps IS NULL AND any_.gaps IS NULL THEN 0 ELSE 1 END) AS at_least
FROM all_calls c
LEFT JOIN (SELECT * FROM missing_calls WHERE pid <> 0) own ON own.tape = c.tape AND own.pid = c.pid
LEFT JOIN (SELECT * FROM missing_calls WHERE pid = 0) any_ ON any_.tape = c.tape
GROUP BY c.host, c.date, c.tape, c.pid, c.upid, c.abi, c.syscall;

-- analyze --summary --summary-mode total
CREATE OR REPLACE VIEW calls_by_syscall AS
SELECT c.host, c.date, c.tape, c.abi, c.syscall,
    sum(c.calls) AS calls, sum(c.errors) AS errors, coalesce(sum(c.total_ns), 0) AS total_ns,
    min(c.min_ns) AS min_ns, max(c.max_ns) AS max_ns,
    sum(c.incomplete_calls) AS incomplete_calls, sum(c.ledger_calls) AS ledger_calls,
    max(CASE WHEN lost.tape IS NULL THEN 0 ELSE 1 END) AS at_least
FROM all_calls c
LEFT JOIN (SELECT DISTINCT tape FROM missing_calls) lost ON lost.tape = c.tape
GROUP BY c.host, c.date, c.tape, c.abi, c.syscall;

-- analyze top --by errno,syscall: how often each error was returned
CREATE OR REPLACE VIEW errors_by_syscall AS
SELECT c.host, c.date, c.tape, c.abi, c.syscall, c.errno, sum(c.errors) AS errors,
    max(CASE WHEN lost.tape IS NULL THEN 0 ELSE 1 END) AS at_least
FROM all_calls c
LEFT JOIN (SELECT DISTINCT tape FROM missing_calls) lost ON lost.tape = c.tape
WHERE c.errors > 0
GROUP BY c.host, c.date, c.tape, c.abi, c.syscall, c.errno;

-- Calls of 10 ms or more, the longest first: of those that are stored.
CREATE OR REPLACE VIEW slow_calls AS
SELECT host, date, tape, ts_ns, rel_ns, dur_ns, dur_ns_at_least, pid, tid, comm, syscall, file, errno
FROM syscalls
WHERE dur_ns >= 10000000;

-- How many threads and processes began, and programs were started, in each second of a tape. `fork` and `exec`: in exports made before
-- events had the listing's names.
CREATE OR REPLACE VIEW life_by_second AS
SELECT host, date, tape, rel_ns - (rel_ns % 1000000000) AS second_rel_ns,
    sum(CASE WHEN event IN ('sched:sched_process_fork', 'fork') AND NOT thread THEN 1 ELSE 0 END) AS processes,
    sum(CASE WHEN event IN ('sched:sched_process_fork', 'fork') AND thread THEN 1 ELSE 0 END) AS threads,
    sum(CASE WHEN event IN ('sched:sched_process_exec', 'exec') THEN 1 ELSE 0 END) AS programs
FROM process_events
GROUP BY host, date, tape, rel_ns - (rel_ns % 1000000000);
