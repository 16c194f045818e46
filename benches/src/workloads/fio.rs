//! fio on ext4 on a loop device: block I/O. The image is in memory, so that no disk's mood is measured.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{CostRelation, Workload, succeed};
use crate::mount::Mounted;
use crate::tools::Need;

const IMAGE: u64 = 160 << 20;
const FILE_MIB: u64 = 64;
const BLOCK: u64 = 4096;

/// 80,000 requests.
pub(super) const WORKLOAD: Workload = Workload {
    name: "fio",
    title: "fio on a loop device",
    text: |n| {
        format!(
            "fio --rw=randrw --rwmixread=70 --bs=4k --direct=1 --ioengine=psync, {n} requests, ext4 in a file in memory"
        )
    },
    unit: "requests",
    cost: CostRelation::Lost,
    full: 80_000,
    quick: 8_000,
    short: 4_000,
    least_rounds: 0,
    pinned: false,
    read: false,
    needs: &[Need::new(&["fio"], "fio"), Need::new(&["losetup"], "mount"), Need::new(&["mkfs.ext4"], "e2fsprogs")],
    prepare,
    run,
};

fn prepare(dir: &Path, _: u64) -> Result<Option<Mounted>> {
    let mounted = Mounted::ext4(&dir.join("mnt"), IMAGE)?;
    succeed(fio(dir).arg("--create_only=1"))?;
    Ok(Some(mounted))
}

fn fio(dir: &Path) -> Command {
    let mut fio = Command::new("fio");
    fio.args(["--name=bench", "--rw=randrw", "--rwmixread=70", "--direct=1", "--ioengine=psync", "--fallocate=none"]);
    fio.arg(format!("--bs={BLOCK}")).arg(format!("--size={FILE_MIB}M"));
    fio.arg(format!("--directory={}", dir.join("mnt").display())).current_dir(dir);
    fio
}

fn run(dir: &Path, n: u64) -> Result<f64> {
    let out = dir.join("fio.json");
    succeed(fio(dir).arg(format!("--io_size={}", n * BLOCK)).arg("--output-format=json").arg("--output").arg(&out))?;
    let text = fs::read_to_string(&out)?;
    iops(&serde_json::from_str(&text).context("what fio prints")?).context("what fio prints has no IOPS")
}

fn iops(report: &Value) -> Option<f64> {
    let job = &report["jobs"][0];
    let sum = job["read"]["iops"].as_f64()? + job["write"]["iops"].as_f64()?;
    (job["error"].as_u64() == Some(0)).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_count() {
        let report = |error: u64| serde_json::json!({"jobs": [{"error": error, "read": {"iops": 40571.0}, "write": {"iops": 17610.5}}]});
        assert_eq!(iops(&report(0)), Some(58181.5));
        assert_eq!(iops(&report(5)), None);
        assert_eq!(iops(&serde_json::json!({})), None);
    }
}
