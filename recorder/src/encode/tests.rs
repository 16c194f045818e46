//! Tests of what is known without events.

use systape_abi::descriptors::SocketUse;
use systape_bpf::wire;
use systape_bpf::wire::Ident;

use super::stacks::tests::{encoder, recorded};
use super::*;
use crate::descriptors::names::{FileKey, Name};
use crate::load::FirstDescriptors;
use crate::rings::order::Batch;

#[test]
fn who_ended_before_the_start_is_not_in_the_first_checkpoint() {
    let mut encoder = recorded(true);
    let snap = |tid: u32, exiting| {
        let id = Ident { tid, pid: 5, start: u64::from(tid), leader_start: 5 };
        let hdr = wire::Header { flags: wire::TASK_IS_TARGET, ..wire::Header::default() };
        let task = wire::Task { hdr, id, ..wire::Task::default() };
        Snap { task, exiting, state: if exiting == 0 { b'S' } else { b'Z' }, ..Snap::default() }
    };
    // 5, the first thread of its process, and 6 ended before; of 7 the exit came after the start; 8 lives
    let mut exit = [0; 48];
    exit[0] = 6;
    exit[8..16].copy_from_slice(&7u64.to_ne_bytes());
    exit[24..28].copy_from_slice(&7u32.to_ne_bytes());
    exit[32..40].copy_from_slice(&40u64.to_ne_bytes());
    let mut batch = Batch::default();
    batch.push(&exit);
    encoder.add(batch);
    let snaps = vec![snap(5, 1), snap(6, 1), snap(7, 1), snap(8, 0)];
    encoder.begin(Start {
        snaps,
        processes: Vec::new(),
        opens: FirstDescriptors::default(),
        memory: Vec::new(),
        limits: Limits::default(),
        unread: Vec::new(),
        done: 50,
    });
    let Some(Piece::Checkpoint(first)) = encoder.rows.pieces.pop() else { panic!("a checkpoint") };
    let tids = |tasks: &[Task]| tasks.iter().map(|t| t.tid).collect::<Vec<_>>();
    assert_eq!(tids(&first.tasks), [7, 8]);
    assert_eq!(first.run.len(), 2);
}

#[test]
fn what_is_read_is_read_once_for_a_process_and_again_after_more_was_lost() {
    let mut encoder = encoder();
    let pid = std::process::id();
    let thread = |tid, start| Ident { tid, pid, start, leader_start: 1 };
    let [first, second] = [thread(pid, 1), thread(pid + 1, 2)].map(|id| encoder.world.tasks.find_or_add(&id));
    let stale = |encoder: &Assembler| encoder.world.rereads.iter().map(|r| r.stale).collect::<Vec<_>>();
    let apply = |encoder: &mut Assembler| {
        while encoder.world.rereads.iter().any(|r| r.process.as_ref().is_none_or(|process| process.argv.is_none())) {
            encoder.world.take_lookups();
            std::thread::yield_now();
        }
        encoder.world.apply_rereads(u64::MAX);
    };

    encoder.lost_state(pid, 10, 20);
    encoder.world.apply_losses(9);
    assert_eq!(stale(&encoder), [false; 0], "events have not come to it");
    encoder.world.apply_losses(10);
    assert_eq!(stale(&encoder), [false], "both threads have one table");
    // a thread that appears wants it read, which it is
    encoder.world.reread(second);
    assert_eq!(stale(&encoder), [false]);
    encoder.lost_state(pid, 30, 40);
    encoder.world.apply_losses(30);
    assert_eq!(stale(&encoder), [true]);
    encoder.world.apply_rereads(u64::MAX);
    assert_eq!(stale(&encoder), [true], "nobody waits for it");
    apply(&mut encoder);
    assert_eq!(stale(&encoder), [false], "read anew");
    assert!(!encoder.world.tasks.files(first).is_complete());

    // a directory that it went to meanwhile is known better than what was read
    encoder.world.tasks.set_cwd(first, Some(Name::new(b"/there".to_vec())));
    encoder.world.moved(first);
    apply(&mut encoder);
    assert_eq!(stale(&encoder), [false; 0]);
    assert!(encoder.world.tasks.files(first).is_complete());
    assert_eq!(encoder.world.tasks.get(second).cwd.as_ref().map(|cwd| cwd.bytes.clone()), Some(b"/there".to_vec()));
}

/// A TCP socket bound to a port of 10.0.0.1.
fn bound(inode: u64, sport: u16) -> wire::Socket {
    let mut s = wire::Socket { sport, ..crate::descriptors::sockets::tests::facts("TCP", 2, inode) };
    s.saddr[..4].copy_from_slice(&[10, 0, 0, 1]);
    s
}

fn name_at(encoder: &Assembler, task: crate::tasks::TaskId, fd: i32, ts: u64) -> Option<String> {
    let file = encoder.world.tasks.files(task).at(ts, fd)?;
    Some(file.at(ts, |name| String::from_utf8(name.bytes.clone()).unwrap()))
}

