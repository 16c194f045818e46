//! Numbers to digits, into a byte buffer, without going through `core::fmt`: a listing prints ten of them a line.

/// Two digits at a time.
const PAIRS: &[u8; 200] =
    b"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
50515253545556575859606162636465666768697071727374757677787980818283848586878889909192939495969798\
99";

/// Digits of `value` at the end of `buf`; returns where they begin.
fn digits(buf: &mut [u8; 20], mut value: u64) -> usize {
    let mut at = buf.len();
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        buf[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        buf[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        buf[at] = b'0' + value as u8;
    }
    at
}

/// Appends `value` in decimal.
#[inline]
pub fn unsigned(out: &mut Vec<u8>, value: u64) {
    let mut buf = [0; 20];
    let at = digits(&mut buf, value);
    out.extend_from_slice(&buf[at..]);
}

/// Appends `value` in decimal.
#[inline]
pub fn signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    unsigned(out, value.unsigned_abs());
}

/// Appends `value` in decimal, at least `width` wide, filled up on the left with `fill`.
#[inline]
pub fn padded(out: &mut Vec<u8>, value: u64, width: usize, fill: u8) {
    let mut buf = [0; 20];
    let at = digits(&mut buf, value);
    spaces(out, width.saturating_sub(buf.len() - at), fill);
    out.extend_from_slice(&buf[at..]);
}

/// Appends `value` as `0x1f`; 0 is `0`, as C's `%#lx` has it.
pub fn hex(out: &mut Vec<u8>, value: u64) {
    if value == 0 {
        out.push(b'0');
        return;
    }
    out.extend_from_slice(b"0x");
    let nibbles = 16 - value.leading_zeros() as usize / 4;
    for i in (0..nibbles).rev() {
        out.push(b"0123456789abcdef"[(value >> (4 * i)) as usize & 15]);
    }
}

/// Appends `ns` in ms with three decimals, rounded, at least `width` wide with `lead` (may be empty) before the first digit:
/// `%10.3f` of the time in ms.
pub fn millis(out: &mut Vec<u8>, ns: u64, width: usize, lead: &str) {
    let us = ns / 1000 + u64::from(ns % 1000 >= 500);
    let mut buf = [0; 20];
    let at = digits(&mut buf, us / 1000);
    let whole = &buf[at..];
    spaces(out, width.saturating_sub(whole.len() + 4 + lead.chars().count()), b' ');
    out.extend_from_slice(lead.as_bytes());
    out.extend_from_slice(whole);
    out.push(b'.');
    let rest = (us % 1000) as usize;
    out.push(b'0' + (rest / 100) as u8);
    out.extend_from_slice(&PAIRS[rest % 100 * 2..rest % 100 * 2 + 2]);
}

/// Appends `count` times `fill`.
#[inline]
pub fn spaces(out: &mut Vec<u8>, count: usize, fill: u8) {
    out.resize(out.len() + count, fill);
}

/// `1 call`, `1,234 calls`: a count in a sentence, with its noun.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// `1204` as `1,204`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(f: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn same_as_fmt(value: u64, small in 0_u64..2000) {
            for v in [value, small, value >> 40] {
                prop_assert_eq!(text(|o| unsigned(o, v)), v.to_string());
                prop_assert_eq!(text(|o| signed(o, v as i64)), (v as i64).to_string());
                prop_assert_eq!(text(|o| padded(o, v, 9, b'0')), format!("{v:09}"));
                prop_assert_eq!(text(|o| hex(o, v)), if v == 0 { "0".into() } else { format!("{v:#x}") });
            }
        }
    }

    #[test]
    fn thousands_have_commas() {
        assert_eq!([7, 1204, 1_000_000].map(grouped), ["7", "1,204", "1,000,000"]);
    }

    #[test]
    fn milliseconds() {
        assert_eq!(text(|o| millis(o, 1_234_567, 10, "")), "     1.235");
        assert_eq!(text(|o| millis(o, 0, 6, "")), " 0.000");
        assert_eq!(text(|o| millis(o, 999_500, 8, ">=")), " >=1.000");
        assert_eq!(text(|o| millis(o, 5_000_123_000, 6, ">=")), ">=5000.123");
        assert_eq!(text(|o| millis(o, u64::MAX, 6, "")), "18446744073709.552");
    }
}
