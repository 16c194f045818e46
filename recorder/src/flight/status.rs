//! The state of a flight recorder, for `record status` and for messages.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// Tapes and failures that are remembered.
const REMEMBERED: usize = 16;

/// A tape that was written, or could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// When it was begun, UTC as in names of tapes.
    pub at: String,
    /// Time of its beginning, ns since 1970.
    pub realtime: u64,
    /// What fired, in words.
    pub what: String,
    /// File name of the tape, or why there is none.
    pub tape: Result<String, String>,
}

/// How often a trigger fired.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fires {
    /// The trigger as `--on` has it.
    pub on: String,
    /// Number of times it fired that are in tapes.
    pub fired: u64,
    /// During its cooldown.
    pub suppressed: u64,
}

/// The numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatusNumbers {
    /// When the recording began, ns.
    pub since: u64,
    /// Time asked for, ns; 0 = none was.
    pub last_ns: u64,
    /// Size asked for.
    pub ring_bytes: u64,
    /// First and last moment in memory.
    pub held: (u64, u64),
    /// Bytes in memory.
    pub used: u64,
    /// Chunks in memory.
    pub chunks: usize,
    /// Why older ones are gone: the size, not the time.
    pub full: bool,
    /// A tape is being written.
    pub writing: bool,
    /// Tapes that were written.
    pub tapes: u64,
    /// Tapes that could not be.
    pub failed: u64,
    /// Events stored so far, and lost ones.
    pub events: (u64, u64),
    /// Counts by trigger.
    pub triggers: Vec<Fires>,
    /// The last ones.
    pub last: VecDeque<Written>,
}

/// Numbers that `record status` shows, shared by threads.
#[derive(Debug, Default)]
pub(crate) struct Status(Mutex<StatusNumbers>);

impl Status {
    /// Reads or changes the numbers.
    pub(crate) fn now(&self) -> MutexGuard<'_, StatusNumbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tape was written, or could not be.
    pub(crate) fn written(&self, written: Written) {
        let mut now = self.now();
        match &written.tape {
            Ok(_) => now.tapes += 1,
            Err(_) => now.failed += 1,
        }
        now.last.truncate(REMEMBERED - 1);
        now.last.push_front(written);
    }

    /// Everything, as `record status --format json` prints it.
    pub(crate) fn json(&self, pid: u32, cpu_ns: u64, rss: u64) -> Value {
        let now = self.now();
        let triggers = now.triggers.iter().map(|t| json!({"on": t.on, "fired": t.fired, "suppressed": t.suppressed}));
        let last = now.last.iter().map(|w| {
            let (tape, error) = (w.tape.as_ref().ok(), w.tape.as_ref().err());
            json!({"at": w.at, "what": w.what, "tape": tape, "error": error})
        });
        json!({
            "pid": pid,
            "recording_ns": now.held.1.saturating_sub(now.since),
            "asked_ns": if now.last_ns == 0 { Value::Null } else { now.last_ns.into() },
            "held_ns": now.held.1.saturating_sub(now.held.0),
            "ring_bytes": now.ring_bytes,
            "used_bytes": now.used,
            "chunks": now.chunks,
            "full": now.full,
            "events": now.events.0,
            "lost": now.events.1,
            "cpu_ns": cpu_ns,
            "rss_bytes": rss,
            "writing": now.writing,
            "tapes": now.tapes,
            "failed": now.failed,
            "triggers": triggers.collect::<Vec<_>>(),
            "last": last.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_cli::control;

    #[test]
    fn numbers_become_text() {
        let status = Status::default();
        {
            let mut now = status.now();
            (now.since, now.held, now.last_ns, now.ring_bytes) =
                (0, (5_000_000_000, 17_400_000_000), 30_000_000_000, 256 << 20);
            now.full = true;
            now.triggers.push(Fires { on: "kill".into(), fired: 2, suppressed: 7 });
        }
        for n in 0..20 {
            let tape = if n == 19 { Err("disk full".to_owned()) } else { Ok(format!("{n}.tape")) };
            status.written(Written { at: "T".into(), realtime: n, what: "kill".into(), tape });
        }
        let lines = control::status(&status.json(7, 1_500_000_000, 64 << 20));
        assert!(lines[0].contains("pid 7, for 17 s, 1.5 s of CPU, 64 MiB"), "{}", lines[0]);
        assert!(lines[1].contains("12.4 s of the last 30 s in 0 of 256 MiB: the ring is full"), "{}", lines[1]);
        assert!(lines.iter().any(|line| line.contains("kill: 2 times, 7 suppressed")));
        assert!(lines.iter().any(|line| line.contains("19 written, 1 failed")));
        assert!(lines.iter().any(|line| line.ends_with("no tape: disk full")));
        assert_eq!(lines.iter().filter(|line| line.starts_with("last")).count(), REMEMBERED);
    }
}
