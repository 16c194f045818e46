//! `analyze top -e EVENTS`: which values of the fields of an event come most often, and what a number among them adds up to.

use anyhow::Result;
use systape_format::reader::Tape;
use systape_format::table::Type;

use super::fields::{Asked, DURATIONS, SeenEvent, Sums, Wanted, print};
use crate::asked::config::Config;
use crate::reports::Context;
use systape_answers::catalogue::Event;
use systape_answers::catalogue::shape::ShapeField;
use systape_answers::derive::block::devices::devices;
use systape_answers::derive::identities::FileNames;
use systape_answers::derive::summary::plan::Plan;
use systape_answers::lines::events::walk::Walk;
use systape_answers::render::cell::Cell;
use systape_answers::render::out::Out;
use systape_answers::render::row::ShownTimes;
use systape_answers::values::say::Verdict;
use systape_events::group::value::Value;
use systape_events::scan::Scan;
use systape_events::values::clock::Clock;

/// A field as a key.
fn value_of(ty: Type, value: &Cell<'_>) -> Value {
    match value {
        Cell::Null | Cell::Absent => Value::Unknown,
        Cell::Text(text) => Value::Text((&**text).into()),
        Cell::Int(number) if ty != Type::Hex => {
            u64::try_from(*number).map_or_else(|_| Value::Text(number.to_string().as_bytes().into()), Value::Number)
        }
        _ => {
            let mut text = Vec::new();
            value.csv(ty, &mut text);
            Value::Text(text.into())
        }
    }
}

/// A field as a number that is added up; None: it is none, or below 0.
fn number(ty: Type, value: &Cell<'_>) -> Option<u64> {
    match value {
        Cell::Int(number) if !matches!(ty, Type::Hex | Type::Task) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// What of an event is asked for.
struct Read<'a> {
    wanted: &'a Wanted,
    plan: &'a Plan,
    value: Option<&'a str>,
}

impl Read<'_> {
    fn event(&self, sums: &mut Sums, event: &Event<'_>, place: (u32, u32)) {
        sums.has_shape(event.shape);
        let second = u64::try_from(event.since).ok().and_then(|ns| u32::try_from(ns / 1_000_000_000).ok());
        let seen = SeenEvent { name: &event.shape.event, task: event.task, cpu: event.cpu, second, place };
        let key = |(field, value): (&ShapeField, Cell<'_>)| value_of(field.ty, &value);
        let keys = self.wanted.fields.iter().map(|name| event.field(name).map_or(Value::None, key));
        let measure = |(field, value): (&ShapeField, Cell<'_>)| number(field.ty, &value);
        let measured = match self.value {
            Some(name) => (event.field(name).and_then(measure), None),
            None => {
                let found = DURATIONS.into_iter().find_map(|name| Some((event.field(name)?, name)));
                let name = found.as_ref().map(|(_, name)| *name);
                (found.and_then(|(field, _)| measure(field)), name)
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
    // no field is a time of day
    let times = ShownTimes { session, clock: Clock::default() };
    let walk = Walk { wanted: &config.events, scope: &question.scope, times: &times, devices: &devices, files: &files };
    let read = Read { wanted: &wanted, plan: &plan, value: asked.value };
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
