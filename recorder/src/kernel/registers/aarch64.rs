//! arm64: a call whose registers are known.

use std::arch::asm;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::Known;

/// Words of the kernel's layout of registers (struct pt_regs): x0 to x30, sp, pc, pstate, the first argument of the call, its number.
pub(super) const WORDS: usize = 36;

const SP: usize = 31;
const PC: usize = 32;
const PSTATE: usize = 33;
const FIRST_ARGUMENT: usize = 34;
const NUMBER: usize = 35;
/// PSR_MODE_MASK and PSR_MODE32_BIT: both are 0 in user code of 64 bits.
const MODE: u64 = 0x1f;
/// All bits count.
const ALL: u64 = u64::MAX;
const LOW_HALF: u64 = u32::MAX as u64;
/// Values that no other register has.
const MARKS: [u64; 5] =
    [0x5359_5354_4150_4501, 0x5359_5354_4150_4502, 0x5359_5354_4150_4503, 0x5359_5354_4150_4504, 0x5359_5354_4150_4505];

/// Reads from `fd` to its end, which must be an iterator without output; returns the registers of these calls.
///
/// # Errors
/// Those of read(2).
pub(crate) fn read_known(fd: BorrowedFd<'_>) -> io::Result<Known> {
    let mut byte = [0u8; 8];
    let (number, address) = (u64::from(fd.as_raw_fd().cast_unsigned()), byte.as_mut_ptr() as u64);
    loop {
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
        match -result {
            0 => {
                return Ok(Known(vec![
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
                ]));
            }
            // it looked at a million tasks without writing
            error if error == i64::from(libc::EAGAIN) || error == i64::from(libc::EINTR) => {}
            error if error > 0 => return Err(io::Error::from_raw_os_error(error as i32)),
            _ => {}
        }
    }
}
