//! x86-64: a call whose registers are known.

use std::arch::asm;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::Known;

/// Words of the kernel's layout of registers (struct pt_regs).
pub(super) const WORDS: usize = 21;

/// User code of 64 bits: the selector in the low half of the word.
const USER_CS: u64 = 0x33;
/// Values that no other register has.
const MARKS: [u64; 5] =
    [0x5359_5354_4150_4501, 0x5359_5354_4150_4502, 0x5359_5354_4150_4503, 0x5359_5354_4150_4504, 0x5359_5354_4150_4505];

/// The word of the code segment: with FRED it has more in it than the selector.
const CS: usize = 17;
const SELECTOR: u64 = 0xffff;
/// All bits count.
const ALL: u64 = u64::MAX;

/// Reads from `fd` to its end, which must be an iterator without output; returns the registers of these calls.
///
/// # Errors
/// Those of read(2).
pub(crate) fn read_known(fd: BorrowedFd<'_>) -> io::Result<Known> {
    let mut byte = [0u8; 8];
    let (number, address) = (u64::from(fd.as_raw_fd().cast_unsigned()), byte.as_mut_ptr() as u64);
    loop {
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
        match -result {
            0 => {
                return Ok(Known(vec![
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
                ]));
            }
            // it looked at a million tasks without writing
            error if error == i64::from(libc::EAGAIN) || error == i64::from(libc::EINTR) => {}
            error if error > 0 => return Err(io::Error::from_raw_os_error(error as i32)),
            _ => {}
        }
    }
}
