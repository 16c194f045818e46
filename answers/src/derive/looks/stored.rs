//! One row of `look:stay`, cut to the time asked for.

use systape_abi::{Abi, describe_name, rest};
use systape_events::group::value::Value;
use systape_format::model::{Call, Dict, Task};
use systape_format::tables::TableRows;

use super::presence::SeenStay;
use crate::derive::runs::thread_key;

/// State of a thread that waits for a CPU.
pub const QUEUED: &str = "RQ";
/// State of a thread on a CPU: of samples.
pub const RUNNING: &str = "RUN";

/// Of a futex, in include/uapi/linux/futex.h.
const FUTEX_COMMAND: u64 = 0x7f;
const FUTEX_WAIT_BITSET: u64 = 9;

/// One row of `look:stay`.
#[derive(Clone, Debug)]
pub struct StoredStay<'a> {
    /// Entry of the thread in its segment, and the thread; None: not known.
    pub task: Option<(usize, &'a Task)>,
    /// D, S or [`QUEUED`].
    pub state: &'static str,
    /// Name of the call, and its ABI; None: in none.
    pub call: Option<(&'a [u8], Abi)>,
    /// What the call's descriptor stands for.
    pub file: Option<&'a [u8]>,
    /// Whether that is a TCP socket that connected itself, not one that was accepted; None: not known.
    pub connected: Option<bool>,
    /// The path that the call was given.
    pub path: Option<&'a [u8]>,
    /// Address of the futex.
    pub lock: Option<u64>,
    /// Thread that holds it, in the pid namespace of this one.
    pub owner: Option<u64>,
    /// The second argument of the call: of a futex its operation; None: in none.
    pub operation: Option<u64>,
    /// Whether file, path and owner were read: else they are not known.
    pub read: bool,
    /// The part of it in the time asked for, as it counts.
    pub seen: SeenStay,
    /// Time of its first look, and of its last, as far as they are in that time.
    pub span: (u64, u64),
    /// Time of its first look, and of its last, wherever they are.
    pub looks: (u64, u64),
    /// When it was stored: at the look that found it over, or at which the next row begins.
    pub stored: u64,
    /// How long it had been so at the first look of the row, ns; None: not known.
    pub since: Option<u64>,
}

/// A column of a table of looks, by its name.
pub(super) struct LookColumn<'a> {
    table: &'a TableRows,
    /// Values of it; empty: the tape has no such column.
    values: &'a [u64],
    /// Place of it among the table's.
    at: usize,
}

impl<'a> LookColumn<'a> {
    pub(super) fn new(table: &'a TableRows, name: &str) -> Self {
        let at = table.def.columns.iter().position(|column| column.name == name).unwrap_or(0);
        Self { table, values: table.column(name).unwrap_or_default(), at }
    }

    pub(super) fn number(&self, row: usize) -> u64 {
        self.values.get(row).copied().unwrap_or(0)
    }

    pub(super) fn text(&self, row: usize) -> Option<&'a [u8]> {
        self.table.string(self.number(row))
    }

    /// A number that may be unknown.
    fn known(&self, row: usize) -> Option<u64> {
        (!self.values.is_empty() && !self.table.is_unread(row, self.at)).then(|| self.number(row))
    }
}

