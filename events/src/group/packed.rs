//! Keys as bytes, which take a third of the memory: those of a table of sums have the order of the keys.

use systape_format::model::Call;

use super::value::{Key, Value};

// first bytes, in the order of the values
const NONE: u8 = 0;
const NUMBER: u8 = 1;
const TASK: u8 = 2;
const CALL: u8 = 3;
const TEXT: u8 = 4;
const SEVERAL: u8 = 5;
const UNKNOWN: u8 = 6;

/// What follows a 0 of a text; a 0 behind a 0 ends it.
const GOES_ON: u8 = u8::MAX;

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packed<'a>(pub(super) &'a [u8]);

impl Packed<'_> {
    /// Values of the key.
    #[inline]
    pub fn key(self) -> Key {
        let mut rest = self.0;
        std::iter::from_fn(|| value(&mut rest)).collect()
    }
}

/// Appends `key` to `out`.
pub(super) fn pack(key: &[Value], out: &mut Vec<u8>) {
    for value in key {
        match value {
            Value::None => out.push(NONE),
            Value::Number(number) => {
                out.push(NUMBER);
                put(*number, out);
            }
            Value::Task(one, other) => {
                out.push(TASK);
                [*one, *other].into_iter().for_each(|part| put(part.into(), out));
            }
            Value::Call(Call { abi, nr }) => {
                out.extend_from_slice(&[CALL, *abi]);
                put((*nr).into(), out);
            }
            Value::Text(text) => {
                out.push(TEXT);
                for (at, part) in text.split(|byte| *byte == 0).enumerate() {
                    if at > 0 {
                        out.extend_from_slice(&[0, GOES_ON]);
                    }
                    out.extend_from_slice(part);
                }
                out.extend_from_slice(&[0, 0]);
            }
            Value::Several => out.push(SEVERAL),
            Value::Unknown => out.push(UNKNOWN),
        }
    }
}

/// Appends the number of the bytes of `number`, and these, the highest first.
fn put(number: u64, out: &mut Vec<u8>) {
    let bytes = number.to_be_bytes();
    let zeros = number.leading_zeros() as usize / 8;
    out.push((bytes.len() - zeros) as u8);
    out.extend_from_slice(&bytes[zeros..]);
}

/// Takes the next value; None: there is none.
fn value(rest: &mut &[u8]) -> Option<Value> {
    Some(match byte(rest)? {
        NONE => Value::None,
        NUMBER => Value::Number(number(rest)?),
        TASK => Value::Task(number(rest)? as u32, number(rest)? as u32),
        CALL => Value::Call(Call { abi: byte(rest)?, nr: number(rest)? as u32 }),
        TEXT => text(rest)?,
        SEVERAL => Value::Several,
        _ => Value::Unknown,
    })
}

fn text(rest: &mut &[u8]) -> Option<Value> {
    let mut joined: Vec<u8> = Vec::new();
    loop {
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (part, behind) = rest.split_at(end);
        *rest = behind.get(2..)?;
        let last = behind[1] != GOES_ON;
        if last && joined.is_empty() {
            return Some(Value::Text(part.into()));
        }
        joined.extend_from_slice(part);
        if last {
            return Some(Value::Text(joined.into()));
        }
        joined.push(0);
    }
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let length = byte(rest)?.into();
    let (bytes, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, behind) = rest.split_first()?;
    *rest = behind;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::None),
            (any::<u64>(), 0_u32..64).prop_map(|(number, shift)| Value::Number(number >> shift)),
            (any::<u32>(), 0_u32..9).prop_map(|(one, other)| Value::Task(one, other)),
            (0_u8..3, any::<u32>()).prop_map(|(abi, nr)| Value::Call(Call { abi, nr })),
            prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(b'a'), Just(255)], 0..5)
                .prop_map(|text| Value::Text(text.into())),
            Just(Value::Several),
            Just(Value::Unknown),
        ]
    }

    proptest! {
        #[test]
        fn what_is_packed_is_the_same_in_the_same_order(
            one in prop::collection::vec(values(), 0..4), other in prop::collection::vec(values(), 0..4),
        ) {
            let packed = |key: &[Value]| {
                let mut bytes = Vec::new();
                pack(key, &mut bytes);
                bytes
            };
            let bytes = [packed(&one), packed(&other)];
            prop_assert_eq!(&*Packed(&bytes[0]).key(), &*one);
            prop_assert_eq!(Packed(&bytes[0]).cmp(&Packed(&bytes[1])), one.cmp(&other));
        }
    }
}
