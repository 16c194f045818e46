//! Filters of `-e 'FAMILY:EVENT/FILTER/'`: conditions on the fields of an event ([`systape_abi::condition`]), by the names that JSON has.
//!
//! A field whose value is not known satisfies no test, whether it is turned round or not.

use systape_abi::condition::{Comparison, Condition, FilterFields, Operand, WrittenTest, written_number};
use systape_abi::{glob_matches, nearest};
use systape_format::table::Type;

use crate::catalogue::Event;
use crate::catalogue::shape::{LineField, Shape};
use crate::render::cell::Cell;
use crate::render::row::TaskColumn;

/// A filter on the fields of one kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFilter(Condition<FieldTest>);

/// A test of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldTest {
    field: TestedField,
    with: TestValue,
}

/// Where the value of a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestedField {
    /// In the line in front of the event's own fields.
    Line(LineField),
    /// Among the event's own fields, in this column.
    Own(usize),
}

/// What a value is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TestValue {
    Number(Comparison, i128),
    Text(String),
    Glob(String),
}

impl FieldFilter {
    /// The filter that `text` writes for events of this shape, and what to say of names that mean something else to the kernel.
    ///
    /// # Errors
    /// It is not understood, names no field, or compares a field with what it cannot be.
    pub fn new(text: &str, shape: &Shape) -> Result<(Self, Vec<String>), String> {
        let fields = OfEvent { shape, notes: std::cell::RefCell::default() };
        let condition = Condition::parse(text, &fields)?;
        Ok((Self(condition), fields.notes.into_inner()))
    }

    /// Whether `event`, which must have the shape, is one of those that are meant.
    pub fn lets(&self, event: &Event<'_>) -> bool {
        self.0.holds(&mut |test| test.holds(event)) == Some(true)
    }
}

impl FieldTest {
    /// Whether it holds; None: the value is not known.
    fn holds(&self, event: &Event<'_>) -> Option<bool> {
        let cell = match self.field {
            TestedField::Own(at) => event.values.cell(at),
            TestedField::Line(LineField::Time) => Cell::Int(event.since.into()),
            TestedField::Line(LineField::Cpu) => event.cpu.into(),
            TestedField::Line(LineField::Task(column)) => column.cell(event.task),
        };
        match (&self.with, cell) {
            (TestValue::Number(comparison, with), Cell::Int(number)) => Some(comparison.holds(number, *with)),
            (TestValue::Number(comparison, with), Cell::Flag(flag)) => Some(comparison.holds(flag.into(), *with)),
            (TestValue::Text(with), Cell::Text(text)) => Some(with.as_bytes() == &*text),
            (TestValue::Glob(glob), Cell::Text(text)) => {
                let by_bytes = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect::<String>();
                Some(glob_matches(&by_bytes(glob.as_bytes()), &by_bytes(&text)))
            }
            _ => None,
        }
    }
}

/// The fields of an event of one shape.
struct OfEvent<'a> {
    shape: &'a Shape,
    notes: std::cell::RefCell<Vec<String>>,
}

