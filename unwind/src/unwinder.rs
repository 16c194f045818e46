//! The walk from frame to frame.
//!
//! A frame's registers and the rules for its address give the caller's registers. A return address is looked up one
//! byte before, because a call may be the last instruction of its function. The instruction that a signal interrupted
//! is looked up as it is; the frame before it is a trampoline, whose CIE has the augmentation 'S' (`__restore_rt`).
//! glibc lets that FDE begin a byte early, so that the lookup by ip - 1 finds it.
//!
//! **Tops.** A stack is complete where the return address is undefined (`_start`, the thread side of clone and clone3
//! in glibc) or 0. Two tops have no FDE and are recognized by their registers: the entry of a process (ld.so's
//! `_start`), with a frame pointer of 0 and argc and argv at the stack pointer; and a new thread on its return from clone
//! or clone3, with 0 as result and its function in a register or on its stack. A chain of frame pointers is complete where
//! the saved one is 0, as in the ABI. Each step of it must lead upwards inside the copy, to an address to which a call may return; the
//! frame there goes by rules again if it has any.
//!
//! **Code made at run time** has no rules. If its bytes are available and the function ends right behind the call,
//! these instructions give the caller (`machine/x86_64.rs`), if a call stands before the address it returns to. It counts as
//! guessed, because the bytes may be newer than the stack.
//!
//! **Without rules** (no FDE, run-time code, a file that cannot be read) the caller is guessed by the frame pointer.
//! For a running instruction in a file with rules elsewhere, the word at the stack pointer is tried before: assembler
//! without rules is mostly a leaf, clone's parent side for one. A signal's trampoline without rules (musl, Go) is
//! recognized by the kernel's data on the stack; that is no guess.
//!
//! **Bounds.** The stack pointer grows from frame to frame, but may stay once for each running instruction (vfork takes
//! its return address off the stack). The rules looked up for one stack may take [`BUDGET`] bytes of entries and
//! expressions.

use crate::evaluate::apply;
use crate::machine::{self, CODE_BYTES};
use crate::numbers::{FP, LINK, SIGNAL_FRAME, SP, strip};
use crate::registers::Registers;
use crate::rules::{Cache, Facts, Known, RuleSource, SAME, Stepped};
use crate::stack::{StackCopy, UnwindEnd};

/// Bytes of entries evaluated for one stack, and 256 for each expression. A cold stack of 100 frames takes about
/// 10,000; a hostile one takes all of it in some 10 ms.
const BUDGET: u64 = 256 << 10;
/// Most arguments of a program; the first word of a stack.
const MAX_ARGC: u64 = 1 << 20;
/// Most bytes of arguments and environment; the kernel allows a quarter of the stack's limit, and 6 MiB.
const MAX_ARGUMENTS: u64 = 64 << 20;

/// The mapping at an address.
#[derive(Clone, Copy, Debug)]
pub enum MappedCode<'a> {
    /// A file that was read.
    Module {
        /// Its unwind information.
        module: &'a dyn RuleSource,
        /// Unique among all modules: key of the rule cache.
        id: u32,
        /// Address in memory minus address in the file.
        bias: u64,
    },
    /// A file that could not be opened or read.
    NoFile,
    /// Executable memory without a file.
    Jit,
    /// No mapping.
    Nothing,
}

/// An address space.
pub trait AddressSpace {
    /// The mapping at `address`.
    fn code(&self, address: u64) -> MappedCode<'_>;

    /// The bytes in memory from `address` on; None = not available. Beyond the end of the memory they are 0xcc.
    fn bytes(&self, _address: u64) -> Option<[u8; CODE_BYTES]> {
        None
    }
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Instruction pointer; a return address unless `exact`.
    pub address: u64,
    /// The instruction itself: the first frame, and one that a signal interrupted.
    pub exact: bool,
    /// The trampoline through which a signal handler returns.
    pub signal: bool,
    /// Guessed from the frame pointer, or from the instructions of code without rules.
    pub guessed: bool,
}

/// Unwinds, with a cache of rules.
#[derive(Debug)]
pub struct Unwinder {
    cache: Cache,
}

/// What a walk looks at: mappings, and what is known of addresses in files.
struct WalkInput<'a> {
    space: &'a dyn AddressSpace,
    cache: &'a mut Cache,
    /// What rules may still cost.
    budget: u64,
}

