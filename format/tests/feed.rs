//! A tape that is read while it comes gives what the whole one gives, one segment after the other.

mod common;

use std::io::{self, Read};

use common::{Truth, block_spans, end, sample};
use systape_format::Tape;
use systape_format::reader::Feed;

/// Bytes that come a few at a time, as through a pipe.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let few = self.1.min(to.len());
        self.0.read(&mut to[..few])
    }
}

/// What a feed showed.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    /// Groups of segments, all as `truth` has them.
    groups: usize,
    checkpoints: usize,
    ended: bool,
    /// Damage was told.
    damaged: bool,
}

fn read(truth: &Truth, bytes: &[u8], few: usize) -> Shown {
    let mut feed = Feed::open(Slow(bytes, few)).unwrap();
    let mut shown = Shown { groups: 0, checkpoints: 0, ended: false, damaged: false };
    while feed.advance().unwrap() {
        let tape = feed.tape();
        let parts = tape.segments().len() + tape.checkpoints();
        assert!(parts <= 1);
        assert_eq!(tape.is_followed(), parts == 1, "the last step has nothing but the end");
        shown.groups += truth.check(tape, "feed");
        shown.checkpoints += tape.checkpoints();
        assert!((0..tape.checkpoints()).all(|at| tape.checkpoint(at).is_ok() || !tape.misses().is_empty()));
        shown.damaged |= !tape.findings().is_empty() || !tape.misses().is_empty();
    }
    assert!(!feed.advance().unwrap());
    Shown { ended: feed.tape().end().is_some(), ..shown }
}

/// All of the sample.
fn all(truth: &Truth, bytes: &[u8]) -> Shown {
    let tape = Tape::from_bytes(bytes.to_vec()).unwrap();
    Shown { groups: truth.check(&tape, "whole"), checkpoints: tape.checkpoints(), ended: true, damaged: false }
}

#[test]
fn segments_come_one_after_the_other() {
    let bytes = sample();
    let truth = Truth::of(&bytes);
    for few in [1, 7, 1 << 20] {
        assert_eq!(read(&truth, &bytes, few), all(&truth, &bytes));
    }
    let mut feed = Feed::open(&bytes[..]).unwrap();
    while feed.advance().unwrap() {}
    let tape = feed.tape();
    assert_eq!(tape.end().map(|end| end.window_close), Some(end(tape.complete_until()).window_close));
    assert!(!tape.table_defs().is_empty());
    assert_eq!(tape.table_defs(), Tape::from_bytes(bytes.clone()).unwrap().table_defs());
}

#[test]
fn what_ends_anywhere_gives_what_came() {
    let bytes = sample();
    let truth = Truth::of(&bytes);
    let whole = all(&truth, &bytes);
    for cut in (block_spans(&bytes)[1].0..bytes.len()).step_by(61) {
        let shown = read(&truth, &bytes[..cut], 4096);
        assert!(shown.groups <= whole.groups && (shown.ended || shown != whole), "{cut}: {shown:?}");
    }
    // all but the end mark
    let end = block_spans(&bytes).last().unwrap().0;
    assert_eq!(read(&truth, &bytes[..end], 4096), Shown { ended: false, ..whole });
}

#[test]
fn damage_is_told_and_shows_nothing_wrong() {
    let bytes = sample();
    let truth = Truth::of(&bytes);
    let whole = all(&truth, &bytes);
    for at in (block_spans(&bytes)[1].0..bytes.len()).step_by(37) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x41;
        let shown = read(&truth, &bad, 4096);
        let less = shown.groups < whole.groups || shown.checkpoints < whole.checkpoints || !shown.ended;
        assert!(!less || shown.damaged, "{at}: {shown:?}");
    }
}

#[test]
fn what_is_no_tape_is_refused() {
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];
    let later = sample()[8..].to_vec();
    for (bytes, why) in [(&b""[..], "empty"), (b"hello", "not a tape"), (&gzip, "gzip"), (&later, "not a tape")] {
        let error = Feed::open(bytes).map(drop).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
