//! Cuts of a tape, and what they are when they are put together again: every event is there, once.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use systape_format::cut::{Choice, cut};
use systape_format::exercise::mutate::{Rng, SampleTape, mutate};
use systape_format::merge::{Refused, merge};
use systape_format::model::{Task, Window};
use systape_format::reader::Tape;

/// The tapes of older versions, and of this one.
fn tapes() -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    let mut all: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "tape"))
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect();
    all.sort();
    assert!(all.len() >= 7);
    all
}

fn cut_of(tape: &Tape, from: u64, to: u64) -> Vec<u8> {
    let choice = Choice {
        window: Window { from, to },
        tasks: None,
        cgroup: &|_| false,
        families: None,
        outlasts: &|call| call.nr == 80,
        words: "",
    };
    cut(tape, Vec::new(), &choice, &|_| ()).unwrap().0
}

/// Every row in words that do not depend on numbers of a segment, and how often it is there.
fn rows(tape: &Tape) -> BTreeMap<String, u32> {
    let mut all = BTreeMap::new();
    let mut add = |row: String| *all.entry(row).or_default() += 1;
    for at in 0..tape.segments().len() {
        let segment = tape.segment(at);
        let dict = segment.dict().unwrap();
        let name = |task: &Task| format!("{}/{}/{}", task.utid, task.tid, String::from_utf8_lossy(&task.comm));
        let who = |task: u32| name(&dict.tasks[task as usize]);
        let some = |task: Option<u32>| task.map(who);
        let core = segment.core(&dict).unwrap();
        let (time, args) = (segment.time(&dict, &core).unwrap(), segment.args(&core).unwrap());
        let (fds, captured) = (segment.fds(&core).unwrap(), segment.captured(&core).unwrap());
        let stacks = segment.stacks().unwrap();
        let stack = |of, row: usize| {
            let stack = stacks.of(of, row as u32)?;
            let frames = |leaf| {
                let frames = stacks.frames_from(leaf);
                frames.map(|f| (stacks.mappings[f.mapping as usize].path.clone(), f.offset)).collect::<Vec<_>>()
            };
            Some((stack.status, frames(stack.user), frames(stack.kernel)))
        };
        use systape_format::model::StackOf;
        for row in 0..core.task.len() {
            let fd = |column: &[u32]| match column.get(row).copied().unwrap_or(0) {
                named if named > 1 => Some(fds.names[named as usize - 2].clone()),
                _ => None,
            };
            let values: Vec<_> = captured.iter().filter(|value| value.row as usize == row).collect();
            let values: Vec<_> = values.iter().map(|value| (value.arg, value.status, &value.bytes)).collect();
            add(format!(
                "call {} {:?} {} {} {:?} {} {:?} {:?} {:?} {:?} {values:?} {:?}",
                who(core.task[row]),
                dict.calls[core.call[row] as usize],
                time.start[row],
                core.dur[row],
                core.state[row],
                core.errno[row],
                args.ret.get(row),
                args.args.get(row),
                fd(&fds.fd),
                fd(&fds.fd2),
                stack(StackOf::Syscall, row),
            ));
        }
        for (row, e) in segment.switches(&dict).unwrap().iter().enumerate() {
            let stack = stack(StackOf::Switch, row);
            add(format!("switch {} {} {} {} {} {stack:?}", e.ts, e.cpu, who(e.prev), who(e.next), e.prev_state));
        }
        for (row, e) in segment.wakeups(&dict).unwrap().iter().enumerate() {
            let stack = stack(StackOf::Wakeup, row);
            add(format!("wakeup {} {} {:?} {} {} {stack:?}", e.ts, e.cpu, some(e.waker), who(e.wakee), e.new));
        }
        for e in segment.processes(&dict).unwrap() {
            add(format!("process {} {:?} {} {:?} {:?} {}", e.ts, e.kind, who(e.task), e.path, e.argv, e.exit_code));
        }
        for (row, e) in segment.blocks(&dict).unwrap().iter().enumerate() {
            let stack = stack(StackOf::Block, row);
            add(format!("block {} {} {} {:?} {stack:?}", e.complete, e.sector, e.bytes, some(e.owner)));
        }
        for e in segment.signals(&dict).unwrap() {
            add(format!("signal {} {:?} {} {} {:?}", e.ts, e.kind, e.sig, who(e.target), some(e.sender)));
        }
        for e in segment.nets(&dict).unwrap() {
            add(format!("net {} {} {} {} {:?}", e.ts, e.socket, e.old_state, e.new_state, some(e.task)));
        }
        segment.urings(&dict).unwrap().iter().for_each(|e| add(format!("uring {} {} {}", e.ts, who(e.task), e.op)));
        for (row, e) in segment.samples(&dict).unwrap().iter().enumerate() {
            add(format!("sample {} {} {} {:?}", e.ts, e.cpu, who(e.task), stack(StackOf::Sample, row)));
        }
        for (row, e) in segment.sleepers(&dict).unwrap().iter().enumerate() {
            add(format!("sleeper {} {} {:?}", e.ts, who(e.task), stack(StackOf::Asleep, row)));
        }
        for row in segment.ledger(&dict).unwrap() {
            let call = dict.calls[row.call as usize];
            add(format!(
                "ledger {:?} {call:?} {} {} {} {:?}",
                row.task.map(who),
                row.count,
                row.sum,
                row.first,
                row.sizes
            ));
        }
        segment.gaps().unwrap().iter().for_each(|gap| add(format!("gap {gap:?}")));
        for table in segment.tables(&dict).unwrap() {
            table.ts.iter().for_each(|ts| add(format!("{} {ts}", table.def.name)));
        }
    }
    all
}

