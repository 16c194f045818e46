//! Writing the value of a [`FlagSet`]. Every value has a text: bits and numbers without a name are written in hex.

use std::fmt::Write as _;

use super::{FlagForm, FlagSet, FlagStyle};
use crate::signal_name;

impl FlagSet {
    /// Appends the names of `value` to `out`, joined by `|`; what has no name follows in hex.
    ///
    /// ```
    /// # use systape_abi::{Abi, ArgKind, FlagStyle, describe, number};
    /// let openat = describe(Abi::X86_64, number(Abi::X86_64, "openat").unwrap()).unwrap();
    /// let ArgKind::Flags(set) = openat.args[2].kind else { panic!() };
    /// assert_eq!(set.text(0o2000000, FlagStyle::PERF), "RDONLY|CLOEXEC");
    /// assert_eq!(set.text(0o2000001, FlagStyle::FULL), "O_WRONLY|O_CLOEXEC");
    /// ```
    pub fn write_text(&self, value: u64, style: FlagStyle, out: &mut String) {
        let value = if self.wide { value } else { value & 0xffff_ffff };
        let mut list = FlagList { set: self, style, out, empty: true };
        match self.how {
            FlagForm::Bits => list.bits(value, 0),
            FlagForm::Enum => list.one(value),
            FlagForm::Mixed { mask } => list.mixed(value, mask),
            FlagForm::Clone => {
                list.bits(value & !0xff, 0xff);
                if value & 0xff != 0 {
                    list.item(&signal_name((value & 0xff) as u32));
                }
            }
            FlagForm::ModeAndBits => {
                list.bits(value & !0o777, 0o777);
                if value & 0o777 != 0 {
                    list.item(&format!("0{:o}", value & 0o777));
                }
            }
            FlagForm::Ioctl => list.ioctl(value),
        }
        if list.empty {
            out.push('0');
        }
    }

    /// [`write_text`](Self::write_text) into a new string.
    pub fn text(&self, value: u64, style: FlagStyle) -> String {
        let mut out = String::new();
        self.write_text(value, style, &mut out);
        out
    }

    /// The entry of exactly `value`, with its prefix.
    pub fn name(&self, value: u64) -> Option<&'static str> {
        self.bits.iter().find(|(v, _)| *v == value).map(|(_, name)| *name)
    }
}

/// A list being written.
struct FlagList<'a> {
    set: &'a FlagSet,
    style: FlagStyle,
    out: &'a mut String,
    empty: bool,
}

impl FlagList<'_> {
    fn item(&mut self, text: &str) {
        if !std::mem::take(&mut self.empty) {
            self.out.push('|');
        }
        self.out.push_str(text);
    }

    fn named(&mut self, name: &str) {
        let short = if self.style.prefix { name } else { name.strip_prefix(self.set.prefix).unwrap_or(name) };
        self.item(short);
    }

    fn hex(&mut self, value: u64) {
        self.item(&format!("{value:#x}"));
    }

    /// The union `value` of entries outside `mask`; nothing is written for an empty union without a name.
    fn bits(&mut self, value: u64, mask: u64) {
        if value == 0 {
            if mask == 0
                && let Some(name) = self.set.name(0)
            {
                self.named(name);
            }
            return;
        }
        let mut rest = value;
        for &(bits, name) in self.set.bits {
            if bits & mask == 0 && bits != 0 && rest & bits == bits {
                self.named(name);
                rest &= !bits;
            }
        }
        if rest != 0 {
            self.hex(rest);
        }
    }

    fn one(&mut self, value: u64) {
        match self.set.name(value) {
            Some(name) => self.named(name),
            None => self.number(value),
        }
    }

    /// A value without a name: small ones and negative ones read best in decimal.
    fn number(&mut self, value: u64) {
        let signed = if self.set.wide { value as i64 } else { i64::from(value as u32 as i32) };
        if (-4095..4096).contains(&signed) {
            self.item(&signed.to_string());
        } else {
            self.hex(value);
        }
    }

    fn mixed(&mut self, value: u64, mask: u64) {
        // all ones is -1, an error or a question, and not every flag at once
        let all = if self.set.wide { u64::MAX } else { 0xffff_ffff };
        if value == all {
            return self.hex(value);
        }
        let low = value & mask;
        let name = self.set.bits.iter().find(|(v, _)| v & !mask == 0 && *v == low).map(|(_, name)| *name);
        match name {
            Some(name) => self.named(name),
            None if low != 0 => self.hex(low),
            None => {}
        }
        self.bits(value & !mask, mask);
    }

    /// `_IOC(_IOC_READ, 0x54, 0x30, 0x4)`: the parts include/uapi/asm-generic/ioctl.h packs into one number.
    fn ioctl(&mut self, value: u64) {
        if let Some(name) = self.set.name(value) {
            return self.named(name);
        }
        let direction = match value >> 30 & 3 {
            0 => "_IOC_NONE",
            1 => "_IOC_WRITE",
            2 => "_IOC_READ",
            _ => "_IOC_READ|_IOC_WRITE",
        };
        let (size, kind, number) = (value >> 16 & 0x3fff, value >> 8 & 0xff, value & 0xff);
        self.empty = false;
        // writing to a String cannot fail
        let _ = write!(self.out, "_IOC({direction}, {kind:#x}, {number:#x}, {size:#x})");
    }
}

#[cfg(test)]
mod tests {
    use crate::flags::*;

    fn full(set: &FlagSet, value: u64) -> String {
        set.text(value, FlagStyle::FULL)
    }

    fn perf(set: &FlagSet, value: u64) -> String {
        set.text(value, FlagStyle::PERF)
    }

