//! x86-64: `-4@%edi`, `8@-16(%rbp,%rax,8)`, `4@$5`, `8@table+8(%rip)`.

use systape_bpf::operand_kind::{CONSTANT, MEMORY, NO_REGISTER, REGISTER};
use systape_bpf::wire;

use super::{blank, number, place};

/// Registers by their names of 8, 4, 2 and 1 byte, and where they are in the kernel's record of them (struct pt_regs).
const REGISTERS: [([&str; 4], u8); 17] = [
    (["rax", "eax", "ax", "al"], 10),
    (["rbx", "ebx", "bx", "bl"], 5),
    (["rcx", "ecx", "cx", "cl"], 11),
    (["rdx", "edx", "dx", "dl"], 12),
    (["rsi", "esi", "si", "sil"], 13),
    (["rdi", "edi", "di", "dil"], 14),
    (["rbp", "ebp", "bp", "bpl"], 4),
    (["rsp", "esp", "sp", "spl"], 19),
    (["r8", "r8d", "r8w", "r8b"], 9),
    (["r9", "r9d", "r9w", "r9b"], 8),
    (["r10", "r10d", "r10w", "r10b"], 7),
    (["r11", "r11d", "r11w", "r11b"], 6),
    (["r12", "r12d", "r12w", "r12b"], 3),
    (["r13", "r13d", "r13w", "r13b"], 2),
    (["r14", "r14d", "r14w", "r14b"], 1),
    (["r15", "r15d", "r15w", "r15b"], 0),
    (["rip", "", "", ""], 16),
];

/// Number of `%NAME` among the kernel's registers; the second part of a register, such as `%ah`, is none.
fn register(text: &str) -> Option<u8> {
    let name = text.strip_prefix('%').filter(|name| !name.is_empty())?;
    REGISTERS.iter().find(|(names, _)| names.contains(&name)).map(|(_, number)| *number)
}

/// The symbol that the place of `argument` is given by, if it is.
pub(crate) fn symbol(argument: &str) -> Option<&str> {
    let place = place(argument).strip_suffix("(%rip)")?;
    let name = place.split(['+', '-']).find(|part| !part.is_empty() && number(part).is_none())?;
    place.starts_with(name).then_some(name)
}

