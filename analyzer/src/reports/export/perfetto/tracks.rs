//! The tracks that events of our own stand on.

use rustc_hash::FxHashSet;
use systape_format::model::Task;

use super::super::proto::perfetto::trace_packet::Data;
use super::super::proto::perfetto::{CounterDescriptor, ThreadDescriptor, TrackDescriptor};
use super::packets::Packets;
use super::text;

/// The number of a track. Numbers are a tape's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Track {
    /// A thread's own, by its number in the tape.
    Thread(u32),
    /// The one above all connections.
    Connections,
    /// A connection, by its place among them.
    Connection(u32),
    /// The one above the lanes of losses.
    Lost,
    /// Losses that do not overlap.
    LostLane(u32),
    /// The counter of calls that began.
    CallsBegun,
}

impl Track {
    /// Number of the track in the trace.
    pub(super) fn uuid(self, tape: u32) -> u64 {
        let (kind, number) = match self {
            Self::Thread(utid) => (1, utid),
            Self::Connections => (2, 0),
            Self::Connection(at) => (3, at),
            Self::Lost => (4, 0),
            Self::LostLane(lane) => (5, lane),
            Self::CallsBegun => (6, 0),
        };
        u64::from(tape) << 40 | kind << 32 | u64::from(number)
    }

    /// Says that it is, with a `name`, below `above`.
    pub(super) fn named(self, packets: &mut Packets, above: Option<Self>, name: &str) {
        let uuid = |track: Self| track.uuid(packets.tape);
        let (uuid, parent_uuid) = (uuid(self), above.map_or(0, uuid));
        let descriptor = TrackDescriptor { uuid, parent_uuid, name: name.to_owned(), ..TrackDescriptor::default() };
        packets.add(0, Data::TrackDescriptor(descriptor));
    }

    /// Says that it is a counter.
    pub(super) fn counted(self, packets: &mut Packets, name: &str, unit: &str) {
        let uuid = self.uuid(packets.tape);
        let counter = Some(CounterDescriptor { unit_name: unit.to_owned() });
        let descriptor = TrackDescriptor { uuid, name: name.to_owned(), counter, ..TrackDescriptor::default() };
        packets.add(0, Data::TrackDescriptor(descriptor));
    }
}

/// Threads whose tracks were told.
#[derive(Debug, Default)]
pub(super) struct ThreadTracks(FxHashSet<u32>);

impl ThreadTracks {
    /// Says that the thread of `task` has a track, once.
    pub(super) fn tell(&mut self, packets: &mut Packets, task: &Task) {
        if !self.0.insert(task.utid) {
            return;
        }
        let thread =
            ThreadDescriptor { pid: task.pid.cast_signed(), tid: i64::from(task.tid), thread_name: text(&task.comm) };
        let uuid = Track::Thread(task.utid).uuid(packets.tape);
        let descriptor = TrackDescriptor { uuid, thread: Some(thread), ..TrackDescriptor::default() };
        packets.add(0, Data::TrackDescriptor(descriptor));
    }
}
