//! `analyze info`: what a tape holds, of when and where, and what it lacks. Reads headers, gap records, the ledger, clock samples, stacks and
//! names; no events.

mod ledger;
mod stacks;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use anyhow::Result;
use serde_json::{Map, Value, json};
use systape_format::header::BlockKind;
use systape_format::model::{Family, Gap, GapCause, LeftOut, Session, shell_status};
use systape_format::reader::{BlockInfo, Tape};

use self::ledger::Ledger;
use crate::clock::{self, Clock};
use crate::config::Config;
use crate::families;
use crate::loss::{cause_name, cause_text, family_name, finding_text, is_loss, miss_text, remedy, seconds};
use crate::output::{self, line};
use crate::render::form::Format;
use crate::render::{csv, json};
use crate::say::Verdict;
use crate::stacks::recorded::Inventory;

/// A family that was asked for and could not be recorded.
fn left_out(left: &LeftOut) -> Value {
    let program = (!left.program.is_empty()).then_some(&left.program);
    json!({"family": family_name(left.family), "program": program, "reason": left.reason})
}

/// Everything `info` knows, before it is put into words.
#[derive(Debug)]
struct Facts<'a> {
    tape: &'a Tape,
    clock: Clock,
    /// Events by kind.
    events: BTreeMap<&'static str, u64>,
    /// Lost events by kind, those the ledger counts excepted; a kind whose number is not known has 0.
    lost: BTreeMap<&'static str, u64>,
    /// Stored bytes by kind of block, headers included.
    bytes: BTreeMap<&'static str, u64>,
    /// Calls that were counted instead of stored.
    ledger: Ledger,
    /// (cause, kind, the ledger counts them) → events; own traffic and missing strings too.
    gaps: BTreeMap<(GapCause, Family, bool), u64>,
    /// Processes that could not be read at the start.
    unread: BTreeSet<(Family, u32)>,
    /// Gap blocks that cannot be read.
    unreadable: Vec<String>,
    /// End of what is known.
    until: u64,
    /// Stacks and names; None = there are none.
    stacks: Option<Inventory>,
}

/// Prints what is known of the tape.
pub fn run(config: &Config, tape: &Tape) -> Result<Verdict> {
    let facts = Facts::gather(tape);
    let mut out = output::stdout()?;
    match config.format {
        Format::Text => {
            for text in facts.lines(config) {
                line(&mut out, &text)?;
            }
        }
        Format::Json => line(&mut out, &Value::Object(facts.json()).to_string())?,
        Format::Csv => {
            line(&mut out, "key,value")?;
            for (key, value) in facts.json() {
                let text = match value {
                    Value::Array(_) => printable(value.to_string().as_bytes()),
                    Value::Object(_) if json::raw(&value).is_none() => printable(value.to_string().as_bytes()),
                    Value::Null => "null".to_owned(),
                    value => csv::text(&value),
                };
                let mut fields = format!("{key},").into_bytes();
                csv::field(&mut fields, text.as_bytes());
                fields.push(b'\n');
                out.write_all(&fields)?;
            }
        }
    }
    out.flush()?;
    Ok(Verdict { lost: !facts.complete(), bad: false })
}

