//! A server and its clients: redis over a unix socket, no pipelining, nothing written to disk.

use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{CostRelation, Workload, WorkloadServer};
use crate::tools::{Need, in_path};

/// A server that is not there by now has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// Debian's redis-tools has the server too, under a name that makes it check files instead. So no package is needed that
/// starts a server on the machine.
const SERVERS: &[&str] = &["redis-server", "redis-check-rdb"];

/// 100,000 SETs and as many GETs.
pub(super) const WORKLOAD: Workload = Workload {
    name: "redis",
    title: "redis: a server with 50 clients",
    text: |n| format!("redis-benchmark -s SOCKET -t set,get -n {n}, and the server"),
    unit: "requests",
    cost: CostRelation::Lost,
    full: 100_000,
    quick: 10_000,
    short: 2_000,
    least_rounds: 0,
    pinned: false,
    read: false,
    needs: &[Need::new(SERVERS, "redis-tools"), Need::new(&["redis-benchmark"], "redis-tools")],
    prepare: |_, _| Ok(None),
    run,
};

fn run(dir: &Path, n: u64) -> Result<f64> {
    let socket = dir.join("redis.sock");
    let _server = serve(&socket)?;
    let mut command = Command::new("redis-benchmark");
    command.arg("-s").arg(&socket).args(["-t", "set,get", "--csv", "-n", &n.to_string()]);
    let out = command.stdin(Stdio::null()).stderr(Stdio::null()).output().context("redis-benchmark")?;
    let text = String::from_utf8_lossy(&out.stdout);
    rate(&text).with_context(|| format!("redis-benchmark: {}: {text}", out.status))
}

fn serve(socket: &Path) -> Result<WorkloadServer> {
    let program = SERVERS.iter().find_map(|name| in_path(name)).context("no redis-server")?;
    let mut command = Command::new(program);
    // it goes by its name
    command.arg0("redis-server").args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]).arg(socket);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = WorkloadServer(command.spawn().context("redis-server")?);
    let started = Instant::now();
    while UnixStream::connect(socket).is_err() {
        if let Some(status) = server.0.try_wait()? {
            bail!("redis-server ended: {status}");
        }
        if started.elapsed() > PATIENCE {
            bail!("redis-server does not answer");
        }
        sleep(Duration::from_millis(10));
    }
    Ok(server)
}

/// Requests per second over all tests, each with as many requests: `"SET","44326.24","0.794",...`
fn rate(csv: &str) -> Option<f64> {
    let rates = csv.lines().skip(1).map(|line| line.split(',').nth(1)?.trim_matches('"').parse::<f64>().ok());
    let rates: Vec<f64> = rates.collect::<Option<_>>()?;
    (!rates.is_empty()).then(|| rates.len() as f64 / rates.iter().map(|r| 1.0 / r).sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_two_tests_is_that_of_all_requests() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"100.00\",\"0.7\"\n\"GET\",\"300.00\",\"0.6\"\n";
        // n requests take n/100 s and n/300 s
        assert_eq!(rate(csv), Some(150.0));
        assert_eq!(rate("\"test\",\"rps\"\n"), None);
        assert_eq!(rate("\"test\",\"rps\"\n\"SET\",\"?\"\n"), None);
    }
}
