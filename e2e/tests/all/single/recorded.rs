//! Whose events are on the tape, for every kind of target: what each report says of the threads of a target beside what the
//! kernel counted of them (/proc/PID/task/TID/schedstat), and that of strangers no report says anything and the file holds
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use systape_e2e::blocks::unpacked;
use systape_e2e::more::{Cgroup, NOBODY, monotonic};
use systape_e2e::{Background, Lab};

const MS: i64 = 1_000_000;
/// Of a running thread the kernel counts at each tick, 10 ms at the longest.
const TICK: i64 = 10 * MS;
/// The kernel counts from the beginning of a switch, the tape from the tracepoint in its middle: 4 to 8 us a slice were seen.
const SLICE: i64 = MS / 25;
/// What a process outside the target has in its arguments and opens.
const MARKER: &str = "seen-nowhere-4711";
/// How long the target is looked at while it is recorded.
const WHILE: Duration = Duration::from_millis(1500);

/// What a thread does, and its id.
type Threads = BTreeMap<String, i64>;

/// What a workload called `name` wrote of its threads.
fn threads(lab: &Lab, name: &str) -> Threads {
    let file = lab.path(&format!("{name}.tids"));
    lab.until("threads", || fs::read_to_string(&file).is_ok_and(|text| text.lines().count() == 4));
    let text = fs::read_to_string(&file).expect("tids");
    let pair = |line: &str| {
        let (what, tid) = line.split_once(' ').expect("two words");
        (what.to_owned(), tid.parse().expect("tid"))
    };
    text.lines().map(pair).collect()
}

/// Nanoseconds a thread was on a CPU so far and how often it came on one, as the kernel counts.
fn on_cpu(tid: i64) -> (i64, i64) {
    let text = fs::read_to_string(format!("/proc/{tid}/schedstat")).unwrap_or_else(|e| panic!("{tid}: {e}"));
    let numbers: Vec<i64> = text.split_whitespace().map(|n| n.parse().expect("a number")).collect();
    (numbers[0], numbers[2])
}

/// When it was read, and what each thread had run until then, and how often.
struct Look(i64, BTreeMap<i64, (i64, i64)>);

impl Look {
    fn at(threads: &Threads) -> Self {
        Self(monotonic(), threads.values().map(|tid| (*tid, on_cpu(*tid))).collect())
    }
}

/// A recording: what was recorded, and what was so of it.
struct Case<'a> {
    lab: &'a Lab,
    what: &'a str,
    target: Threads,
    /// Of `target`, those that are recorded.
    recorded: BTreeSet<i64>,
    /// Everybody is.
    all: bool,
    /// Before it began, when it had begun, before it was ended, when it had ended.
    looks: [Look; 2],
    edges: [i64; 2],
}