impl<'a> Facts<'a> {
    fn gather(tape: &'a Tape) -> Self {
        let mut bytes = BTreeMap::new();
        let blocks = tape.blocks();
        for block in &blocks {
            *bytes.entry(block.kind.name()).or_insert(0) +=
                u64::from(block.stored_len) + systape_format::reader::BLOCK_OVERHEAD;
        }
        let mut gaps: BTreeMap<(GapCause, Family, bool), u64> = BTreeMap::new();
        let mut unknown: Vec<Family> = Vec::new();
        let mut unread: BTreeSet<(Family, u32)> = BTreeSet::new();
        let mut unreadable = Vec::new();
        for at in (0..tape.segments().len()).filter(|at| tape.segment(*at).has(BlockKind::Gaps)) {
            match tape.segment(at).gaps() {
                Ok(found) => {
                    for Gap { cause, family, count, ledger, pid, .. } in found {
                        let sum: &mut u64 = gaps.entry((cause, family, ledger)).or_default();
                        *sum = sum.saturating_add(count);
                        if cause == GapCause::NotRead && pid != 0 {
                            unread.insert((family, pid));
                        }
                        if count == 0 && is_loss(cause) && !ledger {
                            unknown.push(family);
                        }
                    }
                }
                Err(error) => unreadable.push(error.to_string()),
            }
        }
        let mut lost: BTreeMap<&str, u64> = BTreeMap::new();
        // the end mark counts what is not stored, be it in the ledger
        let mut counted: BTreeMap<Family, u64> = BTreeMap::new();
        for ((_, family, ledger), count) in gaps.iter().filter(|((cause, ..), _)| is_loss(*cause)) {
            let sum = match ledger {
                true => counted.entry(*family).or_default(),
                false => lost.entry(family_name(*family)).or_default(),
            };
            *sum = sum.saturating_add(*count);
        }
        for family in unknown {
            lost.entry(family_name(family)).or_default();
        }
        let mut events = BTreeMap::new();
        match tape.end() {
            Some(end) => {
                events.extend(end.events.iter().map(|(family, count)| (family_name(*family), *count)));
                for (family, count) in &end.lost {
                    let known = lost.entry(family_name(*family)).or_default();
                    *known = (*known).max(count.saturating_sub(counted.get(family).copied().unwrap_or(0)));
                }
            }
            None => events = stored_events(tape),
        }
        lost.retain(|family, count| {
            *count > 0
                || gaps.iter().any(|((cause, f, ledger), _)| is_loss(*cause) && !ledger && family_name(*f) == *family)
        });
        let until = tape.end().map_or_else(|| tape.complete_until(), |end| end.window_close);
        let ledger = Ledger::read(tape, &mut unreadable);
        let mut stacks = Inventory::read(tape);
        if let Some(stacks) = &mut stacks {
            unreadable.append(&mut stacks.unreadable);
        }
        let clock = crate::question::clock(tape);
        unreadable.extend(without_header(tape, &blocks));
        for miss in tape.misses().tell() {
            if !unreadable.iter().any(|told| told.contains(&miss.why)) {
                unreadable.push(miss_text(&miss));
            }
        }
        Self { tape, clock, events, lost, ledger, bytes, gaps, unread, unreadable, until, stacks }
    }

    fn complete(&self) -> bool {
        self.tape.end().is_some()
            && self.lost.is_empty()
            && self.tape.findings().is_empty()
            && self.unreadable.is_empty()
    }

    /// The processes that could not be read, if that is the cause.
    fn unread(&self, cause: GapCause, family: Family) -> Vec<String> {
        let of = self.unread.iter().filter(|(of, _)| cause == GapCause::NotRead && *of == family);
        of.map(|(_, pid)| pid.to_string()).collect()
    }

    fn duration(&self) -> u64 {
        self.until.saturating_sub(self.tape.session().window_open)
    }

