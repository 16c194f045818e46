//! The tables and the totals.

use super::Plan;
use super::answer::SaidCost;
use super::judge::CaseVerdict;
use super::stage::Stage;
use crate::section::Section;
use crate::table::Table;
use crate::tools::output;

/// One case as a line, printed when it is done.
pub(crate) fn line(verdict: &CaseVerdict) -> String {
    if let Some(why) = &verdict.left_out {
        return format!("{:<14} LEFT OUT: {}", verdict.name, why.replace('\n', " "));
    }
    let mut text = if verdict.healthy {
        format!("{:<14} healthy; false findings in {}", verdict.name, false_tapes(verdict))
    } else {
        let [rank, said, within] = [rank(verdict), said(verdict), verdict_word(verdict)];
        let (truth, bare) = (seconds(verdict.truth), seconds(verdict.bare));
        format!("{:<14} place {rank}, {said} of {truth} ({bare} bare): {within}", verdict.name)
    };
    text += &format!("; run {:.2}, spread {:.0} %; budget {}", verdict.run, verdict.spread * 100.0, budget(verdict));
    if !verdict.blamed.is_empty() {
        text += &format!("; BLAMES {}", verdict.blamed.join(", "));
    }
    let below = if verdict.healthy { &verdict.false_findings } else { &verdict.first };
    let below = below.iter().take(4).map(|finding| format!("\n{:>16}{finding}", ""));
    text + &below.collect::<String>()
}

fn false_tapes(verdict: &CaseVerdict) -> String {
    format!("{} of {}", verdict.false_tapes, verdict.run.all().len())
}

fn seconds(seconds: f64) -> String {
    if seconds.is_nan() { "-".into() } else { format!("{seconds:.2}") }
}

fn rank(verdict: &CaseVerdict) -> String {
    let rank = match verdict.rank {
        _ if verdict.costless && verdict.rank.is_none() => "(none)".into(),
        Some(rank) => rank.to_string(),
        None => "absent".into(),
    };
    if verdict.ranks_differ { format!("{rank} (differs)") } else { rank }
}

fn said(verdict: &CaseVerdict) -> String {
    let mark = if verdict.marked { "~" } else { "" };
    match verdict.said {
        SaidCost::Nothing => "-".into(),
        SaidCost::One(one) => format!("{mark}{one:.2}"),
        SaidCost::Range(low, high) => format!("{mark}{low:.2}–{high:.2}"),
    }
}

fn verdict_word(verdict: &CaseVerdict) -> String {
    let word = match verdict.within {
        None => "not said",
        Some(true) => "yes",
        Some(false) => "NO",
    };
    if verdict.counts() { word.into() } else { format!("{word}, not counted") }
}

fn budget(verdict: &CaseVerdict) -> String {
    match verdict.budget {
        None => "absent".into(),
        Some(off) => format!("{}{:.1} %", if verdict.budget_right { "" } else { "WRONG, " }, off * 100.0),
    }
}

/// All cases: the machine, the totals, the incidents, the healthy programs, and what did not run.
pub(crate) fn sections(stage: &Stage, plan: &Plan, verdicts: &[CaseVerdict]) -> Vec<Section> {
    let (out, ran): (Vec<_>, Vec<_>) = verdicts.iter().partition(|v| v.left_out.is_some());
    let (healthy, incidents): (Vec<&CaseVerdict>, Vec<&CaseVerdict>) = ran.into_iter().partition(|v| v.healthy);
    let title = if plan.beside { "Planted incidents beside a busy neighbour" } else { "Planted incidents" };
    let mut section = Section::new(title).paragraph(method(stage, plan)).table(totals(plan, &incidents, &healthy));
    if !incidents.is_empty() {
        section = section
            .paragraph(
                "Seconds. *true*: median with the cause on less median with it off, both recorded; *bare*: the same without `record`; \
                 *right*: within 25 % and 50 ms (or 3 % of the run); *spread*: distance of the quartiles of the runs; with more than \
                 10 % the case is not counted. *budget*: how far the budget is from the run's time, the worst tape.",
            )
            .table(incidents_table(&incidents));
    }
    if !healthy.is_empty() {
        section = section.paragraph("Programs without a cause: nothing may be found.").table(healthy_table(&healthy));
    }
    if !out.is_empty() {
        let mut table = Table::new(&["left out", "because"]).words(2);
        out.iter()
            .for_each(|v| table.push(vec![v.name.into(), v.left_out.clone().unwrap_or_default().replace('\n', " ")]));
        section = section.table(table);
    }
    vec![section]
}

