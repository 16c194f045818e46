//! Reading a tape: segment by segment in order ([`Scan::walk`]) or in any order on all CPUs ([`Scan::fold`]), or event by event in order of
//! time ([`Scan::stream`]).
//!
//! A scan lists in its [`Coverage`] what it could not read. Only a scan makes one, and a report adds it to the [`Loss`]
//! that decides whether its numbers are bounds.

pub mod carry;
pub mod later;
pub mod lost;
pub mod stream;

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use systape_format::Error;
use systape_format::header::BlockKind;
use systape_format::model::{CallState, Dict, SegmentInfo};
use systape_format::reader::{Segment, Tape};
use systape_format::table::TableDef;
use systape_format::tables::TableRows;

use crate::load::{Base, Loaded, OpenCalls, hole};
use crate::loss::{Hole, Loss};
use crate::question::Question;
use crate::values::parallel;

/// Most segments decoded together by [`Scan::walk`], which keeps their results.
const BATCH: usize = 8;
/// With fewer segments a pool of threads does not pay.
const FEW: usize = 2;

/// The parts that a scan could not read.
#[derive(Debug)]
#[must_use = "without it numbers look exact that are not"]
pub struct Coverage {
    holes: Vec<Hole>,
    findings: Vec<String>,
    unread: Vec<usize>,
}

impl Coverage {
    fn new() -> Self {
        Self { holes: Vec::new(), findings: Vec::new(), unread: Vec::new() }
    }

    /// `rows` calls of `segment` are missing; 0: only details of calls are.
    pub fn hole(&mut self, segment: &Segment<'_>, rows: u32, error: &Error) {
        self.holes.push(hole(segment, rows, error));
    }

    /// Holes that a part of a segment left.
    pub fn holes(&mut self, holes: Vec<Hole>) {
        self.holes.extend(holes);
    }

    /// `what` of `segment` is missing.
    pub fn finding(&mut self, segment: &Segment<'_>, what: &str, error: &Error) {
        self.findings.push(format!("segment {}: its {what} cannot be read: {error}", segment.info().segment));
    }

    /// Indices of the segments of which [`Scan::walk`] read nothing.
    pub fn unread(&self) -> &[usize] {
        &self.unread
    }

    /// Adds it to the losses of the answer.
    pub fn tell(self, loss: &mut Loss) {
        for hole in self.holes {
            if !loss.holes.contains(&hole) {
                loss.holes.push(hole);
            }
        }
        loss.findings.extend(self.findings);
    }

    /// Losses as sentences, for answers that are not about calls.
    pub fn sentences(self) -> Vec<String> {
        let holes = self.holes.into_iter().map(|hole| format!("segment {}: {}", hole.segment, hole.why));
        self.findings.into_iter().chain(holes).collect()
    }

    fn merge(&mut self, other: Self) {
        self.holes.extend(other.holes);
        self.findings.extend(other.findings);
        self.unread.extend(other.unread);
    }
}

/// The segments to read.
#[derive(Clone, Debug)]
pub struct Scan<'t> {
    tape: &'t Tape,
    segments: Vec<usize>,
}

impl<'t> Scan<'t> {
    /// What a scan covers for which there is nothing to read.
    pub fn nothing() -> Coverage {
        Coverage::new()
    }

    /// Every segment.
    pub fn all(tape: &'t Tape) -> Self {
        Self::of(tape, (0..tape.segments().len()).collect())
    }

    /// The segments at these indices.
    pub fn of(tape: &'t Tape, segments: Vec<usize>) -> Self {
        Self { tape, segments }
    }

    /// The segments that may have events of the selected processes and times.
    pub fn candidates(question: &Question<'t>) -> Self {
        let scope = &question.scope;
        let wanted = |info: &SegmentInfo| info.touches(scope.from, scope.to) && scope.may_be_of(info);
        let segments = question.tape.segments().iter().enumerate();
        Self::of(question.tape, segments.filter(|(_, info)| wanted(info)).map(|(at, _)| at).collect())
    }

    /// The indices of these segments, in order.
    pub fn segments(&self) -> &[usize] {
        &self.segments
    }

    /// Passes the calls that `question` asks for, those that were still open at the end too, and not the child's side of fork and clone:
    /// `read` makes something of a segment and its rows that pass, on all CPUs, `each` takes what it made, in the segments' order.
    pub fn passing<T: Send>(
        question: &Question<'t>,
        read: impl Fn(&Loaded, &mut dyn Iterator<Item = usize>) -> T + Sync,
        mut each: impl FnMut(T),
    ) -> Coverage {
        let of = |loaded: &Loaded, number: u32| {
            let filter = question.scope.segment(&loaded.dict, number);
            let passes = |row: &usize| filter.core(&loaded.core, *row) && filter.time(&loaded.time, *row);
            let is_call = |row: &usize| loaded.core.state[*row] != CallState::CloneChild;
            read(loaded, &mut (0..loaded.rows()).filter(is_call).filter(passes))
        };
        let coverage = Self::calls(question).parts(
            |_, segment, coverage| {
                let (mut holes, number) = (Vec::new(), segment.info().segment);
                let base = Base::read(*segment, &mut holes, |dict, core| {
                    let filter = question.scope.segment(dict, number);
                    (0..core.call.len()).any(|row| filter.core(core, row))
                });
                let made = base.map(|base| of(&base.load(&question.book, &mut holes), number));
                coverage.holes(holes);
                made
            },
            |made| made.into_iter().for_each(&mut each),
        );
        if let Some(open) = OpenCalls::read(question.tape) {
            each(of(&open.load(&question.book), u32::MAX));
        }
        coverage
    }

