//! The layout of `.eh_frame` and its search table, as bytes.

use crate::bytes::{i32_at, u32_at, u64_at};

/// Bytes of the file and the address it gives them.
#[derive(Debug, Default)]
pub(crate) struct LoadedBytes {
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Length of the entry at `offset` without its length field, and the offset of the next one; None at the end and when it exceeds the section.
pub(crate) fn entry_length(bytes: &[u8], offset: u64) -> Option<(u64, u64)> {
    let (length, field) = match u32_at(bytes, offset)? {
        0xffff_ffff => (u64_at(bytes, offset.checked_add(4)?)?, 12),
        length => (u64::from(length), 4),
    };
    let next = offset.checked_add(field)?.checked_add(length)?;
    (next <= bytes.len() as u64).then_some((length, next))
}

/// End of the list of entries: behind its entry of length 0, or before the first invalid one.
pub(crate) fn end_of_entries(bytes: &[u8]) -> usize {
    let mut offset = 0;
    while let Some((length, next)) = entry_length(bytes, offset) {
        offset = next;
        if length == 0 {
            break;
        }
    }
    offset as usize
}

/// The address of `.eh_frame` that an `.eh_frame_hdr` names.
pub(crate) fn eh_frame_address(hdr: &LoadedBytes) -> Option<u64> {
    // Version 1, then how the address is written: pcrel or absolute, 4 or 8 bytes.
    if *hdr.bytes.first()? != 1 {
        return None;
    }
    let encoding = *hdr.bytes.get(1)?;
    let value = match encoding & 0x0f {
        0x00 | 0x04 | 0x0c => u64_at(&hdr.bytes, 4)?,
        0x03 => u32_at(&hdr.bytes, 4)?.into(),
        0x0b => i64::from(i32_at(&hdr.bytes, 4)?) as u64,
        _ => return None,
    };
    match encoding & 0xf0 {
        0x00 => Some(value),
        0x10 => Some(value.wrapping_add(hdr.address).wrapping_add(4)),
        _ => None,
    }
}
