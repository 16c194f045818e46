//! Answers as text, JSON and CSV.

use std::io::Write;

use anyhow::Result;
use datafusion::arrow::array::{Array, AsArray as _, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, SchemaRef};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::{Number, Value};
use systape_analyzer::frames::{escaped, plain, plain_json};

/// Form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Columns for people.
    #[default]
    Text,
    /// One object a line.
    Json,
    /// One row a line, after a line of names.
    Csv,
}

/// Most rows that decide how wide columns of text are.
const LOOKED_AT: usize = 4096;

/// Writes an answer.
pub(crate) struct AnswerWriter<W> {
    form: Form,
    to: W,
    names: Vec<String>,
    /// Rows of text that wait for the widths of their columns.
    waiting: Vec<Vec<String>>,
    numbers: Vec<bool>,
    widths: Option<Vec<usize>>,
    /// Rows so far.
    pub(crate) rows: u64,
}

impl<W: Write> AnswerWriter<W> {
    /// Makes one that writes to `to`.
    pub(crate) fn new(form: Form, to: W) -> Self {
        Self { form, to, names: Vec::new(), waiting: Vec::new(), numbers: Vec::new(), widths: None, rows: 0 }
    }

    /// The columns.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn begin(&mut self, schema: &SchemaRef) -> Result<()> {
        self.names = schema.fields().iter().map(|field| field.name().clone()).collect();
        self.numbers = schema.fields().iter().map(|field| field.data_type().is_numeric()).collect();
        if self.form == Form::Csv {
            let names = self.names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",");
            writeln!(self.to, "{names}")?;
        }
        Ok(())
    }

    /// More rows.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        let columns = batch.columns().iter().map(Column::new).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            match self.form {
                Form::Json => {
                    // in the order of the columns, which a map of the library would not keep
                    for (at, (name, column)) in self.names.iter().zip(&columns).enumerate() {
                        self.to.write_all(if at == 0 { b"{" } else { b"," })?;
                        let name = Value::from(name.as_str()).to_string();
                        let value = column.json(row).to_string();
                        write!(self.to, "{}:{}", plain_json(&name), plain_json(&value))?;
                    }
                    self.to.write_all(if columns.is_empty() { b"{}\n" } else { b"}\n" })?;
                }
                Form::Csv => {
                    let cells =
                        columns.iter().map(|column| column.text(row).map_or_else(String::new, |text| quoted(&text)));
                    writeln!(self.to, "{}", cells.collect::<Vec<_>>().join(","))?;
                }
                Form::Text => {
                    let cell = |column: &Column| {
                        column.text(row).map_or_else(|| "NULL".to_owned(), |text| escaped(text.as_bytes()))
                    };
                    let cells: Vec<String> = columns.iter().map(cell).collect();
                    if self.widths.is_some() {
                        self.line(&cells)?;
                    } else {
                        self.waiting.push(cells);
                        if self.waiting.len() == LOOKED_AT {
                            self.settle()?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes what is kept.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn flush(&mut self) -> Result<()> {
        Ok(self.to.flush()?)
    }

    /// The end; `lost`: what may be missing, as the last line of JSON.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn end(&mut self, complete: bool, lost: &[String]) -> Result<()> {
        if self.form == Form::Text {
            self.settle()?;
        }
        if self.form == Form::Json {
            let rows = Number::from(self.rows);
            let end = serde_json::json!({ "rows": rows, "complete": complete, "losses": lost });
            writeln!(self.to, "{}", plain_json(&end.to_string()))?;
        }
        Ok(self.to.flush()?)
    }

    fn settle(&mut self) -> Result<()> {
        if self.widths.is_some() {
            return Ok(());
        }
        let names: Vec<String> = self.names.iter().map(|name| escaped(name.as_bytes())).collect();
        let width = |at: usize| {
            let cells = self.waiting.iter().map(|row| row[at].chars().count());
            cells.chain([names[at].chars().count()]).max().unwrap_or(0)
        };
        self.widths = Some((0..names.len()).map(width).collect());
        self.line(&names)?;
        for row in std::mem::take(&mut self.waiting) {
            self.line(&row)?;
        }
        Ok(())
    }

    fn line(&mut self, cells: &[String]) -> Result<()> {
        let widths = self.widths.as_deref().unwrap_or_default();
        let mut line = String::new();
        for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
            if at > 0 {
                line.push_str("  ");
            }
            let fill = " ".repeat(width.saturating_sub(cell.chars().count()));
            let number = self.numbers.get(at).copied().unwrap_or(false);
            line.extend(if number { [fill.as_str(), cell.as_str()] } else { [cell.as_str(), fill.as_str()] });
        }
        Ok(writeln!(self.to, "{}", line.trim_end())?)
    }
}

