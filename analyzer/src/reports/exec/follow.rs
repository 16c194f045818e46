//! Programs as they start, fail and end, of a tape that is being written.

use std::ops::ControlFlow;

use anyhow::Result;
use systape_abi::Effect;
use systape_format::reader::Tape;

use super::ends::AskedEnds;
use super::rows::{self, After, Row};
use super::{ExecInput, families, listing, notes, require};
use crate::asked::config::Config;
use crate::asked::config::view::Follows;
use crate::reports::Context;
use crate::reports::losses::{self, LOSS_LINES};
use systape_answers::derive::lost_calls::has_effect;
use systape_answers::derive::processes::interpreters::Interpreters;
use systape_answers::derive::processes::living::{LifeFacts, Living};
use systape_answers::derive::processes::usage::Usages;
use systape_answers::render::out::Out;
use systape_answers::render::row::Judgement;
use systape_answers::values::say::Verdict;
use systape_events::values::order::InOrder as _;

/// The answer so far.
pub(super) struct FollowedExecs {
    /// What is asked; its `max_events` are those that are left.
    config: Config,
    /// Only programs that end so.
    ends: Option<AskedEnds>,
    living: Living,
    /// The heading is printed, and what was not recorded is told.
    begun: bool,
    /// It was told that some processes are not kept.
    told_crowded: bool,
}

impl FollowedExecs {
    /// Nothing yet.
    pub(super) fn new(config: &Config, ends: Option<AskedEnds>) -> Self {
        Self { config: config.clone(), ends, living: Living::default(), begun: false, told_crowded: false }
    }

    /// Failed attempts are asked for.
    fn failures(&self) -> bool {
        self.ends.is_none()
    }

    /// The rows that `came` adds, in order of time.
    fn rows(&self, came: &LifeFacts, context: &mut Context<'_>) -> Vec<Row> {
        let all = &self.living.processes.all;
        let mut rows = Vec::new();
        if !self.config.filters.failure {
            let programs = came.programs.iter().filter(|_| self.ends.is_none());
            let begun = programs.map(|(at, nth)| (&all[*at], &all[*at].images[*nth], After::Begun));
            // a program whose end may be another's has none
            let ended = came.ended.iter().filter_map(|at| {
                let (image, end) = (all[*at].image()?, all[*at].end()?);
                let asked = self.ends.as_ref().is_none_or(|ends| ends.has(&end));
                let lost = self.living.lost(image.task.pid, image.since, end.ts);
                (asked && !lost).then_some((&all[*at], image, After::End(end)))
            });
            let passing =
                begun.chain(ended).filter(|(_, image, _)| image.exec && context.question.scope.task(&image.task));
            rows.extend(passing.map(|(process, image, after)| Row::of(process, image, after)));
        }
        if self.failures() {
            rows.extend(rows::failed_ones(context, &self.living.processes));
        }
        rows.order_by_key(|row| (row.moment(), row.task.pid, row.task.tid));
        rows
    }
}

impl Follows for FollowedExecs {
    fn add(&mut self, tape: &Tape, out: &mut Out) -> Result<ControlFlow<Verdict, Verdict>> {
        require(tape)?;
        let mut findings = Vec::new();
        let came = self.living.add(tape, &mut findings);
        let config = self.config.clone();
        let mut context = Context::about(&config, tape, families(self.failures()))?;
        let mut rows = self.rows(&came, &mut context);
        let (mut usages, loss) = (Usages::default(), &mut context.question.loss);
        if rows.iter().any(|row| matches!(row.after, After::End(_))) {
            let (read, coverage) = Usages::read(tape);
            usages = read;
            coverage.tell(loss);
        }
        if rows.iter().any(|row| row.errno != 0) {
            let (read, coverage) = Interpreters::read(tape);
            rows.iter_mut().for_each(|row| row.asked = read.of(row.task.tid, row.failed_at).cloned());
            coverage.tell(loss);
        }
        loss.findings.append(&mut findings);
        loss.keep_counted_of(tape, &context.question.scope, |call| has_effect(call, |effect| effect == Effect::Exec));
        let story = ExecInput {
            context: &context,
            kernel_threads: false,
            processes: &self.living.processes,
            usages: &usages,
            times: context.times(),
            stamps: context.stamps_and_wall(),
            until: tape.complete_until(),
            whole: false,
            ends: false,
            lives: false,
            live: true,
        };
        let first = !std::mem::replace(&mut self.begun, true);
        if first {
            notes(&context, self.failures()).iter().for_each(|note| out.say(note));
        }
        let wanted = &rows[..rows.len().min(config.most())];
        if out.is_text() {
            out.text(first.then(|| (listing::LAYOUT.head)(&story)))?;
            out.text(context.question.loss.lines(tape.session(), LOSS_LINES))?;
            out.text(wanted.iter().map(|row| (listing::LAYOUT.line)(&story, row)))?;
        } else {
            out.rows(&listing::EXEC, Judgement::Each, wanted.iter().map(|row| listing::record(&story, row)))?;
        }
        if self.living.crowded && !self.told_crowded {
            out.say("AT LEAST: there are too many processes to keep: of those that began long ago no end is shown");
            self.told_crowded = true;
        }
        let verdict = losses::end_of_sums(&context, out)?;
        self.config.max_events -= wanted.len() as u64;
        let verdict = verdict.doubted(self.living.lossy() || self.living.crowded);
        Ok(if self.config.max_events == 0 { ControlFlow::Break(verdict) } else { ControlFlow::Continue(verdict) })
    }
}
