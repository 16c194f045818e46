//! Where an argument of a static probe is, as the assembler was told: a size in bytes, negative for a number with a sign, `@`, and a
//! place as the machine's assembler writes it. Places of both machines are read on either, so that either tests them.

#[cfg(any(target_arch = "aarch64", test))]
mod aarch64;
#[cfg(any(target_arch = "x86_64", test))]
mod x86_64;

use systape_bpf::operand_kind::{NO_REGISTER, UNKNOWN};
use systape_bpf::wire;

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::{parse, symbol};
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{parse, symbol};

/// The arguments of a probe. A place in memory may have spaces between its brackets.
pub(super) fn split(arguments: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    let between = move |one: char| {
        inside = match one {
            '[' => true,
            ']' => false,
            _ => inside,
        };
        !inside && one.is_ascii_whitespace()
    };
    arguments.split(between).filter(|argument| !argument.is_empty())
}

/// Size and sign of an argument; without them it is as wide as a register.
pub(super) fn size(argument: &str) -> Option<(u8, bool)> {
    let Some((size, _)) = argument.split_once('@') else { return Some((8, false)) };
    let signed = size.starts_with('-');
    let size = size.trim_start_matches('-').parse().ok().filter(|size| [1, 2, 4, 8].contains(size))?;
    Some((size, signed))
}

/// The place behind the size.
fn place(argument: &str) -> &str {
    argument.split_once('@').map_or(argument, |(_, place)| place)
}

/// An argument of this size without a place.
fn blank(argument: &str) -> Option<wire::Operand> {
    let (size, signed) = size(argument)?;
    Some(wire::Operand {
        kind: UNKNOWN,
        size,
        is_signed: signed.into(),
        base: NO_REGISTER,
        index: NO_REGISTER,
        ..wire::Operand::default()
    })
}

/// A number as the assembler writes it.
fn number(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.bytes().next().filter(u8::is_ascii_digit).and_then(|_| digits.parse().ok())?,
    };
    Some(if negative { value.cast_signed().wrapping_neg() } else { value.cast_signed() })
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn brackets_hold_an_argument_together() {
        let of = |text| split(text).collect::<Vec<_>>();
        assert_eq!(of("-4@w0 8@[sp, 16]  4@5"), ["-4@w0", "8@[sp, 16]", "4@5"]);
        assert_eq!(of("-4@%edi 8@-16(%rbp,%rax,8)\t4@$5"), ["-4@%edi", "8@-16(%rbp,%rax,8)", "4@$5"]);
        assert_eq!(of(" "), [""; 0]);
        assert_eq!(of("8@[x0, x1 4@5"), ["8@[x0, x1 4@5"], "it has no end");
    }
}