impl<'a> WalkInput<'a> {
    fn code(&self, address: u64) -> MappedCode<'a> {
        self.space.code(address)
    }

    /// Of an address of a file; None = there is no budget left.
    fn facts(&mut self, module: &dyn RuleSource, id: u32, address: u64) -> Option<Facts> {
        if let Some(facts) = self.cache.get(id, address) {
            return Some(facts);
        }
        let mut left = self.budget;
        let facts = module.facts(address, &mut left)?;
        self.cache.insert(id, address, facts);
        // those have their cost at each step
        if facts.known != Known::Evaluate {
            self.budget = left.min(self.budget);
        }
        Some(facts)
    }

    /// What is known of an address in memory; None = there is no file with rules, or no budget left.
    fn at(&mut self, address: u64) -> Option<Facts> {
        match self.code(address) {
            MappedCode::Module { module, id, bias } => self.facts(module, id, address.wrapping_sub(bias)),
            _ => None,
        }
    }
}

/// Source of the caller.
enum Step {
    /// The frame's registers are now the caller's.
    Caller {
        guessed: bool,
    },
    /// Registers that are now the caller's, by the instructions that run next.
    Read,
    End(UnwindEnd),
}

/// A frame on the way.
struct Frame {
    registers: Registers,
    exact: bool,
    guessed: bool,
    /// The frame before it was one of [`Step::Read`]: its frame pointer is no link of a chain.
    read: bool,
    /// It is the first frame.
    first: bool,
}

impl Frame {
    /// It made no call: its interruption or entry into the kernel is not on this stack.
    fn innermost(&self) -> bool {
        self.exact || self.first
    }
}

impl Unwinder {
    /// Caches at most `rules` rules (and at least 4), 40 bytes each.
    pub fn new(rules: usize) -> Self {
        Self { cache: Cache::new(rules) }
    }

    /// Appends the frames of a stack to `frames`, the innermost first, at most `limit`.
    pub fn unwind(
        &mut self,
        space: &dyn AddressSpace,
        registers: &Registers,
        stack: &StackCopy<'_>,
        limit: usize,
        frames: &mut Vec<Found>,
    ) -> UnwindEnd {
        let mut frame =
            Frame { registers: *registers, exact: !stack.in_call, guessed: false, read: false, first: true };
        let mut look = WalkInput { space, cache: &mut self.cache, budget: BUDGET };
        let mut switched = false;
        for _ in 0..limit {
            let (address, sp) = (frame.registers.ip(), frame.registers.sp());
            let (step, signal) = look.step(&mut frame, stack);
            frames.push(Found { address, exact: frame.exact, signal, guessed: frame.guessed });
            let (guessed, read) = match step {
                Step::Caller { guessed } => (guessed, false),
                Step::Read => (true, true),
                Step::End(UnwindEnd::Cut) if switched => return UnwindEnd::OtherStack,
                Step::End(end) => return end,
            };
            let next = frame.registers.sp();
            let grows = next > sp || next == sp && frame.innermost() || signal && next < stack.base;
            if !grows {
                return UnwindEnd::BadMemory;
            }
            if frame.registers.ip() == 0 {
                return UnwindEnd::Complete;
            }
            switched |= signal && next.wrapping_sub(sp) > SIGNAL_FRAME;
            (frame.exact, frame.guessed, frame.read, frame.first) = (signal, guessed, read, false);
        }
        UnwindEnd::TooDeep
    }

    /// Drops the rules of a module, so that its id may be used for another.
    pub fn forget(&mut self, id: u32) {
        self.cache.forget(id);
    }
}

