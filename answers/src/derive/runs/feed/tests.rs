use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::{Interval, Thread};
use super::*;
use systape_events::filter::Filters;

/// The intervals of each thread, by its number and tid.
#[derive(Debug, Default, PartialEq)]
struct All(BTreeMap<(u32, u32), Vec<Interval>>);

impl IntervalSink for All {
    fn interval(&mut self, threads: &[Thread], slot: Slot, interval: &Interval) {
        if !interval.is_empty() {
            let task = &threads[slot].task;
            self.0.entry((task.utid, task.tid)).or_default().push(*interval);
        }
    }
}

/// The tapes of testdata, and those in the directory of the variable `TAPES`.
fn tapes() -> impl Iterator<Item = (PathBuf, Tape)> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    let dirs = [Some(ours), std::env::var_os("TAPES").map(PathBuf::from)].into_iter().flatten();
    let paths = dirs.flat_map(|dir| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()));
    let paths = paths.filter(|path| path.extension().is_some_and(|name| name == "tape"));
    paths.map(|path| (path.clone(), Tape::open(&path).unwrap()))
}

const FAMILIES: [Family; 3] = [Family::Sched, Family::Syscall, Family::Process];

#[test]
fn calls_in_queues_tell_what_calls_in_order_tell() {
    let needs = Needs { calls: true, files: true, counted: true, futexes: true, children: true, ..Needs::default() };
    let mut intervals = 0;
    for (path, tape) in tapes() {
        let filters = Filters::none();
        let question = Question::new(&filters, &tape, &FAMILIES).unwrap();
        let of = |queues| fed(&question, needs, u64::MAX, All::default(), (Vec::new(), queues)).tracker;
        let (queued, in_order) = (of(true), of(false));
        assert_eq!(queued.sink.0.len(), in_order.sink.0.len(), "{}", path.display());
        for ((task, a), (_, b)) in queued.sink.0.iter().zip(&in_order.sink.0) {
            let differs =
                a.iter().zip(b).position(|(a, b)| a != b).or((a.len() != b.len()).then_some(a.len().min(b.len())));
            let around = |of: &[Interval], at: usize| of[at.saturating_sub(1)..of.len().min(at + 2)].to_vec();
            assert!(
                differs.is_none(),
                "{} {task:?}:\n{:#?}\n{:#?}",
                path.display(),
                differs.map(|at| around(a, at)),
                differs.map(|at| around(b, at))
            );
        }
        assert_eq!(queued.unsure_until(), in_order.unsure_until(), "{}", path.display());
        intervals += queued.sink.0.values().map(Vec::len).sum::<usize>();
    }
    assert!(intervals > 1000, "{intervals}");
}
