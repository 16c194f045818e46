//! arm64: a call whose registers are known.

use std::arch::asm;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{ALL, Known, MARKS};

/// Words of the kernel's layout of registers (struct pt_regs): x0 to x30, sp, pc, pstate, the first argument of the call, its number.
pub(super) const WORDS: usize = 36;

const SP: usize = 31;
const PC: usize = 32;
const PSTATE: usize = 33;
const FIRST_ARGUMENT: usize = 34;
const NUMBER: usize = 35;
/// PSR_MODE_MASK and PSR_MODE32_BIT: both are 0 in user code of 64 bits.
const MODE: u64 = 0x1f;
const LOW_HALF: u64 = u32::MAX as u64;

/// Reads once from `fd` into `byte`; returns what the kernel returned, and the registers of that call.
pub(super) fn read_once(fd: BorrowedFd<'_>, byte: &mut [u8; 8]) -> (i64, Known) {
    let (number, address) = (u64::from(fd.as_raw_fd().cast_unsigned()), byte.as_mut_ptr() as u64);
    let (result, pc, sp): (i64, u64, u64);
    // SAFETY: read(2) of at most the bytes of the array, which outlives it. The system call changes x0 and nothing else; the stack is
    // left alone.
    unsafe {
        asm!(
            "adr x20, 2f",
            "mov x21, sp",
            "svc #0",
            "2:",
            in("x8") libc::SYS_read,
            inlateout("x0") number => result,
            in("x1") address,
            in("x2") byte.len() as u64,
            in("x3") MARKS[0],
            in("x4") MARKS[1],
            in("x5") MARKS[2],
            out("x20") pc,
            out("x21") sp,
            in("x22") MARKS[3],
            in("x28") MARKS[4],
            options(nostack),
        );
    }
    let known = Known(vec![
        (0, ALL, number),
        (1, ALL, address),
        (2, ALL, byte.len() as u64),
        (3, ALL, MARKS[0]),
        (4, ALL, MARKS[1]),
        (5, ALL, MARKS[2]),
        (8, ALL, libc::SYS_read.cast_unsigned()),
        (20, ALL, pc),
        (21, ALL, sp),
        (22, ALL, MARKS[3]),
        (28, ALL, MARKS[4]),
        (SP, ALL, sp),
        (PC, ALL, pc),
        (PSTATE, MODE, 0),
        (FIRST_ARGUMENT, ALL, number),
        // the upper half is of another field
        (NUMBER, LOW_HALF, libc::SYS_read.cast_unsigned()),
    ]);
    (result, known)
}