impl WalkInput<'_> {
    /// The way to the caller, and whether the frame is a signal's trampoline.
    fn step(&mut self, frame: &mut Frame, stack: &StackCopy<'_>) -> (Step, bool) {
        let ip = frame.registers.ip();
        let lookup = if frame.exact { ip } else { ip.wrapping_sub(1) };
        if frame.first && is_new_thread(self, &frame.registers, stack, true) {
            return (Step::End(UnwindEnd::Complete), false);
        }
        match self.code(lookup) {
            MappedCode::Module { module, id, bias } => {
                let address = lookup.wrapping_sub(bias);
                let mut step = self.by_rules(module, id, address, frame, stack);
                // A syscall may be a function's last instruction.
                if step.is_none() && frame.first && frame.exact {
                    step = self.by_rules(module, id, address.wrapping_sub(1), frame, stack);
                }
                step.unwrap_or_else(|| {
                    let leaf = frame.innermost() && module.has_rules();
                    without_rules(self, frame, stack, leaf, UnwindEnd::NoUnwindInfo)
                })
            }
            MappedCode::NoFile => without_rules(self, frame, stack, false, UnwindEnd::NoFile),
            MappedCode::Jit => without_rules(self, frame, stack, false, UnwindEnd::Jit),
            // A call through a null pointer has left its return address. Elsewhere the way here was wrong already.
            MappedCode::Nothing if frame.innermost() => {
                (leaf_caller(self, frame, stack).unwrap_or(Step::End(UnwindEnd::NoMapping)), false)
            }
            MappedCode::Nothing => (Step::End(UnwindEnd::NoMapping), false),
        }
    }

    /// None: there are no rules.
    fn by_rules(
        &mut self,
        module: &dyn RuleSource,
        id: u32,
        address: u64,
        frame: &mut Frame,
        stack: &StackCopy<'_>,
    ) -> Option<(Step, bool)> {
        let Some(facts) = self.facts(module, id, address) else {
            return Some((Step::End(UnwindEnd::BadMemory), false));
        };
        let registers = &mut frame.registers;
        match facts.known {
            // a function that called another has kept its return address
            Known::Rule(rule) if rule.return_address == SAME && LINK.is_some() && !frame.exact && !frame.first => {
                Some((Step::End(UnwindEnd::BadMemory), rule.signal))
            }
            Known::Rule(rule) => {
                let step = match apply(&rule, registers, stack) {
                    Ok(()) => Step::Caller { guessed: false },
                    Err(end) => Step::End(end),
                };
                Some((step, rule.signal))
            }
            Known::Evaluate => {
                let Stepped { caller, signal } = module.step(address, registers, stack, &mut self.budget);
                let step = match caller {
                    Ok(Some(caller)) => {
                        *registers = caller;
                        Step::Caller { guessed: false }
                    }
                    Ok(None) => Step::End(UnwindEnd::Complete),
                    Err(end) => Step::End(end),
                };
                Some((step, signal))
            }
            Known::Top => Some((Step::End(UnwindEnd::Complete), false)),
            Known::Bad => Some((Step::End(UnwindEnd::BadMemory), false)),
            Known::NoFde => None,
        }
    }
}

/// A top without rules, a signal's frame, or a guess; and whether it was a signal's. `leaf`: the return address may be
/// at the stack pointer. `reason`: why there are no rules.
fn without_rules(
    look: &mut WalkInput<'_>,
    frame: &mut Frame,
    stack: &StackCopy<'_>,
    leaf: bool,
    reason: UnwindEnd,
) -> (Step, bool) {
    if let Some(registers) = interrupted(look, &frame.registers, stack) {
        frame.registers = registers;
        return (Step::Caller { guessed: false }, true);
    }
    if is_process_entry(&frame.registers, stack) || frame.first && is_new_thread(look, &frame.registers, stack, false) {
        return (Step::End(UnwindEnd::Complete), false);
    }
    let caller = match reason {
        UnwindEnd::Jit => by_instructions(look, frame, stack),
        _ if leaf => leaf_caller(look, frame, stack),
        _ => None,
    };
    (caller.unwrap_or_else(|| by_frame_pointer(look, frame, stack, reason)), false)
}

/// The registers that a signal interrupted, if the stack pointer is at what the kernel leaves there.
fn interrupted(look: &WalkInput<'_>, registers: &Registers, stack: &StackCopy<'_>) -> Option<Registers> {
    machine::interrupted(registers, stack).filter(|found| !matches!(look.code(found.ip()), MappedCode::Nothing))
}

