//! A line of JSON or CSV put together field by field; both have the same fields in the same order.

use serde_json::Value;
use systape_format::model::{Session, Task, UID_UNKNOWN};

use super::{csv, json};
use crate::clock::{self, Clock};

/// Fields of a task.
const TASK: [&str; 6] = ["pid", "tid", "upid", "utid", "comm", "uid"];

#[derive(Clone, Debug)]
enum Field {
    One(&'static str, Value),
    /// Only in JSON: not every line has it.
    Extra(&'static str, Value),
    /// An object, or null: in CSV a column each, named `group_key`.
    Group(&'static str, &'static [&'static str], Option<Vec<Value>>),
}

/// Fields of one line.
#[derive(Clone, Debug, Default)]
pub struct Record(Vec<Field>);

impl Record {
    /// Adds a field. None is null, empty in CSV.
    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) -> &mut Self {
        self.0.push(Field::One(name, value.into()));
        self
    }

    /// Adds `name`, the time of day at `ts`; null without one. Where it is not known, `time_uncertain_ns` too.
    pub fn time(&mut self, name: &'static str, ts: Option<u64>, times: &Times<'_>) -> &mut Self {
        let real = ts.and_then(|ts| times.clock.real(ts));
        self.set(name, real.map(clock::rfc3339));
        if let Some(ns) = real.and_then(clock::Real::uncertain) {
            self.0.push(Field::Extra("time_uncertain_ns", ns.into()));
        }
        self
    }

    /// Adds a number that may not fit 53 bits, as a string.
    pub fn wide(&mut self, name: &'static str, value: u64) -> &mut Self {
        self.set(name, value.to_string())
    }

    /// Adds bytes as [`json::bytes`] gives them.
    pub fn text(&mut self, name: &'static str, value: Option<&[u8]>) -> &mut Self {
        self.set(name, value.map(json::bytes))
    }

    /// Adds an object with `keys`, or null.
    pub fn group(
        &mut self,
        name: &'static str,
        keys: &'static [&'static str],
        values: Option<Vec<Value>>,
    ) -> &mut Self {
        self.0.push(Field::Group(name, keys, values));
        self
    }

    /// Adds who a task is as an object, or null.
    pub fn task(&mut self, name: &'static str, task: Option<&Task>) -> &mut Self {
        self.group(name, &TASK, task.map(|task| task_values(task).into()))
    }

    /// Adds who a task is as fields of the line itself, null without one.
    pub fn task_fields(&mut self, task: Option<&Task>) -> &mut Self {
        let values = task.map_or([const { Value::Null }; 6], task_values);
        for (name, value) in TASK.into_iter().zip(values) {
            self.set(name, value);
        }
        self
    }

    /// Appends the object and a newline.
    pub fn json(&self, out: &mut Vec<u8>) {
        let object = |out: &mut Vec<u8>, fields: &mut dyn Iterator<Item = (&str, &Value)>| {
            out.push(b'{');
            for (at, (name, value)) in fields.enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                json::string(out, name.as_bytes());
                out.push(b':');
                out.extend_from_slice(value.to_string().as_bytes());
            }
            out.push(b'}');
        };
        out.push(b'{');
        for (at, field) in self.0.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            let (Field::One(name, _) | Field::Extra(name, _) | Field::Group(name, ..)) = field;
            json::string(out, name.as_bytes());
            out.push(b':');
            match field {
                Field::One(_, value) | Field::Extra(_, value) => out.extend_from_slice(value.to_string().as_bytes()),
                Field::Group(_, _, None) => out.extend_from_slice(b"null"),
                Field::Group(_, keys, Some(values)) => object(out, &mut keys.iter().copied().zip(values)),
            }
        }
        out.extend_from_slice(b"}\n");
    }

    /// Appends the names of the columns and a newline.
    pub fn csv_header(&self, out: &mut Vec<u8>) {
        let mut names = Vec::new();
        for field in &self.0 {
            match field {
                Field::One(name, _) => names.push((*name).to_owned()),
                Field::Extra(..) => {}
                Field::Group(group, keys, _) => names.extend(keys.iter().map(|key| format!("{group}_{key}"))),
            }
        }
        out.extend_from_slice(names.join(",").as_bytes());
        out.push(b'\n');
    }

