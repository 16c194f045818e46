//! A call of a tool: asks the report in this process, as `analyze assert` and the page do, and gathers its rows.

use std::ffi::OsString;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};
use systape_answers::render::json::printable;
use systape_answers::render::out::{Out, TakesRows as _};
use systape_answers::values::say::Verdict;
use systape_cli::Stop;
use systape_events::values::spill;
use systape_events::values::words::shell;

use super::gathered::{AnswerFrame, COUNTED, GatheredAnswer, MOST_ROWS};
use super::shelf::Shelf;
use super::sql::{SqlQuestion, SqlStarter};
use super::tools::{Tool, ToolArguments, ToolKind, view};
use crate::asked::config::Config;
use crate::cli::{answer, beside, parse, views};
use crate::reports::info::list;
use crate::reports::schema;

/// Who answers calls, one after the other.
pub(super) struct Caller {
    /// The tapes.
    pub shelf: Shelf,
    /// Who starts `analyze-sql`; None: it is not there.
    pub sql: Option<SqlStarter>,
    /// Bytes of memory for sums.
    pub memory: u64,
}

impl Caller {
    /// The result of a call of `tool`, as the protocol has it.
    pub(super) fn call(&mut self, tool: &Tool, given: &ToolArguments, cancelled: &Arc<AtomicBool>) -> Value {
        // a fault in one answer is none in the next
        let answered = catch_unwind(AssertUnwindSafe(|| self.answer(tool, given, cancelled)));
        let answered = answered.unwrap_or_else(|_| Err(anyhow!("internal error: standard error has it")));
        // the question before has no sums any more
        spill::again();
        let (text, is_error) = match answered {
            Ok(text) => (text, false),
            // the sentence may have names of the tape in it: a value of JSON like all others
            Err(error) => (printable(&json!({"error": format!("{error:#}")})), true),
        };
        json!({"content": [{"type": "text", "text": text}], "isError": is_error})
    }

    fn answer(&mut self, tool: &Tool, given: &ToolArguments, cancelled: &Arc<AtomicBool>) -> Result<String> {
        let limit = given.limit.unwrap_or(MOST_ROWS);
        let mut rows = GatheredAnswer::new(limit, Arc::clone(cancelled));
        let mut frame = AnswerFrame { narrow: tool.narrowing(), ..AnswerFrame::default() };
        match tool.asks() {
            ToolKind::Tapes => {
                let verdict = list::list_named(self.shelf.named(), self.shelf.redactor(), &mut Out::values(&mut rows))?;
                frame.complete = Some(!verdict.lost);
            }
            ToolKind::Report(report) => {
                let tape = self.shelf.find(given.tape.as_deref())?;
                let config = self.config(report, given, limit, &["-i", "-"])?;
                self.report(config, [tape, tape], &mut rows, &mut frame)?;
            }
            ToolKind::TwoTapes(report) => {
                let tape = self.shelf.find(given.tape.as_deref())?;
                let other = given.other.as_deref().map(|other| self.shelf.find(Some(other))).transpose()?;
                // places for two tapes, which are named below
                let places: &[&str] = if other.is_some() { &["./before", "./after"] } else { &["-i", "-"] };
                let config = self.config(report, given, limit, places)?;
                self.report(config, [tape, other.unwrap_or(tape)], &mut rows, &mut frame)?;
            }
            ToolKind::Query => self.query(given, limit, &mut rows, &mut frame)?,
            ToolKind::Schema => {
                frame.narrow = schema_of(given, &mut rows)?;
                frame.complete = Some(true);
            }
        }
        frame.command = match self.shelf.redactor() {
            None => self.command(tool, given, frame.tape.as_deref()),
            // no tape of that name can be asked
            Some(_) => None,
        };
        Ok(rows.finish(&frame))
    }

    /// The resolved question of `report`, with the words `places` for its tapes.
    fn config(&self, report: &'static str, given: &ToolArguments, limit: usize, places: &[&str]) -> Result<Config> {
        let words = report.split(' ').filter(|word| !word.is_empty()).map(str::to_owned);
        let memory = format!("--memory={}", self.memory);
        let words = words.chain(given.words.iter().cloned()).chain(["--format=json".to_owned(), memory]);
        // of a listing each line is rendered before it is counted
        let most = format!("--max-events={}", limit as u64 + COUNTED);
        let words = words.chain(report.is_empty().then_some(most)).chain(places.iter().map(|word| (*word).to_owned()));
        let asked = parse::parse(std::iter::once("analyze".to_owned()).chain(words).map(OsString::from));
        let asked = asked.map_err(|stop| match stop {
            Stop::Usage(why) => anyhow!("{why}"),
            Stop::Printed(_) => anyhow!("it asks for help"),
        })?;
        let config = asked.config()?;
        if config.is_by_tape() {
            bail!("one tape is asked at a time: 'by' takes no host and no tape here");
        }
        if !std::ptr::eq(config.view, view(report)) {
            bail!("it asks {}", config.view.title());
        }
        Ok(config)
    }

