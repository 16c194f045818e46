//! The profile as JSON: the processed format of the Firefox Profiler, version 60, which newer ones upgrade when they load it.
//!
//! Times are milliseconds since the recording began. All threads share one list of strings and the tables of stacks. The crate
//! fxprof-processed-profile (0.8.1) writes version 55, but its weights are whole milliseconds, so most times off the CPU would be 0, its
//! stacks have neither inlined functions nor lines, and there is no place for what is missing.

use std::io::{Result, Write};

use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use systape_answers::derive::processes::{Process, Processes};
use systape_answers::derive::stacks::names::Names;
use systape_events::question::clock;
use systape_events::values::strings::NumberedStrings;
use systape_events::values::words::{escaped, shell};
use systape_format::model::Task;
use systape_format::reader::Tape;

use super::categories::Category;
use super::gathered::GatheredProfile;
use super::json::{JsonObject, millis, text};
use super::markers::{MarkerKind, MarkerRow, NOTHING};
use super::stacks::{StackTables, length};
use super::threads::{OffCpuWait, ProfiledThread, StackSample};

/// Version of the format.
const VERSION: u32 = 60;

/// Where a thread of the profile stands among the others.
#[derive(Clone, Copy, Debug)]
struct ThreadPlace {
    /// Number of the thread.
    number: usize,
    /// It is the one with its times off the CPU.
    away: bool,
}

/// A profile that is being written.
pub(super) struct ProfileWriter<'a> {
    tape: &'a Tape,
    profile: &'a GatheredProfile,
    processes: &'a Processes,
    /// Numbers of the profile's stacks in the tables.
    stacks: Vec<u32>,
    tables: StackTables<'a>,
    strings: NumberedStrings,
    /// Numbers of marker's names in `strings`, by those of their texts.
    names: FxHashMap<u32, u32>,
    /// Waits of each thread that has some, in order of time.
    waits: FxHashMap<u32, Vec<OffCpuWait>>,
}

impl<'a> ProfileWriter<'a> {
    /// A writer of `profile`, whose functions have the `names`.
    pub(super) fn new(
        tape: &'a Tape,
        profile: &'a GatheredProfile,
        (processes, names): (&'a Processes, &'a Names),
    ) -> Self {
        let mut strings = NumberedStrings::default();
        let mut tables = StackTables::new(&profile.stacked.forest, names);
        let stacks = profile.stacks.values().iter().map(|stack| tables.stack(stack, &mut strings)).collect();
        let mut waits: FxHashMap<u32, Vec<OffCpuWait>> = FxHashMap::default();
        profile.waits.iter().for_each(|wait| waits.entry(wait.thread).or_default().push(*wait));
        waits.values_mut().for_each(|waits| waits.sort_by_key(|wait| wait.ts));
        let mut names = FxHashMap::default();
        let markers = profile.threads.all.iter().flat_map(|thread| &thread.markers).chain(&profile.others);
        for marker in markers {
            names
                .entry(marker.name)
                .or_insert_with(|| strings.number(profile.texts.get(marker.name).unwrap_or_default()).0);
        }
        Self { tape, profile, processes, stacks, tables, strings, names, waits }
    }

    /// Writes it; `notes`: what is missing, as sentences.
    pub(super) fn write<W: Write>(&self, out: &mut W, notes: &[String]) -> Result<()> {
        let places = self.places();
        let mut profile = JsonObject::begin(out)?;
        profile.value("meta", &self.meta(notes))?;
        for empty in ["libs", "pages", "counters", "profilerOverhead"] {
            profile.same(empty, "null", 0)?;
        }
        let mut shared = profile.object("shared")?;
        self.tables.write(&mut shared)?;
        shared.list("stringArray", self.strings.iter(), text)?;
        shared.end()?;
        let ids = self.ids(&places);
        profile.list("threads", places.iter().map(Some).chain([None]), |out, place| match place {
            Some(place) => self.thread(out, *place, &ids),
            None => self.others(out),
        })?;
        profile.end()
    }

