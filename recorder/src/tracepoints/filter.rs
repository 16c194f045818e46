//! Filters of `-e CATEGORY:NAME/FILTER/`: conditions on the fields of a tracepoint ([`systape_abi::condition`]), and what they say of a
//! record. The kernel evaluates most of a filter by [`super::steps`].

use anyhow::{Result, anyhow};
use systape_abi::condition::{self, Comparison, FilterFields, Operand, WrittenTest, written_number};
use systape_abi::{glob_matches, nearest};

use super::format::{Kind, Place, TracepointField, Value};

/// Fields of every record that are no fields of its format here: the program puts them there, in place of the kernel's own.
const COMMON: [(&str, usize); 4] = [("common_pid", 4), ("common_cpu", 0), ("CPU", 0), ("cpu", 0)];

/// A condition on a record.
pub(crate) type RecordCondition = condition::Condition<Test>;

/// A condition on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Test {
    pub field: TracepointField,
    pub what: What,
}

/// What a field is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A number that the field's type can have.
    Number(Comparison, i128),
    /// The field's text is this.
    Text(String),
    /// The field's text matches this glob.
    Glob(String),
}

/// The condition that `text` writes, on these fields of a record.
///
/// # Errors
/// It is not understood, names no field, or compares a field with what it cannot be.
pub(crate) fn parse(text: &str, fields: &[TracepointField]) -> Result<RecordCondition> {
    RecordCondition::parse(text, &OfRecord(fields)).map_err(|why| anyhow!(why))
}

/// Whether `condition` holds for `record`; None = a field that decides it was cut.
pub(crate) fn holds(condition: &RecordCondition, record: &[u8]) -> Option<bool> {
    condition.holds(&mut |test| test.holds(record))
}

impl Test {
    fn holds(&self, record: &[u8]) -> Option<bool> {
        Some(match (&self.what, self.field.value(record)?) {
            (What::Number(order, with), Value::Number(number)) => {
                let signed = i128::from(number.cast_signed());
                order.holds(if self.field.signed { signed } else { i128::from(number) }, *with)
            }
            (What::Text(text), Value::Text(bytes)) => text.as_bytes() == bytes,
            (What::Glob(glob), Value::Text(bytes)) => glob_matches(&by_bytes(glob.as_bytes()), &by_bytes(&bytes)),
            // a test is made for its field's type
            _ => return None,
        })
    }
}

/// A character for each byte: the kernel compares bytes.
fn by_bytes(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// The fields of a tracepoint's records.
struct OfRecord<'a>(&'a [TracepointField]);

impl OfRecord<'_> {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|field| field.name.as_str()).chain(COMMON.iter().map(|(name, _)| *name).take(2))
    }
}

impl FilterFields for OfRecord<'_> {
    type Field = TracepointField;
    type Test = Test;

    fn field(&self, name: &str) -> Result<TracepointField, String> {
        if let Some(field) = self.0.iter().find(|field| field.name == name) {
            return Ok(field.clone());
        }
        if let Some((name, offset)) = COMMON.iter().find(|(known, _)| *known == name) {
            let declared = format!("int {name}");
            let (kind, place) = (Kind::Number, Place::Fixed);
            let (name, names) = ((*name).into(), Vec::new());
            return Ok(TracepointField { name, declared, offset: *offset, size: 4, signed: true, kind, place, names });
        }
        if matches!(name, "comm" | "COMM") {
            let there_are = self.there_are();
            return Err(format!("there is no field '{name}': threads are chosen by --comm NAME; {there_are}"));
        }
        let near = nearest(name, self.names());
        let near = near.first().map(|near| format!("did you mean {near}? ")).unwrap_or_default();
        Err(format!("there is no field '{name}'; {near}{}", self.there_are()))
    }

    fn test(&self, field: TracepointField, written: WrittenTest<'_>) -> Result<Test, String> {
        let what = match (written.comparison, written.operand) {
            (Comparison::Glob, Operand::Quoted(text)) => {
                expect_text(&field)?;
                let is_glob = text.contains(['*', '?', '[']);
                if is_glob { What::Glob(text.to_owned()) } else { What::Text(text.to_owned()) }
            }
            (Comparison::Glob, Operand::Bare(word)) => {
                let found = if word.is_empty() { "nothing" } else { word };
                return Err(format!("a text in quotes was expected, not {found}"));
            }
            (Comparison::Equal, Operand::Quoted(text)) => {
                expect_text(&field)?;
                What::Text(text.to_owned())
            }
            (_, Operand::Quoted(_)) => {
                return Err(format!("texts are compared by ==, != and ~, not by {}", written.operator));
            }
            (order, Operand::Bare(word)) => What::Number(order, number(&field, order, word)?),
        };
        Ok(Test { field, what })
    }

    fn there_are(&self) -> String {
        format!("there are {}", self.names().collect::<Vec<_>>().join(", "))
    }
}

