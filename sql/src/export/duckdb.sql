-- The tables of an export for DuckDB: run it in the directory that 'analyze export parquet' wrote, then views.sql.
--   duckdb -c ".read _systape/duckdb.sql" -c ".read _systape/views.sql" -c "SELECT * FROM calls_by_process LIMIT 10"
-- Tables that tapes define (exceptions_page_fault_user ...) are there for some tapes only: name them in the same way.
SET TimeZone = 'UTC';
CREATE OR REPLACE VIEW syscalls AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('syscalls/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW ledger AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('ledger/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW gaps AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('gaps/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW processes AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('processes/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW threads AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('threads/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW process_events AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('process_events/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW signals AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('signals/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW sched AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('sched/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW wakeups AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('wakeups/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW socket_states AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('socket_states/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW io_uring AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('io_uring/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW samples AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('samples/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW stacks AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('stacks/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW summary AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('summary/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW exec AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('exec/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW kills AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('kills/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW files AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('files/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW opens AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('opens/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW block AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('block/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW net AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('net/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW net_udp AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('net_udp/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW peers AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('peers/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW offcpu AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('offcpu/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW states AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('states/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW sched_latency AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('sched_latency/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW sched_timehist AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('sched_timehist/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW runqlat AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('runqlat/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW locks AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('locks/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW why AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('why/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
CREATE OR REPLACE VIEW info AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('info/*/*/*.parquet', hive_partitioning = true, hive_types_autocast = false, union_by_name = true);
