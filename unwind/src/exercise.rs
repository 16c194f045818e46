//! One call for fuzzers: a file and a stack of any bytes.

use crate::{AddressSpace, Found, MappedCode, Module, ModuleLimits, Registers, StackCopy, UnwindEnd, Unwinder};

const LIMITS: ModuleLimits = ModuleLimits { unwind_bytes: 16 << 20 };
const FRAMES: usize = 64;

/// The file is mapped at [`Self::BIAS`]; around it are all other kinds of mappings.
struct ExerciseSpace {
    module: Option<Module>,
}

impl ExerciseSpace {
    const BIAS: u64 = 0x10_0000_0000;
    const SIZE: u64 = 0x1_0000_0000;
}

impl AddressSpace for ExerciseSpace {
    fn code(&self, address: u64) -> MappedCode<'_> {
        match (address.wrapping_sub(Self::BIAS) / Self::SIZE, &self.module) {
            (0, Some(module)) => MappedCode::Module { module, id: 1, bias: Self::BIAS },
            (0 | 1, _) => MappedCode::NoFile,
            (2, _) => MappedCode::Jit,
            _ => MappedCode::Nothing,
        }
    }
}

/// Reads `elf` as a file and unwinds with it, cold and warm. `stack` is the registers of 8 bytes each, a byte of flags (bit
/// 0: the copy is cut, bits 1 to 7: absent pages), then the copy. Returns the number of frames. For arbitrary input: it
/// must return.
#[doc(hidden)]
pub fn exercise(elf: &[u8], stack: &[u8]) -> usize {
    let space = ExerciseSpace { module: Module::from_bytes(elf, LIMITS).ok() };
    let Some((registers, rest)) = stack.split_first_chunk::<{ Registers::BYTES }>() else { return 0 };
    let (flags, bytes) = rest.split_first().unwrap_or((&0, &[]));
    let registers = Registers::from_bytes(registers);
    let stack = StackCopy {
        base: registers.sp(),
        bytes,
        absent: (flags >> 1).into(),
        cut: flags & 1 != 0,
        in_call: false,
        entry: 0,
    };
    let mut unwinder = Unwinder::new(64);
    let mut unwind = || {
        let mut frames: Vec<Found> = Vec::new();
        let end: UnwindEnd = unwinder.unwind(&space, &registers, &stack, FRAMES, &mut frames);
        assert!((1..=FRAMES).contains(&frames.len()), "{} frames", frames.len());
        (frames, end)
    };
    let cold = unwind();
    // What was remembered says the same.
    assert_eq!(unwind(), cold);
    cold.0.len()
}
