//! Connections as slices, one track each below that of all.

use super::super::proto::perfetto::debug_annotation::Value;
use super::clocks::Boot;
use super::packets::Packets;
use super::slices::SliceWriter;
use super::text;
use super::tracks::Track;
use systape_answers::derive::net::connection::{Connection, ConnectionBounds};
use systape_answers::derive::net::words::{endpoint, protocol_name};

/// Writes connections as they come.
#[derive(Debug, Default)]
pub(super) struct Connections {
    written: u32,
}

impl Connections {
    /// Writes `connection`: one that began before the recording begins with it, an open one has no end.
    pub(super) fn write(
        &mut self,
        packets: &mut Packets,
        slices: &mut SliceWriter,
        connection: &Connection,
        window: ConnectionBounds,
        boot: &Boot,
    ) {
        if self.written == 0 {
            Track::Connections.named(packets, None, "Connections");
        }
        let track = Track::Connection(self.written);
        self.written += 1;
        let (own, peer) =
            (endpoint(&connection.laddr, connection.lport), endpoint(&connection.raddr, connection.rport));
        let protocol = protocol_name(connection.protocol);
        track.named(packets, Some(Track::Connections), &protocol);
        let mut arguments = Vec::new();
        let mut add = |name: &str, value: Value| arguments.push(slices.argument(name, value));
        add("own end", Value::StringValue(own));
        add("direction", Value::StringValue(connection.direction.name().to_owned()));
        add("outcome", Value::StringValue(connection.outcome.name().to_owned()));
        if let Some(task) = &connection.task {
            add("thread", Value::StringValue(format!("{}/{}", text(&task.comm), task.tid)));
        }
        if let Some(moved) = connection.moved() {
            let at_least = if moved.at_least { " (at least)" } else { "" };
            add(&format!("bytes sent{at_least}"), Value::UintValue(moved.sent));
            add(&format!("bytes received{at_least}"), Value::UintValue(moved.received));
            add(&format!("segments sent again{at_least}"), Value::UintValue(moved.retrans));
        }
        if connection.start.is_none() {
            add("incomplete", Value::StringValue("began-before".to_owned()));
        }
        let start = connection.start.unwrap_or(window.open);
        slices.begin(packets, (boot.at(start), track), &peer, arguments);
        if let Some(end) = connection.end {
            slices.end(packets, boot.at(end), track);
        }
    }
}
