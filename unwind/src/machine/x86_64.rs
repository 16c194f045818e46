//! x86-64: what a frame without rules shows.
//!
//! **The end of a function.** CPython's trampolines for profilers (`python3 -X perf`: `sub $8,%rsp ; call *%rcx ; add $8,%rsp ; ret`) have
//! neither rules nor a frame pointer, and the code around them keeps no frame pointer either. Behind the call is the end of the
//! function: its instructions, followed one by one, give the caller's registers, as the CPU will compute them. A word
//! that merely looks like a return address is never used, because unused parts of frames have words of earlier calls.

use crate::bytes::{i32_at, u32_at};
use crate::numbers::{FP, IP, SIGNAL_FRAME, SP};
use crate::registers::Registers;
use crate::stack::{StackCopy, UnwindEnd};

/// Bytes of code asked for at once.
pub const CODE_BYTES: usize = 16;

/// Follows `code`, the instructions that run next, to the return. None: it is not the end of a function.
pub(crate) fn follow(
    code: &[u8; CODE_BYTES],
    registers: &Registers,
    stack: &StackCopy<'_>,
) -> Option<Result<Registers, UnwindEnd>> {
    let mut after = *registers;
    let mut rest = &code[..];
    loop {
        let length = match *rest {
            [0x90, ..] => 1,
            // vzeroupper
            [0xc5, 0xf8, 0x77, ..] => 3,
            // add $imm,%rsp
            [0x48, 0x83, 0xc4, by @ 0..=0x7f, ..] => {
                after.0[SP] = after.sp().wrapping_add(by.into());
                4
            }
            [0x48, 0x81, 0xc4, ..] => {
                let by = i32_at(rest, 3).and_then(|by| u64::try_from(by).ok())?;
                after.0[SP] = after.sp().wrapping_add(by);
                7
            }
            // pop
            [0x58..=0x5f, ..] => {
                let register = POP[usize::from(rest[0] - 0x58)];
                if let Err(end) = word_step(&mut after, register, stack) {
                    return Some(Err(end));
                }
                1
            }
            [0x41, 0x58..=0x5f, ..] => {
                let register = usize::from(rest[1] - 0x58) + 8;
                if let Err(end) = word_step(&mut after, register, stack) {
                    return Some(Err(end));
                }
                2
            }
            // leave
            [0xc9, ..] => {
                after.0[SP] = after.0[FP];
                if let Err(end) = word_step(&mut after, FP, stack) {
                    return Some(Err(end));
                }
                1
            }
            [0xc3, ..] | [0xf3, 0xc3, ..] => return Some(word_step(&mut after, IP, stack).map(|()| after)),
            _ => return None,
        };
        rest = &rest[length..];
    }
}

/// DWARF's numbers of the registers, in the order of the instructions' numbers.
const POP: [usize; 8] = [0, 2, 1, 3, SP, FP, 4, 5];

/// Takes the word at the stack pointer into `register`, as pop and ret do.
fn word_step(registers: &mut Registers, register: usize, stack: &StackCopy<'_>) -> Result<(), UnwindEnd> {
    let sp = registers.sp();
    let word = stack.word(sp)?;
    registers.0[SP] = sp.wrapping_add(8);
    registers.0[register] = word;
    Ok(())
}

/// Whether `code` ends with a call.
pub(crate) fn ends_with_call(code: &[u8; CODE_BYTES]) -> bool {
    let end = CODE_BYTES as u64;
    let direct = code[CODE_BYTES - 5] == 0xe8 && u32_at(code, end - 4).is_some();
    // ff /2: the operand says how long it is.
    let indirect = |length: usize| {
        let [0xff, operand, ..] = code[CODE_BYTES - length..] else { return false };
        let (form, number, base) = (operand >> 6, operand >> 3 & 7, operand & 7);
        let index_byte = form != 3 && base == 4;
        let displacement = match form {
            0 if base == 5 => 4,
            0 if index_byte && code.get(CODE_BYTES - length + 2).is_some_and(|sib| sib & 7 == 5) => 4,
            1 => 1,
            2 => 4,
            _ => 0,
        };
        number == 2 && length == 2 + usize::from(index_byte) + displacement
    };
    direct || (2..=7).any(indirect)
}

/// The word at the stack pointer, where a call has left it, and the stack pointer behind its return.
pub(crate) fn leaf_return(registers: &Registers, stack: &StackCopy<'_>) -> Option<(u64, u64)> {
    let sp = registers.sp();
    Some((stack.word(sp).ok()?, sp.wrapping_add(8)))
}

