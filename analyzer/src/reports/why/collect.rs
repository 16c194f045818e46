//! Makes the inputs of the rules from a tape, in few passes.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anyhow::Result;
use rayon::slice::ParallelSliceMut as _;
use rustc_hash::{FxHashMap, FxHashSet};
use systape_format::model::{Call, Family, Task};

use crate::reports::kills::records;
use crate::reports::{Context, losses, scheduling};
use systape_answers::derive::block::devices::devices;
use systape_answers::derive::block::files::Files;
use systape_answers::derive::block::io::Io;
use systape_answers::derive::critical::log::Log;
use systape_answers::derive::paths::feed::{Told, feed};
use systape_answers::derive::paths::join;
use systape_answers::derive::processes::{self, Processes};
use systape_answers::derive::runs::decode::Needs;
use systape_answers::derive::runs::feed as runs;
use systape_answers::derive::signals::{EndedTarget, SignalChoice, SignalLine, Tracker, Via};
use systape_answers::derive::waits::{self, Cycle, EndlessWait, Threads};
use systape_answers::derive::why::calls::{Calls, InTurn, Relative, Sums};
use systape_answers::derive::why::cpu::{CpuWaitSink, Waited, Woken};
use systape_answers::derive::why::disks::{Disk, Disks};
use systape_answers::derive::why::finding::Who;
use systape_answers::derive::why::floor::Floor;
use systape_answers::derive::why::limits::Limits;
use systape_answers::derive::why::lookups;
use systape_answers::derive::why::memory::{self, Memory};
use systape_answers::derive::why::network::{self, Peers};
use systape_answers::derive::why::programs;
use systape_answers::derive::why::rank::{Sum, object};
use systape_answers::derive::why::rules::{Deadlock, Death, Inputs, Stuck, Waits};
use systape_answers::derive::why::seen::SeenWaits;
use systape_answers::derive::why::talk::read::{Users, other_end};
use systape_answers::derive::why::talk::together::Talked;
use systape_answers::derive::why::talk::{For, Talker, Talks, Way};
use systape_events::families;
use systape_events::scan::Scan;
use systape_events::values::devices::Dev;

/// The inputs, and whether memory did not hold all of them.
#[derive(Debug)]
pub(super) struct Collected {
    /// Inputs of the rules.
    pub inputs: Inputs,
    /// Some sums were dropped.
    pub cut: bool,
    /// Threads' stretches of time; None: switches were not recorded.
    pub log: Option<Log>,
}

/// Reads the tape; parts that cannot be read are added to the losses.
pub(super) fn collect(
    context: &mut Context<'_>,
    recorded: &[Family],
    floor: Floor,
    (from, to): (u64, u64),
) -> Result<Collected> {
    let tape = context.question.tape;
    let mut inputs = Inputs {
        calls: Vec::new(),
        futexes: Vec::new(),
        deadlocks: Vec::new(),
        talked: Vec::new(),
        lookups: Vec::new(),
        ran: Vec::new(),
        programs: Vec::new(),
        deaths: Vec::new(),
        disks: Vec::new(),
        peers: Vec::new(),
        memory: Vec::new(),
        limits: Limits::default(),
        stopped_by: BTreeMap::new(),
        seen: SeenWaits::default(),
        whole: false,
        floor,
        length: to.saturating_sub(from),
    };
    let (mut cut, mut log) = (false, None);
    let (mut waited, mut woken) = (Waited::default(), Woken::default());
    if families::recorded(tape, Family::Sched) == Some(true) {
        let sink = (CpuWaitSink::new(&context.question.scope), Log::new(from));
        // without calls, as `states` and `sched latency` have them: where both contradict each other, switches are believed
        let fed = runs::feed(&context.question, Needs::default(), context.question.scope.to, sink);
        let (CpuWaitSink { ran, waited: found, woken: wakes, cut: dropped, .. }, stretches) = fed.tracker.sink;
        log = Some(stretches);
        (inputs.ran, waited, woken) = (ran.into_values().collect(), found, wakes);
        cut |= dropped;
        inputs.ran.sort_by_key(|ran| ran.pid);
        scheduling::touched(fed.coverage, fed.unsure_until, context);
    }
    if recorded.contains(&Family::Look) {
        let (seen, _, coverage) = SeenWaits::read(&context.question);
        coverage.tell(&mut context.question.loss);
        inputs.seen = seen;
    }
    if recorded.contains(&Family::Syscall) {
        cut |= calls(context, (&waited, &woken), &mut inputs)?;
    }
    others(context, &mut inputs, (from, context.question.scope.to))?;
    if recorded.contains(&Family::Process) || recorded.contains(&Family::Signal) {
        let mut findings = Vec::new();
        let processes = processes::read::read(tape, &mut findings);
        let scope = &context.question.scope;
        inputs.programs = programs::programs(&processes, |task| scope.task(task), (from, scope.to));
        let records = fatal(context, &processes, &mut findings)?;
        let inside = |ts: u64| ts >= from && ts < scope.to;
        inputs.deaths = records.iter().filter_map(death).filter(|death| inside(death.ts)).collect();
        inputs.stopped_by = records.iter().filter(|record| inside(record.sent.event.ts)).filter_map(stop).collect();
        context.question.loss.findings.append(&mut findings);
    }
    // without one of its calls or switches, time of a process would be taken for that of its faults
    let loss = &context.question.loss;
    let families = [Family::Syscall, Family::Sched, Family::Process];
    let grew = inputs.memory.iter_mut().filter(|grew| grew.minor_faults.is_some());
    grew.filter(|grew| loss.touches(&families, Some(grew.pid), (from, to))).for_each(|grew| grew.minor_faults = None);
    Ok(Collected { inputs, cut, log })
}

