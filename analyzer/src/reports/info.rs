//! `analyze info`: contents, time and origin of a tape, and its losses. Reads headers, gap records, the ledger, clock
//! samples, stacks and names; no events.

mod ledger;
pub(crate) mod list;
mod stacks;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use anyhow::Result;
use serde_json::{Map, Value, json};
use systape_format::header::BlockKind;
use systape_format::model::{Family, Gap, GapCause, LeftOut, Session, shell_status};
use systape_format::reader::{BlockInfo, Tape};

use self::ledger::Ledger;
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Rows, View};
use systape_answers::derive::looks::walk::looks_of;
use systape_answers::derive::stacks::recorded::Inventory;
use systape_answers::render::cell::Cell;
use systape_answers::render::json;
use systape_answers::render::out::Out;
use systape_answers::render::row::Row;
use systape_answers::values::output::{self, line};
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::fired::{self, Fired, fired};
use systape_events::loss::{cause_text, family_name, finding_text, is_loss, miss_text, remedy, seconds};
use systape_events::values::clock::{self, Clock};

systape_format::tables! {
    /// One row; CSV has a line `name,value` for each column, `null` for what is not known.
    pub INFO = "info" {
        fired: Nested [Command] "`[{ts_ns, what, trigger, name, pid, tid, comm, began, events, suppressed}]`: the rows of `record:trigger`, what the tape was begun for first; null: it was not begun by `record --last`"
        kept.last_ns: Duration "past that `record` was asked to keep in memory; null: no time; `kept` null: the tape was written from the start"
        kept.ring_bytes: Bytes "memory that it was asked to keep it in"
        kept.full: Flag "the memory, not the time, decided how much there was"
        kept.before_ns: Duration "what there was: from the start of the tape to what it was begun for"
        complete: Flag "nothing is missing, as far as the gaps, the headers of blocks and the end mark say (`check` reads every block), but calls that are kept as totals only: they are in sums, not in listings"
        clean_end: Flag "the recording was ended, not cut off"
        end_reason: Word "why the recording ended; null: there is no end mark"
        events: Nested "stored events by kind, and rows of tables by the table's name (those of tracepoints and functions are in `tracepoint` too)"
        families: Nested "kinds of event that were captured; null: not known"
        imported: Word "the program that wrote the log that the tape was made of (`analyze import`): `strace`; null: it was recorded, or it is not known"
        lost: Nested "events by kind that are neither stored nor counted; 0: an unknown number"
        counted_only: Count "calls for which there was no room and that are counted instead: the sum of the `gaps` with `ledger` that are not of cause `filtered`"
        ledger.rows: Count "rows of calls that were counted instead of stored"
        ledger.calls: Count "the calls in them: the sum of the next four"
        ledger.lost_calls: Count "those for which a ring had no room"
        ledger.filtered_calls: Count "those that `record` was asked to count (`call_filters`)"
        ledger.over_share_calls: Count "those of processes that had filled their share of a ring"
        ledger.behind_calls: Count "those that came while `record` was behind and its memory full"
        ledger.unattributed_calls: Count "of all these, those of processes that are not known"
        gaps: Nested "`[{cause, family, count, ledger, remedy}]`: every cause, also those that lose no calls; `ledger`: sums hold them; `remedy`: what to do about it"
        findings: Nested "what is damaged, an array of sentences"
        duration_ns: Duration "from the start to the end of what is known; null: the start is not known"
        start_time: Word "when it was, RFC 3339, UTC; null: not known"
        end_time: Word "likewise"
        clock_step_ns: Duration "by how much the clock was set at most; negative: back"
        clock_samples: Count "clock samples: times of day beside CLOCK_MONOTONIC"
        command: Nested [Command] "command line of `record`, an array of strings; null: not known"
        target: Word [Command] "what was recorded, in words; null: not known"
        selection: Nested [Command] "its `-e`, an array of strings; null: not known"
        call_filters: Nested [Command] "options by which only some calls were stored, the others counted; null: not known"
        labels: Nested [Command] "labels of the tape (`record --label`), an array of `KEY=VALUE`; null: not known"
        env_keys: Nested [Command] "variables of the environment that it has of each process (`record --env`), an array of names; null: not known"
        redacted: Nested "classes of data that were taken out; null: not known"
        cut_from_ns: Time "of a tape cut out of a longer one the beginning of the time that reports are about; null: it is none, or not known"
        cut_to_ns: Time "the end of that time; null also: the end of the recording"
        left_out: Nested "`[{family, program, reason}]`: kinds of event that were asked for and that the kernel did not let be captured; `program`: the BPF program it refused (null: something else was missing); null: not known"
        hostname: Str [Host] "name of the machine; null: not known"
        boot_id: Word [Host] "id of its boot; null: not known"
        kernel: Word "release of its kernel; null: not known"
        kernel_version: Word "version of its kernel; null: not known"
        machine: Word "its architecture; null: not known"
        cpus: Count "its CPUs; null: not known"
        recorder: Word "version of `record`; null: not known"
        format: Word "version of the tape's format"
        tape_id: Word "id of the tape, hex"
        segments: Count "segments"
        chunks: Count "chunks: each can be read by itself"
        bytes: Nested "stored bytes by kind of block"
        file_bytes: Bytes "size of the file"
        ring_bytes: Bytes "size of the rings; null: not known"
        string_limit: Bytes "bytes that were captured of a string at most; null: not known"
        classes: Nested "classes of data in the tape that `redact` can take out"
        notes: Nested [Command] "what the recording could not do and why; null: not known"
        stacks.mode: Word "`none`, `fp` (frame pointers), `dwarf` (unwind information); `stacks` null: none were asked for"
        stacks.copy_limit: Bytes "bytes of a user stack that were copied at most"
        stacks.on: Nested "kinds of event that have them"
        stacks.kernel: Nested "kinds of event that have the kernel's part"
        stacks.frequency: Count "samples a second; 0: none"
        stacks.min_dur_ns: Duration "shorter calls have no stack"
        stacks.events: Nested "`{stacks, complete, status}` by kind, the last by `stack_status`"
        symbols.places: Count "places in code on any stack; `symbols` null: no stacks were asked for"
        symbols.named: Count "part of them that have a name"
        symbols.unnamed: Nested [Path] "`[{module, build_id, places, why}]`: files without names"
        command_exit: Int "status that `record` passed on (128 + N when signal N ended the command); null: none"
        own_calls: Count "calls of `record`, which are not recorded; null: not known"
        recorder_cpu_ns: Duration "its CPU time; null: not known"
        recorder_peak_rss: Bytes "its memory at most; null: not known"
    }
}

