//! Stays one by one, the longest: rows of one stay are put together.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use systape_events::question::Question;
use systape_events::scan::Coverage;
use systape_format::model::Task;

use super::stored::StoredStay;
use super::walk::{Covered, TakesLooks, asked, walk};

/// Most stays in memory; with twice as many the shorter half is dropped.
const MOST: usize = 1 << 16;

/// A stay, of all its rows.
#[derive(Clone, Debug)]
pub struct FoundStay {
    /// The first look that found it.
    pub from: u64,
    /// The last one.
    pub last: u64,
    /// The thread; None: not known.
    pub task: Option<Task>,
    /// D, S or RQ.
    pub state: &'static str,
    /// Name of the call; None: in none.
    pub call: Option<Vec<u8>>,
    /// What the call's descriptor stands for.
    pub file: Option<Vec<u8>>,
    /// The path that the call was given.
    pub path: Option<Vec<u8>>,
    /// Address of the futex.
    pub lock: Option<u64>,
    /// Thread that holds it, in the pid namespace of this one.
    pub owner: Option<u64>,
    /// How long it is known to have been so until the last look, ns.
    pub lasted: u64,
    /// Looks that found it.
    pub looks: u64,
    /// The thread waits for work.
    pub rests: bool,
}

/// The longest stays.
#[derive(Debug, Default)]
pub struct FoundStays {
    /// The longest first.
    pub found: Vec<FoundStay>,
    /// There were more than there is room for: these are the longest.
    pub dropped: Option<usize>,
}

/// Puts rows together.
#[derive(Default)]
struct Joining {
    found: Vec<FoundStay>,
    /// By thread: its last stay.
    open: FxHashMap<u64, usize>,
    dropped: bool,
    /// Those of threads that wait for work are left out.
    folds: bool,
}

impl FoundStays {
    /// Stays of the time that `question` asks for; `folds`: without those of threads that wait for work.
    pub fn read(question: &Question<'_>, folds: bool) -> (Self, Covered, Coverage) {
        let mut joining = Joining { folds, ..Joining::default() };
        let (covered, coverage) = walk(question, asked(question), &mut joining);
        sort(&mut joining.found);
        (Self { found: joining.found, dropped: joining.dropped.then_some(MOST) }, covered, coverage)
    }
}

impl TakesLooks for Joining {
    fn stay(&mut self, row: &StoredStay<'_>, _segment: usize) {
        if self.folds && row.rests() {
            return;
        }
        let seen = row.seen;
        let thread = row.thread();
        let before = self.open.get(&thread).and_then(|at| self.found.get_mut(*at));
        if let Some(stay) = before.filter(|stay| !seen.first && stay.last <= row.span.0) {
            stay.lasted = stay.lasted.max(seen.lasted);
            stay.looks = stay.looks.saturating_add(seen.looks);
            stay.last = row.span.1;
            return;
        }
        if self.found.len() >= 2 * MOST {
            // those that go on are kept as long as they are long
            sort(&mut self.found);
            self.found.truncate(MOST);
            self.open.clear();
            self.dropped = true;
        }
        self.open.insert(thread, self.found.len());
        let owned = |name: Option<&[u8]>| name.map(<[u8]>::to_vec);
        self.found.push(FoundStay {
            from: row.span.0,
            last: row.span.1,
            task: row.task.map(|(_, task)| task.clone()),
            state: row.state,
            call: owned(row.call.map(|(name, _)| name)),
            file: owned(row.file),
            path: owned(row.path),
            lock: row.lock,
            owner: row.owner,
            lasted: seen.lasted,
            looks: seen.looks,
            rests: row.rests(),
        });
    }
}

fn sort(found: &mut [FoundStay]) {
    found.sort_by_key(|stay| (Reverse(stay.lasted), stay.from, stay.task.as_ref().map(|task| task.tid)));
}
