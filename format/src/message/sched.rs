//! The scheduler: switches and wake-ups.

use std::collections::HashMap;

use super::rows::{Rows, deltas, minus_one, plus_one, rows_as_header};
use crate::column::put;
use crate::error::{Error, Result, capnp_err};
use crate::header::{Header, INCOMPAT_SOFTIRQ};
use crate::model::{Came, Switch, Wakeup};
use crate::payload::{Message, new_message};
use crate::trace_capnp as schema;
use capnp::message::{Builder, HeapAllocator};

const SCHED: &str = "sched";
const WAKEUPS: &str = "wakeups";

/// Most bytes of a switch in a message, in any layout of its columns.
pub(crate) const SWITCH_BYTES: usize = 45;
/// Most bytes of a wake-up.
pub(crate) const WAKEUP_BYTES: usize = 29;

/// Bits of `flags` of a wake-up.
const NEW: u8 = 1;
const SOFTIRQ: u8 = 2;

/// The task on each CPU according to the rows so far: the next switch of that CPU leaves it.
#[derive(Default)]
struct RunningTasks {
    /// Task + 1 by CPU; 0 = no row yet.
    near: Vec<u32>,
    /// The same for CPU numbers that no machine has, so that a damaged one takes no memory.
    far: HashMap<u32, u32>,
}

impl RunningTasks {
    const NEAR: u32 = 8192;

    /// Puts `next` on `cpu`; returns the task before, if known.
    fn replace(&mut self, cpu: u32, next: u32) -> Option<u32> {
        let task = next.saturating_add(1);
        let before = if cpu < Self::NEAR {
            let at = cpu as usize;
            if at >= self.near.len() {
                self.near.resize(at + 1, 0);
            }
            std::mem::replace(&mut self.near[at], task)
        } else {
            self.far.insert(cpu, task).unwrap_or(0)
        };
        minus_one(before)
    }
}

/// The sched message; `rows` must be sorted by ts.
pub(crate) fn write_switches(rows: &[Switch]) -> Builder<HeapAllocator> {
    let mut message = new_message(rows.len() * SWITCH_BYTES + 512);
    let mut b = message.init_root::<schema::sched::Builder<'_>>();
    let ts: Vec<u64> = rows.iter().map(|r| r.ts).collect();
    let first = ts.first().copied().unwrap_or(0);
    let mut running = RunningTasks::default();
    let prev: Vec<u32> = rows
        .iter()
        .map(|r| match running.replace(r.cpu, r.next) {
            Some(task) if task == r.prev => 0,
            _ => plus_one(Some(r.prev)),
        })
        .collect();
    b.set_rows(rows.len() as u32);
    b.set_first(first);
    put(b.reborrow().init_delta(), &deltas(&ts, first));
    put(b.reborrow().init_cpu(), &rows.iter().map(|r| r.cpu).collect::<Vec<_>>());
    put(b.reborrow().init_next(), &rows.iter().map(|r| r.next).collect::<Vec<_>>());
    put(b.reborrow().init_prev(), &prev);
    let state = |r: &Switch| u64::from(r.prev_state) << 1 | u64::from(r.preempted);
    put(b.reborrow().init_prev_state(), &rows.iter().map(state).collect::<Vec<_>>());
    put(b.reborrow().init_throttled(), &rows.iter().map(|r| u8::from(r.throttled)).collect::<Vec<_>>());
    put(b.reborrow().init_unthrottled(), &rows.iter().map(|r| r.unthrottled_ns).collect::<Vec<_>>());
    put(b.init_came(), &rows.iter().map(|r| came_bits(r.came)).collect::<Vec<_>>());
    message
}

/// As the column has it; 0 ns of a time that is known would be none.
fn came_bits(came: Option<Came>) -> u64 {
    came.map_or(0, |Came { ns, at_most }| ns.max(1) << 1 | u64::from(at_most))
}

fn came_of(bits: u64) -> Option<Came> {
    (bits != 0).then_some(Came { ns: bits >> 1, at_most: bits & 1 != 0 })
}