/// The argument for the programs; None = it is not read: a floating-point register, another segment, a symbol that is not in the file.
/// `address_of`: of a symbol, from the probe's own place on.
pub(crate) fn parse(argument: &str, address_of: impl Fn(&str) -> Option<i64>) -> Option<wire::Operand> {
    let (blank, place) = (blank(argument)?, place(argument));
    if let Some(constant) = place.strip_prefix('$') {
        return Some(wire::Operand { kind: CONSTANT, value: number(constant)?, ..blank });
    }
    if place.starts_with('%') {
        return Some(wire::Operand { kind: REGISTER, base: register(place)?, ..blank });
    }
    let (displacement, registers) = place.strip_suffix(')')?.split_once('(')?;
    let parts: Vec<&str> = registers.split(',').map(str::trim).collect();
    let (base, index, scale) = match parts[..] {
        [base] => (base, "", "1"),
        [base, index] => (base, index, "1"),
        [base, index, scale] => (base, index, scale),
        _ => return None,
    };
    let register_or_none = |name: &str| if name.is_empty() { Some(NO_REGISTER) } else { register(name) };
    let shift = [1, 2, 4, 8].iter().position(|one| scale.parse() == Ok(*one))?;
    let value = match symbol(argument) {
        Some(name) => {
            let rest = displacement.strip_prefix(name)?;
            let more = if rest.is_empty() { 0 } else { number(rest.strip_prefix('+').unwrap_or(rest))? };
            address_of(name)?.checked_add(more)?
        }
        // relative to an instruction that nobody knows
        None if base == "%rip" => return None,
        None if displacement.is_empty() => 0,
        None => number(displacement)?,
    };
    let (base, index) = (register_or_none(base)?, register_or_none(index)?);
    (index != register("%rip")?).then_some(())?;
    Some(wire::Operand { kind: MEMORY, value, base, index, shift: u8::try_from(shift).ok()?, ..blank })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of registers are those of the record that ptrace gives, which is the kernel's own.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn registers_are_where_the_kernel_has_them() {
        use std::mem::offset_of;
        for (name, at) in [
            ("%rdi", offset_of!(libc::user_regs_struct, rdi)),
            ("%rbp", offset_of!(libc::user_regs_struct, rbp)),
            ("%rsp", offset_of!(libc::user_regs_struct, rsp)),
            ("%rip", offset_of!(libc::user_regs_struct, rip)),
            ("%r12", offset_of!(libc::user_regs_struct, r12)),
            ("%r8", offset_of!(libc::user_regs_struct, r8)),
        ] {
            assert_eq!(register(name).map(usize::from), Some(at / 8), "{name}");
        }
    }

    fn parsed(text: &str) -> Option<wire::Operand> {
        parse(text, |name| (name == "table").then_some(-0x100))
    }

    fn memory(text: &str) -> Option<(i64, u8, u8, u8)> {
        parsed(text).filter(|one| one.kind == MEMORY).map(|one| (one.value, one.base, one.index, one.shift))
    }

    #[test]
    fn registers_and_constants() {
        let one = parsed("-4@%edi").unwrap();
        assert_eq!((one.kind, one.size, one.is_signed, one.base), (REGISTER, 4, 1, 14));
        let one = parsed("2@%r10w").unwrap();
        assert_eq!((one.kind, one.size, one.is_signed, one.base), (REGISTER, 2, 0, 7));
        let one = parsed("-8@$-7").unwrap();
        assert_eq!((one.kind, one.value), (CONSTANT, -7));
        assert_eq!(parsed("8@$0xffffffffffffffff").unwrap().value, -1);
        assert_eq!(parsed("%rsp").map(|one| (one.size, one.base)), Some((8, 19)));
    }

    #[test]
    fn memory_of_every_form() {
        assert_eq!(memory("8@-16(%rbp)"), Some((-16, 4, NO_REGISTER, 0)));
        assert_eq!(memory("8@(%rax)"), Some((0, 10, NO_REGISTER, 0)));
        assert_eq!(memory("8@-8(%rax,%rdx,8)"), Some((-8, 10, 12, 3)));
        assert_eq!(memory("4@4(,%rcx,4)"), Some((4, NO_REGISTER, 11, 2)));
        assert_eq!(memory("4@(%rcx,%rbx)"), Some((0, 11, 5, 0)));
        assert_eq!(memory("8@table(%rip)"), Some((-0x100, 16, NO_REGISTER, 0)));
        assert_eq!(memory("8@table+8(%rip)"), Some((-0xf8, 16, NO_REGISTER, 0)));
        assert_eq!(memory("8@table-8(%rip)"), Some((-0x108, 16, NO_REGISTER, 0)));
    }

    #[test]
    fn what_is_not_read_is_none() {
        let texts = [
            "8f@%xmm0",
            "8@%xmm0",
            "4@%ah",
            "16@%rax",
            "8@%fs:16",
            "8@other(%rip)",
            "8@8(%rip)",
            "8@(%rax,%rdx,3)",
            "8@(%rax,%rdx,2,1)",
            "8@",
            "@",
            "",
            "8@$",
            "8@$table",
            "8@table",
            "8@x(%rax)",
            "8@(%rax",
            "8@()x",
            "8@(%rax,%rip,1)",
            "--4@%eax-",
            "8@+(%rip)",
            "8@table+(%rip)",
            "8@%",
            "8@(%)",
        ];
        for text in texts {
            assert_eq!(parsed(text).map(|one| one.kind), None, "{text}");
        }
    }
}
