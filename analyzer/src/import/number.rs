//! Numbers as strace writes them.

/// Reads a number in C's syntax: decimal, `0x` hex, `0` octal, each perhaps negative; None: it is none, or has more than 64 bits.
pub(super) fn unsigned(token: &[u8]) -> Option<u64> {
    let (negative, token) = match token.strip_prefix(b"-") {
        Some(token) => (true, token),
        None => (false, token),
    };
    let (digits, radix) = match token {
        [b'0', b'x', hex @ ..] => (hex, 16),
        [b'0', octal @ ..] if !octal.is_empty() => (octal, 8),
        _ => (token, 10),
    };
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    if digits.is_empty() || !digits.iter().all(is_digit) {
        return None;
    }
    let value = u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()?;
    match negative {
        true if value > 1 << 63 => None,
        true => Some(0_u64.wrapping_sub(value)),
        false => Some(value),
    }
}

/// Reads a number as [`unsigned`] does, as a signed one of 64 bits.
pub(super) fn signed(token: &[u8]) -> Option<i64> {
    unsigned(token).map(u64::cast_signed)
}

/// Reads a product or a sum of few numbers (`8192*1024`) as strace writes sizes.
pub(super) fn product(token: &[u8]) -> Option<u64> {
    token
        .split(|byte| *byte == b'*')
        .try_fold(1_u64, |product, factor| product.checked_mul(unsigned(factor.trim_ascii())?))
}

/// The number of a signal as strace names it: with or without `SIG`, real-time ones counted from the kernel's first, 32.
pub(super) fn signal(name: &[u8]) -> Option<u32> {
    match name.strip_prefix(b"SIG").unwrap_or(name) {
        b"RTMIN" => Some(32),
        _ => systape_abi::signal_number(std::str::from_utf8(name).ok()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_c_are_read() {
        assert_eq!(
            (signed(b"17"), signed(b"-1"), signed(b"0"), signed(b"022")),
            (Some(17), Some(-1), Some(0), Some(18))
        );
        assert_eq!((unsigned(b"0x1f"), unsigned(b"0xffffffffffffffff")), (Some(31), Some(u64::MAX)));
        assert_eq!(product(b"8192*1024"), Some(8 << 20));
        assert_eq!(
            [&b"SIGTERM"[..], b"INT", b"SIGRTMIN", b"RT_1", b"NOSUCH"].map(signal),
            [Some(15), Some(2), Some(32), Some(33), None]
        );
        for none in
            [&b""[..], b"-", b"0x", b"08", b"1a", b"+1", b"--1", b"99999999999999999999", b"-9999999999999999999"]
        {
            assert_eq!(unsigned(none), None, "{}", String::from_utf8_lossy(none));
        }
    }
}
