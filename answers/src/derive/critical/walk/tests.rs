use std::sync::Arc;

use proptest::prelude::*;
use systape_format::model::{CPU_NONE, Task};

use super::super::behind;
use super::*;

const S: State = State::Sleeping(b'S');
const RUN: State = State::Running;
const WAIT: State = State::Waiting(Why::Woken);

/// A thread whose stretches follow each other: from, then the state, its end, and why it ended.
fn thread(from: u64, stretches: &[(State, u64, Ended)]) -> Logged {
    let mut at = from;
    let made = stretches.iter().map(|&(state, to, ended)| {
        let stretch = Stretch { from: at, to, state, cpu: 0, ended, task: 0 };
        at = to;
        stretch
    });
    Logged { stretches: made.collect(), tasks: vec![Arc::new(Task::default())] }
}

fn woken(by: Id) -> Ended {
    Ended::Woken { by, softirq: false }
}

/// Parts as (thread, from, to, kind, depth).
fn parts(path: &Path) -> Vec<(Id, u64, u64, Kind, u32)> {
    path.parts.iter().map(|part| (part.thread, part.from, part.to, part.kind, path.depth(part))).collect()
}

#[test]
fn a_sleep_is_what_the_waker_did_meanwhile() {
    let waits = thread(
        0,
        &[(RUN, 10, Ended::Changed), (S, 90, woken(1)), (WAIT, 95, Ended::Changed), (RUN, 100, Ended::GoesOn)],
    );
    let works = thread(0, &[(S, 30, Ended::Interrupt), (RUN, 100, Ended::GoesOn)]);
    let path = walk(&[waits, works], 0, (0, 100));
    let expected = [
        (0, 0, 10, Kind::Runs, 0),
        (1, 10, 30, Kind::Interrupt, 1),
        (1, 30, 90, Kind::Runs, 1),
        (0, 90, 95, Kind::Waits { cpu: 0 }, 0),
        (0, 95, 100, Kind::Runs, 0),
    ];
    assert_eq!(parts(&path), expected);
    let wait = Handover {
        thread: 0,
        from: 10,
        to: 90,
        by: 1,
        softirq: false,
        made: false,
        series: false,
        within: None,
        depth: 0,
    };
    assert_eq!(path.handovers, [wait]);
}

#[test]
fn a_chain_goes_on_in_the_waker_of_the_waker() {
    let c = thread(0, &[(S, 80, woken(1)), (RUN, 100, Ended::GoesOn)]);
    let b = thread(0, &[(S, 70, woken(2)), (RUN, 100, Ended::GoesOn)]);
    let a = thread(0, &[(RUN, 100, Ended::GoesOn)]);
    let path = walk(&[c, b, a], 0, (5, 90));
    assert_eq!(parts(&path), [(2, 5, 70, Kind::Runs, 2), (1, 70, 80, Kind::Runs, 1), (0, 80, 90, Kind::Runs, 0)]);
    assert_eq!(path.handovers[1].within, Some(0));
}

#[test]
fn waits_for_several_ends_are_one_for_the_last() {
    let waits = |between: u64| {
        let again = 300_000_000 + between;
        let run = (RUN, 400_000_000, Ended::GoesOn);
        thread(0, &[(S, 300_000_000, woken(1)), (RUN, again, Ended::Changed), (S, 320_000_000, woken(2)), run])
    };
    let holds = thread(0, &[(S, 299_900_000, Ended::Interrupt), (RUN, 300_010_000, Ended::Changed)]);
    let waits_too = thread(0, &[(S, 310_000_000, Ended::Interrupt), (RUN, 320_010_000, Ended::Changed)]);
    let of = |between, last: Logged| parts(&walk(&[waits(between), holds.clone(), last], 0, (0, 350_000_000)));
    let one = [
        (2, 0, 310_000_000, Kind::Interrupt, 1),
        (2, 310_000_000, 320_000_000, Kind::Runs, 1),
        (0, 320_000_000, 350_000_000, Kind::Runs, 0),
    ];
    assert_eq!(of(50_000, waits_too.clone()), one);
    let first = |parts: Vec<(Id, u64, u64, Kind, u32)>| (parts[0].0, parts[0].2);
    assert_eq!(first(of(5_000_000, waits_too.clone())), (1, 299_900_000), "it did something between");
    let made = thread(299_000_000, &[(RUN, 320_010_000, Ended::Changed)]);
    assert_eq!(first(of(50_000, made)), (1, 299_900_000), "it began later");
    let lives = thread(0, &[(S, 310_000_000, Ended::Interrupt), (RUN, 400_000_000, Ended::GoesOn)]);
    assert_eq!(first(of(50_000, lives)), (1, 299_900_000), "it told something and went on");
}