/// A column, of which single values are printed.
enum Column<'a> {
    Whole(datafusion::arrow::array::Int64Array),
    Digits(datafusion::arrow::array::Decimal128Array),
    Real(datafusion::arrow::array::Float64Array),
    Flag(&'a datafusion::arrow::array::BooleanArray),
    Null,
    Map(&'a datafusion::arrow::array::MapArray),
    Other(&'a dyn Array, ArrayFormatter<'a>),
}

impl<'a> Column<'a> {
    fn new(array: &'a std::sync::Arc<dyn Array>) -> Result<Self> {
        const OPTIONS: FormatOptions<'static> =
            FormatOptions::new().with_timestamp_tz_format(Some("%Y-%m-%dT%H:%M:%S%.6fZ"));
        Ok(match array.data_type() {
            DataType::Null => Self::Null,
            DataType::Boolean => Self::Flag(array.as_boolean()),
            ty if ty.is_integer() => {
                // a number of rows fits; the engine has no other numbers without a sign
                let options = datafusion::arrow::compute::CastOptions { safe: false, ..Default::default() };
                let cast = datafusion::arrow::compute::cast_with_options(array, &DataType::Int64, &options)?;
                Self::Whole(cast.as_primitive::<Int64Type>().clone())
            }
            ty if ty.is_floating() => {
                Self::Real(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
            }
            DataType::Decimal128(..) => Self::Digits(array.as_primitive::<Decimal128Type>().clone()),
            DataType::Map(..) => Self::Map(array.as_map()),
            _ => Self::Other(&**array, ArrayFormatter::try_new(&**array, &OPTIONS)?),
        })
    }

    fn text(&self, row: usize) -> Option<String> {
        match self {
            Self::Whole(array) => array.is_valid(row).then(|| array.value(row).to_string()),
            Self::Digits(array) => array.is_valid(row).then(|| array.value_as_string(row)),
            Self::Real(array) => array.is_valid(row).then(|| array.value(row).to_string()),
            Self::Flag(array) => array.is_valid(row).then(|| array.value(row).to_string()),
            Self::Null => None,
            Self::Map(array) => array.is_valid(row).then(|| self.json(row).to_string()),
            Self::Other(array, format) => array.is_valid(row).then(|| format.value(row).to_string()),
        }
    }

    fn json(&self, row: usize) -> Value {
        match self {
            Self::Whole(array) => {
                if array.is_valid(row) {
                    array.value(row).into()
                } else {
                    Value::Null
                }
            }
            Self::Real(array) => match array.is_valid(row).then(|| array.value(row)) {
                // JSON has no word for what is no number
                Some(real) => Number::from_f64(real).map_or_else(|| real.to_string().into(), Value::Number),
                None => Value::Null,
            },
            Self::Flag(array) => {
                if array.is_valid(row) {
                    array.value(row).into()
                } else {
                    Value::Null
                }
            }
            Self::Digits(_) => match self.text(row) {
                // beyond 53 bits it is a string, as everywhere
                Some(text) => match text.parse::<i64>() {
                    Ok(number) if number.unsigned_abs() < 1 << 53 => number.into(),
                    _ => text.into(),
                },
                None => Value::Null,
            },
            Self::Map(array) if array.is_valid(row) => {
                let entries = array.value(row);
                let (keys, values) = (entries.column(0).as_string::<i32>(), entries.column(1).as_string::<i32>());
                let value = |at: usize| if values.is_valid(at) { values.value(at).into() } else { Value::Null };
                Value::Object((0..keys.len()).map(|at| (keys.value(at).to_owned(), value(at))).collect())
            }
            Self::Map(_) => Value::Null,
            Self::Null | Self::Other(..) => self.text(row).map_or(Value::Null, Value::String),
        }
    }
}

/// A cell of CSV (RFC 4180); what a spreadsheet could take for a formula is quoted too.
fn quoted(text: &str) -> String {
    let text = plain(text);
    let formula = text.starts_with(['=', '+', '@']) || (text.starts_with('-') && text.parse::<f64>().is_err());
    if formula || text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into_owned() }
}
