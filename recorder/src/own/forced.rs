//! Reduced limits in the kernel for tests, to see the messages when they are used up. Not for users.

use anyhow::{Result, bail};

/// A byte that occurs in no text and no small number.
pub(crate) const POISON: u8 = 0xa5;

/// Whether a record has memory that was never written: a run of [`POISON`].
pub(crate) fn is_poisoned(record: &[u8]) -> bool {
    record.windows(4).any(|four| four == [POISON; 4])
}

/// The expected sums of a ledger that counts everything: calls, ns, and sizes by powers of two.
#[derive(Clone, Debug)]
pub(crate) struct CheckedLedger {
    /// Number of calls.
    pub calls: u64,
    /// ns of all.
    pub sum: u64,
    /// Sizes by powers of two.
    pub sizes: Vec<u64>,
    /// What is left of the poison in records, if there was any.
    pub poisoned: Poisoned,
}

/// Number of checked records, and of those with poison in them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Poisoned {
    /// Number of checked records.
    pub records: u64,
    /// Number of records with poison in them.
    pub dirty: u64,
}

impl Poisoned {
    /// Checks a record.
    pub(crate) fn look(&mut self, record: &[u8]) {
        self.records += 1;
        self.dirty += u64::from(is_poisoned(record));
    }
}

/// The settings of `--force`; None = as always.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forced {
    /// Bytes of the ring of calls that change fds.
    pub state_ring: Option<u32>,
    /// Bytes of the ring of process events.
    pub process_ring: Option<u32>,
    /// Most tasks; makes their state a table by thread id, as on kernels without task storage.
    pub task_states: Option<u32>,
    /// Most tasks whose simple calls take the short way.
    pub plain_calls: Option<u32>,
    /// Capacity of a CPU's buffer in records.
    pub cpu_buffer: Option<u32>,
    /// Keys of the ledger.
    pub ledger_keys: Option<u32>,
    /// Runs of each program that count as skipped by the kernel.
    pub skips: Option<u32>,
    /// The end of one in this many I/Os is not noticed.
    pub unseen_ios: Option<u32>,
    /// No task gets a state, so nothing of its calls can be kept.
    pub no_task_states: bool,
    /// Load the second programs that stand in for skipped ones, as on kernels with preemptible programs, and let one in
    /// this many runs of those of calls do nothing.
    pub skip_first: Option<u32>,
    /// BPF programs that the kernel is made to refuse.
    pub unloadable: Vec<String>,
    /// Offset added to the place where tasks' registers are read, in bytes.
    pub registers_off: Option<u32>,
    /// Find that place as on kernels without bpf_task_pt_regs.
    pub registers_by_hand: bool,
    /// Fill the kernel side's scratch memory with [`POISON`], search for it in every record, and print the result on
    /// stderr.
    pub poison: bool,
    /// Count stored calls too, and print the expected counts on stderr.
    pub ledger_check: bool,
}

impl Forced {
    /// `state-ring=4k`, `process-ring=4k`, `task-states=8`, `plain-calls=1`, `cpu-buffer=1`, `ledger-keys=64`, `skips=3`, `unseen-ios=101`,
    /// `no-task-states`, `skip-first=7`, `unloadable=PROGRAM`, `registers-off=16`, `registers-by-hand`, `poison`, `ledger-check`.
    pub(crate) fn parse(items: &[String]) -> Result<Self> {
        let mut forced = Self::default();
        for item in items {
            let (name, value) = item.split_once('=').unwrap_or((item, "1"));
            let number = systape_cli::size(value).ok().and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
            match name {
                "state-ring" => forced.state_ring = number,
                "process-ring" => forced.process_ring = number,
                "task-states" => forced.task_states = number,
                "plain-calls" => forced.plain_calls = number,
                "cpu-buffer" => forced.cpu_buffer = number,
                "ledger-keys" => forced.ledger_keys = number,
                "skips" => forced.skips = number,
                "unseen-ios" => forced.unseen_ios = number,
                "skip-first" => forced.skip_first = number,
                "no-task-states" => forced.no_task_states = true,
                "unloadable" => forced.unloadable.push(value.to_owned()),
                "registers-off" => forced.registers_off = number,
                "registers-by-hand" => forced.registers_by_hand = true,
                "poison" => forced.poison = true,
                "ledger-check" => forced.ledger_check = true,
                _ => bail!("--force {item}: not known"),
            }
        }
        Ok(forced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read() {
        let forced = Forced::parse(&["state-ring=4k".into(), "ledger-check".into()]).unwrap();
        assert_eq!(forced, Forced { state_ring: Some(4096), ledger_check: true, ..Forced::default() });
        let forced = Forced::parse(&["unloadable=a".into(), "unloadable=b".into()]).unwrap();
        assert_eq!(forced.unloadable, ["a", "b"]);
        assert!(Forced::parse(&["x=1".into()]).is_err());
        let mut seen = Poisoned::default();
        [&[0, 0xa5, 0xa5, 0xa5, 0xa5][..], &[0xa5; 3], &[]].iter().for_each(|record| seen.look(record));
        assert_eq!((seen.records, seen.dirty), (3, 1));
    }
}
