use systape_format::model::Task;

use super::super::ends::NamedSocket;
use super::*;

const SERVER: &str = "TCP:[10.0.0.1:80->10.0.0.7:5000]";
const CLIENT: &str = "TCP:[10.0.0.7:5000->10.0.0.1:80]";

/// A tape of steps.
struct Tape {
    tracker: ExchangeTracker,
    out: Vec<Exchange>,
}

fn end(name: &str) -> Arc<StreamEnd> {
    match NamedSocket::named(name.as_bytes()) {
        NamedSocket::End(end) => end,
        other => panic!("{name}: {other:?}"),
    }
}

fn listener(name: &str) -> Arc<Listener> {
    match NamedSocket::named(name.as_bytes()) {
        NamedSocket::Alone(listener) => listener,
        other => panic!("{name}: {other:?}"),
    }
}

fn actor(pid: u32) -> Arc<Mover> {
    Arc::new(Mover { task: Task { pid, tid: pid, upid: pid, utid: pid, ..Task::default() }, passes: true })
}

impl Tape {
    /// A listener on port 80, and a connection that it accepted.
    fn accepted() -> Self {
        let mut tape = Self { tracker: ExchangeTracker::new(true, true), out: Vec::new() };
        tape.step(1, ExchangeStep::Accepts(listener("TCP:[0.0.0.0:80]")));
        tape.step(1, ExchangeStep::Named(end(SERVER), b"7"[..].into(), 3));
        tape
    }

    fn step(&mut self, ts: u64, step: ExchangeStep) -> &mut Self {
        self.tracker.add(ts, step, &mut self.out);
        self
    }

    fn came(&mut self, name: &str, flow: ByteFlow, (from, to): (u64, u64), came: MoveOutcome, pid: u32) -> &mut Self {
        self.step(to, ExchangeStep::Moves(Box::new(Move { end: end(name), flow, from, came, who: actor(pid) })))
    }

    fn reads(&mut self, from: u64, to: u64, bytes: u64) -> &mut Self {
        self.came(SERVER, ByteFlow::In, (from, to), some(bytes), 100)
    }

    fn writes(&mut self, from: u64, to: u64, bytes: u64) -> &mut Self {
        self.came(SERVER, ByteFlow::Out, (from, to), some(bytes), 100)
    }