/// A family that was asked for and could not be recorded.
fn left_out(left: &LeftOut) -> Value {
    let program = (!left.program.is_empty()).then_some(&left.program);
    json!({"family": family_name(left.family), "program": program, "reason": left.reason})
}

/// All facts of `info`, before they are put into words.
#[derive(Debug)]
struct TapeFacts<'a> {
    tape: &'a Tape,
    clock: Clock,
    /// Events by kind.
    events: BTreeMap<Cow<'static, str>, u64>,
    /// Stored events in all, without rows of tables.
    stored: u64,
    /// Lost events by kind, except those in the ledger; a kind with an unknown number has 0.
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
    /// What the tape was begun for.
    fired: Vec<Fired>,
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "info",
    about: "What is in the tape, and what is missing",
    examples: [("analyze info t.tape", "in words"), ("analyze info --format json t.tape", "one object")],
    tables: &[Rows::of("info", &[All(&INFO)])],
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

/// Prints the facts about the tape.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let facts = TapeFacts::gather(tape);
    if out.is_text() {
        for text in facts.lines(config) {
            line(out, &text)?;
        }
    } else {
        out.facts(facts.row())?;
    }
    out.flush()?;
    Ok(Verdict { lost: !facts.complete(), bad: false })
}

impl<'a> TapeFacts<'a> {
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
                events.extend(end.events.iter().map(|(family, count)| (family_name(*family).into(), *count)));
                for (family, count) in &end.lost {
                    let known = lost.entry(family_name(*family)).or_default();
                    *known = (*known).max(count.saturating_sub(counted.get(family).copied().unwrap_or(0)));
                }
            }
            None => events = stored_events(tape),
        }
        let stored = events.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
        events.extend(rows_of_tables(tape, &mut unreadable));
        lost.retain(|family, count| {
            *count > 0
                || gaps.iter().any(|((cause, f, ledger), _)| is_loss(*cause) && !ledger && family_name(*f) == *family)
        });
        let until = tape.complete_until();
        let ledger = Ledger::read(tape, &mut unreadable);
        let mut stacks = Inventory::read(tape);
        if let Some(stacks) = &mut stacks {
            unreadable.append(&mut stacks.unreadable);
        }
        let clock = systape_events::question::clock(tape);
        unreadable.extend(without_header(tape, &blocks));
        for miss in tape.misses().tell() {
            if !unreadable.iter().any(|told| told.contains(&miss.why)) {
                unreadable.push(miss_text(&miss));
            }
        }
        Self {
            tape,
            clock,
            events,
            stored,
            lost,
            ledger,
            bytes,
            gaps,
            unread,
            unreadable,
            until,
            stacks,
            fired: fired(tape),
        }
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

    fn row(&self) -> Row<'_> {
        let session = self.tape.session();
        let time = |ts: u64| self.clock.real(ts).map(clock::rfc3339);
        let words = |list: &[Vec<u8>]| Value::from(list.iter().map(|word| json::bytes(word)).collect::<Vec<_>>());
        fn counts<K: AsRef<str>>(map: &BTreeMap<K, u64>) -> Value {
            map.iter()
                .map(|(kind, count)| (kind.as_ref().to_owned(), Value::from(*count)))
                .collect::<Map<_, _>>()
                .into()
        }
        let gap = |((cause, family, ledger), count): (&(GapCause, Family, bool), &u64)| {
            json!({
                "cause": cause.name(), "family": family_name(*family), "count": count, "ledger": ledger,
                "remedy": remedy(*cause, session),
            })
        };
        // what the session block says, if it is there
        let whole = self.tape.session_is_whole();
        fn said<'a>(whole: bool, cell: impl Into<Cell<'a>>) -> Cell<'a> {
            if whole { cell.into() } else { Cell::Null }
        }
        let end = self.tape.end();
        let (major, minor) = self.tape.version();
        let findings = self.tape.findings().iter().map(finding_text).chain(self.unreadable.iter().cloned());
        let mut row = Row::new(&INFO);
        self.kept(&mut row);
        row.set("complete", self.complete()).set("clean_end", end.is_some());
        row.set("end_reason", self.tape.end_mark().map(|end| end.reason.clone())).set("events", counts(&self.events));
        row.set("families", said(whole, json!(families::names(self.tape))));
        row.set("imported", Some(&*session.imported).filter(|program| whole && !program.is_empty()));
        row.set("lost", counts(&self.lost));
        row.set("counted_only", self.ledger.lost());
        self.ledger.fill(&mut row);
        row.set("gaps", Value::from(self.gaps.iter().map(gap).collect::<Vec<_>>()));
        row.set("findings", Value::from(findings.collect::<Vec<_>>()));
        row.set("duration_ns", said(whole, self.duration())).set("start_time", said(whole, time(session.window_open)));
        row.set("end_time", time(self.until)).set("clock_step_ns", self.clock.largest_step());
        row.set("clock_samples", self.clock.samples()).set("command", said(whole, words(&session.arguments)));
        row.set("target", said(whole, &*session.target)).set("selection", said(whole, words(&session.selection)));
        row.set("call_filters", said(whole, words(&session.call_filters)));
        row.set("labels", said(whole, words(&session.labels))).set("env_keys", said(whole, words(&session.env_keys)));
        row.set("redacted", said(whole, Value::from(taken_out(session))));
        let cut = |ts: u64| ts.wrapping_sub(session.window_open) as i64;
        row.set("cut_from_ns", session.cut.map(|window| cut(window.from)));
        row.set("cut_to_ns", session.cut.filter(|window| window.to < u64::MAX).map(|window| cut(window.to)));
        row.set("left_out", said(whole, session.left_out.iter().map(left_out).collect::<Value>()));
        row.set("hostname", said(whole, &session.hostname)).set("boot_id", said(whole, &*session.boot_id));
        row.set("kernel", said(whole, &*session.kernel_release));
        row.set("kernel_version", said(whole, &*session.kernel_version));
        let of_recorder = whole && session.imported.is_empty();
        row.set("machine", said(whole, &*session.machine)).set("cpus", said(of_recorder, session.cpus));
        row.set("recorder", said(whole, &*session.tool_version)).set("format", format!("{major}.{minor}"));
        row.set("tape_id", hex(&self.tape.tape_id())).set("segments", self.tape.segments().len());
        row.set("chunks", self.tape.checkpoints()).set("bytes", counts(&self.bytes));
        row.set("file_bytes", self.tape.len_bytes()).set("ring_bytes", said(of_recorder, session.ring_bytes));
        row.set("string_limit", said(of_recorder, session.string_limit)).set("classes", Value::from(self.classes()));
        row.set("notes", said(whole, words(&session.notes)));
        stacks::fill(&mut row, session, self.stacks.as_ref());
        row.set("command_exit", end.and_then(|end| shell_status(end.command_exit)));
        let recorded = end.filter(|_| session.imported.is_empty());
        row.set("own_calls", recorded.map(|end| end.own_calls));
        row.set("recorder_cpu_ns", recorded.map(|end| end.self_cpu_ns));
        row.set("recorder_peak_rss", recorded.map(|end| end.self_peak_rss));
        row
    }

    /// What the tape was begun for, and how much of the past there was.
    fn kept(&self, row: &mut Row<'_>) {
        let session = self.tape.session();
        let Some(kept) = session.kept else {
            row.set("fired", Cell::Null).absent("kept");
            return;
        };
        let since = |ts: u64| ts.wrapping_sub(session.window_open).cast_signed();
        let one = |fired: &Fired| {
            let task = fired.task.as_ref();
            json!({
                "ts_ns": since(fired.ts), "what": json::bytes(&fired.what), "trigger": json::bytes(&fired.trigger),
                "name": (!fired.name.is_empty()).then(|| json::bytes(&fired.name)),
                "pid": task.map(|task| task.pid), "tid": task.map(|task| task.tid),
                "comm": task.map(|task| json::bytes(&task.comm)),
                "began": fired.began, "events": fired.events, "suppressed": fired.suppressed,
            })
        };
        row.set("fired", Value::from(self.fired.iter().map(one).collect::<Vec<_>>()));
        row.set("kept_last_ns", (kept.last > 0).then_some(kept.last)).set("kept_ring_bytes", kept.ring_bytes);
        row.set("kept_full", kept.full).set("kept_before_ns", self.before());
    }

    /// Time from the start of the tape to what it was begun for; None: nothing is known of it, or the tape is a cut of that one.
    fn before(&self) -> Option<u64> {
        let whole = self.tape.session().cut.is_none();
        let first = self.fired.first().filter(|fired| fired.began && whole)?;
        Some(first.ts.saturating_sub(self.tape.session().window_open))
    }

    /// How much of the past was asked for, and how much there is.
    fn kept_text(&self) -> Option<String> {
        let session = self.tape.session();
        let (kept, before) = (session.kept?, self.before()?);
        let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
        let asked = if kept.last == 0 { "no time".to_owned() } else { seconds(kept.last) };
        let why = if kept.full {
            format!(": the ring of {} MiB was full", kept.ring_bytes >> 20)
        } else if session.window_open == kept.recording_open {
            ": the recording began then".to_owned()
        } else {
            String::new()
        };
        Some(format!("asked for {asked}, holds {} before it{why}", seconds(before)))
    }

    /// What a tape reveals about the machine and its users: the classes of redaction.
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
        lines.add("triggered", &fired::summary(&self.fired, session.window_open).unwrap_or_default());
        lines.add("past", &self.kept_text().unwrap_or_default());
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
        if let Some(cut) = session.cut {
            let (from, to) = (seconds(cut.from, session), seconds(cut.to.min(self.until), session));
            let text = format!("reports are about {from} to {to} s; events from outside of it are kept as context");
            lines.add("cut", &text);
        }
        lines.add("clock", &self.clock.text());
        self.session_lines(&mut lines);
        lines.add("families", &families::names(self.tape).join(", "));
        for left in &session.left_out {
            lines.add("", &format!("not {}: {}", family_name(left.family), left.why()));
        }
        lines.add("events", &counts(&self.events));
        let lost = match (self.lost.is_empty(), self.tape.end()) {
            (false, _) => lost_counts(&self.lost),
            (true, Some(_)) => "nothing".to_owned(),
            (true, None) if self.tape.is_being_written() => "not known: the tape is still being written".to_owned(),
            (true, None) => "not known: the recording ended abnormally".to_owned(),
        };
        if let Some(inventory) = &self.stacks {
            for (key, text) in stacks::lines(session, inventory) {
                lines.add(key, &text);
            }
        }
        if let Some(text) = families::in_session(session, Family::Look).then(|| looks_of(self.tape)).flatten() {
            lines.add("looks", &text);
        }
        let counted = match self.ledger.lost() {
            0 => String::new(),
            calls => format!("; {calls} calls as totals only"),
        };
        lines.add("lost", &format!("{lost}{counted}"));
        for ((cause, family, ledger), count) in &self.gaps {
            let counted = if *ledger { ", as totals only" } else { "" };
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
        if let Some(end) = self.tape.end().filter(|_| session.imported.is_empty()) {
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

    /// The session's facts about machine and recording; one line when that block is lost.
    fn session_lines(&self, lines: &mut Lines) {
        let session = self.tape.session();
        let (major, minor) = self.tape.version();
        if !self.tape.session_is_whole() {
            lines.add("recorded", "not known: the block that says it is damaged");
            lines.add("written by", &format!("format {major}.{minor}"));
            return;
        }
        if session.imported.is_empty() {
            lines.add("recorded", &printable(session.target.as_bytes()));
        } else {
            let from = printable(format!("{}, from {}", session.imported, session.target).as_bytes());
            lines.add("imported", &from);
            lines.add("", "not in such a log: CPUs, users, cgroups, scheduling, when signals were sent, block I/O, the kernel, and what strace's own -e left out");
        }
        lines.whole("command", &systape_events::values::words::shell(&session.arguments));
        lines.add("selection", &printable(&session.selection.join(&b' ')));
        if !session.call_filters.is_empty() {
            let filters = printable(&session.call_filters.join(&b' '));
            lines.add("stored", &format!("only some calls ({filters}); the others as totals only"));
        }
        for (what, words) in [("labels", &session.labels), ("variables", &session.env_keys)] {
            if !words.is_empty() {
                lines.whole(what, &printable(&words.join(&b' ')));
            }
        }
        lines.add("host", &printable(&session.hostname));
        let kernel = match session.imported.is_empty() {
            true => format!(
                "{} {} {}, {} CPUs",
                session.kernel_release, session.kernel_version, session.machine, session.cpus
            ),
            false => format!("not known; calls are those of {}", session.machine),
        };
        lines.add("kernel", &printable(kernel.as_bytes()));
        let program = if session.imported.is_empty() { "record" } else { "analyze" };
        let writer = format!("{program} {}, format {major}.{minor}", session.tool_version);
        lines.add("written by", &printable(writer.as_bytes()));
    }

    fn state(&self) -> String {
        match self.tape.end() {
            None => {
                let until = seconds(self.until, self.tape.session());
                let mark = self.tape.end_mark().map(|end| format!(" ({})", printable(end.reason.as_bytes())));
                match self.tape.is_being_written() {
                    true => format!("still being written, complete until {until} s"),
                    false => format!("ended abnormally, complete until {until} s{}", mark.unwrap_or_default()),
                }
            }
            Some(end) if self.complete() && self.ledger.lost() > 0 => format!(
                "complete in sums ({}), calls that were not stored are in totals, only listings lack them",
                printable(end.reason.as_bytes())
            ),
            Some(end) if self.complete() => format!("complete ({})", printable(end.reason.as_bytes())),
            Some(end) => format!(
                "ended cleanly ({}), events are missing: totals are lower bounds",
                printable(end.reason.as_bytes())
            ),
        }
    }
}

/// Blocks with an unreadable header that were written according to the index, or a block beside them.
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

/// Events by kind from the blocks' headers, for a tape without an end mark.
fn stored_events(tape: &Tape) -> BTreeMap<Cow<'static, str>, u64> {
    let mut events = BTreeMap::from([(family_name(Family::Syscall).into(), 0)]);
    for block in tape.blocks() {
        let Some(family) = block.kind.family() else { continue };
        *events.entry(family_name(family).into()).or_default() += u64::from(block.rows);
    }
    events
}

