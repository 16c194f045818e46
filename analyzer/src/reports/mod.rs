//! One file a report. Each gets a [`Context`]: the tape, the resolved command line, and the known losses.

pub(crate) mod across;
pub(crate) mod added;
pub(crate) mod block;
pub(crate) mod call_texts;
pub(crate) mod callgraph;
pub(crate) mod calls;
pub(crate) mod check;
pub(crate) mod cut;
pub(crate) mod diff;
pub(crate) mod env;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod expect;
pub(crate) mod export;
pub(crate) mod fds;
pub(crate) mod files;
mod idle;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod instant;
pub(crate) mod kills;
pub(crate) mod listing;
pub(crate) mod locks;
pub(crate) mod losses;
pub(crate) mod mcp;
pub(crate) mod measured;
pub(crate) mod merge;
pub(crate) mod named;
pub(crate) mod net;
pub(crate) mod offcpu;
pub(crate) mod open;
pub(crate) mod page;
pub(crate) mod path;
pub(crate) mod probes;
pub(crate) mod rate;
pub(crate) mod repair;
pub(crate) mod requests;
pub(crate) mod runqlat;
pub(crate) mod samples;
pub(crate) mod sched;
pub(crate) mod scheduling;
pub(crate) mod schema;
pub(crate) mod states;
pub(crate) mod stays;
pub(crate) mod summary;
pub(crate) mod tables;
mod timed;
pub(crate) mod tools;
pub(crate) mod top;
pub(crate) mod traced;
pub(crate) mod tui;
pub(crate) mod why;

use anyhow::Result;
use systape_format::model::Family;
use systape_format::reader::Tape;

use crate::asked::config::Config;
use systape_answers::derive::paths::pick;
use systape_answers::render::columns::Layout;
use systape_answers::render::form::Format;
use systape_answers::render::row::{Judgement, ShownTimes};
use systape_answers::render::stamp::{Stamps, TimeBase};
use systape_events::question::{Question, clock};
use systape_events::values::clock::Clock;

/// A [`Question`] and the form of its answer.
#[derive(Debug)]
pub struct Context<'a> {
    /// The resolved command line.
    pub config: &'a Config,
    /// The question.
    pub question: Question<'a>,
}

impl<'a> Context<'a> {
    /// Binds `config` to `tape`, for a report about calls.
    ///
    /// # Errors
    /// What `config` asks for is not on the tape, or the tape cannot be read.
    pub fn new(config: &'a Config, tape: &'a Tape) -> Result<Self> {
        Self::about(config, tape, &[Family::Syscall])
    }

    /// Binds `config` to `tape`, for a report about these families: only their loss could change the answer.
    ///
    /// # Errors
    /// As those of [`Self::new`].
    pub fn about(config: &'a Config, tape: &'a Tape, families: &[Family]) -> Result<Self> {
        let mut question = Question::new(&config.filters, tape, families)?;
        pick::pick(&mut question)?;
        Ok(Self { config, question })
    }

    /// Makes texts of times.
    pub fn stamps(&self) -> Stamps {
        let stamps = Stamps::new(&[self.config.base().unwrap_or_default()], self.question.tape);
        if self.config.dated { stamps.dated() } else { stamps }
    }

    /// Stamps for reports that, if nothing else was asked for, have the time of day beside the seconds.
    pub fn stamps_and_wall(&self) -> Stamps {
        match self.config.base() {
            Some(base) => Stamps::new(&[base], self.question.tape),
            None => Stamps::both(self.question.tape),
        }
    }

    /// Stamps of sentences about a stretch of time: the clock that was asked for, else the time of day where it is known.
    pub fn stamps_of_sentences(&self) -> Stamps {
        let dated = self.question.tape.session().clock.monotonic != 0;
        let base = self.config.base().unwrap_or(if dated { TimeBase::Wall } else { TimeBase::Start });
        Stamps::new(&[base], self.question.tape)
    }

    /// Times of rows, without a clock for text, which has none of theirs.
    pub(crate) fn times(&self) -> ShownTimes<'a> {
        let (tape, text) = (self.question.tape, self.config.format == Format::Text);
        ShownTimes { session: tape.session(), clock: if text { Clock::default() } else { clock(tape) } }
    }

    /// A tool's `layout`, and the clocks of its columns.
    pub(crate) fn stamped(&self, layout: &'static Layout) -> (&'static Layout, Stamps) {
        (layout, layout.stamps(self.config.base(), self.question.tape))
    }

    /// Effect of the losses so far on rows of sums.
    pub fn judged(&self) -> Judgement {
        Judgement::Touched(!self.question.loss.complete())
    }
}
