//! Two programs whose stacks are worth recording; only the part about stacks runs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{CostRelation, Workload, time};
use crate::mount::Mounted;
use crate::process::run_quietly;
use crate::tools::{Need, output};

/// Reads small files; its own functions are deep, and need more stack than perf copies unless told.
const SCRIPT: &str = "
import os, sys
for d, _, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(d, name)) as f:
            f.read()
";

/// A C program that calls getppid ten functions deep.
pub(crate) const CHAIN: Workload = Workload {
    name: "chain",
    title: "Stacks of every syscall: C",
    text: |n| format!("A C program: {n} getppid calls, ten functions deep"),
    unit: "calls",
    cost: CostRelation::Added,
    full: 100_000,
    quick: 10_000,
    short: 10_000,
    least_rounds: 0,
    pinned: false,
    read: false,
    needs: &[Need::new(&["cc"], "gcc")],
    prepare: prepare_chain,
    run: |dir, n| time(n, Command::new(dir.join("chain")).arg(n.to_string())),
};

/// python3 that reads files.
pub(crate) const PYTHON: Workload = Workload {
    name: "python",
    title: "Stacks of every syscall: Python",
    text: |n| format!("python3 that reads {n} small files"),
    unit: "files",
    cost: CostRelation::Added,
    full: 2_000,
    quick: 400,
    short: 400,
    least_rounds: 0,
    pinned: false,
    read: false,
    needs: &[Need::new(&["python3"], "python3")],
    prepare: prepare_python,
    run: |dir, n| {
        let python = fs::read_to_string(dir.join("interpreter"))?;
        time(n, Command::new(python).args(["-c", SCRIPT]).arg(dir.join("read")))
    },
};

fn prepare_chain(dir: &Path, _: u64) -> Result<Option<Mounted>> {
    let source = dir.join("chain.c");
    fs::write(&source, include_str!("../c/chain.c"))?;
    run_quietly(Command::new("cc").args(["-O2", "-g"]).arg(&source).arg("-o").arg(dir.join("chain")))?;
    Ok(None)
}

fn prepare_python(dir: &Path, files: u64) -> Result<Option<Mounted>> {
    for i in 0..files {
        let sub = dir.join("read").join(format!("directory-{}", i / 50));
        fs::create_dir_all(&sub)?;
        fs::write(sub.join(format!("file-{i}.txt")), "a line\n".repeat(i as usize % 500))?;
    }
    // not what a version manager calls python3: that is a script
    let python = output("python3", &["-c", "import sys; print(sys.executable)"]);
    if !PathBuf::from(&python).is_file() {
        bail!("python3 does not say where it is");
    }
    fs::write(dir.join("interpreter"), python).context("a note")?;
    Ok(None)
}
