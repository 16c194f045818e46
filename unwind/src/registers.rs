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

    /// Writes them as bytes, for another process.
    pub fn to_bytes(&self) -> [u8; 136] {
        let mut bytes = [0; 136];
        for (into, register) in bytes.chunks_exact_mut(8).zip(self.0) {
            into.copy_from_slice(&register.to_le_bytes());
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8; 136]) -> Self {
        let mut registers = Self::default();
        for (register, bytes) in registers.0.iter_mut().zip(bytes.as_chunks().0) {
            *register = u64::from_le_bytes(*bytes);
        }
        registers
    }

    /// Value of a register by a number that may be anything.
    pub(crate) fn get(&self, number: u16) -> Option<u64> {
        self.0.get(usize::from(number)).copied()
    }
}
