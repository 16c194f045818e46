//! The stacks requested on the command line.

use std::time::Duration;

use anyhow::{Result, bail};
use systape_bpf::{STACK_COPY_MAX, stack_user};
use systape_format::families::{RECORDED, Recorded};
use systape_format::model::{Family, StackMode, StackOf, StackSettings};

use crate::kernel::families::Families;
use crate::options::args::Args;

/// Names on the command line.
const NAMES: [(&str, StackOf); 7] = [
    ("syscall", StackOf::Syscall),
    ("switch", StackOf::Switch),
    ("wakeup", StackOf::Wakeup),
    ("block", StackOf::Block),
    ("signal", StackOf::Signal),
    ("sample", StackOf::Sample),
    ("asleep", StackOf::Asleep),
];
/// Aliases: the names of the families and reports.
const ALIASES: [(&str, &str); 4] = [("sched", "switch"), ("offcpu", "switch"), ("waking", "wakeup"), ("cpu", "sample")];

/// Default size of a stack copy in bytes: enough for 99 of 100 stacks of everyday programs.
const COPY_DEFAULT: u32 = 63 << 10;
/// Highest rate of samples, the default of perf's kernel.perf_event_max_sample_rate.
const MAX_FREQUENCY: u32 = 100_000;

/// Every word that `--stacks-on` takes.
pub(crate) fn words() -> Vec<&'static str> {
    NAMES.iter().map(|(name, _)| *name).chain(["all"]).collect()
}

/// The settings of the command line.
///
/// Options that exclude each other.
pub(crate) fn parse(args: &Args, families: &Families) -> Result<StackSettings> {
    // a look comes with a sample of what runs
    let frequency = args.sample.or(args.frequency).unwrap_or(0);
    if frequency > MAX_FREQUENCY {
        bail!("-F {frequency}: at most {MAX_FREQUENCY} samples a second");
    }
    let wants_user = args.frame_pointers || args.call_graph.is_some();
    if !wants_user && !args.kernel_stacks && frequency == 0 {
        if !args.stacks_on.is_empty() || args.stacks_min.is_some() {
            bail!("--stacks-on and --stacks-min choose among stacks: add -g, --call-graph=dwarf or --kernel-stacks");
        }
        return Ok(StackSettings::default());
    }
    let (mode, copy_limit) = match args.call_graph.as_deref() {
        Some(text) => mode(text)?,
        // kernel stacks of what waits and of what runs cost little; those of programs are asked for
        None if wants_user || (frequency > 0 && args.sample.is_none()) => (StackMode::FramePointers, 0),
        None => (StackMode::None, 0),
    };
    let mut on = Vec::new();
    for name in &args.stacks_on {
        if of_rows(name) {
            on.push(StackOf::Row);
            continue;
        }
        let known = ALIASES.iter().find(|(alias, _)| alias == name).map_or(name.as_str(), |(_, known)| known);
        match NAMES.iter().find(|(n, _)| *n == known || Some(*n) == known.strip_suffix('s')) {
            Some((_, of)) => on.push(*of),
            None if name == "all" => on.extend(StackOf::ALL.into_iter().chain([StackOf::Row])),
            None => {
                let rows = RECORDED.iter().map(|table| table.family.name()).filter(|name| of_rows(name));
                let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).chain(rows).collect();
                bail!("--stacks-on: there is no '{name}'; there are {} and all", names.join(", "));
            }
        }
    }
    if on.is_empty() && (wants_user || args.kernel_stacks) {
        on = vec![StackOf::Syscall, StackOf::Switch, StackOf::Block, StackOf::Signal, StackOf::Asleep, StackOf::Row];
    }
    // time off the CPU that began before the recording is asked for too
    if on.contains(&StackOf::Switch) {
        on.push(StackOf::Asleep);
    }
    // who asks for samples asks for their stacks
    on.retain(|of| *of != StackOf::Sample);
    if args.sample.is_some() {
        on.retain(|of| *of != StackOf::Asleep);
        on.push(StackOf::Row);
    }
    if frequency > 0 {
        on.push(StackOf::Sample);
    } else if args.stacks_on.iter().any(|name| name == "sample" || name == "cpu") {
        bail!("--stacks-on sample needs -F HZ: how often to look");
    }
    on.retain(|of| family(*of).is_none_or(|family| families.has(family)));
    on.retain(|of| *of != StackOf::Row || families.have_row_stacks());
    on.sort_unstable();
    on.dedup();
    // of samples the kernel's part says what the time in the kernel went into, of a sleeper what it waits for: at no cost to the program
    let always = [StackOf::Sample, StackOf::Asleep];
    let kernel = |of: &StackOf| args.kernel_stacks || args.sample.is_some() || always.contains(of);
    let kernel = on.iter().copied().filter(kernel).collect();
    let min_dur = args.stacks_min.unwrap_or(Duration::ZERO).as_nanos();
    Ok(StackSettings { mode, copy_limit, on, kernel, frequency, min_dur: u64::try_from(min_dur).unwrap_or(u64::MAX) })
}

/// Whether the rows of that family have stacks.
fn of_rows(name: &str) -> bool {
    let has_stacks = |table: &&Recorded| table.def.stack_column().is_some();
    let named = |table: &Recorded| table.family.name() == name || Some(table.family.name()) == name.strip_suffix('s');
    RECORDED.iter().filter(has_stacks).any(named)
}