    /// Asks the report of `config` about the first of the tapes, and about the second too where it compares two.
    fn report(
        &mut self,
        mut config: Config,
        [tape, other]: [usize; 2],
        rows: &mut GatheredAnswer,
        frame: &mut AnswerFrame,
    ) -> Result<()> {
        let opened = self.shelf.open(tape);
        config.file = PathBuf::from(self.shelf.name(tape));
        if config.second.is_some() {
            config.second = Some(self.shelf.file(other)?.1);
            config.second_name = Some(PathBuf::from(self.shelf.name(other)));
        }
        frame.tape = Some(self.shelf.name(tape).to_owned());
        config.filters.selection.notes().iter().for_each(|note| rows.note(note));
        let verdict: Verdict = answer::answer(&config, opened, None, &mut Out::values(rows))?;
        spill::end()?.iter().for_each(|text| rows.note(text));
        frame.complete = Some(!verdict.lost);
        Ok(())
    }

    fn query(
        &mut self,
        given: &ToolArguments,
        limit: usize,
        rows: &mut GatheredAnswer,
        frame: &mut AnswerFrame,
    ) -> Result<()> {
        let Some(sql) = &mut self.sql else {
            let missing = io::ErrorKind::NotFound.into();
            bail!("{}", beside::cannot_start("sql", &beside::path()?, &missing));
        };
        let tape = self.shelf.find(given.tape.as_deref())?;
        let question = match (&given.query, &given.table) {
            (Some(query), _) => SqlQuestion::Query(query),
            (None, Some(table)) => SqlQuestion::Columns(table),
            (None, None) => SqlQuestion::Tables,
        };
        let (number, path) = self.shelf.file(tape)?;
        let name = self.shelf.name(tape).to_owned();
        // it knows a copy by its path alone
        let renamed = |error: anyhow::Error| match self.shelf.redactor() {
            Some(_) => anyhow!("{}", format!("{error:#}").replace(&path.display().to_string(), &name)),
            None => error,
        };
        let answer = sql.ask(number, question, limit).map_err(renamed)?;
        for row in &answer.rows {
            let _ = rows.json(row.as_deref().map(str::as_bytes));
        }
        rows.leave_out(answer.more, answer.ended);
        answer.losses.iter().for_each(|loss| rows.note(loss));
        if answer.ended {
            rows.note("the query was ended, so what is lost of its tables is unknown here: table gaps has it");
        }
        frame.tape = Some(name);
        frame.complete = answer.complete;
        Ok(())
    }

    /// The question as a command line.
    fn command(&self, tool: &Tool, given: &ToolArguments, tape: Option<&str>) -> Option<String> {
        let mut words = vec!["analyze"];
        match tool.asks() {
            ToolKind::Tapes => words.push("list"),
            ToolKind::Report("") => words.push("trace"),
            ToolKind::Report(report) | ToolKind::TwoTapes(report) => words.extend(report.split(' ')),
            ToolKind::Query => words.push("sql"),
            ToolKind::Schema => words.push("schema"),
        }
        words.extend(given.words.iter().map(String::as_str));
        let columns = given.table.as_ref().map(|table| format!("--schema={table}"));
        match (tool.asks(), &given.query, &columns) {
            (ToolKind::Query, Some(query), _) => words.push(query),
            (ToolKind::Query, None, Some(columns)) => words.extend([columns, "-i"]),
            (ToolKind::Query, None, None) => words.extend(["--tables", "-i"]),
            _ => {}
        }
        let all: Vec<&str> = self.shelf.named().filter_map(|(_, name)| name.to_str()).collect();
        match tool.asks() {
            // very many would be all of the answer
            ToolKind::Tapes if all.len() > 8 => return None,
            ToolKind::Tapes => words.extend(all),
            _ => words.extend(tape.into_iter().chain(given.other.as_deref())),
        }
        Some(shell(&words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>()))
    }
}

/// Passes the schemas of a report's kinds of rows to `rows`, or without a report the names of those that have one; what chooses fewer, in
/// words.
fn schema_of(given: &ToolArguments, rows: &mut GatheredAnswer) -> Result<String> {
    let Some(report) = given.report.as_deref() else {
        for (report, _) in schema::reports(views::VIEWS) {
            let _ = rows.json(Some(printable(&json!({"report": report})).as_bytes()));
        }
        return Ok("name a report".to_owned());
    };
    // the tool's name, and the report's
    let report = if report == "calls" { "listing" } else { report };
    let (_, kinds) = schema::of_report(views::VIEWS, report)?;
    let all = 1..=kinds.len();
    if given.kind.is_some_and(|kind| !all.contains(&kind)) {
        bail!("'kind' is a number from 1 to {}", kinds.len());
    }
    let wanted = all.zip(&kinds).filter(|(number, _)| given.kind.is_none_or(|kind| kind == *number));
    for (_, kind) in wanted {
        let _ = rows.json(Some(printable(&schema::line(kind)).as_bytes()));
    }
    Ok(format!("narrow by kind, from 1 to {}", kinds.len()))
}
