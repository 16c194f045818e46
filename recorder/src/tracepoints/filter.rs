//! Filters of `-e CATEGORY:NAME/FILTER/`: conditions on the fields of a tracepoint, written as perf's `--filter` and tracefs take
//! them, and what they say of a record. The kernel evaluates most of a filter by [`super::steps`].

use anyhow::{Result, bail};
use systape_abi::{glob_matches, nearest};

use super::format::{Kind, Place, TracepointField, Value};

/// Most parentheses and `!` inside one another.
const DEEPEST: usize = 32;
/// Fields of every record that are no fields of its format here: the program puts them there, in place of the kernel's own.
const COMMON: [(&str, usize); 4] = [("common_pid", 4), ("common_cpu", 0), ("CPU", 0), ("cpu", 0)];

/// A condition on a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// A test of one field.
    Test(Test),
    /// A condition that does not hold.
    Not(Box<Self>),
    /// All hold.
    All(Vec<Self>),
    /// One holds.
    Any(Vec<Self>),
}

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

/// How a field has to compare with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// The numbers have a bit in common.
    Bits,
}

/// The operators, those first that others begin with; true: it says the opposite of the order.
const ORDERS: [(&str, Comparison, bool); 7] = [
    ("==", Comparison::Equal, false),
    ("!=", Comparison::Equal, true),
    ("<=", Comparison::LessOrEqual, false),
    (">=", Comparison::GreaterOrEqual, false),
    ("<", Comparison::Less, false),
    (">", Comparison::Greater, false),
    ("&", Comparison::Bits, false),
];

impl Condition {
    /// The condition that `text` writes, on these fields of a record.
    ///
    /// # Errors
    /// It is not understood, names no field, or compares a field with what it cannot be.
    pub(crate) fn parse(text: &str, fields: &[TracepointField]) -> Result<Self> {
        let mut parser = Parser { rest: text, fields, depth: 0 };
        let condition = parser.any()?;
        match parser.peek() {
            "" => Ok(condition),
            rest => bail!("'{rest}' is not understood; conditions are joined by && and ||"),
        }
    }

    /// Whether it holds for `record`; None = a field that decides it was cut.
    pub(crate) fn holds(&self, record: &[u8]) -> Option<bool> {
        match self {
            Self::Test(test) => test.holds(record),
            Self::Not(inner) => inner.holds(record).map(|holds| !holds),
            Self::All(all) => decided(all, record, false),
            Self::Any(any) => decided(any, record, true),
        }
    }
}

/// Of conditions of which one that is `decisive` decides.
fn decided(conditions: &[Condition], record: &[u8], decisive: bool) -> Option<bool> {
    let mut unknown = false;
    for condition in conditions {
        match condition.holds(record) {
            Some(holds) if holds == decisive => return Some(decisive),
            Some(_) => {}
            None => unknown = true,
        }
    }
    (!unknown).then_some(!decisive)
}

