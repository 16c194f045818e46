use super::*;

const MS: u64 = 1_000_000;

fn nr(name: &str) -> (u8, u32) {
    (Abi::X86_64 as u8, systape_abi::number(Abi::X86_64, name).unwrap())
}

/// What fires of one trigger on each event, in words.
fn fires(text: &str, comm: &str, events: &[Event<'_>]) -> Vec<Option<String>> {
    let mut triggers = Triggers::new(&[parse(text).unwrap()]);
    let of = Of { tid: 7, comm: comm.as_bytes(), exe: b"/usr/bin/made" };
    let one = |event: &Event<'_>| {
        let mut fired = Vec::new();
        triggers.event(event, &of, &mut fired);
        assert!(fired.len() <= 1);
        fired.pop().map(|fire| fire.what)
    };
    events.iter().map(one).collect()
}

fn counts(text: &str, comm: &str, events: &[Event<'_>]) -> Vec<bool> {
    fires(text, comm, events).iter().map(Option::is_some).collect()
}

fn call(name: &str, dur_ms: u64, errno: u16) -> Event<'static> {
    Event::Call { ts: 5000 * MS, dur: dur_ms * MS, call: nr(name), errno }
}

#[test]
fn a_process_that_dies_of_a_signal() {
    let exit = |status| Event::Exit { ts: 1, status };
    let all = [exit(0), exit(3 << 8), exit(9), exit(11 | 0x80)];
    let words = |text: &str| vec![None, None, Some(text.to_owned()), Some("SIGSEGV".to_owned())];
    assert_eq!(fires("kill", "x", &all), words("SIGKILL"));
    assert_eq!(counts("signal:SEGV,ABRT", "x", &all), [false, false, false, true]);
    assert_eq!(counts("kill:red*", "redis", &all), [false, false, true, true]);
    assert_eq!(counts("kill:red*", "bash", &all), [false; 4]);
    assert_eq!(counts("oom", "x", &[exit(9), Event::Oom { ts: 1 }]), [false, true]);
    assert_eq!(counts("exit:made", "x", &all), [true; 4], "its executable");
    assert_eq!(counts("exit:/usr/*!=0", "x", &all), [false, true, true, true]);
    assert_eq!(counts("exit:made!=0", "x", &[exit(0), exit(2 << 8)]), [false, true]);
    assert_eq!(counts("exit:mad", "x", &all), [false; 4]);
}

#[test]
fn slow_calls_stored_or_counted() {
    let counted = |longest| Event::Counted { span: (1, 2), count: 9, longest, call: nr("fsync"), errno: 0 };
    let all =
        [call("fsync", 500, 0), call("fsync", 501, 5), call("read", 900, 0), counted(499 * MS), counted(700 * MS)];
    let fired = fires("slow:fsync>500ms", "x", &all);
    assert_eq!(fired[1].as_deref(), Some("fsync 501 ms"));
    assert_eq!(fired[4].as_deref(), Some("fsync 700 ms (counted)"));
    assert!(fired[0].is_none() && fired[2].is_none() && fired[3].is_none());
    assert_eq!(counts("slow:fsync,read>500ms:pg", "pg", &all), [false, true, true, false, true]);
    assert_eq!(counts("slow:fsync>500ms:pg", "mysql", &all), [false; 5]);
}

#[test]
fn only_calls_of_triggers_are_looked_at() {
    let specs = ["slow:fsync>1s", "errno:open*=ENOENT>5/s", "stuck:read>1s", "kill"].map(|text| parse(text).unwrap());
    let triggers = Triggers::new(&specs);
    let wanted = ["fsync", "openat", "read", "getppid"].map(|name| triggers.want_call(nr(name)));
    assert_eq!(wanted, [true, true, false, false], "a stuck call is looked at before it returns");
}

#[test]
fn a_call_that_does_not_return_fires_once() {
    let mut triggers = Triggers::new(&[parse("stuck:read>2s").unwrap()]);
    assert!(triggers.want_open_calls() && !triggers.want_run_queue());
    let mut look = |seconds: u64, tid: u32, name: &str| {
        let (ts, mut fired) = (seconds * 1000 * MS, Vec::new());
        let of = Of { tid, ..Of::default() };
        triggers.event(&Event::Open { ts, start: 1000 * MS, call: nr(name), rest: AtRest::No }, &of, &mut fired);
        fired.pop().map(|fire| fire.what)
    };
    assert_eq!(look(3, 7, "read"), None, "2 s and no more");
    assert_eq!(look(4, 7, "read").as_deref(), Some("read in flight for 3.00 s"));
    assert_eq!(look(5, 7, "read"), None);
    assert_eq!(look(5, 8, "read").as_deref(), Some("read in flight for 4.00 s"));
    assert_eq!(look(5, 9, "write"), None);
    // both returned; another call begins
    triggers.looked(&HashSet::new());
    assert!(triggers.0[0].stuck.is_empty());
}

