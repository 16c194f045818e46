"""Queries whose answers must be those of DuckDB on the exported tape, or refused. `FIXED` are written out, `HEADINGS` are for
the names of columns, `corpus()` adds what comes of lists of columns, conditions and functions, `grammar()` any number of made-up ones."""

import random

# what DuckDB calls the columns of these, so does `analyze sql`
HEADINGS = """
SELECT count(*), count(DISTINCT pid), SUM(dur_ns), sum(dur_ns) / 1e6, sum(dur_ns)/1000000.0 FROM syscalls
SELECT -pid, -1, -(pid + 1), +pid, (pid), (pid + 1) * 2, pid % 3, syscalls.tid, syscalls.pid + 1 FROM syscalls
SELECT pid <> 3, pid = 3 AND dur_ns > 2, pid = 3 OR NOT failed, pid = 3 AND dur_ns > 2 AND failed, pid = 3 OR (pid = 4 AND failed) FROM syscalls
SELECT comm || 'a', pid IS NULL, pid IS NOT NULL, pid IN (1, 2), pid NOT IN (1,2), pid BETWEEN 1 AND 2, pid NOT BETWEEN 1 AND 2 FROM syscalls
SELECT CAST(pid AS DOUBLE), pid::bigint, TRY_CAST(comm AS BIGINT), NULL, 'x', 2.5, 1e3, upper(comm), "comm", pid AS "x y" FROM syscalls
SELECT sum(pid) FILTER (WHERE failed), count(*) FILTER (WHERE failed) FROM syscalls
SELECT sum(pid) OVER (PARTITION BY comm), row_number() OVER (ORDER BY pid) FROM syscalls
SELECT (SELECT 1), (SELECT max(pid) FROM syscalls), date_trunc('minute', ts), ceil(2.2), floor(pid), pid IS DISTINCT FROM 1 FROM syscalls
SELECT round(sum(dur_ns) * 100.0 / sum(sum(dur_ns)) OVER (), 2) FROM syscalls
SELECT * FROM (SELECT pid, pid, count(*), count(*), count(*) FROM syscalls GROUP BY pid)
""".strip("\n").split("\n")

