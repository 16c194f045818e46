//! The answer as text.

use anyhow::Result;

use super::measure::{CostKind, RankedFinding, Told};
use super::rows::Shown;
use super::sentence::{member_sentence, sentence};
use crate::asked::config::Config;
use crate::reports::{Context, losses};
use systape_answers::derive::why::finding::Severity;
use systape_answers::derive::why::floor::Floor;
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::rank;
use systape_answers::render::stamp::Stamps;
use systape_answers::render::table::share;
use systape_answers::values::fit::cells;
use systape_answers::values::output::{self, command, line};
use systape_events::values::words::{shell, span};

/// There is no finding, and something is missing.
const NOT_ALL: &str = "Nothing found; events are missing";
/// Least cells of a cost, here and on the card.
const COST: usize = 10;
const CARD_COST: usize = 13;
/// Most lines of a budget.
const LINES: usize = 8;
/// A screen with fewer lines has less of everything.
const SMALL: usize = 40;
/// Most findings about others on the machine.
const OTHERS: usize = 5;

/// Findings about others on the machine: all of those, or what does not fill a small screen.
pub(super) fn on_screen() -> usize {
    if output::screen().is_some_and(|rows| rows < SMALL) { OTHERS / 2 } else { OTHERS }
}

/// Lines of a budget, fewer on a small screen.
pub(super) fn budget_lines() -> usize {
    if output::screen().is_some_and(|rows| rows < SMALL) { LINES / 2 } else { LINES }
}

impl Shown<'_> {
    /// Prints the subject's budget, its findings and those of others.
    pub(super) fn print(&self, context: &Context<'_>, floor: Floor, unknown: &[String], out: &mut Out) -> Result<()> {
        losses::head(context, "Events are missing: figures marked >= are lower bounds:", out)?;
        let stamps = context.stamps_of_sentences();
        let tape = tape_word(context.config);
        if let Some(told) = self.told {
            budget(told, &stamps, &tape, out)?;
        }
        let (own, others): (Vec<&RankedFinding>, Vec<&RankedFinding>) =
            self.ranked.iter().partition(|ranked| ranked.own);
        self.findings(&own, (floor, &stamps, &tape), out)?;
        if !others.is_empty() {
            line(out, "\nOthers on the machine, each for as long as it lasted:")?;
            let shown = others.iter().copied().take(on_screen().min(self.limit));
            let width = self.cost_width(shown.clone());
            for ranked in shown {
                line(out, &self.one_line((None, width), ranked, &stamps, &tape))?;
                self.members(ranked, width, out)?;
            }
            rank::more(others.len(), on_screen().min(self.limit)).iter().try_for_each(|text| line(out, text))?;
        }
        unknown.iter().try_for_each(|text| line(out, text))?;
        Ok(())
    }

    /// The first findings of the subject, and what broke elsewhere, without their times and commands, and what to say if there are none.
    pub(super) fn first(&self) -> (Vec<String>, &'static str) {
        let own = self.ranked.iter().filter(|ranked| ranked.own);
        let broke = self.ranked.iter().filter(|ranked| !ranked.own && ranked.finding.class == Severity::Broken);
        let shown = own.chain(broke).take(self.limit);
        let width = self.cost_width(shown.clone()).max(CARD_COST);
        let line = |ranked: &RankedFinding| {
            let lost = self.cut || self.marks.touch(&ranked.finding);
            let cost = self.cost(ranked);
            format!("{cost:>width$}  {}{}", output::hang(), sentence(&ranked.finding, lost))
        };
        (shown.map(line).collect(), if self.marks.any() { NOT_ALL } else { "Nothing slow or broken was found" })
    }

    fn findings(
        &self,
        found: &[&RankedFinding],
        (floor, stamps, tape): (Floor, &Stamps, &str),
        out: &mut Out,
    ) -> Result<()> {
        if found.is_empty() {
            let what = match (self.told.is_some(), self.marks.any()) {
                (_, true) => NOT_ALL,
                (true, _) => "No finding: nothing else explains that time",
                (false, _) => "no finding",
            };
            return Ok(line(out, &format!("{what} (floor: {})", span(floor.ns)))?);
        }
        if self.told.is_some() {
            line(out, "What would go away without a cause (costs overlap and do not add up):")?;
        }
        let width = self.cost_width(found.iter().copied().take(self.limit));
        for (at, ranked) in found.iter().take(self.limit).enumerate() {
            line(out, &self.one_line((Some(at + 1), width), ranked, stamps, tape))?;
            self.members(ranked, width, out)?;
        }
        rank::more(found.len(), self.limit).iter().try_for_each(|text| line(out, text))?;
        Ok(())
    }

    /// What a finding joins.
    fn members(&self, ranked: &RankedFinding, width: usize, out: &mut Out) -> Result<()> {
        let finding = &ranked.finding;
        let lost = self.cut || self.marks.touch(finding);
        let members = finding.members.iter().filter(|_| self.expand);
        // below the sentence of the finding
        let lead = " ".repeat(width + 8);
        let members = members.map(|of| format!("{lead}{}{}", output::hang(), member_sentence(of, lost)));
        members.into_iter().try_for_each(|text| line(out, &text))?;
        Ok(())
    }

    /// The cost of a finding, as text.
    fn cost(&self, ranked: &RankedFinding) -> String {
        cost(ranked, self.cut || self.marks.touch(&ranked.finding) || self.marks.path())
    }

    /// Cells of the widest cost.
    fn cost_width<'r>(&self, shown: impl Iterator<Item = &'r RankedFinding>) -> usize {
        shown.map(|ranked| cells(&self.cost(ranked))).max().unwrap_or(0).max(COST)
    }

    fn one_line(
        &self,
        (rank, width): (Option<usize>, usize),
        ranked: &RankedFinding,
        stamps: &Stamps,
        tape: &str,
    ) -> String {
        let finding = &ranked.finding;
        let lost = self.cut || self.marks.touch(finding);
        let text = sentence(finding, lost);
        let when = match finding.span {
            Some((first, last)) if first == last => format!(", {}", stamps.at(first)),
            Some((first, last)) => format!(", {}", stamps.span(first, last)),
            None => String::new(),
        };
        let rank = rank.map_or_else(|| "    ".to_owned(), |rank| format!("{rank:>3}."));
        let typed = format!("analyze {}{tape}", finding.command);
        let cost = self.cost(ranked);
        format!("{rank}  {cost:>width$}  {}{text}{when}   {}", output::hang(), command(&typed))
    }
}

