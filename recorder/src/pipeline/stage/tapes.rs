//! The encoder's part of a flight recorder: when a tape begins and ends, and what only it has.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::Receiver;
use systape_bpf::wire::Snap;
use systape_format::model::{ClockSample, Task};
use systape_format::segment::SegmentData;

use super::{EncodeStage, StageOutput};
use crate::encode::TriggerRow;
use crate::flight::pilot::{Decision, Pilot};
use crate::flight::request::FlightCommand;
use crate::flight::settings::FlightSettings;
use crate::flight::status::{Fires, Status};
use crate::flight::step::{ChunkMark, Closing, Opening, Raw, Reply, Step, Sums};
use crate::options::args::Rotation;
use crate::own::clock;
use crate::triggers::Fire;

/// How often calls in flight are looked at, ns.
const LOOK_NS: u64 = 1_000_000_000;

/// What fired and waits until the events of its time are encoded.
#[derive(Debug)]
struct FiredTrigger {
    fire: Fire,
    task: Option<Arc<Task>>,
    name: Option<String>,
    reply: Option<Reply>,
}

/// A tape is about to end.
#[derive(Debug)]
struct EndingTape {
    /// Its end.
    ts: u64,
    /// When all tasks had been looked at.
    looked: u64,
    snaps: Vec<Snap>,
    reason: String,
}

/// Tapes of a flight recorder as the encoder's thread begins and ends them.
pub(super) struct Tapes {
    settings: FlightSettings,
    pilot: Pilot,
    commands: Receiver<FlightCommand>,
    status: Arc<Status>,
    waiting: Vec<FiredTrigger>,
    /// Rows of the tape that is being written, and who waits for it.
    rows: Vec<TriggerRow>,
    replies: Vec<Reply>,
    /// When the end of the tape was asked for, and why: it ends where the counts end that come next.
    asked: Option<(u64, String)>,
    ending: Option<EndingTape>,
    looked: u64,
    /// Of a rotation: beginning and size of the tape, None = there is none yet.
    rotated: Option<(u64, u64)>,
}

impl Tapes {
    /// Makes one of the options; `commands` come from other threads.
    pub(super) fn new(settings: FlightSettings, commands: Receiver<FlightCommand>, status: Arc<Status>) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let pilot = Pilot::new(ns(settings.after), ns(settings.cooldown), settings.triggers.len());
        Self {
            settings,
            pilot,
            commands,
            status,
            waiting: Vec::new(),
            rows: Vec::new(),
            replies: Vec::new(),
            asked: None,
            ending: None,
            looked: 0,
            rotated: None,
        }
    }

    /// Bytes and time (ns) of a chunk.
    pub(super) fn chunk(&self) -> (u64, u64) {
        (self.settings.chunk_bytes(), self.settings.chunk_time().as_nanos() as u64)
    }

    fn is_writing(&self) -> bool {
        self.pilot.is_writing() || self.rotated.is_some()
    }

    fn count(&self, trigger: usize, suppressed: bool) {
        if let Some(Fires { fired, suppressed: other, .. }) = self.status.now().triggers.get_mut(trigger) {
            *if suppressed { other } else { fired } += 1;
        }
    }

    fn text(&self, trigger: usize) -> String {
        self.settings.triggers.get(trigger).map_or_else(|| "request".to_owned(), |spec| spec.text.clone())
    }

    fn slug(&self, trigger: usize, name: Option<&String>) -> String {
        let of_request = || name.cloned().unwrap_or_else(|| "request".to_owned());
        self.settings.triggers.get(trigger).map_or_else(of_request, crate::triggers::TriggerSpec::slug)
    }

    fn row(&self, fired: &FiredTrigger, began: bool) -> TriggerRow {
        TriggerRow {
            ts: fired.fire.ts,
            task: fired.task.clone(),
            trigger: self.text(fired.fire.trigger),
            what: fired.fire.what.clone(),
            name: fired.name.clone(),
            value: fired.fire.value,
            began,
            events: 1,
            suppressed: 0,
        }
    }

    /// Rows of events that have none of their own.
    fn sums(&self, sums: Vec<(usize, u64, u64)>, suppressed: bool) -> Vec<TriggerRow> {
        let what = if suppressed { "more of them, before this tape" } else { "more of them" };
        let row = |(trigger, events, ts)| TriggerRow {
            ts,
            trigger: self.text(trigger),
            what: what.to_owned(),
            events,
            suppressed: if suppressed { events } else { 0 },
            ..TriggerRow::default()
        };
        sums.into_iter().map(row).collect()
    }

    /// What others asked for since the last time.
    fn hear(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            let (fire, name, reply) = match command {
                FlightCommand::Fire(fire) => (fire, None, None),
                FlightCommand::Request(name, reply) => {
                    let (trigger, ts) = (self.pilot.request(), clock::monotonic());
                    (Fire { trigger, ts, what: "asked for".to_owned(), value: 0 }, name, reply)
                }
            };
            self.waiting.push(FiredTrigger { fire, task: None, name, reply });
        }
    }

    /// Takes those of the time before `reached`, in order of time.
    fn due(&mut self, reached: u64) -> Vec<FiredTrigger> {
        let (mut due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|fired| fired.fire.ts < reached);
        self.waiting = later;
        due.sort_by_key(|fired| fired.fire.ts);
        due
    }
}