/// The stack pointer is that of the beginning, or lower by what `_start` has pushed. If that is not known: the frame pointer is 0,
/// and at the stack pointer, or up to two words above (pushed by `_start`), are argc and argv with its end. The kernel
/// puts the arguments' bytes above it all.
fn is_process_entry(registers: &Registers, stack: &StackCopy<'_>) -> bool {
    let sp = registers.sp();
    if stack.entry != 0 && stack.entry.wrapping_sub(sp) <= 16 {
        return true;
    }
    let entry_at = |sp: u64| {
        let Ok(argc @ 1..MAX_ARGC) = stack.word(sp) else { return false };
        let argument = |i: u64| stack.word(sp.wrapping_add(8 + i * 8));
        let is_above = |argument: Result<u64, UnwindEnd>| argument.is_ok_and(|a| a > sp && a - sp < MAX_ARGUMENTS);
        is_above(argument(0)) && is_above(argument(argc - 1)) && argument(argc) == Ok(0)
    };
    registers.0[FP] == 0 && [0, 8, 16].into_iter().any(|above| entry_at(sp.wrapping_add(above)))
}

/// The thread has just been made: what its stack pointer leads to is not its caller.
fn is_new_thread(look: &mut WalkInput<'_>, registers: &Registers, stack: &StackCopy<'_>, has_rules: bool) -> bool {
    machine::is_new_thread(registers, stack, has_rules, |address| look.at(address).is_some_and(|facts| facts.begins))
}

/// The caller, if the frame's function ends right behind the call.
fn by_instructions(look: &mut WalkInput<'_>, frame: &mut Frame, stack: &StackCopy<'_>) -> Option<Step> {
    let code = look.space.bytes(frame.registers.ip())?;
    let caller = match machine::follow(&code, &frame.registers, stack)? {
        Ok(caller) => caller,
        Err(end @ (UnwindEnd::Cut | UnwindEnd::NotResident)) => return Some(Step::End(end)),
        Err(_) => return None,
    };
    // The code may have been replaced since.
    let called = |address: u64| {
        look.space.bytes(address.wrapping_sub(CODE_BYTES as u64)).is_some_and(|code| machine::ends_with_call(&code))
    };
    if !may_return_to(look, caller.ip()) || !called(caller.ip()) {
        return None;
    }
    frame.registers = caller;
    Some(Step::Read)
}

/// What a call has left as return address, if it points into code with rules.
fn leaf_caller(look: &mut WalkInput<'_>, frame: &mut Frame, stack: &StackCopy<'_>) -> Option<Step> {
    let (address, sp) = machine::leaf_return(&frame.registers, stack)?;
    look.at(address.wrapping_sub(1)).filter(|facts| facts.covers)?;
    frame.registers.return_to(address);
    frame.registers.0[SP] = sp;
    Some(Step::Caller { guessed: true })
}

/// Whether a call may return to `address`. A pointer to a function does not qualify: if a register that is no frame
/// pointer leads to a structure on the stack, there are such pointers in it.
fn may_return_to(look: &mut WalkInput<'_>, address: u64) -> bool {
    if matches!(look.code(address.wrapping_sub(1)), MappedCode::Nothing) {
        return false;
    }
    !matches!(look.code(address), MappedCode::Module { .. }) || look.at(address).is_some_and(|facts| !facts.begins)
}

fn by_frame_pointer(look: &mut WalkInput<'_>, frame: &mut Frame, stack: &StackCopy<'_>, reason: UnwindEnd) -> Step {
    let pointer = frame.registers.0[FP];
    if pointer == 0 && frame.guessed && !frame.read {
        return Step::End(UnwindEnd::Complete);
    }
    // Just above a cut copy it is still believed in: the read says Cut.
    let near = frame.registers.sp()..stack.end().saturating_add(if stack.cut { SIGNAL_FRAME } else { 0 });
    if !near.contains(&pointer) || !pointer.is_multiple_of(8) {
        return Step::End(reason);
    }
    let (saved, address) = match (stack.word(pointer), stack.word(pointer.wrapping_add(8))) {
        (Ok(saved), Ok(address)) => (saved, strip(address)),
        (Err(end @ (UnwindEnd::Cut | UnwindEnd::NotResident)), _)
        | (_, Err(end @ (UnwindEnd::Cut | UnwindEnd::NotResident))) => {
            return Step::End(end);
        }
        _ => return Step::End(reason),
    };
    if address != 0 && !may_return_to(look, address) {
        return Step::End(reason);
    }
    let registers = &mut frame.registers;
    registers.return_to(address);
    registers.0[FP] = saved;
    registers.0[SP] = pointer.wrapping_add(16);
    Step::Caller { guessed: true }
}
