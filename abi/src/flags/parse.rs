//! Reading back what a [`FlagSet`] writes, and what strace writes of the same values.

use super::{FlagForm, FlagSet};
use crate::signal_number;

impl FlagSet {
    /// The value that a text of full names stands for: `O_WRONLY|O_CREAT|0x4`. `None`: a part of it has no value here.
    ///
    /// ```
    /// # use systape_abi::{Abi, open_flags};
    /// assert_eq!(open_flags(Abi::X86_64).parse("O_WRONLY|O_CLOEXEC"), Some(0o2000001));
    /// assert_eq!(open_flags(Abi::X86_64).parse("O_NOSUCH"), None);
    /// ```
    pub fn parse(&self, text: &str) -> Option<u64> {
        text.split('|').try_fold(0, |value, word| Some(value | self.word(word.trim())?))
    }

    fn word(&self, word: &str) -> Option<u64> {
        let named = |name: &str| self.bits.iter().find(|(_, known)| *known == name).map(|(value, _)| *value);
        if let Some(value) = named(word) {
            return Some(value);
        }
        // strace writes both in one word
        if let Some(short) = word.strip_suffix("_PRIVATE").filter(|short| short.starts_with("FUTEX_")) {
            return Some(named(short)? | named("FUTEX_PRIVATE_FLAG")?);
        }
        if self.how == FlagForm::Clone
            && let Some(signal) = signal_number(word).filter(|_| word.starts_with("SIG"))
        {
            return Some(signal.into());
        }
        number(word)
    }
}

/// A number in C's syntax: decimal, `0x` hex, `0` octal; negative ones as 64 bits.
fn number(word: &str) -> Option<u64> {
    if let Some(positive) = word.strip_prefix('-') {
        return Some(0_u64.wrapping_sub(number(positive).filter(|_| !positive.starts_with('-'))?));
    }
    let (digits, radix) = match (word.strip_prefix("0x"), word.strip_prefix('0')) {
        (Some(hex), _) => (hex, 16),
        (_, Some(octal)) if !octal.is_empty() => (octal, 8),
        _ => (word, 10),
    };
    // `from_str_radix` would also take a sign
    let fits = digits.bytes().all(|byte| char::from(byte).is_digit(radix));
    if fits { u64::from_str_radix(digits, radix).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use crate::flags::*;

    #[test]
    fn what_is_written_is_read() {
        let sets = [&OPEN, &PROT, &CLONE, &FUTEX, &FCNTL, &SOCK, &MSG];
        for set in sets {
            for (value, _) in set.bits {
                for more in [0, 1, 0x11] {
                    let value = (value | more) & 0xffff_ffff;
                    let text = set.text(value, FlagStyle::FULL);
                    assert_eq!(set.parse(&text), Some(value), "{text}");
                }
            }
        }
    }

    #[test]
    fn straces_words_are_read() {
        assert_eq!(FUTEX.parse("FUTEX_WAIT_PRIVATE"), Some(128));
        assert_eq!(FUTEX.parse("FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME"), Some(9 | 128 | 256));
        assert_eq!(CLONE.parse("CLONE_VM|CLONE_VFORK|SIGCHLD"), Some(0x4111));
        assert_eq!(PROT.parse("PROT_READ|PROT_WRITE"), Some(3));
        assert_eq!(OPEN.parse("O_RDONLY|O_CLOEXEC"), Some(0o2000000));
        assert_eq!(
            (OPEN.parse(""), OPEN.parse("0x"), OPEN.parse("SIGCHLD"), OPEN.parse("0x+1")),
            (None, None, None, None)
        );
        assert_eq!((OPEN.parse("-1"), OPEN.parse("0"), OPEN.parse("07")), (Some(u64::MAX), Some(0), Some(7)));
    }
}
