//! Stacks of senders.

use anyhow::Result;
use serde_json::Value;
use systape_format::model::StackOf;
use systape_format::reader::Tape;

use super::Options;
use systape_answers::derive::signals::SignalLine;
use systape_answers::derive::stacks::debug_files;
use systape_answers::derive::stacks::limits::Limits;
use systape_answers::derive::stacks::lines::StackLines;
use systape_answers::derive::stacks::names::Names;
use systape_answers::derive::stacks::recorded;
use systape_answers::render::form::Format;
use systape_answers::render::out::Out;

/// The names for senders' stacks; None when they are not recorded or not printed.
pub(super) fn names(own: &Options, format: Format, tape: &Tape, out: &mut Out) -> Result<Option<Names>> {
    if !own.stacks(format) || !recorded::kinds(tape).contains(&StackOf::Signal) {
        return Ok(None);
    }
    let mut findings = Vec::new();
    let names = debug_files::find(tape, || recorded::places(tape), &own.names.debug_dirs, &mut findings)?;
    findings.iter().for_each(|finding| out.say(finding));
    Ok(Some(names))
}

/// Reads the stacks of a segment when a signal of it is printed.
pub(super) struct SenderStacks<'a> {
    tape: &'a Tape,
    names: &'a Names,
    /// The segment that was read last, by index.
    last: Option<(usize, StackLines<'a>)>,
    /// What could not be read.
    pub findings: Vec<String>,
}

impl<'a> SenderStacks<'a> {
    /// Stacks of `tape` with `names`.
    pub(super) fn new(tape: &'a Tape, names: &'a Names) -> Self {
        Self { tape, names, last: None, findings: Vec::new() }
    }

    /// The functions of the sender's stack, the innermost first; empty without a sender.
    pub(super) fn list(&mut self, record: &SignalLine) -> Vec<String> {
        self.of(record).map_or_else(Vec::new, |(lines, row)| lines.list(StackOf::Signal, row))
    }

    /// The stack as JSON with its status; null without a sender.
    pub(super) fn json(&mut self, record: &SignalLine) -> (Value, Value) {
        self.of(record).map_or((Value::Null, Value::Null), |(lines, row)| lines.json(StackOf::Signal, row))
    }

    fn of(&mut self, record: &SignalLine) -> Option<(&mut StackLines<'a>, u32)> {
        let (at, row) = record.sent.place.filter(|_| record.sender().is_some())?;
        if self.last.as_ref().is_none_or(|(last, _)| *last != at) {
            let (segment, limits) = (self.tape.segment(at), Limits::default());
            let lines = StackLines::read(&segment, self.names, limits, &mut self.findings);
            self.last = Some((at, lines));
        }
        self.last.as_mut().map(|(_, lines)| (lines, row))
    }
}