/// The registers that a signal interrupted, if the stack pointer is at the kernel's `struct ucontext` (the trampolines
/// of musl and Go have no rules). The ABI fixes its layout; the segment registers, the flags and the pointer to the
/// floating point state identify it.
pub(crate) fn interrupted(registers: &Registers, stack: &StackCopy<'_>) -> Option<Registers> {
    // uc_flags, uc_link, uc_stack (3 words), then r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags, segments, 4 words, fpstate.
    const ORDER: [usize; 17] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, FP, 3, 1, 0, 2, SP, IP];
    let sp = registers.sp();
    let word = |i: u64| stack.word(sp.wrapping_add(i * 8)).ok();
    let (segments, flags) = (word(23)?, word(22)?);
    let user_code = segments & 0xffff == 0x33 && matches!(segments >> 48, 0 | 0x2b);
    // Bit 1 of the flags is always set, bit 9 (interrupts) is in user mode; 22 and up are none.
    if !user_code || flags & 0x202 != 0x202 || flags >> 22 != 0 || word(0)? > 0xff {
        return None;
    }
    let state = word(28)?;
    if state != 0 && !(state.is_multiple_of(16) && state.wrapping_sub(sp) < SIGNAL_FRAME) {
        return None;
    }
    let mut interrupted = Registers::default();
    for (i, register) in ORDER.into_iter().enumerate() {
        interrupted.0[register] = word(5 + i as u64)?;
    }
    Some(interrupted)
}

/// A syscall (it leaves the instruction pointer in rcx) has just returned 0, and a function to run is in rdx (clone3)
/// or on the stack (clone). Only of code without rules: `has_rules` = it has some.
pub(crate) fn is_new_thread(
    registers: &Registers,
    stack: &StackCopy<'_>,
    has_rules: bool,
    mut is_function: impl FnMut(u64) -> bool,
) -> bool {
    let [rax, rdx, rcx, ..] = registers.0;
    !has_rules
        && rax == 0
        && registers.ip().wrapping_sub(rcx) < 16
        && (is_function(rdx) || stack.word(registers.sp()).is_ok_and(is_function))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7ffc_0000_1000;

    fn code(bytes: &[u8]) -> [u8; CODE_BYTES] {
        let mut code = [0xcc; CODE_BYTES];
        code[..bytes.len()].copy_from_slice(bytes);
        code
    }

    fn behind(bytes: &[u8]) -> [u8; CODE_BYTES] {
        let mut code = [0xcc; CODE_BYTES];
        code[CODE_BYTES - bytes.len()..].copy_from_slice(bytes);
        code
    }

    /// The caller's (ip, sp, rbp, rbx), on a stack whose i-th word is 100 + i.
    fn caller(bytes: &[u8]) -> Option<Result<[u64; 4], UnwindEnd>> {
        let words: Vec<u8> = (100..108u64).flat_map(u64::to_le_bytes).collect();
        let stack = StackCopy { base: BASE, bytes: &words, absent: 0, cut: true, in_call: false, entry: 0 };
        let mut registers = Registers::default();
        (registers.0[SP], registers.0[FP], registers.0[3]) = (BASE, BASE + 16, 7);
        follow(&code(bytes), &registers, &stack).map(|after| after.map(|r| [r.ip(), r.sp() - BASE, r.0[FP], r.0[3]]))
    }

    #[test]
    fn ends_of_functions_are_followed() {
        assert_eq!(caller(&[0xc3]), Some(Ok([100, 8, BASE + 16, 7])));
        assert_eq!(caller(&[0x48, 0x83, 0xc4, 8, 0xc3]), Some(Ok([101, 16, BASE + 16, 7])), "CPython's trampoline");
        assert_eq!(caller(&[0x48, 0x81, 0xc4, 24, 0, 0, 0, 0xc3]), Some(Ok([103, 32, BASE + 16, 7])));
        assert_eq!(caller(&[0x5b, 0x5d, 0xc3]), Some(Ok([102, 24, 101, 100])));
        assert_eq!(caller(&[0x41, 0x5f, 0xf3, 0xc3]), Some(Ok([101, 16, BASE + 16, 7])));
        assert_eq!(caller(&[0xc9, 0xc3]), Some(Ok([103, 32, 102, 7])));
    }

    #[test]
    fn anything_else_is_none() {
        for other in [
            &[][..],
            &[0x48, 0x83, 0xc4, 0xf8, 0xc3],
            &[0x48, 0x83, 0xc4, 8],
            &[0x48, 0x81, 0xc4, 0, 0, 0, 0x80, 0xc3],
            &[0x48, 0x89, 0xd8, 0xc3],
            &[0xeb, 0x00, 0xc3],
            &[0x90; CODE_BYTES],
        ] {
            assert_eq!(caller(other), None, "{other:x?}");
        }
        assert_eq!(caller(&[0x48, 0x83, 0xc4, 64, 0xc3]), Some(Err(UnwindEnd::Cut)));
    }

    #[test]
    fn calls() {
        for call in [
            &[0xe8, 1, 2, 3, 4][..],
            &[0xff, 0xd1],
            &[0xff, 0x10],
            &[0xff, 0x53, 8],
            &[0xff, 0x54, 0x24, 8],
            &[0xff, 0x15, 1, 2, 3, 4],
            &[0xff, 0x90, 1, 2, 3, 4],
            &[0xff, 0x14, 0xc5, 1, 2, 3, 4],
            &[0xff, 0x94, 0x24, 1, 2, 3, 4],
        ] {
            assert!(ends_with_call(&behind(call)), "{call:x?}");
        }
        for other in [&[][..], &[0xe9, 1, 2, 3, 4], &[0xff, 0xe1], &[0xff, 0x15, 1, 2, 3], &[0xff, 0xd1, 0x90]] {
            assert!(!ends_with_call(&behind(other)), "{other:x?}");
        }
    }
}