FIXED = """
SELECT count(*) FROM syscalls
SELECT 1
SELECT NULL
SELECT 1 + 1, 7 - 9, 3 * 4, 7 / 2, 7 % 3, -7 % 3, 7 % -3
SELECT 1 / 0
SELECT 5 % 0
SELECT 0.0 / 0 > 5, -(0.0 / 0) > 5, sqrt(0.0 / 0) > 5, 0.0 / 0 = 0.0 / 0, 5 <= 1.0 / 0 - 1.0 / 0, greatest(0.0 / 0, 5) > 6
SELECT count(*) FROM syscalls WHERE 532 - rel_ns >= cpu / cpu
SELECT -(0 / 709), 0 - 0 / 709, -(0.0), -(1 / 4), -(-(3)), -(-9223372036854775807 - 1), - CAST(NULL AS BIGINT)
SELECT -(-9223372036854775807), -sum(dur_ns), -max(dur_ns), -(sum(ts_ns)) FROM syscalls
SELECT - comm FROM syscalls
SELECT pid FROM syscalls WHERE errno IS NOT NULL ORDER BY cpu / cpu DESC, rel_ns, utid, pid LIMIT 5
SELECT 9223372036854775807 + 1
SELECT 9223372036854775807 * 2
SELECT -9223372036854775807 - 2
SELECT 0.1 + 0.2 < 0.31
SELECT 'a' || 'b', 'a' || NULL
SELECT NULL = NULL, NULL <> 1, NULL AND false, NULL OR true, NOT NULL
SELECT 1 IN (1, NULL), 2 IN (1, NULL), 2 NOT IN (1, NULL), 2 NOT IN (1, 3)
SELECT NULL IS NULL, 1 IS NULL, 1 IS NOT NULL, NULL IS DISTINCT FROM NULL, 1 IS DISTINCT FROM NULL
SELECT true IS TRUE, false IS NOT FALSE, NULL IS NOT TRUE
SELECT coalesce(NULL, NULL, 3), nullif(1, 1), nullif(1, 2), greatest(1, 5, 3), least(4, 2, 9)
SELECT CASE WHEN 1 = 2 THEN 'a' END, CASE 3 WHEN 3 THEN 'x' ELSE 'y' END
SELECT CAST('12' AS BIGINT), CAST(12 AS VARCHAR), CAST(1 AS DOUBLE), CAST(true AS VARCHAR)
SELECT CAST(2.5 AS BIGINT), CAST(-2.5 AS BIGINT), CAST(3.5 AS BIGINT)
SELECT CAST(1.0 AS VARCHAR)
SELECT CAST(100000000000000000000.0 AS VARCHAR)
SELECT TRY_CAST('x' AS BIGINT), TRY_CAST('5' AS BIGINT)
SELECT CAST('x' AS BIGINT)
SELECT abs(-3), ceil(1.2), floor(-1.2), round(2.5), round(-2.5), sqrt(16.0), power(2, 10), ln(1), log10(1000), log2(8), exp(0)
SELECT upper('abc'), lower('ABC'), length('hello'), reverse('abc'), trim('  x '), ltrim('  x'), rtrim('x  ')
SELECT substr('hello', 2), substr('hello', 2, 3), substring('hello' FROM 2 FOR 2), left('hello', 2), right('hello', 2)
SELECT substr('hello', -3, 2), substr('hello', 0, 2), left('hello', -1), right('hello', -2)
SELECT replace('aXbX', 'X', '-'), strpos('hello', 'l'), position('l' IN 'hello'), starts_with('hello', 'he'), contains('hello', 'ell'), ends_with('hello', 'lo')
SELECT concat('a', NULL, 'b'), concat('a', 1)
SELECT 'abc' LIKE 'a%', 'abc' LIKE 'A%', 'abc' ILIKE 'A%', 'abc' NOT LIKE '_b_', NULL LIKE 'a'
SELECT 'a%b' LIKE 'a\\%b' ESCAPE '\\'
SELECT 'a' = 'A', 'a' < 'b', 'Z' < 'a'
SELECT length('ñandú'), upper('ñ'), reverse('añb')
SELECT syscall FROM syscalls ORDER BY rel_ns, utid, syscall LIMIT 5
SELECT DISTINCT syscall FROM syscalls ORDER BY 1
SELECT DISTINCT comm, failed FROM syscalls
SELECT count(DISTINCT syscall), count(DISTINCT comm), count(errno), count(*) FROM syscalls
SELECT syscall, count(*) AS n FROM syscalls GROUP BY syscall HAVING count(*) > 3 ORDER BY n DESC, syscall
SELECT syscall, count(*) * 100.0 / sum(count(*)) OVER () AS share FROM syscalls GROUP BY syscall
SELECT syscall, count(*) FROM syscalls GROUP BY syscall ORDER BY count(*) DESC, syscall LIMIT 3
SELECT syscall, count(*) FROM syscalls GROUP BY syscall ORDER BY count(*) DESC, syscall LIMIT 3 OFFSET 2
SELECT comm, sum(dur_ns), min(dur_ns), max(dur_ns), avg(dur_ns), count(dur_ns) FROM syscalls GROUP BY comm
SELECT avg(ts_ns), sum(ts_ns) FROM syscalls
SELECT median(dur_ns), quantile_cont(dur_ns, 0.9), quantile_cont(dur_ns, 0.99) FROM syscalls
SELECT syscall, median(dur_ns), quantile_cont(dur_ns, 0.25) FROM syscalls GROUP BY syscall
SELECT stddev(dur_ns), stddev_pop(dur_ns), var_samp(dur_ns), var_pop(dur_ns) FROM syscalls
SELECT syscall, stddev_samp(dur_ns) FROM syscalls GROUP BY 1
SELECT (SELECT 1), (SELECT 2)
SELECT 1, 1, 1
SELECT pid, pid, count(*), count(*) FROM syscalls GROUP BY pid
SELECT * FROM (SELECT comm, comm, upper(comm), upper(comm) FROM syscalls) ORDER BY comm, comm_1 LIMIT 3
WITH x AS (SELECT syscall, sum(dur_ns) s FROM syscalls GROUP BY syscall) SELECT count(*) FROM x WHERE s > (SELECT avg(s) FROM x)
WITH x AS (SELECT syscall, sum(dur_ns) s FROM syscalls GROUP BY syscall) SELECT syscall, s FROM x WHERE s >= (SELECT max(s) FROM x)
WITH x AS (SELECT comm, sum(dur_ns) s FROM syscalls GROUP BY comm) SELECT comm FROM x WHERE s = (SELECT min(s) FROM x) OR s < (SELECT sum(s) / 10 FROM x)
SELECT count(*) FROM (SELECT pid, sum(ret) s FROM syscalls GROUP BY pid) WHERE s > (SELECT sum(ret) FROM syscalls WHERE failed)
SELECT (SELECT sum(dur_ns) FROM syscalls) - sum(dur_ns), (SELECT sum(pid) FROM syscalls) > sum(tid) FROM syscalls
SELECT syscall FROM syscalls GROUP BY syscall HAVING sum(dur_ns) > (SELECT avg(s) FROM (SELECT sum(dur_ns) s FROM syscalls GROUP BY syscall))
SELECT s, sum(s) OVER (), s > avg(s) OVER () FROM (SELECT syscall, sum(dur_ns) s FROM syscalls GROUP BY syscall)
SELECT sum(s), avg(s), max(s) - min(s) FROM (SELECT sum(dur_ns) s FROM syscalls GROUP BY syscall)
SELECT bool_and(failed), bool_or(failed) FROM syscalls
SELECT comm, bool_or(failed) FROM syscalls GROUP BY comm
SELECT rel_ns / 1000000 AS ms FROM syscalls ORDER BY rel_ns, utid, syscall LIMIT 4
SELECT rel_ns - rel_ns % 1000000 AS bucket, count(*) FROM syscalls GROUP BY 1 ORDER BY 1
SELECT date_trunc('second', ts), count(*) FROM syscalls GROUP BY 1
SELECT date_trunc('minute', ts), date_trunc('hour', ts), date_trunc('day', ts), count(*) FROM syscalls GROUP BY 1, 2, 3
SELECT date_trunc('millisecond', ts) AS t, count(*) FROM syscalls GROUP BY 1 ORDER BY 1 LIMIT 10
SELECT extract(year FROM ts), extract(month FROM ts), extract(day FROM ts), count(*) FROM syscalls GROUP BY 1, 2, 3
SELECT extract(hour FROM ts), extract(minute FROM ts), count(*) FROM syscalls GROUP BY 1, 2
SELECT min(ts), max(ts) FROM syscalls
SELECT count(*) FROM syscalls WHERE ts >= TIMESTAMP '2020-01-01 00:00:00'
SELECT count(*) FROM syscalls WHERE args IS NULL
SELECT args['fd'], count(*) FROM syscalls WHERE syscall = 'write' GROUP BY 1
SELECT args['filename'], count(*) FROM syscalls GROUP BY 1
SELECT args['nothing'] FROM syscalls LIMIT 1
SELECT syscall, args['flags'] AS flags, count(*) FROM syscalls WHERE args['flags'] LIKE '%CLOEXEC%' GROUP BY 1, 2
SELECT s.syscall, p.comm, count(*) FROM syscalls s JOIN processes p ON s.upid = p.upid GROUP BY 1, 2
SELECT s.syscall, p.ppid FROM syscalls s LEFT JOIN processes p ON s.upid = p.upid AND p.ppid > 100
SELECT p.pid, count(s.syscall) FROM processes p LEFT JOIN syscalls s ON s.upid = p.upid GROUP BY p.pid
SELECT p.pid, count(s.syscall) FROM syscalls s RIGHT JOIN processes p ON s.upid = p.upid GROUP BY p.pid
SELECT p.pid, t.tid FROM processes p FULL JOIN threads t ON p.pid = t.tid
SELECT count(*) FROM processes a CROSS JOIN processes b
SELECT count(*) FROM processes a, processes b WHERE a.pid = b.ppid
SELECT child.comm, parent.comm FROM processes child JOIN processes parent ON child.ppid = parent.pid
SELECT count(*) FROM processes a JOIN processes b USING (upid)
SELECT pid FROM processes WHERE upid IN (SELECT upid FROM syscalls WHERE failed)
SELECT pid FROM processes WHERE upid NOT IN (SELECT upid FROM syscalls WHERE failed)
SELECT pid FROM processes p WHERE EXISTS (SELECT 1 FROM syscalls s WHERE s.upid = p.upid AND s.dur_ns > 1000000)
SELECT pid FROM processes p WHERE NOT EXISTS (SELECT 1 FROM syscalls s WHERE s.upid = p.upid)
SELECT pid, (SELECT count(*) FROM syscalls s WHERE s.upid = p.upid) AS n FROM processes p
SELECT count(*) FROM syscalls WHERE dur_ns > (SELECT avg(dur_ns) FROM syscalls)
SELECT syscall FROM syscalls WHERE dur_ns = (SELECT max(dur_ns) FROM syscalls)
WITH big AS (SELECT * FROM syscalls WHERE dur_ns > 10000) SELECT syscall, count(*) FROM big GROUP BY syscall
WITH a AS (SELECT syscall, count(*) AS n FROM syscalls GROUP BY 1), b AS (SELECT max(n) AS m FROM a) SELECT a.syscall FROM a, b WHERE a.n = b.m
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT x, y FROM a, b
SELECT x FROM (SELECT count(*) AS x FROM syscalls) t
SELECT t.n + 1 FROM (SELECT syscall, count(*) AS n FROM syscalls GROUP BY 1) AS t WHERE t.n > 2
SELECT syscall FROM syscalls WHERE failed UNION SELECT comm FROM processes
SELECT pid FROM processes UNION ALL SELECT tid FROM threads
SELECT tid FROM threads EXCEPT SELECT pid FROM processes
SELECT tid FROM threads INTERSECT SELECT pid FROM processes
SELECT rel_ns, row_number() OVER (ORDER BY rel_ns, utid, syscall) FROM syscalls
SELECT syscall, n, rank() OVER (ORDER BY n DESC) AS r, dense_rank() OVER (ORDER BY n DESC) AS d FROM (SELECT syscall, count(*) AS n FROM syscalls GROUP BY 1) t
SELECT utid, rel_ns, rel_ns - lag(rel_ns) OVER (PARTITION BY utid ORDER BY rel_ns, syscall) AS gap FROM syscalls
SELECT utid, rel_ns, lead(rel_ns, 2) OVER (PARTITION BY utid ORDER BY rel_ns, syscall) FROM syscalls
SELECT utid, rel_ns, lag(rel_ns, 1, 0) OVER (PARTITION BY utid ORDER BY rel_ns, syscall) FROM syscalls
SELECT utid, sum(dur_ns) OVER (PARTITION BY utid ORDER BY rel_ns, syscall ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM syscalls
SELECT utid, avg(dur_ns) OVER (PARTITION BY utid ORDER BY rel_ns, syscall ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING) FROM syscalls
SELECT utid, max(dur_ns) OVER (PARTITION BY utid) FROM syscalls
SELECT utid, first_value(syscall) OVER (PARTITION BY utid ORDER BY rel_ns, syscall) FROM syscalls
SELECT utid, last_value(syscall) OVER (PARTITION BY utid ORDER BY rel_ns, syscall ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM syscalls
SELECT ntile(4) OVER (ORDER BY rel_ns, utid, syscall) AS q, rel_ns FROM syscalls
SELECT syscall, percent_rank() OVER (ORDER BY syscall), cume_dist() OVER (ORDER BY syscall) FROM (SELECT DISTINCT syscall FROM syscalls) t
SELECT * FROM (SELECT syscall, dur_ns, row_number() OVER (PARTITION BY syscall ORDER BY dur_ns DESC, rel_ns, utid) AS r FROM syscalls) t WHERE r <= 2
SELECT count(*) FILTER (WHERE failed), sum(dur_ns) FILTER (WHERE NOT failed) FROM syscalls
SELECT sum(CASE WHEN failed THEN 1 ELSE 0 END) * 100.0 / count(*) FROM syscalls
SELECT sum(dur_ns * dur_ns) FROM syscalls WHERE dur_ns < 1000000
SELECT sum(dur_ns) / count(*) - avg(dur_ns) < 0.001 FROM syscalls
SELECT errno, count(*) FROM syscalls GROUP BY errno ORDER BY errno
SELECT errno, count(*) FROM syscalls GROUP BY errno ORDER BY errno DESC
SELECT errno, count(*) FROM syscalls GROUP BY errno ORDER BY errno NULLS FIRST
SELECT errno, count(*) FROM syscalls GROUP BY errno ORDER BY errno DESC NULLS LAST
SELECT syscall FROM syscalls ORDER BY dur_ns DESC, rel_ns, utid, syscall LIMIT 6
SELECT syscall, file FROM syscalls WHERE file IS NOT NULL ORDER BY rel_ns, utid, syscall LIMIT 6
SELECT file, count(*), sum(ret) FROM syscalls WHERE syscall IN ('read', 'write') AND ret > 0 GROUP BY file
SELECT split_part(file, '/', 2) FROM syscalls LIMIT 1
SELECT sum(calls), sum(errors), sum(total_ns) FROM summary
SELECT * FROM summary
SELECT * FROM kills
SELECT * FROM exec
SELECT * FROM processes
SELECT * FROM threads
SELECT * FROM gaps
SELECT * FROM ledger
SELECT file, read_bytes + write_bytes FROM files
SELECT sum(read_bytes), max(write_bytes), avg(read_bytes) FROM files
SELECT sum(calls), reason FROM ledger GROUP BY reason
SELECT host, date, tape, count(*) FROM syscalls GROUP BY 1, 2, 3
SELECT family, cause, sum(events), count(*) FROM gaps GROUP BY 1, 2
SELECT event, count(*) FROM process_events GROUP BY event
SELECT a.comm, count(*) FROM process_events e JOIN threads a ON a.utid = e.utid GROUP BY 1
SELECT count(*), count(child_pid), count(exit_code), count(exit_signal) FROM process_events
SELECT syscall, count(*) FROM syscalls WHERE rel_ns > 100000000 GROUP BY 1
SELECT syscall, count(*) FROM syscalls WHERE rel_ns BETWEEN 50000000 AND 300000000 GROUP BY 1
SELECT syscall, count(*) FROM syscalls WHERE syscall = 'read' AND rel_ns >= 0 GROUP BY 1
SELECT count(*) FROM syscalls WHERE syscall = 'no_such_call'
SELECT count(*) FROM syscalls WHERE pid = 0
SELECT count(*) FROM syscalls WHERE 'read' = syscall AND 100 < pid
SELECT max(length(comm)), min(upper(comm)) FROM syscalls
SELECT comm FROM syscalls WHERE comm LIKE 's%' OR comm ILIKE '%D%' GROUP BY comm
SELECT max(syscall), min(syscall) FROM syscalls WHERE false
SELECT sum(dur_ns), avg(dur_ns), min(dur_ns), count(*) FROM syscalls WHERE false
SELECT syscall, sum(dur_ns) FROM syscalls WHERE false GROUP BY syscall
SELECT sum(sum_ns) FROM (SELECT sum(dur_ns) AS sum_ns FROM syscalls GROUP BY pid) t
SELECT avg(n) FROM (SELECT count(*) AS n FROM syscalls GROUP BY pid) t
SELECT avg(dur_ns / 1000000.0) FROM syscalls
SELECT round(avg(dur_ns) / 1000, 3) FROM syscalls
SELECT cast(avg(dur_ns) AS BIGINT) FROM syscalls WHERE syscall = 'brk'
SELECT count(*), count(*) + 1, count(*) * 2, -count(*) FROM syscalls
SELECT DISTINCT pid % 10 FROM processes
SELECT max(dur_ns) - min(dur_ns) FROM syscalls
SELECT sum(DISTINCT pid), count(DISTINCT pid), avg(DISTINCT pid) FROM syscalls
SELECT comm || ':' || CAST(pid AS VARCHAR) FROM processes
SELECT CASE WHEN dur_ns < 1000 THEN 'a' WHEN dur_ns < 1000000 THEN 'b' ELSE 'c' END AS c, count(*) FROM syscalls GROUP BY 1
SELECT coalesce(errno, 'ok'), count(*) FROM syscalls GROUP BY 1
SELECT nullif(errno_code, 2), count(*) FROM syscalls GROUP BY 1
SELECT greatest(dur_ns, 1000), least(dur_ns, errno_code) FROM syscalls
SELECT count(*) FROM syscalls a JOIN syscalls b ON a.utid = b.utid AND a.rel_ns < b.rel_ns WHERE a.failed
SELECT * FROM read_csv('/etc/passwd')
SELECT * FROM '/etc/passwd'
SELECT * FROM read_parquet('x')
SELECT * FROM generate_series(1, 1000000000000)
SELECT repeat('x', 1000000000)
SELECT regexp_matches(comm, 'a(b|c)*') FROM syscalls
SELECT * FROM syscalls TABLESAMPLE 10 PERCENT
SELECT random()
SELECT now()
SELECT 7 // 2
SELECT 1 & 3
SELECT ts - ts FROM syscalls LIMIT 1
SELECT ts + INTERVAL 1 DAY FROM syscalls LIMIT 1
SELECT list(syscall) FROM syscalls
SELECT string_agg(comm, ',') FROM processes
SELECT sum(comm) FROM processes
SELECT syscall, count(*) FROM syscalls GROUP BY ALL
SELECT syscall FROM syscalls QUALIFY row_number() OVER (PARTITION BY syscall ORDER BY rel_ns) = 1
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t
DELETE FROM syscalls
CREATE TABLE x AS SELECT 1
COPY syscalls TO '/tmp/x'
ATTACH '/tmp/x'
PRAGMA version
EXPLAIN SELECT 1
SELECT 1; SELECT 2
SELECT
SELECT nothing FROM syscalls
SELECT * FROM nothing
""".strip("\n").split("\n")