/// Rows of the tables that the tape defines, by their names.
fn rows_of_tables(tape: &Tape, unreadable: &mut Vec<String>) -> BTreeMap<Cow<'static, str>, u64> {
    let mut rows = BTreeMap::new();
    let segments = (0..tape.segments().len()).map(|at| tape.segment(at));
    for segment in segments.filter(|segment| segment.has(BlockKind::Tables)) {
        match segment.dict().and_then(|dict| segment.tables(&dict)) {
            Ok(tables) => {
                for table in tables {
                    *rows.entry(table.def.name.clone()).or_default() += table.ts.len() as u64;
                }
            }
            Err(error) => unreadable.push(format!("segment {}: {error}", segment.info().segment)),
        }
    }
    rows
}

/// The classes that were redacted.
fn taken_out(session: &Session) -> Vec<&'static str> {
    session.redacted.iter().map(|class| class.name()).collect()
}

/// `key        value` lines, folded at 100 columns.
#[derive(Debug, Default)]
struct Lines(Vec<String>);

/// Width of a key and the space behind it.
const KEY: usize = 12;

impl Lines {
    /// Adds `value` under `key` on one line, unescaped: for copying. Nothing for an empty value.
    fn whole(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            let fits = output::room().is_none_or(|room| KEY + value.chars().count() <= room);
            let value = if fits { value.into() } else { output::command(value) };
            self.0.push(format!("{key:<KEY$}{}{value}", output::hang()));
        }
    }

    /// Adds `value` under `key`; nothing for an empty value.
    fn add(&mut self, key: &str, value: &str) {
        let wide = output::room().map_or(100, |room| room.min(100));
        let mut line = format!("{key:<KEY$}{}", output::hang());
        let mut used = KEY;
        for word in value.split(' ').filter(|word| !word.is_empty()) {
            let width = word.chars().count();
            if used > KEY && used + 1 + width > wide {
                self.0.push(std::mem::replace(&mut line, format!("{:KEY$}{}", "", output::hang())));
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

fn counts<K: std::fmt::Display>(map: &BTreeMap<K, u64>) -> String {
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

/// Bytes as two digits each: ids.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
