//! Arrays of descriptors that `poll` and `ppoll` are given.

use std::borrow::Cow;

use systape_bpf::wire::{Syscall, captures};

/// Bytes of a `struct pollfd`: descriptor, events, revents (include/uapi/asm-generic/poll.h).
const POLLFD: usize = 8;

/// The first two descriptors of the array in argument `arg`; None: there are fewer, or it was not captured.
pub(super) fn first_fds(s: &Syscall, data: &[u8], arg: u8) -> [Option<i32>; 2] {
    let mut at = 0;
    for capture in captures(s) {
        let next = at + usize::from(capture.len);
        if capture.arg == arg {
            let fds = data.get(at..next).unwrap_or_default().chunks_exact(POLLFD);
            let mut fds = fds.map(|fd| fd.first_chunk().map(|fd| i32::from_ne_bytes(*fd)));
            return [fds.next().flatten(), fds.next().flatten()];
        }
        at = next;
    }
    [None; 2]
}

/// Keeps of an array after the call only the descriptors with events, and its full size: as large when it is all there, else not known.
pub(super) fn ready(bytes: &[u8], full: u32) -> (Cow<'_, [u8]>, u32) {
    let ready = |fd: &&[u8]| fd[6..] != [0, 0];
    let kept: Vec<u8> = bytes.chunks_exact(POLLFD).filter(ready).flatten().copied().collect();
    let full = if full as usize == bytes.len() { kept.len() as u32 } else { 0 };
    (kept.into(), full)
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_bpf::wire::Capture;

    #[test]
    fn the_first_two_are_named() {
        let mut s = Syscall { captures: 2, ..Syscall::default() };
        s.cap[0] = Capture { arg: 2, status: 1, len: 2, full: 2 };
        s.cap[1] = Capture { arg: 0, status: 1, len: 16, full: 16 };
        let data = [9, 9, 3, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255, 1, 0, 0, 0];
        assert_eq!(first_fds(&s, &data, 0), [Some(3), Some(-1)]);
        assert_eq!(first_fds(&s, &data[..10], 0), [None; 2]);
        assert_eq!(first_fds(&s, &data, 1), [None; 2]);
    }

    #[test]
    fn only_ready_ones_are_kept() {
        let bytes = [[3, 0, 0, 0, 1, 0, 0, 0], [4, 0, 0, 0, 1, 0, 1, 0], [5, 0, 0, 0, 1, 0, 0, 1]].concat();
        let (kept, full) = ready(&bytes, 24);
        assert_eq!((&*kept, full), (&bytes[8..], 16));
        assert_eq!(ready(&bytes, 320).1, 0);
    }
}