/// `1.20 s`, `<=1.20 s`, `0.23-0.82 s`; of what has no cost its class.
fn cost(ranked: &RankedFinding, lost: bool) -> String {
    let finding = &ranked.finding;
    let (Severity::Time, Some(ns)) = (finding.class, finding.cost) else { return finding.class.name().to_owned() };
    let short = mark::at_least(lost || finding.short);
    let mark = match ranked.is {
        Some(CostKind::AtMost) if short.is_empty() => mark::AT_MOST,
        Some(CostKind::AtMost | CostKind::Rough) => mark::ABOUT,
        _ => short,
    };
    if let Some((low, high)) = finding.bars {
        return format!("{}–{}", span(low), span(high));
    }
    match ranked.hi {
        Some(hi) => format!("{mark}{}–{}", span(ns), span(hi)),
        None => format!("{mark}{}", span(ns)),
    }
}

/// What the subject's time went to.
fn budget(told: &Told, stamps: &Stamps, tape: &str, out: &mut Out) -> Result<()> {
    let budget = &told.budget;
    let (first, last) = told.span;
    let when = stamps.span(first, last);
    line(out, &format!("The {} of {}, {when}, went to:", span(budget.total), told.who))?;
    let worth = budget.lines.iter().take(budget_lines()).take_while(|line| line.ns >= budget.total / 100).count();
    for of in &budget.lines[..worth] {
        let (ns, part) = (span(of.ns), share(of.ns, budget.total));
        line(out, &format!("    {ns:>11} {part:>6}  {}{}", output::hang(), of.text_with_functions()))?;
    }
    let rest = budget.lines[worth..].iter().fold(0, |sum, line| sum + line.ns);
    if rest > 0 {
        let more = budget.lines.len() - worth;
        let typed = format!("analyze path --sums{tape}");
        let text = format!("{}{more} more: {}", output::hang(), command(&typed));
        line(out, &format!("    {:>11} {:>6}  {text}", span(rest), share(rest, budget.total)))?;
    }
    line(out, "")?;
    Ok(())
}

/// The tape's name as a word of a command line; empty: it is the one without a name.
pub(super) fn tape_word(config: &Config) -> String {
    let name = config.file.as_os_str().as_encoded_bytes();
    if name == b"trace.tape" { String::new() } else { format!(" {}", shell(&[name.to_vec()])) }
}