/// Time in calls, and waits for futexes; whether some were dropped.
fn calls(context: &mut Context<'_>, (waited, woken): (&Waited, &Woken), inputs: &mut Inputs) -> Result<bool> {
    let reader = Calls { question: &context.question, waited, woken };
    let (mut sums, mut tracker, mut talks) = (Sums::default(), waits::Tracker::default(), Talks::default());
    let coverage = feed(&context.question, &reader, |told| {
        match told {
            Told::Sum(part) => sums.merge(part),
            Told::Row(InTurn::Wait(event), _) => tracker.add(&event),
            Told::Row(InTurn::Said(said), _) => talks.add(&said),
            Told::Row(InTurn::Relative(relative), cwd) => {
                let Relative { mut key, name, work } = *relative;
                if let Some(path) = cwd.and_then(|cwd| join(&cwd, &name)) {
                    key.object = object(path);
                }
                sums.add(key, &work);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    talks.finish(context.question.scope.to.min(context.question.tape.complete_until()));
    let book = &context.question.book;
    let mut calls: Vec<Sum> = sums
        .calls
        .into_iter()
        .map(|(key, work)| Sum {
            who: Who { comm: key.comm.to_vec(), pid: Some(key.pid) },
            call: book.get(key.call).name.clone(),
            errno: key.errno,
            object: key.object,
            work,
        })
        .collect();
    calls.par_sort_by(|a, b| (&a.who, a.errno, &a.call, &a.object).cmp(&(&b.who, b.errno, &b.call, &b.object)));
    inputs.calls = calls;
    let (judged, cycles, dropped) = tracker.judge(&sums.threads);
    let waits = judged.into_iter().filter_map(|judged| Waits::of(judged, &sums.threads));
    inputs.futexes = Waits::join_words(waits);
    inputs.talked = talked(&talks, &sums.users, inputs, |call| book.get(call).name.clone());
    inputs.deadlocks = cycles.iter().map(|cycle| deadlock(cycle, &sums.threads)).collect();
    coverage.tell(&mut context.question.loss);
    Ok(sums.cut || waited.cut || dropped)
}

/// The waits of `talks`, with who is at the other ends.
fn talked(talks: &Talks, users: &Users, inputs: &Inputs, name: impl Fn(Call) -> String) -> Vec<Talked> {
    let mut busy: FxHashMap<u32, u64> = talks.slept.clone();
    let mut add = |pid: Option<u32>, ns: u64| {
        let sum = busy.entry(pid.unwrap_or(0)).or_default();
        *sum = sum.saturating_add(ns);
    };
    inputs.ran.iter().for_each(|ran| add(Some(ran.pid), ran.ran.saturating_add(ran.waited)));
    inputs.calls.iter().for_each(|sum| add(sum.who.pid, sum.work.slow_ns));
    talks.sums.iter().for_each(|((who, ..), waited)| add(Some(who.pid), waited.ns));
    let none = FxHashMap::default();
    let mut talked: Vec<Talked> = talks
        .sums
        .iter()
        .map(|((who, call, what), waited)| {
            let other = match what {
                For::Answer(socket) => other_end(socket).and_then(|end| users.only(&end, Way::Out, who.key)),
                For::Pipe(pipe, Way::In) => users.only(pipe, Way::Out, who.key),
                For::Pipe(pipe, Way::Out) => users.only(pipe, Way::In, who.key),
                For::Connection(_) | For::Retry(..) | For::Ack(_) => None,
            };
            let named = |who: &Talker| Who { comm: who.comm.to_vec(), pid: Some(who.pid) };
            // a sleep is part of an answer; who fills a pipe and sleeps has nothing to put into it
            let idle = if matches!(what, For::Pipe(..)) { &talks.slept } else { &none };
            let busy = |pid: u32| {
                let busy = busy.get(&pid).copied().unwrap_or(0);
                busy.saturating_sub(idle.get(&pid).copied().unwrap_or(0))
            };
            let other = other.map(|other| (named(other), busy(other.pid)));
            Talked { who: named(who), call: name(*call), what: what.clone(), waited: waited.clone(), other }
        })
        .collect();
    talked.sort_by(|a, b| (&a.who, &a.call, &a.what).cmp(&(&b.who, &b.call, &b.what)));
    talked
}

/// The threads of `cycle`, by name.
fn deadlock(cycle: &Cycle, threads: &Threads) -> Deadlock {
    let thread = |held: &EndlessWait| {
        let named = threads.named(held.thread);
        Stuck {
            comm: named.map(|named| named.comm.to_vec()).unwrap_or_default(),
            tid: named.map_or(0, |named| named.tid),
            address: held.address.address,
            since: held.since,
            until: held.until,
        }
    };
    let pid = cycle.first().and_then(|held| threads.named(held.thread)).map_or(0, |named| named.pid);
    Deadlock { pid, threads: cycle.iter().map(thread).collect() }
}

/// I/Os by disk, segments sent again, memory.
fn others(context: &mut Context<'_>, inputs: &mut Inputs, (from, to): (u64, u64)) -> Result<()> {
    let (tape, scope) = (context.question.tape, &context.question.scope);
    let devices = devices(tape);
    let (mut disks, mut peers, mut grew) = (Disks::default(), Peers::default(), Memory::default());
    let mut looked_up = lookups::All::default();
    let whole = matches!(scope.filters().time, (None, None)) && tape.session().cut.is_none();
    let mut limits = Limits::new(tape.session(), whole);
    let coverage = Scan::all(tape).walk(
        "block I/Os and tables",
        |segment, dict| Ok((segment.blocks(dict)?, segment.tables(dict)?)),
        |_, dict, (ios, tables)| {
            let files = Files::new(&tables, dict);
            for io in ios.iter().map(|io| Io::new(io, dict).with(&files)).filter(|io| io.passes(scope)) {
                let disk = disks.entry(io.io.dev).or_default();
                disk.add(&io);
                limits.io(&io);
            }
            for table in &tables {
                limits.add(table, dict);
                if !scope.by_task() {
                    network::add(&mut peers, table, (from, to));
                }
                memory::add(&mut grew, table, dict, |task| scope.task(task), (from, to));
                lookups::add(&mut looked_up, table, dict, |task| scope.task(task), (from, to));
            }
            limits.tasks(dict, tape.session());
        },
    );
    inputs.limits = limits;
    inputs.whole = whole && tape.session().selection.is_empty() && !losses::stores_some(tape);
    // those below a stacked device do its I/Os once more
    let present: FxHashSet<Dev> = disks.keys().copied().collect();
    let lowest = disks.into_iter().filter(|(dev, _)| devices.below(*dev, &present).is_empty());
    inputs.disks = lowest.map(|(dev, disk)| Disk { name: devices.name(dev), ..disk }).collect();
    inputs.peers = peers.into_iter().collect();
    inputs.memory = grew.into_values().collect();
    inputs.lookups = looked_up.into_values().collect();
    coverage.tell(&mut context.question.loss);
    Ok(())
}

/// Signals that ended or stopped processes.
fn fatal(context: &Context<'_>, processes: &Processes, findings: &mut Vec<String>) -> Result<Vec<SignalLine>> {
    let scope = &context.question.scope;
    let passes = |_: Option<&Task>, target: &Task, ts: u64| scope.task(target) && ts < scope.to;
    records(context, Tracker::new(processes, &SignalChoice::Fatal, Box::new(passes)), findings)
}

/// The process that `record` stopped, and who sent that; None: it stopped nobody, or the sender is not known.
fn stop(record: &SignalLine) -> Option<(u32, Who)> {
    const STOPS: std::ops::RangeInclusive<u32> = 19..=22;
    let sender = record.sender().filter(|_| STOPS.contains(&record.sent.event.sig))?;
    Some((record.sent.target.pid, Who { comm: sender.comm.clone(), pid: Some(sender.pid) }))
}

/// The death that `record` is about; None: it ended nobody.
fn death(record: &SignalLine) -> Option<Death> {
    let end = record.unseen.or(record.outcome.end.filter(|_| record.outcome.cause != EndedTarget::No))?;
    let target = &record.sent.target;
    let sender = record.sender();
    Some(Death {
        who: Who { comm: target.comm.clone(), pid: Some(target.pid) },
        sig: end.signal().unwrap_or(record.sent.event.sig),
        ts: end.ts,
        sender: sender.map(|task| (task.comm.clone(), task.pid)),
        by_family: record.sent.to_own_process() || sender.is_some_and(|task| task.pid == target.ppid),
        by_itself: record.sent.to_own_process() && record.via.is_call(),
        via: record.via.name(),
        oom: matches!(record.via, Via::Oom | Via::OomSharedMm),
        maybe: matches!(record.outcome.cause, EndedTarget::Maybe(_)),
    })
}
