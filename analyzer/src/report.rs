//! The reports and their names.

use std::path::Path;

/// What is asked of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// Calls, one a line, a summary, or both.
    Calls,
    /// What the tape holds and lacks.
    Info,
    /// Whether every byte of it is sound.
    Check,
    /// A clean copy of what is whole of it.
    Repair,
    /// The same, without what tells of people and machines.
    Redact,
    /// Block I/Os: one a line, histograms, or sums by who caused them.
    Block,
    /// Programs that were started, with arguments, failures and ends; or the tree of processes.
    Exec,
    /// Who sent which signal to whom, how, and what came of it.
    Kills,
    /// Connections: both ends, who, how long.
    Net,
    /// Time off CPU by task, state, call and file; who woke whom.
    Offcpu,
    /// How long runnable tasks waited for a CPU.
    Runqlat,
    /// The scheduler as perf sched shows it: timehist and latency.
    Sched,
    /// What every thread was doing: time by state, call and file; or the picture of one instant.
    States,
    /// Stacks added up: who called what, by count, time or bytes.
    Callgraph,
    /// Two summaries side by side.
    Diff,
}

impl Report {
    /// Whether it writes a tape, the second file.
    pub fn makes_a_copy(self) -> bool {
        matches!(self, Self::Repair | Self::Redact)
    }

    /// Names of reports; the listing has none.
    pub const NAMES: [(&'static str, Self); 14] = [
        ("info", Self::Info),
        ("check", Self::Check),
        ("repair", Self::Repair),
        ("redact", Self::Redact),
        ("block", Self::Block),
        ("exec", Self::Exec),
        ("kills", Self::Kills),
        ("net", Self::Net),
        ("offcpu", Self::Offcpu),
        ("runqlat", Self::Runqlat),
        ("sched", Self::Sched),
        ("states", Self::States),
        ("callgraph", Self::Callgraph),
        ("diff", Self::Diff),
    ];
}

/// The report whose name `path` resembles, for a message: a word without `/` or `.` at most two edits away.
pub fn nearest(path: &Path) -> Option<&'static str> {
    let word = path.to_str().filter(|word| word.len() < 20 && !word.contains(['/', '.']))?;
    let near = Report::NAMES.iter().map(|(name, _)| (distance(word, name), *name)).min()?;
    (near.0 <= 2).then_some(near.1)
}

/// Edit distance.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_resembles_a_report() {
        assert_eq!(nearest(Path::new("chek")), Some("check"));
        assert_eq!(nearest(Path::new("my.tape")), None);
    }
}
