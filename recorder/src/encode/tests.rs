//! Tests of what is known without events.

use systape_bpf::wire;
use systape_bpf::wire::Ident;

use super::stacks::tests::{encoder, recorded};
use super::*;
use crate::fds::Name;
use crate::order::Batch;

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
    encoder.begin(Start { snaps, processes: Vec::new(), sockets: Vec::new(), unread: Vec::new(), done: 50 });
    let Some(Piece::Checkpoint(first)) = encoder.rows.pieces.pop() else { panic!("a checkpoint") };
    let tids = |tasks: &[systape_format::model::Task]| tasks.iter().map(|t| t.tid).collect::<Vec<_>>();
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
