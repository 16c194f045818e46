//! Holds the answers of a case's tapes against its truth.

use super::answer::{Row, SaidCost};
use super::case::Case;
use super::run::{Runs, Told};
use crate::stats::Samples;

/// A case whose own runs differ by more is not counted.
const SPREAD: f64 = 0.10;
/// A cost may be off by this share of the true one ...
const SHARE: f64 = 0.25;
/// ... and by this, seconds, or this share of the run, whichever is more.
const FLOOR: (f64, f64) = (0.050, 0.03);
/// A budget may be off by this share of the run; of one below half a second by that of half a second.
const BUDGET: (f64, f64) = (0.02, 0.5);
/// From this many busy CPUs of others on, waits for a CPU are findings that somebody else planted.
const OTHERS: f64 = 0.10;

/// What the tapes of one case say, against its truth.
#[derive(Clone, Debug)]
pub(crate) struct CaseVerdict {
    /// The case's name.
    pub name: &'static str,
    /// There is no cause.
    pub healthy: bool,
    /// The cause costs nothing.
    pub costless: bool,
    /// Why it did not run; all below means nothing then.
    pub left_out: Option<String>,
    /// Seconds of the recorded runs with the cause on.
    pub run: Samples,
    /// By how much these differ: the distance of the quartiles, as a share of the median.
    pub spread: f64,
    /// What the cause costs: the difference of the medians, recorded. NaN of healthy programs.
    pub truth: f64,
    /// The same of bare runs; NaN where there are none.
    pub bare: f64,
    /// The cause's place among the findings, 1 the first; absent: no finding names it. The median of the tapes.
    pub rank: Option<usize>,
    /// Some tapes name it at another place.
    pub ranks_differ: bool,
    /// What the finding says it costs: the median of the tapes.
    pub said: SaidCost,
    /// Marked in some tape: `<=` or `~`.
    pub marked: bool,
    /// Whether that is right; absent where nothing is said and something should be.
    pub within: Option<bool>,
    /// Programs that were blamed and are innocent.
    pub blamed: Vec<String>,
    /// Tapes of a healthy program with a finding.
    pub false_tapes: usize,
    /// Findings about a healthy program.
    pub false_findings: Vec<String>,
    /// Findings of waits for a CPU that were left out, because others kept CPUs busy.
    pub excused: usize,
    /// The budget's error as a share of the run, the worst tape's; absent: some tape has none.
    pub budget: Option<f64>,
    /// Whether it is right.
    pub budget_right: bool,
    /// The first findings of the first tape.
    pub first: Vec<String>,
}

impl CaseVerdict {
    /// A case that did not run.
    pub(crate) fn left_out(case: &Case, why: String) -> Self {
        Self { left_out: Some(why), ..Self::empty(case) }
    }

    fn empty(case: &Case) -> Self {
        Self {
            name: case.name,
            healthy: case.healthy,
            costless: case.costless,
            left_out: None,
            run: Samples::default(),
            spread: f64::NAN,
            truth: f64::NAN,
            bare: f64::NAN,
            rank: None,
            ranks_differ: false,
            said: SaidCost::Nothing,
            marked: false,
            within: None,
            blamed: Vec::new(),
            false_tapes: 0,
            false_findings: Vec::new(),
            excused: 0,
            budget: None,
            budget_right: false,
            first: Vec::new(),
        }
    }

    /// Whether the incident counts in the totals.
    pub(crate) fn counts(&self) -> bool {
        self.left_out.is_none() && !self.healthy && self.spread <= SPREAD
    }

    /// Whether its cause's place counts: one that costs nothing need not be named.
    pub(crate) fn place_counts(&self) -> bool {
        self.counts() && !self.costless
    }
}

/// What one tape says.
struct TapeReading {
    rank: Option<usize>,
    said: SaidCost,
    marked: bool,
}

