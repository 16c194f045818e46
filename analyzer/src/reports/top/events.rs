//! `analyze top -e EVENTS`: which values of the fields of an event come most often, and what a number among them adds up to.

use anyhow::Result;
use systape_format::reader::Tape;

use super::fields::{Asked, DURATIONS, SeenEvent, Sums, Wanted, print};
use crate::asked::config::Config;
use crate::reports::Context;
use systape_answers::derive::block::devices::devices;
use systape_answers::derive::identities::FileNames;
use systape_answers::derive::summary::plan::Plan;
use systape_answers::lines::events::describe::{self, Event};
use systape_answers::lines::events::walk::Walk;
use systape_answers::render::out::Out;
use systape_answers::values::say::Verdict;
use systape_events::group::value::Value;
use systape_events::scan::Scan;

/// A field as a key.
fn value_of(value: &describe::Value<'_>) -> Value {
    let text = |text: &[u8]| Value::Text(text.into());
    match value {
        describe::Value::Number(number) => {
            u64::try_from(*number).map_or_else(|_| text(number.to_string().as_bytes()), Value::Number)
        }
        describe::Value::Wide(number) => Value::Number(*number),
        describe::Value::Hex(number) => text(format!("{number:#x}").as_bytes()),
        describe::Value::Bytes(bytes) => text(bytes),
        describe::Value::Word(word) => text(word.as_bytes()),
        describe::Value::Thread(task) => Value::Number(task.tid.into()),
        describe::Value::Unknown => Value::Unknown,
    }
}

/// A field as a number that is added up; None: it is none, or below 0.
fn number(value: &describe::Value<'_>) -> Option<u64> {
    match value {
        describe::Value::Number(number) => u64::try_from(*number).ok(),
        describe::Value::Wide(number) => Some(*number),
        _ => None,
    }
}

/// What of an event is asked for.
struct Read<'a> {
    wanted: &'a Wanted,
    plan: &'a Plan,
    value: Option<&'a str>,
    /// When the recording began.
    since: u64,
}

impl Read<'_> {
    fn event(&self, sums: &mut Sums, event: &Event<'_>, place: (u32, u32)) {
        event.fields.iter().for_each(|(name, _)| sums.has_field(name));
        let second = event.ts.checked_sub(self.since).and_then(|ns| u32::try_from(ns / 1_000_000_000).ok());
        let seen = SeenEvent { name: event.which.name(), task: event.task, cpu: event.cpu, second, place };
        let field = |name: &str| event.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value);
        let keys = self.wanted.fields.iter().map(|name| field(name).map_or(Value::None, value_of));
        let measured = match self.value {
            Some(name) => (field(name).and_then(number), None),
            None => {
                let found = DURATIONS.into_iter().find_map(|name| Some((field(name)?, name)));
                (found.and_then(|(value, _)| number(value)), found.map(|(_, name)| name))
            }
        };
        sums.add(&seen, keys, measured, self.plan);
    }
}

/// Prints the answer for `config`.
pub(super) fn answer(config: &Config, tape: &Tape, asked: &Asked<'_>, out: &mut Out) -> Result<Verdict> {
    let wanted = Wanted::new(&config.by);
    let session = tape.session();
    let plan = Plan::by(&wanted.by).naming(session);
    let mut context = Context::about(config, tape, &config.events.families())?;
    let devices = devices(tape);
    let question = &context.question;
    let named = if config.events.tables() { Some(FileNames::read(tape)) } else { None };
    let (files, unnamed) = named.map_or_else(Default::default, |(files, coverage)| (files, Some(coverage)));
    let walk = Walk { wanted: &config.events, scope: &question.scope, session, devices: &devices, files: &files };
    let read = Read { wanted: &wanted, plan: &plan, value: asked.value, since: session.window_open };
    let mut sums = Sums::of_all();
    let coverage = Scan::candidates(question).parts(
        |_, segment, coverage| {
            let mut part = Sums::default();
            let unread = segment.dict().map(|dict| {
                let mut place = (segment.info().segment, 0);
                walk.segment(segment, &dict, |event, _| {
                    read.event(&mut part, event, place);
                    place.1 += 1;
                })
            });
            match unread {
                Ok(unread) => unread.iter().for_each(|(what, error)| coverage.finding(segment, what, error)),
                Err(error) => coverage.finding(segment, "events", &error),
            }
            part
        },
        |part| {
            sums.merge(part);
        },
    );
    coverage.tell(&mut context.question.loss);
    unnamed.into_iter().for_each(|coverage| coverage.tell(&mut context.question.loss));
    print(&context, &wanted, asked, (sums, &plan), out)
}
