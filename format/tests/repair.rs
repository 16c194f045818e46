//! A repaired tape checks as good, has all that was whole, and never looks more complete than the damaged one.

mod common;

use common::{GROUPS, Rng, Truth, block_spans, encode, sample, tape, window};
use systape_format::exercise::{read_checkpoints, read_segments, read_symbols};
use systape_format::model::GapCause;
use systape_format::redact::{Level, Redactor};
use systape_format::repair::{Holes, Lost, holes, redact, repair};
use systape_format::{BlockKind, Encoder, Error, SegmentBuilder, Tape, Writer};

const COPY: [u8; 16] = *b"the repaired one";

/// Repairs and checks everything that holds for any damage; gives the copy and what it lacks.
fn repaired(bytes: &[u8], what: &str) -> (Tape, Holes) {
    let damaged = Tape::from_bytes(bytes.to_vec()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let (copy, done) = repair(&damaged, Vec::new(), COPY, &|_| ()).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(done.holes, holes(&damaged, &|_| ()), "{what}");
    let copy = Tape::from_bytes(copy).unwrap();
    assert_eq!(copy.verify(&|_| ()), [], "{what}");
    assert_eq!(copy.findings(), [], "{what}");
    assert!(copy.has_index() && copy.end_mark().is_some() && copy.tape_id() == COPY, "{what}");
    assert_eq!(copy.end().is_some(), damaged.end().is_some(), "{what}");
    assert_eq!(copy.complete_until(), damaged.complete_until(), "{what}");
    assert_eq!(copy.session(), damaged.session(), "{what}");
    assert_eq!(copy.session_is_whole(), damaged.session_is_whole(), "{what}");
    same_content(&damaged, &copy, what);
    (copy, done.holes)
}

/// What could be read before is there, in order, and nothing else but gaps.
fn same_content(damaged: &Tape, copy: &Tape, what: &str) {
    fn calls(tape: &Tape, timed: bool) -> Vec<String> {
        let rows = |s: systape_format::exercise::Contents| {
            let dict = s.dict.ok()?;
            let (core, time) = (s.core?.ok()?, s.time.and_then(Result::ok));
            if timed && time.is_none() {
                return None;
            }
            let args = s.args.and_then(Result::ok);
            let fds = s.fds.and_then(Result::ok);
            let captured = s.captured.and_then(Result::ok);
            // An empty list, a list that was not recorded and one that is lost say the same: not known.
            Some(format!(
                "{dict:?} {core:?} {time:?} {:?} {:?} {:?}",
                args.unwrap_or_default(),
                fds.unwrap_or_default(),
                captured.unwrap_or_default()
            ))
        };
        read_segments(tape).into_iter().filter_map(rows).filter(|text| !text.contains("call: []")).collect()
    }
    assert_eq!(calls(damaged, false), calls(copy, false), "{what}: calls");
    assert_eq!(calls(damaged, true), calls(copy, true), "{what}: calls with times");
    macro_rules! events {
        ($($group:ident)*) => {$(
            let list = |tape: &Tape| -> Vec<String> {
                let all = read_segments(tape).into_iter().filter_map(|s| s.$group?.ok());
                all.filter(|list| !list.is_empty()).map(|list| format!("{list:?}")).collect()
            };
            assert_eq!(list(damaged), list(copy), "{what}: {}", stringify!($group));
        )*};
    }
    events!(processes switches wakeups blocks signals nets urings samples sleepers ledger tables);
    let gaps = |tape: &Tape| -> Vec<String> {
        let all = read_segments(tape).into_iter().filter_map(|s| s.gaps.ok()).flatten();
        all.filter(|g| !matches!(g.cause, GapCause::Damaged | GapCause::DetailDamaged))
            .map(|g| format!("{g:?}"))
            .collect()
    };
    assert_eq!(gaps(damaged), gaps(copy), "{what}: gaps");
    let whole = |tape: &Tape| format!("{:?}", read_checkpoints(tape).into_iter().flatten().collect::<Vec<_>>());
    assert_eq!(whole(damaged), whole(copy), "{what}: checkpoints");
    let names = |tape: &Tape| read_symbols(tape).into_iter().flatten().collect::<Vec<_>>();
    assert_eq!(names(damaged), names(copy), "{what}: names");
    // Calls that a report would miss are missed by a gap, or by the same missing times.
    let lacks = |tape: &Tape| {
        !tape.findings().is_empty()
            || tape.end().is_none()
            || read_segments(tape).iter().any(|s| {
                let lost = |g: &systape_format::Gap| g.cause == GapCause::Damaged;
                let core = s.core.as_ref().is_none_or(Result::is_err);
                core || s.gaps.as_ref().map_or(true, |gaps| gaps.iter().any(lost))
            })
    };
    assert!(!lacks(damaged) || lacks(copy), "{what}: the copy looks complete");
}

#[test]
fn a_whole_tape_is_copied_as_it_is() {
    let whole = sample();
    let (copy, holes) = repaired(&whole, "whole");
    assert_eq!(holes, Holes::default());
    assert_eq!(Truth::of(&whole).check(&copy, "whole"), 3 * GROUPS);
    let end = copy.end().unwrap();
    assert!(end.reason.starts_with("command exited; repaired from tape 74617065"), "{}", end.reason);
    assert_eq!(end.events, common::end(0).events, "nothing was lost: the recorder's counts hold");
}

#[test]
fn cut_anywhere() {
    let whole = sample();
    let spans = block_spans(&whole);
    let mut rng = Rng(1);
    let mut cuts: Vec<usize> = spans.iter().flat_map(|&(from, to)| [from, to]).filter(|cut| *cut >= 128).collect();
    cuts.extend((0..100).map(|_| 128 + rng.below(whole.len() - 128)));
    for cut in cuts {
        let (copy, holes) = repaired(&whole[..cut], &format!("cut at {cut}"));
        if cut < spans[spans.len() - 1].1 {
            assert!(copy.end().is_none() && holes.list.iter().any(|h| h.lost == Lost::End), "cut at {cut}");
        }
        let mut zeros = whole[..cut].to_vec();
        zeros.resize(cut + 5000, 0);
        repaired(&zeros, &format!("cut at {cut}, then zeros"));
    }
}

#[test]
fn every_byte_flipped() {
    let whole = encode(&[window(0), window(1)]);
    let mut rng = Rng(11);
    for at in (0..whole.len()).step_by(3) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << rng.below(8);
        repaired(&bytes, &format!("byte {at}"));
    }
}