#[test]
fn who_ends_because_the_waiter_woke_it_is_a_wait_of_its_own() {
    // a shell waits for one child, kills another one, and waits for that: `sleep 3 & sleep 0.3; kill $!; wait`
    let shell = |by| {
        let between = (RUN, 300_100_000, Ended::Changed);
        let run = (RUN, 400_000_000, Ended::GoesOn);
        thread(
            0,
            &[(RUN, 1_000_000, Ended::Changed), (S, 300_000_000, woken(1)), between, (S, 300_200_000, woken(by)), run],
        )
    };
    let short = thread(0, &[(S, 299_900_000, Ended::Interrupt), (RUN, 300_010_000, Ended::Changed)]);
    let killed = |by| thread(0, &[(S, 300_050_000, woken(by)), (RUN, 300_210_000, Ended::Changed)]);
    let expected = |last| {
        vec![
            (0, 0, 1_000_000, Kind::Runs, 0),
            (1, 1_000_000, 299_900_000, Kind::Interrupt, 1),
            (1, 299_900_000, 300_000_000, Kind::Runs, 1),
            (0, 300_000_000, 300_100_000, Kind::Runs, 0),
            (last, 300_100_000, 300_200_000, Kind::Runs, 1),
            (0, 300_200_000, 350_000_000, Kind::Runs, 0),
        ]
    };
    let path = walk(&[shell(2), short.clone(), killed(0)], 0, (0, 350_000_000));
    assert_eq!(parts(&path), expected(2));
    assert!(path.handovers.iter().all(|wait| !wait.series), "{:?}", path.handovers);
    // the same by another one that the shell woke
    let between = thread(0, &[(S, 300_020_000, woken(0)), (RUN, 301_000_000, Ended::GoesOn)]);
    let path = walk(&[shell(2), short, killed(3), between], 0, (0, 350_000_000));
    assert_eq!(parts(&path), expected(2));
}

#[test]
fn a_thread_that_was_made_meanwhile_continues_as_its_maker() {
    let waits = thread(0, &[(S, 90, woken(1)), (RUN, 100, Ended::GoesOn)]);
    let child = thread(40, &[(State::Waiting(Why::Made), 45, woken(2)), (RUN, 100, Ended::GoesOn)]);
    let maker = thread(0, &[(RUN, 100, Ended::GoesOn)]);
    let path = walk(&[waits, child, maker], 0, (0, 100));
    assert_eq!(parts(&path)[..2], [(2, 0, 40, Kind::Runs, 2), (1, 40, 45, Kind::Waits { cpu: 0 }, 1)]);
    assert!(path.handovers[1].made);
}

#[test]
fn what_is_not_known_is_a_part_of_its_own() {
    let ends = |ended, kind| {
        let path = walk(&[thread(20, &[(S, 60, ended), (RUN, 80, Ended::Changed)]), Logged::default()], 0, (0, 100));
        let unknown = |from, to| (0, from, to, Kind::Unknown, 0);
        assert_eq!(parts(&path), [unknown(0, 20), (0, 20, 60, kind, 0), (0, 60, 80, Kind::Runs, 0), unknown(80, 100)]);
    };
    ends(woken(1), Kind::Unseen { by: 1 });
    ends(woken(0), Kind::TooDeep { by: 0 });
    ends(Ended::Changed, Kind::Unsaid);
    // it is still asleep where the time asked for ends
    let path = walk(&[thread(0, &[(S, 60, woken(1))]), thread(0, &[(RUN, 60, Ended::GoesOn)])], 0, (0, 50));
    assert_eq!(parts(&path), [(0, 0, 50, Kind::GoesOn, 0)]);
}

