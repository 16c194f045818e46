//! The flight recorder (`--last`): what was recorded stays in memory, and a trigger writes it, with what follows for a
//! while, into a tape.
//!
//! The encoder's thread evaluates [`crate::triggers`] on records in order of time and decides when a tape begins and ends
//! ([`pilot`]). The writer's thread keeps the compressed pieces of the last chunks ([`ring`]). Each tape is written by a
//! thread of its own ([`dump`]) into the directory that was opened at the start ([`dir`]): a disk that stalls holds up
//! that tape and nothing else. Rotation (`--rotate`) is the same with nothing kept: one tape begins where the last ends.

pub(crate) mod dir;
pub(crate) mod dump;
pub(crate) mod names;
pub(crate) mod outside;
mod own;
mod peer;
pub(crate) mod piece;
pub(crate) mod pilot;
mod place;
pub(crate) mod request;
pub(crate) mod ring;
pub(crate) mod settings;
mod socket;
pub(crate) mod status;
pub(crate) mod step;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use crossbeam_channel::{Receiver, Sender, unbounded};
use indicatif::HumanBytes;

use crate::own::say::say;
use crate::triggers::{self, TriggerSpec};
use dir::Dir;
use outside::Outside;
use request::{FlightCommand, RequestServer};
use socket::BoundSocket;
use status::{Fires, Status};

pub(crate) use settings::FlightSettings;

/// Everything that needs rights, opened.
#[derive(Debug)]
pub(crate) struct Opened {
    settings: FlightSettings,
    dir: Arc<Dir>,
    outside: Outside,
    server: RequestServer,
}

/// A flight recorder that can begin.
#[derive(Debug)]
pub(crate) struct PreparedFlight {
    /// What was asked for.
    pub settings: FlightSettings,
    /// Where tapes go.
    pub dir: Arc<Dir>,
    /// What other threads ask for.
    pub commands: Receiver<FlightCommand>,
    /// Numbers of the flight recorder.
    pub status: Arc<Status>,
}

/// The main thread's part.
#[derive(Debug)]
pub(crate) struct FlightControl {
    commands: Sender<FlightCommand>,
    stop: Arc<AtomicBool>,
    status: Arc<Status>,
    /// The socket is there as long as this.
    _socket: BoundSocket,
}

/// Opens the directory, the socket in it, and what triggers wait for. No other thread may be running.
///
/// # Errors
/// When one of them is missing.
pub(crate) fn open(settings: &FlightSettings, host: &[u8]) -> Result<Opened> {
    let dir = Arc::new(Dir::open(&settings.dir, host, settings.limits)?);
    // what is made now could not be removed later
    dir.check()?;
    let outside = Outside::open(&settings.triggers)?;
    let server = RequestServer::bind(&dir)?;
    Ok(Opened { settings: settings.clone(), dir, outside, server })
}

impl Opened {
    /// Begins to listen, with the rights that are left. The recording begins at `since`.
    ///
    /// # Errors
    /// When there are no threads.
    pub(crate) fn begin(self, since: u64) -> Result<(PreparedFlight, FlightControl)> {
        let Self { settings, dir, outside, server } = self;
        dir.tell_of_others();
        let (out, commands) = unbounded();
        let (stop, status) = (Arc::new(AtomicBool::new(false)), Arc::new(Status::default()));
        {
            let mut now = status.now();
            now.since = since;
            now.last_ns = if settings.bounds.last == u64::MAX { 0 } else { settings.bounds.last };
            now.ring_bytes = settings.bounds.bytes;
            let fires = |spec: &TriggerSpec| Fires { on: spec.text.clone(), ..Fires::default() };
            now.triggers = settings.triggers.iter().map(fires).collect();
        }
        outside.start(out.clone(), Arc::clone(&stop))?;
        let socket = server.start(out.clone(), Arc::clone(&status), Arc::clone(&stop))?;
        let control = FlightControl { commands: out, stop, status: Arc::clone(&status), _socket: socket };
        Ok((PreparedFlight { settings, dir, commands, status }, control))
    }
}

impl FlightControl {
    /// Asks for a tape that nobody waits for.
    pub(crate) fn request(&self) {
        // the recording may just have ended
        self.commands.send(FlightCommand::Request(None, None)).ok();
    }

    /// Numbers of the flight recorder, which other threads change.
    pub(crate) fn status(&self) -> Arc<Status> {
        Arc::clone(&self.status)
    }

    /// Tapes that were written, and that could not be.
    pub(crate) fn tapes(&self) -> (u64, u64) {
        let now = self.status.now();
        (now.tapes, now.failed)
    }
}

impl Drop for FlightControl {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Prints what is kept in memory, and where tapes go.
pub(crate) fn announce(settings: &FlightSettings, rings: u64) {
    let dir = settings.dir.display();
    if settings.rotation.is_some() {
        return say(format_args!("tapes -> {dir}"));
    }
    let last = match settings.bounds.last {
        u64::MAX => "as much as fits".to_owned(),
        ns => format!("the last {}", triggers::time(ns)),
    };
    let ring = settings.bounds.bytes;
    say(format_args!(
        "keeps {last} in at most {} of memory, as much again while a slow disk takes a tape, and {} of rings; tapes -> {dir}",
        HumanBytes(ring),
        HumanBytes(rings),
    ));
}