#[test]
fn each_block_lost_doubled_or_damaged() {
    let whole = sample();
    let spans = block_spans(&whole);
    let infos = Tape::from_bytes(whole.clone()).unwrap().blocks();
    let start = |i: usize| spans.get(i).map_or(whole.len(), |s| s.0);
    for i in 0..spans.len() {
        let kind = infos[i].kind;
        let lost = [&whole[..start(i)], &whole[start(i + 1)..]].concat();
        repaired(&lost, &format!("block {i} ({}) lost", kind.name()));
        let doubled = [&whole[..start(i + 1)], &whole[start(i)..]].concat();
        repaired(&doubled, &format!("block {i} ({}) doubled", kind.name()));
        let mut bytes = whole.clone();
        bytes[start(i) + 130] ^= 1;
        let (copy, holes) = repaired(&bytes, &format!("block {i} ({}) damaged", kind.name()));
        let Some(number) = infos[i].segment else { continue };
        let hole = &holes.list[0];
        assert_eq!(hole.segments, Some((number, number)));
        assert!(matches!(&hole.lost, Lost::Groups(kinds) if kinds.contains(&kind)), "{hole:?}");
        assert_eq!(holes.count(), 1, "{holes:?}");
        // Every segment stands where it stood, with its dict or an empty one.
        let others = read_segments(&copy).iter().filter(|s| s.dict.is_ok()).count();
        assert_eq!(others, 3, "block {i}");
    }
}

#[test]
fn lost_segments_become_one_gap_between_their_neighbours() {
    let whole = encode(&[window(0), window(1), window(2), window(3)]);
    let tape = Tape::from_bytes(whole.clone()).unwrap();
    let of = |number: u32| tape.blocks().iter().find(|b| b.segment == Some(number)).unwrap().offset as usize;
    let bytes = [&whole[..of(1)], &whole[of(3)..]].concat();
    let (copy, holes) = repaired(&bytes, "segments 1 and 2 lost");
    assert_eq!((&holes.list[0].lost, holes.list[0].segments), (&Lost::Segments, Some((1, 2))));
    assert_eq!(holes.list[0].span, Some((2000, 4000)));
    assert_eq!(copy.segments().len(), 4, "0, the gap, 3, and the gap of an unknown place");
    let gap = copy.segment(1).gaps().unwrap()[0];
    assert_eq!((gap.cause, gap.count, gap.first, gap.last), (GapCause::Damaged, 0, 2000, 4000));
}

#[test]
fn lost_times_leave_calls_that_are_counted() {
    let mut bytes = encode(&[window(0)]);
    let blocks = Tape::from_bytes(bytes.clone()).unwrap().blocks();
    let at = blocks.iter().find(|b| b.kind == BlockKind::SyscallsTime).unwrap().offset as usize;
    bytes[at + 130] ^= 1;
    let (copy, holes) = repaired(&bytes, "time");
    assert_eq!(holes.list[0].families, [], "sums are exact without times");
    let segment = copy.segment(0);
    let dict = segment.dict().unwrap();
    let core = segment.core(&dict).unwrap();
    assert!(!core.dur.is_empty());
    assert!(matches!(segment.time(&dict, &core), Err(Error::Missing { .. })), "and a listing meets a hole");
}

