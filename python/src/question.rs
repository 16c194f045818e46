//! What is asked, as a line of JSON.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value};
use systape_analyzer::frames::Bounds;

/// A question.
#[derive(Debug)]
pub(crate) struct TapeQuestion {
    /// The tapes, and directories of tapes.
    pub(crate) tapes: Vec<PathBuf>,
    /// What of them.
    pub(crate) kind: QuestionKind,
}

/// Kinds of questions.
#[derive(Debug)]
pub(crate) enum QuestionKind {
    /// What tapes these are, and which tables they have.
    Tapes,
    /// Rows of a table.
    Table {
        /// Name of the table.
        table: String,
        /// Names of its columns; None: all.
        columns: Option<Vec<String>>,
        /// What is known of the rows that are wanted.
        bounds: Bounds,
        /// Whether rows are in order of time.
        ordered: bool,
        /// Most rows.
        most: Option<u64>,
    },
    /// Rows of a report, as typed behind `analyze`.
    Report(Vec<String>),
    /// What is lost of these tables; None: of all.
    Losses(Option<Vec<String>>),
    /// A command line of `analyze`, which writes to standard output.
    Command(Vec<String>),
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

fn bounds(value: &Value) -> Bounds {
    let pair = |name: &str| {
        let of = |at: usize| value.get(name).and_then(|pair| pair.get(at)).and_then(Value::as_i64);
        (of(0), of(1))
    };
    let pids = |value: &Value| -> Option<Vec<u32>> {
        value.as_array()?.iter().map(|pid| u32::try_from(pid.as_u64()?).ok()).collect()
    };
    Bounds {
        rel: pair("rel_ns"),
        epoch: pair("ts_ns"),
        pids: value.get("pid").and_then(pids),
        calls: value.get("syscall").and_then(texts),
        least_ns: value.get("dur_ns").and_then(Value::as_i64),
    }
}

impl TapeQuestion {
    /// Reads a question.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn read(json: &str) -> Result<Self> {
        let question: Map<String, Value> = serde_json::from_str(json).context("no question of systape's")?;
        let list = |name: &str| question.get(name).and_then(texts);
        let words = || list("words").context("words are missing");
        let tapes = list("tapes").context("tapes are missing")?.into_iter().map(PathBuf::from).collect();
        let kind = match question.get("ask").and_then(Value::as_str) {
            Some("tapes") => QuestionKind::Tapes,
            Some("table") => QuestionKind::Table {
                table: question.get("table").and_then(Value::as_str).context("table is missing")?.to_owned(),
                columns: list("columns"),
                bounds: question.get("bounds").map(bounds).unwrap_or_default(),
                ordered: question.get("ordered").and_then(Value::as_bool).unwrap_or(true),
                most: question.get("most").and_then(Value::as_u64),
            },
            Some("report") => QuestionKind::Report(words()?),
            Some("losses") => QuestionKind::Losses(list("tables")),
            Some("command") => QuestionKind::Command(words()?),
            _ => bail!("no question of systape's"),
        };
        Ok(Self { tapes, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_are_not_understood_bound_nothing() {
        let asked = r#"{"ask": "table", "tapes": ["t"], "table": "syscalls", "bounds":
            {"pid": [1, -1], "syscall": ["openat"], "rel_ns": [null, 7], "dur_ns": 5}}"#;
        let QuestionKind::Table { bounds, columns, ordered, .. } = TapeQuestion::read(asked).unwrap().kind else {
            panic!("{asked}")
        };
        let calls = Some(vec!["openat".to_owned()]);
        assert_eq!(bounds, Bounds { rel: (None, Some(7)), calls, least_ns: Some(5), ..Bounds::default() });
        assert_eq!((columns, ordered), (None, true));
        for wrong in ["", "[]", r#"{"ask": "x", "tapes": []}"#, r#"{"ask": "tapes"}"#] {
            assert!(TapeQuestion::read(wrong).is_err(), "{wrong}");
        }
    }
}