NUMBERS = ["dur_ns", "pid", "ret", "errno_code", "cpu", "rel_ns"]
TEXTS = ["syscall", "comm", "errno", "file", "incomplete", "abi", "exe"]
FLAGS = ["failed", "dur_ns_at_least"]
CONDITIONS = [
    "true", "failed", "NOT failed", "dur_ns > 1000", "dur_ns IS NULL", "errno IS NOT NULL", "syscall LIKE '%a%'", "pid > 100 AND cpu < 3",
    "dur_ns_at_least", "ret < 0 OR ret > 100", "syscall IN ('read', 'openat', 'close')", "file LIKE '/%'", "NOT (dur_ns > 1000)",
    "NOT (errno = 'ENOENT')", "rel_ns BETWEEN 1000000 AND 400000000", "syscall = 'write'", "comm <> 'sh'", "errno NOT IN ('ENOENT', 'EBADF')",
]
SUMS = ["count(*)", "count({n})", "sum({n})", "min({n})", "max({n})", "avg({n})", "count(DISTINCT {n})", "median({n})", "stddev_pop({n})"]
SCALARS = [
    "{n} + 1", "{n} * 2 - 1", "{n} / 7", "{n} % 7", "-{n}", "abs({n})", "coalesce({n}, -1)", "nullif({n}, 0)", "CAST({n} AS DOUBLE)",
    "CAST({n} AS VARCHAR)", "{n} IS NULL", "{n} > 5", "{n} BETWEEN 1 AND 1000", "greatest({n}, 10)", "least({n}, 10)",
    "CASE WHEN {n} > 100 THEN 'big' WHEN {n} > 10 THEN 'mid' END", "round({n} / 1000.0, 2)", "floor({n} / 10.0)", "sqrt(abs({n}))",
]
STRINGS = [
    "upper({t})", "length({t})", "substr({t}, 2, 3)", "left({t}, 2)", "right({t}, 2)", "{t} || '!'", "replace({t}, 'e', 'E')", "strpos({t}, 'e')",
    "reverse({t})", "{t} LIKE '%e%'", "coalesce({t}, '-')", "starts_with({t}, 'r')", "concat({t}, '-', pid)", "{t} = 'read'", "{t} > 'm'", "trim({t})",
]


