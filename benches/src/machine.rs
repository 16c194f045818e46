//! What a number means nothing without: machine, versions, date, method. No name of the host.

use std::fs;

use crate::args::Plan;
use crate::section::Section;
use crate::tools::{Tools, output};
use crate::workloads;

/// The first section.
pub(crate) fn describe(tools: &Tools, plan: &Plan) -> Section {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let versions = [
        output(&tools.record, &["--version"]),
        output("perf", &["--version"]),
        first_line(&output("strace", &["-V"])).replace("-- version ", ""),
        output("bpftrace", &["--version"]),
    ];
    let versions: Vec<_> = versions.into_iter().filter(|v| !v.is_empty()).collect();
    let (rounds, of_dd) = (plan.rounds(), workloads::named("dd").map_or(0, |dd| plan.rounds_of(dd)));
    let of_dd = if of_dd == rounds { String::new() } else { format!(" ({of_dd} of dd)") };
    let text = format!(
        "{} UTC. {} CPUs ({}), kernel {}. {}. Load at the start: {}. {rounds} rounds{of_dd}.",
        output("date", &["-u", "+%Y-%m-%d %H:%M"]),
        std::thread::available_parallelism().map_or(0, usize::from),
        model.trim_start_matches([' ', '\t', ':']),
        // not the names that builders append to it
        kernel.split('-').next().unwrap_or_default().trim(),
        versions.join(", "),
        load.split(' ').next().unwrap_or_default(),
    );
    Section::new("Machine").paragraph(text)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
