//! Files of expectations: a line each, `NAME: REPORT => CONDITION`.

use super::number::CompareOp;
use systape_events::values::words::shell;

/// Most expectations of a file.
const MOST: usize = 1000;

/// One expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expectation {
    /// What it is called.
    pub name: String,
    /// Command line of the report, without `analyze` and the tape.
    pub report: Vec<String>,
    /// What is compared.
    pub figure: Figure,
    /// How it is compared.
    pub op: CompareOp,
    /// The number that it is compared with, as written.
    pub value: String,
    /// Number of the line.
    pub line: usize,
}

/// A number of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    /// How many rows it has.
    Rows,
    /// A number of its rows taken together.
    Of(Fold, String),
}

/// How the numbers of a column become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    /// All of them added.
    Sum,
    /// The least.
    Min,
    /// The largest.
    Max,
}

impl Fold {
    const NAMES: [(&'static str, Self); 3] = [("sum", Self::Sum), ("min", Self::Min), ("max", Self::Max)];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, fold)| *fold == self).map_or("", |(name, _)| name)
    }
}

impl Figure {
    /// The figure as it is written.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Rows => "rows".to_owned(),
            Self::Of(fold, column) => format!("{}({column})", fold.name()),
        }
    }
}

impl Expectation {
    /// Arguments of `analyze` whose answer is judged, as a shell takes them, without the tape.
    pub(super) fn command(&self) -> String {
        shell(&self.report.iter().map(|word| word.clone().into_bytes()).collect::<Vec<_>>())
    }

    /// The condition as it is written.
    pub(super) fn condition(&self) -> String {
        let op = CompareOp::WRITTEN.iter().rev().find(|(_, op)| *op == self.op).map_or("", |(text, _)| text);
        format!("{} {op} {}", self.figure.text(), self.value)
    }
}

/// Reads a file.
///
/// # Errors
/// A line is none; the text says which, and what is wrong.
pub(super) fn expectations(text: &str) -> Result<Vec<Expectation>, String> {
    let lines = (1..).zip(text.lines()).map(|(number, text)| (number, text.trim()));
    let lines = lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#'));
    let of = |(line, text): (usize, &str)| expectation(text, line).map_err(|why| format!("line {line}: {why}"));
    let all: Vec<Expectation> = lines.take(MOST + 1).map(of).collect::<Result<_, _>>()?;
    match all.len() {
        0 => Err("there is no expectation in it".to_owned()),
        count if count > MOST => Err(format!("there are more than {MOST} expectations in it")),
        _ => Ok(all),
    }
}

fn expectation(text: &str, line: usize) -> Result<Expectation, String> {
    const FORM: &str = "an expectation is NAME: REPORT => CONDITION";
    let (name, rest) = text.split_once(": ").ok_or(FORM)?;
    let (report, condition) = rest.rsplit_once("=>").ok_or(FORM)?;
    let report = words(report)?;
    if name.trim().is_empty() || report.is_empty() {
        return Err(FORM.to_owned());
    }
    let at = condition
        .find(['<', '>', '=', '!'])
        .ok_or("a condition is rows, sum(X), min(X) or max(X), compared with a number")?;
    let (figure, compared) = condition.split_at(at);
    let (written, op) = CompareOp::WRITTEN
        .iter()
        .find(|(written, _)| compared.starts_with(written))
        .ok_or("it is compared by <, <=, >, >=, = or !=")?;
    let value = compared[written.len()..].trim().to_owned();
    let figure = figure_of(figure.trim())?;
    Ok(Expectation { name: name.trim().to_owned(), report, figure, op: *op, value, line })
}

fn figure_of(text: &str) -> Result<Figure, String> {
    if text == "rows" {
        return Ok(Figure::Rows);
    }
    let of = |(name, fold): &(&str, Fold)| {
        let column = text.strip_prefix(name)?.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(Figure::Of(*fold, column.trim().to_owned()))
    };
    Fold::NAMES
        .iter()
        .find_map(of)
        .ok_or_else(|| format!("'{text}' is no figure: rows, or sum, min or max of a column: max({text})"))
}

/// Words as a shell parts them.
fn words(text: &str) -> Result<Vec<String>, String> {
    shlex::split(text).ok_or_else(|| "a quote is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_a_name_a_report_and_a_condition() {
        let text = "# of the service\n\nno slow fsync: top --by comm -e fsync => max(max_ns) <= 50ms\nquiet: kills=>rows == 0\n";
        let all = expectations(text).unwrap();
        assert_eq!((all.len(), all[0].line, all[1].line), (2, 3, 4));
        assert_eq!((all[0].name.as_str(), all[0].condition()), ("no slow fsync", "max(max_ns) <= 50ms".to_owned()));
        assert_eq!(all[0].report, ["top", "--by", "comm", "-e", "fsync"]);
        assert_eq!((&all[1].figure, all[1].condition()), (&Figure::Rows, "rows = 0".to_owned()));
    }

    #[test]
    fn quotes_hold_words_together() {
        let all = expectations("x: top -e 'sched:sched_switch/prev_state==D/' --by \"comm\" => rows > 0").unwrap();
        assert_eq!(all[0].report, ["top", "-e", "sched:sched_switch/prev_state==D/", "--by", "comm"]);
        assert_eq!(words("a '' b\"c d\"").unwrap(), ["a", "", "bc d"]);
    }

    #[test]
    fn a_wrong_line_is_told_with_its_number() {
        for (text, why) in [
            ("", "there is no expectation"),
            ("top => rows = 0", "line 1: an expectation is NAME: REPORT => CONDITION"),
            ("a: top", "line 1: an expectation is"),
            ("\na: => rows = 0", "line 2: an expectation is"),
            ("a: top => rows", "line 1: a condition is"),
            ("a: top => rows ! 3", "line 1: it is compared by"),
            ("a: top => calls = 3", "line 1: 'calls' is no figure: rows, or sum, min or max of a column: max(calls)"),
            ("a: top 'x => rows = 3", "line 1: a quote is not closed"),
        ] {
            let told = expectations(text).unwrap_err();
            assert!(told.starts_with(why), "{text}: {told}");
        }
    }
}