impl EncodeStage {
    /// The part of a pass: encodes what came before `watermark`, or, when a tape ends, what came before its end.
    /// Returns how far that is.
    pub(super) fn advance_tapes(&mut self, watermark: u64) -> u64 {
        let Some(tapes) = &mut self.tapes else {
            self.advance(watermark);
            return watermark;
        };
        tapes.hear();
        let mut reached = watermark;
        match tapes.ending.take() {
            Some(ending) if watermark > ending.looked => {
                self.advance(ending.ts);
                self.decide(ending.ts);
                self.end_tape(ending);
                self.advance(watermark);
            }
            Some(ending) => {
                reached = watermark.min(ending.ts);
                self.advance(reached);
                if let Some(tapes) = &mut self.tapes {
                    tapes.ending = Some(ending);
                }
            }
            None => {
                // what is counted until the end is not known yet
                reached = tapes.asked.as_ref().map_or(watermark, |(asked, _)| watermark.min(*asked));
                self.advance(reached);
            }
        }
        self.look_at_calls();
        self.decide(reached);
        self.begin_end(reached);
        reached
    }

    /// Looks at the calls in flight, when it is time and a trigger wants it.
    fn look_at_calls(&mut self) {
        let now = clock::monotonic();
        let Some(tapes) = &mut self.tapes else { return };
        if !self.assembler.wants_open_calls() || now.saturating_sub(tapes.looked) < LOOK_NS {
            return;
        }
        tapes.looked = now;
        // the next time may be better
        if let Ok(snaps) = self.walker.open_calls() {
            self.assembler.watch_open_calls(&snaps);
        }
    }

    /// Begins a tape for what fired before `reached`, or adds it to the one that is being written.
    fn decide(&mut self, reached: u64) {
        let fires = self.assembler.take_fired();
        let Some(tapes) = &mut self.tapes else { return };
        let of = |(fire, task)| FiredTrigger { fire, task, name: None, reply: None };
        tapes.waiting.extend(fires.into_iter().map(of));
        for mut fired in tapes.due(reached) {
            let Some(tapes) = &mut self.tapes else { return };
            if tapes.rotated.is_some() {
                // everything is written anyway
                drop(fired.reply.take().map(|reply| reply.send(Err("--rotate writes everything".to_owned()))));
                continue;
            }
            let decision = tapes.pilot.fire(fired.fire.trigger, fired.fire.ts);
            tapes.count(fired.fire.trigger, decision == Decision::Suppress);
            if decision != Decision::Suppress {
                tapes.replies.extend(fired.reply.take());
            }
            match decision {
                Decision::Begin => self.begin_tape(&fired, reached),
                Decision::Join => {
                    let row = tapes.row(&fired, false);
                    tapes.rows.push(row);
                }
                Decision::Count | Decision::Suppress => {}
            }
        }
    }

    fn begin_tape(&mut self, fired: &FiredTrigger, reached: u64) {
        let Some(tapes) = &mut self.tapes else { return };
        let mut rows = vec![tapes.row(fired, true)];
        let suppressed = tapes.pilot.take_suppressed();
        rows.extend(tapes.sums(suppressed, true));
        let slug = tapes.slug(fired.fire.trigger, fired.name.as_ref());
        self.open_tape(Opening { slug, what: fired.fire.what.clone() }, reached, &rows);
    }

    /// A tape begins: with what is kept, all of it until now.
    fn open_tape(&mut self, opening: Opening, reached: u64, rows: &[TriggerRow]) {
        self.assembler.close_segment(reached);
        self.send();
        let segment = self.assembler.trigger_rows(self.assembler.segment_start(), rows);
        self.step(Step::Open(opening, segment));
    }