/// Cuts `tape` at these thousandths of its length and puts the parts together, the last one first.
fn together(tape: &Tape, at: &[u64]) -> Tape {
    let (open, end) = (tape.session().window_open, tape.complete_until());
    let mut edges: Vec<u64> = at.iter().map(|part| open + (end - open) * part / 1000).collect();
    edges.sort_unstable();
    edges.dedup();
    edges.insert(0, 0);
    edges.push(u64::MAX);
    let parts: Vec<Tape> = edges
        .windows(2)
        .filter(|pair| pair[0] < pair[1])
        .map(|pair| Tape::from_bytes(cut_of(tape, pair[0], pair[1])).unwrap())
        .collect();
    let parts: Vec<&Tape> = parts.iter().rev().collect();
    let (bytes, merged) = merge(&parts, Vec::new()).unwrap();
    assert_eq!(merged.window, None, "it is about the whole recording again");
    Tape::from_bytes(bytes).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn cuts_put_together_have_every_event_once(which in 0_usize..7, at in prop::collection::vec(1_u64..1000, 0..4)) {
        let (name, bytes) = tapes().swap_remove(which);
        let tape = Tape::from_bytes(bytes).unwrap();
        let merged = together(&tape, &at);
        prop_assert_eq!(merged.verify(&|_| ()), vec![], "{}", name);
        let (before, after) = (rows(&tape), rows(&merged));
        let lost: Vec<_> = before.iter().filter(|(row, n)| after.get(*row) != Some(n)).take(3).collect();
        let new: Vec<_> = after.iter().filter(|(row, n)| before.get(*row) != Some(n)).take(3).collect();
        prop_assert!(lost.is_empty() && new.is_empty(), "{name} {at:?}: lost {lost:?}, new {new:?}");
    }
}

#[test]
fn a_cut_is_smaller_sound_and_always_the_same() {
    for (name, bytes) in tapes() {
        let tape = Tape::from_bytes(bytes.clone()).unwrap();
        let (open, end) = (tape.session().window_open, tape.complete_until());
        let (from, to) = (open + (end - open) / 3, open + (end - open) / 2);
        let part = cut_of(&tape, from, to);
        assert_eq!(part, cut_of(&tape, from, to), "{name}");
        let part = Tape::from_bytes(part).unwrap();
        assert_eq!(part.verify(&|_| ()), vec![], "{name}");
        assert_eq!(part.session().cut, Some(Window { from, to }), "{name}");
        let (whole, less) = (rows(&tape), rows(&part));
        assert!(less.values().sum::<u32>() < whole.values().sum::<u32>(), "{name}");
        // no row of a cut is made up, but for CPUs that were left to the idle task before it
        let new = less.keys().filter(|row| !whole.contains_key(*row)).find(|row| !row.contains("swapper"));
        assert_eq!(new, None, "{name}");
        // a cut of a cut is no longer than that
        let again = Tape::from_bytes(cut_of(&part, 0, u64::MAX)).unwrap();
        assert_eq!(again.session().cut, Some(Window { from, to }), "{name}");
    }
}

/// Of each thread the entries of all segments in their order, each where it was first.
fn entries(tape: &Tape) -> BTreeMap<(u32, u32), Vec<Task>> {
    let mut all: BTreeMap<_, Vec<Task>> = BTreeMap::new();
    for at in 0..tape.segments().len() {
        for task in tape.segment(at).dict().unwrap().tasks {
            let of = all.entry((task.utid, task.tid)).or_default();
            if !of.contains(&task) {
                of.push(task);
            }
        }
    }
    all
}

