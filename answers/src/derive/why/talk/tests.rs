//! Made-up talks as plain values.

use super::*;

const MS: u64 = 1_000_000;
const SOCKET: &[u8] = b"TCP:[10.0.0.1:40000->10.0.0.2:80]";

const CONNECT: u32 = 42;
const POLL: u32 = 7;
const READ: u32 = 0;

fn said(nr: u32, act: Act, from: u64, to: u64) -> Said {
    let who = Talker { key: 1, pid: 7, comm: Arc::from(&b"app"[..]) };
    Said { who, thread: 70, call: Call { abi: 1, nr }, act, span: (from * MS, to * MS), ns: (to - from) * MS }
}

fn sends(at: u64) -> Said {
    said(1, Act::Sends(SOCKET.into()), at, at)
}

fn takes(from: u64, to: u64) -> Said {
    said(READ, Act::Takes(SOCKET.into()), from, to)
}

fn polls(from: u64, to: u64) -> Said {
    said(POLL, Act::Waits(false), from, to)
}

/// The call, what for, how many and ns of each sum.
fn sums(all: &[Said]) -> Vec<(u32, For, u64, u64)> {
    let mut talks = Talks::default();
    all.iter().for_each(|said| talks.add(said));
    talks.finish(1000 * MS);
    let mut found: Vec<_> =
        talks.sums.into_iter().map(|((_, call, what), sum)| (call.nr, what, sum.count, sum.ns / MS)).collect();
    found.sort_unstable();
    found
}

#[test]
fn a_wait_after_a_question_is_for_its_answer() {
    let answer = For::Answer(SOCKET.into());
    let found = sums(&[sends(0), polls(0, 50), takes(50, 50), sends(51), polls(51, 60), takes(60, 60)]);
    assert_eq!(found, [(POLL, answer.clone(), 2, 59)]);
    assert_eq!(sums(&[sends(0), takes(0, 30)]), [(READ, answer.clone(), 1, 30)]);
    // a wait that began before the question counts from there on
    assert_eq!(sums(&[sends(20), polls(0, 50), takes(50, 50)]), [(POLL, answer, 1, 30)]);
}

#[test]
fn servers_and_clients_that_asked_nothing_are_at_rest() {
    // the first to speak is the other end
    assert_eq!(sums(&[polls(0, 900), takes(900, 900), sends(901), polls(901, 2000), takes(2000, 2000)]), []);
    // more than the answer came
    assert_eq!(sums(&[sends(0), takes(0, 0), polls(1, 900), takes(900, 900)]), []);
    assert_eq!(sums(&[polls(0, 900)]), []);
}

#[test]
fn a_question_that_is_asked_again_waited_in_vain() {
    let in_vain = said(POLL, Act::Waits(true), 0, 5000);
    let found = sums(&[sends(0), in_vain, sends(5000), polls(5000, 5010), takes(5010, 5010)]);
    assert_eq!(found, [(POLL, For::Answer(SOCKET.into()), 2, 5010)]);
}

#[test]
fn attempts_to_connect_with_sleeps_between_them() {
    let to: Arc<[u8]> = Arc::from(&b"10.0.0.2:80"[..]);
    let connects = |at, how| said(CONNECT, Act::Connects(Arc::clone(&to), how), at, at);
    let sleeps = |from, to| said(230, Act::Sleeps, from, to);
    let all = [
        connects(0, Connected::No(111)),
        sleeps(1, 100),
        connects(100, Connected::No(111)),
        said(23, Act::Waits(true), 101, 200),
        connects(200, Connected::Yes),
        sleeps(200, 900),
    ];
    assert_eq!(sums(&all), [(CONNECT, For::Retry(Arc::clone(&to), 111), 2, 200)]);
    let other = said(CONNECT, Act::Connects(Arc::from(&b"10.0.0.3:80"[..]), Connected::Yes), 100, 100);
    assert_eq!(sums(&[connects(0, Connected::No(111)), sleeps(1, 100), other]), [], "another address");
    let late = [connects(0, Connected::No(111)), sleeps(1, 3), connects(100, Connected::Yes)];
    assert_eq!(sums(&late), [], "it did something else");
    let connection = For::Connection(Arc::clone(&to));
    assert_eq!(sums(&[connects(0, Connected::Later), polls(0, 70)]), [(POLL, connection, 1, 70)]);
}

