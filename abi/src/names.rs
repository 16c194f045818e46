//! Numbers and names, per ABI.
//!
//! The lists of `numbers` are turned into arrays once, because a lookup happens for every event of a tape.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::Abi;
use crate::numbers::{AARCH64, I386, X86_64};

/// The bit that marks x32 numbers (`__X32_SYSCALL_BIT`, arch/x86/include/uapi/asm/unistd.h).
pub(crate) const X32_BIT: u32 = 0x4000_0000;

/// First and last number of the calls that exist only for x32 (arch/x86/entry/syscalls/syscall_64.tbl, entries marked `x32`).
const X32_ONLY: std::ops::RangeInclusive<u32> = 512..=547;

/// The calls of [`X32_ONLY`], in order: those whose argument layout depends on the size of a pointer.
#[rustfmt::skip]
const X32_NAMES: [&str; 36] = [
    "rt_sigaction", "rt_sigreturn", "ioctl", "readv", "writev", "recvfrom", "sendmsg", "recvmsg", "execve", "ptrace", "rt_sigpending",
    "rt_sigtimedwait", "rt_sigqueueinfo", "sigaltstack", "timer_create", "mq_notify", "kexec_load", "waitid", "set_robust_list",
    "get_robust_list", "vmsplice", "move_pages", "preadv", "pwritev", "rt_tgsigqueueinfo", "recvmmsg", "sendmmsg", "process_vm_readv",
    "process_vm_writev", "setsockopt", "getsockopt", "io_setup", "io_submit", "execveat", "preadv2", "pwritev2",
];

/// Entries marked `64` in syscall_64.tbl that x32 has no own version of.
#[rustfmt::skip]
const NOT_X32: [&str; 13] = [
    "_sysctl", "create_module", "epoll_ctl_old", "epoll_wait_old", "get_kernel_syms", "get_thread_area", "nfsservctl", "query_module",
    "set_thread_area", "uselib", "vserver", "uretprobe", "uprobe",
];

struct Table {
    names: Vec<Option<&'static str>>,
    numbers: HashMap<&'static str, u32>,
}

impl Table {
    fn new(entries: impl Iterator<Item = (u32, &'static str)>) -> Self {
        let mut table = Self { names: Vec::new(), numbers: HashMap::new() };
        for (nr, name) in entries {
            let index = nr as usize;
            if table.names.len() <= index {
                table.names.resize(index + 1, None);
            }
            table.names[index] = Some(name);
            table.numbers.insert(name, nr);
        }
        table
    }
}

fn x32_entries() -> impl Iterator<Item = (u32, &'static str)> {
    let common = X86_64.iter().copied().filter(|(_, name)| !X32_NAMES.contains(name) && !NOT_X32.contains(name));
    common.chain(X32_ONLY.zip(X32_NAMES))
}

/// The table of `abi`, without the x32 bit in its numbers.
fn table(abi: Abi) -> Option<&'static Table> {
    static OF_X86_64: LazyLock<Table> = LazyLock::new(|| Table::new(X86_64.iter().copied()));
    static OF_I386: LazyLock<Table> = LazyLock::new(|| Table::new(I386.iter().copied()));
    static OF_X32: LazyLock<Table> = LazyLock::new(|| Table::new(x32_entries()));
    static OF_AARCH64: LazyLock<Table> = LazyLock::new(|| Table::new(AARCH64.iter().copied()));
    match abi {
        Abi::Unknown => None,
        Abi::X86_64 => Some(&OF_X86_64),
        Abi::I386 => Some(&OF_I386),
        Abi::X32 => Some(&OF_X32),
        Abi::Aarch64 => Some(&OF_AARCH64),
    }
}

/// The index of `nr` in the tables of `abi`: x32 numbers are accepted with and without their bit.
pub(crate) fn index(abi: Abi, nr: u32) -> usize {
    let nr = if abi == Abi::X32 && nr != NO_CALL { nr & !X32_BIT } else { nr };
    nr as usize
}

fn with_bit(abi: Abi, nr: u32) -> u32 {
    if abi == Abi::X32 { nr | X32_BIT } else { nr }
}

