//! Tapes in memory of the two inputs.

use systape_benches::synth::SynthWindow;
use systape_format::{Encoder, End, Session, Tape, Writer};

/// The windows as a tape.
pub(crate) fn tape(windows: &[SynthWindow]) -> Tape {
    let (first, last) = (windows.first().expect("a window"), windows.last().expect("a window"));
    let session = Session { window_open: first.start, ..Session::default() };
    let mut encoder = Encoder::new(3);
    let mut writer = Writer::create(Vec::new(), [1; 16], &session).expect("a session");
    for window in windows {
        writer.segment(encoder.segment(window.fill()).expect("a segment")).expect("memory");
    }
    let end = End { window_close: last.end, ..End::default() };
    Tape::from_bytes(writer.finish(&end).expect("memory")).expect("a tape")
}
