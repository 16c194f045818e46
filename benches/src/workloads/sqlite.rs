//! A database in one process: each row a transaction of its own, with journal and fsync, in memory.

use std::fmt::Write;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::{CostRelation, Workload};
use crate::mount::Mounted;
use crate::tools::Need;

/// 20,000 transactions.
pub(super) const WORKLOAD: Workload = Workload {
    name: "sqlite",
    title: "sqlite3: small transactions",
    text: |n| format!("sqlite3, {n} inserts, each its own transaction, file in memory"),
    unit: "inserts",
    cost: CostRelation::Lost,
    full: 20_000,
    quick: 2_000,
    short: 1_000,
    least_rounds: 0,
    pinned: false,
    read: false,
    needs: &[Need::new(&["sqlite3"], "sqlite3")],
    prepare,
    run,
};

fn prepare(dir: &Path, n: u64) -> Result<Option<Mounted>> {
    let mut sql = String::from("create table t (id integer primary key, name text);\n");
    for i in 0..n {
        writeln!(sql, "insert into t values ({i}, 'row number {i}');")?;
    }
    fs::write(dir.join("inserts.sql"), sql)?;
    Ok(None)
}

fn run(dir: &Path, n: u64) -> Result<f64> {
    let (db, sql) = (dir.join("bench.db"), File::open(dir.join("inserts.sql"))?);
    fs::remove_file(&db).ok();
    let started = Instant::now();
    let mut command = Command::new("sqlite3");
    command.args(["-batch", "-bail", "-init", "/dev/null"]).arg(&db);
    let status = command.stdin(sql).stdout(Stdio::null()).stderr(Stdio::null()).status().context("sqlite3")?;
    if !status.success() {
        bail!("sqlite3: {status}");
    }
    Ok(n as f64 / started.elapsed().as_secs_f64())
}
