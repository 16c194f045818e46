//! The schema of a table, as Arrow's messages have it.

use super::flat::FlatField::{Absent, Byte, Int, Pointer, Short};
use super::flat::{FlatMessage, PointerGap};
use crate::frames::{FrameField, Kind};

/// Digits of a [`Kind::Wide`].
const WIDE: i32 = 20;

/// Numbers of Arrow's types.
mod types {
    pub(super) const INT: u8 = 2;
    pub(super) const FLOATING_POINT: u8 = 3;
    pub(super) const UTF8: u8 = 5;
    pub(super) const BOOL: u8 = 6;
    pub(super) const DECIMAL: u8 = 7;
    pub(super) const TIMESTAMP: u8 = 10;
    pub(super) const STRUCT: u8 = 13;
    pub(super) const MAP: u8 = 17;
}

/// Facts beside a schema or behind a file: names and texts.
pub type ArrowFacts = [(&'static str, String)];

/// Writes the schema of `fields`, with `facts` about it.
pub(super) fn schema(message: &mut FlatMessage, gap: PointerGap, fields: &[&FrameField], facts: &ArrowFacts) {
    // little endian is 0, and the default
    let [list, about] = message.table(gap, &[Absent, Pointer, Pointer, Absent]);
    let gaps = message.pointers(list, fields.len());
    for (gap, column) in gaps.into_iter().zip(fields) {
        field(message, gap, &column.name, column.kind, true);
    }
    write_facts(message, about, facts);
}

/// Writes `facts` as a list of keys and values.
pub(super) fn write_facts(message: &mut FlatMessage, gap: PointerGap, facts: &ArrowFacts) {
    let gaps = message.pointers(gap, facts.len());
    for (gap, (name, text)) in gaps.into_iter().zip(facts) {
        let [key, value] = message.table(gap, &[Pointer, Pointer]);
        message.text(key, name);
        message.text(value, text);
    }
}

/// Begins a field of that type; gaps for its type and its children.
fn begin(message: &mut FlatMessage, gap: PointerGap, name: &str, nullable: bool, ty: u8) -> [PointerGap; 2] {
    let fields = [Pointer, Byte(u8::from(nullable)), Byte(ty), Pointer, Absent, Pointer];
    let [text, ty, children] = message.table(gap, &fields);
    message.text(text, name);
    [ty, children]
}

fn field(message: &mut FlatMessage, gap: PointerGap, name: &str, kind: Kind, nullable: bool) {
    let number = match kind {
        Kind::Int => types::INT,
        Kind::Wide => types::DECIMAL,
        Kind::Real => types::FLOATING_POINT,
        Kind::Flag => types::BOOL,
        Kind::Text => types::UTF8,
        Kind::Instant => types::TIMESTAMP,
        Kind::Map => types::MAP,
    };
    let [ty, children] = begin(message, gap, name, nullable, number);
    match kind {
        Kind::Int => message.table::<0>(ty, &[Int(64), Byte(1)]),
        Kind::Wide => message.table(ty, &[Int(WIDE), Absent, Int(128)]),
        // double precision
        Kind::Real => message.table(ty, &[Short(2)]),
        Kind::Flag | Kind::Text | Kind::Map => message.table(ty, &[]),
        Kind::Instant => {
            // microseconds
            let [zone] = message.table(ty, &[Short(2), Pointer]);
            message.text(zone, "UTC");
            []
        }
    };
    let parts = message.pointers(children, usize::from(kind == Kind::Map));
    for gap in parts {
        // one pair of each row's list
        let [ty, children] = begin(message, gap, "entries", false, types::STRUCT);
        message.table::<0>(ty, &[]);
        let pair = message.pointers(children, 2);
        field(message, pair[0], "key", Kind::Text, false);
        field(message, pair[1], "value", Kind::Text, true);
    }
}
