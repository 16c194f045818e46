//! Questions in SQL, which `analyze-sql` answers (`beside.rs`). Another process of this program starts it for each: it begins before rights
//! are given up, reads no tape, knows the tapes by their numbers and gets nothing but a number and a query. So whoever reads tapes starts no program.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::thread;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};

use super::gathered::{COUNTED, MOST_BYTES};
use super::wire::{self, InputLine};
use crate::cli::beside;

/// The hidden first argument with which `analyze` starts itself to start `analyze-sql`.
pub const SQL_STARTER: &str = "__start-sql";
/// What stands before tapes that are asked in a sandbox.
const CONFINED: &str = "confined";
/// Most bytes of a question and of an answer.
const LONGEST: u64 = 1 << 20;
/// Most bytes of a row that is kept.
const LONGEST_ROW: usize = MOST_BYTES;
/// Most bytes of what is said on standard error.
const LONGEST_ERROR: u64 = 8 << 10;

/// What is asked of a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SqlQuestion<'a> {
    /// A query.
    Query(&'a str),
    /// The columns of a table.
    Columns(&'a str),
    /// The tables.
    Tables,
}

/// What was answered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SqlAnswer {
    /// The first rows, as JSON; None: one that is too long.
    pub rows: Vec<Option<String>>,
    /// How many more there are.
    pub more: u64,
    /// More of them were not counted: the query was ended.
    pub ended: bool,
    /// Whether nothing is lost that could change it; None: that is not known.
    pub complete: Option<bool>,
    /// What is lost, in words.
    pub losses: Vec<String>,
}

