//! arm64: numbers of registers, and of what is on its stacks.

use std::arch::asm;

use object::elf::EM_AARCH64;

/// Machine of a file in its header.
pub(crate) const ELF_MACHINE: u16 = EM_AARCH64;
/// How sentences call it.
pub(crate) const NAME: &str = "arm64";
/// Registers that are known: x0 to x30, sp, then the instruction pointer, which has no number in DWARF.
pub const REGISTERS: usize = 33;
/// Frame pointer, where code keeps one: x29.
pub(crate) const FP: usize = 29;
/// Stack pointer.
pub(crate) const SP: usize = 31;
/// Instruction pointer.
pub(crate) const IP: usize = 32;
/// Column of the return address in rules.
pub(crate) const RETURN_ADDRESS: usize = 30;
/// Register that has the return address where a function saved none.
pub(crate) const LINK: Option<usize> = Some(RETURN_ADDRESS);
/// The registers that a function preserves: x19 to x29.
pub(crate) const CALLEE_SAVED: [usize; 11] = [19, 20, 21, 22, 23, 24, 25, 26, 27, 28, FP];
/// Most rules of a row: the general registers, eight of vectors that a function preserves, and the state of a signature.
pub(crate) const MAX_RULES: usize = 48;
/// Last operation of DW_OP_breg0 and on that names a register of these.
pub(crate) const LAST_BREG: u8 = 0x8f;
/// A signal that is handled on the interrupted stack leaves a frame with the vector registers on it: of SVE up to 8 KiB, of SME 64 KiB.
pub(crate) const SIGNAL_FRAME: u64 = 128 << 10;
/// Bytes of the largest page.
pub(crate) const PAGE: u64 = 65536;

/// A return address without its signature. The CPU knows which bits are unused with this kernel; one that knows no signatures takes the
/// instruction for a hint that means nothing.
pub(crate) fn strip(address: u64) -> u64 {
    let stripped;
    // SAFETY: xpaclri changes x30 and nothing else.
    unsafe {
        asm!("hint #7", inlateout("x30") address => stripped, options(nomem, nostack, preserves_flags, pure));
    }
    stripped
}

#[cfg(test)]
mod tests {
    use super::strip;

    #[test]
    fn an_address_without_a_signature_stays() {
        assert_eq!(strip(0xaaaa_bbbb_cccc), 0xaaaa_bbbb_cccc);
        assert_eq!(strip(0), 0);
    }
}