impl OfEvent<'_> {
    /// The field called `name`, and the type of its values.
    fn own(&self, name: &str) -> Option<(TestedField, Type)> {
        if let Some(field) = self.shape.field(name) {
            return Some((TestedField::Own(field.at), field.ty));
        }
        let field = LineField::named(name)?;
        let ty = if field == LineField::Task(TaskColumn::Comm) { Type::Str } else { Type::Int };
        Some((TestedField::Line(field), ty))
    }

    /// What to say where the kernel calls another field `name`.
    fn note(&self, name: &str) {
        let Some(kernels) = self.shape.of_kernel(name) else { return };
        let is = match (self.shape.field(name), name.strip_suffix("pid")) {
            (_, Some(stem)) if kernels.strip_suffix("tid") == Some(stem) => {
                format!("{name} is the process; the thread is {kernels}")
            }
            (Some(field), _) => format!("{name} is {}; what the kernel calls {name} is {kernels}", field.doc),
            (None, _) => {
                format!("{name} is that of the task whose line it is; what the kernel calls {name} is {kernels}")
            }
        };
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&is) {
            notes.push(is);
        }
    }

    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.shape.fields.iter().map(|field| field.name.as_str()).collect();
        for name in ["ts_ns", "cpu"].into_iter().chain(TaskColumn::ALL.into_iter().map(TaskColumn::name)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

impl FilterFields for OfEvent<'_> {
    type Field = (String, TestedField, Type);
    type Test = FieldTest;

    fn field(&self, name: &str) -> Result<Self::Field, String> {
        let kernels = || self.shape.of_kernel(name).and_then(|ours| self.own(ours));
        if let Some((field, ty)) = self.own(name) {
            self.note(name);
            return Ok((name.to_owned(), field, ty));
        }
        if let Some((field, ty)) = kernels() {
            return Ok((name.to_owned(), field, ty));
        }
        let near = nearest(name, self.names()).join(" or ");
        let near = if near.is_empty() { String::new() } else { format!("did you mean {near}? ") };
        Err(format!("{} has no field '{name}'; {near}{}", self.shape.event, self.there_are()))
    }

    fn test(&self, (name, field, ty): Self::Field, written: WrittenTest<'_>) -> Result<FieldTest, String> {
        let is_text = matches!(ty, Type::Str | Type::Word);
        let (Operand::Bare(word) | Operand::Quoted(word)) = written.operand;
        if written.operand == Operand::Bare("") {
            return Err(format!("a value was expected behind '{name} {}'", written.operator));
        }
        let with = match (written.comparison, is_text) {
            (Comparison::Equal, true) => TestValue::Text(word.to_owned()),
            (Comparison::Glob, true) => TestValue::Glob(word.to_owned()),
            (_, true) => {
                return Err(format!("'{name}' is a text: it is compared by ==, != and ~, not by {}", written.operator));
            }
            (Comparison::Glob, false) => return Err(format!("'{name}' is no text: it is not compared by ~")),
            (comparison, false) => {
                let number = match written.operand {
                    Operand::Bare("true") if ty == Type::Flag => Some(1),
                    Operand::Bare("false") if ty == Type::Flag => Some(0),
                    Operand::Bare(word) => written_number(word),
                    Operand::Quoted(_) => None,
                };
                let is = if ty == Type::Flag { "true or false" } else { "a number" };
                let number = number.ok_or_else(|| format!("'{name}' is {is}: '{word}' is not"))?;
                TestValue::Number(comparison, number)
            }
        };
        Ok(FieldTest { field, with })
    }

    fn there_are(&self) -> String {
        format!("there are {}", self.names().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::kinds;

    fn filter(text: &str, event: &str) -> Result<Vec<String>, String> {
        let kind = kinds().find(|kind| kind.name.ends_with(event)).unwrap();
        FieldFilter::new(text, &kind.shape).map(|(_, notes)| notes)
    }

    #[test]
    fn names_of_the_kernel_are_taken_where_they_mean_the_same() {
        let none = Ok(Vec::new());
        assert_eq!(filter("oldstate==LISTEN && newstate!=CLOSE && sport>1023", "set_state"), none);
        assert_eq!(filter("prev_state==D && prev_tid==7 && pid==7 && cpu<2", "switch"), none);
        let notes = |text, kind| filter(text, kind).unwrap().join("; ");
        let process = "prev_pid is the process; the thread is prev_tid";
        assert_eq!(notes("prev_pid==7 || prev_pid==8", "switch"), process);
        let waker = "pid is that of the task whose line it is; what the kernel calls pid is wakee_tid";
        assert_eq!(notes("pid==7", "waking"), waker);
        assert!(notes("exit_code==256", "exit").ends_with("what the kernel calls exit_code is wait_status"));
    }

    #[test]
    fn errors_say_what_there_is() {
        for (text, said) in [
            ("prev_stat==D", "sched:sched_switch has no field 'prev_stat'; did you mean prev_state"),
            ("prev_state<D", "'prev_state' is a text"),
            ("prev_tid==x", "'prev_tid' is a number: 'x' is not"),
            ("prev_tid==\"7\"", "'prev_tid' is a number"),
            ("prev_tid~7", "'prev_tid' is no text"),
            ("preempted==2x", "'preempted' is true or false"),
            ("prev_tid==", "a value was expected behind 'prev_tid =='"),
        ] {
            let error = filter(text, "switch").unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