/// The process that starts the program.
#[derive(Debug)]
pub(super) struct SqlStarter {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl SqlStarter {
    /// Begins it for questions about `tapes`; None: the program is not there.
    ///
    /// # Errors
    /// It cannot be begun.
    pub(super) fn begin(tapes: &[PathBuf], confined: bool) -> Result<Option<Self>> {
        if !beside::path().is_ok_and(|program| program.is_file()) {
            return Ok(None);
        }
        // not current_exe: the file may have been replaced since
        let this = Path::new("/proc/self/exe");
        let this = if this.exists() { this.to_owned() } else { std::env::current_exe()? };
        let words = [SQL_STARTER, if confined { CONFINED } else { "" }].map(OsString::from);
        let mut child = Command::new(this)
            .args(words.into_iter().chain(tapes.iter().map(OsString::from)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot begin the process that starts analyze-sql")?;
        let (Some(ask), Some(answers)) = (child.stdin.take(), child.stdout.take()) else { return Ok(None) };
        Ok(Some(Self { child, ask, answers: BufReader::new(answers) }))
    }

    /// The first `rows` rows of the answer about the tape of that number.
    ///
    /// # Errors
    /// There is no answer.
    pub(super) fn ask(&mut self, tape: usize, question: SqlQuestion<'_>, rows: usize) -> Result<SqlAnswer> {
        let (kind, text) = match question {
            SqlQuestion::Query(text) => ("query", text),
            SqlQuestion::Columns(table) => ("columns", table),
            SqlQuestion::Tables => ("tables", ""),
        };
        let question = json!({"tape": tape, "kind": kind, "text": text, "rows": rows}).to_string() + "\n";
        let mut line = Vec::new();
        let asked = self.ask.write_all(question.as_bytes()).and_then(|()| self.ask.flush());
        asked.and_then(|()| self.answers.by_ref().take(LONGEST).read_until(b'\n', &mut line)).context(ENDED)?;
        let answer: Map<String, Value> = serde_json::from_slice(&line).context(ENDED)?;
        if let Some(Value::String(why)) = answer.get("error") {
            bail!("{why}");
        }
        Ok(SqlAnswer::of_json(&answer))
    }
}

const ENDED: &str = "the process that starts analyze-sql has ended";

impl Drop for SqlStarter {
    fn drop(&mut self) {
        // it ends when nobody asks
        let _ = self.child.try_wait();
    }
}

impl SqlAnswer {
    fn json(&self) -> Value {
        let Self { rows, more, ended, complete, losses } = self;
        json!({"rows": rows, "more": more, "ended": ended, "complete": complete, "losses": losses})
    }

    fn of_json(answer: &Map<String, Value>) -> Self {
        let list = |name: &str| answer.get(name).and_then(Value::as_array).into_iter().flatten();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            rows: list("rows").map(text).collect(),
            more: answer.get("more").and_then(Value::as_u64).unwrap_or_default(),
            ended: answer.get("ended").and_then(Value::as_bool).unwrap_or_default(),
            complete: answer.get("complete").and_then(Value::as_bool),
            losses: list("losses").filter_map(text).collect(),
        }
    }
}

/// Starts `analyze-sql` for each question until nobody asks; the tapes are the arguments behind the second.
pub fn run_sql_starter() -> ExitCode {
    end_with_parent(None);
    let mut words = std::env::args_os().skip(2);
    let confined = words.next().is_some_and(|word| word == CONFINED);
    let tapes: Vec<PathBuf> = words.map(PathBuf::from).collect();
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut line = Vec::new();
    while input.by_ref().take(LONGEST).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let answer = answer(&line, &tapes, confined);
        let answer = answer.map_or_else(|why| json!({"error": why}), |answer| answer.json()).to_string() + "\n";
        if output.write_all(answer.as_bytes()).and_then(|()| output.flush()).is_err() {
            break;
        }
        line.clear();
    }
    ExitCode::SUCCESS
}

/// Answers the question in `line`.
fn answer(line: &[u8], tapes: &[PathBuf], confined: bool) -> Result<SqlAnswer, String> {
    let question: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let number = |name: &str| question[name].as_u64().and_then(|number| usize::try_from(number).ok());
    let (Some(tape), Some(rows)) = (number("tape").and_then(|at| tapes.get(at)), number("rows")) else {
        return Err("no such tape".to_owned());
    };
    let text = question["text"].as_str().unwrap_or_default();
    let is_query = question["kind"] == "query";
    let program = beside::path().map_err(|error| error.to_string())?;
    let mut command = Command::new(&program);
    command.args(["sql", "--format", "json"]).args((!confined).then_some("--no-sandbox")).arg("--input").arg(tape);
    match question["kind"].as_str() {
        Some("query") => command.arg("--").arg(text),
        Some("columns") => command.arg(format!("--schema={text}")),
        _ => command.arg("--tables"),
    };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    end_with_parent(Some(&mut command));
    let mut child = command.spawn().map_err(|error| beside::cannot_start("sql", &program, &error))?;
    let said = child.stderr.take().map(|stderr| {
        thread::spawn(move || {
            let (mut said, mut stderr) = (Vec::new(), stderr);
            let _ = stderr.by_ref().take(LONGEST_ERROR).read_to_end(&mut said);
            // more is said to nobody
            let _ = io::copy(&mut stderr, &mut io::sink());
            String::from_utf8_lossy(&said).into_owned()
        })
    });
    let answer = child.stdout.take().map(|stdout| rows_of(&mut BufReader::new(stdout), rows, is_query));
    if answer.as_ref().is_none_or(|answer| !answer.as_ref().is_ok_and(|answer| !answer.ended)) {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
    match answer {
        Some(Ok(answer)) if status.success() || answer.ended => Ok(answer),
        _ => Err(sentence(&said)),
    }
}

/// What the program said, without its name.
fn sentence(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(|line| line.strip_prefix("analyze: ").unwrap_or(line)).collect();
    if lines.is_empty() { "analyze-sql ended without an answer".to_owned() } else { lines.join(" ") }
}

/// The first `most` rows of `out`; behind those of a query stands what is lost.
fn rows_of(out: &mut impl BufRead, most: usize, is_query: bool) -> io::Result<SqlAnswer> {
    let (mut answer, mut last, mut bytes) = (SqlAnswer::default(), None, 0);
    while let Some(line) = line_of(out)? {
        // of a query the last line is no row, and which is the last is known behind it
        let row = if is_query { last.replace(line) } else { Some(line) };
        let Some(row) = row else { continue };
        bytes += row.as_ref().map_or(0, String::len);
        if answer.rows.len() < most && bytes <= MOST_BYTES && answer.more == 0 {
            answer.rows.push(row);
        } else {
            answer.more += 1;
        }
        if answer.more >= COUNTED {
            answer.ended = true;
            return Ok(answer);
        }
    }
    let end = last.flatten().and_then(|line| serde_json::from_str::<Value>(&line).ok()).unwrap_or_default();
    answer.complete = if is_query { end["complete"].as_bool() } else { Some(true) };
    let losses = end["losses"].as_array().into_iter().flatten();
    answer.losses = losses.filter_map(Value::as_str).map(str::to_owned).collect();
    Ok(answer)
}

/// The next line; None inside: one that is too long to be kept.
fn line_of(out: &mut impl BufRead) -> io::Result<Option<Option<String>>> {
    Ok(match wire::next_line(out, LONGEST_ROW)? {
        InputLine::Text(line) => Some(String::from_utf8(line).ok()),
        InputLine::TooLong => Some(None),
        InputLine::End => None,
    })
}

/// Has the process that `command` starts, or this one, end with the one that started it, also if that is killed.
#[cfg(target_os = "linux")]
fn end_with_parent(command: Option<&mut Command>) {
    use std::os::unix::process::CommandExt as _;
    let end = || {
        // SAFETY: sets a number of this process; the call may be made between fork and exec.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        Ok(())
    };
    match command {
        // SAFETY: see above.
        Some(command) => drop(unsafe { command.pre_exec(end) }),
        None => drop::<io::Result<()>>(end()),
    }
}

/// Does nothing: what is started ends when it writes to nobody.
#[cfg(not(target_os = "linux"))]
fn end_with_parent(_command: Option<&mut Command>) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, most: usize, is_query: bool) -> SqlAnswer {
        let answer = rows_of(&mut text.as_bytes(), most, is_query).unwrap();
        assert_eq!(SqlAnswer::of_json(answer.json().as_object().unwrap()), answer);
        answer
    }

