//! Signal numbers and names. x86 and arm64 share one numbering (include/uapi/asm-generic/signal.h).

use std::borrow::Cow;

/// Names of signals 1 to 31.
#[rustfmt::skip]
const NAMES: [&str; 31] = [
    "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE",
    "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ",
    "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS",
];

/// Other names of the same signals.
const SYNONYMS: [(&str, u32); 4] = [("CLD", 17), ("IOT", 6), ("POLL", 29), ("UNUSED", 31)];

/// The first real-time signal as the kernel counts them (glibc keeps 32 and 33 for itself, so its `SIGRTMIN` is 34).
const FIRST_RT: u32 = 32;
const LAST: u32 = 64;

/// The name of signal `signo`: `SIGKILL`, `SIGRT_3` for 35 (counted from the kernel's first, 32), `SIG_99?` for a number that is no
/// signal, and `SIG_0` for 0 (kill's test whether a process exists).
pub fn signal_name(signo: u32) -> Cow<'static, str> {
    match signo {
        0 => Cow::Borrowed("SIG_0"),
        1..=31 => Cow::Borrowed(NAMES[signo as usize - 1]),
        FIRST_RT..=LAST => Cow::Owned(format!("SIGRT_{}", signo - FIRST_RT)),
        _ => Cow::Owned(format!("SIG_{signo}?")),
    }
}

/// The number of a signal written `KILL`, `SIGKILL`, `kill`, `9`, `RT_3`, `SIGRTMIN+1` or `SIGRTMAX-1` (`SIGRTMIN` as in glibc: 34).
/// `None` when it is no signal from 1 to 64.
pub fn signal_number(name: &str) -> Option<u32> {
    let upper = name.to_ascii_uppercase();
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    if let Some(at) = NAMES.iter().position(|known| known[3..] == *short) {
        return Some(at as u32 + 1);
    }
    if let Some((_, signo)) = SYNONYMS.iter().find(|(synonym, _)| *synonym == short) {
        return Some(*signo);
    }
    let signo = if let Some(digits) = short.strip_prefix("RT_") {
        FIRST_RT.checked_add(number(digits)?)?
    } else if let Some(plus) = short.strip_prefix("RTMIN") {
        34_u32.checked_add(if plus.is_empty() { 0 } else { number(plus.strip_prefix('+')?)? })?
    } else if let Some(minus) = short.strip_prefix("RTMAX") {
        LAST.checked_sub(if minus.is_empty() { 0 } else { number(minus.strip_prefix('-')?)? })?
    } else {
        number(name)?
    };
    (1..=LAST).contains(&signo).then_some(signo)
}

/// Plain digits; `u32::from_str` would also take a sign.
fn number(digits: &str) -> Option<u32> {
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for signo in 1..=LAST {
            assert_eq!(signal_number(&signal_name(signo)), Some(signo), "{signo}");
            assert_eq!(signal_number(&signo.to_string()), Some(signo));
        }
    }

    #[test]
    fn accepts_the_usual_spellings() {
        for text in ["KILL", "SIGKILL", "kill", "9"] {
            assert_eq!(signal_number(text), Some(9), "{text}");
        }
        assert_eq!(signal_number("RTMIN"), Some(34));
        assert_eq!(signal_number("SIGRTMAX-1"), Some(63));
        for text in ["", "SIG", "0", "65", "+9", "-9", "RTMIN-1", "RT_99999999999", "RT_4294967295", "KILLED"] {
            assert_eq!(signal_number(text), None, "{text:?}");
        }
    }

    #[test]
    fn odd_numbers() {
        assert_eq!(signal_name(35), "SIGRT_3");
        assert_eq!(signal_name(99), "SIG_99?");
        assert_eq!(signal_name(0), "SIG_0");
    }
}
