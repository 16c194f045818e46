//! Buffers that go round: whoever fills one takes it here, and when it is dropped it waits here for the next. Otherwise the
//! allocator finds, and the kernel zeroes, the same room again for each of them.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Buffers of one size that wait for their next use.
#[derive(Clone, Debug)]
pub(crate) struct Spare(Arc<Kept>);

#[derive(Debug)]
struct Kept {
    buffers: Mutex<Vec<Vec<u8>>>,
    room: usize,
    most: usize,
}

impl Spare {
    /// Makes a store of buffers with room for `room` bytes, of which at most `most` are kept.
    pub(crate) fn new(room: usize, most: usize) -> Self {
        Self(Arc::new(Kept { buffers: Mutex::default(), room, most }))
    }

    /// An empty buffer.
    pub(crate) fn take(&self) -> Buffer {
        let last = self.0.buffers().pop();
        Buffer { bytes: last.unwrap_or_else(|| Vec::with_capacity(self.0.room)), home: Some(Arc::clone(&self.0)) }
    }
}

impl Kept {
    fn buffers(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a buffer; not one of another size, which had to grow, nor one too many.
    fn give(&self, mut bytes: Vec<u8>) {
        bytes.clear();
        let mut buffers = self.buffers();
        if bytes.capacity() == self.room && buffers.len() < self.most {
            buffers.push(bytes);
        }
    }
}

/// Bytes whose room has another use after them. The default is one of no [`Spare`].
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    home: Option<Arc<Kept>>,
}

impl Buffer {
    /// An empty one of no [`Spare`].
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), home: None }
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            home.give(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_empty() {
        let spare = Spare::new(1000, 2);
        let mut first = spare.take();
        let place = first.as_ptr();
        first.extend([1; 1000]);
        drop(first);
        let again = spare.take();
        assert_eq!((again.as_ptr(), again.len(), again.capacity()), (place, 0, 1000));
    }

    #[test]
    fn only_some_are_kept_and_none_that_grew() {
        let spare = Spare::new(1000, 2);
        let mut all: Vec<_> = (0..4).map(|_| spare.take()).collect();
        all[0].extend([0; 1001]);
        drop(all);
        assert_eq!(spare.0.buffers().len(), 2);
        assert!(spare.take().capacity() == 1000 && spare.take().capacity() == 1000);
        drop(Buffer::default());
    }
}
