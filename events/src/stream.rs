//! Lines of many segments, merged by start with memory that does not grow with the tape.
//!
//! A segment's own rows, sorted, follow those of the segment before. Its carry rows belong between the lines of earlier
//! segments: they are read when the output reaches their time ([`CarryPlan`](crate::scan::carry::CarryPlan)) and wait
//! in a heap ([`Merger`]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

/// Takes lines with their times.
pub trait TimedLines: Write {
    /// Writes `bytes`, lines of the times `marks`, each of which ends where its mark says, counted from `from` bytes
    /// before the first.
    ///
    /// # Errors
    /// They cannot be written.
    fn lines(&mut self, bytes: &[u8], _marks: &[(u64, usize)], _from: usize) -> io::Result<()> {
        self.write_all(bytes)
    }
}

impl TimedLines for Vec<u8> {}

impl TimedLines for io::Sink {}

impl<W: TimedLines> TimedLines for &mut W {
    fn lines(&mut self, bytes: &[u8], marks: &[(u64, usize)], from: usize) -> io::Result<()> {
        (**self).lines(bytes, marks, from)
    }
}

/// Lines in order of their keys (start or end time), all in one buffer.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The lines.
    pub bytes: Vec<u8>,
    /// Key of each line and where it ends in `bytes`; keys ascend.
    pub marks: Vec<(u64, usize)>,
}

impl Part {
    /// Ends the line just written to `bytes`.
    #[inline]
    pub fn end_line(&mut self, key: u64) {
        self.marks.push((key, self.bytes.len()));
    }
}

/// The lines of both parts in order; of equal keys, `a`'s first.
pub fn merged(a: Part, b: Part) -> Part {
    if a.marks.is_empty() || b.marks.is_empty() {
        return if a.marks.is_empty() { b } else { a };
    }
    let mut both = Part {
        bytes: Vec::with_capacity(a.bytes.len() + b.bytes.len()),
        marks: Vec::with_capacity(a.marks.len() + b.marks.len()),
    };
    let (mut from, mut at) = ([0; 2], [0; 2]);
    let parts = [&a, &b];
    while at[0] < a.marks.len() || at[1] < b.marks.len() {
        let key = |side: usize| parts[side].marks.get(at[side]).map(|(key, _)| *key);
        let side = match (key(0), key(1)) {
            (Some(first), Some(second)) => usize::from(second < first),
            (first, _) => usize::from(first.is_none()),
        };
        let (key, end) = parts[side].marks[at[side]];
        both.bytes.extend_from_slice(&parts[side].bytes[from[side]..end]);
        both.end_line(key);
        (from[side], at[side]) = (end, at[side] + 1);
    }
    both
}

/// A line that waits for its place: key, then a tie-breaker, then the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loose {
    /// Start (or end) time.
    pub key: u64,
    /// Order among lines with one key: (segment, row), which is that of ends; None: what is missing, before all others.
    pub tie: Option<(u32, u32)>,
    /// The line.
    pub line: Vec<u8>,
}

/// Merges loose lines with those of parts, and counts what it prints.
#[derive(Debug)]
pub struct Merger<W> {
    out: W,
    waiting: BinaryHeap<Reverse<Loose>>,
    left: u64,
}

impl<W: TimedLines> Merger<W> {
    /// Prints to `out`, at most `limit` lines.
    #[inline]
    pub fn new(out: W, limit: u64) -> Self {
        Self { out, waiting: BinaryHeap::new(), left: limit }
    }

    /// What it prints to.
    #[inline]
    pub fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Number of lines that may still be printed.
    #[inline]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Adds a line for later: it is printed before the first line of a part with a greater key, one without a tie-breaker
    /// also before those with its key.
    #[inline]
    pub fn push(&mut self, loose: Loose) {
        self.waiting.push(Reverse(loose));
    }

