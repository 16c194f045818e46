//! Records of a ring that need no order, such as stacks: each after its length.

use crate::rings::spare::Buffer;

/// Records of a ring, each after its length.
#[derive(Debug, Default)]
pub(crate) struct Records {
    bytes: Buffer,
}

impl Records {
    /// An empty one in a buffer, which must be empty.
    pub(crate) fn within(bytes: Buffer) -> Self {
        Self { bytes }
    }

    /// Adds a record. Ring records are far below 4 GiB.
    pub(crate) fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(&(record.len() as u32).to_ne_bytes());
        self.bytes.extend_from_slice(record);
    }

    /// Bytes that a record takes.
    pub(crate) fn bytes_of(record: &[u8]) -> usize {
        4 + record.len()
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no record.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The records, in the order in which they were added.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ranges().map(|(from, to)| &self.bytes[from..to])
    }

    /// The record at one of [`Self::ranges`].
    pub(crate) fn get(&self, (from, to): (usize, usize)) -> &[u8] {
        self.bytes.get(from..to).unwrap_or_default()
    }

    /// First byte of each record, and the byte after its last.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let len = self.bytes.get(at..at + 4)?.first_chunk::<4>().map(|b| u32::from_ne_bytes(*b))? as usize;
            let range = (at + 4, at + 4 + len);
            at = range.1;
            (range.1 <= self.bytes.len()).then_some(range)
        })
    }
}
