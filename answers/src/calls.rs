//! Calls of a tape by keys: those that it stores and those that it only counts, with what may be missing.

use systape_events::filter::{Filters, ScopeError};
use systape_events::group::by::GroupKey;
use systape_events::question::Question;
use systape_format::model::Family;
use systape_format::reader::Tape;

use crate::derive::summary::collect::collect;
use crate::derive::summary::column::Column;
use crate::derive::summary::plan::Plan;
use crate::derive::summary::table;
use crate::keys::{KeyWords, RowKeys};

/// Most sentences about what is missing.
const MOST_TOLD: usize = 10;

/// Numbers of calls by keys.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallCounts {
    /// A row for all calls with the same keys, the most time first.
    pub rows: Vec<CallCount>,
    /// What is missing, in words, so that all rows are "at least"; empty: nothing is.
    pub missing: Vec<String>,
}

/// The number of calls with the same keys.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallCount {
    /// The value of each key as text, in the order in which they were asked for; `?`: not known, `-`: none.
    pub keys: Vec<String>,
    /// How many there are, those that were counted and not stored among them.
    pub calls: u64,
    /// There may be more, because something was lost.
    pub at_least: bool,
}

impl CallCounts {
    /// The calls of `tape` that pass `filters`, added up by the keys `by`.
    ///
    /// # Errors
    /// The tape does not know the real time, users or cgroups that the filters ask for.
    pub fn of(tape: &Tape, filters: &Filters, by: &[GroupKey]) -> Result<Self, ScopeError> {
        let mut question = Question::new(filters, tape, &[Family::Syscall])?;
        let plan = Plan::by(by).naming(tape.session());
        let (sums, knowledge, coverage) = collect(tape, &question.scope, &question.book, &plan);
        coverage.tell(&mut question.loss);
        let loss = question.loss.of_sums();
        let (lost, mut missing) = (!loss.complete(), loss.lines(tape.session(), MOST_TOLD));
        missing.extend(knowledge.doubts());
        let words = KeyWords { session: tape.session(), book: &question.book, plan: &plan };
        let ranked = table::rows(&sums, &knowledge, &question.book, &plan, Column::default());
        let rows = ranked.iter().map(|row| {
            let keys = RowKeys { words, values: &row.key, task: row.task };
            let at_least = lost || row.short;
            CallCount { keys: by.iter().map(|by| keys.text(*by)).collect(), calls: row.stats.calls, at_least }
        });
        Ok(Self { rows: rows.collect(), missing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tape(name: &str) -> Tape {
        Tape::open(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes").join(name))
            .expect("a tape")
    }

    #[test]
    fn those_that_were_counted_are_among_them() {
        let tape = tape("ledger-1.3.tape");
        let counts = CallCounts::of(&tape, &Filters::none(), &[GroupKey::Syscall]).expect("an answer");
        let stored: u64 = tape.segments().iter().map(|info| u64::from(info.rows)).sum();
        let all: u64 = counts.rows.iter().map(|row| row.calls).sum();
        assert!(all > stored && stored > 0, "{all} {stored}: {counts:?}");
    }

    #[test]
    fn keys_stand_in_the_order_that_is_asked_for() {
        let counts = CallCounts::of(&tape("mix-1.5.tape"), &Filters::none(), &[GroupKey::Comm, GroupKey::Syscall]);
        let counts = counts.expect("an answer");
        assert!(counts.rows.iter().any(|row| row.keys[1] == "read"), "{counts:?}");
        assert!(counts.missing.is_empty() && counts.rows.iter().all(|row| row.calls > 0 && !row.at_least));
    }
}