#[test]
fn a_lost_record_takes_the_names_of_sockets() {
    let mut encoder = encoder();
    let id = Ident { tid: 5, pid: 5, start: 1, leader_start: 1 };
    let (task, other) = (encoder.world.tasks.find_or_add(&id), Ident { tid: 6, pid: 6, start: 1, leader_start: 1 });
    let other = encoder.world.tasks.find_or_add(&other);
    let socket = encoder.world.socket(&bound(17, 80), 5, Some(task), SocketUse::Names);
    encoder.world.tasks.files_mut(task).set(5, 3, std::rc::Rc::clone(&socket), false);
    // shared with another process
    encoder.world.tasks.files_mut(other).set(6, 9, socket, false);
    encoder.lost_state(5, 10, 20);
    encoder.world.apply_losses(10);
    assert_eq!(name_at(&encoder, task, 3, 9).unwrap(), "TCP:[10.0.0.1:80]");
    assert_eq!(name_at(&encoder, task, 3, 10), None);
    assert_eq!(name_at(&encoder, other, 9, 9).unwrap(), "TCP:[10.0.0.1:80]");
    assert_eq!(name_at(&encoder, other, 9, 10).unwrap(), "socket:[17]", "it may have another address by now");
}

#[test]
fn names_read_at_the_start_are_not_those_of_later_events() {
    let mut encoder = recorded(true);
    let id = Ident { tid: 5, pid: 5, start: 1, leader_start: 1 };
    let task = wire::Task { id, here_pid: 5, ..wire::Task::default() };
    let snap = Snap { task, matched: 1, ..Snap::default() };
    let mut process = snapshot::ProcessReading::unknown(5, 50);
    process.fds = Some(vec![(3, b"socket:[17]".to_vec(), false), (4, b"socket:[18]".to_vec(), false)]);
    // a bind of 17 waits that ended before the sockets were read
    let mut call = wire::Syscall { id, end: 40, nr: 49, abi: 1, state: 1, captures: 1, ..wire::Syscall::default() };
    call.hdr.kind = 1;
    call.args[0] = 3;
    let len = 1 + std::mem::offset_of!(wire::Socket, path);
    call.cap[0] = wire::Capture { arg: wire::CAPTURE_NAME0, status: 1, len: len as u16, full: 0 };
    let raw = |bytes: *const u8, len| {
        // SAFETY: both are plain records of integers of at least that length, read as their bytes.
        unsafe { std::slice::from_raw_parts(bytes, len) }.to_vec()
    };
    let facts = bound(17, 80);
    let name = raw((&raw const facts).cast(), len - 1);
    let mut batch = Batch::default();
    batch.push(&[raw((&raw const call).cast(), size_of::<wire::Syscall>()), vec![b's'], name].concat());
    encoder.add(batch);
    let sockets = vec![bound(17, 80), bound(18, 81)];
    encoder.begin(Start {
        snaps: vec![snap],
        processes: vec![process],
        opens: FirstDescriptors { sockets, ..FirstDescriptors::default() },
        memory: Vec::new(),
        limits: Limits::default(),
        unread: Vec::new(),
        done: 50,
    });
    let task = encoder.world.tasks.find(&id).unwrap();
    let names =
        |encoder: &Assembler| [name_at(encoder, task, 3, 39), name_at(encoder, task, 4, 39)].map(Option::unwrap);
    assert_eq!(names(&encoder), ["socket:[17]", "TCP:[10.0.0.1:81]"]);
    encoder.advance(u64::MAX);
    assert_eq!(names(&encoder), ["socket:[17]", "TCP:[10.0.0.1:81]"]);
    assert_eq!(name_at(&encoder, task, 3, 40).unwrap(), "TCP:[10.0.0.1:80]");
}

/// The bytes of a call without captures.
fn call_bytes(tid: u32, nr: u32, (start, end): (u64, u64)) -> Vec<u8> {
    use std::mem::offset_of;
    let mut bytes = vec![0; wire::PLAIN_SYSCALL];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &1_u16.to_ne_bytes());
    put(offset_of!(wire::Syscall, id) + offset_of!(Ident, tid), &tid.to_ne_bytes());
    put(offset_of!(wire::Syscall, id) + offset_of!(Ident, start), &u64::from(tid).to_ne_bytes());
    put(offset_of!(wire::Syscall, start), &start.to_ne_bytes());
    put(offset_of!(wire::Syscall, end), &end.to_ne_bytes());
    put(offset_of!(wire::Syscall, nr), &nr.to_ne_bytes());
    put(offset_of!(wire::Syscall, state), &[systape_format::model::CallState::Complete as u8]);
    bytes
}

