//! The truth of a case about one row: conditions on its fields, all of which must hold.
//!
//! `syscall=flock|fcntl object*=shared.lock by=keeper`: a field, an operator, and values any of which will do. `=` is the whole
//! field, `*=` a part of it, `!=` none of the values. A value with spaces stands in single quotes. The field `by` holds where
//! the row lays it on that program: in `by_comm`, or by name in its sentence if it is not the program whose time it was.

use anyhow::{Result, bail};

use super::answer::Row;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Is,
    Has,
    IsNot,
}

#[derive(Clone, Debug)]
struct PatternCondition {
    field: String,
    operator: Operator,
    values: Vec<String>,
}

/// What only a run knows of its truth: `{pid}` is the recorded command's, others (addresses) the program wrote into its file
/// `truth`, as lines of a key and a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunFacts(Vec<(String, String)>);

impl RunFacts {
    /// From the file and the pid.
    pub(crate) fn of(pid: u32, truth: &str) -> Self {
        let pairs = truth.lines().filter_map(|line| line.split_once(' '));
        let pairs = pairs.map(|(key, value)| (format!("{{{key}}}"), value.to_owned()));
        Self(pairs.chain([("{pid}".to_owned(), pid.to_string())]).collect())
    }

    /// Each key, in braces, and its value.
    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    fn fill(&self, value: &str) -> String {
        self.0.iter().fold(value.to_owned(), |value, (key, fact)| value.replace(key, fact))
    }
}

impl From<Vec<(String, String)>> for RunFacts {
    fn from(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }
}

/// Conditions on a row, all of which must hold.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Vec<PatternCondition>);

impl Pattern {
    /// Reads one.
    ///
    /// # Errors
    /// A word is no condition, or there is none: it would hold of every row.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let conditions: Vec<_> = words(text).iter().map(|word| condition(word)).collect::<Result<_>>()?;
        if conditions.is_empty() {
            bail!("a pattern without a condition");
        }
        Ok(Self(conditions))
    }

    /// Whether the row is meant. What the run itself knew of its truth stands in `facts`.
    pub(crate) fn holds(&self, row: &Row, facts: &RunFacts) -> bool {
        self.0.iter().all(|condition| condition.holds(row, facts))
    }
}

impl PatternCondition {
    fn holds(&self, row: &Row, facts: &RunFacts) -> bool {
        // a value that nobody filled in is none that a row has
        let values = self.values.iter().map(|value| facts.fill(value));
        if self.field == "by" {
            return values.into_iter().any(|who| row.blames(&who));
        }
        let Some(found) = row.text(&self.field) else { return self.operator == Operator::IsNot };
        let lower = found.to_lowercase();
        match self.operator {
            Operator::Is => values.into_iter().any(|value| value == found),
            Operator::Has => values.into_iter().any(|value| lower.contains(&value.to_lowercase())),
            Operator::IsNot => values.into_iter().all(|value| value != found),
        }
    }
}

/// Splits at spaces that are not in quotes, and takes the quotes away.
pub(crate) fn words(text: &str) -> Vec<String> {
    let (mut all, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for letter in text.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => all.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty())),
            _ => word.push(letter),
        }
    }
    all.extend(Some(word).filter(|w| !w.is_empty()));
    all
}

fn condition(word: &str) -> Result<PatternCondition> {
    let Some((field, values)) = word.split_once('=') else { bail!("{word}: no condition") };
    let (field, operator) = match (field.strip_suffix('*'), field.strip_suffix('!')) {
        (Some(field), _) => (field, Operator::Has),
        (_, Some(field)) => (field, Operator::IsNot),
        _ => (field, Operator::Is),
    };
    let values: Vec<_> = values.split('|').map(str::to_owned).collect();
    if field.is_empty() || values.iter().any(String::is_empty) {
        bail!("{word}: a field or a value is empty");
    }
    Ok(PatternCondition { field: field.to_owned(), operator, values })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(pattern: &str) -> bool {
        let row =
            Row::of(json!({"syscall": "flock", "object": "/x/shared.lock", "comm": "app", "errno": null, "by_pid": 7,
            "by_comm": "keeper", "text": "app 3: 2 waiting flock calls; keeper-2 ran, Rest 4 too"}));
        Pattern::parse(pattern).expect("a pattern").holds(&row, &RunFacts::of(7, "lock shared\n"))
    }

    #[test]
    fn all_conditions_must_hold() {
        assert!(holds("syscall=fcntl|flock object*=SHARED by=keeper"));
        assert!(!holds("syscall=flock object*=other"));
        assert!(!holds("object=shared.lock"), "= is the whole field");
        assert!(holds("by_pid={pid}") && !holds("by_pid!={pid}"));
        assert!(holds("object*={lock}.lock") && !holds("object*={other}.lock"));
        assert!(holds("text*='2 waiting'") && !holds("text*='3 waiting'"));
    }

    #[test]
    fn a_field_that_is_not_there_is_nothing() {
        assert!(!holds("errno=ENOENT") && !holds("nothing*=x") && holds("errno!=ENOENT"));
    }

    #[test]
    fn blame_is_by_the_field_or_in_the_sentence() {
        assert!(holds("by=keeper") && holds("by=Rest"));
        assert!(!holds("by=app"), "whose time it was is not who took it");
        assert!(!holds("by=keep") && !holds("by=est"), "names are whole");
    }

    #[test]
    fn no_pattern_holds_of_everything() {
        for wrong in ["", " ", "flock", "=x", "syscall=", "syscall=a||b"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