    fn json(&self) -> Map<String, Value> {
        let session = self.tape.session();
        let time = |ts: u64| self.clock.real(ts).map_or(Value::Null, |real| clock::rfc3339(real).into());
        let text = json::bytes;
        let words = |list: &[Vec<u8>]| Value::from(list.iter().map(|word| text(word)).collect::<Vec<_>>());
        let bytes: Map<String, Value> =
            self.bytes.iter().map(|(kind, count)| ((*kind).to_owned(), (*count).into())).collect();
        let gap = |((cause, family, ledger), count): (&(GapCause, Family, bool), &u64)| {
            json!({
                "cause": cause_name(*cause), "family": family_name(*family), "count": count, "ledger": ledger,
                "remedy": remedy(*cause, session),
            })
        };
        let end = self.tape.end();
        let (major, minor) = self.tape.version();
        let value = json!({
            "complete": self.complete(),
            "clean_end": end.is_some(),
            "end_reason": self.tape.end_mark().map(|end| end.reason.clone()),
            "events": self.events,
            "families": families::names(self.tape),
            "lost": self.lost,
            "counted_only": self.ledger.lost(),
            "ledger": self.ledger.json(),
            "gaps": self.gaps.iter().map(gap).collect::<Vec<_>>(),
            "findings": self.tape.findings().iter().map(finding_text).chain(self.unreadable.iter().cloned()).collect::<Vec<_>>(),
            "duration_ns": self.duration(),
            "start_time": time(session.window_open),
            "end_time": time(self.until),
            "clock_step_ns": self.clock.largest_step(),
            "clock_samples": self.clock.samples(),
            "command": words(&session.arguments),
            "target": session.target,
            "selection": words(&session.selection),
            "hostname": text(&session.hostname),
            "boot_id": session.boot_id,
            "kernel": session.kernel_release,
            "kernel_version": session.kernel_version,
            "machine": session.machine,
            "cpus": session.cpus,
            "recorder": session.tool_version,
            "format": format!("{major}.{minor}"),
            "tape_id": hex(&self.tape.tape_id()),
            "segments": self.tape.segments().len(),
            "chunks": self.tape.checkpoints(),
            "bytes": bytes,
            "file_bytes": self.tape.len_bytes(),
            "ring_bytes": session.ring_bytes,
            "string_limit": session.string_limit,
            "classes": self.classes(),
            "notes": words(&session.notes),
            "stacks": self.stacks.as_ref().map(|inventory| stacks::stacks_json(session, inventory)),
            "symbols": self.stacks.as_ref().map(stacks::symbols_json),
            "command_exit": end.and_then(|end| shell_status(end.command_exit)),
            "own_calls": end.map(|end| end.own_calls),
            "recorder_cpu_ns": end.map(|end| end.self_cpu_ns),
            "recorder_peak_rss": end.map(|end| end.self_peak_rss),
        });
        let mut object = match value {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        object.insert("call_filters".to_owned(), words(&session.call_filters));
        object.insert("redacted".to_owned(), taken_out(session).into());
        object.insert("left_out".to_owned(), session.left_out.iter().map(left_out).collect());
        if !self.tape.session_is_whole() {
            for key in OF_SESSION {
                object.insert(key.to_owned(), Value::Null);
            }
        }
        object
    }

    /// What a reader of the tape learns about the machine and its users: the classes redaction works by.
    fn classes(&self) -> Vec<&'static str> {
        let session = self.tape.session();
        let has = |kind: BlockKind| self.bytes.contains_key(kind.name());
        let any = |kinds: &[BlockKind]| kinds.iter().any(|kind| has(*kind));
        let present = [
            ("comm", has(BlockKind::Dict)),
            ("command", any(&[BlockKind::Processes, BlockKind::Signals]) || !session.arguments.is_empty()),
            (
                "path",
                any(&[
                    BlockKind::SyscallsFds,
                    BlockKind::SyscallsBytes,
                    BlockKind::Checkpoint,
                    BlockKind::Signals,
                    BlockKind::Stacks,
                    BlockKind::Symbols,
                ]),
            ),
            ("string", has(BlockKind::SyscallsBytes)),
            ("address", any(&[BlockKind::SyscallsArgs, BlockKind::Net, BlockKind::Signals])),
            ("host", !session.hostname.is_empty()),
            ("user", !session.users.is_empty()),
        ];
        let inside = |class: &str| !session.redacted.iter().any(|taken| taken.name() == class);
        present.into_iter().filter(|(class, present)| *present && inside(class)).map(|(class, _)| class).collect()
    }