/// The switches of a sched block whose segment has `tasks` tasks.
pub(crate) fn read_switches(header: &Header, message: &Message<'_>, tasks: usize) -> Result<Vec<Switch>> {
    let r = message.get_root::<schema::sched::Reader<'_>>().map_err(capnp_err(SCHED))?;
    let n = rows_as_header(SCHED, r.get_rows(), header)?;
    let rows = Rows { block: SCHED, n };
    let ts = rows.times(r.get_first(), r.get_delta())?;
    let cpu: Vec<u32> = rows.column("cpu", r.get_cpu())?;
    let next = rows.tasks("next", r.get_next(), tasks)?;
    let prev = rows.maybe_tasks("prev", r.get_prev(), tasks)?;
    let state: Vec<u64> = rows.column("prevState", r.get_prev_state())?;
    let throttled: Vec<u8> = rows.column_or_zero("throttled", r.get_throttled())?;
    let unthrottled: Vec<u64> = rows.column_or_zero("unthrottled", r.get_unthrottled())?;
    let came: Vec<u64> = rows.column_or_zero("came", r.get_came())?;
    let mut running = RunningTasks::default();
    let mut out = Vec::with_capacity(n);
    for (i, &ts) in ts.iter().enumerate() {
        let bad = |why: String| Error::invalid(SCHED, format!("row {i}: {why}"));
        let before = running.replace(cpu[i], next[i]);
        let prev = minus_one(prev[i])
            .or(before)
            .ok_or_else(|| bad(format!("prev is left to a row before it, CPU {} has none", cpu[i])))?;
        let prev_state = u32::try_from(state[i] >> 1).map_err(|_| bad(format!("task state {:#x}", state[i] >> 1)))?;
        out.push(Switch {
            ts,
            cpu: cpu[i],
            prev,
            next: next[i],
            prev_state,
            preempted: state[i] & 1 != 0,
            throttled: throttled[i] != 0,
            unthrottled_ns: unthrottled[i],
            came: came_of(came[i]),
        });
    }
    Ok(out)
}

/// The wakeups message; `rows` must be sorted by ts.
pub(crate) fn write_wakeups(rows: &[Wakeup]) -> Builder<HeapAllocator> {
    let mut message = new_message(rows.len() * WAKEUP_BYTES + 512);
    let mut b = message.init_root::<schema::wakeups::Builder<'_>>();
    let ts: Vec<u64> = rows.iter().map(|r| r.ts).collect();
    let first = ts.first().copied().unwrap_or(0);
    let column = |f: fn(&Wakeup) -> u32| rows.iter().map(f).collect::<Vec<_>>();
    b.set_rows(rows.len() as u32);
    b.set_first(first);
    put(b.reborrow().init_delta(), &deltas(&ts, first));
    put(b.reborrow().init_cpu(), &column(|r| r.cpu));
    put(b.reborrow().init_waker(), &column(|r| plus_one(r.waker)));
    put(b.reborrow().init_wakee(), &column(|r| r.wakee));
    put(b.reborrow().init_target_cpu(), &column(|r| r.target_cpu));
    let flags = |r: &Wakeup| if r.new { NEW } else { 0 } | if r.softirq { SOFTIRQ } else { 0 };
    put(b.reborrow().init_flags(), &rows.iter().map(flags).collect::<Vec<_>>());
    put(b.init_throttled(), &rows.iter().map(|r| u8::from(r.throttled)).collect::<Vec<_>>());
    message
}

