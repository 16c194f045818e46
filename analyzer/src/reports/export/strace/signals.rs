//! What strace says of signals: `--- SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=1, si_uid=0} ---`.
//!
//! A tape has where a signal came from when it was sent, and when it was taken; strace has a line when it is taken.

use std::fmt::Write as _;

use rustc_hash::FxHashMap;
use systape_abi::signo::{SIGBUS, SIGCHLD, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGTRAP};
use systape_abi::{si_code, signal_name};
use systape_format::model::{SIGNAL_HANDLER_UNKNOWN, SignalEvent, SignalInfo, SignalKind, Task};

use systape_answers::derive::processes::Ending;
use systape_answers::derive::signals::outcome::IGNORED;
use systape_answers::derive::signals::via::{Via, code_name, fault_address};

/// Most signals that are remembered until they are taken, and most ends of processes until their parents hear of them. Beyond that
/// all are forgotten, and lines lack these fields.
const MOST: usize = 1 << 16;

/// Signals on their way, and ends of processes.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// By process and number: the fields of the last one sent.
    sent: FxHashMap<(u32, u32), String>,
    /// By pid.
    ends: FxHashMap<u32, Ending>,
}

impl Signals {
    /// Process `pid` ended.
    pub(super) fn ended(&mut self, pid: u32, ending: Ending) {
        if self.ends.len() >= MOST {
            self.ends.clear();
        }
        self.ends.insert(pid, ending);
    }

    /// The line of `event` to `target`; None: strace has none for it.
    pub(super) fn line(&mut self, event: &SignalEvent, target: &Task) -> Option<String> {
        let key = (target.pid, event.sig);
        let fields = match event.kind {
            // not taken, but stopped at all the same
            SignalKind::Generate if event.result == IGNORED && event.sig == SIGCHLD => self.fields(event),
            SignalKind::Generate => {
                if self.sent.len() >= MOST {
                    self.sent.clear();
                }
                let fields = self.fields(event);
                self.sent.insert(key, fields);
                return None;
            }
            SignalKind::Deliver if event.sig == SIGKILL => return None,
            // a log that was imported has none that were sent
            SignalKind::Deliver if event.flags & SIGNAL_HANDLER_UNKNOWN != 0 => self.fields(event),
            SignalKind::Deliver => self.sent.remove(&key).unwrap_or_default(),
            SignalKind::OomVictim => return None,
        };
        let name = signal_name(event.sig);
        Some(format!("--- {name} {{si_signo={name}{fields}}} ---"))
    }

    /// What is known of it besides its number.
    fn fields(&self, event: &SignalEvent) -> String {
        let mut text = String::new();
        let code = match event.info {
            SignalInfo::Siginfo => event.code,
            SignalInfo::NoInfo => si_code::SI_USER,
            SignalInfo::Priv => si_code::SI_KERNEL,
            SignalInfo::Unknown => return text,
        };
        let _ = write!(text, ", si_code={}", code_name(event.sig, code));
        if event.info != SignalInfo::Siginfo {
            return text;
        }
        let fault = matches!(event.sig, SIGILL | SIGTRAP | SIGBUS | SIGFPE | SIGSEGV);
        match fault_address(event, Via::Fault).filter(|_| fault) {
            Some(0) => text.push_str(", si_addr=NULL"),
            Some(addr) => {
                let _ = write!(text, ", si_addr={addr:#x}");
            }
            None if matches!(code, si_code::SI_USER | si_code::SI_QUEUE | si_code::SI_TKILL)
                || event.sig == SIGCHLD =>
            {
                let _ = write!(text, ", si_pid={}, si_uid={}", event.si_pid, event.si_uid);
            }
            None => {}
        }
        if event.sig == SIGCHLD
            && let Some(end) = self.ends.get(&event.si_pid)
        {
            let _ = match (end.status(), end.signal()) {
                (Some(status), _) => write!(text, ", si_status={status}"),
                (None, signal) => write!(text, ", si_status={}", signal_name(signal.unwrap_or(0))),
            };
        }
        text
    }
}

/// `+++ exited with 1 +++`, `+++ killed by SIGSEGV (core dumped) +++`.
pub(super) fn end_line(end: Ending) -> String {
    match (end.status(), end.signal()) {
        (Some(status), _) => format!("+++ exited with {status} +++"),
        (None, signal) => {
            let dumped = if end.core_dumped() { "(core dumped) " } else { "" };
            format!("+++ killed by {} {dumped}+++", signal_name(signal.unwrap_or(0)))
        }
    }
}