#[test]
fn who_waits_for_work_is_not_stuck() {
    let stuck = |spec: &str, name: &str, state: u8, on: Option<&str>| {
        let (mut triggers, mut fired) = (Triggers::new(&[parse(spec).unwrap()]), Vec::new());
        let rest = AtRest::of(nr(name), state, on.map(str::as_bytes));
        let event = Event::Open { ts: 5000 * MS, start: 0, call: nr(name), rest };
        triggers.event(&event, &Of { tid: 7, ..Of::default() }, &mut fired);
        !fired.is_empty()
    };
    // what every machine has: shells, daemons, pipelines
    for on in [
        Some("pipe:[9]"),
        Some("/dev/pts/0"),
        Some("anon_inode:[eventfd]"),
        Some("TCP:[1.1.1.2:80->1.1.1.1:50000]"),
        None,
    ] {
        assert!(!stuck("stuck:read>2s", "read", b'S', on), "{on:?}");
    }
    // a file system that does not answer: FUSE sleeps, NFS is in D
    assert!(stuck("stuck:read>2s", "read", b'S', Some("/mnt/x")) && stuck("stuck:read>2s", "read", b'D', None));
    assert!(stuck("stuck:fsync,openat>2s", "openat", b'S', None));
    assert!(stuck("stuck:recvfrom>2s", "recvfrom", b'S', Some("TCP:[1.1.1.1:50000->1.1.1.2:80]")));
    // all calls: idle ones are not meant; named alone they are
    assert!(!stuck("stuck:all>2s", "futex", b'S', None) && stuck("stuck:all>2s", "futex", b'D', None));
    assert!(stuck("stuck:futex,wait4>2s", "futex", b'S', None) && !stuck("stuck:futex,read>2s", "futex", b'S', None));
}

#[test]
fn failures_in_a_second() {
    let failed = |ms: u64, errno| Event::Call { ts: ms * MS, dur: 1, call: nr("openat"), errno };
    let counted = Event::Counted { span: (9000 * MS, 9500 * MS), count: 4, longest: 1, call: nr("openat"), errno: 2 };
    let all = [failed(1, 2), failed(2, 13), failed(3, 2), failed(4, 2), failed(2000, 2), counted];
    let fired = fires("errno:openat=ENOENT>2/s", "x", &all);
    assert_eq!(fired[3].as_deref(), Some("openat failed 3 times in a second with ENOENT"));
    assert_eq!(fired[5].as_deref(), Some("openat failed 4 times in a second with ENOENT"));
    assert_eq!(fired.iter().flatten().count(), 2);
    let lost = |ms: u64, count| Event::Lost { ts: ms * MS, count };
    assert_eq!(counts("lost>10/s", "", &[lost(1, 10), lost(2, 1), lost(9000, 11)]), [false, true, true]);
}

#[test]
fn storage_and_cpus() {
    let io = |dur, device, failed| Event::Io { ts: 1, dur, device, failed };
    let all = [io(Some(30 * MS), 8 << 20, false), io(Some(5 * MS), 8 << 20, true), io(None, 9 << 20, true)];
    assert_eq!(counts("io>20ms", "", &all), [true, false, false]);
    assert_eq!(counts("io-error", "", &all), [false, true, true]);
    let mut of_disk = parse("io-error:sda").unwrap();
    of_disk.device = Some(8 << 20);
    let mut triggers = Triggers::new(&[of_disk]);
    let mut fired = Vec::new();
    all.iter().for_each(|event| triggers.event(event, &Of::default(), &mut fired));
    assert_eq!(fired.len(), 1);
    let ran = |ms: u64| Event::Ran { ts: 1, waited: ms * MS };
    assert_eq!(counts("runq>20ms", "", &[ran(20), ran(21)]), [false, true]);
}

#[test]
fn programs_that_start() {
    let exec = |path: &'static str| Event::Exec { ts: 1, path: path.as_bytes() };
    let all = [exec("/usr/bin/tar"), exec("/opt/tar/run")];
    assert_eq!(counts("exec:tar", "", &all), [true, false]);
    assert_eq!(counts("exec:/opt/*", "", &all), [false, true]);
}

#[test]
fn every_trigger_that_fires_is_named() {
    let specs = ["kill", "signal:KILL", "exit:*!=0"].map(|text| parse(text).unwrap());
    let mut fired = Vec::new();
    let event = Event::Exit { ts: 3, status: 9 };
    Triggers::new(&specs).event(&event, &Of { comm: b"x", ..Of::default() }, &mut fired);
    assert_eq!(
        fired.iter().map(|fire| (fire.trigger, fire.ts, fire.value)).collect::<Vec<_>>(),
        [(0, 3, 9), (1, 3, 9), (2, 3, 9)]
    );
}

#[test]
fn times_have_few_digits() {
    assert_eq!([999, 812 * MS, 2100 * MS, 93_000 * MS].map(time), ["0 us", "812 ms", "2.10 s", "93 s"]);
}