    /// Appends the values and a newline.
    pub fn csv(&self, out: &mut Vec<u8>) {
        let mut first = true;
        let mut one = |out: &mut Vec<u8>, value: &Value| {
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            csv::field(out, csv::text(value).as_bytes());
        };
        for field in &self.0 {
            match field {
                Field::One(_, value) => one(out, value),
                Field::Extra(..) => {}
                Field::Group(_, _, Some(values)) => values.iter().for_each(|value| one(out, value)),
                Field::Group(_, keys, None) => keys.iter().for_each(|_| one(out, &Value::Null)),
            }
        }
        out.push(b'\n');
    }
}

fn task_values(task: &Task) -> [Value; 6] {
    let unknown_is_null = |id: u32| if id == 0 { Value::Null } else { id.into() };
    let uid = if task.uid == UID_UNKNOWN { Value::Null } else { task.uid.into() };
    [
        task.pid.into(),
        task.tid.into(),
        unknown_is_null(task.upid),
        unknown_is_null(task.utid),
        json::bytes(&task.comm),
        uid,
    ]
}

/// Times of a tape as values.
#[derive(Clone, Debug)]
pub struct Times<'a> {
    /// The tape.
    pub session: &'a Session,
    /// Its clock.
    pub clock: Clock,
}

impl Times<'_> {
    /// ns since the tape's start.
    pub fn since(&self, ts: u64) -> Value {
        (ts.wrapping_sub(self.session.window_open) as i64).into()
    }

    /// As [`Self::since`]; null for 0, which stands for not known.
    pub fn since_known(&self, ts: u64) -> Value {
        if ts == 0 { Value::Null } else { self.since(ts) }
    }

    /// RFC 3339, see [`clock::rfc3339`]; null when the tape has no clock sample.
    pub fn real(&self, ts: u64) -> Value {
        self.clock.real(ts).map_or(Value::Null, |real| clock::rfc3339(real).into())
    }
}

/// `12.345678`: seconds since `base`, six decimals.
pub fn seconds(ts: u64, base: u64) -> String {
    let (sign, ns) = if ts < base { ("-", base - ts) } else { ("", ts - base) };
    let us = ns / 1000 + u64::from(ns % 1000 >= 500);
    format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// `1.250`: ms with three decimals; `-` for what is not known.
pub fn millis(ns: Option<u64>) -> String {
    ns.map_or_else(
        || "-".to_owned(),
        |ns| {
            let us = ns / 1000 + u64::from(ns % 1000 >= 500);
            format!("{}.{:03}", us / 1000, us % 1000)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_have_the_same_fields() {
        let mut record = Record::default();
        record.set("a", 1).wide("b", 2).text("c", Some(b"x,\n")).task("owner", None);
        record.group("flags", &["value", "text"], Some(vec![3.into(), "S".into()]));
        let text = |f: &dyn Fn(&Record, &mut Vec<u8>)| {
            let mut out = Vec::new();
            f(&record, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            text(&Record::json),
            "{\"a\":1,\"b\":\"2\",\"c\":\"x,\\n\",\"owner\":null,\"flags\":{\"value\":3,\"text\":\"S\"}}\n"
        );
        assert_eq!(
            text(&Record::csv_header),
            "a,b,c,owner_pid,owner_tid,owner_upid,owner_utid,owner_comm,owner_uid,flags_value,flags_text\n"
        );
        assert_eq!(text(&Record::csv), "1,2,\"x,\\n\",,,,,,,3,S\n");
    }

    #[test]
    fn times() {
        assert_eq!(seconds(3_000_001_600, 1_000_000_000), "2.000002");
        assert_eq!(seconds(5, 1_000_000_005), "-1.000000");
        assert_eq!((millis(Some(1_234_567)), millis(None)), ("1.235".into(), "-".into()));
    }
}
