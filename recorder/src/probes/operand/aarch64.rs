//! arm64: `-4@w1`, `8@[sp, 16]`, `8@[x0, x1, lsl 3]`, `4@5`.

use systape_bpf::operand_kind::{CONSTANT, MEMORY, REGISTER};
use systape_bpf::wire;

use super::{blank, number, place};

/// Where sp is in the kernel's record of the registers (struct pt_regs), behind x0 to x30.
const SP: u8 = 31;

/// Number of the register among the kernel's.
fn register(name: &str) -> Option<u8> {
    match name {
        "sp" | "wsp" => return Some(SP),
        "fp" => return Some(29),
        "lr" => return Some(30),
        _ => {}
    }
    let digits = name.strip_prefix(['x', 'w'])?;
    // as numbers of registers are written: no sign, no zero before
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|number| plain && *number < SP)
}

/// A number of an assembler's operand.
fn immediate(text: &str) -> Option<i64> {
    number(text.strip_prefix('#').unwrap_or(text))
}

/// The symbol that the place of `argument` is given by: none is here, as no instruction has an address in it.
pub(crate) fn symbol(_argument: &str) -> Option<&str> {
    None
}

/// The argument for the programs; None = it is not read: a vector register, half a register that is extended with its sign.
pub(crate) fn parse(argument: &str, _address_of: impl Fn(&str) -> Option<i64>) -> Option<wire::Operand> {
    let (blank, place) = (blank(argument)?, place(argument).trim());
    if matches!(place, "xzr" | "wzr") {
        return Some(wire::Operand { kind: CONSTANT, value: 0, ..blank });
    }
    if let Some(value) = immediate(place) {
        return Some(wire::Operand { kind: CONSTANT, value, ..blank });
    }
    let Some(inside) = place.strip_prefix('[') else {
        return Some(wire::Operand { kind: REGISTER, base: register(place)?, ..blank });
    };
    let parts: Vec<&str> = inside.strip_suffix(']')?.split(',').map(str::trim).collect();
    // an address is in a whole register
    let whole = |name: &str| if name.starts_with('w') { None } else { register(name) };
    let (base, index, shift, value) = match parts[..] {
        [base] => (base, None, 0, 0),
        [base, second] => match immediate(second) {
            Some(value) => (base, None, 0, value),
            None => (base, Some(second), 0, 0),
        },
        [base, index, shift] => {
            let by = immediate(shift.strip_prefix("lsl")?.trim()).and_then(|by| u8::try_from(by).ok())?;
            (base, Some(index), Some(by).filter(|by| *by <= 3)?, 0)
        }
        _ => return None,
    };
    let index = match index {
        Some(index) => whole(index)?,
        None => blank.index,
    };
    Some(wire::Operand { kind: MEMORY, value, base: whole(base)?, index, shift, ..blank })
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_bpf::operand_kind::NO_REGISTER;

    fn parsed(text: &str) -> Option<wire::Operand> {
        parse(text, |_| None)
    }

    fn memory(text: &str) -> Option<(i64, u8, u8, u8)> {
        parsed(text).filter(|one| one.kind == MEMORY).map(|one| (one.value, one.base, one.index, one.shift))
    }

    #[test]
    fn no_place_has_a_symbol() {
        assert_eq!((symbol("8@[x0, 16]"), symbol("4@counter")), (None, None));
    }

    #[test]
    fn registers_and_constants() {
        let one = parsed("-4@w1").unwrap();
        assert_eq!((one.kind, one.size, one.is_signed, one.base), (REGISTER, 4, 1, 1));
        let one = parsed("8@x30").unwrap();
        assert_eq!((one.kind, one.size, one.is_signed, one.base), (REGISTER, 8, 0, 30));
        assert_eq!(parsed("sp").map(|one| (one.size, one.base)), Some((8, 31)));
        for (text, value) in [("-4@5", 5), ("-8@-7", -7), ("8@#0x10", 16), ("4@wzr", 0), ("8@xzr", 0)] {
            assert_eq!(parsed(text).map(|one| (one.kind, one.value)), Some((CONSTANT, value)), "{text}");
        }
    }

    #[test]
    fn memory_of_every_form() {
        assert_eq!(memory("8@[sp, 16]"), Some((16, 31, NO_REGISTER, 0)));
        assert_eq!(memory("4@[sp,#96]"), Some((96, 31, NO_REGISTER, 0)));
        assert_eq!(memory("-4@[x29, -20]"), Some((-20, 29, NO_REGISTER, 0)));
        assert_eq!(memory("1@[x21]"), Some((0, 21, NO_REGISTER, 0)));
        assert_eq!(memory("8@[x0, x1]"), Some((0, 0, 1, 0)));
        assert_eq!(memory("8@[x0, x1, lsl 3]"), Some((0, 0, 1, 3)));
        assert_eq!(memory("4@[x2,x3,lsl #2]"), Some((0, 2, 3, 2)));
    }

    #[test]
    fn what_is_not_read_is_none() {
        let texts = [
            "8f@d0",
            "8@d0",
            "8@v0",
            "16@x0",
            "8@x31",
            "8@x01",
            "8@x",
            "8@",
            "@",
            "",
            "8@[",
            "8@[x0",
            "8@[]",
            "8@[w0]",
            "8@[x0, w1]",
            "4@[x0, w1, sxtw 2]",
            "8@[x0, x1, lsl 4]",
            "8@[x0, x1, lsl]",
            "8@[x0, x1, lsl 3, 4]",
            "8@[x0, d1]",
            "8@%rax",
            "8@$5",
            "8@table",
            "8@#",
            "8@x-1",
            "8@x+1",
        ];
        for text in texts {
            assert_eq!(parsed(text).map(|one| one.kind), None, "{text}");
        }
    }
}