    /// The segments that may have a call that passes.
    pub fn calls(question: &Question<'t>) -> Self {
        Self::of(question.tape, question.candidates())
    }

    /// Reads each segment with `read`, several at a time, and passes the results to `each` in the segments' order, with
    /// the segment's index. `what` names the part in messages.
    pub fn walk<T: Send>(
        &self,
        what: &str,
        read: impl Fn(&Segment<'_>, &Dict) -> Result<T, Error> + Sync,
        mut each: impl FnMut(usize, &Dict, T),
    ) -> Coverage {
        never_fails(self.try_walk(what, read, |at, dict, read| {
            each(at, dict, read);
            Ok(ControlFlow::Continue(()))
        }))
    }

    /// [`walk`](Self::walk) until `each` stops it.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn try_walk<T: Send, E>(
        &self,
        what: &str,
        read: impl Fn(&Segment<'_>, &Dict) -> Result<T, Error> + Sync,
        mut each: impl FnMut(usize, &Dict, T) -> Result<ControlFlow<()>, E>,
    ) -> Result<Coverage, E> {
        let one = |at: usize, segment: &Segment<'t>, coverage: &mut Coverage| match segment
            .dict()
            .and_then(|dict| read(segment, &dict).map(|read| (dict, read)))
        {
            Ok((dict, read)) => Some((at, dict, read)),
            Err(error) => {
                coverage.finding(segment, what, &error);
                coverage.unread.push(at);
                None
            }
        };
        self.try_parts(one, |found| match found {
            Some((at, dict, read)) => each(at, &dict, read),
            None => Ok(ControlFlow::Continue(())),
        })
    }

    /// Passes the rows of the tables `defs` of all segments to `each`, in the segments' order, with the segment's index. `what` names
    /// them in messages.
    pub fn tables(
        tape: &'t Tape,
        (what, defs): (&str, &[&TableDef]),
        mut each: impl FnMut(usize, &Dict, &TableRows),
    ) -> Coverage {
        let has_rows = |at: &usize| !defs.is_empty() && tape.segment(*at).has(BlockKind::Tables);
        Self::of(tape, (0..tape.segments().len()).filter(has_rows).collect()).walk(
            what,
            |segment, dict| segment.tables(dict),
            |at, dict, tables| {
                let wanted = tables.iter().filter(|table| defs.iter().any(|def| def.name == table.def.name));
                wanted.for_each(|table| each(at, dict, table));
            },
        )
    }

    /// Folds the segments for readers with several steps that may each fail: `read` reports that itself.
    pub fn parts<T: Send>(
        &self,
        read: impl Fn(usize, &Segment<'t>, &mut Coverage) -> T + Sync,
        mut each: impl FnMut(T),
    ) -> Coverage {
        never_fails(self.try_parts(read, |part| {
            each(part);
            Ok(ControlFlow::Continue(()))
        }))
    }

    /// [`parts`](Self::parts) until `each` stops it.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn try_parts<T: Send, E>(
        &self,
        read: impl Fn(usize, &Segment<'t>, &mut Coverage) -> T + Sync,
        mut each: impl FnMut(T) -> Result<ControlFlow<()>, E>,
    ) -> Result<Coverage, E> {
        let mut coverage = Coverage::new();
        for batch in self.segments.chunks(rayon::current_num_threads().clamp(1, BATCH)) {
            let one = |at: &usize| {
                let mut part = Coverage::new();
                (read(*at, &self.tape.segment(*at), &mut part), part)
            };
            for (found, part) in parallel::map(batch, one) {
                coverage.merge(part);
                if each(found)?.is_break() {
                    return Ok(coverage);
                }
            }
        }
        Ok(coverage)
    }

    /// Passes every segment to `each` on all CPUs, in any order. Each thread has its own state; all states are
    /// returned.
    pub fn fold<S: Send>(
        &self,
        new: impl Fn() -> S + Sync,
        each: impl Fn(&mut S, &Segment<'t>, &mut Coverage) + Sync,
    ) -> (Vec<S>, Coverage) {
        let next = AtomicUsize::new(0);
        let work = || {
            let (mut state, mut coverage) = (new(), Coverage::new());
            while let Some(at) = self.segments.get(next.fetch_add(1, Ordering::Relaxed)) {
                each(&mut state, &self.tape.segment(*at), &mut coverage);
            }
            (state, coverage)
        };
        // a pool costs more than a few segments are worth
        let parts = if self.segments.len() <= FEW { vec![work()] } else { parallel::on_each_thread(work) };
        let mut coverage = Coverage::new();
        let states = parts.into_iter().map(|(state, part)| {
            coverage.merge(part);
            state
        });
        (states.collect(), coverage)
    }
}

fn never_fails<T>(result: Result<T, Infallible>) -> T {
    let Ok(value) = result;
    value
}
