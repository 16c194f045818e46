//! Whether an answer is as expected.

use std::ops::ControlFlow;

use anyhow::{Result, anyhow};
use systape_format::table::Type;

use super::number::{self, CompareOp, NumberBounds};
use super::parse::{Expectation, Figure, Fold};
use crate::asked::config::view::Ask;
use systape_answers::lines::tables::LOSSES;
use systape_answers::render::out::TakesRows;
use systape_answers::render::row::Row;
use systape_answers::values::bad_usage::BadUsage;

/// What became of an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExpectationOutcome {
    /// The answer is as expected.
    Holds,
    /// The answer is another.
    Fails,
    /// The answer may be as expected or not: something is missing.
    NotKnown,
}

impl ExpectationOutcome {
    /// Word in JSON and CSV.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::NotKnown => "not_known",
        }
    }
}

/// An expectation, judged.
#[derive(Clone, Debug)]
pub(super) struct JudgedExpectation<'e> {
    /// The expectation.
    pub of: &'e Expectation,
    /// What became of it.
    pub outcome: ExpectationOutcome,
    /// The number that was found; None: it is not known.
    pub found: Option<String>,
    /// Why it is not known, or what else is to be said.
    pub why: Option<String>,
}

/// Judges `expectation` by the answer to its report.
///
/// # Errors
/// The expectation asks for what there is not: a report, an option, a column.
pub(super) fn judge<'e>(expectation: &'e Expectation, ask: Ask<'_>) -> Result<JudgedExpectation<'e>> {
    let mut folder = Folder { figure: &expectation.figure, rows: 0, ty: Type::Count, number: None, wrong: None };
    let asked = ask(&expectation.report, &mut folder);
    let wrong = |why: String| anyhow!(BadUsage(format!("line {}: {why}", expectation.line)));
    let verdict = match asked {
        Ok(verdict) => verdict,
        Err(error) if BadUsage::is(&error) => return Err(wrong(format!("{error:#}"))),
        Err(error) => {
            let why = Some(format!("{error:#}"));
            return Ok(JudgedExpectation { of: expectation, outcome: ExpectationOutcome::NotKnown, found: None, why });
        }
    };
    if let Some(why) = folder.wrong {
        return Err(wrong(why));
    }
    // rows may be missing
    let lost = verdict.lost;
    let (number, ty) = match (&expectation.figure, folder.number) {
        (Figure::Rows, _) => (Some(NumberBounds::count(folder.rows, lost)), Type::Count),
        (Figure::Of(Fold::Sum, _), number) => {
            let sum = number.unwrap_or(NumberBounds::exactly(0));
            (Some(if lost { NumberBounds { most: None, ..sum } } else { sum }), folder.ty)
        }
        (Figure::Of(fold, _), number) if lost => {
            let known = number.unwrap_or_default();
            let more = if *fold == Fold::Max {
                known.max(NumberBounds::default())
            } else {
                known.min(NumberBounds::default())
            };
            (Some(more), folder.ty)
        }
        (_, number) => (number, folder.ty),
    };
    let Some(number) = number else {
        let holds = of_no_row(expectation);
        let outcome = if holds { ExpectationOutcome::Holds } else { ExpectationOutcome::Fails };
        return Ok(JudgedExpectation { of: expectation, outcome, found: None, why: Some("no row".to_owned()) });
    };
    let value = match (folder.rows, number::written(&expectation.value, ty)) {
        (_, Ok(value)) => value,
        // of what type the column is nobody said
        (0, Err(_)) => 0,
        (_, Err(why)) => return Err(wrong(why)),
    };
    let (outcome, why) = match expectation.op.of(number, value) {
        Some(true) => (ExpectationOutcome::Holds, None),
        Some(false) => (ExpectationOutcome::Fails, None),
        None if lost => (ExpectationOutcome::NotKnown, Some("events are missing that could change it".to_owned())),
        None => (ExpectationOutcome::NotKnown, Some("the figure is a bound".to_owned())),
    };
    Ok(JudgedExpectation { of: expectation, outcome, found: number::within(number, ty), why })
}

/// Whether a condition holds of no row at all: that all are below holds, that one is above does not.
fn of_no_row(expectation: &Expectation) -> bool {
    matches!(
        (&expectation.figure, expectation.op),
        (Figure::Of(Fold::Max, _), CompareOp::Less | CompareOp::AtMost)
            | (Figure::Of(Fold::Min, _), CompareOp::More | CompareOp::AtLeast)
    )
}

/// Takes the rows of an answer.
struct Folder<'e> {
    figure: &'e Figure,
    rows: usize,
    /// Type of the column.
    ty: Type,
    /// None: no row yet.
    number: Option<NumberBounds>,
    /// What is wrong with the expectation.
    wrong: Option<String>,
}

impl TakesRows for Folder<'_> {
    fn row(&mut self, row: Row<'_>) -> ControlFlow<()> {
        let table = row.table();
        if table.name == LOSSES.name {
            return ControlFlow::Continue(());
        }
        self.rows += 1;
        let Figure::Of(fold, name) = self.figure else { return ControlFlow::Continue(()) };
        let columns = || table.columns.iter();
        let place = columns().position(|column| column.full_name() == *name);
        let Some((at, column)) = place.map(|at| (at, &table.columns[at])) else {
            let known: Vec<String> =
                columns().filter(|column| is_number(column.ty)).map(|column| column.full_name()).collect();
            self.wrong = Some(format!("there is no column '{name}'; numbers are in {}", known.join(", ")));
            return ControlFlow::Break(());
        };
        self.ty = column.ty;
        let cell = row.into_cells().nth(at);
        let number = cell.and_then(|(cell, known)| NumberBounds::of(&cell, known, column.short));
        let Some(number) = number.filter(|_| is_number(column.ty)) else {
            self.wrong = Some(format!("column '{name}' has no numbers"));
            return ControlFlow::Break(());
        };
        self.number = Some(match (self.number, fold) {
            (None, _) => number,
            (Some(before), Fold::Sum) => before.plus(number),
            (Some(before), Fold::Min) => before.min(number),
            (Some(before), Fold::Max) => before.max(number),
        });
        ControlFlow::Continue(())
    }

    fn note(&mut self, _text: &str) {}
}

fn is_number(ty: Type) -> bool {
    use Type::{Bytes, Count, Duration, Flag, Int, Real, Time, Wide};
    matches!(ty, Time | Duration | Count | Bytes | Int | Wide | Real | Flag)
}
