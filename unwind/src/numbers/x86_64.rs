//! x86-64: numbers of registers, and of what is on its stacks.

use object::elf::EM_X86_64;

/// Machine of a file in its header.
pub(crate) const ELF_MACHINE: u16 = EM_X86_64;
/// How sentences call it.
pub(crate) const NAME: &str = "x86-64";
/// Registers that are known: rax rdx rcx rbx rsi rdi rbp rsp r8..r15, then the instruction pointer.
pub const REGISTERS: usize = 17;
/// Frame pointer, where code keeps one: rbp.
pub(crate) const FP: usize = 6;
/// Stack pointer.
pub(crate) const SP: usize = 7;
/// Instruction pointer.
pub(crate) const IP: usize = 16;
/// Column of the return address in rules.
pub(crate) const RETURN_ADDRESS: usize = IP;
/// Register that has the return address where a function saved none; None = it is always on the stack.
pub(crate) const LINK: Option<usize> = None;
/// The registers that a function preserves: rbx, rbp, r12 to r15.
pub(crate) const CALLEE_SAVED: [usize; 6] = [3, FP, 12, 13, 14, 15];
/// Most rules of a row: one of __restore_rt has 17, functions of the Windows convention have 18.
pub(crate) const MAX_RULES: usize = 32;
/// Last operation of DW_OP_breg0 and on that names a register of these.
pub(crate) const LAST_BREG: u8 = 0x7f;
/// A signal that is handled on the interrupted stack leaves a frame of at most some 12 KB (AMX state) on it.
pub(crate) const SIGNAL_FRAME: u64 = 64 << 10;
/// Bytes of the largest page.
pub(crate) const PAGE: u64 = 4096;

/// A return address without what a machine keeps in its unused bits: nothing here.
pub(crate) fn strip(address: u64) -> u64 {
    address
}