    /// Prints the next part and the loose lines before and between its lines. Parts must come in order of their keys.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn part(&mut self, part: &Part) -> io::Result<()> {
        let (mut line, mut from) = (0, 0);
        while line < part.marks.len() && self.left > 0 {
            let until = match self.waiting.peek() {
                // A call that is stored later ended later. So its place does not depend on where segments end.
                Some(Reverse(Loose { key: loose, tie, .. })) => {
                    line + part.marks[line..].partition_point(|(key, _)| key < loose || (tie.is_some() && key == loose))
                }
                None => part.marks.len(),
            };
            let until = until.min(line.saturating_add(usize::try_from(self.left).unwrap_or(usize::MAX)));
            if until > line {
                let to = part.marks[until - 1].1;
                self.out.lines(&part.bytes[from..to], &part.marks[line..until], from)?;
                self.left -= (until - line) as u64;
                (line, from) = (until, to);
            }
            if line < part.marks.len() && self.left > 0 {
                self.pop()?;
            }
        }
        Ok(())
    }

    /// Prints the loose lines whose key is below `key`.
    ///
    /// # Errors
    /// It cannot be written.
    #[inline]
    pub fn flush_below(&mut self, key: u64) -> io::Result<()> {
        while self.left > 0 && self.waiting.peek().is_some_and(|Reverse(loose)| loose.key < key) {
            self.pop()?;
        }
        Ok(())
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// It cannot be written.
    #[inline]
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Prints the loose lines that are left.
    ///
    /// # Errors
    /// It cannot be written.
    #[inline]
    pub fn finish(&mut self) -> io::Result<()> {
        while self.left > 0 && !self.waiting.is_empty() {
            self.pop()?;
        }
        self.out.flush()
    }

    fn pop(&mut self) -> io::Result<()> {
        if let Some(Reverse(loose)) = self.waiting.pop() {
            self.out.lines(&loose.line, &[(loose.key, loose.line.len())], 0)?;
            self.left -= 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::carry::CarryPlan;
    use proptest::prelude::*;

    /// (start, end).
    type Span = (u64, u64);

    /// Calls cut into windows of `width` by end, as a recorder stores them: (start of the window, carry rows, own rows).
    fn windows(calls: &[Span], width: u64) -> Vec<(u64, Vec<Span>, Vec<Span>)> {
        let mut calls = calls.to_vec();
        calls.sort_by_key(|call| call.1);
        let last = calls.iter().map(|c| c.1).max().unwrap_or(0);
        let mut all = Vec::new();
        for from in (0..=last).step_by(width as usize) {
            let inside: Vec<_> = calls.iter().copied().filter(|c| (from..from + width).contains(&c.1)).collect();
            let (carry, own) = inside.into_iter().partition(|c| c.0 < from);
            all.push((from, carry, own));
        }
        all
    }

    fn line(call: Span) -> Vec<u8> {
        format!("{} {}\n", call.0, call.1).into_bytes()
    }

    #[test]
    fn merging_keeps_order() {
        let part = |lines: &[(u64, &str)]| {
            let mut part = Part::default();
            for (key, text) in lines {
                part.bytes.extend_from_slice(text.as_bytes());
                part.end_line(*key);
            }
            part
        };
        let text = |part: Part| String::from_utf8(part.bytes).unwrap();
        let (a, b) = (part(&[(1, "a"), (5, "bb"), (9, "c")]), part(&[(0, "x"), (5, "y"), (6, "z"), (10, "w")]));
        let both = merged(a.clone(), b);
        assert_eq!(both.marks.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [0, 1, 5, 5, 6, 9, 10]);
        assert_eq!(text(both), "xabbyzcw");
        assert_eq!(text(merged(a, Part::default())), "abbc");
    }

    /// The way the listing drives merger and plan, `batch` segments at a time.
    fn stream(calls: &[Span], width: u64, batch: usize, limit: u64) -> String {
        let segments = windows(calls, width);
        let carries = segments.iter().enumerate().filter_map(|(i, s)| Some((i, s.1.iter().map(|c| c.0).min()?)));
        let mut plan = CarryPlan::new(carries);
        let mut merger = Merger::new(Vec::new(), limit);
        for first in (0..segments.len()).step_by(batch) {
            let next = (first + batch).min(segments.len());
            let frontier = segments.get(next).map_or(u64::MAX, |s| s.0);
            for at in plan.due(frontier) {
                for (row, call) in segments[at].1.iter().enumerate() {
                    merger.push(Loose { key: call.0, tie: Some((at as u32, row as u32)), line: line(*call) });
                }
            }
            for (_, _, own) in &segments[first..next] {
                let mut own = own.clone();
                own.sort_by_key(|c| c.0);
                let mut part = Part::default();
                for call in own {
                    part.bytes.extend(line(call));
                    part.end_line(call.0);
                }
                merger.part(&part).unwrap();
            }
            merger.flush_below(frontier).unwrap();
        }
        merger.finish().unwrap();
        String::from_utf8(merger.out).unwrap()
    }

    proptest! {
        #[test]
        fn same_as_sorting_everything(
            calls in prop::collection::vec((0_u64..2000, 0_u64..900), 0..120),
            width in 1_u64..300, batch in 1_usize..5, limit in 0_u64..150,
        ) {
            let calls: Vec<_> = calls.into_iter().map(|(start, dur)| (start, start + dur)).collect();
            let spans = |text: &str| text.lines().map(|l| l.split_once(' ').map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).unwrap()).collect::<Vec<Span>>();
            let got = stream(&calls, width, batch, u64::MAX);
            let mut naive = calls.clone();
            naive.sort_unstable();
            prop_assert_eq!(spans(&got), naive);
            let cut = stream(&calls, width, batch, limit);
            prop_assert!(got.starts_with(&cut));
            prop_assert_eq!(cut.lines().count() as u64, limit.min(calls.len() as u64));
        }
    }
}