/// Readers take the last entry of a thread as the newest.
#[test]
fn later_entries_of_a_thread_stay_behind_earlier_ones() {
    let (mut several, mut tapes_with) = (0, 0);
    for (name, bytes) in tapes() {
        let tape = Tape::from_bytes(bytes).unwrap();
        let (open, end) = (tape.session().window_open, tape.complete_until());
        let all = entries(&tape);
        let cut = |from: u64, to: u64| {
            Tape::from_bytes(cut_of(&tape, open + (end - open) * from / 100, open + (end - open) * to / 100)).unwrap()
        };
        let parts = [cut(0, 20), cut(20, 55), cut(55, 100)];
        for part in &parts {
            for (thread, entries) in entries(part) {
                let places: Vec<_> =
                    entries.iter().map(|task| all[&thread].iter().position(|other| other == task)).collect();
                assert!(places.is_sorted(), "{name}: {thread:?} {places:?}");
                several += usize::from(places.len() > 1);
            }
        }
        let [one, two, three] = &parts;
        let Ok((bytes, _)) = merge(&[three, one, two], Vec::new()) else { continue };
        for (thread, entries) in entries(&Tape::from_bytes(bytes).unwrap()) {
            let places: Vec<_> =
                entries.iter().map(|task| all[&thread].iter().position(|other| other == task)).collect();
            assert!(places.is_sorted(), "{name}, merged: {thread:?} {places:?}");
        }
        tapes_with += 1;
    }
    assert!(several > 20 && tapes_with > 3, "{several} {tapes_with}: nothing to test");
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let all = tapes();
    let tape = |at: usize| Tape::from_bytes(all[at].1.clone()).unwrap();
    let refused = |tapes: &[&Tape]| match merge(tapes, Vec::new()) {
        Err(Refused::Tape(at, why)) => (at, why),
        other => panic!("{:?}", other.map(|(_, merged)| merged)),
    };
    let (one, other) = (tape(0), tape(1));
    let (at, why) = refused(&[&one, &other]);
    assert!(at <= 1 && why.contains("another recording"), "{at} {why}");
    let (open, end) = (one.session().window_open, one.complete_until());
    let part = |from: u64, to: u64| {
        Tape::from_bytes(cut_of(&one, open + (end - open) * from / 10, open + (end - open) * to / 10)).unwrap()
    };
    let (first, third) = (part(1, 3), part(5, 7));
    assert!(refused(&[&third, &first]).1.contains("a part before it is missing"));
    let torn = all[0].1[..all[0].1.len() - 200].to_vec();
    assert!(refused(&[&Tape::from_bytes(torn).unwrap()]).1.contains("repair"));
    // what overlaps is there once
    let (second, both) = (part(2, 5), part(1, 5));
    let (bytes, _) = merge(&[&first, &second], Vec::new()).unwrap();
    let merged = Tape::from_bytes(bytes).unwrap();
    let inside = |tape: &Tape| {
        let calls = |(row, n): (&String, &u32)| row.starts_with("call").then(|| (row.clone(), *n));
        rows(tape).iter().filter_map(calls).collect::<Vec<_>>()
    };
    let (whole, joined) = (inside(&both), inside(&merged));
    assert!(whole.iter().all(|row| joined.contains(row)));
    assert!(joined.iter().all(|(_, n)| *n <= 2 && whole.len() > 10));
}

/// Whatever the bytes are, a cut of them is a tape or an error.
#[test]
fn damage_stays_visible() {
    let samples: Vec<SampleTape> = tapes().into_iter().map(|(_, bytes)| SampleTape::new(bytes).unwrap()).collect();
    let (mut cuts, mut holes) = (0, 0);
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let (_, bytes) = mutate(&mut rng, &samples);
        let Ok(tape) = Tape::from_bytes(bytes) else { continue };
        let (open, end) = (tape.session().window_open, tape.complete_until());
        let middle = open + end.saturating_sub(open) / 2;
        let choice = Choice {
            window: Window { from: middle, to: u64::MAX },
            tasks: None,
            cgroup: &|_| false,
            families: None,
            outlasts: &|_| false,
            words: "",
        };
        let Ok((bytes, repaired)) = cut(&tape, Vec::new(), &choice, &|_| ()) else { continue };
        let part = Tape::from_bytes(bytes).unwrap();
        cuts += 1;
        let lost = repaired.holes.list.iter().any(|hole| !hole.families.is_empty());
        if lost && tape.end().is_some() {
            holes += 1;
            let gaps = (0..part.segments().len()).any(|at| !part.segment(at).gaps().unwrap().is_empty());
            assert!(gaps, "seed {seed}: {:?}", repaired.holes);
        }
        let _ = merge(&[&part], Vec::new());
    }
    assert!(cuts > 20 && holes > 3, "{cuts} {holes}");
}
