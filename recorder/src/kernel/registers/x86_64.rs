//! x86-64: a call whose registers are known.

use std::arch::asm;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{ALL, Known, MARKS};

/// Words of the kernel's layout of registers (struct pt_regs).
pub(super) const WORDS: usize = 21;

/// User code of 64 bits: the selector in the low half of the word.
const USER_CS: u64 = 0x33;
/// The word of the code segment: with FRED it has more in it than the selector.
const CS: usize = 17;
const SELECTOR: u64 = 0xffff;

/// Reads once from `fd` into `byte`; returns what the kernel returned, and the registers of that call.
pub(super) fn read_once(fd: BorrowedFd<'_>, byte: &mut [u8; 8]) -> (i64, Known) {
    let (number, address) = (u64::from(fd.as_raw_fd().cast_unsigned()), byte.as_mut_ptr() as u64);
    let (result, ip, sp): (i64, u64, u64);
    // SAFETY: read(2) of at most the bytes of the array, which outlives it. The system call changes rax, rcx and r11 and nothing else;
    // the red zone below the stack pointer is left alone.
    unsafe {
        asm!(
            "lea r12, [rip + 2f]",
            "mov r13, rsp",
            "syscall",
            "2:",
            inlateout("rax") libc::SYS_read => result,
            in("rdi") number,
            in("rsi") address,
            in("rdx") byte.len() as u64,
            in("r8") MARKS[0],
            in("r9") MARKS[1],
            in("r10") MARKS[2],
            out("r12") ip,
            out("r13") sp,
            in("r14") MARKS[3],
            in("r15") MARKS[4],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    let known = Known(vec![
        (0, ALL, MARKS[4]),
        (1, ALL, MARKS[3]),
        (2, ALL, sp),
        (3, ALL, ip),
        (7, ALL, MARKS[2]),
        (8, ALL, MARKS[1]),
        (9, ALL, MARKS[0]),
        (12, ALL, byte.len() as u64),
        (13, ALL, address),
        (14, ALL, number),
        (15, ALL, libc::SYS_read.cast_unsigned()),
        (16, ALL, ip),
        (CS, SELECTOR, USER_CS),
        (19, ALL, sp),
    ]);
    (result, known)
}
