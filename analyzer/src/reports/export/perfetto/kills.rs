//! The signals of `analyze kills`: a moment on the sender's track and one on the target's, joined by a flow.

use systape_abi::signal_name;
use systape_format::model::Task;

use super::super::proto::perfetto::debug_annotation::Value;
use super::clocks::Boot;
use super::packets::Packets;
use super::slices::{Flow, SliceWriter};
use super::text;
use super::tracks::{ThreadTracks, Track};
use systape_answers::derive::signals::SignalLine;

/// Flows of different tapes differ.
fn flow(tape: u32, at: usize) -> u64 {
    1 << 60 | u64::from(tape) << 32 | at as u64
}

/// Writes `records`.
pub(super) fn write(
    packets: &mut Packets,
    slices: &mut SliceWriter,
    threads: &mut ThreadTracks,
    records: &[SignalLine],
    boot: &Boot,
) {
    let tape = packets.tape;
    for (at, record) in records.iter().enumerate() {
        let (event, target) = (&record.sent.event, &record.sent.target);
        let name = signal_name(event.sig);
        let taken = record.taken_at().or(record.outcome.end.map(|end| end.ts));
        let arrives = boot.at(taken.unwrap_or(event.ts).max(event.ts));
        let sender = record.sender().filter(|_| record.unseen.is_none());
        // when it was sent is not known of an imported log
        let from = sender.filter(|_| !record.sent.only_taken());
        let joined = |flow: fn(u64) -> Flow| if from.is_some() { flow(self::flow(tape, at)) } else { Flow::None };
        let whom = |task: &Task| Value::StringValue(format!("{}/{}", text(&task.comm), task.tid));
        if let Some(sender) = from {
            threads.tell(packets, sender);
            let arguments = vec![slices.argument("target", whom(target))];
            let place = (boot.at(event.ts), Track::Thread(sender.utid));
            slices.instant(packets, place, (&format!("sends {name}"), joined(Flow::Begins)), arguments);
        }
        threads.tell(packets, target);
        let mut arguments = Vec::new();
        if let Some(sender) = sender {
            arguments.push(slices.argument("sender", whom(sender)));
        }
        if let Some(end) = record.outcome.end {
            arguments.push(slices.argument("exit code", Value::UintValue(end.code.into())));
        }
        let place = (arrives, Track::Thread(target.utid));
        slices.instant(packets, place, (&name, joined(Flow::Ends)), arguments);
    }
}
