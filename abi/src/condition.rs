//! Conditions on the fields of an event, as perf's `--filter` and tracefs write them: `prev_state == "D" && (prio < 100 || comm ~ "kw*")`.
//!
//! A test is `FIELD OPERATOR VALUE`, with one of `== != < <= > >= & ~`; `~` compares with a glob, which says the opposite behind a `!`.
//! Tests are joined by `&&`, which binds closer, and `||`; `!` and parentheses stand before and around a condition. What fields there are,
//! and what they can be compared with, is the caller's ([`FilterFields`]).

/// Most parentheses and `!` inside one another.
const DEEPEST: usize = 32;

/// A condition on an event; `T` is a test of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition<T> {
    /// A test of one field.
    Test(T),
    /// A condition that does not hold.
    Not(Box<Self>),
    /// All hold.
    All(Vec<Self>),
    /// One holds.
    Any(Vec<Self>),
}

/// How a field has to compare with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The two are the same.
    Equal,
    /// The field is less.
    Less,
    /// The field is less, or the same.
    LessOrEqual,
    /// The field is greater.
    Greater,
    /// The field is greater, or the same.
    GreaterOrEqual,
    /// The numbers have a bit in common.
    Bits,
    /// The text matches a glob.
    Glob,
}

/// What a field is compared with, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand<'a> {
    /// A word without quotes: a number, as a rule.
    Bare(&'a str),
    /// The text between quotes.
    Quoted(&'a str),
}

/// A test as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenTest<'a> {
    /// The operator as written.
    pub operator: &'static str,
    /// What it asks; of `!=` that the two are the same, which the condition around the test turns round.
    pub comparison: Comparison,
    /// What stands behind it; of a glob without a `!` in front.
    pub operand: Operand<'a>,
}

/// The fields that a condition can be about.
pub trait FilterFields {
    /// A field.
    type Field;
    /// A test of one.
    type Test;

    /// The field called `name`.
    ///
    /// # Errors
    /// There is none, and why.
    fn field(&self, name: &str) -> Result<Self::Field, String>;

    /// The test of `field` that is `written`.
    ///
    /// # Errors
    /// It cannot be compared so.
    fn test(&self, field: Self::Field, written: WrittenTest<'_>) -> Result<Self::Test, String>;

    /// The fields there are, for a message: `there are comm, prio`.
    fn there_are(&self) -> String;
}

/// The operators, those first that others begin with; true: it says the opposite of the comparison.
const OPERATORS: [(&str, Comparison, bool); 8] = [
    ("==", Comparison::Equal, false),
    ("!=", Comparison::Equal, true),
    ("<=", Comparison::LessOrEqual, false),
    (">=", Comparison::GreaterOrEqual, false),
    ("<", Comparison::Less, false),
    (">", Comparison::Greater, false),
    ("&", Comparison::Bits, false),
    ("~", Comparison::Glob, false),
];

impl Comparison {
    /// Whether `number` compares so with `with`; a glob is no comparison of numbers.
    pub fn holds(self, number: i128, with: i128) -> bool {
        match self {
            Self::Equal => number == with,
            Self::Less => number < with,
            Self::LessOrEqual => number <= with,
            Self::Greater => number > with,
            Self::GreaterOrEqual => number >= with,
            Self::Bits => number & with != 0,
            Self::Glob => false,
        }
    }
}

impl<T> Condition<T> {
    /// The condition that `text` writes, on these `fields`.
    ///
    /// # Errors
    /// It is not understood, names no field, or compares a field with what it cannot be.
    pub fn parse<F: FilterFields<Test = T>>(text: &str, fields: &F) -> Result<Self, String> {
        let mut parser = Parser { rest: text, fields, depth: 0 };
        let condition = parser.any()?;
        match parser.peek() {
            "" => Ok(condition),
            rest => Err(format!("'{rest}' is not understood; conditions are joined by && and ||")),
        }
    }

