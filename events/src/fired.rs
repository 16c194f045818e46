//! What a tape was begun for: rows of the table `record:trigger`.

use systape_format::families::RECORD_TRIGGER;
use systape_format::header::BlockKind;
use systape_format::model::{Family, Task};
use systape_format::reader::Tape;
use systape_format::tables::TableRows;

use crate::families::in_session;
use crate::values::words::escaped;

/// Time shown before and after what fired, ns.
const AROUND: u64 = 300_000_000;

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    /// When it happened.
    pub ts: u64,
    /// Whose event; None = nobody's, or not known.
    pub task: Option<Task>,
    /// The trigger as `--on` has it.
    pub trigger: Vec<u8>,
    /// What happened, in words.
    pub what: Vec<u8>,
    /// Name of a request; empty = none.
    pub name: Vec<u8>,
    /// The tape was begun for it.
    pub began: bool,
    /// Events that the row stands for.
    pub events: u64,
    /// Number of these that fell into cooldowns before the tape.
    pub suppressed: u64,
}

/// All of them, the one that the tape was begun for first; none of a tape that was not begun by a trigger, as one of looks. What cannot be
/// read is left out: a report on it says so.
pub fn fired(tape: &Tape) -> Vec<Fired> {
    // what looks found wrong, a tape beside theirs was begun for
    let is_begun = || tape.table_defs().values().any(|def| def.name == RECORD_TRIGGER.name);
    if tape.session().kept.is_none() && (in_session(tape.session(), Family::Look) || !is_begun()) {
        return Vec::new();
    }
    let with_tables = |at: &usize| tape.segment(*at).has(BlockKind::Tables);
    let all = || (0..tape.segments().len()).filter(with_tables);
    let last = tape.segments().len().saturating_sub(1);
    // the recorder writes them into a segment of their own, and what joined them into the last one; not so a cut
    let mut rows = rows_of(tape, all().filter(|at| *at == last || is_of_tables(tape, *at)));
    if tape.session().cut.is_some() || !rows.iter().any(|fired| fired.began) {
        rows = rows_of(tape, all());
    }
    rows.sort_by_key(|fired| (!fired.began, fired.suppressed > 0, fired.ts));
    rows
}

/// What a tape of looks says of full recordings beside it, in order of time: `name` is that of the tape. What cannot be read is left out.
pub fn escalated(tape: &Tape) -> Vec<Fired> {
    if !in_session(tape.session(), Family::Look) {
        return Vec::new();
    }
    let with_tables = |at: &usize| tape.segment(*at).has(BlockKind::Tables);
    let mut rows = rows_of(tape, (0..tape.segments().len()).filter(with_tables));
    rows.retain(|fired| !fired.name.is_empty());
    rows.sort_by_key(|fired| fired.ts);
    rows
}

/// Whether the segment has rows of tables and nothing else.
fn is_of_tables(tape: &Tape, at: usize) -> bool {
    let segment = tape.segment(at);
    BlockKind::of_segment().all(|kind| matches!(kind, BlockKind::Dict | BlockKind::Tables) || !segment.has(kind))
}

/// Those of the segments at `places`.
fn rows_of(tape: &Tape, places: impl Iterator<Item = usize>) -> Vec<Fired> {
    let mut rows = Vec::new();
    for at in places {
        let segment = tape.segment(at);
        let Ok((dict, tables)) = segment.dict().and_then(|dict| segment.tables(&dict).map(|tables| (dict, tables)))
        else {
            continue;
        };
        for table in tables.iter().filter(|table| table.def.name == RECORD_TRIGGER.name) {
            rows.extend((0..table.ts.len()).map(|row| read(table, row, &dict.tasks)));
        }
    }
    rows
}

fn read(table: &TableRows, row: usize, tasks: &[Task]) -> Fired {
    let number = |name: &str| table.column(name).and_then(|column| column.get(row)).copied().unwrap_or(0);
    let index = |name: &str| usize::try_from(number(name)).ok()?.checked_sub(1);
    let text = |name: &str| index(name).and_then(|at| table.strings.get(at)).cloned().unwrap_or_default();
    Fired {
        ts: table.ts[row],
        task: index("task").and_then(|at| tasks.get(at)).cloned(),
        trigger: text("trigger"),
        what: text("what"),
        name: text("name"),
        began: number("began") != 0,
        events: number("events"),
        suppressed: number("suppressed"),
    }
}

impl Fired {
    /// `fsync 812 ms of postgres/4711 at 21.305 s (slow:fsync>500ms)`; times since `open`.
    pub fn text(&self, open: u64) -> String {
        let of =
            self.task.as_ref().map_or_else(String::new, |task| format!(" of {}/{}", escaped(&task.comm), task.tid));
        let name = if self.name.is_empty() { String::new() } else { format!(" \"{}\"", escaped(&self.name)) };
        let at = self.ts.saturating_sub(open) as f64 / 1e9;
        format!("{}{name}{of} at {at:.3} s ({})", escaped(&self.what), escaped(&self.trigger))
    }

    /// A window of time around it, as `--time` takes it.
    pub fn window(&self, open: u64) -> String {
        let seconds = |ts: u64| ts.saturating_sub(open) as f64 / 1e9;
        format!("{:.1},{:.1}", seconds(self.ts.saturating_sub(AROUND)), seconds(self.ts.saturating_add(AROUND)))
    }
}

/// What the tape was begun for in words, with what joined it and what was suppressed; None = it was not begun by a trigger.
pub fn summary(fired: &[Fired], open: u64) -> Option<String> {
    let first = fired.first().filter(|fired| fired.began)?;
    let (mut text, rest) = (first.text(open), &fired[1..]);
    let sum = |suppressed: bool| -> u64 {
        rest.iter().filter(|fired| (fired.suppressed > 0) == suppressed).map(|fired| fired.events).sum()
    };
    match sum(false) {
        0 => {}
        more => text.push_str(&format!("; {more} more")),
    }
    match sum(true) {
        0 => {}
        before => text.push_str(&format!("; {before} suppressed before")),
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fired(ts: u64, began: bool, events: u64, suppressed: u64) -> Fired {
        let task = Task { tid: 4711, comm: b"post\x1bgres".to_vec(), ..Task::default() };
        let (trigger, what) = (b"slow:fsync>500ms".to_vec(), b"fsync 812 ms".to_vec());
        Fired { ts, task: Some(task), trigger, what, name: Vec::new(), began, events, suppressed }
    }

    #[test]
    fn what_fired_is_a_sentence() {
        let open = 5_000_000_000;
        let first = fired(26_305_000_000, true, 1, 0);
        let text = "fsync 812 ms of post\\x1bgres/4711 at 21.305 s (slow:fsync>500ms)";
        assert_eq!(summary(std::slice::from_ref(&first), open).as_deref(), Some(text));
        assert_eq!(first.window(open), "21.0,21.6");
        let all = [first, fired(26_400_000_000, false, 1, 0), fired(0, false, 9_998, 0), fired(0, false, 3, 3)];
        assert_eq!(summary(&all, open), Some(format!("{text}; 9999 more; 3 suppressed before")));
        assert_eq!(summary(&all[1..], open), None);
        let named = Fired { name: b"deploy".to_vec(), task: None, ..fired(open, true, 1, 0) };
        assert_eq!(named.text(open), "fsync 812 ms \"deploy\" at 0.000 s (slow:fsync>500ms)");
    }
}