    #[allow(unused_qualifications, reason = "the lint takes the ALL of one file for that of all")]
    fn every_set() -> impl Iterator<Item = (&'static str, &'static FlagSet)> {
        [files::ALL, mounts::ALL, memory::ALL, process::ALL, time::ALL, net::ALL, misc::ALL, ioctls::ALL]
            .into_iter()
            .flatten()
            .copied()
    }

    #[test]
    fn open_flags() {
        assert_eq!(full(&OPEN, 0), "O_RDONLY");
        assert_eq!(perf(&OPEN, 0o2000000), "RDONLY|CLOEXEC");
        assert_eq!(full(&OPEN, 0o1101), "O_WRONLY|O_CREAT|O_TRUNC");
        assert_eq!(full(&OPEN, 0o4010002), "O_RDWR|O_SYNC");
        assert_eq!(full(&OPEN, 0o10002), "O_RDWR|O_DSYNC");
        assert_eq!(full(&OPEN, 0o20200002), "O_RDWR|O_TMPFILE");
        assert_eq!(full(&OPEN, 0o200000), "O_RDONLY|O_DIRECTORY");
        assert_eq!(full(&OPEN_ARM64, 0o200000), "O_RDONLY|O_DIRECT");
        assert_eq!(full(&OPEN_ARM64, 0o40000), "O_RDONLY|O_DIRECTORY");
        assert_eq!(full(&OPEN, 3), "O_ACCMODE");
    }

    #[test]
    fn garbage_above_an_int_is_ignored() {
        assert_eq!(full(&OPEN, 0xdead_0000_0000_0001), "O_WRONLY");
        assert_eq!(full(&PROT, 0x1_0000_0001), "PROT_READ|0x100000000", "prot is an unsigned long");
    }

    #[test]
    fn zero_has_a_name_or_is_zero() {
        assert_eq!(full(&PROT, 0), "PROT_NONE");
        assert_eq!(full(&ACCESS, 0), "F_OK");
        assert_eq!(perf(&WHENCE, 0), "SET");
        assert_eq!(full(&MSG, 0), "0");
        assert_eq!(full(&MMAP, 0), "0");
        assert_eq!(full(&CLONE, 0), "0");
    }

    #[test]
    fn mixed_values() {
        assert_eq!(full(&MMAP, 0x22), "MAP_PRIVATE|MAP_ANONYMOUS");
        assert_eq!(perf(&MMAP, 0x812), "PRIVATE|FIXED|DENYWRITE");
        assert_eq!(full(&MMAP, 3), "MAP_SHARED_VALIDATE");
        assert_eq!(full(&SOCK, 0o2000001), "SOCK_STREAM|SOCK_CLOEXEC");
        assert_eq!(full(&FUTEX, 128), "FUTEX_WAIT|FUTEX_PRIVATE_FLAG");
        assert_eq!(perf(&FUTEX, 0x189), "WAIT_BITSET|PRIVATE_FLAG|CLOCK_REALTIME");
        assert_eq!(full(&PERSONALITY, 0xffff_ffff), "0xffffffff");
        assert_eq!(full(&PERSONALITY, 0x40000), "PER_LINUX|ADDR_NO_RANDOMIZE");
        assert_eq!(full(&SCHED, 0x4000_0001), "SCHED_FIFO|SCHED_RESET_ON_FORK");
    }

    #[test]
    fn clone_names_its_signal() {
        assert_eq!(perf(&CLONE, 0x0120_0011), "CHILD_CLEARTID|CHILD_SETTID|SIGCHLD");
        assert_eq!(full(&CLONE, 17), "SIGCHLD");
        assert_eq!(full(&CLONE, 0x4111), "CLONE_VM|CLONE_VFORK|SIGCHLD");
    }

    #[test]
    fn unknown_bits_and_values_are_hex() {
        assert_eq!(full(&AT, 0x4000_0100), "AT_SYMLINK_NOFOLLOW|0x40000000");
        assert_eq!(full(&AT, 0x4000_0000), "0x40000000");
        assert_eq!(full(&WHENCE, 99), "99");
        assert_eq!(full(&WHENCE, 0xffff_ffff), "-1");
        assert_eq!(full(&PRCTL, 0x7fff_ffff), "0x7fffffff");
        assert_eq!(full(&IPC, 0o3644), "IPC_CREAT|IPC_EXCL|0644");
    }

    #[test]
    fn ioctls() {
        assert_eq!(full(&IOCTL, 0x5401), "TCGETS");
        assert_eq!(full(&IOCTL, 0x5413), "TIOCGWINSZ");
        assert_eq!(full(&IOCTL, 0x5451), "FIOCLEX");
        assert_eq!(full(&IOCTL, 0xc004_e530), "_IOC(_IOC_READ|_IOC_WRITE, 0xe5, 0x30, 0x4)");
    }

    /// A number that a negative Rust constant widened to, or a name listed after its parts, would make an entry unreachable.
    #[test]
    fn every_entry_is_reachable_and_has_its_prefix() {
        for (set_name, set) in every_set() {
            for &(value, name) in set.bits {
                assert!(set.wide || value <= u64::from(u32::MAX), "{set_name}: {name} = {value:#x}");
                let text = full(set, value);
                let first = set.name(value).unwrap();
                assert!(text.split('|').any(|item| item == first), "{set_name}: {name} is printed as {text}");
            }
        }
    }

    #[test]
    fn no_value_is_silent() {
        for (set_name, set) in every_set() {
            for shift in 0..64 {
                assert!(!full(set, 1 << shift).is_empty(), "{set_name} bit {shift}");
            }
            assert!(!full(set, u64::MAX).is_empty() && !full(set, 0).is_empty());
        }
    }
}
