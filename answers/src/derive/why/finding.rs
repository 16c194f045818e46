//! One finding, as plain values.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::derive::cost::pattern::CausePattern;

/// How bad a finding is, before its cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something broke: a process died, a disk failed. No time saved would give its work back.
    Broken,
    /// A finding that cost time.
    #[default]
    Time,
    /// A finding of which it is not known what it cost.
    Notice,
}

impl Severity {
    /// Name of the severity in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Time => "time",
            Self::Notice => "notice",
        }
    }
}

/// Whose time it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    /// Name of the program; empty: nobody's.
    pub comm: Vec<u8>,
    /// The process; None: several processes of that name.
    pub pid: Option<u32>,
}

/// The process of `pids`, if there is only one: see [`Who::pid`].
pub fn only(pids: &BTreeSet<u32>) -> Option<u32> {
    pids.first().copied().filter(|_| pids.len() == 1)
}

/// One of several things that a finding is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingMember {
    /// What calls were on: a file, a socket; empty: nothing, or not known.
    pub object: Vec<u8>,
    /// How many calls.
    pub calls: u64,
    /// Time in them, ns.
    pub ns: u64,
    /// The longest, ns.
    pub max: u64,
}

/// One finding. Its figures may be too low when events are lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Name of its rule.
    pub rule: &'static str,
    /// How bad.
    pub class: Severity,
    /// The wall time that would go away, ns; None: not known. A rule says how much it can be at most: its sum, and never more than from
    /// the first to the last.
    pub cost: Option<u64>,
    /// The time that it is about, where its call and object do not say it (see [`Finding::patterns`]).
    pub time: Vec<CausePattern>,
    /// The part of the time in `time` that is its own, if not all of it is: so many of so many ns. It is an estimate.
    pub share: Option<(u64, u64)>,
    /// Who makes others wait is never in it himself: when he ends says nothing about what it costs.
    pub by_outsider: bool,
    /// The cost is an estimate of looks: in 95 of 100 cases the truth lies between these, ns. What else it counts is at least so much.
    pub bars: Option<(u64, u64)>,
    /// The cost is a lower bound although nothing is lost: a call was still open.
    pub short: bool,
    /// The process or thread.
    pub who: Who,
    /// Number of processes.
    pub processes: u64,
    /// The call; empty: none.
    pub call: String,
    /// What it is on: a file, a peer, a disk, a program, a lock; empty: nothing.
    pub object: Vec<u8>,
    /// The error; 0: none.
    pub errno: u16,
    /// Who held the lock that was waited for longest: who ended that wait; None: no lock, or not known.
    pub by: Option<Who>,
    /// How often.
    pub count: u64,
    /// The longest, ns; None: no time belongs to it.
    pub max: Option<u64>,
    /// When it began and ended, ns; None: not known.
    pub span: Option<(u64, u64)>,
    /// What it joins, most time first: the largest 64; empty: it is about one thing.
    pub members: Vec<FindingMember>,
    /// The sentence, with `{count}` and `{max}` where these figures stand, `{mark}` before others; names in it are escaped.
    pub text: String,
    /// The arguments of `analyze` that show it; the tape's name is put behind them.
    pub command: String,
}

impl Finding {
    /// The key by which findings are ranked: the worst first.
    pub fn place(&self) -> impl Ord + use<> {
        (self.class, Reverse(self.cost), self.place_in_rank())
    }

    /// What decides between findings of equal cost.
    pub fn place_in_rank(&self) -> impl Ord + use<> {
        (Reverse(self.count), self.span, self.text.clone())
    }
}

/// The wall time in `ns` of several, perhaps at the same time, that lie in `span`.
pub fn wall(ns: u64, span: Option<(u64, u64)>) -> u64 {
    span.map_or(ns, |(first, last)| ns.min(last.saturating_sub(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_is_no_more_than_there_was() {
        assert_eq!((wall(70, Some((10, 50))), wall(30, Some((10, 50))), wall(70, None)), (40, 30, 70));
    }
}