    fn lines(&self, config: &Config) -> Vec<String> {
        let session = self.tape.session();
        let mut lines = Lines::default();
        lines.add("tape", &config.file.display().to_string());
        lines.add("state", &self.state());
        for finding in self.tape.findings() {
            lines.add("", &finding_text(finding));
        }
        for finding in &self.unreadable {
            lines.add("", finding);
        }
        let time = |ts: u64| {
            let real = self.clock.real(ts);
            let about =
                if real.is_some_and(|real| real.uncertain().is_some()) { " (±: the clock was set)" } else { "" };
            real.map_or_else(|| "not known".to_owned(), |real| format!("{}{about}", clock::rfc3339(real)))
        };
        lines.add("start", &time(session.window_open));
        lines.add("end", &format!("{} ({} s)", time(self.until), seconds(self.until, session)));
        lines.add("clock", &self.clock_text());
        self.session_lines(&mut lines);
        lines.add("families", &families::names(self.tape).join(", "));
        for left in &session.left_out {
            lines.add("", &format!("not {}: {}", family_name(left.family), left.why()));
        }
        lines.add("events", &counts(&self.events));
        let lost = match (self.lost.is_empty(), self.tape.end()) {
            (false, _) => lost_counts(&self.lost),
            (true, Some(_)) => "nothing".to_owned(),
            (true, None) => "not known: the recording ended abnormally".to_owned(),
        };
        if let Some(inventory) = &self.stacks {
            for (key, text) in stacks::lines(session, inventory) {
                lines.add(key, &text);
            }
        }
        let counted = match self.ledger.lost() {
            0 => String::new(),
            calls => format!("; {calls} calls counted only"),
        };
        lines.add("lost", &format!("{lost}{counted}"));
        for ((cause, family, ledger), count) in &self.gaps {
            let counted = if *ledger { ", counted in the ledger" } else { "" };
            let pids = self.unread(*cause, *family);
            let pids = if pids.is_empty() { String::new() } else { format!(" (pid {})", pids.join(", ")) };
            let what = format!("{count} {}: {}{counted}{pids}", family_name(*family), cause_text(*cause));
            let advice = if is_loss(*cause) { format!("; {}", remedy(*cause, session)) } else { String::new() };
            lines.add("", &format!("{what}{advice}"));
        }
        lines.add("ledger", &self.ledger.text());
        let chunks = self.tape.checkpoints();
        lines.add(
            "segments",
            &format!("{} in {chunks} chunk{}", self.tape.segments().len(), if chunks == 1 { "" } else { "s" }),
        );
        lines.add("bytes", &format!("{} in the file: {}", self.tape.len_bytes(), counts(&self.bytes)));
        lines.add("inside", &self.classes().join(", "));
        lines.add("taken out", &taken_out(session).join(", "));
        for note in &session.notes {
            lines.add("note", &printable(note));
        }
        if let Some(end) = self.tape.end() {
            let cpu = end.self_cpu_ns / 1_000_000;
            let own = format!(
                "{} calls (not recorded), {cpu} ms of CPU, {} MiB at most",
                end.own_calls,
                end.self_peak_rss >> 20
            );
            lines.add("recorder", &own);
        }
        lines.0
    }

    /// What the tape says of the machine and the recording; one line when that block is lost.
    fn session_lines(&self, lines: &mut Lines) {
        let session = self.tape.session();
        let (major, minor) = self.tape.version();
        if !self.tape.session_is_whole() {
            lines.add("recorded", "not known: the block that says it is damaged");
            lines.add("written by", &format!("format {major}.{minor}"));
            return;
        }
        lines.add("recorded", &printable(session.target.as_bytes()));
        lines.add("command", &printable(&session.arguments.join(&b' ')));
        lines.add("selection", &printable(&session.selection.join(&b' ')));
        if !session.call_filters.is_empty() {
            let filters = printable(&session.call_filters.join(&b' '));
            lines.add("stored", &format!("only some calls ({filters}); the ledger counts the others"));
        }
        lines.add("host", &printable(&session.hostname));
        let kernel =
            format!("{} {} {}, {} CPUs", session.kernel_release, session.kernel_version, session.machine, session.cpus);
        lines.add("kernel", &printable(kernel.as_bytes()));
        let writer = format!("record {}, format {major}.{minor}", session.tool_version);
        lines.add("written by", &printable(writer.as_bytes()));
    }

