//! arm64: what a frame without rules shows.
//!
//! A call leaves its return address in x30, which a function that calls others keeps on the stack behind the frame pointer x29. With pointer
//! authentication unused bits of a kept address have a signature.

use crate::numbers::{RETURN_ADDRESS, strip};
use crate::registers::Registers;
use crate::stack::{StackCopy, UnwindEnd};

/// Bytes of code asked for at once.
pub const CODE_BYTES: usize = 16;

/// Follows the instructions that run next to the return. Code made at run time keeps a frame pointer here (CPython's trampolines for
/// profilers do), so none is read.
pub(crate) fn follow(
    _code: &[u8; CODE_BYTES],
    _registers: &Registers,
    _stack: &StackCopy<'_>,
) -> Option<Result<Registers, UnwindEnd>> {
    None
}

/// Whether `code` ends with a call: bl, blr, or one of blraaz, blrabz, blraa and blrab.
pub(crate) fn ends_with_call(code: &[u8; CODE_BYTES]) -> bool {
    let Some(last) = code.last_chunk::<4>() else { return false };
    let last = u32::from_le_bytes(*last);
    last >> 26 == 0b10_0101 || last & 0xfeff_f000 == 0xd63f_0000
}

/// The return address in its register, where a function that calls no other leaves it; the stack pointer stays.
pub(crate) fn leaf_return(registers: &Registers, _stack: &StackCopy<'_>) -> Option<(u64, u64)> {
    Some((strip(registers.0[RETURN_ADDRESS]), registers.sp()))
}

/// The registers that a signal interrupted, if the stack pointer is at the kernel's `struct rt_sigframe`. The kernel's own trampoline has no
/// rules, so that unwinders look there (arch/arm64/kernel/vdso/sigreturn.S). The ABI fixes its layout; the head of the floating point
/// state and the state of user code identify it.
pub(crate) fn interrupted(registers: &Registers, stack: &StackCopy<'_>) -> Option<Registers> {
    // siginfo; then of struct ucontext uc_flags, uc_link, uc_stack (3 words), uc_sigmask with room for 1024 signals, to a multiple of 16;
    // of struct sigcontext fault_address
    const CONTEXT: u64 = 128 + 176;
    const REGS: u64 = CONTEXT + 8;
    /// struct fpsimd_context: its magic, and its size above.
    const FPSIMD: u64 = 0x210_4650_8001;
    let word = |at: u64| stack.word(registers.sp().wrapping_add(at)).ok();
    let pstate = word(REGS + 33 * 8)?;
    // of the reserved area, which begins at a multiple of 16
    let first = word(CONTEXT + 8 + 34 * 8 + 8)?;
    if pstate & 0x1f != 0 || first != FPSIMD || word(128 + 8)? != 0 {
        return None;
    }
    let mut interrupted = Registers::default();
    for (i, register) in interrupted.0.iter_mut().enumerate() {
        *register = word(REGS + i as u64 * 8)?;
    }
    Some(interrupted)
}

/// A call of clone or clone3 (its number is in x8) has just returned 0, and the C library keeps the function to run in x10. The rules there
/// are those of the parent's side, so this comes before them.
pub(crate) fn is_new_thread(
    registers: &Registers,
    _stack: &StackCopy<'_>,
    _has_rules: bool,
    mut is_function: impl FnMut(u64) -> bool,
) -> bool {
    const CLONE: u64 = 220;
    const CLONE3: u64 = 435;
    registers.0[0] == 0 && matches!(registers.0[8], CLONE | CLONE3) && is_function(registers.0[10])
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7ffc_0000_1000;

    #[test]
    fn calls() {
        let behind = |word: u32| {
            let mut code = [0; CODE_BYTES];
            code[CODE_BYTES - 4..].copy_from_slice(&word.to_le_bytes());
            code
        };
        // bl, blr x3, blraaz x8, blraa x9, x10
        for call in [0x9400_0010, 0x97ff_fff0, 0xd63f_0060, 0xd63f_091f, 0xd73f_092a] {
            assert!(ends_with_call(&behind(call)), "{call:x}");
        }
        // b, br x3, ret, nop
        for other in [0x1400_0010, 0xd61f_0060, 0xd65f_03c0, 0xd503_201f] {
            assert!(!ends_with_call(&behind(other)), "{other:x}");
        }
    }

    #[test]
    fn a_signal_frame_is_known_by_its_floating_point_state() {
        let mut words = vec![0u64; 160];
        for i in 0..31 {
            words[39 + i] = 1000 + i as u64;
        }
        (words[70], words[71]) = (BASE + 0x2000, 0x40_1234);
        words[74] = 0x210_4650_8001;
        let registers = |words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let stack = StackCopy { base: BASE, bytes: &bytes, absent: 0, cut: true, in_call: false, entry: 0 };
            let mut at = Registers::default();
            at.0[crate::numbers::SP] = BASE;
            interrupted(&at, &stack)
        };
        let found = registers(&words).unwrap();
        assert_eq!((found.0[0], found.0[30], found.sp(), found.ip()), (1000, 1030, BASE + 0x2000, 0x40_1234));
        // kernel mode, a 32-bit program, another state, uc_link
        for (at, word) in [(72, 5), (72, 0x10), (74, 0x4650_8001), (17, 1)] {
            let mut other = words.clone();
            other[at] = word;
            assert_eq!(registers(&other), None, "{at}");
        }
    }
}
