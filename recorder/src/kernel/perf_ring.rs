//! The ring of perf events: a page of positions, then a power of two of bytes, shared with the kernel.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;

use crate::machine::system::page_size;

/// Bytes of a record's header: u32 type, u16 misc, u16 size.
const HEADER: usize = 8;

/// A mapped ring, for one thread at a time.
#[derive(Debug)]
pub(crate) struct PerfRing {
    base: *mut u8,
    length: usize,
    data_offset: usize,
    data_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone and is valid in every thread; reading takes &mut.
unsafe impl Send for PerfRing {}

impl PerfRing {
    /// Maps the ring of a perf event; `bytes` is rounded up to a power of two of pages.
    ///
    /// # Errors
    /// Those of mmap(2): EPERM when more memory is locked than allowed.
    pub(crate) fn map(event: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        let page = page_size() as usize;
        let data_bytes = bytes.clamp(page, 1 << 30).next_power_of_two();
        let length = page + data_bytes;
        // SAFETY: a new mapping at an address the kernel chooses; event is an open descriptor.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: base.cast(), length, data_offset: page, data_bytes })
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: base is mapped for at least a page, offset is that of an aligned u64 in its perf_event_mmap_page, and
        // the kernel and we only touch it atomically.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
    }

    /// Passes every record to `record`, header included, and frees its room. Returns the number of bytes dropped
    /// because a record's header was invalid.
    pub(crate) fn drain(&mut self, scratch: &mut Vec<u8>, mut record: impl FnMut(&[u8])) -> u64 {
        let head = self.position(std::mem::offset_of!(perf_event_mmap_page, data_head)).load(Ordering::Acquire);
        let tail_at = std::mem::offset_of!(perf_event_mmap_page, data_tail);
        // only we write the tail
        let mut tail = self.position(tail_at).load(Ordering::Relaxed);
        let mut dropped = 0;
        while tail != head {
            let left = head.wrapping_sub(tail).min(self.data_bytes as u64) as usize;
            let size = if left < HEADER { 0 } else { self.copy(tail, HEADER, scratch).size() };
            if size < HEADER || size > left {
                // positions and records no longer agree: the next record is where the head is
                dropped = head.wrapping_sub(tail);
                tail = head;
                break;
            }
            record(self.copy(tail, size, scratch));
            tail = tail.wrapping_add(size as u64);
        }
        // the records were copied before the kernel may write over them
        self.position(tail_at).store(tail, Ordering::Release);
        dropped
    }

    /// `count` bytes from position `from` on, which may wrap around.
    fn copy<'a>(&self, from: u64, count: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let at = (from & (self.data_bytes as u64 - 1)) as usize;
        let first = count.min(self.data_bytes - at);
        scratch.clear();
        scratch.reserve(count);
        // SAFETY: at + first and count - first are within the data (count <= data_bytes by drain's check), which is mapped; the kernel
        // does not write between tail and head; scratch has room for count bytes, all of which are written.
        unsafe {
            let data = self.base.add(self.data_offset);
            ptr::copy_nonoverlapping(data.add(at), scratch.as_mut_ptr(), first);
            ptr::copy_nonoverlapping(data, scratch.as_mut_ptr().add(first), count - first);
            scratch.set_len(count);
        }
        scratch
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by map() with this length and nothing refers to it any more.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

/// A record's length, from its header.
trait Sized16 {
    fn size(&self) -> usize;
}

impl Sized16 for [u8] {
    fn size(&self) -> usize {
        self.get(6..8).and_then(|size| size.first_chunk()).map_or(0, |size| u16::from_le_bytes(*size).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring in ordinary memory, of one page of data.
    fn ring() -> PerfRing {
        let page = page_size() as usize;
        // SAFETY: a new private mapping.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                2 * page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        PerfRing { base: base.cast(), length: 2 * page, data_offset: page, data_bytes: page }
    }

    /// Imitates the kernel.
    fn write(ring: &PerfRing, record: &[u8]) {
        let head = ring.position(std::mem::offset_of!(perf_event_mmap_page, data_head));
        let at = head.load(Ordering::Relaxed) as usize;
        for (i, byte) in record.iter().enumerate() {
            // SAFETY: within the page of data.
            unsafe { *ring.base.add(ring.data_offset + (at + i) % ring.data_bytes) = *byte };
        }
        head.fetch_add(record.len() as u64, Ordering::Release);
    }

    fn record(kind: u32, length: usize) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend((length as u16).to_le_bytes());
        bytes.extend((HEADER..length).map(|i| i as u8));
        bytes
    }

    #[test]
    fn records_come_out_whole_where_they_wrap() {
        let mut ring = ring();
        let (mut scratch, mut seen) = (Vec::new(), 0u32);
        for kind in 0..1000u32 {
            // lengths without a common divisor with the page put headers and bodies across its end
            let length = HEADER + kind as usize % 301;
            write(&ring, &record(kind, length));
            let dropped = ring.drain(&mut scratch, |bytes| {
                assert_eq!(bytes, record(kind, length));
                seen += 1;
            });
            assert_eq!(dropped, 0);
        }
        assert_eq!(seen, 1000);
    }

    #[test]
    fn a_header_that_makes_no_sense_drops_the_rest() {
        for bad in [0u16, 7, 60_000] {
            let mut ring = ring();
            let mut seen = 0;
            write(&ring, &record(1, 24));
            let mut nonsense = record(2, 24);
            nonsense[6..8].copy_from_slice(&bad.to_le_bytes());
            write(&ring, &nonsense);
            assert_eq!(ring.drain(&mut Vec::new(), |_| seen += 1), 24);
            assert_eq!(seen, 1);
            // and it goes on behind it
            write(&ring, &record(3, 16));
            assert_eq!(ring.drain(&mut Vec::new(), |_| seen += 1), 0);
            assert_eq!(seen, 2);
        }
    }
}