fn expect_text(field: &TracepointField) -> Result<(), String> {
    if field.kind == Kind::Text {
        return Ok(());
    }
    Err(format!("'{}' is no text ({}): compare it with a number, without quotes", field.name, field.declared))
}

/// The number that `word` writes, if a comparison of the field with it has a meaning.
fn number(field: &TracepointField, order: Comparison, word: &str) -> Result<i128, String> {
    let (name, declared) = (&field.name, &field.declared);
    if field.kind == Kind::Text {
        return Err(format!("'{name}' is a text ({declared}): compare it with one in quotes"));
    }
    if matches!(field.kind, Kind::Array(_)) || !matches!(field.size, 1 | 2 | 4 | 8) {
        return Err(format!("'{name}' is no number ({declared}); it takes no filter"));
    }
    let number =
        written_number(word).ok_or_else(|| format!("'{word}' is no number of 64 bits; {name} is one ({declared})"))?;
    let (least, most) = field.range();
    let bits = 8 * field.size as u32;
    // bits may be written without the sign that they are
    let exact = matches!(order, Comparison::Equal | Comparison::Bits);
    let wraps = field.signed && exact && number > most && number < 1i128 << bits;
    if !(least..=most).contains(&number) && !wraps {
        return Err(format!("{name} ({declared}) is never {word}: it is from {least} to {most}"));
    }
    Ok(if wraps { number - (1i128 << bits) } else { number })
}

#[cfg(test)]
mod tests {
    use super::super::format;
    use super::*;

    const TEXT: &str = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:short code;\toffset:24;\tsize:2;\tsigned:1;\n\
        \tfield:__u8 saddr[4];\toffset:26;\tsize:4;\tsigned:0;\n\
        \tfield:struct x y;\toffset:30;\tsize:24;\tsigned:0;\n";

    fn parse(text: &str) -> Result<RecordCondition> {
        super::parse(text, &format::parse(TEXT).unwrap())
    }

    #[test]
    fn and_binds_closer_than_or() {
        let same = |a: &str, b: &str| assert_eq!(parse(a).unwrap(), parse(b).unwrap(), "{a}");
        same("code==1||code==2&&code==3", "code == 1 || (code == 2 && code == 3)");
        same("!code==1&&code==2", "(!(code == 1)) && code == 2");
        same("code != 1", "!(code == 1)");
        same("comm ~ 'abc'", "comm == \"abc\"");
    }

    #[test]
    fn errors_say_what_there_is() {
        for (text, said) in [
            ("cod == 1", "did you mean code? there are comm, code, saddr, y, common_pid"),
            ("", "a field's name was expected, not nothing; there are comm"),
            ("code", "one of =="),
            ("code = 1", "one of =="),
            ("code == ", "'' is no number"),
            ("code == x", "'x' is no number"),
            ("code == 1 code == 2", "'code == 2' is not understood"),
            ("code == 40000 && code < 0", ""),
            ("code < 40000", "from -32768 to 32767"),
            ("code == 70000", "is never 70000"),
            ("code == 99999999999999999999", "no number of 64 bits"),
            ("code == 'x'", "is no text"),
            ("code ~ 'x'", "is no text"),
            ("comm == 1", "compare it with one in quotes"),
            ("comm < 'x'", "texts are compared by"),
            ("comm == 'x", "a quote is not closed"),
            ("comm ~ x", "a text in quotes was expected"),
            ("comm ~ 'a\\*'", "a backslash has none"),
            ("saddr == 1", "is no number (__u8 saddr[4])"),
            ("y == 1", "is no number"),
            ("(code == 1", "not closed"),
            ("code == 1 &&", "a field's name was expected"),
            ("code.function == 1", "is not looked up"),
            ("COMM == 'x'", "--comm NAME"),
        ] {
            match parse(text) {
                Ok(_) => assert!(said.is_empty(), "{text}"),
                Err(error) => assert!(error.to_string().contains(said) && !said.is_empty(), "{text}: {error}"),
            }
        }
        let deep = "(".repeat(100_000);
        assert!(parse(&deep).unwrap_err().to_string().contains("inside one another"));
        assert!(parse(&"!".repeat(100_000)).is_err());
    }
}