    /// Whether it holds, by what `test` says of each test; None = a field that decides it is not known.
    pub fn holds(&self, test: &mut impl FnMut(&T) -> Option<bool>) -> Option<bool> {
        match self {
            Self::Test(one) => test(one),
            Self::Not(inner) => inner.holds(test).map(|holds| !holds),
            Self::All(all) => decided(all, test, false),
            Self::Any(any) => decided(any, test, true),
        }
    }
}

/// Of conditions of which one that is `decisive` decides.
fn decided<T>(conditions: &[Condition<T>], test: &mut impl FnMut(&T) -> Option<bool>, decisive: bool) -> Option<bool> {
    let mut unknown = false;
    for condition in conditions {
        match condition.holds(test) {
            Some(holds) if holds == decisive => return Some(decisive),
            Some(_) => {}
            None => unknown = true,
        }
    }
    (!unknown).then_some(!decisive)
}

/// The number that `word` writes as C does: `12`, `-3`, `0x10`, `010`; None = it is none of 64 bits.
pub fn written_number(word: &str) -> Option<i128> {
    let (negative, digits) = word.strip_prefix('-').map_or((false, word), |digits| (true, digits));
    let lower = digits.to_ascii_lowercase();
    let parsed = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
        (Some(digits), _) => u64::from_str_radix(digits, 16),
        (None, Some(digits)) if !digits.is_empty() => u64::from_str_radix(digits, 8),
        _ => lower.parse(),
    };
    // a second sign is none
    let parsed = parsed.ok().filter(|_| !digits.starts_with('+')).map(i128::from)?;
    Some(if negative { -parsed } else { parsed })
}

struct Parser<'a, F> {
    rest: &'a str,
    fields: &'a F,
    depth: usize,
}