    fn meta(&self, notes: &[String]) -> Value {
        let (tape, session) = (self.tape, self.tape.session());
        let frequency = session.stacks.frequency;
        let began = clock(tape).real(session.window_open).map_or(0, |real| real.first);
        let ms = |ns: u64| ns as f64 / 1e6;
        let entry = |label: &str, value: String| json!({"label": label, "format": "string", "value": value});
        let mut extra = vec![json!({"label": "Recording", "entries": [
            entry("Target", session.target.clone()),
            entry("Recorded by", shell(&session.arguments)),
            entry("Version", session.tool_version.clone()),
            entry("Host", escaped(&session.hostname)),
            entry("Kernel", format!("{} {}", session.kernel_release, session.kernel_version)),
        ]})];
        if !notes.is_empty() {
            let notes: Vec<Value> = notes.iter().map(|note| entry("", note.clone())).collect();
            extra.push(json!({"label": "Missing", "entries": notes}));
        }
        json!({
            "product": "systape",
            "importedFrom": "systape",
            "arguments": shell(&session.arguments),
            "oscpu": format!("Linux {} {}", session.kernel_release, session.machine),
            "logicalCPUs": session.cpus,
            "startTime": began as f64 / 1e6,
            "startTimeAsClockMonotonicNanosecondsSinceBoot": session.window_open,
            "profilingStartTime": 0,
            "profilingEndTime": ms(tape.complete_until().saturating_sub(session.window_open)),
            "interval": if frequency == 0 { 1.0 } else { 1e3 / f64::from(frequency) },
            "stackwalk": u32::from(!self.tables.is_empty()),
            "debug": false,
            "processType": 0,
            "version": 31,
            "preprocessedProfileVersion": VERSION,
            "symbolicated": true,
            "symbolicationNotSupported": true,
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
            "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"},
            "extensions": {"length": 0, "baseURL": [], "id": [], "name": []},
            "categories": Category::list(),
            "markerSchema": MarkerKind::ALL.map(MarkerKind::schema),
            "extra": extra,
        })
    }

    /// The threads in which something happened, in the order of their processes' starts.
    fn places(&self) -> Vec<ThreadPlace> {
        let mut places = Vec::new();
        for (number, thread) in self.profile.threads.all.iter().enumerate() {
            if !thread.samples.is_empty() || !thread.markers.is_empty() {
                places.push(ThreadPlace { number, away: false });
            }
            if self.waits.contains_key(&(number as u32)) {
                places.push(ThreadPlace { number, away: true });
            }
        }
        places.sort_by_key(|place| {
            let task = &self.task(*place);
            let start = self.process(task).map_or(task.leader_start_ns, |process| process.start);
            (start, task.pid, task.upid, task.tid != task.pid, task.start_ns, task.tid, task.utid, place.away)
        });
        places
    }

    fn task(&self, place: ThreadPlace) -> &Task {
        &self.profile.threads.all[place.number].task
    }

    fn process(&self, task: &Task) -> Option<&Process> {
        self.processes.get(task)
    }

    /// Names of process and thread of each place: their numbers, `123.1` for the second with number 123.
    fn ids(&self, places: &[ThreadPlace]) -> FxHashMap<usize, (String, String)> {
        let (mut pids, mut tids) = (SeenNumbers::default(), SeenNumbers::default());
        let id = |place: &ThreadPlace| {
            let task = self.task(*place);
            (place.number, (pids.id(task.pid, task.upid), tids.id(task.tid, task.utid)))
        };
        places.iter().map(id).collect()
    }

    /// ns since the recording began; what began before began with it.
    fn since(&self, ts: u64) -> u64 {
        ts.saturating_sub(self.tape.session().window_open)
    }

    fn thread<W: Write>(
        &self,
        out: &mut W,
        place: ThreadPlace,
        ids: &FxHashMap<usize, (String, String)>,
    ) -> Result<()> {
        let thread: &ProfiledThread = &self.profile.threads.all[place.number];
        let task = &thread.task;
        let process = self.process(task);
        let leader = process.map(|process| &process.task.comm).filter(|comm| !comm.is_empty());
        let (pid, tid) = &ids[&place.number];
        let name = escaped(&task.comm);
        let ms = |ts: u64| json!(self.since(ts) as f64 / 1e6);
        let end = |ts: Option<u64>| ts.map_or(Value::Null, ms);
        let mut object = JsonObject::begin(out)?;
        let (name, tid) = match place.away {
            true => (format!("{name} (off CPU)"), format!("{tid} (off CPU)")),
            false => (name, tid.clone()),
        };
        self.head(
            &mut object,
            json!({
                "name": name,
                "isMainThread": task.tid == task.pid && !place.away,
                "processName": escaped(leader.unwrap_or(&task.comm)),
                "pid": pid,
                "tid": tid,
                "processStartupTime": ms(process.map_or(task.leader_start_ns, |process| process.start)),
                "processShutdownTime": end(process.and_then(Process::end).map(|end| end.ts)),
                "registerTime": ms(task.start_ns),
                "unregisterTime": end(self.profile.threads.end(task)),
            }),
        )?;
        let none = Vec::new();
        if place.away {
            let waits = self.waits.get(&(place.number as u32)).unwrap_or(&none);
            let samples = waits.iter().map(|wait| StackSample { ts: wait.ts, stack: wait.stack }).collect();
            self.samples(&mut object, samples, Some(waits))?;
            self.markers(&mut object, &[])?;
        } else {
            self.samples(&mut object, thread.samples.clone(), None)?;
            self.markers(&mut object, &thread.markers)?;
        }
        object.end()
    }

    /// What happened in no thread.
    fn others<W: Write>(&self, out: &mut W) -> Result<()> {
        let mut object = JsonObject::begin(out)?;
        let length = self.tape.complete_until().saturating_sub(self.tape.session().window_open);
        self.head(
            &mut object,
            json!({
                "name": "tape",
                "isMainThread": true,
                "processName": "tape",
                "pid": "tape",
                "tid": "tape",
                "processStartupTime": 0,
                "processShutdownTime": length as f64 / 1e6,
                "registerTime": 0,
                "unregisterTime": length as f64 / 1e6,
            }),
        )?;
        self.samples(&mut object, Vec::new(), None)?;
        self.markers(&mut object, &self.profile.others)?;
        object.end()
    }

    fn head<W: Write>(&self, object: &mut JsonObject<'_, W>, head: Value) -> Result<()> {
        for (key, value) in head.as_object().into_iter().flatten() {
            object.value(key, value)?;
        }
        object.value("processType", &"default".into())?;
        object.value("pausedRanges", &json!([]))?;
        object.value("showMarkersInTimeline", &true.into())
    }

    /// Samples with their stacks; `waits`: what each weighs, else all the same.
    fn samples<W: Write>(
        &self,
        object: &mut JsonObject<'_, W>,
        mut samples: Vec<StackSample>,
        waits: Option<&Vec<OffCpuWait>>,
    ) -> Result<()> {
        samples.sort_by_key(|sample| sample.ts);
        let mut table = object.object("samples")?;
        let stack = |sample: &StackSample| self.stacks.get(sample.stack as usize).copied();
        table.numbers("stack", samples.iter().map(stack))?;
        table.list("time", &samples, |out, sample| millis(out, self.since(sample.ts)))?;
        match waits {
            Some(waits) => {
                table.list("weight", waits, |out, wait| millis(out, wait.ns))?;
                table.value("weightType", &"tracing-ms".into())?;
            }
            None => {
                table.value("weight", &Value::Null)?;
                table.value("weightType", &"samples".into())?;
                // a sample stands for that much time on a CPU
                let period = 1_000_000_u32.checked_div(self.tape.session().stacks.frequency);
                table.numbers("threadCPUDelta", samples.iter().map(|_| period))?;
            }
        }
        length(table, samples.len())
    }

    fn markers<W: Write>(&self, object: &mut JsonObject<'_, W>, markers: &[MarkerRow]) -> Result<()> {
        let mut sorted: Vec<&MarkerRow> = markers.iter().collect();
        sorted.sort_by_key(|marker| marker.start);
        let mut table = object.object("markers")?;
        table.numbers("name", sorted.iter().map(|marker| self.names.get(&marker.name).copied()))?;
        table.list("startTime", &sorted, |out, marker| millis(out, self.since(marker.start)))?;
        table.list("endTime", &sorted, |out, marker| match marker.end {
            Some(end) => millis(out, self.since(end)),
            None => out.write_all(b"null"),
        })?;
        // 0: a moment, 1: from one time to another
        table.numbers("phase", sorted.iter().map(|marker| Some(marker.end.is_some().into())))?;
        table.numbers("category", sorted.iter().map(|marker| Some(Category::of(marker.kind).place())))?;
        table.list("data", &sorted, |out, marker| self.data(out, marker))?;
        length(table, sorted.len())
    }

    fn data<W: Write>(&self, out: &mut W, marker: &MarkerRow) -> Result<()> {
        write!(out, "{{\"type\":\"{}\"", marker.kind.name())?;
        for (value, field) in marker.fields.iter().zip(marker.kind.fields()).filter(|(value, _)| **value != NOTHING) {
            write!(out, ",\"{}\":", field.key)?;
            if field.is_number() {
                write!(out, "{value}")?;
            } else {
                text(out, self.profile.texts.get(*value).unwrap_or_default())?;
            }
        }
        if let Some(stack) = self.stacks.get(marker.stack as usize) {
            write!(out, ",\"cause\":{{\"time\":")?;
            millis(out, self.since(marker.start))?;
            write!(out, ",\"stack\":{stack}}}")?;
        }
        out.write_all(b"}")
    }
}

/// Numbers of processes or threads, which the kernel uses again.
#[derive(Debug, Default)]
struct SeenNumbers {
    /// How many have a number.
    counts: FxHashMap<u32, u32>,
    ids: FxHashMap<(u32, u32), String>,
}

impl SeenNumbers {
    /// What the one with `number`, which is `unique` in the tape, is called.
    fn id(&mut self, number: u32, unique: u32) -> String {
        let Self { counts, ids } = self;
        let id = ids.entry((number, unique)).or_insert_with(|| {
            let count = counts.entry(number).or_default();
            *count += 1;
            if *count == 1 { number.to_string() } else { format!("{number}.{}", *count - 1) }
        });
        id.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_used_again_is_another() {
        let mut seen = SeenNumbers::default();
        let ids = [(7, 1), (7, 2), (8, 3), (7, 1), (7, 4)].map(|(number, unique)| seen.id(number, unique));
        assert_eq!(ids, ["7", "7.1", "8", "7", "7.2"]);
    }
}
