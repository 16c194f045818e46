//! Packets of a trace, each with its length before it, and the strings that packets of a sequence name by number.

use prost::Message as _;
use rustc_hash::FxHashMap;

use super::super::proto::perfetto::trace_packet::Data;
use super::super::proto::perfetto::{
    Callstack, DebugAnnotationName, EventCategory, EventName, Frame, InternedData, InternedString, Mapping,
    TracePacket, TracePacketDefaults,
};

/// Begins a packet in a trace: field 1, of a length.
const PACKET: u8 = 1 << 3 | 2;

/// Flag of a packet: interned data of its sequence begin anew.
const CLEARED: u32 = 1;
/// Flag of a packet: it needs the interned data before it.
const NEEDED: u32 = 2;

/// A sequence of packets, whose interned data are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sequence {
    /// Facts and other events.
    Whole = 1,
    /// Sequence of calls.
    Calls = 2,
    /// CPU samples.
    Samples = 3,
    /// Other events on tracks of our own.
    Slices = 4,
    /// Times off the CPU.
    OffCpu = 5,
}

/// Packets as bytes of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Packets {
    /// The tape that they are of: it makes numbers of tracks and flows the tape's own.
    pub tape: u32,
    /// The machine that they are of; 0: the trace's own.
    pub machine: u32,
    /// What was made so far.
    pub bytes: Vec<u8>,
}

impl Packets {
    /// Makes one without packets, of that tape and machine.
    pub(super) fn of(tape: u32, machine: u32) -> Self {
        Self { tape, machine, bytes: Vec::new() }
    }

    /// Adds one of sequence [`Sequence::Whole`]; `ts`: 0 = it has no time.
    pub(super) fn add(&mut self, ts: u64, data: Data) {
        self.push(TracePacket {
            timestamp: ts,
            trusted_packet_sequence_id: Sequence::Whole as u32,
            data: Some(data),
            ..TracePacket::default()
        });
    }

    /// Adds one that names strings of `interned`, with those that are new.
    pub(super) fn interned(&mut self, sequence: Sequence, interned: &mut Interned, ts: u64, data: Data) {
        self.with_defaults(sequence, interned, ts, (data, None));
    }

    /// Adds one as [`Self::interned`] does, with what packets of the sequence have in common from now on.
    pub(super) fn with_defaults(
        &mut self,
        sequence: Sequence,
        interned: &mut Interned,
        ts: u64,
        (data, defaults): (Data, Option<TracePacketDefaults>),
    ) {
        let flags = if std::mem::replace(&mut interned.begun, true) { NEEDED } else { CLEARED | NEEDED };
        self.push(TracePacket {
            timestamp: ts,
            trusted_packet_sequence_id: sequence as u32,
            sequence_flags: flags,
            interned_data: interned.fresh.take(),
            trace_packet_defaults: defaults,
            data: Some(data),
            ..TracePacket::default()
        });
    }

    fn push(&mut self, packet: TracePacket) {
        let packet = TracePacket { machine_id: self.machine, ..packet };
        self.bytes.push(PACKET);
        // only a buffer of fixed size can be full
        let _ = packet.encode_length_delimited(&mut self.bytes);
    }
}

/// Most bytes of a string that is kept: what is longer is seldom twice.
const LONGEST: usize = 512;

/// Strings of a sequence by number. Each segment begins anew, so that segments are made side by side.
#[derive(Debug, Default)]
pub(super) struct Interned {
    begun: bool,
    /// What no packet has yet.
    fresh: Option<InternedData>,
    categories: FxHashMap<&'static str, u64>,
    events: FxHashMap<String, u64>,
    names: FxHashMap<String, u64>,
    strings: FxHashMap<String, u64>,
    functions: FxHashMap<String, u64>,
    paths: FxHashMap<String, u64>,
    mappings: FxHashMap<String, u64>,
    frames: FxHashMap<(u64, u64, u64), u64>,
    stacks: FxHashMap<Vec<u64>, u64>,
}

/// The number of `key`, from 1, and whether it is new.
fn number<K: std::hash::Hash + Eq>(map: &mut FxHashMap<K, u64>, key: K) -> (u64, bool) {
    let next = map.len() as u64 + 1;
    let iid = *map.entry(key).or_insert(next);
    (iid, iid == next && map.len() as u64 == next)
}

