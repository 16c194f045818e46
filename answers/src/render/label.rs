//! What stands before each line of an answer of one of several tapes, and the lines of one that are merged with those of others.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Some lines of one tape.
#[derive(Debug, Default)]
pub struct Lines {
    /// The lines.
    pub bytes: Vec<u8>,
    /// The time of each on the tape's clock and where it ends in `bytes`, ascending; none: lines without a time.
    pub marks: Vec<(u64, usize)>,
}

/// What stands before each row of one tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TapeLabel {
    /// A label before each line of text.
    Text(Vec<u8>),
    /// The first members of each object: `"host":"a",`.
    Json(Vec<u8>),
    /// The first fields, and their names in the head: `a,` and `host,`.
    Csv {
        /// The fields.
        fields: Vec<u8>,
        /// Their names.
        names: String,
    },
}

/// The head of CSV, which is printed once for all tapes; None: not yet.
pub type Head = Arc<Mutex<Option<Vec<u8>>>>;

/// Puts a label before each line of one tape's answer.
#[derive(Debug)]
pub struct LabelledLines {
    label: TapeLabel,
    head: Head,
    /// The first line has come.
    begun: bool,
}

impl LabelledLines {
    /// Puts `label` before lines; `head` is of all tapes.
    pub fn new(label: TapeLabel, head: &Head) -> Self {
        Self { label, head: Arc::clone(head), begun: false }
    }

    /// Appends `line`, which ends with its newline, with the label.
    ///
    /// # Errors
    /// The head of CSV is another than that of the tapes before.
    pub fn line(&mut self, line: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let first = !std::mem::replace(&mut self.begun, true);
        let TapeLabel::Csv { names, .. } = &self.label else {
            self.label.add(line, out);
            return Ok(());
        };
        if !first {
            self.label.add(line, out);
            return Ok(());
        }
        let mut head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        match &*head {
            Some(before) if before == line => {}
            Some(_) => return Err(io::Error::other("its rows have other columns than those of the tapes before")),
            None => {
                out.extend_from_slice(names.as_bytes());
                out.extend_from_slice(line);
                *head = Some(line.to_vec());
            }
        }
        Ok(())
    }
}

impl TapeLabel {
    fn add(&self, line: &[u8], out: &mut Vec<u8>) {
        match (self, line.split_first()) {
            (Self::Json(members), Some((b'{', rest))) => {
                out.push(b'{');
                out.extend_from_slice(members);
                out.extend_from_slice(rest);
            }
            (Self::Json(_), _) => out.extend_from_slice(line),
            (Self::Text(before), _) | (Self::Csv { fields: before, .. }, _) => {
                out.extend_from_slice(before);
                out.extend_from_slice(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(tapes: &[(TapeLabel, &[&str])]) -> io::Result<String> {
        let (head, mut out) = (Head::default(), Vec::new());
        for (label, lines) in tapes {
            let mut labels = LabelledLines::new(label.clone(), &head);
            lines.iter().try_for_each(|line| labels.line(line.as_bytes(), &mut out))?;
        }
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn rows_say_what_they_are_of() {
        let json = |host: &str| TapeLabel::Json(format!("\"host\":\"{host}\",").into_bytes());
        let text = labelled(&[(json("a"), &["{\"n\":1}\n"]), (json("b"), &["{\"n\":2}\n"])]).unwrap();
        assert_eq!(text, "{\"host\":\"a\",\"n\":1}\n{\"host\":\"b\",\"n\":2}\n");
        let before = |host: &str| TapeLabel::Text(format!("{host} ").into_bytes());
        assert_eq!(labelled(&[(before("a"), &["x\n", "y\n"]), (before("b"), &["z\n"])]).unwrap(), "a x\na y\nb z\n");
    }

    #[test]
    fn all_tapes_have_one_head() {
        let csv = |host: &str| TapeLabel::Csv { fields: format!("{host},").into_bytes(), names: "host,".to_owned() };
        let text = labelled(&[(csv("a"), &["n\n", "1\n"]), (csv("b"), &["n\n", "2\n"])]).unwrap();
        assert_eq!(text, "host,n\na,1\nb,2\n");
        assert!(labelled(&[(csv("a"), &["n\n"]), (csv("b"), &["m\n"])]).is_err());
    }
}