    fn state(&self) -> String {
        match self.tape.end() {
            None => {
                let until = seconds(self.until, self.tape.session());
                let mark = self.tape.end_mark().map(|end| format!(" ({})", printable(end.reason.as_bytes())));
                format!("ended abnormally, complete until {until} s{}", mark.unwrap_or_default())
            }
            Some(end) if self.complete() && self.ledger.lost() > 0 => format!(
                "complete in sums ({}), calls that were not stored are counted: only listings lack them",
                printable(end.reason.as_bytes())
            ),
            Some(end) if self.complete() => format!("complete ({})", printable(end.reason.as_bytes())),
            Some(end) => format!(
                "ended cleanly ({}), events are missing: totals are \"at least\"",
                printable(end.reason.as_bytes())
            ),
        }
    }

    fn clock_text(&self) -> String {
        let step = self.clock.largest_step();
        match self.clock.samples() {
            0 => "no sample: real times are not known".to_owned(),
            1 => "one sample of real time".to_owned(),
            count => format!(
                "{count} samples of real time, largest step {}{}.{:03} ms",
                if step <= -1000 { "-" } else { "" },
                step.unsigned_abs() / 1_000_000,
                step.unsigned_abs() / 1000 % 1000
            ),
        }
    }
}

/// Blocks whose header cannot be read although the index, or a block beside it, says that they were written.
fn without_header(tape: &Tape, blocks: &[BlockInfo]) -> Vec<String> {
    let here: BTreeSet<(Option<u32>, u16)> = blocks.iter().map(|block| (block.segment, block.kind.raw())).collect();
    let missing = |at: usize| {
        let segment = tape.segment(at);
        let number = segment.info().segment;
        let gone = BlockKind::of_segment().filter(|kind| segment.has(*kind));
        gone.filter(|kind| !here.contains(&(Some(number), kind.raw())))
            .map(|kind| format!("segment {number}: the header of its {} block cannot be read", kind.name()))
            .collect::<Vec<_>>()
    };
    (0..tape.segments().len()).flat_map(missing).collect()
}

/// Events by kind as the headers of blocks count them: what there is without an end mark.
fn stored_events(tape: &Tape) -> BTreeMap<&'static str, u64> {
    let mut events = BTreeMap::from([(family_name(Family::Syscall), 0)]);
    for block in tape.blocks() {
        let Some(family) = block.kind.family() else { continue };
        *events.entry(family_name(family)).or_default() += u64::from(block.rows);
    }
    events
}

/// The classes that were redacted.
fn taken_out(session: &Session) -> Vec<&'static str> {
    session.redacted.iter().map(|class| class.name()).collect()
}

/// What is null when the session block is lost.
const OF_SESSION: [&str; 19] = [
    "redacted",
    "duration_ns",
    "start_time",
    "command",
    "target",
    "selection",
    "call_filters",
    "hostname",
    "boot_id",
    "kernel",
    "kernel_version",
    "machine",
    "cpus",
    "recorder",
    "ring_bytes",
    "string_limit",
    "families",
    "left_out",
    "notes",
];

/// `key        value` lines, folded at 100 columns.
#[derive(Debug, Default)]
struct Lines(Vec<String>);

impl Lines {
    /// Adds `value` under `key`; nothing for an empty value.
    fn add(&mut self, key: &str, value: &str) {
        const KEY: usize = 12;
        const WIDTH: usize = 100;
        let mut line = format!("{key:<KEY$}");
        let mut used = KEY;
        for word in value.split(' ').filter(|word| !word.is_empty()) {
            let width = word.chars().count();
            if used > KEY && used + 1 + width > WIDTH {
                self.0.push(std::mem::replace(&mut line, " ".repeat(KEY)));
                used = KEY;
            } else if used > KEY {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += width;
        }
        if used > KEY {
            self.0.push(line);
        }
    }
}

fn counts(map: &BTreeMap<&'static str, u64>) -> String {
    map.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
}

fn lost_counts(map: &BTreeMap<&'static str, u64>) -> String {
    let text = |(kind, count): (&&str, &u64)| {
        if *count == 0 { format!("an unknown number of {kind}") } else { format!("{count} {kind}") }
    };
    map.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    systape_abi::escape(bytes, &mut text);
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
