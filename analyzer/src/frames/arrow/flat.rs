//! Messages of Arrow's IPC format as bytes: the few shapes of FlatBuffers that they need.
//!
//! A table of FlatBuffers has fields at places that its *vtable* lists, and points to what has no fixed size. Here a table is written
//! before what it points to: each pointer is a gap until its target has a place ([`FlatMessage::point`]).

/// A field of a table.
#[derive(Clone, Copy, Debug)]
pub(super) enum FlatField {
    /// Nothing: the field has its default.
    Absent,
    /// A byte: yes or no, or which of a union's types it is.
    Byte(u8),
    /// 16 bits.
    Short(i16),
    /// 32 bits.
    Int(i32),
    /// 64 bits.
    Long(i64),
    /// What stands elsewhere in the message.
    Pointer,
}

impl FlatField {
    fn size(self) -> usize {
        match self {
            Self::Absent => 0,
            Self::Byte(_) => 1,
            Self::Short(_) => 2,
            Self::Int(_) | Self::Pointer => 4,
            Self::Long(_) => 8,
        }
    }
}

/// A gap in a message for the place of what stands behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PointerGap(usize);

/// A message being made.
#[derive(Debug)]
pub(super) struct FlatMessage {
    bytes: Vec<u8>,
}

impl FlatMessage {
    /// Begins a message, and the gap for its outermost table.
    pub(super) fn new() -> (Self, PointerGap) {
        (Self { bytes: vec![0; 4] }, PointerGap(0))
    }

    /// The bytes of the message, a multiple of eight of them.
    pub(super) fn bytes(mut self) -> Vec<u8> {
        self.align(8, 0);
        self.bytes
    }

    /// Adds zeros until what stands `ahead` bytes further is at a multiple of `to`.
    fn align(&mut self, to: usize, ahead: usize) {
        let len = (self.bytes.len() + ahead).next_multiple_of(to) - ahead;
        self.bytes.resize(len, 0);
    }

    /// Lets `gap` point to what is written next.
    fn point(&mut self, gap: PointerGap) {
        let distance = (self.bytes.len() - gap.0) as u32;
        self.bytes[gap.0..gap.0 + 4].copy_from_slice(&distance.to_le_bytes());
    }

    /// Writes a table to which `gap` points; the gaps of its own pointers, in order.
    pub(super) fn table<const N: usize>(&mut self, gap: PointerGap, fields: &[FlatField]) -> [PointerGap; N] {
        // places in the table: behind the distance to its vtable, each at a multiple of its size
        let mut end = 4_usize;
        let places: Vec<usize> = fields
            .iter()
            .map(|field| match field.size() {
                0 => 0,
                size => {
                    let place = end.next_multiple_of(size);
                    end = place + size;
                    place
                }
            })
            .collect();
        let vtable = 4 + 2 * fields.len();
        self.align(8, vtable);
        for word in [vtable, end].into_iter().chain(places.iter().copied()) {
            self.bytes.extend_from_slice(&(word as u16).to_le_bytes());
        }
        self.point(gap);
        let table = self.bytes.len();
        self.bytes.extend_from_slice(&(vtable as i32).to_le_bytes());
        let mut gaps = Vec::with_capacity(N);
        for (field, place) in fields.iter().zip(places).filter(|(_, place)| *place > 0) {
            self.bytes.resize(table + place, 0);
            match field {
                FlatField::Absent => {}
                FlatField::Byte(value) => self.bytes.push(*value),
                FlatField::Short(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
                FlatField::Int(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
                FlatField::Long(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
                FlatField::Pointer => {
                    gaps.push(PointerGap(self.bytes.len()));
                    self.bytes.extend_from_slice(&[0; 4]);
                }
            }
        }
        debug_assert_eq!(gaps.len(), N, "a table has as many gaps as pointers");
        std::array::from_fn(|at| gaps[at])
    }

    /// Writes a text to which `gap` points.
    pub(super) fn text(&mut self, gap: PointerGap, text: &str) {
        self.align(4, 0);
        self.point(gap);
        self.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
    }

    /// Writes a list of `count` pointers, to which `gap` points; their gaps.
    pub(super) fn pointers(&mut self, gap: PointerGap, count: usize) -> Vec<PointerGap> {
        self.align(4, 0);
        self.point(gap);
        self.bytes.extend_from_slice(&(count as u32).to_le_bytes());
        let from = self.bytes.len();
        self.bytes.resize(from + 4 * count, 0);
        (0..count).map(|at| PointerGap(from + 4 * at)).collect()
    }

    /// Writes a list of structures of `N` numbers of 64 bits, to which `gap` points.
    pub(super) fn longs<const N: usize>(&mut self, gap: PointerGap, items: &[[i64; N]]) {
        self.align(8, 4);
        self.point(gap);
        self.bytes.extend_from_slice(&(items.len() as u32).to_le_bytes());
        for number in items.iter().flatten() {
            self.bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_its_fields_where_the_vtable_says() {
        let (mut message, root) = FlatMessage::new();
        let fields = [FlatField::Short(4), FlatField::Absent, FlatField::Pointer, FlatField::Long(-2)];
        let [text] = message.table(root, &fields);
        message.text(text, "abc");
        let bytes = message.bytes();
        let u16_at = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let table = u32_at(0);
        let vtable = table - u32_at(table);
        assert_eq!((u16_at(vtable), u16_at(vtable + 2)), (12, 24));
        let place = |field: usize| u16_at(vtable + 4 + 2 * field);
        assert_eq!([0, 1, 2, 3].map(place), [4, 0, 8, 16]);
        assert_eq!((table + place(3)) % 8, 0, "64 bits stand at a multiple of eight");
        assert_eq!(u16_at(table + place(0)), 4);
        let text = table + place(2) + u32_at(table + place(2));
        assert_eq!((u32_at(text), &bytes[text + 4..text + 8]), (3, &b"abc\0"[..]));
        assert_eq!(bytes.len() % 8, 0);
    }
}
