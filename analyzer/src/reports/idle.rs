//! Idle waits in reports for people: of a whole machine most threads wait for work most of the time, so rows of nothing else are one line.

use systape_format::model::Extent;
use systape_format::reader::Tape;

use crate::asked::config::Config;
use crate::asked::options::idle::{Idle, IdleRows};
use systape_answers::render::mark;
use systape_answers::render::table::{millis, share};
use systape_events::filter::Scope;
use systape_events::question::everyone;

/// The line's words for what they are.
pub(super) const WORDS: &str = "poll, accept, sleep, a pipe, a terminal and the like";

/// Whether `tape` is of the whole machine.
pub(super) fn of_machine(tape: &Tape) -> bool {
    let session = tape.session();
    !session.cut_tasks && (session.extent == Extent::Everyone || everyone(tape))
}

/// Whether they are one line: in text of the whole machine, where nobody asks for some threads or calls.
pub(super) fn folds(idle: Idle, config: &Config, tape: &Tape, scope: &Scope<'_>) -> bool {
    let all = of_machine(tape) && !scope.by_task() && !config.filters.selects;
    match idle.asked() {
        Some(how) => how == IdleRows::Fold,
        None => all && config.format.rows().is_none(),
    }
}

/// The rows that are folded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Folded {
    /// How many.
    rows: usize,
    /// Their time, ns.
    ns: u64,
    /// It is a lower bound.
    least: bool,
}

impl Folded {
    /// A row with its time.
    pub(super) fn add(&mut self, ns: u64, least: bool) {
        self.rows += 1;
        self.ns = self.ns.saturating_add(ns);
        self.least |= least;
    }

    /// The line for all of them, of rows that together have `all`; None: there are none.
    pub(super) fn line(&self, all: u64) -> Option<String> {
        let rows = if self.rows == 1 { "1 row".to_owned() } else { format!("{} rows", self.rows) };
        let time = millis(self.ns, mark::at_least(self.least));
        let share = share(self.ns, all);
        (self.rows > 0).then(|| format!("idle waits: {time} ms ({share}) in {rows}: {WORDS} (--idle lists them)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_their_sum() {
        let mut folded = Folded::default();
        assert_eq!(folded.line(0), None);
        folded.add(1_500_000, false);
        assert!(folded.line(3_000_000).unwrap().starts_with("idle waits: 1.500 ms (50.0%) in 1 row: "));
        folded.add(500_000, true);
        assert!(folded.line(4_000_000).unwrap().starts_with("idle waits: >=2.000 ms (50.0%) in 2 rows: "));
    }
}
