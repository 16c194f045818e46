//! The ledger against independent counts: what `--force ledger-check` stores *and* counts must agree to the bit, and what the
//! programs count in passing must be what all windows of the ledger come to, however often it is read.
//!
//! As root only: without, the tests say `SKIPPED` and pass, unless `SYSTAPE_REQUIRE_BPF=1` is set.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use serde_json::Value;
use systape_format::Tape;
use systape_format::model::{CallState, Family, LedgerReason, Task, size_bucket};

/// One recording at a time: two would slow each other down.
static ONE: Mutex<()> = Mutex::new(());

fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        let required = std::env::var_os("SYSTAPE_REQUIRE_BPF").is_some_and(|v| v == "1");
        assert!(!required, "SYSTAPE_REQUIRE_BPF=1, but not root");
        writeln!(std::io::stderr(), "SKIPPED: needs root: ledger").ok();
    }
    root
}

/// `record` as users have it: one that is not optimized does not keep up with what is counted here.
fn binary() -> std::path::PathBuf {
    let built = || env!("CARGO_BIN_EXE_record").into();
    std::env::var_os("SYSTAPE_BIN_DIR").map_or_else(built, |dir| Path::new(&dir).join("record"))
}

/// Runs `record OPTIONS -- COMMAND`; gives the tape, and what the programs counted in passing.
fn record(dir: &Path, options: &[&str], command: &[&str]) -> (Tape, Value) {
    let path = dir.join("t.tape");
    let mut record = Command::new(binary());
    record.current_dir(dir).args(["-o", "t.tape", "--force", "ledger-check"]).args(options).arg("--").args(command);
    let output = record.output().expect("record runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let line = stderr.lines().find_map(|line| line.strip_prefix("record: ledger ")).expect(&stderr);
    (Tape::open(&path).expect("a tape"), serde_json::from_str(line).expect("JSON"))
}

/// Calls, ns of all, shortest, longest, and sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sum {
    calls: u64,
    sum: u64,
    min: u64,
    max: u64,
    sizes: [u64; 64],
}

impl Default for Sum {
    fn default() -> Self {
        Self { calls: 0, sum: 0, min: u64::MAX, max: 0, sizes: [0; 64] }
    }
}

impl Sum {
    fn add(&mut self, dur: u64) {
        self.calls += 1;
        self.sum += dur;
        (self.min, self.max) = (self.min.min(dur), self.max.max(dur));
        self.sizes[usize::from(size_bucket(dur))] += 1;
    }
}

/// pid, start of the process, uid, CPU, number, errno, state.
type Key = (u32, u64, u32, u32, u32, u16, u8);

fn key(task: &Task, (cpu, nr): (u32, u32), errno: u16, state: CallState) -> Key {
    (task.pid, task.leader_start_ns, task.uid, cpu, nr, errno, state as u8)
}

/// What is stored, and what is counted for one of `reasons`.
fn sums(tape: &Tape, reasons: &[LedgerReason]) -> (BTreeMap<Key, Sum>, BTreeMap<Key, Sum>) {
    let (mut stored, mut counted) = (BTreeMap::<Key, Sum>::new(), BTreeMap::<Key, Sum>::new());
    for at in 0..tape.segments().len() {
        let segment = tape.segment(at);
        let dict = segment.dict().expect("dict");
        let core = segment.core(&dict).expect("core");
        let time = segment.time(&dict, &core).expect("time");
        for row in 0..core.dur.len() {
            let hidden = core.unselected.get(row).is_some_and(|u| *u);
            // of the calls in flight at the end the programs do not know
            if hidden || matches!(core.state[row], CallState::CloneChild | CallState::InFlight) {
                continue;
            }
            let call = (time.cpu[row], dict.calls[core.call[row] as usize].nr);
            let task = &dict.tasks[core.task[row] as usize];
            stored.entry(key(task, call, core.errno[row], core.state[row])).or_default().add(core.dur[row]);
        }
        for row in segment.ledger(&dict).expect("ledger") {
            assert!(reasons.contains(&row.reason), "{row:?}");
            let unknown = Task::default();
            let task = row.task.map_or(&unknown, |task| &dict.tasks[task as usize]);
            let sum = counted
                .entry(key(task, (row.cpu, dict.calls[row.call as usize].nr), row.errno, row.state))
                .or_default();
            sum.calls += row.count;
            sum.sum += row.sum;
            (sum.min, sum.max) = (sum.min.min(row.min), sum.max.max(row.max));
            row.sizes.iter().for_each(|(bucket, count)| sum.sizes[usize::from(*bucket)] += count);
            assert!(row.first <= row.last && tape.session().window_open <= row.first, "{row:?}");
        }
    }
    (stored, counted)
}