impl Test {
    fn holds(&self, record: &[u8]) -> Option<bool> {
        Some(match (&self.what, self.field.value(record)?) {
            (What::Number(order, with), Value::Number(number)) => {
                let signed = i128::from(number.cast_signed());
                let number = if self.field.signed { signed } else { i128::from(number) };
                match order {
                    Comparison::Equal => number == *with,
                    Comparison::Less => number < *with,
                    Comparison::LessOrEqual => number <= *with,
                    Comparison::Greater => number > *with,
                    Comparison::GreaterOrEqual => number >= *with,
                    Comparison::Bits => number & *with != 0,
                }
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

struct Parser<'a> {
    rest: &'a str,
    fields: &'a [TracepointField],
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    fn take(&mut self, word: &str) -> bool {
        let rest = self.peek().strip_prefix(word);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn any(&mut self) -> Result<Condition> {
        let mut any = vec![self.all()?];
        while self.take("||") {
            any.push(self.all()?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { Condition::Any(any) })
    }

    fn all(&mut self) -> Result<Condition> {
        let mut all = vec![self.one()?];
        while self.take("&&") {
            all.push(self.one()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Condition::All(all) })
    }

    fn one(&mut self) -> Result<Condition> {
        self.depth += 1;
        if self.depth > DEEPEST {
            bail!("more than {DEEPEST} parentheses and '!' are inside one another");
        }
        let condition = if self.take("!") {
            Condition::Not(Box::new(self.one()?))
        } else if self.take("(") {
            let inner = self.any()?;
            if !self.take(")") {
                bail!("a parenthesis is not closed");
            }
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    /// `FIELD OPERATOR VALUE`.
    fn test(&mut self) -> Result<Condition> {
        let name = self.word();
        if name.is_empty() {
            let found = if self.rest.is_empty() { "nothing" } else { self.rest };
            bail!("a field's name was expected, not {found}; {}", self.there_are());
        }
        let field = self.field(name)?;
        if self.take("~") {
            let text = self.text()?;
            return glob(field, text);
        }
        let Some(&(operator, order, opposite)) = ORDERS.iter().find(|(operator, ..)| self.take(operator)) else {
            bail!("behind '{name}' one of == != < <= > >= & ~ was expected");
        };
        let what = if self.peek().starts_with(['"', '\'']) {
            let text = self.text()?;
            if order != Comparison::Equal {
                bail!("texts are compared by ==, != and ~, not by {operator}");
            }
            expect_text(&field)?;
            What::Text(text.to_owned())
        } else {
            What::Number(order, number(&field, operator, self.word_with_sign())?)
        };
        let test = Condition::Test(Test { field, what });
        Ok(if opposite { Condition::Not(Box::new(test)) } else { test })
    }

    /// Letters, digits and '_'.
    fn word(&mut self) -> &'a str {
        let text = self.peek();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        self.rest = &text[end..];
        &text[..end]
    }

    fn word_with_sign(&mut self) -> &'a str {
        let text = self.peek();
        self.rest = text.strip_prefix('-').unwrap_or(text);
        let end = self.word().len() + usize::from(text.starts_with('-'));
        self.rest = &text[end..];
        &text[..end]
    }

    /// What stands between quotes.
    fn text(&mut self) -> Result<&'a str> {
        let rest = self.peek();
        let Some(quote) = rest.chars().next().filter(|c| ['"', '\''].contains(c)) else {
            bail!("a text in quotes was expected, not {}", if rest.is_empty() { "nothing" } else { rest });
        };
        let Some((text, behind)) = rest[1..].split_once(quote) else { bail!("a quote is not closed: {rest}") };
        self.rest = behind;
        Ok(text)
    }

    fn field(&self, name: &str) -> Result<TracepointField> {
        if self.rest.starts_with('.') {
            bail!("'{name}.' and a word: the address of a function or a program's text is not looked up");
        }
        if let Some(field) = self.fields.iter().find(|field| field.name == name) {
            return Ok(field.clone());
        }
        if let Some((name, offset)) = COMMON.iter().find(|(known, _)| *known == name) {
            let declared = format!("int {name}");
            let (kind, place) = (Kind::Number, Place::Fixed);
            let (name, names) = ((*name).into(), Vec::new());
            return Ok(TracepointField { name, declared, offset: *offset, size: 4, signed: true, kind, place, names });
        }
        if matches!(name, "comm" | "COMM") {
            bail!("there is no field '{name}': threads are chosen by --comm NAME; {}", self.there_are());
        }
        let near = nearest(name, self.names());
        let near = near.first().map(|near| format!("did you mean {near}? ")).unwrap_or_default();
        bail!("there is no field '{name}'; {near}{}", self.there_are())
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str()).chain(COMMON.iter().map(|(name, _)| *name).take(2))
    }

    fn there_are(&self) -> String {
        format!("there are {}", self.names().collect::<Vec<_>>().join(", "))
    }
}

fn expect_text(field: &TracepointField) -> Result<()> {
    if field.kind == Kind::Text {
        return Ok(());
    }
    bail!("'{}' is no text ({}): compare it with a number, without quotes", field.name, field.declared)
}

/// `~ "TEXT"`: a `!` in front of the glob says the opposite, as in tracefs.
fn glob(field: TracepointField, text: &str) -> Result<Condition> {
    expect_text(&field)?;
    if text.contains('\\') {
        bail!("'{text}': in a glob * ? [a-z] have a meaning, and a backslash has none");
    }
    let (opposite, text) = text.strip_prefix('!').map_or((false, text), |text| (true, text));
    let what = if text.contains(['*', '?', '[']) { What::Glob(text.to_owned()) } else { What::Text(text.to_owned()) };
    let test = Condition::Test(Test { field, what });
    Ok(if opposite { Condition::Not(Box::new(test)) } else { test })
}

/// The number that `word` writes, as C does (0x10, 010, 10), if a comparison of the field with it has a meaning.
fn number(field: &TracepointField, operator: &str, word: &str) -> Result<i128> {
    let (name, declared) = (&field.name, &field.declared);
    if field.kind == Kind::Text {
        bail!("'{name}' is a text ({declared}): compare it with one in quotes");
    }
    if matches!(field.kind, Kind::Array(_)) || !matches!(field.size, 1 | 2 | 4 | 8) {
        bail!("'{name}' is no number ({declared}); it takes no filter");
    }
    let (negative, digits) = word.strip_prefix('-').map_or((false, word), |digits| (true, digits));
    let lower = digits.to_ascii_lowercase();
    let parsed = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
        (Some(digits), _) => u64::from_str_radix(digits, 16),
        (None, Some(digits)) if !digits.is_empty() => u64::from_str_radix(digits, 8),
        _ => lower.parse(),
    };
    let Ok(parsed) = parsed else { bail!("'{word}' is no number of 64 bits; {name} is one ({declared})") };
    let number = if negative { -i128::from(parsed) } else { i128::from(parsed) };
    let (least, most) = field.range();
    let bits = 8 * field.size as u32;
    // bits may be written without the sign that they are
    let wraps = field.signed && matches!(operator, "==" | "!=" | "&") && number > most && number < 1i128 << bits;
    if !(least..=most).contains(&number) && !wraps {
        bail!("{name} ({declared}) is never {word}: it is from {least} to {most}");
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

    fn parse(text: &str) -> Result<Condition> {
        Condition::parse(text, &format::parse(TEXT).unwrap())
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