/// Judges a case. `strict`: waits for a CPU are no excuse (a neighbour is part of the case).
pub(crate) fn judge(case: &Case, runs: &Runs, strict: bool) -> CaseVerdict {
    let mut verdict = CaseVerdict { run: runs.on.clone(), spread: runs.on.spread(), ..CaseVerdict::empty(case) };
    let mut readings = Vec::new();
    for told in &runs.told {
        let (findings, excused) = without_excused(told, strict || case.is_of_cpu());
        verdict.excused += excused;
        blame(case, &findings, &mut verdict.blamed);
        if case.healthy {
            verdict.false_tapes += usize::from(!findings.is_empty());
            verdict.false_findings.extend(findings.iter().filter_map(|row| row.text("text")));
        } else {
            readings.push(read(case, told, &findings));
        }
    }
    let texts = runs.told.first().map(|told| told.answer.findings.iter().take(4).filter_map(|row| row.text("text")));
    verdict.first = texts.into_iter().flatten().collect();
    budget(case, &runs.told, &mut verdict);
    if !case.healthy {
        verdict.truth = runs.on.median() - runs.off.median();
        verdict.bare = runs.bare_on.median() - runs.bare_off.median();
        cost(&readings, &mut verdict);
    }
    verdict
}

/// The findings that count. On a busy machine waits for a CPU are true, though the case did not plant them.
fn without_excused(told: &Told, all: bool) -> (Vec<&Row>, usize) {
    let excuse = !all && told.others > OTHERS;
    let findings: Vec<_> = told.answer.findings.iter().filter(|row| !(excuse && row.is_of_cpu())).collect();
    let excused = told.answer.findings.len() - findings.len();
    (findings, excused)
}

fn blame(case: &Case, findings: &[&Row], blamed: &mut Vec<String>) {
    let mut add = |who: String| {
        if !blamed.contains(&who) {
            blamed.push(who);
        }
    };
    for row in findings {
        if case.innocents.iter().any(|who| who == "*") {
            row.text("by_comm").into_iter().for_each(&mut add);
        }
        case.innocents.iter().filter(|who| row.blames(who)).for_each(|who| add(who.clone()));
    }
}

fn read(case: &Case, told: &Told, findings: &[&Row]) -> TapeReading {
    // a wait for a CPU that happens to be that of the right program is another finding
    let may = |row: &Row| case.is_of_cpu() || !row.is_of_cpu();
    let place = |row: &&Row| may(row) && case.causes.iter().any(|pattern| pattern.holds(row, &told.facts));
    let found = findings.iter().position(place).map(|at| (at + 1, findings[at]));
    let found = found.or_else(|| in_budget(case, told, findings));
    match found {
        None => TapeReading { rank: None, said: SaidCost::Nothing, marked: false },
        Some((rank, row)) => {
            let marked = row.text("cost_is").is_some_and(|is| is != "saved");
            TapeReading { rank: Some(rank), said: row.said(), marked }
        }
    }
}

/// The cause as a line of the budget: behind the lines and the findings that are larger.
fn in_budget<'a>(case: &Case, told: &'a Told, findings: &[&Row]) -> Option<(usize, &'a Row)> {
    let size = |row: &Row| match row.said() {
        SaidCost::One(cost) | SaidCost::Range(_, cost) => cost,
        SaidCost::Nothing => 0.0,
    };
    let named = |row: &&Row| case.budget_causes.iter().any(|pattern| pattern.holds(row, &told.facts));
    let row = told.answer.budget.iter().find(named)?;
    let larger = |other: &&&Row| size(other) > size(row);
    let lines: Vec<_> = told.answer.budget.iter().collect();
    Some((1 + lines.iter().filter(larger).count() + findings.iter().filter(larger).count(), row))
}

fn cost(readings: &[TapeReading], verdict: &mut CaseVerdict) {
    let mut ranks: Vec<_> = readings.iter().map(|r| r.rank.unwrap_or(usize::MAX)).collect();
    ranks.sort_unstable();
    verdict.ranks_differ = ranks.first() != ranks.last();
    // of an even number the worse one
    verdict.rank = ranks.get(ranks.len() / 2).copied().filter(|rank| *rank != usize::MAX);
    verdict.marked = readings.iter().any(|r| r.marked);
    verdict.said = middle(readings.iter().map(|r| r.said));
    let said = match verdict.said {
        // what costs nothing need not be named, and then nothing is said that is wrong
        SaidCost::Nothing if verdict.costless => SaidCost::One(0.0),
        said => said,
    };
    verdict.within = within(said, verdict.truth, verdict.run.median());
}