#[test]
fn hand_overs_are_bounded() {
    let mut threads: Vec<Logged> =
        (1..200).map(|by| thread(0, &[(S, 500 - u64::from(by), woken(by)), (RUN, 500, Ended::GoesOn)])).collect();
    threads.push(thread(0, &[(RUN, 500, Ended::GoesOn)]));
    let path = walk(&threads, 0, (0, 500));
    assert_eq!(path.handovers.len(), DEEPEST);
    assert!(matches!(path.parts[0].kind, Kind::TooDeep { .. }));
}

#[test]
fn waits_are_parted_by_who_had_the_cpu() {
    let waits = thread(0, &[(RUN, 10, Ended::Changed), (WAIT, 50, Ended::Changed), (RUN, 60, Ended::GoesOn)]);
    let one = thread(10, &[(RUN, 25, Ended::Changed)]);
    let other = thread(30, &[(RUN, 55, Ended::Changed)]);
    let mut elsewhere = thread(0, &[(RUN, 60, Ended::GoesOn)]);
    elsewhere.stretches[0].cpu = 1;
    let threads = [waits, one, other, elsewhere];
    let path = walk(&threads, 0, (0, 60));
    let split: Vec<_> =
        behind::split(&threads, &path).into_iter().map(|(part, who)| (part.from, part.to, who)).collect();
    assert_eq!(split, [(0, 10, None), (10, 25, Some(1)), (25, 30, None), (30, 50, Some(2)), (50, 60, None)]);
}

/// Some threads whose stretches are anything, with holes.
fn threads() -> impl Strategy<Value = Vec<Logged>> {
    let state = prop_oneof![Just(RUN), Just(WAIT), Just(S), Just(State::Unknown), Just(State::Waiting(Why::Made))];
    let ended = prop_oneof![
        4 => (0_u32..6, any::<bool>()).prop_map(|(by, softirq)| Ended::Woken { by, softirq }),
        1 => Just(Ended::Interrupt),
        1 => Just(Ended::Changed),
        1 => Just(Ended::GoesOn),
    ];
    let stretch = (0_u64..3, 1_u64..20, state, prop_oneof![Just(0_u32), Just(1), Just(CPU_NONE)], ended);
    let one = prop::collection::vec(stretch, 0..12).prop_map(|stretches| {
        let mut at = 0;
        let made = stretches.into_iter().map(|(hole, len, state, cpu, ended)| {
            let from = at + hole;
            at = from + len;
            Stretch { from, to: at, state, cpu, ended, task: 0 }
        });
        Logged { stretches: made.collect(), tasks: vec![Arc::new(Task::default())] }
    });
    prop::collection::vec(one, 1..6)
}

fn tiles(parts: impl Iterator<Item = Part>, (from, to): (u64, u64)) -> bool {
    let mut at = from;
    for part in parts {
        if part.from != at || part.to <= part.from {
            return false;
        }
        at = part.to;
    }
    at == to
}

proptest! {
    #[test]
    fn parts_tile_the_time(threads in threads(), id in 0_u32..6, from in 0_u64..50, len in 1_u64..200) {
        let span = (from, from + len);
        let path = walk(&threads, id, span);
        prop_assert!(tiles(path.parts.iter().copied(), span), "{path:?}");
        let split = behind::split(&threads, &path);
        prop_assert!(tiles(split.iter().map(|(part, _)| *part), span), "{split:?}");
        for part in &path.parts {
            let mut at = part.handover;
            while let Some(wait) = at {
                let wait = &path.handovers[wait as usize];
                prop_assert!(wait.from <= part.from && part.to <= wait.to);
                at = wait.within;
            }
        }
    }
}
