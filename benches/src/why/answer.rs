//! What `analyze why` said of a tape: rows of findings and of the budget.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// One line of the answer.
#[derive(Clone, Debug)]
pub(crate) struct Row(Value);

/// How a cost was said, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SaidCost {
    /// One figure.
    One(f64),
    /// Between two.
    Range(f64, f64),
    /// None: it is not known.
    Nothing,
}

impl Row {
    /// A row as it was printed.
    pub(crate) fn of(value: Value) -> Self {
        Self(value)
    }

    /// A field as text; absent when it is null or the row has none. Bytes that are no UTF-8 are an object with a text.
    pub(crate) fn text(&self, field: &str) -> Option<String> {
        match self.0.get(field)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            Value::Object(object) => object.get("text").and_then(Value::as_str).map(str::to_owned),
            other => Some(other.to_string()),
        }
    }

    /// A row without a kind is a finding: tapes of before the budget.
    fn kind(&self) -> String {
        self.text("kind").unwrap_or_else(|| "finding".into())
    }

    fn seconds(&self, field: &str) -> Option<f64> {
        let value = self.0.get(field)?;
        let ns = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
        Some(ns / 1e9)
    }

    /// What it says that the cause costs.
    pub(crate) fn said(&self) -> SaidCost {
        match (self.seconds("cost_ns"), self.seconds("cost_hi_ns")) {
            (Some(low), Some(high)) => SaidCost::Range(low, high),
            (Some(one), None) => SaidCost::One(one),
            _ => SaidCost::Nothing,
        }
    }

    /// Whether the row lays it on the program: by its field, or by name in its sentence where the time is not the program's own.
    pub(crate) fn blames(&self, comm: &str) -> bool {
        if self.text("by_comm").as_deref() == Some(comm) {
            return true;
        }
        let own = self.text("comm").is_some_and(|own| own == comm);
        !own && self.text("text").is_some_and(|text| has_word(&text, comm))
    }

    /// Whether it is about waits for a CPU, which other programs of a busy machine cause; a limit is something else.
    pub(crate) fn is_of_cpu(&self) -> bool {
        let limit = |rule: &str| ["quota", "throttl", "limit"].iter().any(|word| rule.contains(word));
        self.text("rule").is_some_and(|rule| rule.contains("cpu") && !limit(&rule))
    }
}

/// Whether a name stands in a sentence, not as part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        // a full stop behind a name ends the sentence
        let after = text[at + word.len()..].chars().next().filter(|c| *c != '.');
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// The answer to one tape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// The findings, as they stand.
    pub findings: Vec<Row>,
    /// The budget's rows of the first level.
    pub budget: Vec<Row>,
}

impl Answer {
    /// Asks `analyze why` about a tape; also gives its output.
    pub(crate) fn ask(analyze: &Path, tape: &Path) -> Result<(Self, String)> {
        let mut command = Command::new(analyze);
        command.args(["why", "--format", "json", "--top", "0", "-i"]).arg(tape);
        let out = command.stdin(Stdio::null()).output().with_context(|| analyze.display().to_string())?;
        // 3: something was lost, and said
        if !matches!(out.status.code(), Some(0 | 3)) {
            bail!("{command:?}: {}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim());
        }
        let text = String::from_utf8(out.stdout).context("analyze why: not UTF-8")?;
        Ok((Self::read(&text)?, text))
    }

    fn read(text: &str) -> Result<Self> {
        let mut answer = Self::default();
        for line in text.lines() {
            let row = Row::of(serde_json::from_str(line).with_context(|| format!("analyze why: {line}"))?);
            match row.kind().as_str() {
                "finding" => answer.findings.push(row),
                "budget" if row.text("level").as_deref() == Some("1") => answer.budget.push(row),
                "budget" | "note" => {}
                other => bail!("analyze why: a row of kind {other}"),
            }
        }
        Ok(answer)
    }

    /// Seconds of the budget's first level; absent when there is none.
    pub(crate) fn budget_sum(&self) -> Option<f64> {
        (!self.budget.is_empty()).then(|| self.budget.iter().filter_map(|row| row.seconds("cost_ns")).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: &str =
        r#"{"rule":"lock","class":"time","cost_ns":"1500000000","comm":{"text":"a\\xff","hex":"61ff"},"text":"t"}"#;

    #[test]
    fn rows_of_before_the_budget_are_findings() {
        let answer = Answer::read(TODAY).expect("rows");
        assert_eq!((answer.findings.len(), answer.budget_sum()), (1, None));
        assert_eq!(answer.findings[0].said(), SaidCost::One(1.5));
        assert_eq!(answer.findings[0].text("comm").as_deref(), Some("a\\xff"));
    }

    #[test]
    fn the_first_level_adds_up() {
        let lines = [
            r#"{"kind":"budget","level":1,"call":"flock","cost_ns":600000000}"#,
            r#"{"kind":"budget","level":2,"state":"blocked","cost_ns":600000000}"#,
            r#"{"kind":"budget","level":1,"call":null,"cost_ns":400000000}"#,
            r#"{"kind":"finding","cost_ns":300000000,"cost_hi_ns":500000000}"#,
            r#"{"kind":"finding","cost_ns":null,"cost_hi_ns":null}"#,
            r#"{"kind":"note","text":"record (itself)"}"#,
        ];
        let answer = Answer::read(&lines.join("\n")).expect("rows");
        assert_eq!(answer.budget_sum(), Some(1.0));
        let said: Vec<_> = answer.findings.iter().map(Row::said).collect();
        assert_eq!(said, [SaidCost::Range(0.3, 0.5), SaidCost::Nothing]);
        assert!(Answer::read(r#"{"kind":"other"}"#).is_err());
    }

    #[test]
    fn names_in_sentences_are_whole() {
        assert!(has_word("on a CPU most: burner 12 (69% of one)", "burner"));
        assert!(has_word("held by keeper.", "keeper") && has_word("keeper", "keeper"));
        assert!(
            !has_word("/tmp/keeper/x", "keeper") && !has_word("keeper2", "keeper") && !has_word("a-keeper", "keeper")
        );
    }
}