impl Case<'_> {
    #[track_caller]
    fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let run = self.lab.analyze(&[arguments, &["--format", "json", "t.tape"]].concat()).expect(0);
        assert_eq!(run.complaints(), "", "{}: {arguments:?}", self.what);
        run.json()
    }

    /// Nothing but the target is in `rows`, unless everybody is recorded.
    fn only_the_target(&self, report: &str, rows: &[Value]) {
        for row in rows.iter().filter(|_| !self.all) {
            let text = row.to_string();
            assert!(!text.contains("whoelse") && !text.contains(MARKER), "{}: {report}: {text}", self.what);
        }
    }

    /// Between what it ran while it was recorded for sure, and that and all of the time that is not certain.
    fn bounds(&self, tid: i64) -> (i64, i64) {
        let [first, last] = &self.looks;
        let [(began, before), (ended, slices)] = [first.1[&tid], last.1[&tid]];
        let (ran, unsharp) = (ended - began, (slices - before) * SLICE + TICK);
        let around = (first.0 - self.edges[0]) + (self.edges[1] - last.0);
        (ran - unsharp, ran + around + unsharp)
    }

    /// `unknown`: time in which its state is not known.
    fn on_the_cpu(&self, report: &str, tid: i64, ns: i64, unknown: i64) {
        let (least, most) = self.bounds(tid);
        let least = least - unknown;
        let name = self.target.iter().find(|(_, of)| **of == tid).map_or("?", |(name, _)| name);
        assert!((least..=most).contains(&ns), "{}: {report}: {name} {tid} ran {ns} ns: {least} to {most}", self.what);
    }

    fn check(&self) {
        self.lab.assert_whole("t.tape");
        let unknown = self.states();
        self.latency(&unknown);
        for report in [&["runqlat", "--by", "comm"][..], &["offcpu", "--by", "comm"], &["sched"], &["block"]] {
            self.only_the_target(report[0], &self.rows(report));
        }
        for report in [&["exec"][..], &["exec", "--tree"], &["net"], &["kills"]] {
            self.only_the_target(report[0], &self.rows(report));
        }
        self.calls();
        if !self.all {
            let bytes = unpacked(&self.lab.path("t.tape"));
            let found = bytes.windows(MARKER.len()).position(|window| window == MARKER.as_bytes());
            let around = |at: usize| String::from_utf8_lossy(&bytes[at.saturating_sub(200)..at + 100]).into_owned();
            assert_eq!(found.map(around), None, "{}: the file has words of a stranger", self.what);
        }
    }

    fn latency(&self, unknown: &BTreeMap<i64, i64>) {
        let rows = self.rows(&["sched", "latency", "--by", "tid"]);
        self.only_the_target("sched latency", &rows);
        let of = |row: &Value| (row["tid"].as_i64().expect("tid"), row["run_ns"].as_i64().expect("ns"));
        let ran: BTreeMap<i64, i64> = rows.iter().map(of).collect();
        for tid in self.target.values() {
            match (ran.get(tid), self.recorded.contains(tid)) {
                (Some(ns), true) => self.on_the_cpu("sched latency", *tid, *ns, unknown[tid]),
                (None, false) => {}
                (found, _) => panic!("{}: {tid} of {:?}: {found:?}", self.what, self.target),
            }
        }
    }

    /// Gives how long the state of each thread was not known.
    fn states(&self) -> BTreeMap<i64, i64> {
        let mut unknowns = BTreeMap::new();
        let rows = self.rows(&["states", "--by", "tid,state"]);
        self.only_the_target("states", &rows);
        for tid in &self.recorded {
            let mine = rows.iter().filter(|row| row["tid"] == *tid);
            let times = mine.map(|row| (row["state"].as_str().expect("state"), row["time_ns"].as_i64().expect("ns")));
            let times: BTreeMap<&str, i64> = times.collect();
            let (whole, unknown) = (times.values().sum::<i64>(), times.get("?").copied().unwrap_or(0));
            unknowns.insert(*tid, unknown);
            self.on_the_cpu("states", *tid, times.get("RUN").copied().unwrap_or(0), unknown);
            // it was there from the beginning to the end
            let [first, last] = [self.looks[0].0, self.looks[1].0];
            assert!(whole >= last - first, "{}: {tid}: {times:?}", self.what);
            assert!(whole <= self.edges[1] - self.edges[0], "{}: {tid}: {times:?}", self.what);
            // a kernel may run no program while certain tasks are current: a switch from one of them is seen by nobody
            assert!(unknown <= whole / 8, "{}: {tid}: {times:?}", self.what);
        }
        let cpus = std::thread::available_parallelism().expect("CPUs").get();
        for tenth in 0..14 {
            let at = format!("0.{tenth:02}");
            let rows = self.rows(&["states", "--at", &at]);
            self.only_the_target("states --at", &rows);
            let running = rows.iter().filter(|row| row["state"] == "RUN").count();
            assert!(running <= cpus, "{}: at {at} {running} threads run on {cpus} CPUs", self.what);
        }
        unknowns
    }

    fn calls(&self) {
        let listed = self.rows(&[]);
        self.only_the_target("listing", &listed);
        self.only_the_target("openat", &self.rows(&["-e", "openat"]));
        // a switch has two sides: who a target gave way to is named
        self.only_the_target("events", &self.rows(&["-e", "process:*,signal:*,block:*,sock:*"]));
        let target: BTreeSet<i64> = self.target.values().copied().collect();
        let callers: BTreeSet<i64> = listed.iter().filter_map(|call| call["tid"].as_i64()).collect();
        for tid in target.difference(&self.recorded) {
            assert!(!callers.contains(tid), "{}: {tid} of {:?}", self.what, self.target);
        }
        let caller = self.target["call"];
        assert_eq!(callers.contains(&caller), self.recorded.contains(&caller), "{}", self.what);
    }
}