#[test]
fn two_tapes_and_a_session_that_is_lost() {
    let (a, b) = (sample(), tape(*b"another tape 123", &[window(5)]));
    let (copy, _) = repaired(&[&a[..], &b].concat(), "a + b");
    assert!(copy.end().is_some());
    let cut = block_spans(&a)[20].1;
    repaired(&[&a[..cut], &b].concat(), "cut a + b");
    repaired(&[&a[..cut - 10], &b].concat(), "torn a + b");
    let mut bytes = a.clone();
    bytes[130] ^= 1;
    let (copy, holes) = repaired(&bytes, "no session");
    assert_eq!(holes.list[0].lost, Lost::Session);
    assert_eq!(copy.session().window_open, 1000, "from the first checkpoint");
    // Without its header too.
    repaired(&a[block_spans(&a)[1].0..], "begins with a checkpoint");
}

#[test]
fn repaired_twice_is_the_same() {
    let whole = sample();
    let mut bytes = whole[..block_spans(&whole)[25].1].to_vec();
    let at = block_spans(&whole)[4].0 + 130;
    bytes[at] ^= 4;
    let damaged = Tape::from_bytes(bytes).unwrap();
    let once = repair(&damaged, Vec::new(), COPY, &|_| ()).unwrap().0;
    let (twice, holes) = repaired(&once, "again");
    assert_eq!(holes.list.iter().map(|h| &h.lost).collect::<Vec<_>>(), [&Lost::End], "the rest is in gaps");
    let once = Tape::from_bytes(once).unwrap();
    let gaps = |tape: &Tape| read_segments(tape).into_iter().flat_map(|s| s.gaps.unwrap()).collect::<Vec<_>>();
    assert_eq!(gaps(&once), gaps(&twice));
    assert!(twice.end_mark().unwrap().reason.len() < 400);
}

#[test]
fn hostile_bytes_never_panic() {
    let whole = sample();
    let mut rng = Rng(123);
    for _ in 0..200 {
        let mut bytes = whole.clone();
        for _ in 0..1 + rng.below(20) {
            let at = rng.below(bytes.len());
            bytes[at] = rng.next() as u8;
        }
        bytes.truncate(1 + rng.below(bytes.len()));
        if let Ok(tape) = Tape::from_bytes(bytes) {
            repair(&tape, Vec::new(), COPY, &|_| ()).unwrap();
        }
    }
}

#[test]
fn cgroups_that_appeared_are_in_the_session_also_of_copies_and_of_a_tape_that_was_cut() {
    let mut encoder = Encoder::new(3);
    let mut writer = Writer::create(Vec::new(), COPY, &common::session()).unwrap();
    for i in 0..3 {
        let mut b = SegmentBuilder::new(1000 * i);
        b.push_cgroup(70 + i, format!("/made/{i}").as_bytes());
        // told twice, as by a walk at the start and the event
        b.push_cgroup(1, b"/other");
        b.push_container(common::container(&format!("{i}a")));
        writer.segment(encoder.segment(b.finish(1000 * i + 500)).unwrap()).unwrap();
    }
    let whole = writer.finish(&common::end(3000)).unwrap();
    let paths = |tape: &Tape| [1, 70, 71, 72, 73].map(|id| tape.session().cgroup_path(id).map(<[u8]>::to_vec));
    let made = |n: u64| Some(format!("/made/{n}").into_bytes());
    let all = [Some(b"/".to_vec()), made(0), made(1), made(2), None];
    let (copy, _) = repaired(&whole, "whole");
    assert_eq!(paths(&Tape::from_bytes(whole.clone()).unwrap()), all);
    assert_eq!(paths(&copy), all);
    let ids = ["4d", "0a", "1a", "2a"].map(common::container);
    assert_eq!(copy.session().containers, ids);
    // without index and end
    let spans = block_spans(&whole);
    let cut = &whole[..spans[spans.len() - 2].0];
    let (copy, _) = repaired(cut, "cut");
    assert_eq!(paths(&copy), all);
    let less = Redactor::new(Level::Paths, |_, _, _| None);
    let (less, _) = redact(&copy, Vec::new(), *b"the redacted one", &less, &|_| ()).unwrap();
    assert!(!less.windows(5).any(|part| part == b"/made" || part == b"nginx"));
    let [_, first, ..] = paths(&Tape::from_bytes(less).unwrap());
    assert_eq!(first, Some(b"<redacted 70>".to_vec()));
}
