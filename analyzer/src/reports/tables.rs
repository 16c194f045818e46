//! Every table that a report can print, in the order of the documents.

use systape_format::table::TableDef;

use super::{
    block, callgraph, check, diff, events, exec, info, kills, net, offcpu, repair, runqlat, sched, states, summary,
};
use crate::lines::tables as lines;
use crate::render::by;
use crate::stacks::lines::STACK;

/// Columns of a row.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// All of them, always.
    All(&'static TableDef),
    /// Those that were asked for, in any order.
    Keys(&'static TableDef),
    /// All of them or none: an option decides.
    Maybe(&'static TableDef),
}

impl Part {
    /// The declaration.
    pub fn table(self) -> &'static TableDef {
        let (Self::All(table) | Self::Keys(table) | Self::Maybe(table)) = self;
        table
    }
}

/// Rows of one kind that a report prints.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The report as typed; "" = the listing.
    pub report: &'static str,
    /// What their columns are, one part after the other.
    pub parts: Vec<Part>,
    /// They are in JSON only: CSV has the first rows of a report.
    pub json_only: bool,
}

impl Rows {
    fn of(report: &'static str, parts: &[Part]) -> Self {
        Self { report, parts: parts.to_vec(), json_only: false }
    }

    fn json(report: &'static str, parts: &[Part]) -> Self {
        Self { report, parts: parts.to_vec(), json_only: true }
    }
}

/// Every kind of row of every report.
pub fn tables() -> Vec<Rows> {
    use Part::{All, Keys, Maybe};
    let losses = &[All(&lines::LOSSES)];
    vec![
        Rows::of("", &[All(&lines::CALLS), Maybe(&STACK)]),
        Rows::json("", &[All(&lines::EVENTS), Maybe(&STACK)]),
        Rows::json("", losses),
        Rows::of("--summary", &[Keys(&by::BY), All(&summary::SUMMARY), Maybe(&summary::CPU), Maybe(&summary::ERRNOS)]),
        Rows::json("--summary", &[All(&summary::URING)]),
        Rows::of("--summary -e FAMILY:EVENT", &[All(&events::EVENTS)]),
        Rows::of("block", &[All(&block::line::BLOCK)]),
        Rows::json("block", losses),
        Rows::of("block --top", &[Keys(&by::BY), All(&block::table::SUMS)]),
        Rows::of("block --hist", &[Keys(&by::BY), All(&block::table::SUMS), All(&block::table::HISTOGRAM)]),
        Rows::of("net", &[All(&net::line::NET)]),
        Rows::json("net", losses),
        Rows::of("net --events", &[All(&net::line::CHANGES)]),
        Rows::json("net --events", losses),
        Rows::of("kills", &[All(&kills::rows::KILLS)]),
        Rows::json("kills", losses),
        Rows::of("exec", &[All(&exec::listing::EXEC)]),
        Rows::of("exec --tree", &[All(&exec::tree::TREE)]),
        Rows::of("sched timehist", &[All(&sched::timehist::TIMEHIST)]),
        Rows::json("sched timehist", losses),
        Rows::of("sched latency", &[Keys(&by::BY), All(&sched::latency::LATENCY)]),
        Rows::of("runqlat", &[Keys(&by::BY), All(&runqlat::RUNQLAT)]),
        Rows::of("offcpu", &[Keys(&by::BY), All(&offcpu::OFFCPU)]),
        Rows::of("offcpu --wakers", &[All(&offcpu::wakers::WAKERS)]),
        Rows::of("states", &[Keys(&by::BY), All(&states::STATES)]),
        Rows::of("states --at", &[All(&states::now::NOW)]),
        Rows::of("states --at --call-graph", &[All(&states::stacks::STACKS)]),
        Rows::of("callgraph", &[All(&callgraph::rows::CALLGRAPH)]),
        Rows::of("diff", &[All(&diff::DIFF)]),
        Rows::of("info", &[All(&info::INFO)]),
        Rows::of("check", &[All(&check::CHECK)]),
        Rows::of("repair", &[All(&repair::REPAIR)]),
        Rows::of("redact", &[All(&repair::REDACT)]),
    ]
}
