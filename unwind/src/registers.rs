//! Registers by their DWARF numbers.

/// Frame pointer, where code keeps one.
pub(crate) const RBP: usize = 6;
/// Stack pointer.
pub(crate) const RSP: usize = 7;
/// Instruction pointer, and the column of the return address.
pub(crate) const IP: usize = 16;
/// The registers that a function preserves: rbx, rbp, r12 to r15.
pub(crate) const CALLEE_SAVED: [usize; 6] = [3, 6, 12, 13, 14, 15];

/// Registers by their DWARF numbers on x86-64: rax rdx rcx rbx rsi rdi rbp rsp r8..r15, then the instruction pointer (16).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers(pub [u64; 17]);

impl Registers {
    pub(crate) fn ip(&self) -> u64 {
        self.0[IP]
    }

    pub(crate) fn sp(&self) -> u64 {
        self.0[RSP]
    }

    /// By a number that may be anything.
    pub(crate) fn get(&self, number: u16) -> Option<u64> {
        self.0.get(usize::from(number)).copied()
    }
}