/// The median of what the tapes say: of ranges that of the lower and that of the upper ends.
fn middle(all: impl Iterator<Item = SaidCost>) -> SaidCost {
    let (mut low, mut high, mut range) = (Samples::default(), Samples::default(), false);
    for said in all {
        let (l, h) = match said {
            SaidCost::Nothing => continue,
            SaidCost::One(one) => (one, one),
            SaidCost::Range(l, h) => (l, h),
        };
        range |= l < h;
        low.push(l);
        high.push(h);
    }
    match (low.known(), high.known()) {
        (Some(l), Some(h)) if range && l < h => SaidCost::Range(l, h),
        (Some(one), _) => SaidCost::One(one),
        _ => SaidCost::Nothing,
    }
}

/// Whether what is said is right. A range must hold the truth, or be so narrow that both its ends are near it, and must not be
/// wider than half of its upper end.
fn within(said: SaidCost, truth: f64, run: f64) -> Option<bool> {
    let room = SHARE * truth.max(0.0) + FLOOR.0.max(FLOOR.1 * run);
    let near = |cost: f64| (cost - truth).abs() <= room;
    match said {
        SaidCost::Nothing => None,
        SaidCost::One(one) => Some(near(one)),
        SaidCost::Range(low, high) => {
            let holds = (low..=high).contains(&truth) && high - low <= high / 2.0;
            Some(holds || (near(low) && near(high)))
        }
    }
}

