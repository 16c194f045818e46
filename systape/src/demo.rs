//! `systape demo`: records a service with a fault, and shows the commands that find it, with what they print.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{beside, line, service};

/// What is asked of the tape: why, and the words.
const QUESTIONS: [(&str, &[&str]); 3] = [
    ("What was slow, and what broke?", &["why"]),
    ("Where did its time go, across the threads that it waited for?", &["path", "--sums"]),
    ("Which calls took most of the time of each thread?", &["top", "--by", "comm,syscall", "--top", "8"]),
];

/// Records, asks, and says what there is now.
///
/// # Errors
/// It cannot be recorded here: no root, or no BPF.
pub(crate) fn run(dir: Option<PathBuf>) -> Result<()> {
    let dir = place(dir)?;
    line("A small service: four threads answer requests and write one log; one request in ten asks a slow backend.\n")?;
    let program = std::env::current_exe().context("this program")?;
    let mut record = Command::new(beside("record"));
    record.current_dir(&dir).args(["-o", "demo.tape", "--"]).arg(&program).arg(service::WORD);
    line("$ record -o demo.tape -- ./service")?;
    let status = record.status().with_context(|| format!("{}", beside("record").display()))?;
    if !status.success() {
        bail!("recording needs root, or the capabilities BPF and PERFMON (sudo systape demo)");
    }
    for (question, words) in QUESTIONS {
        line(&format!("\n{question}\n$ analyze {} demo.tape", words.join(" ")))?;
        analyze(&dir, words)?;
    }
    line("\nA page to send, or to look at in a browser:\n$ analyze report demo.tape -o demo.html")?;
    analyze(&dir, &["report", "-o", "demo.html"])?;
    let size = fs::metadata(dir.join("demo.tape"))?.len();
    let (size, dir) = (size.div_ceil(1024), dir.display());
    line(&format!("\nThe tape has {size} KiB. It is in {dir}, with the page. To delete both: rm -r {dir}"))
}

/// The directory to work in.
fn place(dir: Option<PathBuf>) -> Result<PathBuf> {
    if let Some(dir) = dir {
        fs::create_dir_all(&dir).with_context(|| format!("{}", dir.display()))?;
        return Ok(dir);
    }
    let all = std::env::temp_dir();
    for number in 0_u32..1000 {
        let dir = all.join(format!("systape-demo-{}-{number}", std::process::id()));
        // a directory of somebody else is not taken
        if fs::create_dir(&dir).is_ok() {
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o755))?;
            return Ok(dir);
        }
    }
    bail!("{}: no directory can be made there", all.display())
}

fn analyze(dir: &Path, words: &[&str]) -> Result<()> {
    let program = beside("analyze");
    let status = Command::new(&program).current_dir(dir).args(words).arg("demo.tape").status();
    if !status.with_context(|| format!("{}", program.display()))?.success() {
        bail!("analyze {} has no answer", words.join(" "));
    }
    Ok(())
}
