//! Numbers in little-endian bytes; None where there are none.

/// `length` bytes from `offset`.
pub(crate) fn at(bytes: &[u8], offset: u64, length: usize) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    bytes.get(start..start.checked_add(length)?)
}

pub(crate) fn u16_at(bytes: &[u8], offset: u64) -> Option<u16> {
    at(bytes, offset, 2)?.try_into().ok().map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], offset: u64) -> Option<u32> {
    at(bytes, offset, 4)?.try_into().ok().map(u32::from_le_bytes)
}

pub(crate) fn i32_at(bytes: &[u8], offset: u64) -> Option<i32> {
    at(bytes, offset, 4)?.try_into().ok().map(i32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], offset: u64) -> Option<u64> {
    at(bytes, offset, 8)?.try_into().ok().map(u64::from_le_bytes)
}