#[test]
fn attempts_on_a_file_with_sleeps_between_them() {
    let lock: Arc<[u8]> = Arc::from(&b"/run/job.lock"[..]);
    let fails = |at| said(2, Act::Fails(Arc::clone(&lock), 17), at, at);
    let sleeps = |from, to| said(230, Act::Sleeps, from, to);
    let all = [fails(0), sleeps(1, 100), fails(100), sleeps(101, 200), fails(200)];
    assert_eq!(sums(&all), [(2, For::Retry(Arc::clone(&lock), 17), 2, 200)]);
    let other = said(3, Act::Fails(Arc::clone(&lock), 17), 100, 100);
    assert_eq!(sums(&[fails(0), sleeps(1, 100), other]), [], "another call");
    assert_eq!(sums(&[fails(0), fails(100)]), [], "a search");
}

#[test]
fn the_second_of_two_writes_waits_for_an_ack() {
    let held: Vec<Said> =
        (0..6).flat_map(|at| [sends(at * 50), sends(at * 50 + 1), takes(at * 50 + 1, at * 50 + 45)]).collect();
    let found = sums(&held);
    assert!(found.contains(&(READ, For::Ack(SOCKET.into()), 6, 6 * 44)), "{found:?}");
    let once: Vec<Said> = (0..6).flat_map(|at| [sends(at * 50), takes(at * 50, at * 50 + 45)]).collect();
    assert!(!sums(&once).iter().any(|(_, what, ..)| matches!(what, For::Ack(_))), "one write goes at once");
}

#[test]
fn memory_is_bounded() {
    let mut talks = Talks::default();
    for at in 0..FOLLOWED as u64 + 10 {
        let name: Arc<[u8]> = Arc::from(at.to_string().as_bytes());
        talks.add(&said(1, Act::Sends(Arc::clone(&name)), 0, 0));
        talks.add(&said(READ, Act::Pipe(name, Way::In), 0, 5));
    }
    assert!(talks.sums.len() <= SUMS && talks.sockets.len() <= FOLLOWED);
}

#[test]
fn a_script_pauses_in_programs_that_sleep() {
    let of = |pid, act, from, to| {
        let who = Talker { key: u64::from(pid), pid, comm: Arc::from(&b"sh"[..]) };
        Said { who, thread: pid, ..said(READ, act, from, to) }
    };
    let looks = |at| of(7, Act::Misses(b"/run/it".as_slice().into(), 2), at, at);
    let sleeps = |from, to| of(8, Act::Sleeps, from, to);
    let reaps = |from, to| of(7, Act::Reaps(8), from, to);
    let retry = |ns| vec![(READ, For::Retry(b"/run/it".as_slice().into(), 2), 1, ns)];
    assert_eq!(sums(&[looks(0), sleeps(3, 50), reaps(1, 51), looks(52)]), retry(52));
    assert_eq!(sums(&[looks(0), sleeps(30, 50), reaps(1, 51), looks(52)]), [], "it did something else for most of it");
    assert_eq!(sums(&[sleeps(0, 50), looks(60), reaps(61, 100), looks(101)]), [], "that sleep was before");
    assert_eq!(sums(&[looks(0), reaps(1, 51), looks(52)]), [], "nobody slept");
    // meanwhile it tries something else in vain
    let tries = |at| of(7, Act::Fails(b"/run/lock".as_slice().into(), 11), at, at);
    let both = sums(&[looks(0), tries(1), sleeps(3, 50), reaps(2, 51), tries(52), looks(53)]);
    assert_eq!(both.iter().map(|(.., ns)| *ns).collect::<Vec<_>>(), [53, 51]);
    // who looks for ever waits for nothing
    let late = |more: Option<Said>| {
        let calls = [looks(900), sleeps(903, 950), reaps(901, 951), looks(952)];
        sums(&calls.into_iter().chain(more).collect::<Vec<_>>())
    };
    assert_eq!((late(None), late(Some(of(7, Act::Ends, 953, 953)))), (vec![], retry(52)));
}