/// The command line's name for events of a kind.
pub(crate) fn name(of: StackOf) -> &'static str {
    NAMES.iter().find(|(_, known)| *known == of).map_or("?", |(name, _)| name)
}

/// Removes those that `which` selects.
pub(crate) fn leave_out(settings: &mut StackSettings, which: impl Fn(StackOf) -> bool) {
    settings.on.retain(|of| !which(*of));
    settings.kernel.retain(|of| !which(*of));
    if !settings.on.contains(&StackOf::Sample) {
        settings.frequency = 0;
    }
    if settings.on.is_empty() {
        *settings = StackSettings::default();
    }
}

/// The family of an event with a stack; None for samples, which only -F requests, and for sleepers, which have no
/// event.
pub(crate) fn family(of: StackOf) -> Option<Family> {
    match of {
        StackOf::Syscall => Some(Family::Syscall),
        StackOf::Switch | StackOf::Wakeup => Some(Family::Sched),
        StackOf::Block => Some(Family::Block),
        StackOf::Signal => Some(Family::Signal),
        // of several families
        StackOf::Sample | StackOf::Asleep | StackOf::Row => None,
    }
}

/// `fp`, `dwarf` or `dwarf,SIZE`, as perf has them: a bare number is bytes.
fn mode(text: &str) -> Result<(StackMode, u32)> {
    let (name, size) = text.split_once(',').map_or((text, None), |(name, size)| (name, Some(size)));
    match (name, size) {
        ("fp", None) => Ok((StackMode::FramePointers, 0)),
        ("dwarf", None) => Ok((StackMode::Dwarf, COPY_DEFAULT)),
        ("dwarf", Some(size)) => {
            let bytes = systape_cli::size(size).map_err(|e| anyhow::anyhow!("--call-graph: {e}"))?;
            if bytes == 0 || bytes > 256 << 10 {
                bail!("--call-graph {text}: between 1 byte and 256k of a stack can be copied");
            }
            Ok((StackMode::Dwarf, (bytes as u32).min(STACK_COPY_MAX)))
        }
        ("lbr", _) => bail!("--call-graph lbr: needs hardware that not every machine has; use fp or dwarf"),
        _ => bail!("--call-graph {text}: one of fp, dwarf, dwarf,SIZE"),
    }
}

/// A set of events in the BPF side's form: bit i for number i.
pub(crate) fn bits(events: &[StackOf]) -> u32 {
    events.iter().fold(0, |bits, of| bits | 1 << (*of as u32))
}

/// The BPF side's mode for user stacks.
pub(crate) fn user_kind(mode: StackMode) -> u8 {
    match mode {
        StackMode::None => stack_user::NO_USER,
        StackMode::FramePointers => stack_user::ADDRESSES,
        StackMode::Dwarf => stack_user::COPY,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn settings(line: &str) -> Result<StackSettings> {
        let args = Args::try_parse_from(std::iter::once("record").chain(line.split_whitespace()))?;
        parse(&args, &Families::parse(&args.families)?)
    }

    #[test]
    fn what_cannot_be_had_is_taken_away() {
        let mut all = settings("-g --kernel-stacks -F 99").unwrap();
        leave_out(&mut all, |of| of == StackOf::Sample);
        assert!(all.frequency == 0 && !all.kernel.contains(&StackOf::Sample) && all.on.contains(&StackOf::Block));
        leave_out(&mut all, |of| family(of) == Some(Family::Block));
        assert!(!all.on.contains(&StackOf::Block) && all.on.contains(&StackOf::Switch));
        leave_out(&mut all, |_| true);
        assert_eq!(all, StackSettings::default());
    }

    #[test]
    fn options_become_settings() {
        assert_eq!(settings("").unwrap(), StackSettings::default());
        let fp = settings("-g").unwrap();
        assert_eq!((fp.mode, fp.on.len(), fp.kernel.len()), (StackMode::FramePointers, 5, 1));
        let dwarf = settings("--call-graph dwarf,8192 --stacks-on sched,block --kernel-stacks").unwrap();
        assert_eq!((dwarf.mode, dwarf.copy_limit), (StackMode::Dwarf, 8192));
        assert_eq!(dwarf.on, [StackOf::Switch, StackOf::Block, StackOf::Asleep]);
        assert_eq!(dwarf.kernel, dwarf.on);
        let samples = settings("-F 99").unwrap();
        assert_eq!((samples.on, samples.frequency), (vec![StackOf::Sample], 99));
        assert_eq!(samples.kernel, [StackOf::Sample]);
        assert_eq!(settings("-g -F 99").unwrap().on.len(), 6);
        let kernel = settings("--kernel-stacks --families block").unwrap();
        assert_eq!((kernel.mode, kernel.on), (StackMode::None, vec![StackOf::Block, StackOf::Asleep]));
        assert_eq!(settings("-g --stacks-on block").unwrap().on, [StackOf::Block]);
        assert_eq!(settings("-g --stacks-on asleep").unwrap().kernel, [StackOf::Asleep]);
        assert_eq!(settings("-g --stacks-min 2").unwrap().min_dur, 2_000_000);
        assert_eq!(bits(&[StackOf::Syscall, StackOf::Sample]), 0b100_0010);
    }

    #[test]
    fn contradictions_are_refused() {
        for line in [
            "--stacks-on block",
            "-g --stacks-on sample",
            "-g --stacks-on disk",
            "--call-graph lbr",
            "--call-graph dwarf,1M",
        ] {
            assert!(settings(line).is_err(), "{line}");
        }
    }
}
