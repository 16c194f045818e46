//! Signals as they are sent, and what comes of them, of a tape that is being written.

use std::ops::ControlFlow;

use anyhow::Result;
use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::{Family, Gap, GapCause};
use systape_format::reader::Tape;

use super::party::Unseen;
use super::{KillsInput, missing, passes, recorded, rows, text};
use crate::asked::config::Config;
use crate::asked::config::view::Follows;
use crate::reports::Context;
use crate::reports::losses;
use systape_answers::derive::processes::living::Living;
use systape_answers::derive::processes::track::key;
use systape_answers::derive::signals::pending::Pending;
use systape_answers::derive::signals::{Missing, SignalChoice, SignalLine, Tracker};
use systape_answers::render::out::Out;
use systape_answers::values::say::Verdict;
use systape_events::loss::loses;

/// Most losses that are kept; of more, any time may be one.
const MOST_GAPS: usize = 1024;

/// The answer so far.
pub(super) struct FollowedKills {
    /// What is asked; its `max_events` are those that are left.
    config: Config,
    choice: SignalChoice,
    verbose: bool,
    living: Living,
    pending: Pending,
    /// Losses of signals.
    gaps: Vec<Gap>,
    /// Times in which signals cannot be read.
    unreadable: Vec<(u64, u64)>,
    /// Number of acts so far.
    acts: u32,
    /// The heading is printed, and what was not recorded is told.
    begun: bool,
}

impl FollowedKills {
    /// Nothing yet.
    pub(super) fn new(config: &Config, choice: SignalChoice, verbose: bool) -> Self {
        Self {
            config: config.clone(),
            choice,
            verbose,
            living: Living::default(),
            pending: Pending::default(),
            gaps: Vec::new(),
            unreadable: Vec::new(),
            acts: 0,
            begun: false,
        }
    }

    /// The signals that `tape` adds, and again those of before that ended a process now; in order of time.
    fn records(
        &mut self,
        context: &Context<'_>,
        ended: &FxHashSet<u64>,
        findings: &mut Vec<String>,
    ) -> Vec<SignalLine> {
        let tape = context.question.tape;
        let mut tracker = Tracker::new(&self.living.processes, &self.choice, passes(context));
        tracker = tracker.hiding_calls(tape.session().registers_unknown);
        let acts = self.pending.feed(&mut tracker);
        let mut came = Vec::new();
        for at in 0..tape.segments().len() {
            let segment = tape.segment(at);
            match segment.dict().and_then(|dict| segment.signals(&dict).map(|events| (dict, events))) {
                Ok((dict, events)) => {
                    let calls: Vec<_> = dict.calls.iter().map(|call| context.question.book.get(*call)).collect();
                    tracker.segment(acts.len() + at, events.clone(), &dict.tasks, &calls);
                    came.push((events, dict, calls));
                }
                Err(error) => {
                    let info = segment.info();
                    findings.push(format!("segment {}: its signals cannot be read: {error}", info.segment));
                    self.unreadable.push((info.start_min, info.end_max));
                }
            }
        }
        let mut records = tracker.finish(&self.missing());
        records.retain(|record| match record.sent.place {
            Some((at, _)) if at >= acts.len() => true,
            // of before, or a death of which no signal came
            _ => record.outcome.end.is_some() && ended.contains(&key(&record.sent.target)),
        });
        self.number(&mut records, &acts);
        let place = |record: &SignalLine| record.sent.place.filter(|(at, _)| *at >= acts.len());
        let printed: FxHashMap<(usize, u32), u32> =
            records.iter().filter_map(|record| Some((place(record)?, record.act))).collect();
        for (at, (events, dict, calls)) in came.iter().enumerate() {
            let of_rows = printed.iter().filter(|((segment, _), _)| *segment == acts.len() + at);
            let rows = of_rows.map(|((_, row), act)| (*row, *act)).collect();
            self.pending.add(events, &dict.tasks, calls, &rows);
        }
        self.pending.forget(ended);
        records
    }

    /// Continues the numbers of acts; a signal that has one keeps it.
    fn number(&mut self, records: &mut [SignalLine], acts: &[u32]) {
        let mut numbers = FxHashMap::default();
        for record in records {
            let before = record.sent.place.and_then(|(at, _)| acts.get(at)).copied().filter(|act| *act != 0);
            record.act = before.unwrap_or_else(|| {
                *numbers.entry(record.act).or_insert_with(|| {
                    self.acts = self.acts.saturating_add(1);
                    self.acts
                })
            });
        }
    }

    /// Times in which signals may be missing.
    fn missing(&self) -> Missing {
        let all = [(0, u64::MAX)];
        let many = self.pending.crowded || self.gaps.len() > MOST_GAPS || self.unreadable.len() > MOST_GAPS;
        Missing::new(&self.gaps, if many { &all } else { &self.unreadable })
    }
}

impl Follows for FollowedKills {
    fn add(&mut self, tape: &Tape, out: &mut Out) -> Result<ControlFlow<Verdict, Verdict>> {
        let (signals, life) = recorded(tape)?;
        let mut findings = Vec::new();
        let came = self.living.add(tape, &mut findings);
        let ended: FxHashSet<u64> = came.ended.iter().map(|at| key(&self.living.processes.all[*at].task)).collect();
        let config = self.config.clone();
        let mut context = Context::about(&config, tape, &[Family::Signal, Family::Process])?;
        if !self.choice.of_everyday() {
            context.question.loss.gaps.retain(|gap| gap.cause != GapCause::Everyday);
        }
        if self.gaps.len() <= MOST_GAPS {
            let gaps = (0..tape.segments().len()).flat_map(|at| tape.segment(at).gaps().unwrap_or_default());
            self.gaps.extend(gaps.filter(|gap| loses(gap, &[Family::Signal])));
        }
        let records = self.records(&context, &ended, &mut findings);
        context.question.loss.findings.append(&mut findings);
        let story = KillsInput {
            context: &context,
            choice: &self.choice,
            verbose: self.verbose,
            stamps: context.stamps_and_wall(),
            processes: &self.living.processes,
            records: &records,
            signals,
            life,
            whole: false,
            ends: false,
            unseen: Unseen { gaps: self.living.gaps.clone(), torn: false },
            stacks: None,
        };
        if !self.begun {
            missing(tape.session(), &self.choice, (signals, life)).iter().for_each(|line| out.say(line));
        }
        let printed = if out.is_text() {
            text::losses(&story, out)?;
            text::acts(&story, out)?
        } else {
            rows::print(&story, out)?
        };
        self.begun = true;
        let verdict = losses::end(&context, out, out.is_text(), losses::pushed(out))?;
        let verdict = verdict.doubted(self.living.lossy() || self.living.crowded || self.pending.crowded);
        self.config.max_events -= printed as u64;
        Ok(if self.config.max_events == 0 { ControlFlow::Break(verdict) } else { ControlFlow::Continue(verdict) })
    }
}