    /// `begin asking/between/answering in>out` of each exchange, with `!` and what went wrong, `?` and why there are no times.
    fn text(&mut self) -> String {
        self.tracker.finish(1000, &mut self.out);
        let one = |exchange: &Exchange| {
            let mut text = match exchange.phases() {
                Some(p) => format!("{} {}/{}/{}", exchange.begin, p.asking, p.between, p.answering),
                None => format!("{} -", exchange.begin),
            };
            text += &format!(" {}>{}", exchange.received.bytes, exchange.sent.bytes);
            text += &exchange.trouble.map_or_else(String::new, |trouble| format!(" !{trouble:?}"));
            text + &exchange.cut.map_or_else(String::new, |cut| format!(" ?{cut:?}"))
        };
        self.out.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

fn some(bytes: u64) -> MoveOutcome {
    MoveOutcome::Bytes(Amount { bytes, short: false })
}

#[test]
fn an_exchange_is_from_the_first_read_after_a_write_to_the_last_write() {
    let mut tape = Tape::accepted();
    // an upload in two parts, an answer in two parts, another exchange, and the end
    tape.reads(5, 10, 100).reads(11, 30, 50).writes(40, 42, 7).writes(43, 50, 8).reads(60, 61, 1).writes(70, 71, 2);
    tape.came(SERVER, ByteFlow::In, (75, 90), MoveOutcome::Eof, 100);
    assert_eq!(tape.text(), "10 20/10/10 150>15, 61 0/9/1 1>2");
    assert!(tape.out.iter().all(|exchange| exchange.side == EndSide::Server && exchange.passes));
    assert_eq!(tape.tracker.left_out, LeftOutEnds::default());
}

#[test]
fn who_connected_is_the_client() {
    let mut tape = Tape { tracker: ExchangeTracker::new(true, true), out: Vec::new() };
    let connecting =
        |done| Connecting { inode: b"9"[..].into(), from: 2, to: 6, done, path: Arc::default(), unix: false };
    tape.step(6, ExchangeStep::Connects(Box::new(connecting(true))))
        .step(6, ExchangeStep::Named(end(CLIENT), b"9"[..].into(), 3));
    let calls =
        [(ByteFlow::Out, 7, 9, 3), (ByteFlow::Out, 10, 12, 4), (ByteFlow::In, 12, 30, 5), (ByteFlow::In, 31, 33, 6)];
    for (flow, from, to, bytes) in calls.into_iter().chain([(ByteFlow::Out, 50, 51, 1), (ByteFlow::In, 51, 60, 2)]) {
        tape.came(CLIENT, flow, (from, to), some(bytes), 200);
    }
    assert_eq!(tape.text(), "7 5/18/3 11>7, 50 1/9/0 2>1");
    assert_eq!(
        tape.out.iter().map(|one| (one.side, one.connect)).collect::<Vec<_>>(),
        [(EndSide::Client, Some(4)), (EndSide::Client, None)]
    );
    // its addresses come before the call is known, and it is established later
    let mut tape = Tape { tracker: ExchangeTracker::new(true, true), out: Vec::new() };
    tape.step(5, ExchangeStep::Named(end(CLIENT), b"9"[..].into(), 3))
        .step(6, ExchangeStep::Connects(Box::new(connecting(false))));
    tape.step(12, ExchangeStep::Established(3));
    tape.came(CLIENT, ByteFlow::Out, (20, 21), some(1), 200).came(CLIENT, ByteFlow::In, (21, 25), some(1), 200);
    assert_eq!((tape.text().as_str(), tape.out[0].connect), ("20 1/4/0 1>1", Some(10)));
}

#[test]
fn threads_and_processes_share_a_connection() {
    let mut tape = Tape::accepted();
    tape.came(SERVER, ByteFlow::In, (2, 5), some(1), 100);
    // the parent closes its descriptor after it forked, and the child answers
    tape.step(6, ExchangeStep::Closes(end(SERVER), 100)).came(SERVER, ByteFlow::Out, (9, 10), some(1), 101);
    tape.step(12, ExchangeStep::Exits(101));
    assert_eq!(tape.text(), "5 0/4/1 1>1");
    assert_eq!((tape.out[0].first.task.pid, tape.out[0].actor().task.pid), (100, 101));
}

#[test]
fn a_write_that_returns_late_is_of_its_own_answer() {
    let mut tape = Tape::accepted();
    // one thread is in a long write while another one reads what is asked next
    tape.reads(2, 5, 1).writes(6, 7, 10).reads(8, 20, 1).writes(7, 30, 1000).writes(40, 41, 5);
    assert_eq!(tape.text(), "5 0/1/24 1>1010, 20 0/20/1 1>5");
}

#[test]
fn what_goes_wrong_is_told() {
    let (reset, pipe) = (MoveOutcome::Failed(104), MoveOutcome::Failed(32));
    let mut tape = Tape::accepted();
    tape.reads(2, 5, 1).came(SERVER, ByteFlow::In, (6, 8), reset, 100);
    assert_eq!(tape.text(), "5 - 1>0 !Failed(104)", "the client is gone before it is answered");
    let mut tape = Tape::accepted();
    tape.reads(2, 5, 1).writes(6, 7, 9).came(SERVER, ByteFlow::Out, (8, 9), pipe, 100);
    tape.came(SERVER, ByteFlow::Out, (10, 11), pipe, 100);
    assert_eq!(tape.text(), "5 0/1/3 1>9 !Failed(32)", "in the middle of the answer; once");
    let mut tape = Tape::accepted();
    tape.reads(2, 5, 1).writes(6, 7, 9).came(SERVER, ByteFlow::In, (8, 9), reset, 100);
    assert_eq!(tape.text(), "5 0/1/1 1>9", "behind an answer it is no fault of it");
    for gone in [ExchangeStep::Gone(3), ExchangeStep::Exits(100)] {
        let mut tape = Tape::accepted();
        tape.reads(2, 5, 1).step(7, ExchangeStep::Closes(end(SERVER), 100)).step(8, gone.clone());
        let told = if matches!(gone, ExchangeStep::Gone(_)) { "5 - 1>0 !Unanswered" } else { "5 - 1>0 ?End" };
        assert_eq!(tape.text(), told, "the socket knows better than a descriptor");
    }
}

#[test]
fn what_is_half_closed_is_answered() {
    let mut tape = Tape::accepted();
    tape.reads(2, 5, 1).came(SERVER, ByteFlow::In, (6, 7), MoveOutcome::Eof, 100).writes(9, 10, 4);
    tape.step(11, ExchangeStep::Closes(end(SERVER), 100));
    assert_eq!(tape.text(), "5 0/4/1 1>4");
}

#[test]
fn who_speaks_first_greets() {
    let mut tape = Tape::accepted();
    tape.writes(2, 3, 50).reads(4, 5, 1).writes(6, 7, 2);
    assert_eq!(tape.text(), "5 0/1/1 1>2");
}

#[test]
fn what_began_before_the_recording_has_no_times() {
    let mut tape = Tape { tracker: ExchangeTracker::new(true, true), out: Vec::new() };
    tape.step(0, ExchangeStep::Listens(listener("TCP:[10.0.0.1:80]"))).step(0, ExchangeStep::Listed(end(SERVER), 0));
    tape.reads(1, 3, 5).writes(4, 6, 7).reads(8, 9, 1).writes(10, 12, 2);
    assert_eq!(tape.text(), "3 - 5>7 ?Begin, 9 0/1/2 1>2", "the first read may be the end of something");
    let mut tape = Tape { tracker: ExchangeTracker::new(true, true), out: Vec::new() };
    tape.step(0, ExchangeStep::Listens(listener("TCP:[10.0.0.1:80]")));
    tape.writes(4, 6, 7).reads(8, 9, 1).writes(10, 12, 2).reads(20, 21, 1);
    assert_eq!(tape.text(), "4 - 0>7 ?Begin, 9 0/1/2 1>2, 21 - 1>0 ?End");
}

#[test]
fn a_loss_takes_the_times_of_what_it_touches() {
    let exchange = |lost: ExchangeStep, at: u64| {
        let mut tape = Tape::accepted();
        let calls = [
            (ByteFlow::In, 10),
            (ByteFlow::Out, 20),
            (ByteFlow::In, 30),
            (ByteFlow::Out, 40),
            (ByteFlow::In, 50),
            (ByteFlow::Out, 60),
        ];
        for (flow, ts) in calls {
            if ts > at && ts <= at + 10 {
                tape.step(at, lost.clone());
            }
            tape.came(SERVER, flow, (ts - 1, ts), some(1), 100);
        }
        tape.text()
    };
    let whole = "10 0/9/1 1>1, 30 0/9/1 1>1, 50 0/9/1 1>1";
    assert_eq!(exchange(ExchangeStep::Lost(26, 0), 25), "10 - 1>1 ?Gap, 30 - 1>1 ?Begin, 50 0/9/1 1>1");
    assert_eq!(exchange(ExchangeStep::Lost(36, 100), 35), "10 0/9/1 1>1, 30 - 1>1 ?Gap, 50 0/9/1 1>1");
    assert_eq!(exchange(ExchangeStep::Lost(36, 101), 35), whole, "of another process");
    assert_eq!(exchange(ExchangeStep::Lost(36, 0), 100), whole, "no loss");
    // it goes on for a while
    assert_eq!(exchange(ExchangeStep::Lost(45, 0), 35), "10 0/9/1 1>1, 30 - 1>1 ?Gap, 50 - 1>1 ?Begin");
    // at the end
    let mut tape = Tape::accepted();
    tape.reads(2, 5, 1).writes(6, 7, 1).step(100, ExchangeStep::Lost(110, 0));
    assert_eq!(tape.text(), "5 - 1>1 ?Gap", "more may have been written");
}

#[test]
fn losses_before_a_connection_do_not_matter() {
    for pid in [0, 100] {
        let mut tape = Tape { tracker: ExchangeTracker::new(true, true), out: Vec::new() };
        tape.step(1, ExchangeStep::Lost(2, pid)).step(5, ExchangeStep::Accepts(listener("TCP:[0.0.0.0:80]")));
        tape.step(5, ExchangeStep::Named(end(SERVER), b"7"[..].into(), 3)).reads(6, 10, 1).writes(12, 13, 1);
        assert_eq!(tape.text(), "10 0/2/1 1>1", "{pid}");
    }
}

#[test]
fn a_name_is_used_again() {
    let mut tape = Tape::accepted();
    tape.reads(2, 5, 1).step(6, ExchangeStep::Closes(end(SERVER), 100)).step(7, ExchangeStep::Gone(3));
    tape.step(20, ExchangeStep::Named(end(SERVER), b"8"[..].into(), 4)).reads(21, 22, 1).writes(23, 24, 1);
    assert_eq!(tape.text(), "5 - 1>0 !Unanswered, 22 0/1/1 1>1");
    // two at once: two network namespaces
    let mut tape = Tape::accepted();
    tape.reads(2, 5, 1)
        .step(20, ExchangeStep::Named(end(SERVER), b"8"[..].into(), 4))
        .reads(21, 22, 1)
        .writes(23, 24, 1);
    assert_eq!(tape.text(), "5 - 1>0 ?Mixed, 22 - 1>1 ?Mixed");
    assert_eq!(tape.tracker.left_out.mixed, 1);
}

/// What a segment says, by its first letters.
fn says(letters: &str) -> SegmentSays {
    let has = |letter| letters.contains(letter);
    SegmentSays { begins: has('b'), acks: has('a'), frees: has('f') }
}

/// `queued/held/drain` of each exchange; `-`: not known.
fn off_calls(tape: &mut Tape) -> String {
    tape.tracker.finish(1000, &mut tape.out);
    let word = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| ns.to_string());
    let one = |exchange: &Exchange| {
        let phases = exchange.phases().expect("times");
        [phases.queued, phases.held, phases.drain].map(word).join("/")
    };
    tape.out.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[test]
fn segments_say_what_happened_outside_of_calls() {
    let mut tape = Tape::accepted();
    let segment = |letters| ExchangeStep::Segment(3, says(letters));
    // it comes before it is read; of two writes the second is held back
    tape.step(4, segment("b")).reads(9, 10, 1).writes(12, 14, 1).writes(15, 17, 1).step(16, segment("f"));
    tape.step(50, segment("f")).step(52, segment("a"));
    // the next question has what acknowledges the answer
    tape.step(60, segment("b")).reads(55, 61, 1).writes(70, 72, 1);
    tape.step(80, segment("ba")).reads(75, 81, 1).writes(90, 95, 1);
    // acknowledged before the write returned
    tape.step(93, segment("a")).step(100, segment("b")).reads(97, 101, 1).writes(110, 111, 1);
    assert_eq!(off_calls(&mut tape), "6/33/35, 1/0/8, 1/0/0, 1/0/-");
    assert_eq!(tape.out[0].phases().expect("times").whole(), 6 + 2 + 5 + 33);
    assert_eq!((tape.out[0].since(), tape.out[0].begin), (4, 10));
}

#[test]
fn bytes_may_come_before_the_connection_is_accepted() {
    let mut tape = Tape { tracker: ExchangeTracker::new(true, true), out: Vec::new() };
    tape.step(1, ExchangeStep::Segment(3, says("b"))).step(2, ExchangeStep::Segment(4, says("b")));
    tape.step(1, ExchangeStep::Established(3));
    tape.step(5, ExchangeStep::Accepts(listener("TCP:[0.0.0.0:80]")));
    tape.step(5, ExchangeStep::Named(end(SERVER), b"7"[..].into(), 3)).reads(6, 7, 1).writes(8, 9, 1);
    assert_eq!(off_calls(&mut tape), "6/0/-");
    assert_eq!(tape.out[0].connect, Some(4), "it waited to be accepted");
    // of one that was there before, and where the tape has no segments
    for (segments, number, expected) in [(true, 3, "3/0/-"), (false, 3, "-/-/-"), (true, 0, "-/-/-")] {
        let mut tape = Tape { tracker: ExchangeTracker::new(true, segments), out: Vec::new() };
        tape.step(0, ExchangeStep::Listens(listener("TCP:[10.0.0.1:80]")));
        tape.step(0, ExchangeStep::Listed(end(SERVER), number));
        tape.came(SERVER, ByteFlow::Out, (1, 2), some(1), 100);
        if segments {
            tape.step(3, ExchangeStep::Segment(3, says("b")));
        }
        tape.reads(4, 6, 1).writes(7, 8, 1);
        tape.tracker.finish(1000, &mut tape.out);
        tape.out.retain(|exchange| exchange.phases().is_some());
        assert_eq!(off_calls(&mut tape), expected, "{segments} {number}");
    }
}

#[test]
fn equal_addresses_in_two_namespaces_are_two_connections() {
    let (inside, other) = (format!("{SERVER}@7"), format!("{CLIENT}@8"));
    let mut tape = Tape::accepted();
    tape.step(2, ExchangeStep::Accepts(listener("TCP:[0.0.0.0:80]@7")));
    tape.step(2, ExchangeStep::Named(end(&inside), b"8"[..].into(), 4));
    tape.reads(5, 10, 1).came(&inside, ByteFlow::In, (5, 11), some(2), 300);
    tape.came(&inside, ByteFlow::Out, (12, 13), some(4), 300).writes(20, 21, 3);
    tape.tracker.finish(100, &mut tape.out);
    tape.out.sort_by_key(|one| one.begin);
    assert_eq!(tape.text(), "10 0/10/1 1>3, 11 0/1/1 2>4");
    assert_eq!(tape.tracker.left_out, LeftOutEnds::default());
    // who asks the only server of these addresses is a client in another namespace; with two servers that is not known
    for (servers, sides) in [(&[SERVER][..], "Client"), (&[SERVER, &inside], "")] {
        let mut tape = Tape { tracker: ExchangeTracker::new(true, true), out: Vec::new() };
        tape.step(0, ExchangeStep::Listens(listener("TCP:[0.0.0.0:80]")));
        tape.step(0, ExchangeStep::Listens(listener("TCP:[0.0.0.0:80]@7")));
        for server in servers {
            tape.came(server, ByteFlow::In, (0, 1), some(1), 100).came(server, ByteFlow::Out, (2, 3), some(1), 100);
        }
        tape.came(&other, ByteFlow::Out, (4, 5), some(1), 200).came(&other, ByteFlow::In, (6, 7), some(1), 200);
        tape.tracker.finish(100, &mut tape.out);
        let of_clients = tape.out.iter().filter(|one| one.end.namespace == Some(8));
        let found: Vec<String> = of_clients.map(|one| format!("{:?}", one.side)).collect();
        assert_eq!(found.join(" "), sides, "{servers:?}");
        assert_eq!(tape.tracker.left_out.sides, u64::from(servers.len() > 1));
    }
}

#[test]
fn a_client_may_have_a_port_before_it_connects() {
    let mut tape = Tape { tracker: ExchangeTracker::new(true, true), out: Vec::new() };
    let port = listener("TCP:[0.0.0.0:5000]").port_key().expect("a port");
    let connecting = Connecting { inode: port, from: 2, to: 6, done: true, path: Arc::default(), unix: false };
    tape.step(6, ExchangeStep::Connects(Box::new(connecting.clone())))
        .step(6, ExchangeStep::Named(end(CLIENT), b"9"[..].into(), 3));
    tape.came(CLIENT, ByteFlow::Out, (7, 8), some(1), 200).came(CLIENT, ByteFlow::In, (9, 10), some(2), 200);
    assert_eq!(tape.text(), "7 1/2/0 2>1");
    assert_eq!(tape.out[0].connect, Some(4));
    // another socket with that port later
    let mut tape = Tape { tracker: ExchangeTracker::new(true, true), out: Vec::new() };
    tape.step(6, ExchangeStep::Connects(Box::new(connecting)));
    tape.step(50, ExchangeStep::Named(end(CLIENT), b"10"[..].into(), 4));
    tape.came(CLIENT, ByteFlow::Out, (51, 52), some(1), 200).came(CLIENT, ByteFlow::In, (53, 54), some(2), 200);
    assert_eq!((tape.text(), tape.tracker.left_out.sides), (String::new(), 1));
}

#[test]
fn ends_of_unix_sockets_are_known_by_their_inodes() {
    let mut tape = Tape { tracker: ExchangeTracker::new(true, true), out: Vec::new() };
    let (server, early, client) = ("UNIX-STREAM:[17->18,\"/x\"]", "UNIX-STREAM:[18]", "UNIX-STREAM:[18->17]");
    let path: Arc<[u8]> = b"/x"[..].into();
    let connecting = Connecting { inode: b"18"[..].into(), from: 1, to: 3, done: true, path, unix: true };
    tape.step(3, ExchangeStep::Connects(Box::new(connecting)));
    tape.came(early, ByteFlow::Out, (4, 5), some(1), 200);
    tape.step(6, ExchangeStep::Accepts(listener("UNIX-STREAM:[9,\"/x\"]")));
    tape.came(server, ByteFlow::In, (7, 8), some(1), 100).came(server, ByteFlow::Out, (9, 10), some(2), 100);
    tape.came(client, ByteFlow::In, (5, 12), some(2), 200);
    tape.came(server, ByteFlow::In, (11, 20), some(1), 100).came(server, ByteFlow::Out, (21, 22), some(2), 100);
    tape.tracker.finish(100, &mut tape.out);
    tape.out.sort_by_key(|one| (one.side == EndSide::Client, one.begin));
    assert_eq!(tape.text(), "8 0/1/1 1>2, 20 0/1/1 1>2, 4 1/7/0 2>1");
    assert_eq!(tape.out[2].end.other(), Some(tape.out[0].end.key().addresses));
    // another one with that path was there before
    let mut tape = Tape { tracker: ExchangeTracker::new(true, true), out: Vec::new() };
    tape.step(6, ExchangeStep::Listens(listener("UNIX-STREAM:[9,\"/x\"]")));
    tape.came(server, ByteFlow::In, (7, 8), some(1), 100).came(server, ByteFlow::Out, (9, 10), some(2), 100);
    assert_eq!(tape.text(), "8 - 1>2 ?Begin");
}

#[test]
fn of_a_pair_of_sockets_nobody_is_the_server() {
    let mut tape = Tape { tracker: ExchangeTracker::new(true, true), out: Vec::new() };
    let one = "UNIX-STREAM:[17->18]";
    tape.came(one, ByteFlow::In, (7, 8), some(1), 100).came(one, ByteFlow::Out, (9, 10), some(2), 100);
    tape.came("UNIX-STREAM:[5->6]", ByteFlow::In, (7, 8), some(1), 100);
    assert_eq!((tape.text().as_str(), tape.tracker.left_out.sides), ("", 1));
}

#[test]
fn a_write_that_does_not_return_has_no_end() {
    let mut tape = Tape::accepted();
    tape.reads(2, 5, 1).came(SERVER, ByteFlow::Out, (6, 900), MoveOutcome::Unfinished, 100);
    assert_eq!(tape.text(), "5 - 1>0 ?End");
    let mut tape = Tape::accepted();
    tape.reads(2, 5, 1).writes(6, 7, 3).step(8, ExchangeStep::Blurs(end(SERVER)));
    assert_eq!(tape.text(), "5 - 1>3 ?Gap");
}

#[test]
fn memory_is_bounded_and_says_so() {
    let mut tape = Tape { tracker: ExchangeTracker::new(true, true), out: Vec::new() };
    tape.step(0, ExchangeStep::Listens(listener("TCP:[0.0.0.0:80]")));
    for port in 0..CONNECTIONS as u64 + 10 {
        let name = format!("TCP:[10.0.0.1:80->10.0.{}.{}:{}]", port >> 24, port >> 16 & 255, port & 0xffff);
        let ts = 10 * port;
        tape.step(ts, ExchangeStep::Named(end(&name), port.to_string().into_bytes().into(), 0));
        tape.came(&name, ByteFlow::In, (ts, ts + 1), some(1), 100).came(
            &name,
            ByteFlow::Out,
            (ts + 2, ts + 3),
            some(1),
            100,
        );
    }
    assert!(tape.tracker.open.len() <= CONNECTIONS);
    assert!(tape.tracker.left_out.forgotten > 0);
    tape.tracker.finish(u64::MAX, &mut tape.out);
    assert_eq!(tape.out.len(), CONNECTIONS + 10, "what is forgotten is counted before");
}
