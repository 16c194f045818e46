//! Escalation (`record --sample --escalate`): when looks find that something is wrong, everything is recorded for a while.
//!
//! The full recording is another process's, into a tape of its own. It has loaded its programs and made its rings, and waits for a word
//! before it attaches the first ([`armed`]); [`launcher`] starts the next one when it has ended. [`watch`] says when something is wrong,
//! [`budget`] how often that may be followed. All of these processes are the recorder's own, and looks leave them out.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use budget::FullTime;
use conditions::Wrong;
pub use conditions::{WrongCondition, parse};
use watch::{FoundWrong, OpenWait, WrongWatch};

use crate::flight::outside::Outside;
use crate::triggers;

pub(crate) mod armed;
pub(crate) mod budget;
mod conditions;
pub mod launcher;
pub(crate) mod watch;

/// What was asked for.
#[derive(Clone, Debug)]
pub struct EscalationSettings {
    /// How long everything is recorded.
    pub length: Duration,
    /// Most part of all time that this may be, percent.
    pub percent: u32,
    /// What is wrong.
    pub conditions: Vec<WrongCondition>,
    /// Options of the full recordings, which are those of this one.
    pub options: Vec<OsString>,
}

/// Conditions when none is asked for: what people would call about.
pub const USUAL: [&str; 5] = ["stuck>1s", "d>1s", "stopped>1s", "throttled>70%", "crowd>50"];

/// What became of the full recording.
#[derive(Debug, PartialEq, Eq)]
enum FullState {
    /// It is being loaded.
    Loading,
    /// It waits for the word; the name of its tape.
    Ready(String),
    /// It was told, or records.
    Going,
    /// There is none any more.
    Gone,
}

/// A condition that was followed by a full recording.
#[derive(Clone, Debug)]
pub(crate) struct Escalated {
    /// What was wrong, and whose.
    pub fired: FoundWrong,
    /// Name of the tape.
    pub tape: String,
    /// When everything was recorded from on, of the monotonic clock.
    pub from: u64,
}

/// The part that the looking thread asks at each look.
#[derive(Debug)]
pub(crate) struct Escalator {
    watch: WrongWatch,
    /// What the kernel reports by itself.
    pressure: Outside,
    /// Conditions of that, as typed, by number.
    pressed: Vec<String>,
    budget: FullTime,
    state: FullState,
    socket: UnixStream,
    /// Words that have not come whole.
    heard: Vec<u8>,
    /// What the full recording was begun for, until it says since when it records.
    begun: Option<(FoundWrong, String)>,
}

impl Escalator {
    /// Begins at `now`; `socket` leads to the full recording.
    ///
    /// # Errors
    /// When the socket cannot be set up.
    pub(crate) fn new(settings: &EscalationSettings, socket: UnixStream, now: u64) -> Result<Self> {
        socket.set_nonblocking(true).context("cannot set up the way to the full recording")?;
        let pressed = settings.conditions.iter().filter(|condition| condition.wrong == Wrong::Pressure);
        let pressed: Vec<String> = pressed.map(|condition| condition.text.clone()).collect();
        let specs = pressed.iter().map(|text| triggers::parse(text).map_err(|why| anyhow!(why)));
        let pressure = Outside::open(&specs.collect::<Result<Vec<_>>>()?)?;
        Ok(Self {
            pressure,
            pressed,
            watch: WrongWatch::new(settings.conditions.clone(), now),
            budget: FullTime::new(now, settings.length.as_nanos() as u64, settings.percent),
            state: FullState::Loading,
            socket,
            heard: Vec::new(),
            begun: None,
        })
    }