/// A workload of a name that computes, sleeps and makes calls.
fn start(lab: &Lab, who: &str, before: &[&str], name: &str, marker: &str) -> Background {
    let dir = lab.dir().to_str().expect("UTF-8");
    fs::remove_file(lab.path(&format!("{name}.tids"))).ok();
    let words = [before, &[who, name, dir, marker]].concat();
    Background::start(lab.command(words[0]).args(&words[1..]))
}

/// Records the workload as `options` say, which see its process and threads, beside a stranger that does the same.
fn attached(lab: &Lab, who: &str, what: &str, before: &[&str], options: impl Fn(&str, &Threads) -> Vec<String>) {
    fs::remove_file(lab.path("stop")).ok();
    let stranger = start(lab, who, &[], "whoelse", MARKER);
    let program = start(lab, who, before, "whotgt", "own");
    let target = threads(lab, "whotgt");
    threads(lab, "whoelse");
    let options = options(&target["main"].to_string(), &target);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let begun = monotonic();
    let recorder = lab.attach("t.tape", &options);
    let first = Look::at(&target);
    std::thread::sleep(WHILE);
    let last = Look::at(&target);
    recorder.stop(libc::SIGINT).expect(0);
    let edges = [begun, monotonic()];
    fs::write(lab.path("stop"), "").expect("stop");
    program.wait().expect(0);
    stranger.wait().expect(0);
    let one = options.first() == Some(&"-t");
    let recorded = target.iter().filter(|(name, _)| !one || *name == "burn").map(|(_, tid)| *tid).collect();
    Case { lab, what, target, recorded, all: options == ["-a"], looks: [first, last], edges }.check();
}

