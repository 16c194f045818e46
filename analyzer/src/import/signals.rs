//! What strace says of a signal that a thread took: its number, and the fields of its siginfo.

use systape_abi::si_code;
use systape_abi::signo::{SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
use systape_answers::derive::signals::via::code_name;
use systape_format::model::{SIGNAL_HANDLER_UNKNOWN, SignalEvent, SignalInfo, SignalKind};

use super::body::find;
use super::lead::number;
use super::number::{signal, signed, unsigned};
use super::structs::field;

/// A signal that was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogSignal {
    /// Number of the signal.
    pub sig: u32,
    /// Field si_code; None: the line does not say, and nothing of what follows.
    pub code: Option<i32>,
    /// The process that siginfo names, as the program sees it; 0: it names none.
    pub si_pid: u32,
    /// Number of that process as strace sees it, where that differs (`--pidns-translation`).
    pub outer: Option<u32>,
    /// Field si_uid.
    pub si_uid: u32,
    /// Field si_addr of a fault.
    pub addr: u64,
}

impl LogSignal {
    /// Reads `SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=7, si_uid=0}`; None: there is no such signal.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
        let sig = signal(&text[..end])?;
        let info = text[end..].trim_ascii();
        let Some(code) = field(info, "si_code").and_then(|word| code(sig, word)) else {
            return Some(Self { sig, ..Self::default() });
        };
        let pid = field(info, "si_pid").unwrap_or_default();
        let outer =
            find(pid, b"/* ").and_then(|at| number(&pid[at + 3..])).and_then(|(pid, _)| u32::try_from(pid).ok());
        let small = |word: &[u8]| number(word).and_then(|(value, _)| u32::try_from(value).ok()).unwrap_or(0);
        Some(Self {
            sig,
            code: Some(code),
            si_pid: small(pid),
            outer,
            si_uid: field(info, "si_uid").map_or(0, small),
            addr: field(info, "si_addr").and_then(unsigned).unwrap_or(0),
        })
    }

    /// Whether the thread's own instruction caused it.
    pub(super) fn is_fault(&self) -> bool {
        matches!(self.sig, SIGILL | SIGTRAP | SIGBUS | SIGFPE | SIGSEGV) && self.code.is_some_and(|code| code > 0)
    }

    /// The number, as strace sees it, of the process that siginfo names.
    pub(super) fn sender(&self) -> Option<u32> {
        self.outer.or(Some(self.si_pid)).filter(|pid| *pid > 0)
    }

    /// The event of a tape; its tasks are set by who knows them.
    pub(super) fn event(&self, ts: u64) -> SignalEvent {
        let info = match self.code {
            None => SignalInfo::Unknown,
            // the kernel makes such a siginfo of SEND_SIG_PRIV (__send_signal_locked)
            Some(si_code::SI_KERNEL) if self.si_pid == 0 && !self.is_fault() => SignalInfo::Priv,
            Some(_) => SignalInfo::Siginfo,
        };
        SignalEvent {
            code: self.code.unwrap_or(0),
            info,
            flags: SIGNAL_HANDLER_UNKNOWN,
            si_pid: self.si_pid,
            si_uid: self.si_uid,
            addr: self.addr,
            ..SignalEvent::new(ts, SignalKind::Deliver, self.sig, 0)
        }
    }
}

/// The number of a si_code that strace names for this signal, or prints.
fn code(sig: u32, word: &[u8]) -> Option<i32> {
    // an unknown one has a comment behind it: 0x7 /* SEGV_??? */
    let word = word.split(|byte| *byte == b' ').next()?;
    if let Some(number) = signed(word) {
        // printed as an unsigned number of 32 bits
        return i32::try_from(number).ok().or_else(|| u32::try_from(number).ok().map(u32::cast_signed));
    }
    let word = std::str::from_utf8(word).ok()?;
    let frequent = [si_code::SI_USER, si_code::SI_TKILL, si_code::SI_TIMER, si_code::SI_KERNEL, 1];
    // the kernel has some ten of a signal; names of others are not known here
    let mut all = frequent.into_iter().chain(2..=16).chain(si_code::SI_TKILL..0);
    all.find(|code| code_name(sig, *code) == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<LogSignal> {
        LogSignal::read(text.as_bytes())
    }

    #[test]
    fn fields_of_each_kind_are_read() {
        let none = LogSignal::default();
        let term = read("SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=7, si_uid=1000}");
        assert_eq!(term, Some(LogSignal { sig: 15, code: Some(0), si_pid: 7, si_uid: 1000, ..none }));
        let child =
            read("SIGCHLD {si_signo=SIGCHLD, si_code=CLD_KILLED, si_pid=9, si_uid=0, si_status=SIGKILL, si_utime=0}");
        assert_eq!(child, Some(LogSignal { sig: 17, code: Some(2), si_pid: 9, ..none }));
        let fault = read("SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x10}").unwrap();
        assert_eq!((fault.code, fault.addr, fault.is_fault(), fault.sender()), (Some(1), 16, true, None));
        assert!(read("SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=NULL}").unwrap().is_fault());
        assert!(read("SIGSEGV {si_signo=SIGSEGV, si_code=SI_KERNEL, si_addr=NULL}").unwrap().is_fault());
        assert!(!read("SIGSEGV {si_signo=SIGSEGV, si_code=SI_USER, si_pid=7, si_uid=0}").unwrap().is_fault());
        let timer =
            read("SIGRT_3 {si_signo=SIGRT_3, si_code=SI_TIMER, si_timerid=0, si_overrun=0, si_int=0, si_ptr=NULL}");
        assert_eq!(timer, Some(LogSignal { sig: 35, code: Some(-2), ..none }));
        assert_eq!(timer.unwrap().sender(), None);
    }

    #[test]
    fn what_is_not_said_is_not_known() {
        assert_eq!(read("SIGCHLD (Child exited) @ 0 (0)").map(|signal| (signal.sig, signal.code)), Some((17, None)));
        assert_eq!(read("SIGINT {si_signo=SIGINT, si_code=SI_NOSUCH, si_pid=7}").map(|signal| signal.code), Some(None));
        assert_eq!(read("SIGINT {si_signo=SIGINT, si_code=-60}").and_then(|signal| signal.code), Some(-60));
        assert_eq!(read("SIGINT {si_signo=SIGINT, si_code=0xffffffc4 /* SI_??? */}").and_then(|s| s.code), Some(-60));
        assert_eq!(read("SIGNONE {si_signo=SIGNONE}"), None);
        let inside =
            read("SIGTERM {si_signo=SIGTERM, si_code=SI_USER, si_pid=2 /* 4711 in strace's PID NS */, si_uid=0}");
        assert_eq!(inside.map(|signal| (signal.si_pid, signal.sender())), Some((2, Some(4711))));
        let event = inside.unwrap().event(5);
        assert_eq!((event.ts, event.kind, event.flags), (5, SignalKind::Deliver, SIGNAL_HANDLER_UNKNOWN));
    }
}