impl<'a, F: FilterFields> Parser<'a, F> {
    fn peek(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    fn take(&mut self, word: &str) -> bool {
        let rest = self.peek().strip_prefix(word);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn any(&mut self) -> Result<Condition<F::Test>, String> {
        let mut any = vec![self.all()?];
        while self.take("||") {
            any.push(self.all()?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { Condition::Any(any) })
    }

    fn all(&mut self) -> Result<Condition<F::Test>, String> {
        let mut all = vec![self.one()?];
        while self.take("&&") {
            all.push(self.one()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Condition::All(all) })
    }

    fn one(&mut self) -> Result<Condition<F::Test>, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("more than {DEEPEST} parentheses and '!' are inside one another"));
        }
        let condition = if self.take("!") {
            Condition::Not(Box::new(self.one()?))
        } else if self.take("(") {
            let inner = self.any()?;
            if !self.take(")") {
                return Err("a parenthesis is not closed".to_owned());
            }
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    /// `FIELD OPERATOR VALUE`.
    fn test(&mut self) -> Result<Condition<F::Test>, String> {
        let name = self.until(|c| !c.is_ascii_alphanumeric() && c != '_');
        if name.is_empty() {
            let found = if self.rest.is_empty() { "nothing" } else { self.rest };
            return Err(format!("a field's name was expected, not {found}; {}", self.fields.there_are()));
        }
        if self.rest.starts_with('.') {
            return Err(format!(
                "'{name}.' and a word: the address of a function or a program's text is not looked up"
            ));
        }
        let field = self.fields.field(name)?;
        let Some(&(operator, comparison, mut opposite)) = OPERATORS.iter().find(|(operator, ..)| self.take(operator))
        else {
            return Err(format!("behind '{name}' one of == != < <= > >= & ~ was expected"));
        };
        let mut operand = self.operand()?;
        if let (Comparison::Glob, Operand::Bare(text) | Operand::Quoted(text)) = (comparison, &mut operand) {
            if text.contains('\\') {
                return Err(format!("'{text}': in a glob * ? [a-z] have a meaning, and a backslash has none"));
            }
            if let Some(glob) = text.strip_prefix('!') {
                (*text, opposite) = (glob, true);
            }
        }
        let test = Condition::Test(self.fields.test(field, WrittenTest { operator, comparison, operand })?);
        Ok(if opposite { Condition::Not(Box::new(test)) } else { test })
    }

    /// What stands before the first character that `ends` it.
    fn until(&mut self, ends: impl Fn(char) -> bool) -> &'a str {
        let text = self.peek();
        let end = text.find(ends).unwrap_or(text.len());
        self.rest = &text[end..];
        &text[..end]
    }

    fn operand(&mut self) -> Result<Operand<'a>, String> {
        let rest = self.peek();
        let Some(quote) = rest.chars().next().filter(|c| ['"', '\''].contains(c)) else {
            return Ok(Operand::Bare(self.until(|c| c.is_whitespace() || "&|()\"'".contains(c))));
        };
        let Some((text, behind)) = rest[1..].split_once(quote) else {
            return Err(format!("a quote is not closed: {rest}"));
        };
        self.rest = behind;
        Ok(Operand::Quoted(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbers;

    impl FilterFields for Numbers {
        type Field = String;
        type Test = (String, Comparison, i128);

        fn field(&self, name: &str) -> Result<String, String> {
            if name.len() == 1 { Ok(name.to_owned()) } else { Err(format!("no {name}")) }
        }

        fn test(&self, field: String, written: WrittenTest<'_>) -> Result<Self::Test, String> {
            match written.operand {
                Operand::Bare(word) => Ok((field, written.comparison, written_number(word).ok_or("no number")?)),
                Operand::Quoted(_) => Err(format!("no text by {}", written.operator)),
            }
        }

        fn there_are(&self) -> String {
            "there are letters".to_owned()
        }
    }

    /// Whether it holds where `a` is 1, `b` is 2, and nothing else is known.
    fn holds(text: &str) -> Option<bool> {
        let condition = Condition::parse(text, &Numbers).unwrap_or_else(|error| panic!("{text}: {error}"));
        condition.holds(&mut |(name, comparison, with)| {
            let value = [("a", 1), ("b", 2)].into_iter().find(|(known, _)| known == name)?.1;
            Some(comparison.holds(value, *with))
        })
    }

    #[test]
    fn and_binds_closer_than_or() {
        assert_eq!(holds("a==1 || b==0 && b==1"), Some(true));
        assert_eq!(holds("(a==1||b==0)&&b==1"), Some(false));
        assert_eq!(holds("!a==0 && !(b < 2) && b&2 && a != 0x2 && b >= 02 && b > -1"), Some(true));
    }

    #[test]
    fn what_is_not_known_decides_nothing() {
        assert_eq!([holds("x==1"), holds("x!=1"), holds("!(x==1)")], [None; 3]);
        assert_eq!(
            (holds("x==1 || a==1"), holds("x==1 && a==2"), holds("x==1 && a==1")),
            (Some(true), Some(false), None)
        );
    }

    #[test]
    fn errors_say_what_was_expected() {
        for (text, said) in [
            ("", "a field's name was expected, not nothing; there are letters"),
            ("ab == 1", "no ab"),
            ("a = 1", "one of =="),
            ("a == 'x'", "no text by =="),
            ("a == 'x", "a quote is not closed"),
            ("a == 1 b == 2", "'b == 2' is not understood"),
            ("(a == 1", "not closed"),
            ("a.b == 1", "is not looked up"),
            ("a ~ x\\", "a backslash has none"),
            ("a == 99999999999999999999", "no number"),
            ("a == -+1", "no number"),
        ] {
            let error = Condition::parse(text, &Numbers).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        for deep in ["(", "!"].map(|word| word.repeat(100_000)) {
            assert!(Condition::parse(&deep, &Numbers).unwrap_err().contains("inside one another"));
        }
    }
}
