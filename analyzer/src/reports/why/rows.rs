//! The answer as rows for JSON and CSV.

use systape_format::model::ERRNO_ANY;

use super::WHY;
use super::budget::Line;
use super::marks::LossMarks;
use super::measure::{CostKind, RankedFinding, Told};
use super::sentence::{member_sentence, sentence};
use systape_answers::derive::why::finding::FindingMember;
use systape_answers::render::cell::Cell;
use systape_answers::render::row::Row;
use systape_events::values::words::errno_text;

/// The answer, and which part of it is shown.
pub(super) struct Shown<'a> {
    /// The subject; None: the machine.
    pub told: Option<&'a Told>,
    /// Findings with their costs.
    pub ranked: &'a [RankedFinding],
    /// Sums were dropped, so that counts are lower bounds.
    pub cut: bool,
    /// What was lost.
    pub marks: LossMarks<'a>,
    /// Most findings.
    pub limit: usize,
    /// Whether what they join is shown.
    pub expand: bool,
}

fn some(bytes: &[u8]) -> Cell<'static> {
    if bytes.is_empty() { Cell::Null } else { Cell::from(bytes.to_vec()) }
}

impl<'a> Shown<'a> {
    /// The rows; times are relative to `open`.
    pub(super) fn rows(&self, open: u64) -> impl Iterator<Item = Row<'a>> {
        let lines = self.told.map_or(&[][..], |told| &told.budget.lines);
        let (cut, marks, sure) = (self.cut, self.marks, self.told.is_some_and(|told| told.sure));
        let short = marks.path();
        let budget = lines.iter().flat_map(move |line| budget(line, short));
        let expand = self.expand;
        budget.chain(self.ranked.iter().take(self.limit).flat_map(move |ranked| {
            // who is asked about, or who descends from whom, may be what is missing
            let doubted = marks.any() && (short || !sure);
            let of_it = if doubted { (sure && ranked.own).then_some(true) } else { Some(ranked.own) };
            let members = ranked.finding.members.iter().filter(move |_| expand);
            let members = members.map(move |of| member(ranked, of, of_it, cut || marks.touch(&ranked.finding)));
            std::iter::once(finding(ranked, open, of_it, (cut, marks))).chain(members)
        }))
    }
}

/// A line of the budget, and those of its second level; `short`: its times are of what is known.
fn budget(line: &Line, short: bool) -> impl Iterator<Item = Row<'_>> {
    let row = |level: u32, ns: u64| {
        let mut row = Row::short_if(short, &WHY);
        row.set("kind", "budget").set("level", level).set("rule", Cell::Null).set("class", Cell::Null);
        row.set("cost_ns", ns)
            .set("cost_lo_ns", Cell::Null)
            .set("cost_hi_ns", Cell::Null)
            .set("cost_is", Cell::Null)
            .set("subject", true);
        row
    };
    let end = move |mut row: Row<'static>, functions: Option<String>, text: String| {
        for name in ["count", "max_ns", "first_ns", "last_ns"] {
            row.set(name, Cell::Null);
        }
        row.set("functions", functions).set("text", text).set("command", "path --sums");
        row
    };
    let who = |row: &mut Row<'static>, other: &[u8]| {
        row.set("pid", Cell::Null).set("comm", some(&line.comm)).set("processes", Cell::Null);
        row.set("syscall", line.call.clone()).set("object", line.file.clone()).set("errno", Cell::Null);
        row.set("by_pid", Cell::Null).set("by_comm", some(other));
    };
    let mut first = row(1, line.ns);
    first.set("state", Cell::Null);
    who(&mut first, b"");
    let functions = Some(line.functions.join(", ")).filter(|functions| !functions.is_empty());
    let first = end(first, functions, line.text());
    let states = line.states.iter().map(move |(cause, other, ns)| {
        let mut row = row(2, *ns);
        row.set("state", cause.word());
        who(&mut row, other);
        end(row, None, super::budget::state(*cause, other))
    });
    std::iter::once(first).chain(states.collect::<Vec<_>>())
}

/// One of the things that a finding joins.
fn member<'r>(ranked: &'r RankedFinding, of: &'r FindingMember, of_it: Option<bool>, short: bool) -> Row<'r> {
    let finding = &ranked.finding;
    let mut row = Row::short_if(short, &WHY);
    row.set("kind", "member").set("level", Cell::Null).set("rule", finding.rule).set("class", finding.class.name());
    row.set("cost_ns", Cell::Null).set("cost_lo_ns", Cell::Null).set("cost_hi_ns", Cell::Null);
    row.set("cost_is", Cell::Null);
    row.set("subject", of_it).set("state", Cell::Null).set("pid", finding.who.pid);
    row.set("comm", some(&finding.who.comm)).set("processes", Cell::Null);
    row.set("syscall", Some(finding.call.clone()).filter(|call| !call.is_empty())).set("object", some(&of.object));
    row.set("errno", Cell::Null).set("by_pid", Cell::Null).set("by_comm", Cell::Null);
    row.set("count", of.calls).set("max_ns", of.max).set("first_ns", Cell::Null).set("last_ns", Cell::Null);
    row.set("functions", Cell::Null).set("text", member_sentence(of, short)).set("command", finding.command.clone());
    row
}

fn finding<'r>(
    ranked: &'r RankedFinding,
    open: u64,
    of_it: Option<bool>,
    (cut, marks): (bool, LossMarks<'_>),
) -> Row<'r> {
    let finding = &ranked.finding;
    let cut = cut || marks.touch(finding);
    let short = finding.short || cut;
    // what looks count is at least so much, and their time an estimate
    let counted = finding.bars.is_some();
    let cost = short || marks.path();
    let since = |ts: u64| ts.wrapping_sub(open) as i64;
    let mut row = Row::new(&WHY);
    row.set("kind", "finding").set("level", Cell::Null);
    row.set("rule", finding.rule).set("class", finding.class.name());
    row.bound("cost_ns", finding.cost, cost);
    row.bound("cost_lo_ns", finding.bars.map(|(low, _)| low), cost).bound("cost_hi_ns", ranked.hi, cost);
    row.set("cost_is", ranked.is.map(CostKind::word)).set("subject", of_it).set("state", Cell::Null);
    row.set("pid", finding.who.pid).set("comm", some(&finding.who.comm));
    row.bound("processes", finding.processes, cut);
    row.set("syscall", Some(finding.call.clone()).filter(|call| !call.is_empty()));
    row.set("object", some(&finding.object));
    row.set("errno", Some(finding.errno).filter(|errno| !matches!(*errno, 0 | ERRNO_ANY)).map(errno_text));
    let by = finding.by.as_ref().filter(|_| !short);
    row.set("by_pid", by.and_then(|who| who.pid)).set("by_comm", by.map(|who| who.comm.clone()));
    row.bound("count", finding.count, cut || counted).bound("max_ns", finding.max, short || counted);
    row.bound("first_ns", finding.span.map(|(first, _)| since(first)), cut);
    row.bound("last_ns", finding.span.map(|(_, last)| since(last)), short);
    row.set("functions", Cell::Null).set("text", sentence(finding, cut)).set("command", finding.command.clone());
    row
}
