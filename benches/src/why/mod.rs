//! `bench why`: planted incidents and healthy programs, recorded, and what `analyze why` says of them. Run by `make bench-why`.
//!
//! A case is one program with its truth on top (`case`, `cases/`). It runs with its cause on and off, bare and recorded, by
//! turns (`stage`, `run`). The difference of the medians is what the cause costs. The answers of the tapes (`answer`) are held
//! against that and against the truth (`pattern`, `judge`), and a table is made (`report`). Nothing here knows a rule of `why`.

mod answer;
mod case;
mod cases;
mod judge;
mod kept;
mod pattern;
mod report;
mod run;
mod stage;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use self::case::Case;
use self::judge::CaseVerdict;
use self::run::Runs;
use self::stage::Stage;
use crate::{mount, page, process};

/// The marks of the table in docs/reference/why-measured.md.
const MARKS: page::PageMarks = page::PageMarks {
    begin: "<!-- bench-why: from here to the end mark written by `make bench-why` -->",
    end: "<!-- bench-why: end -->",
};

/// Which cases, how often, with which programs.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Plan {
    /// Pairs of runs with the cause on and off
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pairs: u16,
    /// Only these cases; a name may end with `*`
    #[arg(long = "case", value_name = "LIST", value_delimiter = ',')]
    cases: Vec<String>,
    /// One pair, recorded runs only: to see that everything runs
    #[arg(long)]
    quick: bool,
    /// Runs each case beside a busy neighbour and records the whole machine (-a); only the cause's place counts
    #[arg(long)]
    beside: bool,
    /// Where `record` and `analyze` are [default: beside this program]
    #[arg(long, value_name = "DIR")]
    bin_dir: Option<PathBuf>,
    /// Keeps the tapes with the cause on, and the answers to them, in this directory
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Runs nothing: asks this `analyze` about the tapes that --keep left in the directory
    #[arg(long, value_name = "DIR", conflicts_with = "keep")]
    again: Option<PathBuf>,
    /// Puts the tables into this Markdown file, between its two marks
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Priority of all runs, -20 to 19: on a machine that others use, a negative one keeps most of their load out
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-20..20))]
    nice: i32,
    /// Prints the cases' names and what they plant, and runs nothing
    #[arg(long)]
    list: bool,
}

impl Plan {
    fn pairs(&self) -> usize {
        if self.quick { 1 } else { usize::from(self.pairs) }
    }

    /// Whether runs without `record` are needed: they show what recording itself does to the cost.
    fn bare(&self) -> bool {
        !self.quick && !self.beside
    }

    fn wants(&self, name: &str) -> bool {
        let fits = |asked: &String| match asked.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == asked,
        };
        self.cases.is_empty() || self.cases.iter().any(fits)
    }

    /// The cases that are asked for. Beside a neighbour the healthy ones are left out: its load is a finding there.
    fn chosen(&self) -> Result<Vec<Case>> {
        let mut all = cases::all()?;
        for asked in &self.cases {
            let one = Self { cases: vec![asked.clone()], ..self.clone() };
            if !all.iter().any(|case| one.wants(case.name)) {
                bail!("no case {asked}: bench why --list names them");
            }
        }
        all.retain(|case| self.wants(case.name) && !(self.beside && case.healthy));
        Ok(all)
    }
}

/// Runs the cases and prints their tables.
///
/// # Errors
/// No right to record, a program of systape is missing, or a page cannot be written. A case that cannot run is a line.
pub(crate) fn run(plan: &Plan) -> Result<()> {
    let cases = plan.chosen()?;
    if plan.list {
        cases.iter().for_each(|case| println!("{:<14} {}", case.name, case.what));
        return Ok(());
    }
    // SAFETY: geteuid takes nothing and touches no memory.
    if unsafe { libc::geteuid() } != 0 {
        bail!("recording needs root: run `make bench-why` as root or with sudo");
    }
    process::catch_interrupts()?;
    mount::keep_to_ourselves();
    mount::own_network()?;
    if let Some(dir) = &plan.keep {
        fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    }
    let stage = Stage::set(plan)?;
    let mut verdicts = Vec::new();
    for case in &cases {
        process::go_on()?;
        let verdict = match judged(&stage, plan, case) {
            Ok(verdict) => verdict,
            // asked to stop: what was measured is still printed
            Err(_) if process::interrupted() => break,
            Err(e) => CaseVerdict::left_out(case, format!("{e:#}")),
        };
        println!("{}", report::line(&verdict));
        verdicts.push(verdict);
    }
    let sections = report::sections(&stage, plan, &verdicts);
    sections.iter().for_each(|section| println!("\n{}", section.plain()));
    match &plan.markdown {
        Some(file) => page::fill(file, &MARKS, &sections),
        None => Ok(()),
    }
}

fn judged(stage: &Stage, plan: &Plan, case: &Case) -> Result<CaseVerdict> {
    if let Some(dir) = &plan.again {
        let runs = kept::read(dir, case.name, &stage.analyze)?;
        return Ok(match runs {
            Some(runs) => judge::judge(case, &runs, plan.beside),
            None => CaseVerdict::left_out(case, "nothing was kept".into()),
        });
    }
    if let Some(why) = case.missing() {
        return Ok(CaseVerdict::left_out(case, why));
    }
    let runs = Runs::of(stage, plan, case)?;
    if let Some(dir) = &plan.keep {
        kept::write(dir, case.name, &runs)?;
    }
    Ok(judge::judge(case, &runs, plan.beside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_chosen_by_name() {
        let plan = |cases: &[&str]| Plan {
            pairs: 5,
            cases: cases.iter().map(|c| (*c).to_owned()).collect(),
            quick: false,
            beside: false,
            bin_dir: None,
            keep: None,
            again: None,
            markdown: None,
            nice: 0,
            list: false,
        };
        let names = |plan: &Plan| plan.chosen().expect("cases").iter().map(|c| c.name).collect::<Vec<_>>();
        assert!(names(&plan(&[])).len() >= 55);
        assert_eq!(names(&plan(&["flock"])), ["flock"]);
        assert!(names(&plan(&["lock*"])).contains(&"lockpool"));
        assert!(plan(&["no-such"]).chosen().is_err());
        let beside = Plan { beside: true, ..plan(&[]) };
        assert!(beside.chosen().expect("cases").iter().all(|case| !case.healthy));
    }
}
