//! Buffers that go round: whoever fills one takes it here, and whoever has read it gives it back. Otherwise the allocator finds,
//! and the kernel zeroes, the same room again for each of them.

use std::sync::{Mutex, PoisonError};

/// Buffers of one size that wait for their next use.
#[derive(Debug)]
pub(crate) struct Spare {
    buffers: Mutex<Vec<Vec<u8>>>,
    room: usize,
    most: usize,
}

impl Spare {
    /// Of buffers with room for `room` bytes, of which at most `most` are kept.
    pub(crate) fn new(room: usize, most: usize) -> Self {
        Self { buffers: Mutex::default(), room, most }
    }

    /// An empty buffer.
    pub(crate) fn take(&self) -> Vec<u8> {
        let last = self.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        last.unwrap_or_else(|| Vec::with_capacity(self.room))
    }

    /// Keeps a buffer; not one of another size, which had to grow, nor one too many.
    pub(crate) fn give(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.capacity() == self.room && buffers.len() < self.most {
            buffers.push(buffer);
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
        spare.give(first);
        let again = spare.take();
        assert_eq!((again.as_ptr(), again.len(), again.capacity()), (place, 0, 1000));
    }

    #[test]
    fn only_some_are_kept_and_none_that_grew() {
        let spare = Spare::new(1000, 2);
        let mut all: Vec<_> = (0..4).map(|_| spare.take()).collect();
        all[0].extend([0; 1001]);
        all.into_iter().for_each(|buffer| spare.give(buffer));
        assert_eq!(spare.buffers.lock().unwrap().len(), 2);
        assert!(spare.take().capacity() == 1000 && spare.take().capacity() == 1000);
    }
}