    /// A look of the time `now` found these; returns what was followed by a full recording that has begun since the last look.
    pub(crate) fn look(&mut self, now: u64, waits: &[OpenWait<'_>]) -> Option<Escalated> {
        let escalated = self.hear();
        let may = self.budget.may(now);
        // what goes on beside a full recording is in it
        let takes = match self.state {
            FullState::Ready(_) => may,
            FullState::Going => true,
            FullState::Loading | FullState::Gone => false,
        };
        // the kernel reports it once, whoever can follow
        let pressed = self.pressure.wait(0).into_iter().next();
        let pressed = pressed.map(|(number, what)| FoundWrong {
            ts: now,
            condition: self.pressed[number].clone(),
            what,
            ..FoundWrong::default()
        });
        let fired = self.watch.look(now, waits, takes).or(pressed.filter(|_| takes));
        let FullState::Ready(tape) = &self.state else { return escalated };
        if let Some(fired) = fired {
            let tape = tape.clone();
            self.state = FullState::Going;
            let word = format!("{}{}\n", armed::GO, fired.line());
            if self.socket.write_all(word.as_bytes()).is_ok() {
                self.budget.spend();
                self.begun = Some((fired, tape));
            }
        }
        escalated
    }

    /// Reads what the full recording says.
    fn hear(&mut self) -> Option<Escalated> {
        if self.state == FullState::Gone {
            return None;
        }
        let mut bytes = [0; 4096];
        loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => {
                    self.state = FullState::Gone;
                    break;
                }
                Ok(n) => self.heard.extend_from_slice(&bytes[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let mut escalated = None;
        while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.heard.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            if let Some(tape) = line.strip_prefix(armed::READY) {
                self.state = FullState::Ready(tape.to_owned());
            } else if let Some(ts) = line.strip_prefix(armed::SINCE).and_then(|ts| ts.parse().ok()) {
                escalated = self.begun.take().map(|(fired, tape)| Escalated { fired, tape, from: ts });
            }
        }
        escalated
    }
}

/// Name of the tape of the full recording number `n` beside the tape `of`: `day.tape` has `day.full-1.tape`.
fn tape_name(of: &Path, n: u32) -> PathBuf {
    let stem = of.file_stem().unwrap_or_default().to_owned();
    let mut name = stem;
    name.push(format!(".full-{n}"));
    if let Some(extension) = of.extension() {
        name.push(".");
        name.push(extension);
    }
    of.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_bpf::wire::LookNote;

    fn settings(percent: u32) -> EscalationSettings {
        let conditions = vec![parse("d>1s").unwrap()];
        EscalationSettings { length: Duration::from_secs(30), percent, conditions, options: Vec::new() }
    }

    const S: u64 = 1_000_000_000;

    #[test]
    fn the_full_recording_is_told_once_and_says_since_when() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut escalator = Escalator::new(&settings(2), ours, 0).unwrap();
        let note = LookNote { state: b'D', ..LookNote::default() };
        let wait = |serial, lasted| OpenWait {
            serial,
            note: &note,
            file: None,
            connected: None,
            lock: None,
            owned: false,
            first: 0,
            lasted,
        };
        let told = |theirs: &mut UnixStream| {
            theirs.set_nonblocking(true).unwrap();
            let mut bytes = [0; 256];
            theirs.read(&mut bytes).map_or(String::new(), |n| String::from_utf8_lossy(&bytes[..n]).into_owned())
        };
        // nobody is ready
        assert!(escalator.look(10 * S, &[wait(1, 2 * S)]).is_none());
        assert_eq!(told(&mut theirs), "");
        theirs.write_all(b"ready day.full").unwrap();
        assert!(escalator.look(11 * S, &[wait(2, S / 2)]).is_none());
        theirs.write_all(b"-1.tape\n").unwrap();
        // what hung when nobody was ready still does
        assert!(escalator.look(12 * S, &[wait(1, 4 * S)]).is_none());
        assert!(told(&mut theirs).starts_with("go 12000000000\t"), "with what was found wrong");
        // another one, while it goes
        assert!(escalator.look(13 * S, &[wait(3, 2 * S)]).is_none());
        theirs.write_all(b"since 12345\n").unwrap();
        let escalated = escalator.look(14 * S, &[]).unwrap();
        assert_eq!((escalated.tape.as_str(), escalated.from, escalated.fired.ts), ("day.full-1.tape", 12345, 12 * S));
        assert_eq!(told(&mut theirs), "");
        // the next one is ready, but it would be too much of the time
        theirs.write_all(b"ready day.full-2.tape\n").unwrap();
        escalator.look(50 * S, &[wait(4, 2 * S)]);
        assert_eq!(told(&mut theirs), "");
        escalator.look(1600 * S, &[wait(5, 2 * S)]);
        assert!(told(&mut theirs).starts_with("go 1600000000000\t"));
        drop(theirs);
        assert!(escalator.look(1700 * S, &[wait(6, 2 * S)]).is_none());
        assert_eq!(escalator.state, FullState::Gone);
    }

    #[test]
    fn tapes_stand_beside_the_one_of_the_looks() {
        assert_eq!(tape_name(Path::new("/var/day.tape"), 3), Path::new("/var/day.full-3.tape"));
        assert_eq!(tape_name(Path::new("day"), 1), Path::new("day.full-1"));
    }
}