/// The number of a string; one that is known costs no allocation.
fn of_text(map: &mut FxHashMap<String, u64>, text: &str) -> (u64, bool) {
    match map.get(text) {
        Some(iid) => (*iid, false),
        None => number(map, text.to_owned()),
    }
}

impl Interned {
    /// Whether a packet was written with it.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// The number of a category of events.
    pub(super) fn category(&mut self, name: &'static str) -> u64 {
        let (iid, new) = number(&mut self.categories, name);
        if new {
            self.fresh.get_or_insert_default().event_categories.push(EventCategory { iid, name: name.to_owned() });
        }
        iid
    }

    /// The number of an event's name.
    pub(super) fn event(&mut self, name: &str) -> u64 {
        let (iid, new) = of_text(&mut self.events, name);
        if new {
            self.fresh.get_or_insert_default().event_names.push(EventName { iid, name: name.to_owned() });
        }
        iid
    }

    /// The number of an argument's name.
    pub(super) fn name(&mut self, name: &str) -> u64 {
        let (iid, new) = of_text(&mut self.names, name);
        if new {
            let name = name.to_owned();
            self.fresh.get_or_insert_default().debug_annotation_names.push(DebugAnnotationName { iid, name });
        }
        iid
    }

    /// The number of an argument's text; None: it is written out.
    pub(super) fn text(&mut self, text: &str) -> Option<u64> {
        if text.len() > LONGEST {
            return None;
        }
        let (iid, new) = of_text(&mut self.strings, text);
        if new {
            let fresh = &mut self.fresh.get_or_insert_default().debug_annotation_string_values;
            fresh.push(InternedString { iid, str: text.as_bytes().to_vec() });
        }
        Some(iid)
    }

    /// The number of a function at an offset of a file.
    pub(super) fn frame(&mut self, function: &str, file: &str, rel_pc: u64) -> u64 {
        let (function_name_id, new) = of_text(&mut self.functions, function);
        if new {
            let fresh = &mut self.fresh.get_or_insert_default().function_names;
            fresh.push(InternedString { iid: function_name_id, str: function.as_bytes().to_vec() });
        }
        let mapping_id = self.mapping(file);
        let (iid, new) = number(&mut self.frames, (function_name_id, mapping_id, rel_pc));
        if new {
            let frame = Frame { iid, function_name_id, mapping_id, rel_pc };
            self.fresh.get_or_insert_default().frames.push(frame);
        }
        iid
    }

    fn mapping(&mut self, file: &str) -> u64 {
        let (path, new) = of_text(&mut self.paths, file);
        if new {
            let fresh = &mut self.fresh.get_or_insert_default().mapping_paths;
            fresh.push(InternedString { iid: path, str: file.as_bytes().to_vec() });
        }
        let (iid, new) = of_text(&mut self.mappings, file);
        if new {
            // where it was mapped is not stored: offsets are those of the file
            let mapping = Mapping { iid, end: i64::MAX as u64, path_string_ids: vec![path] };
            self.fresh.get_or_insert_default().mappings.push(mapping);
        }
        iid
    }

    /// The number of a stack, the outermost frame first.
    pub(super) fn stack(&mut self, frame_ids: Vec<u64>) -> u64 {
        let (iid, new) = number(&mut self.stacks, frame_ids.clone());
        if new {
            self.fresh.get_or_insert_default().callstacks.push(Callstack { iid, frame_ids });
        }
        iid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_has_one_number_and_is_written_once() {
        let mut interned = Interned::default();
        let numbers = ["a", "b", "a"].map(|text| interned.text(text));
        assert_eq!(numbers, [Some(1), Some(2), Some(1)]);
        assert_eq!(interned.text(&"x".repeat(LONGEST + 1)), None);
        let fresh = interned.fresh.take().unwrap().debug_annotation_string_values;
        assert_eq!(
            fresh.iter().map(|string| (string.iid, &*string.str)).collect::<Vec<_>>(),
            [(1, &b"a"[..]), (2, b"b")]
        );
        assert_eq!(interned.text("b"), Some(2));
        assert!(interned.fresh.is_none());
    }
}