/// The kernel's name of call `nr`, or `None` if this version knows none.
///
/// ```
/// # use systape_abi::{Abi, name};
/// assert_eq!(name(Abi::X86_64, 257), Some("openat"));
/// assert_eq!(name(Abi::I386, 5), Some("open"));
/// assert_eq!(name(Abi::X86_64, 100_000), None);
/// ```
pub fn name(abi: Abi, nr: u32) -> Option<&'static str> {
    table(abi)?.names.get(index(abi, nr)).copied().flatten()
}

/// The number of the call `name` in `abi`; x32 numbers carry their bit. Absent if that ABI has no such call.
pub fn number(abi: Abi, name: &str) -> Option<u32> {
    table(abi)?.numbers.get(name).map(|&nr| with_bit(abi, nr))
}

/// The number -1, of no call in any ABI: a tracer answers a call by putting it in place of the call's own (strace's `inject`, proot,
/// gVisor), so that the kernel skips it.
pub const NO_CALL: u32 = u32::MAX;

/// The name of call `nr`, or `sys_451` for a number without one, `sys_-1` for [`NO_CALL`].
pub fn display_name(abi: Abi, nr: u32) -> Cow<'static, str> {
    match name(abi, nr) {
        Some(name) => Cow::Borrowed(name),
        None if nr == NO_CALL => Cow::Borrowed("sys_-1"),
        None => Cow::Owned(format!("sys_{nr}")),
    }
}

/// Every call of `abi` in order of number; empty for [`Abi::Unknown`].
pub fn all(abi: Abi) -> impl Iterator<Item = (u32, &'static str)> {
    let names: &[Option<&'static str>] = table(abi).map_or(&[], |table| &table.names);
    names.iter().enumerate().filter_map(move |(nr, name)| Some((with_bit(abi, nr as u32), (*name)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree_in_every_abi() {
        for abi in Abi::KNOWN {
            let mut count = 0;
            for (nr, text) in all(abi) {
                assert_eq!(name(abi, nr), Some(text), "{abi} {nr}");
                assert_eq!(number(abi, text), Some(nr), "{abi} {text}");
                count += 1;
            }
            assert!(count > 300, "{abi}: {count}");
        }
        assert_eq!(all(Abi::Unknown).count(), 0);
    }

    #[test]
    fn newest_calls_are_known() {
        for (nr, text) in
            [(335, "uretprobe"), (336, "uprobe"), (453, "map_shadow_stack"), (462, "mseal"), (469, "file_setattr")]
        {
            assert_eq!(name(Abi::X86_64, nr), Some(text));
        }
        assert_eq!(name(Abi::I386, 469), Some("file_setattr"));
        assert_eq!(name(Abi::Aarch64, 469), Some("file_setattr"));
        assert_eq!(name(Abi::I386, 17), Some("break"));
    }

    #[test]
    fn x32_has_its_bit_and_its_own_calls() {
        assert_eq!(number(Abi::X32, "read"), Some(X32_BIT));
        assert_eq!(number(Abi::X32, "ioctl"), Some(X32_BIT | 514));
        assert_eq!(name(Abi::X32, X32_BIT | 520), Some("execve"));
        assert_eq!(name(Abi::X32, X32_BIT | 59), None, "59 is execve of the 64-bit ABI only");
        assert_eq!(name(Abi::X86_64, 520), None);
    }

    #[test]
    fn aarch64_has_no_calls_of_32_bit_abis() {
        assert_eq!(name(Abi::Aarch64, 79), Some("newfstatat"));
        assert_eq!(number(Abi::Aarch64, "clock_gettime64"), None);
        assert_eq!(number(Abi::I386, "clock_gettime64"), Some(403));
    }

    #[test]
    fn unknown_numbers_keep_their_digits() {
        assert_eq!(display_name(Abi::X86_64, 9999), "sys_9999");
        assert_eq!(display_name(Abi::Unknown, 0), "sys_0");
        assert_eq!(display_name(Abi::X86_64, 0), "read");
    }
}
