//! From the registers of a frame to those of its caller, by a row of rules.

use gimli::{
    CfaRule, Encoding, EndianSlice, Evaluation, EvaluationResult, EvaluationStorage, Format, LittleEndian, Location,
    Piece, Reader, Register, RegisterRule, UnwindExpression, Value,
};

use crate::cfi::Rules;
use crate::numbers::{CALLEE_SAVED, LINK, SP};
use crate::registers::Registers;
use crate::rules::{Rule, SAME};
use crate::stack::{StackCopy, UnwindEnd};

/// Most operations of one expression; .plt has 11, a loop could have any number.
const MAX_OPERATIONS: u32 = 256;
const ENCODING: Encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: 8 };

/// Stack size of one expression.
struct Storage;

impl<R: Reader> EvaluationStorage<R> for Storage {
    type Stack = [Value; 64];
    type ExpressionStack = [(R, R); 1];
    type Result = [Piece<R>; 1];
}

/// Compilers do not describe where an epilogue pops a register: its rule still names the place, now just below the
/// stack pointer. The register has its value already.
fn is_popped(address: u64, registers: &Registers) -> bool {
    address < registers.sp()
}

/// Steps by the most frequent kind of rules. `registers` become the caller's; after an error they are a mixture.
#[inline]
pub(crate) fn apply(rule: &Rule, registers: &mut Registers, stack: &StackCopy<'_>) -> Result<(), UnwindEnd> {
    let base = registers.get(rule.cfa_register.into()).ok_or(UnwindEnd::BadMemory)?;
    let mut cfa = base.wrapping_add_signed(rule.cfa_offset.into());
    if rule.cfa_is_loaded {
        cfa = stack.word(cfa)?;
    }
    let return_address = match (rule.return_address, LINK) {
        (SAME, Some(link)) => registers.0[link],
        (at, _) => stack.word(cfa.wrapping_add_signed(at.into()))?,
    };
    for (register, offset) in CALLEE_SAVED.into_iter().zip(rule.saved) {
        if offset == SAME {
            continue;
        }
        let address = cfa.wrapping_add_signed(offset.into());
        if !is_popped(address, registers) {
            registers.0[register] = stack.word(address)?;
        }
    }
    registers.return_to(return_address);
    registers.0[SP] = cfa;
    Ok(())
}

/// Steps by any rules. Registers without a rule keep their value, as in every unwinder on Linux. None: the return address is
/// undefined, there is no caller.
pub(crate) fn evaluate(
    rules: &Rules<'_>,
    registers: &Registers,
    stack: &StackCopy<'_>,
    budget: &mut u64,
) -> Result<Option<Registers>, UnwindEnd> {
    let mut eval = Eval { rules, registers, stack, budget };
    let cfa = match rules.row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => eval.register(*register)?.wrapping_add_signed(*offset),
        CfaRule::Expression(e) => eval.expression(*e, None)?,
    };
    let mut caller = *registers;
    caller.0[SP] = cfa;
    let mut return_address = None;
    for (register, rule) in rules.row.registers() {
        // A number above the last is a vector register or nonsense; only the column of the return address may be any.
        let is_return_address = *register == rules.return_address;
        let slot = caller.0.get_mut(usize::from(register.0));
        if slot.is_none() && !is_return_address {
            continue;
        }
        let value = match rule {
            RegisterRule::Undefined if is_return_address => return Ok(None),
            RegisterRule::Undefined | RegisterRule::SameValue => continue,
            RegisterRule::Offset(offset)
                if !is_return_address && is_popped(cfa.wrapping_add_signed(*offset), registers) =>
            {
                continue;
            }
            RegisterRule::Offset(offset) => stack.word(cfa.wrapping_add_signed(*offset))?,
            RegisterRule::ValOffset(offset) => cfa.wrapping_add_signed(*offset),
            RegisterRule::Register(other) => eval.register(*other)?,
            RegisterRule::Expression(e) => {
                let address = eval.expression(*e, Some(cfa))?;
                // GCC goes on to say "where rbp points" in the epilogue of a function that realigned its stack, when rbp is the caller's again.
                if !rules.signal && !is_return_address && !(registers.sp()..cfa).contains(&address) {
                    continue;
                }
                stack.word(address)?
            }
            RegisterRule::ValExpression(e) => eval.expression(*e, Some(cfa))?,
            _ => return Err(UnwindEnd::BadMemory),
        };
        if is_return_address {
            return_address = Some(value);
        }
        if let Some(slot) = slot {
            *slot = value;
        }
    }
    let return_address = return_address.or_else(|| registers.0.get(LINK?).copied());
    caller.return_to(return_address.ok_or(UnwindEnd::BadMemory)?);
    Ok(Some(caller))
}

struct Eval<'a> {
    rules: &'a Rules<'a>,
    registers: &'a Registers,
    stack: &'a StackCopy<'a>,
    budget: &'a mut u64,
}

impl Eval<'_> {
    fn register(&self, register: Register) -> Result<u64, UnwindEnd> {
        self.registers.get(register.0).ok_or(UnwindEnd::BadMemory)
    }

    fn expression(&mut self, expression: UnwindExpression<usize>, cfa: Option<u64>) -> Result<u64, UnwindEnd> {
        *self.budget = self.budget.checked_sub(MAX_OPERATIONS.into()).ok_or(UnwindEnd::BadMemory)?;
        let bytes = expression.offset.checked_add(expression.length);
        let bytes = bytes.and_then(|end| self.rules.section.get(expression.offset..end)).ok_or(UnwindEnd::BadMemory)?;
        let bytes = EndianSlice::new(bytes, LittleEndian);
        let mut evaluation = Evaluation::<_, Storage>::new_in(bytes, ENCODING);
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(cfa) = cfa {
            evaluation.set_initial_value(cfa);
        }
        let bad = |_| UnwindEnd::BadMemory;
        let mut result = evaluation.evaluate().map_err(bad)?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.register(register)?)).map_err(bad)?
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let value = self.stack.value(address, size)?;
                    evaluation.resume_with_memory(Value::Generic(value)).map_err(bad)?
                }
                EvaluationResult::RequiresCallFrameCfa => {
                    evaluation.resume_with_call_frame_cfa(cfa.ok_or(UnwindEnd::BadMemory)?).map_err(bad)?
                }
                _ => return Err(UnwindEnd::BadMemory),
            };
        }
        match evaluation.as_result() {
            [Piece { location: Location::Address { address }, .. }] => Ok(*address),
            [Piece { location: Location::Value { value: Value::Generic(value) }, .. }] => Ok(*value),
            _ => Err(UnwindEnd::BadMemory),
        }
    }
}
