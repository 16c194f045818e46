//! `--exit`: which ends of programs are asked for.

use anyhow::{Result, bail};
use systape_abi::signal_number;

use systape_answers::derive::processes::Ending;

/// An end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Status(u32),
    Signal(u32),
    AnySignal,
}

impl End {
    fn parse(word: &str) -> Result<Self> {
        if word == "signal" {
            return Ok(Self::AnySignal);
        }
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            return match word.parse() {
                Ok(status @ 0..=255) => Ok(Self::Status(status)),
                _ => bail!("--exit: a status is 0 to 255, not '{word}'"),
            };
        }
        match signal_number(word) {
            Some(signal) => Ok(Self::Signal(signal)),
            None => bail!("--exit: '{word}' is no status (0 to 255), no signal, and not 'signal'"),
        }
    }

    fn is(self, end: &Ending) -> bool {
        match self {
            Self::Status(status) => end.status() == Some(status),
            Self::Signal(signal) => end.signal() == Some(signal),
            Self::AnySignal => end.signal().is_some(),
        }
    }
}

/// The ends that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::reports) struct AskedEnds {
    /// These, or all others.
    others: bool,
    ends: Vec<End>,
}

impl AskedEnds {
    /// Parses `0`, `1,2`, `KILL`, `signal`; with `!` or `!=` in front all others.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (others, list) = match text.strip_prefix('!') {
            Some(rest) => (true, rest.strip_prefix('=').unwrap_or(rest)),
            None => (false, text.strip_prefix('=').unwrap_or(text)),
        };
        let ends = list.split(',').map(|word| End::parse(word.trim())).collect::<Result<_>>()?;
        Ok(Self { others, ends })
    }

    /// Whether `end` is asked for.
    pub(super) fn has(&self, end: &Ending) -> bool {
        self.ends.iter().any(|asked| asked.is(end)) != self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_signals_and_all_others() {
        let has = |text: &str, code: u32| AskedEnds::parse(text).unwrap().has(&Ending { code, ..Ending::default() });
        let (ok, three, term, dumped) = (0, 3 << 8, 15, 11 | 0x80);
        for (text, expected) in [
            ("0", [true, false, false, false]),
            ("!=0", [false, true, true, true]),
            ("!0", [false, true, true, true]),
            ("3,TERM", [false, true, true, false]),
            ("SIGSEGV", [false, false, false, true]),
            ("signal", [false, false, true, true]),
            ("!=0,signal", [false, true, false, false]),
        ] {
            assert_eq!([ok, three, term, dumped].map(|code| has(text, code)), expected, "{text}");
        }
        for wrong in ["", "256", "-1", "0,", "NOSIG", "!", ">0"] {
            assert!(AskedEnds::parse(wrong).is_err(), "{wrong}");
        }
    }
}