fn method(stage: &Stage, plan: &Plan) -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{} UTC, {} CPUs, kernel {}, {}, {} interleaved pairs, load at the end {}.",
        output("date", &["-u", "+%Y-%m-%d %H:%M"]),
        std::thread::available_parallelism().map_or(0, usize::from),
        kernel.split('-').next().unwrap_or_default().trim(),
        output(&stage.analyze, &["--version"]).lines().next().unwrap_or_default(),
        plan.pairs(),
        load.split(' ').next().unwrap_or_default(),
    )
}

fn share(part: usize, of: usize) -> String {
    if of == 0 { "-".into() } else { format!("{part} of {of} ({:.0} %)", 100.0 * part as f64 / of as f64) }
}

fn totals(plan: &Plan, incidents: &[&CaseVerdict], healthy: &[&CaseVerdict]) -> Table {
    let mut table = Table::new(&["measure", "is", "goal"]).words(3);
    let mut row = |name: &str, is: String, goal: &str| table.push(vec![name.into(), is, goal.into()]);
    let counted: Vec<_> = incidents.iter().filter(|v| v.counts()).collect();
    let placed: Vec<_> = incidents.iter().filter(|v| v.place_counts()).collect();
    let within = |rank: usize| placed.iter().filter(|v| v.rank.is_some_and(|r| r <= rank)).count();
    row("cause first", share(within(1), placed.len()), if plan.beside { "75 %" } else { "85 %" });
    row("cause in the first three", share(within(3), placed.len()), "97 %");
    if plan.beside {
        return table;
    }
    let right: Vec<_> = counted.iter().filter(|v| v.within == Some(true)).collect();
    row("cost right", share(right.len(), counted.len()), "85 %");
    let ranges = |all: &[&&&CaseVerdict]| all.iter().filter(|v| matches!(v.said, SaidCost::Range(..))).count();
    row("of these ranges", share(ranges(&right), right.len()), "");
    // blame and budgets do not depend on how much the runs of a case differ
    let all = || incidents.iter().chain(healthy);
    row("innocents blamed", all().map(|v| v.blamed.len()).sum::<usize>().to_string(), "0");
    row("incidents with a wrong budget", share(wrong_budgets(incidents), incidents.len()), "0");
    let found = healthy.iter().filter(|v| !v.false_findings.is_empty()).count();
    row("healthy programs with a false finding", share(found, healthy.len()), "0");
    row("healthy programs with a wrong budget", share(wrong_budgets(healthy), healthy.len()), "0");
    row("not counted: spread above 10 %", share(incidents.len() - counted.len(), incidents.len()), "");
    row("waits for a CPU excused by the load of others", all().map(|v| v.excused).sum::<usize>().to_string(), "");
    table
}

fn wrong_budgets(verdicts: &[&CaseVerdict]) -> usize {
    verdicts.iter().filter(|v| !v.budget_right).count()
}

fn incidents_table(incidents: &[&CaseVerdict]) -> Table {
    let head = ["case", "place", "cost right", "innocents", "said", "true", "bare", "run", "spread", "budget"];
    let mut table = Table::new(&head).words(4);
    for v in incidents {
        let blamed = if v.blamed.is_empty() { "-".into() } else { v.blamed.join(", ") };
        let spread = format!("{:.0} %", v.spread * 100.0);
        let run = format!("{:.2}", v.run.median());
        let numbers = [said(v), seconds(v.truth), seconds(v.bare), run, spread, budget(v)];
        let words = [v.name.to_owned(), rank(v), verdict_word(v), blamed];
        table.push(words.into_iter().chain(numbers).collect());
    }
    table
}

fn healthy_table(healthy: &[&CaseVerdict]) -> Table {
    let mut table = Table::new(&["case", "tapes with a finding", "first of them", "run", "budget"]).words(3);
    for v in healthy {
        let first = v.false_findings.first().map_or("-", String::as_str).replace('|', "\\|");
        table.push(vec![v.name.into(), false_tapes(v), first, format!("{:.2}", v.run.median()), budget(v)]);
    }
    table
}