def corpus():
    """The fixed queries and those of the lists."""
    made = list(FIXED)
    for place, number in enumerate(NUMBERS):
        for at, total in enumerate(SUMS):
            by, where = TEXTS[(place + at) % len(TEXTS)], CONDITIONS[(place * 3 + at) % len(CONDITIONS)]
            made.append(f"SELECT {by}, {total.format(n=number)} FROM syscalls WHERE {where} GROUP BY {by}")
    for at, scalar in enumerate(SCALARS):
        for number in (NUMBERS[at % len(NUMBERS)], NUMBERS[(at + 3) % len(NUMBERS)]):
            made.append(f"SELECT {scalar.format(n=number)} FROM syscalls WHERE {CONDITIONS[at % len(CONDITIONS)]}")
    for at, text in enumerate(STRINGS):
        for name in (TEXTS[at % len(TEXTS)], TEXTS[(at + 2) % len(TEXTS)]):
            made.append(f"SELECT {text.format(t=name)}, count(*) FROM syscalls GROUP BY 1")
    for at, where in enumerate(CONDITIONS):
        made.append(f"SELECT count(*), sum(dur_ns) FROM syscalls WHERE {where}")
        made.append(f"SELECT count(*) FROM syscalls WHERE ({where}) IS NULL")
        made.append(f"SELECT syscall, rel_ns, utid FROM syscalls WHERE {where} AND NOT ({CONDITIONS[(at + 5) % len(CONDITIONS)]}) ORDER BY 2 DESC, 3, 1 LIMIT 7")
    return made


