//! From frame to frame.

use crate::module::Module;

/// Registers by their DWARF numbers on x86-64: rax rdx rcx rbx rsi rdi rbp rsp r8..r15, then the instruction pointer (16).
#[derive(Clone, Copy, Debug, Default)]
pub struct Registers(pub [u64; 17]);

/// A copy of the stack from the stack pointer upwards.
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'a> {
    /// Address of the first byte.
    pub base: u64,
    /// The bytes.
    pub bytes: &'a [u8],
    /// Bit i set: the i-th page (the first may begin in mid-page; pages are 4096 bytes of address space) could not be read, its bytes mean nothing.
    pub absent: u64,
}

/// What is mapped at an address.
#[derive(Debug)]
pub enum Code<'a> {
    /// A file that was read.
    Module {
        /// Its unwind information.
        module: &'a Module,
        /// Tells it from every other module: key of the rule cache.
        id: u32,
        /// Address in memory minus address in the file.
        bias: u64,
    },
    /// A file that could not be opened or read.
    NoFile,
    /// Executable memory without a file.
    Jit,
    /// Nothing.
    Nothing,
}

/// An address space.
pub trait AddressSpace {
    /// What is mapped at `address`.
    fn code(&self, address: u64) -> Code<'_>;
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Instruction pointer; a return address unless `exact`.
    pub address: u64,
    /// The instruction itself: the first frame, and what a signal interrupted.
    pub exact: bool,
    /// The trampoline through which a signal handler returns.
    pub signal: bool,
    /// Found by the frame pointer.
    pub guessed: bool,
}

/// Why a stack ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The outermost frame was reached.
    Complete,
    /// More frames than were asked for.
    TooDeep,
    /// The copy ends here, the stack does not.
    Cut,
    /// A page of it could not be read.
    NotResident,
    /// No unwind information, and frame pointers lead nowhere.
    NoUnwindInfo,
    /// The unwind information or the stack makes no sense.
    BadMemory,
    /// A file that could not be opened.
    NoFile,
    /// No mapping.
    NoMapping,
    /// Code made at run time, and frame pointers lead nowhere.
    Jit,
    /// It goes on on another stack.
    OtherStack,
}

/// Unwinds, and remembers the rules it met.
#[derive(Debug)]
pub struct Unwinder {}

impl Unwinder {
    /// Remembers at most `rules` rules.
    pub fn new(_rules: usize) -> Self {
        Self {}
    }

    /// Appends the frames of a stack to `frames`, the innermost first, at most `limit`.
    pub fn unwind(
        &mut self,
        _space: &dyn AddressSpace,
        _registers: &Registers,
        _stack: &StackCopy<'_>,
        _limit: usize,
        _frames: &mut Vec<Found>,
    ) -> End {
        End::NoUnwindInfo
    }

    /// Forgets the rules of a module, so that its id may be used for another.
    pub fn forget(&mut self, _id: u32) {}
}