/// The rows of stays of a segment that have looks in `(from, to)`, of these no other.
pub(super) fn rows<'a>(
    table: &'a TableRows,
    dict: &'a Dict,
    (from, to): (u64, u64),
) -> impl Iterator<Item = StoredStay<'a>> + 'a {
    let of = |name| LookColumn::new(table, name);
    let [agos, spans, counts, firsts, numbers, intervals] =
        ["ago", "seen", "looks", "first", "look", "interval"].map(of);
    let [sinces, states, calls, abis, tasks] = ["since", "state", "call", "abi", "task"].map(of);
    let [files, paths, locks, owners, reads, sides] = ["file", "path", "lock", "owner", "read", "connected"].map(of);
    let operations = of("arg1");
    table.ts.iter().enumerate().filter_map(move |(row, ts)| {
        let last = ts.saturating_sub(agos.number(row));
        let (mut seen, begin) = (spans.number(row), last.saturating_sub(spans.number(row)));
        let (mut looks, mut first) = (counts.number(row), firsts.number(row) != 0);
        if last < from || begin > to || looks == 0 {
            return None;
        }
        let since = sinces.known(row);
        let mut look = numbers.number(row);
        let (cut_from, cut_to) = (begin.max(from), last.min(to));
        if (cut_from, cut_to) != (begin, last) {
            // looks are spread over the row's time
            let of_all = |time: u64| time as f64 / seen.max(1) as f64;
            look = look.saturating_add((looks as f64 * of_all(cut_from.saturating_sub(begin))).round() as u64);
            let part = of_all(cut_to.saturating_sub(cut_from));
            looks = ((looks as f64 * part).round() as u64).clamp(1, looks);
            seen = cut_to.saturating_sub(cut_from);
            first &= cut_from == begin;
        }
        let state = match states.text(row) {
            Some(b"D") => "D",
            Some(b"S") => "S",
            Some(b"R") => QUEUED,
            _ => "?",
        };
        let lasted = since.unwrap_or(0).saturating_add(cut_to.saturating_sub(begin));
        let abi = abis.text(row).and_then(abi);
        let task = usize::try_from(tasks.number(row)).ok().and_then(|task| task.checked_sub(1));
        Some(StoredStay {
            task: task.and_then(|at| Some((at, dict.tasks.get(at)?))),
            state,
            call: calls.text(row).zip(abi),
            file: files.text(row),
            connected: sides.known(row).map(|side| side != 0),
            path: paths.text(row),
            lock: locks.known(row),
            owner: owners.known(row),
            operation: operations.known(row),
            // a tape without the column is none of ours
            read: reads.number(row) != 0,
            seen: SeenStay { look, looks, interval: intervals.number(row), seen, first, lasted },
            span: (cut_from, cut_to),
            looks: (begin, last),
            stored: *ts,
            since,
        })
    })
}

fn abi(name: &[u8]) -> Option<Abi> {
    [Abi::X86_64, Abi::I386, Abi::X32, Abi::Aarch64].into_iter().find(|abi| abi.as_str().as_bytes() == name)
}

impl StoredStay<'_> {
    /// Whether the thread waits for work, as far as the call and its file say.
    pub fn rests(&self) -> bool {
        let Some((name, _)) = self.call.filter(|_| self.state == "S") else { return false };
        let Ok(name) = std::str::from_utf8(name) else { return false };
        let takes = describe_name(name).is_some_and(|desc| rest::takes(name, desc.io()));
        if name.starts_with("futex") {
            // conditions are waited for like this, too, and the number of their signals may be that of a contended lock
            return self.owner.is_none() && self.operation.is_some_and(|op| op & FUTEX_COMMAND == FUTEX_WAIT_BITSET);
        }
        // who takes from a connection waits for an answer if this side made it, whatever the ports are
        let by_side = self.connected.filter(|_| takes).map(|connected| !connected);
        by_side.unwrap_or_else(|| rest::at_rest(name, takes, self.file))
    }

    /// What it waits for, in words: its file, its path, or its lock.
    pub fn on(&self) -> Option<Vec<u8>> {
        let lock = || {
            let pid = self.task.map_or(0, |(_, task)| task.pid);
            self.lock.map(|lock| format!("[lock {lock:#x} of {pid}]").into_bytes())
        };
        self.file.or(self.path).map(<[u8]>::to_vec).or_else(lock)
    }

    /// The call, if its name is one of its ABI.
    pub fn number(&self) -> Option<Call> {
        let (name, abi) = self.call?;
        let nr = std::str::from_utf8(name).ok().and_then(|name| systape_abi::number(abi, name))?;
        Some(Call { abi: abi as u8, nr })
    }

    /// The call as a key.
    pub(super) fn call_value(&self) -> Value {
        match self.call {
            Some((name, _)) => self.number().map_or_else(|| Value::Text(name.into()), Value::Call),
            None => Value::None,
        }
    }

    /// The thread, as the tape tells it from others of its number.
    pub(super) fn thread(&self) -> u64 {
        self.task.map_or(0, |(_, task)| thread_key(task))
    }
}
