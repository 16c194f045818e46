//! Registers by their DWARF numbers.

use crate::numbers::{IP, REGISTERS, RETURN_ADDRESS, SP, strip};

/// Registers by their DWARF numbers on the machine, then the instruction pointer where it has no number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers(pub [u64; REGISTERS]);

impl Default for Registers {
    fn default() -> Self {
        Self([0; REGISTERS])
    }
}

impl Registers {
    /// Length of [`Self::to_bytes`].
    pub const BYTES: usize = 8 * REGISTERS;

    /// Sets the registers to those at a return to `address`, which may be signed.
    pub(crate) fn return_to(&mut self, address: u64) {
        let address = strip(address);
        // where it is a register's, that has it still
        self.0[RETURN_ADDRESS] = address;
        self.0[IP] = address;
    }

    /// Instruction pointer.
    pub fn ip(&self) -> u64 {
        self.0[IP]
    }

    /// Stack pointer.
    pub fn sp(&self) -> u64 {
        self.0[SP]
    }

    /// Writes them as bytes, for another process.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (into, register) in bytes.chunks_exact_mut(8).zip(self.0) {
            into.copy_from_slice(&register.to_le_bytes());
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
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