/// The wake-ups of a wakeups block whose segment has `tasks` tasks.
pub(crate) fn read_wakeups(header: &Header, message: &Message<'_>, tasks: usize) -> Result<Vec<Wakeup>> {
    let r = message.get_root::<schema::wakeups::Reader<'_>>().map_err(capnp_err(WAKEUPS))?;
    let n = rows_as_header(WAKEUPS, r.get_rows(), header)?;
    let rows = Rows { block: WAKEUPS, n };
    let ts = rows.times(r.get_first(), r.get_delta())?;
    let cpu: Vec<u32> = rows.column("cpu", r.get_cpu())?;
    let waker = rows.maybe_tasks("waker", r.get_waker(), tasks)?;
    let wakee = rows.tasks("wakee", r.get_wakee(), tasks)?;
    let target_cpu: Vec<u32> = rows.column("targetCpu", r.get_target_cpu())?;
    let flags: Vec<u8> = rows.column("flags", r.get_flags())?;
    let throttled: Vec<u8> = rows.column_or_zero("throttled", r.get_throttled())?;
    // without its bit in the header an older reader would have taken the block and refused the row
    let known = if header.features_incompat & INCOMPAT_SOFTIRQ == 0 { NEW } else { NEW | SOFTIRQ };
    if let Some(flags) = flags.iter().find(|&&flags| flags & !known != 0) {
        return Err(Error::invalid(WAKEUPS, format!("unknown flags {flags:#x}")));
    }
    let row = |(i, &ts): (usize, &u64)| Wakeup {
        ts,
        cpu: cpu[i],
        waker: minus_one(waker[i]),
        wakee: wakee[i],
        target_cpu: target_cpu[i],
        new: flags[i] & NEW != 0,
        softirq: flags[i] & SOFTIRQ != 0,
        throttled: throttled[i] != 0,
    };
    Ok(ts.iter().enumerate().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::reread;

    fn switch(ts: u64, cpu: u32, prev: u32, next: u32) -> Switch {
        Switch { ts, cpu, prev, next, ..Switch::default() }
    }

    /// What reading these switches with a change to the message says.
    fn forged(rows: &[Switch], tasks: usize, forge: impl FnOnce(schema::sched::Builder<'_>)) -> String {
        let mut message = write_switches(rows);
        forge(message.get_root().expect("the root"));
        reread(&message, rows.len() as u32, |h, m| read_switches(h, m, tasks))
            .map_or_else(|e| e.to_string(), |_| String::new())
    }

    #[test]
    fn prev_is_left_out_where_the_row_before_tells() {
        let rows = [
            switch(1, 0, 0, 1),
            Switch { throttled: true, unthrottled_ns: 9, ..switch(2, 0, 1, 2) },
            Switch { came: Some(Came { ns: 2, at_most: true }), ..switch(3, u32::MAX, 0, 2) },
            Switch { came: Some(Came { ns: 1, at_most: false }), ..switch(4, 0, 1, 1) },
        ];
        let message = write_switches(&rows);
        let read = reread(&message, 4, |h, m| {
            let r = m.get_root::<schema::sched::Reader<'_>>().expect("the root");
            let prev: Vec<u32> = Rows { block: SCHED, n: 4 }.column("prev", r.get_prev()).expect("prev");
            assert_eq!(prev, [1, 0, 1, 2], "CPU 0's second row goes on, its third does not");
            read_switches(h, m, 3)
        });
        assert_eq!(read.expect("own message"), rows);
    }

    #[test]
    fn switches_that_break_a_must_are_refused() {
        let rows = [switch(5, 0, 0, 1), switch(5, 0, 1, 0), switch(u64::MAX, 1, 1, 0)];
        assert_eq!(forged(&rows, 2, |_| ()), "");
        let says = |got: String, what: &str| assert!(got.contains(what), "{got:?}, not {what:?}");
        says(forged(&rows, 1, |_| ()), "next 1 where the dict has 1");
        says(forged(&rows, 2, |mut b| b.set_rows(4)), "4 rows, its header says 3");
        says(forged(&rows, 2, |mut b| b.set_first(6)), "a time passes 2^64 - 1");
        says(forged(&rows, 2, |b| put(b.init_prev(), &[3u32, 0, 1])), "prev 3 where the dict has 3");
        says(forged(&rows, 2, |b| put(b.init_prev(), &[0u32, 0, 1])), "row 0: prev is left to a row before");
        says(forged(&rows, 2, |b| put(b.init_prev(), &[1u32, 0, 0])), "CPU 1 has none");
        says(forged(&rows, 2, |b| put(b.init_prev_state(), &[0, 1 << 33, 0u64])), "row 1: task state 0x100000000");
        says(forged(&rows, 2, |b| put(b.init_cpu(), &[0u32, 1])), "2 values for 3 rows");
        says(forged(&rows, 2, |b| _ = b.init_cpu()), "absent");
        // older tapes have neither
        assert_eq!(forged(&rows, 2, |b| _ = b.init_throttled()), "");
        assert_eq!(forged(&rows, 2, |b| _ = b.init_unthrottled()), "");
        assert_eq!(forged(&rows, 2, |b| _ = b.init_came()), "");
        says(forged(&rows, 2, |b| put(b.init_cpu(), &[0, 0, 1u64 << 32])), "value 4294967296 > 4294967295");
    }

    #[test]
    fn wakeups_that_break_a_must_are_refused() {
        let rows = [Wakeup { waker: Some(1), wakee: 0, new: true, ..Wakeup::default() }, Wakeup::default()];
        let forged = |tasks, forge: &dyn Fn(schema::wakeups::Builder<'_>)| {
            let mut message = write_wakeups(&rows);
            forge(message.get_root().expect("the root"));
            reread(&message, 2, |h, m| read_wakeups(h, m, tasks)).map_err(|e| e.to_string())
        };
        assert_eq!(forged(2, &|_| ()).as_deref(), Ok(&rows[..]));
        let says = |got: Result<Vec<Wakeup>, String>, what: &str| {
            let e = got.expect_err(what);
            assert!(e.contains(what), "{e:?}, not {what:?}");
        };
        says(forged(1, &|_| ()), "waker 2 where the dict has 2");
        says(forged(2, &|b| put(b.init_wakee(), &[2u32, 0])), "wakee 2 where the dict has 2");
        says(forged(2, &|b| put(b.init_flags(), &[5u32, 0])), "unknown flags 0x5");
        // the header does not announce it
        says(forged(2, &|b| put(b.init_flags(), &[2u32, 0])), "unknown flags 0x2");
        says(forged(2, &|mut b| b.set_rows(1 << 21)), "its header says 2");
    }

    #[test]
    fn rows_are_bounded_before_memory_is_taken() {
        let mut message = write_switches(&[]);
        message.get_root::<schema::sched::Builder<'_>>().expect("the root").set_rows(u32::MAX);
        let e = reread(&message, u32::MAX, |h, m| read_switches(h, m, 1)).expect_err("too many rows");
        assert!(matches!(e, Error::TooLarge { limit: 1048576, .. }), "{e}");
        let none = reread(&write_switches(&[]), 0, |h, m| read_switches(h, m, 0));
        assert_eq!(none.expect("no rows are fine"), []);
    }
}
