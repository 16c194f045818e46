//! Whether the programs find the registers with which tasks entered the kernel (bpf/src/c/registers.bpf.h). Calls of
//! signals' senders, calls that began before the recording and user stacks come from them. Their place depends on the
//! kernel's build, and a program that reads another place gets no error. So the programs read those of a call made
//! here, with known registers.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("record knows the registers of x86_64 and aarch64 alone");

#[cfg(target_arch = "aarch64")]
use aarch64::{WORDS, read_once};
#[cfg(target_arch = "x86_64")]
use x86_64::{WORDS, read_once};

use std::io;
use std::os::fd::BorrowedFd;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{DataSec, Var};

/// Values that no other register has.
const MARKS: [u64; 5] =
    [0x5359_5354_4150_4501, 0x5359_5354_4150_4502, 0x5359_5354_4150_4503, 0x5359_5354_4150_4504, 0x5359_5354_4150_4505];
/// All bits of a register count.
const ALL: u64 = u64::MAX;

/// A task's registers in the kernel's layout (struct pt_regs).
pub(crate) type PtRegs = [u64; WORDS];

/// TOP_OF_KERNEL_STACK_PADDING of kernels that can run FRED.
const FRED_PADDING: u32 = 16;
/// The note of a recording without registers.
pub(crate) const UNKNOWN: &str = "the registers of tasks in the kernel are not where this kernel is expected to keep them: how signals were sent, calls that began before the recording, and user stacks are unknown; an interrupt of user code is taken for the task it interrupted, as the sender of a signal or a waker";

/// Bytes between a task's registers and the top of its stack, for kernels without a helper that finds them.
pub(crate) fn padding(btf: &Btf<'_>) -> u32 {
    let Some(section) = btf.type_by_name::<DataSec<'_>>(".data..percpu") else { return 0 };
    let fred = |id| btf.type_by_id::<Var<'_>>(id).is_some_and(|var| var.name().is_some_and(|name| name == "fred_rsp0"));
    if section.iter().any(|var| fred(var.ty)) { FRED_PADDING } else { 0 }
}

/// Whether this machine enters the kernel by FRED, by the text of /proc/cpuinfo: without its use by the kernel there is
/// no flag.
pub(crate) fn runs_fred(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "fred"))
}

/// A register of the call: the place of its word among [`PtRegs`], the bits that count, and the expected value.
pub(crate) type KnownWord = (usize, u64, u64);

/// The registers of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known(pub(crate) Vec<KnownWord>);

impl Known {
    /// Whether `read` are the registers of that call.
    pub(crate) fn agrees(&self, read: &PtRegs) -> bool {
        self.0.iter().all(|&(at, bits, value)| read[at] & bits == value)
    }
}

/// Reads from `fd` to its end, which must be an iterator without output; returns the registers of these calls.
///
/// # Errors
/// Those of read(2).
pub(crate) fn read_known(fd: BorrowedFd<'_>) -> io::Result<Known> {
    // one for all: any of these calls may be the one that the programs see
    let mut byte = [0u8; 8];
    loop {
        let (result, known) = read_once(fd, &mut byte);
        match -result {
            0 => return Ok(known),
            // it looked at a million tasks without writing
            error if error == i64::from(libc::EAGAIN) || error == i64::from(libc::EINTR) => {}
            error if error > 0 => return Err(io::Error::from_raw_os_error(error as i32)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn registers_beside_the_true_ones_disagree() {
        let known = read_known(File::open("/dev/null").unwrap().as_fd()).unwrap();
        let mut stack = [0u64; WORDS + 6];
        for &(at, bits, value) in &known.0 {
            // what does not count may be anything
            stack[3 + at] = value | !bits & 1 << 57;
        }
        let read = |from: usize| -> PtRegs { stack[from..from + WORDS].try_into().unwrap() };
        assert!(known.agrees(&read(3)));
        // two words are the padding of FRED
        for beside in [0, 1, 2, 4, 5, 6] {
            assert!(!known.agrees(&read(beside)), "{beside}");
        }
        for &(at, ..) in &known.0 {
            let mut other = read(3);
            other[at] ^= 0x10;
            assert!(!known.agrees(&other), "register {at}");
        }
    }

    #[test]
    fn fred_is_a_flag_of_the_cpu() {
        assert!(runs_fred("processor\t: 0\nflags\t\t: fpu fred lkgs\nbugs\t\t: x\n"));
        assert!(!runs_fred("processor\t: 0\nmodel name\t: fred\nflags\t\t: fpu lkgs freddy\n") && !runs_fred(""));
    }

    #[test]
    fn errors_of_the_call_are_told() {
        let write_only = File::options().write(true).open("/dev/null").unwrap();
        assert_eq!(read_known(write_only.as_fd()).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}