#[test]
fn a_tape_that_ends_has_the_calls_in_flight_and_the_stream_goes_on() {
    let mut encoder = recorded(true);
    let mut batch = Batch::default();
    // 1 returned before the end of the tape, 2 while the tasks were looked at, 3 began after the end
    for (tid, nr, span) in [(1, 0, (10, 90)), (2, 1, (20, 105)), (3, 2, (101, 104))] {
        batch.push(&call_bytes(tid, nr, span));
    }
    encoder.add(batch);
    encoder.advance(100);
    encoder.close_segment(100);
    let pieces = encoder.take_pieces();
    assert!(matches!(&pieces[..], [Piece::Segment(segment)] if segment.rows() == 1));
    let snap = |tid: u32, nr: u32, call_start| {
        let id = Ident { tid, start: u64::from(tid), ..Ident::default() };
        let task = wire::Task { id, ts: 103, ..wire::Task::default() };
        Snap { task, nr, call_start, matched: 1, state: b'S', ..Snap::default() }
    };
    // 2 is in its next call, 4 in one from before, 5 in a later one
    let snaps = [snap(2, 7, 106), snap(4, 8, 30), snap(5, 9, 102)];
    let row = TriggerRow { ts: 95, what: "slow".into(), events: 1, ..TriggerRow::default() };
    let totals = encoder.totals().sum();
    let tail = encoder.tail((100, 110), &snaps, std::slice::from_ref(&row));
    let mut numbers: Vec<u32> = tail.calls().iter().map(|call| call.nr).collect();
    numbers.sort_unstable();
    assert_eq!((tail.rows(), numbers), (2, vec![1, 8]));
    let table = tail.tables().iter().find(|table| table.def.name == "record:trigger").expect("the trigger's row");
    assert_eq!((table.ts.as_slice(), table.column("events")), (&[95][..], Some(&[1][..])));
    assert_eq!(encoder.totals().sum(), totals, "they are no events of the stream");
    // which has both calls that returned later
    encoder.advance(u64::MAX);
    encoder.close_segment(200);
    let pieces = encoder.take_pieces();
    assert!(matches!(&pieces[..], [Piece::Segment(segment)] if segment.rows() == 2), "{pieces:?}");
    let alone = encoder.trigger_rows(200, &[row]);
    assert_eq!((alone.rows(), alone.tables().len()), (0, 1));
}

#[test]
fn a_tape_that_begins_later_has_the_names_of_sockets() {
    let mut encoder = recorded(true);
    encoder.names.keep();
    let task = encoder.world.tasks.find_or_add(&Ident { tid: 7, pid: 7, start: 1, leader_start: 1 });
    let file = encoder.world.socket(&bound(17, 80), 5, Some(task), SocketUse::Makes);
    encoder.name_sockets();
    encoder.close_segment(10);
    encoder.take_pieces();
    let names = |encoder: &mut Assembler| {
        let segment = encoder.prologue()?;
        let table = segment.tables().first()?.clone();
        Some((table.ts.clone(), table.column("inode")?.to_vec()))
    };
    assert_eq!(names(&mut encoder), Some((vec![10], vec![17])));
    // nothing happened until the chunk begins: the next segment begins at 10, and no other may reach beyond that
    encoder.close_segment(50);
    assert_eq!((names(&mut encoder), encoder.segment_start()), (Some((vec![10], vec![17])), 10));
    drop(file);
    assert_eq!(names(&mut encoder), None, "nobody has it open any more");
}

#[test]
fn a_tape_that_begins_later_says_which_files_are_open() {
    let mut encoder = recorded(true);
    let hdr = wire::Header { flags: wire::TASK_IS_TARGET | wire::TASK_SEEN, ..wire::Header::default() };
    let id = Ident { tid: 9, pid: 9, start: 9, leader_start: 9 };
    encoder.take(Record::Task(wire::Task { hdr, id, ts: 5, ..wire::Task::default() }));
    let task = encoder.world.tasks.find(&id).unwrap();
    let inode = wire::Inode { inode: 77, dev: 8, generation: 3, ..wire::Inode::default() };
    let file = Name::of_file(b"/a".to_vec(), Some(FileKey { since: 0, inode }));
    encoder.world.tasks.files_mut(task).set(5, 3, file, false);
    encoder.close_segment(10);
    encoder.take_pieces();
    let tables = |encoder: &mut Assembler| encoder.prologue().map(|segment| segment.tables().to_vec());
    for _ in 0..2 {
        let tables = tables(&mut encoder).expect("a segment");
        let values = ["ago", "inode", "device", "generation"].map(|name| tables[0].column(name).map(<[u64]>::to_vec));
        assert_eq!(values, [1, 77, 8, 3].map(|value| Some(vec![value])));
    }
    encoder.world.tasks.files_mut(task).close(20, 3);
    assert_eq!(tables(&mut encoder).map(|tables| tables.len()), None);
}

#[test]
fn a_thread_that_no_event_made_is_on_the_tape_all_the_same() {
    let mut encoder = recorded(true);
    let hdr = wire::Header { flags: wire::TASK_IS_TARGET | wire::TASK_SEEN, ..wire::Header::default() };
    let id = Ident { tid: 9, pid: 5, start: 9, leader_start: 5 };
    encoder.take(Record::Task(wire::Task { hdr, id, ts: 20, ..wire::Task::default() }));
    let task = encoder.world.tasks.find(&id).unwrap();
    assert_eq!(encoder.world.tasks.get(task).interned.0, encoder.rows.segment);
}