fn budget(case: &Case, told: &[Told], verdict: &mut CaseVerdict) {
    let room = |wall: f64| BUDGET.0 * wall.max(BUDGET.1);
    let mut worst: Option<f64> = Some(0.0);
    let mut right = !told.is_empty();
    for told in told {
        let Some(sum) = told.answer.budget_sum() else {
            worst = None;
            right = false;
            break;
        };
        let mut off = (sum - told.wall).abs();
        // others' load makes what a program asked for longer
        if let Some((seconds, pattern)) = case.known.as_ref().filter(|_| told.others <= OTHERS) {
            let lines = told.answer.budget.iter().filter(|row| pattern.holds(row, &told.facts));
            let said: f64 = lines.map(|row| if let SaidCost::One(cost) = row.said() { cost } else { 0.0 }).sum();
            off = off.max((said - seconds).abs());
        }
        right &= off <= room(told.wall);
        worst = worst.map(|worst| worst.max(off / told.wall));
    }
    verdict.budget = worst;
    verdict.budget_right = right;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::answer::Answer;
    use super::super::pattern::RunFacts;

    use super::*;

    fn samples(values: &[f64]) -> Samples {
        let mut samples = Samples::default();
        values.iter().for_each(|v| samples.push(*v));
        samples
    }

    fn told(rows: &[serde_json::Value], others: f64) -> Told {
        let mut answer = Answer::default();
        for row in rows {
            let to = if row["kind"] == "budget" { &mut answer.budget } else { &mut answer.findings };
            to.push(Row::of(row.clone()));
        }
        Told { facts: RunFacts::of(9, ""), wall: 1.0, others, answer }
    }

    fn judged(truth: &str, on: f64, told: Vec<Told>) -> CaseVerdict {
        let truth: &'static str = Box::leak(format!("#: what it\n{truth}").into_boxed_str());
        let case = Case::read("x.sh", truth).expect("a case");
        let runs = Runs { on: samples(&[on]), off: samples(&[0.4]), told, ..Runs::default() };
        judge(&case, &runs, false)
    }

    #[test]
    fn a_cost_may_be_a_quarter_off_and_the_floor() {
        let right = |said, truth| within(said, truth, 1.0);
        assert_eq!(right(SaidCost::One(0.29), 0.2), Some(true));
        assert_eq!(right(SaidCost::One(0.31), 0.2), Some(false));
        assert_eq!(right(SaidCost::One(0.06), 0.0), Some(false), "a quarter of nothing is nothing");
        assert_eq!(right(SaidCost::Nothing, 0.2), None);
        // of 4 s the floor is 120 ms
        assert_eq!(within(SaidCost::One(0.1), 0.0, 4.0), Some(true));
    }

    #[test]
    fn a_range_must_hold_the_truth_and_be_narrow() {
        let right = |low, high, truth| within(SaidCost::Range(low, high), truth, 1.0);
        assert_eq!(right(0.5, 1.0, 0.9), Some(true));
        assert_eq!(right(0.1, 1.0, 0.9), Some(false), "anything would be held by it");
        assert_eq!(right(0.6, 1.0, 0.4), Some(false));
        assert_eq!(right(0.38, 0.42, 0.43), Some(true), "both ends are as near as one figure may be");
    }

    #[test]
    fn the_cause_has_a_place_and_a_cost() {
        let rows = [
            json!({"rule": "slow", "syscall": "read", "cost_ns": 900_000_000}),
            json!({"rule": "lock", "syscall": "flock", "cost_ns": 600_000_000, "text": "a: held by b", "comm": "a"}),
        ];
        let verdict = judged("#: cause syscall=flock by=b\n#: innocent b c", 1.0, vec![told(&rows, 0.0)]);
        assert_eq!((verdict.rank, verdict.said, verdict.within), (Some(2), SaidCost::One(0.6), Some(true)));
        assert_eq!((verdict.blamed, verdict.budget_right), (vec!["b".to_owned()], false));
    }

    #[test]
    fn a_wait_for_a_cpu_is_another_cause() {
        let cpu = json!({"rule": "cpu-wait", "comm": "a", "by_comm": "b", "cost_ns": 1});
        let rows = [cpu, json!({"rule": "lock", "by_comm": "b", "cost_ns": 2})];
        let rank = |truth| judged(truth, 1.0, vec![told(&rows, 0.0)]).rank;
        assert_eq!((rank("#: cause by=b"), rank("#: load\n#: cause by=b")), (Some(2), Some(1)));
    }

    #[test]
    fn tapes_that_do_not_agree_count_with_their_middle() {
        let named = || told(&[json!({"syscall": "flock", "cost_ns": 600_000_000})], 0.0);
        let silent = || told(&[], 0.0);
        let verdict = judged("#: cause syscall=flock", 1.0, vec![named(), silent(), named()]);
        assert_eq!((verdict.rank, verdict.ranks_differ), (Some(1), true));
        assert_eq!(judged("#: cause syscall=flock", 1.0, vec![named(), silent()]).rank, None);
    }

    #[test]
    fn load_of_others_excuses_only_waits_for_a_cpu() {
        let rows = [json!({"rule": "cpu-wait", "text": "x: waited"}), json!({"rule": "lock", "text": "a lock"})];
        let at = |others| judged("#: healthy", 1.0, vec![told(&rows, others)]);
        assert_eq!((at(0.5).false_findings.len(), at(0.5).excused), (1, 1));
        assert_eq!((at(0.0).false_findings.len(), at(0.0).excused), (2, 0));
    }

    #[test]
    fn the_budget_may_hold_the_cause() {
        let rows = [
            json!({"kind": "budget", "level": 1, "syscall": "nanosleep", "cost_ns": 590_000_000}),
            json!({"kind": "budget", "level": 1, "syscall": "read", "cost_ns": 400_000_000}),
        ];
        let truth = "#: cause-budget syscall*=sleep\n#: budget 0.58 syscall*=sleep";
        let verdict = judged(truth, 1.0, vec![told(&rows, 0.0)]);
        assert_eq!((verdict.rank, verdict.within, verdict.budget_right), (Some(1), Some(true), true));
        let more = [rows[0].clone(), rows[1].clone(), json!({"cost_ns": 700_000_000})];
        let verdict = judged(truth, 1.0, vec![told(&more, 0.0)]);
        assert_eq!(verdict.rank, Some(2), "a larger finding stands before it");
        assert!(
            !judged("#: cause-budget syscall*=sleep\n#: budget 0.5 syscall*=sleep", 1.0, vec![told(&rows, 0.0)])
                .budget_right
        );
    }

    #[test]
    fn what_costs_nothing_need_not_be_named() {
        let verdict = judged("#: costless\n#: cause syscall=flock", 0.41, vec![told(&[], 0.0)]);
        assert_eq!((verdict.within, verdict.place_counts()), (Some(true), false));
        let rows = [json!({"syscall": "flock", "cost_ns": 600_000_000})];
        assert_eq!(judged("#: costless\n#: cause syscall=flock", 0.41, vec![told(&rows, 0.0)]).within, Some(false));
    }
}
