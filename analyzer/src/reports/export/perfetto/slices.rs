//! Events on tracks of our own of kinds of which there are few.

use super::super::proto::perfetto::debug_annotation::Value;
use super::super::proto::perfetto::trace_packet::Data;
use super::super::proto::perfetto::{DebugAnnotation, TrackEvent};
use super::packets::{Interned, Packets, Sequence};
use super::tracks::Track;

pub(super) const BEGIN: u32 = 1;
pub(super) const END: u32 = 2;
pub(super) const INSTANT: u32 = 3;
pub(super) const COUNTER: u32 = 4;

/// Writes events of kinds of which there are few, with their strings as a sequence of their own.
#[derive(Debug, Default)]
pub(super) struct SliceWriter {
    interned: Interned,
}

/// Which flow an event is part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Flow {
    /// Not part of a flow.
    #[default]
    None,
    /// The event begins this flow.
    Begins(u64),
    /// The event ends this flow.
    Ends(u64),
}

impl SliceWriter {
    /// An argument.
    pub(super) fn argument(&mut self, name: &str, value: Value) -> DebugAnnotation {
        DebugAnnotation { name_iid: self.interned.name(name), value: Some(value) }
    }

    /// A slice that begins.
    pub(super) fn begin(
        &mut self,
        packets: &mut Packets,
        (ts, track): (u64, Track),
        name: &str,
        arguments: Vec<DebugAnnotation>,
    ) {
        let name_iid = self.interned.event(name);
        let event = TrackEvent { r#type: BEGIN, name_iid, debug_annotations: arguments, ..TrackEvent::default() };
        self.add(packets, ts, track, event);
    }

    /// The slice that began last on `track` ends.
    pub(super) fn end(&mut self, packets: &mut Packets, ts: u64, track: Track) {
        self.add(packets, ts, track, TrackEvent { r#type: END, ..TrackEvent::default() });
    }

    /// A moment.
    pub(super) fn instant(
        &mut self,
        packets: &mut Packets,
        (ts, track): (u64, Track),
        (name, flow): (&str, Flow),
        arguments: Vec<DebugAnnotation>,
    ) {
        let mut event = TrackEvent {
            r#type: INSTANT,
            name_iid: self.interned.event(name),
            debug_annotations: arguments,
            ..TrackEvent::default()
        };
        match flow {
            Flow::None => {}
            Flow::Begins(id) => event.flow_ids.push(id),
            Flow::Ends(id) => event.terminating_flow_ids.push(id),
        }
        self.add(packets, ts, track, event);
    }

    /// A counter has this value from now on.
    pub(super) fn count(&mut self, packets: &mut Packets, ts: u64, track: Track, value: i64) {
        self.add(
            packets,
            ts,
            track,
            TrackEvent { r#type: COUNTER, counter_value: Some(value), ..TrackEvent::default() },
        );
    }

    fn add(&mut self, packets: &mut Packets, ts: u64, track: Track, mut event: TrackEvent) {
        event.track_uuid = track.uuid(packets.tape);
        packets.interned(Sequence::Slices, &mut self.interned, ts, Data::TrackEvent(event));
    }
}