def grammar(seed, count):
    """`count` made-up queries; the same for the same seed."""
    pick = random.Random(seed)
    one = pick.choice

    def scalar(deep=0):
        if deep < 2 and pick.random() < 0.4:
            return one(SCALARS[:12]).format(n="(" + number(deep + 1) + ")")
        return one([one(NUMBERS), one(TEXTS), one(FLAGS), one(SCALARS).format(n=one(NUMBERS)), one(STRINGS).format(t=one(TEXTS))])

    def number(deep=0):
        if deep < 3 and pick.random() < 0.5:
            return f"{number(deep + 1)} {one('+-*/')} {number(deep + 1)}" if pick.random() < 0.5 else f"coalesce({number(deep + 1)}, {pick.randint(-5, 99)})"
        return one(NUMBERS + [str(pick.randint(0, 1000))])

    def condition(deep=0):
        if deep < 3 and pick.random() < 0.5:
            return f"({condition(deep + 1)} {one(['AND', 'OR'])} {condition(deep + 1)})"
        if pick.random() < 0.2:
            return f"NOT ({condition(deep + 1)})"
        return one(CONDITIONS + [f"{number(2)} {one(['<', '>', '<=', '>=', '=', '<>'])} {number(2)}"])

    made = []
    for _ in range(count):
        kind = pick.randint(0, 4)
        keys = pick.sample(TEXTS + FLAGS + ["cpu", "pid"], pick.randint(1, 3))
        totals = ", ".join(one(SUMS).format(n=one(NUMBERS)) for _ in range(pick.randint(1, 3)))
        if kind == 0:
            made.append(f"SELECT {', '.join(scalar() for _ in range(pick.randint(1, 4)))} FROM syscalls WHERE {condition()}")
        elif kind == 1:
            made.append(f"SELECT {', '.join(keys)}, {totals} FROM syscalls WHERE {condition()} GROUP BY {', '.join(keys)} HAVING count(*) > {pick.randint(0, 4)}")
        elif kind == 2:
            made.append(f"SELECT {keys[0]}, sum({one(NUMBERS)}) OVER (PARTITION BY {keys[0]} ORDER BY rel_ns, utid, syscall) FROM syscalls WHERE {condition()}")
        elif kind == 3:
            made.append(f"WITH t AS (SELECT upid, {totals.split(', ')[0]} AS x FROM syscalls WHERE {condition()} GROUP BY upid) SELECT p.pid, t.x FROM processes p {one(['LEFT JOIN', 'JOIN'])} t ON p.upid = t.upid")
        else:
            made.append(f"SELECT DISTINCT {', '.join(keys)} FROM syscalls WHERE {condition()} {one(['UNION', 'UNION ALL', 'EXCEPT'])} SELECT {', '.join(keys)} FROM syscalls WHERE {condition()}")
    return made