fn all(sums: &BTreeMap<Key, Sum>) -> (u64, u64, Vec<u64>) {
    let sizes = (0..64).map(|b| sums.values().map(|s| s.sizes[b]).sum()).collect();
    (sums.values().map(|s| s.calls).sum(), sums.values().map(|s| s.sum).sum(), sizes)
}

/// What the programs counted in passing, in the same shape.
fn passing(checked: &Value) -> (u64, u64, Vec<u64>) {
    let mut sizes: Vec<u64> =
        checked["sizes"].as_array().expect("sizes").iter().map(|n| n.as_u64().expect("n")).collect();
    sizes.resize(64, 0);
    (checked["calls"].as_u64().expect("calls"), checked["sum"].as_u64().expect("sum"), sizes)
}

/// Many processes, programs, users, outcomes; threads that run on both CPUs.
const BUSY: &str = "for i in $(seq 150); do sh -c 'cat /nonexistent; ls / >/dev/null; true' 2>/dev/null; done &
    dd if=/dev/zero of=/dev/null bs=1 count=150011 2>/dev/null &
    dd if=/dev/zero of=/dev/null bs=1 count=100003 2>/dev/null &
    setpriv --reuid=65534 --clear-groups dd if=/dev/zero of=/dev/null bs=1 count=7001 2>/dev/null &
    for i in $(seq 300); do /bin/true; done
    wait";

#[test]
fn what_is_stored_and_counted_agrees_to_the_bit() {
    if !is_root() {
        return;
    }
    let _one = ONE.lock();
    let dir = tempfile::tempdir().expect("a directory");
    let (tape, checked) = record(dir.path(), &["-m", "256M"], &["sh", "-c", BUSY]);
    let lost = &tape.end().expect("an end").lost;
    assert!(lost.iter().all(|(family, _)| !matches!(family, Family::Syscall | Family::State)), "{lost:?}");
    let (stored, counted) = sums(&tape, &[LedgerReason::Checked]);
    assert!(stored.len() > 1000, "{}", stored.len());
    for (key, sum) in &stored {
        assert_eq!(counted.get(key), Some(sum), "{key:?}");
    }
    assert_eq!(counted.len(), stored.len());
    assert_eq!(passing(&checked), all(&counted));
}

#[test]
fn a_ledger_that_is_read_all_the_time_loses_nothing() {
    if !is_root() {
        return;
    }
    let _one = ONE.lock();
    let dir = tempfile::tempdir().expect("a directory");
    // nothing takes ten minutes: every call is counted
    let (tape, checked) = record(dir.path(), &["--duration", "10min"], &["sh", "-c", BUSY]);
    let (stored, counted) = sums(&tape, &[LedgerReason::Filtered]);
    assert_eq!(stored, BTreeMap::new());
    assert!(counted.len() > 1000, "{}", counted.len());
    assert!(counted.values().all(|sum| sum.calls == sum.sizes.iter().sum::<u64>()));
    assert_eq!(passing(&checked), all(&counted));
}

#[test]
fn a_full_ledger_still_counts_by_cpu_and_call() {
    if !is_root() {
        return;
    }
    let _one = ONE.lock();
    let dir = tempfile::tempdir().expect("a directory");
    let (tape, checked) =
        record(dir.path(), &["--duration", "10min", "--force", "ledger-keys=64"], &["sh", "-c", BUSY]);
    let (_, counted) = sums(&tape, &[LedgerReason::Filtered]);
    let unknown: u64 = counted.iter().filter(|(key, _)| key.0 == 0).map(|(_, sum)| sum.calls).sum();
    let (calls, sum, sizes) = all(&counted);
    let (true_calls, true_sum, true_sizes) = passing(&checked);
    assert!(unknown > 100, "the table was not full: {unknown} calls without a process");
    assert_eq!((calls, sum), (true_calls, true_sum));
    // of what found no room the sizes are not known
    assert_eq!(sizes.iter().sum::<u64>() + unknown, true_calls);
    assert!(sizes.iter().zip(&true_sizes).all(|(known, all)| known <= all));
}
