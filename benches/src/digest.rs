//! What the page of the manual has of a run: one table for each measure with a row for each workload, where the terminal gets a table for
//! each workload.

use crate::peers::Measured;
use crate::section::Section;
use crate::stats::{times, two_places};
use crate::table::Table;
use crate::verdict::Goal;

/// Keys of the systems that have a column, in this order.
const COLUMNS: [&str; 8] =
    ["floor", "clock", "record", "duration-10", "perf-trace", "perf-record-z", "bpftrace", "strace"];

/// A measure of one workload under one system; None: it was not measured.
type PageMeasure = fn(&Measured, &str) -> Option<String>;

/// Title, sentence and measure of each table.
const TABLES: [(&str, &str, PageMeasure); 3] = [
    ("Time for the same work", "Times that of the bare workload, medians.", |m, key| m.slowdown(key).map(times)),
    (
        "CPU seconds added for a million calls",
        "The system's own, and what the workload takes longer under it.",
        |m, key| m.cpu_added_per_million(key).map(two_places),
    ),
    ("Bytes of the file for a call", "A tape also has strings, paths, tasks and the other families.", |m, key| {
        m.bytes(key).map(two_places)
    }),
];

/// The tables, and what was lost.
pub(crate) fn sections(measured: &[Measured]) -> Vec<Section> {
    let mut sections: Vec<_> = TABLES
        .iter()
        .map(|(title, text, measure)| Section::new(*title).paragraph(*text).table(table(measured, *measure)))
        .collect();
    if let Some(last) = sections.pop() {
        sections.push(last.paragraph(lost(measured)));
    }
    sections
}

fn table(measured: &[Measured], measure: PageMeasure) -> Table {
    let names = COLUMNS.map(|key| measured.iter().find_map(|m| m.name(key)).unwrap_or(key));
    let mut table = Table::new(&[&["workload"][..], &names].concat());
    for m in measured {
        let cells = COLUMNS.iter().map(|key| measure(m, key).unwrap_or_else(|| "-".into()));
        table.push([m.workload.name.to_owned()].into_iter().chain(cells).collect());
    }
    table
}

/// Which systems lost events under which workload, all rounds together.
fn lost(measured: &[Measured]) -> String {
    let of = |m: &Measured| {
        let lost = COLUMNS.iter().filter_map(|key| Some((m.name(key)?, m.missing(key).filter(|n| *n > 0)?)));
        let lost: Vec<_> = lost.map(|(name, n)| format!("{name} {n}")).collect();
        (!lost.is_empty()).then(|| format!("{}: {}", m.workload.name, lost.join(", ")))
    };
    let lost: Vec<_> = measured.iter().filter_map(of).collect();
    match lost.is_empty() {
        true => "No events were lost.".into(),
        false => format!("Events lost, all rounds together: {}.", lost.join("; ")),
    }
}

/// How many goals are met, and by how much the others are missed.
pub(crate) fn goals(goals: &[Goal]) -> Section {
    let (met, missed): (Vec<_>, Vec<_>) = goals.iter().partition(|goal| goal.is_met());
    let missed: Vec<_> = missed.iter().map(|goal| goal.short()).collect();
    let missed = if missed.is_empty() { String::new() } else { format!(" Not met: {}.", missed.join("; ")) };
    Section::new("Against the goals").paragraph(format!("{} of {} are met.{missed}", met.len(), goals.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads;

    #[test]
    fn a_row_for_each_workload() {
        let of =
            |name| Measured::of_rates(workloads::named(name).expect("a workload"), &[("bare", 1.0), ("record", 0.5)]);
        let text = sections(&[of("dd"), of("redis")]).iter().map(Section::markdown).collect::<String>();
        assert!(text.contains("| dd | - | - | 2.00x | - | - | - | - | - |\n| redis | - | - | 2.00x |"), "{text}");
        assert!(text.ends_with("No events were lost.\n"), "{text}");
    }

    #[test]
    fn goals_that_are_missed_are_named() {
        let all = [Goal::at_most("a", 1.0, 2.0), Goal::at_most("b", 1.0, 0.5)];
        assert!(goals(&all).markdown().ends_with("1 of 2 are met. Not met: a (2.00x, wanted <= 1x).\n"));
    }
}