    /// Begins the end of a tape that needs no more, and of one whose turn is over; begins the first of a rotation.
    fn begin_end(&mut self, reached: u64) {
        let written = self.progress.bytes();
        let Some(tapes) = &mut self.tapes else { return };
        if tapes.ending.is_some() {
            return;
        }
        if let Some((_, reason)) = tapes.asked.take_if(|(asked, _)| self.counted_until >= *asked) {
            // without it the calls in flight at its end are missing
            let snaps = self.walker.open_calls().unwrap_or_default();
            tapes.ending = Some(EndingTape { ts: self.counted_until, looked: clock::monotonic(), snaps, reason });
            return;
        }
        if tapes.asked.is_some() {
            return;
        }
        let reason = match (tapes.settings.rotation, tapes.rotated) {
            (Some(_), None) if self.chunk_begun => return self.open_rotated(reached),
            (Some(Rotation::Time(time)), Some((since, _)))
                if u128::from(reached.saturating_sub(since)) >= time.as_nanos() =>
            {
                "--rotate reached"
            }
            (Some(Rotation::Size(size)), Some((_, before))) if written.saturating_sub(before) >= size => {
                "--rotate reached"
            }
            (None, _) if tapes.pilot.is_due(reached) => "--after reached",
            _ => return,
        };
        tapes.asked = Some((clock::monotonic(), reason.to_owned()));
        self.count_now.store(true, Ordering::Release);
    }

    fn open_rotated(&mut self, reached: u64) {
        let written = self.progress.bytes();
        if let Some(tapes) = &mut self.tapes {
            tapes.rotated = Some((reached, written));
        }
        self.open_tape(Opening { slug: "rotated".into(), what: "a tape of the rotation".into() }, reached, &[]);
    }

    /// Ends the tape at the time of `ending`; everything before it is encoded. A rotation begins the next.
    fn end_tape(&mut self, ending: EndingTape) {
        let EndingTape { ts, looked, snaps, reason } = ending;
        self.assembler.close_segment(ts);
        self.send();
        let rows = self.last_rows();
        let tail = self.assembler.tail((ts, looked), &snaps, &rows);
        self.close_tape(ts, reason, -1, tail);
        if self.tapes.as_mut().is_some_and(|tapes| tapes.rotated.take().is_some()) {
            self.new_chunk(ts, &snaps);
            self.send();
            self.open_rotated(ts);
        }
    }

    fn last_rows(&mut self) -> Vec<TriggerRow> {
        let Some(tapes) = &mut self.tapes else { return Vec::new() };
        let more = tapes.pilot.end();
        let mut rows = std::mem::take(&mut tapes.rows);
        rows.extend(tapes.sums(more, false));
        rows
    }

    fn close_tape(&mut self, window_close: u64, reason: String, command_exit: i32, tail: Box<SegmentData>) {
        let sums = self.sums();
        let Some(tapes) = &mut self.tapes else { return };
        let replies = std::mem::take(&mut tapes.replies);
        let closing = Closing { window_close, sums, reason, command_exit, replies };
        self.step(Step::Close(Box::new(closing), tail));
    }

    /// The recording is over, and all of it was passed on: so are its tapes.
    pub(super) fn finish_tapes(&mut self) {
        self.decide(clock::monotonic());
        let Some(tapes) = &mut self.tapes else { return };
        if tapes.is_writing() {
            tapes.rotated = None;
            let rows = self.last_rows();
            let tail = self.assembler.trigger_rows(self.assembler.segment_start(), &rows);
            self.close_tape(self.encoded.window_close, "the recorder ended".to_owned(), -1, tail);
        }
        // who asks from now on hears that it ended
        self.tapes = None;
    }

    /// The chunk of `mark`'s time begins with the next piece.
    pub(super) fn mark(&mut self, ts: u64, clock: ClockSample) {
        if self.tapes.is_some() {
            let sums = self.sums();
            self.step(Step::Chunk(ChunkMark { ts, clock, sums }));
        }
    }

    /// What only a tape needs that begins with the chunk that begins now.
    pub(super) fn prologue(&mut self) {
        if self.tapes.is_some()
            && let Some(segment) = self.assembler.prologue()
        {
            self.step(Step::Prologue(segment));
        }
    }

    fn sums(&self) -> Sums {
        Sums {
            events: self.assembler.totals().by_family(),
            lost: self.encoded.lost.clone(),
            own_calls: self.encoded.own_calls,
        }
    }

    fn step(&mut self, step: Raw) {
        self.put(StageOutput::Step(step));
    }

    /// Passes on how many events there are.
    pub(super) fn tell_status(&self, reached: u64) {
        let Some(tapes) = &self.tapes else { return };
        let lost = self.encoded.lost.iter().map(|(_, count)| count).sum();
        let mut now = tapes.status.now();
        now.held.1 = reached;
        now.events = (self.assembler.totals().sum(), lost);
    }
}