/// The same with the workload as the recorded command.
fn of_a_command(lab: &Lab, who: &str, what: &str, options: &[&str]) {
    fs::remove_file(lab.path("stop")).ok();
    fs::remove_file(lab.path("whotgt.tids")).ok();
    let stranger = start(lab, who, &[], "whoelse", MARKER);
    threads(lab, "whoelse");
    let begun = monotonic();
    let dir = lab.dir().to_str().expect("UTF-8");
    let recorder = Background::start(lab.record_command("t.tape", options, &[who, "whotgt", dir, "own"]));
    let target = threads(lab, "whotgt");
    let first = Look::at(&target);
    std::thread::sleep(WHILE);
    let last = Look::at(&target);
    fs::write(lab.path("stop"), "").expect("stop");
    recorder.wait().expect(0);
    let edges = [begun, monotonic()];
    stranger.wait().expect(0);
    let recorded = target.values().copied().collect();
    Case { lab, what, target, recorded, all: options.contains(&"-a"), looks: [first, last], edges }.check();
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn lab_with_workload() -> Option<(Lab, String)> {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::with_bpf()?;
    let who = lab.cc("who", &[]);
    // others write there what their threads are
    fs::set_permissions(lab.dir(), fs::Permissions::from_mode(0o777)).expect("chmod");
    fs::write(lab.path(MARKER), "").expect("write");
    Some((lab, who))
}

#[test]
fn a_command_alone_or_with_the_whole_machine() {
    let Some((lab, who)) = lab_with_workload() else { return };
    of_a_command(&lab, &who, "a command", &[]);
    of_a_command(&lab, &who, "a command and all", &["-a"]);
    of_a_command(&lab, &who, "a name in a command", &["--comm", "whotgt"]);
}

#[test]
fn processes_and_threads_that_are_there() {
    let Some((lab, who)) = lab_with_workload() else { return };
    attached(&lab, &who, "all", &[], |_, _| words(&["-a"]));
    attached(&lab, &who, "a process", &[], |pid, _| words(&["-p", pid]));
    attached(&lab, &who, "a thread", &[], |_, tids| words(&["-t", &tids["burn"].to_string()]));
}

#[test]
fn a_user_a_name_a_cgroup() {
    let Some((lab, who)) = lab_with_workload() else { return };
    attached(&lab, &who, "a user", &NOBODY, |_, _| words(&["-u", "65534"]));
    attached(&lab, &who, "a name", &[], |_, _| words(&["--comm", "whotgt"]));
    let group = format!("systape-e2e-{}", std::process::id());
    let parent = Cgroup::new(&group).expect("cgroup v2 is mounted");
    let child = Cgroup::new(&format!("{group}/below")).expect("cgroup v2");
    let join = format!("echo 0 > {}/cgroup.procs; exec \"$@\"", child.dir());
    attached(&lab, &who, "a cgroup", &["sh", "-c", &join, "sh"], |_, _| words(&["-G", &group]));
    drop((child, parent));
}

#[test]
fn who_joins_and_leaves_is_recorded_from_then_to_then() {
    let Some((lab, who)) = lab_with_workload() else { return };
    let group = format!("systape-e2e-{}", std::process::id());
    let inside = Cgroup::new(&group).expect("cgroup v2 is mounted");
    let home = Path::new(inside.dir()).parent().expect("mount").to_owned();
    fs::remove_file(lab.path("stop")).ok();
    let program = start(&lab, &who, &[], "whotgt", "own");
    let target = threads(&lab, "whotgt");
    let move_to = |dir: &Path| fs::write(dir.join("cgroup.procs"), target["main"].to_string()).expect("move");
    let recorder = lab.attach("t.tape", &["-G", &group]);
    std::thread::sleep(Duration::from_millis(300));
    let before = monotonic();
    move_to(Path::new(inside.dir()));
    let joined = Look::at(&target);
    std::thread::sleep(WHILE);
    let leaving = Look::at(&target);
    move_to(&home);
    let after = monotonic();
    std::thread::sleep(Duration::from_millis(300));
    recorder.stop(libc::SIGINT).expect(0);
    fs::write(lab.path("stop"), "").expect("stop");
    program.wait().expect(0);
    let recorded: BTreeSet<i64> = target.values().copied().collect();
    let case = Case {
        lab: &lab,
        what: "moved into a cgroup and out",
        target,
        recorded,
        all: false,
        looks: [joined, leaving],
        edges: [before, after],
    };
    lab.assert_whole("t.tape");
    let rows = case.rows(&["states", "--by", "tid,state"]);
    for tid in &case.recorded {
        let mine = rows.iter().filter(|row| row["tid"] == *tid);
        let times: BTreeMap<&str, i64> =
            mine.map(|row| (row["state"].as_str().expect("state"), row["time_ns"].as_i64().expect("ns"))).collect();
        let whole: i64 = times.values().sum();
        assert!(whole <= after - before, "{tid}: {times:?} in {} ns", after - before);
        assert!(whole >= case.looks[1].0 - case.looks[0].0 - TICK, "{tid}: {times:?}");
        // what a thread does that was moved by another is known from its next event on
        let run = times.get("RUN").copied().unwrap_or(0) + times.get("?").copied().unwrap_or(0);
        assert!(
            run >= case.bounds(*tid).0 && times.get("RUN").copied().unwrap_or(0) <= case.bounds(*tid).1,
            "{times:?}"
        );
    }
    drop(inside);
}

#[test]
fn the_recorder_is_left_out_unless_it_is_asked_for() {
    let Some(lab) = Lab::with_bpf() else { return };
    for (options, shown) in [(&["-a"][..], false), (&["-a", "--with-self"], true)] {
        let recorder = lab.attach("t.tape", options);
        let own = i64::from(recorder.pid());
        std::thread::sleep(Duration::from_millis(500));
        recorder.stop(libc::SIGINT).expect(0);
        lab.assert_whole("t.tape");
        for report in [&["sched", "latency", "--by", "tid"][..], &["states", "--by", "tid"], &["sched"]] {
            let rows = lab.analyze(&[report, &["--format", "json", "t.tape"]].concat()).expect(0).json();
            assert!(!rows.is_empty(), "{report:?}");
            assert_eq!(rows.iter().any(|row| row["pid"] == own), shown, "{options:?} {report:?}");
        }
        let text = lab.analyze(&["sched", "latency", "t.tape"]).expect(0).text();
        let said = text.lines().find(|line| line.starts_with("without record itself"));
        assert_eq!(said.is_some(), !shown, "{text}");
        // at least half a second of it, at most all CPUs all the time
        let used = said.and_then(|line| line.split(" s of CPU time").next()?.rsplit(' ').next()?.parse::<f64>().ok());
        assert!(shown || used.is_some_and(|s| s > 0.0 && s < 60.0), "{text}");
        assert!(lab.calls("t.tape", &["--max-events", "2000"]).iter().all(|call| call.pid() != own));
    }
}

#[test]
fn after_losses_states_are_unknown_rather_than_wrong() {
    let Some(lab) = Lab::with_bpf() else { return };
    let busy = lab.cc("who", &[]);
    let dir = lab.dir().to_str().expect("UTF-8").to_owned();
    let crowd: Vec<_> =
        (0..40).map(|n| Background::start(lab.command(&busy).args([&format!("who{n}"), &dir, "own"]))).collect();
    // rings that are full all the time
    let recorder = lab.attach("t.tape", &["-a", "-m", "4k", "--force", "cpu-buffer=16", "--flush", "100ms"]);
    std::thread::sleep(WHILE);
    recorder.stop(libc::SIGINT).expect(0);
    fs::write(lab.path("stop"), "").expect("stop");
    crowd.into_iter().for_each(|one| drop(one.wait()));
    let lost = lab.info("t.tape")["lost"]["sched"].as_u64().unwrap_or(0);
    assert!(lost > 100, "{lost} events of the scheduler were lost: the test tests nothing");
    let cpus = std::thread::available_parallelism().expect("CPUs").get();
    for tenth in 0..15 {
        let run =
            lab.analyze(&["states", "--at", &format!("{}.{}", tenth / 10, tenth % 10), "--format", "json", "t.tape"]);
        let rows = run.expect(0).json();
        let running = rows.iter().filter(|row| row["state"] == "RUN").count();
        assert!(running <= cpus, "{running} threads run on {cpus} CPUs: {rows:?}");
    }
    let info = lab.info("t.tape");
    let whole = info["duration_ns"].as_i64().expect("ns") * i64::try_from(cpus).expect("few");
    let rows = lab.analyze(&["states", "--by", "state", "--format", "json", "t.tape"]).expect(0).json();
    let run = rows.iter().find(|row| row["state"] == "RUN").map_or(0, |row| row["time_ns"].as_i64().expect("ns"));
    assert!(run <= whole, "{run} ns on CPUs of {whole}");
    let status = lab.analyze(&["states", "--fail-on-loss", "t.tape"]).code();
    assert_eq!(status, 3);
}