    #[test]
    fn the_last_line_of_a_query_says_what_is_lost() {
        let end = "{\"rows\":2,\"complete\":false,\"losses\":[\"3 calls\"]}\n";
        let got = rows(&format!("{{\"a\":1}}\n{{\"a\":2}}\n{end}"), 1, true);
        assert_eq!((got.rows, got.more, got.ended), (vec![Some("{\"a\":1}".to_owned())], 1, false));
        assert_eq!((got.complete, got.losses), (Some(false), vec!["3 calls".to_owned()]));
        let got = rows("{\"table\":\"gaps\"}\n", 9, false);
        assert_eq!((got.rows.len(), got.complete), (1, Some(true)));
        assert_eq!(rows("", 9, true).complete, None);
    }

    #[test]
    fn rows_are_bounded() {
        let long = format!("{{\"a\":\"{}\"}}\n{{\"a\":1}}\n{{}}\n", "x".repeat(100_000));
        assert_eq!(rows(&long, 9, true).rows, [None, Some("{\"a\":1}".to_owned())]);
        let many = rows(&"{\"a\":1}\n".repeat(20_000), 3, true);
        assert_eq!((many.rows.len(), many.more, many.ended, many.complete), (3, COUNTED, true, None));
    }

    #[test]
    fn only_tapes_by_number_are_asked() {
        let ask = |line: &str| answer(line.as_bytes(), &[PathBuf::from("a.tape")], true).unwrap_err();
        for line in [r#"{"tape":1,"rows":1,"kind":"tables"}"#, r#"{"tape":"/etc/passwd","rows":1}"#, r#"{"rows":1}"#] {
            assert_eq!(ask(line), "no such tape", "{line}");
        }
        assert!(ask("{").contains("EOF"));
    }

    #[test]
    fn what_the_program_says_is_one_sentence() {
        assert_eq!(sentence("analyze: a\nanalyze: b\n"), "a b");
        assert_eq!(sentence(""), "analyze-sql ended without an answer");
    }
}
