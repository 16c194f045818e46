//! Parts of lines that wait until time reaches them.

use std::sync::Arc;

use systape_events::calls::CallInfo;
use systape_events::scan::later::HasTime;

/// What waits for its time.
#[derive(Debug)]
pub(super) struct Due {
    /// When, CLOCK_MONOTONIC.
    pub ts: u64,
    /// The thread.
    pub tid: u32,
    /// What is written then.
    pub what: Text,
}

/// A part of a call's line.
#[derive(Debug)]
pub(super) enum Text {
    /// The beginning of the line.
    Begin(Vec<u8>),
    /// The end of the line: the other arguments, and the result.
    End {
        /// The call.
        call: Arc<CallInfo>,
        /// See [`systape_answers::lines::strace::Pieces::rest`].
        rest: Vec<u8>,
        /// See [`systape_answers::lines::strace::Pieces::result`].
        result: Vec<u8>,
    },
}

impl HasTime for Due {
    fn key(&self) -> (u64, u8) {
        match self.what {
            Text::End { .. } => (self.ts, 0),
            Text::Begin(_) => (self.ts, 2),
        }
    }
}
