//! Which time a finding is about, so that its cost can be measured.

use super::finding::{Finding, Severity};
use crate::derive::cost::pattern::PatternTime::In;
use crate::derive::cost::pattern::{CausePattern, Files, PatternTime};
use crate::derive::waits::{Waits, for_work, is_futex};

/// How the object of several sockets of one peer begins.
pub const TO: &[u8] = b"->";

impl Finding {
    /// The time that would not be spent without it, between its first and its last; empty: no rule says.
    pub fn patterns(&self) -> Vec<CausePattern> {
        let mut patterns = self.whenever();
        // of that rule the span is the longest's
        let span = self.span.filter(|_| self.rule != "stuck");
        patterns.iter_mut().for_each(|pattern| pattern.span = pattern.span.or(span));
        patterns
    }

    fn whenever(&self) -> Vec<CausePattern> {
        if self.class != Severity::Time {
            return Vec::new();
        }
        if !self.time.is_empty() {
            return self.time.clone();
        }
        let one = |time| {
            vec![CausePattern { comm: self.who.comm.clone(), pid: self.who.pid, parent: None, time, span: None }]
        };
        let loops = matches!(self.rule, "storm" | "failures");
        match self.rule {
            // of all that was asked for
            "cpu-wait" => {
                vec![CausePattern {
                    comm: Vec::new(),
                    pid: self.who.pid,
                    parent: None,
                    time: PatternTime::Runqueue,
                    span: None,
                }]
            }
            "throttled" => {
                vec![CausePattern {
                    comm: Vec::new(),
                    pid: self.who.pid,
                    parent: None,
                    time: PatternTime::Throttled,
                    span: None,
                }]
            }
            "stuck" => one(PatternTime::Stuck),
            "stopped" => one(PatternTime::Stopped),
            // the pauses between attempts are its time too
            "retries" => {
                let pauses = ["nanosleep", "clock_nanosleep", "poll", "ppoll", "select", "pselect6"];
                let calls = pauses.into_iter().chain([self.call.as_str()]);
                calls.flat_map(|call| one(In { call: call.to_owned(), files: Files::Any, loops: false })).collect()
            }
            _ if self.call.is_empty() => Vec::new(),
            _ => one(In { call: self.call.clone(), files: self.files(), loops }),
        }
    }

    fn files(&self) -> Files {
        match &self.object[..] {
            // of these the object is no file of the call
            _ if self.call == "connect" || (!is_futex(&self.call) && for_work(&self.call) == Some(Waits::Call)) => {
                Files::Any
            }
            peer if matches!(self.rule, "answers" | "dns" | "nagle") && !peer.starts_with(b"UNIX") => {
                Files::Peer(peer.to_vec())
            }
            b"" => Files::Any,
            object if object.starts_with(TO) => Files::Peer(object[TO.len()..].to_vec()),
            object => match object.strip_suffix(b"/*") {
                Some(dir) => Files::Under(dir.to_vec()),
                None => Files::Named(object.to_vec()),
            },
        }
    }
}
