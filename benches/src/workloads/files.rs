//! A mixture: small files through tar, find, cp, grep and rm. Paths, opens, closes, pipes, short processes.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{CostRelation, Workload, time};
use crate::mount::Mounted;

const SCRIPT: &str =
    "tar -cf - tree | cat; find tree -type f -size +3k; cp -r tree copy; grep -rl needle copy; rm -r copy";
const FILES: u64 = 100;

/// 8,000 files in 80 directories.
pub(super) const WORKLOAD: Workload = Workload {
    name: "files",
    title: "Small files: a mixture of calls",
    text: |n| format!("{} files of 1 to 4 KiB in memory: {SCRIPT}", n * FILES),
    unit: "files",
    cost: CostRelation::Added,
    full: 80,
    quick: 20,
    short: 8,
    least_rounds: 0,
    pinned: false,
    read: true,
    needs: &[],
    prepare,
    run: |dir, n| time(n * FILES, Command::new("sh").args(["-c", SCRIPT]).current_dir(dir)),
};

fn prepare(dir: &Path, directories: u64) -> Result<Option<Mounted>> {
    make(&dir.join("tree"), directories).context("cannot make the files to work on")?;
    Ok(None)
}

fn make(tree: &Path, directories: u64) -> std::io::Result<()> {
    for d in 0..directories {
        let sub = tree.join(format!("directory-{d}"));
        fs::create_dir_all(&sub)?;
        for f in 0..FILES {
            let word = if (d + f) % 50 == 0 { "needle" } else { "straws" };
            fs::write(sub.join(format!("file-{f}.txt")), format!("{word}\n").repeat(150 + 4 * f as usize))?;
        }
    }
    Ok(())
}
