//! Frames between who answers and who asks: a kind, a length, and so many bytes.

use std::io::{self, Read, Write};

/// Most bytes of a frame: more are no answer of ours.
const LONGEST: u64 = 1 << 31;
/// Bytes that are read before more room is made.
const STEP: usize = 1 << 24;

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// The head of a table, as JSON: rows until the next head are its rows.
    Head = 1,
    /// Where the buffers of some rows are in the frame that follows.
    Layout = 2,
    /// Buffers of rows.
    Buffers = 3,
    /// The last frame, as JSON: what is lost, and what was said beside the answer.
    End = 4,
    /// The last frame: why there is no answer.
    Error = 5,
}

impl FrameKind {
    fn of(byte: u8) -> Option<Self> {
        [Self::Head, Self::Layout, Self::Buffers, Self::End, Self::Error].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// 64 bytes at a multiple of 64, so that buffers that begin at one are where programs like them.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Bytes of a frame.
#[derive(Debug, Default)]
pub(crate) struct AlignedBytes {
    lines: Vec<Line>,
    len: usize,
}

impl AlignedBytes {
    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes of the lines were made, and a line is 64 bytes without any between.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    /// Makes `len` bytes that are 0.
    pub(crate) fn zeroed(len: usize) -> Self {
        Self { lines: vec![Line([0; 64]); len.div_ceil(64)], len }
    }

    /// Makes a copy of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut all = Self::zeroed(bytes.len());
        all.bytes_mut().copy_from_slice(bytes);
        all
    }

    /// Makes the views that `of` has for `items`.
    pub(crate) fn of_views<T>(items: &[T], of: impl Fn(&T) -> [u8; 16]) -> Self {
        let mut lines = Vec::with_capacity(items.len().div_ceil(4));
        lines.extend(items.chunks(4).map(|items| {
            let mut line = Line([0; 64]);
            line.0.as_chunks_mut().0.iter_mut().zip(items).for_each(|(place, item)| *place = of(item));
            line
        }));
        Self { lines, len: 16 * items.len() }
    }

    /// The bytes, to be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and nobody else has the lines.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }

    /// Reads `len` bytes; room is made as they come.
    fn read(from: &mut dyn Read, len: usize) -> io::Result<Self> {
        let mut all = Self::default();
        while all.len < len {
            let end = len.min(all.len + STEP);
            all.lines.resize(end.div_ceil(64), Line([0; 64]));
            // SAFETY: as in `bytes`; the lines have room for `end` bytes, all of which were made.
            let room = unsafe { std::slice::from_raw_parts_mut(all.lines.as_mut_ptr().cast::<u8>(), end) };
            from.read_exact(&mut room[all.len..])?;
            all.len = end;
        }
        Ok(all)
    }
}

/// Writes a frame whose bytes are `parts`.
///
/// # Errors
/// It cannot be written: who asked has gone.
pub(crate) fn write(out: &mut dyn Write, kind: FrameKind, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&[kind as u8])?;
    out.write_all(&(bytes.len() as u64).to_le_bytes())?;
    out.write_all(bytes)
}

/// Reads the next frame.
///
/// # Errors
/// There is none, or it is too long.
pub(crate) fn read(from: &mut dyn Read) -> io::Result<(FrameKind, AlignedBytes)> {
    let (mut kind, mut len) = ([0; 1], [0; 8]);
    from.read_exact(&mut kind)?;
    from.read_exact(&mut len)?;
    let len = u64::from_le_bytes(len);
    match FrameKind::of(kind[0]) {
        Some(kind) if len <= LONGEST => Ok((kind, AlignedBytes::read(from, len as usize)?)),
        _ => Err(io::Error::other("the answer is none of systape's")),
    }
}

/// Numbers as bytes.
pub(crate) fn longs(numbers: impl IntoIterator<Item = i64>) -> Vec<u8> {
    numbers.into_iter().flat_map(i64::to_le_bytes).collect()
}

/// Bytes as numbers; a rest that is none is left out.
pub(crate) fn numbers(bytes: &[u8]) -> Vec<i64> {
    bytes.chunks_exact(8).map(|chunk| i64::from_le_bytes(chunk.try_into().unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_and_others_are_refused() {
        let mut bytes = Vec::new();
        write(&mut bytes, FrameKind::Head, b"{}").unwrap();
        write(&mut bytes, FrameKind::End, &[7; 100]).unwrap();
        let mut from = &bytes[..];
        let (kind, head) = read(&mut from).unwrap();
        assert_eq!((kind, head.bytes()), (FrameKind::Head, &b"{}"[..]));
        let (kind, end) = read(&mut from).unwrap();
        assert_eq!((kind, end.bytes(), end.bytes().as_ptr().addr() % 64), (FrameKind::End, &[7; 100][..], 0));
        assert!(read(&mut from).is_err());
        assert!(read(&mut &[9, 0, 0, 0, 0, 0, 0, 0, 0][..]).is_err());
        assert!(read(&mut &[1, 0, 0, 0, 0, 0, 0, 0, 0x7f][..]).is_err());
    }
}
