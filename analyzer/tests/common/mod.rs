//! Small tapes for black-box tests, written through systape-format's own writer, and a way to run `analyze` on them.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

pub mod asker;
pub mod asleep;
pub mod commands;
pub mod events;
pub mod exchanges;
pub mod held;
pub mod hints;
pub mod hostile;
pub mod ledger;
pub mod life;
pub mod locks;
pub mod looks;
pub mod sched;
pub mod stacks;
pub mod stats;
pub mod stored;
pub mod tables;
pub mod terminal;
pub mod tools;
pub mod udp;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use assert_cmd::Command;
use systape_abi::{Abi, number};
use systape_format::model::{
    ByteStatus, CPU_NONE, Call, CallState, Checkpoint, ClockSample, End, FD_NONE, FD_UNKNOWN, Family, Gap, GapCause,
    InFlight, ProcessEvent, ProcessKind, Session, Symbols, SyscallFormat, SyscallRow, Task,
};
use systape_format::{Encoder, SegmentBuilder, Writer};

/// Start of every tape, CLOCK_MONOTONIC: 1000 s after boot.
pub const OPEN: u64 = 1_000_000_000_000;
/// A microsecond.
pub const US: u64 = 1_000;
/// A millisecond.
pub const MS: u64 = 1_000_000;

/// One call to be written.
#[derive(Clone, Debug, Default)]
pub struct Row<'a> {
    /// Thread, see [`task`].
    pub tid: u32,
    /// Name.
    pub name: &'a str,
    /// µs after the tape's start.
    pub start: u64,
    /// µs.
    pub dur: u64,
    pub args: [u64; 6],
    pub ret: i64,
    pub errno: u16,
    pub state: CallState,
    pub path: Option<&'a str>,
    /// (argument, status, full length, bytes).
    pub captured: Vec<(u8, ByteStatus, u64, &'a [u8])>,
    pub unselected: bool,
}

/// Threads 100 and 101 of process 100 (`app`), anything else a process of its own (`other`).
pub fn task(tid: u32) -> Task {
    // most were there before the recording
    let start = |tid: u32| if tid >= BORN { OPEN + 71 * US } else { u64::from(tid) };
    let (pid, comm, upid) = if tid <= 101 { (100, "app", 1) } else { (tid, "other", tid) };
    Task {
        tid,
        pid,
        start_ns: start(tid),
        leader_start_ns: start(pid),
        comm: comm.into(),
        uid: if pid == 100 { 1000 } else { 0 },
        cgroup_id: if pid == 100 { 7 } else { 0 },
        utid: tid,
        upid,
        ..Task::default()
    }
}

/// Processes of this number and later ones are forked 71 µs after the start.
pub const BORN: u32 = 70_000;

/// What the tape says of itself.
pub fn session() -> Session {
    let clock = ClockSample { monotonic: OPEN, boottime: OPEN, realtime: 1_795_240_099_000_000_000, width: 90 };
    let read = SyscallFormat {
        abi: 1,
        nr: 0,
        name: "read".into(),
        arg_names: ["fd", "buf", "count"].map(str::to_owned).into(),
        arg_types: ["unsigned int", "char *", "size_t"].map(str::to_owned).into(),
    };
    Session {
        clock,
        boot_id: "0c3a".into(),
        hostname: b"node7".to_vec(),
        kernel_release: "6.12.0".into(),
        kernel_version: "#1 SMP".into(),
        machine: "x86_64".into(),
        cpus: 4,
        page_size: 4096,
        tool_version: "0.1.0".into(),
        arguments: ["record", "--", "app"].map(|w| w.as_bytes().to_vec()).into(),
        target: "command app".into(),
        window_open: OPEN,
        syscalls: vec![read],
        users: vec![(0, b"root".to_vec()), (1000, b"eva".to_vec())],
        cgroups: vec![(1, b"/".to_vec()), (7, b"/user.slice/app.service".to_vec())],
        string_limit: 4096,
        ..Session::default()
    }
}

/// Writes a tape segment by segment.
pub struct Tape {
    writer: Writer<File>,
    encoder: Encoder,
    now: u64,
    rows: u64,
}

impl Tape {
    /// Begins a tape at `path`.
    pub fn create(path: &Path) -> Self {
        Self::create_with(path, &session())
    }

    /// The same for a tape that says other things of itself.
    pub fn create_with(path: &Path, session: &Session) -> Self {
        let mut tape = Self::bare(path, session);
        tape.checkpoint(&[]);
        tape
    }

    /// The same that knows this at its start.
    pub fn create_at(path: &Path, session: &Session, checkpoint: &Checkpoint) -> Self {
        let mut tape = Self::bare(path, session);
        let encoded = tape.encoder.checkpoint(checkpoint).unwrap();
        tape.writer.checkpoint(encoded).unwrap();
        tape
    }

    /// Begins a chunk at which this is known.
    pub fn again(&mut self, checkpoint: &Checkpoint) {
        let encoded = self.encoder.checkpoint(checkpoint).unwrap();
        self.writer.checkpoint(encoded).unwrap();
    }

    /// The same without a checkpoint.
    fn bare(path: &Path, session: &Session) -> Self {
        let file = File::create(path).unwrap();
        Self { writer: Writer::create(file, [9; 16], session).unwrap(), encoder: Encoder::new(3), now: OPEN, rows: 0 }
    }

    /// Begins a chunk in which `open` calls are in flight: (tid, call, start in µs, first argument).
    pub fn checkpoint(&mut self, open: &[(u32, &str, u64, u64)]) {
        let in_flight = open.iter().map(|(tid, name, start, arg)| InFlight {
            utid: *tid,
            call: call(name),
            start: OPEN + start * US,
            args: vec![*arg, 0, 0],
            task_state: b'S',
        });
        let checkpoint = Checkpoint {
            ts: self.now,
            clock: ClockSample {
                monotonic: self.now,
                boottime: self.now,
                realtime: 1_795_240_099_000_000_000 + self.now - OPEN,
                width: 80,
            },
            tasks: vec![task(100), task(101)],
            in_flight: in_flight.collect(),
            source: "snapshot".into(),
            ..Checkpoint::default()
        };
        let encoded = self.encoder.checkpoint(&checkpoint).unwrap();
        self.writer.checkpoint(encoded).unwrap();
    }

    /// Writes a segment whose window ends `until` µs after the tape's start.
    pub fn segment(&mut self, until: u64, rows: &[Row<'_>], gaps: &[Gap]) {
        self.segment_with(until, rows, gaps, |_| {});
    }

    /// As [`Self::segment`], with more to push.
    pub fn segment_with(&mut self, until: u64, rows: &[Row<'_>], gaps: &[Gap], more: impl FnOnce(&mut SegmentBuilder)) {
        let mut builder = SegmentBuilder::new(self.now);
        for row in rows {
            push(&mut builder, row);
        }
        for gap in gaps {
            builder.push_gap(*gap);
        }
        more(&mut builder);
        self.rows += rows.len() as u64;
        self.now = OPEN + until * US;
        let encoded = self.encoder.segment(builder.finish(self.now)).unwrap();
        self.writer.segment(encoded).unwrap();
    }

    /// Leaves out what happened until then, as if a segment had been cut out.
    pub fn skip(&mut self, until: u64) {
        self.now = OPEN + until * US;
    }

    /// Writes names.
    pub fn symbols(&mut self, symbols: &Symbols) {
        let encoded = self.encoder.symbols(symbols).unwrap();
        self.writer.symbols(encoded).unwrap();
    }

    /// Ends the tape cleanly.
    pub fn finish(self) {
        let (now, realtime) = (self.now, 1_795_240_099_000_000_000 + self.now - OPEN);
        self.finish_at(ClockSample { monotonic: now, boottime: now, realtime, width: 80 });
    }

    /// The same with another sample of the clock.
    pub fn finish_at(self, clock: ClockSample) {
        let lost = Vec::new();
        let end = End {
            clock,
            window_close: self.now,
            reason: "command exited".into(),
            events: vec![(Family::Syscall, self.rows)],
            lost,
            command_exit: 0,
            self_cpu_ns: 12_000_000,
            self_peak_rss: 20 << 20,
            own_calls: 321,
        };
        self.writer.finish(&end).unwrap();
    }

    /// Leaves it as kill -9 would.
    pub fn abandon(self) {}
}

/// The call of that name, or number: `sys_451`.
pub fn call(name: &str) -> Call {
    let number = match name.strip_prefix("sys_") {
        Some(digits) => digits.parse().unwrap(),
        None => number(Abi::X86_64, name).unwrap(),
    };
    Call { abi: 1, nr: number }
}

fn push(builder: &mut SegmentBuilder, row: &Row<'_>) -> u32 {
    let task = builder.intern_task(&task(row.tid));
    // what the descriptor of a call whose beginning was lost stood for is not known
    let other = if row.state == CallState::LostEnter { FD_UNKNOWN } else { FD_NONE };
    let fd = row.path.map_or(other, |path| builder.intern_fd_name(path.as_bytes()));
    let call = builder.intern_call(call(row.name));
    let id = builder.push_syscall(SyscallRow {
        end: OPEN + (row.start + row.dur) * US,
        dur: row.dur * US,
        cpu: row.tid % 4,
        task,
        call,
        ret: row.ret,
        errno: row.errno,
        state: row.state,
        unselected: row.unselected,
        args: row.args,
        unknown: 0,
        fd,
        fd2: FD_NONE,
    });
    for (arg, status, full, bytes) in &row.captured {
        builder.push_captured(id, *arg, *status, *full, bytes);
    }
    id
}

/// 47 calls lost on CPU 1, in 2 to 2.5 ms.
pub fn gap() -> Gap {
    Gap {
        cause: GapCause::RingFull,
        family: Family::Syscall,
        cpu: 1,
        count: 47,
        first: OPEN + 2_000 * US,
        last: OPEN + 2_500 * US,
        pid: 0,
        ledger: false,
    }
}

/// Strings that could not be read: no loss of calls.
pub fn strings() -> Gap {
    Gap { cause: GapCause::StringFault, cpu: CPU_NONE, count: 3, ..gap() }
}

/// As the kernel's headers have it.
pub const AT_FDCWD: u64 = 0xffff_ff9c;

/// A tape with a call of every state, every fate of captured bytes, and calls that last across its three segments.
pub fn sample(path: &Path) {
    let mut tape = Tape::create(path);
    let whole = ByteStatus::Whole;
    tape.segment_with(1_000, &first_segment(whole), &[strings()], |builder| {
        let task = builder.intern_task(&task(102));
        builder.push_process(ProcessEvent {
            path: b"/bin/ls".to_vec(),
            argv: b"ls\0-l\0a b".to_vec(),
            argv_full: 9,
            argv_status: whole,
            ..ProcessEvent::new(OPEN + 850 * US, ProcessKind::Exec, task)
        });
    });
    tape.segment(2_000, &second_segment(), &[]);
    tape.segment(9_000, &third_segment(), &[]);
    tape.finish();
}

fn first_segment(whole: ByteStatus) -> Vec<Row<'static>> {
    let row = Row { tid: 100, ..Row::default() };
    vec![
        Row {
            name: "read",
            dur: 400,
            args: [3, 0x7f00, 8192, 0, 0, 0],
            ret: 8192,
            state: CallState::BeganBefore,
            path: Some("/staging/big_file"),
            tid: 101,
            ..row.clone()
        },
        Row {
            name: "openat",
            start: 10,
            dur: 8,
            args: [AT_FDCWD, 0x5600, 0o2_000_000, 0, 0, 0],
            ret: 3,
            captured: vec![(1, whole, 15, b"/etc/ld.so.conf")],
            ..row.clone()
        },
        Row {
            name: "openat",
            start: 20,
            dur: 3,
            args: [AT_FDCWD, 0x5601, 0, 0, 0, 0],
            errno: 2,
            captured: vec![(1, ByteStatus::Truncated, 900, "/very/löng\n\x1b[m".as_bytes())],
            ..row.clone()
        },
        Row {
            name: "openat",
            start: 25,
            dur: 3,
            args: [5, 0x5602, 0o1101, 0o644, 0, 0],
            errno: 13,
            path: Some("/var/log"),
            captured: vec![(1, ByteStatus::NotResident, 0, b"")],
            ..row.clone()
        },
        Row {
            name: "mmap",
            start: 30,
            dur: 12,
            args: [0, 8192, 3, 0x22, 0xffff_ffff, 0],
            ret: 0x7f34_dd54_9000,
            ..row.clone()
        },
        Row {
            name: "close",
            start: 50,
            dur: 1,
            args: [3, 0, 0, 0, 0, 0],
            path: Some("/etc/ld.so.conf"),
            ..row.clone()
        },
        Row { name: "poll", start: 60, dur: 100, args: [0x7ffc, 1, 0, 0, 0, 0], ..row.clone() },
        Row {
            name: "connect",
            start: 200,
            dur: 30,
            args: [4, 0x7ffd, 16, 0, 0, 0],
            errno: 111,
            path: Some("socket:[17]"),
            captured: vec![(1, whole, 16, b"\x02\0\0\x50\x7f\0\0\x01\0\0\0\0\0\0\0\0")],
            ..row.clone()
        },
        Row {
            name: "pipe2",
            start: 240,
            dur: 2,
            args: [0x7ffe, 0, 0, 0, 0, 0],
            captured: vec![(0, whole, 8, b"\x03\0\0\0\x04\0\0\0")],
            ..row.clone()
        },
        Row { name: "clone", start: 300, dur: 90, args: [0x11, 0, 0, 0, 0, 0], ret: 102, ..row.clone() },
        Row { name: "clone", start: 395, state: CallState::CloneChild, tid: 102, ..row.clone() },
        Row {
            name: "execve",
            start: 800,
            dur: 150,
            args: [0x6000, 0x6100, 0x6200, 0, 0, 0],
            tid: 102,
            captured: vec![(0, whole, 7, b"/bin/ls"), (1, whole, 9, b"ls\0-l\0a b")],
            ..row.clone()
        },
        Row { name: "kill", start: 960, dur: 2, args: [102, 15, 0, 0, 0, 0], ..row.clone() },
        Row { name: "sys_4511", start: 970, dur: 1, args: [1, 0, 0xff, 0, 0, 0], errno: 38, ..row.clone() },
        Row { name: "dup2", start: 980, dur: 1, args: [3, 9, 0, 0, 0, 0], ret: 9, unselected: true, ..row },
    ]
}

fn second_segment() -> Vec<Row<'static>> {
    let row = Row { tid: 100, ..Row::default() };
    vec![
        // began in the first segment's window
        Row {
            name: "wait4",
            start: 500,
            dur: 1_200,
            args: [102, 0x7fff, 0, 0, 0, 0],
            ret: 102,
            tid: 101,
            ..row.clone()
        },
        Row { name: "nanosleep", start: 990, dur: 700, args: [0x7000, 0, 0, 0, 0, 0], errno: 516, ..row.clone() },
        Row {
            name: "ptrace",
            start: 1_800,
            state: CallState::Denied,
            errno: 1,
            args: [0, 7, 0, 0, 0, 0],
            ..row.clone()
        },
        Row {
            name: "read",
            start: 1_900,
            state: CallState::LostEnter,
            args: [3, 0x7f00, 10, 0, 0, 0],
            ret: 10,
            ..row.clone()
        },
        Row {
            name: "write",
            start: 1_950,
            dur: 10,
            args: [1, 0x5610, 6, 0, 0, 0],
            ret: 6,
            path: Some("/dev/pts/0"),
            captured: vec![(1, ByteStatus::Late, 6, b"hello\n")],
            ..row
        },
    ]
}

fn third_segment() -> Vec<Row<'static>> {
    let row = Row { tid: 100, ..Row::default() };
    vec![
        Row {
            name: "futex",
            start: 600,
            dur: 8_000,
            args: [0x7f34, 128, 2, 0, 0, 0],
            state: CallState::InFlight,
            tid: 101,
            ..row.clone()
        },
        Row {
            name: "read",
            start: 2_100,
            dur: 5_000,
            args: [0, 0x7f00, 1, 0, 0, 0],
            state: CallState::Killed,
            tid: 102,
            path: Some("/dev/pts/0"),
            ..row.clone()
        },
        Row { name: "exit_group", start: 8_800, dur: 0, args: [3, 0, 0, 0, 0, 0], state: CallState::NoReturn, ..row },
    ]
}

/// `analyze` that answers: the one of `SYSTAPE_BIN_DIR`, as users have it, or cargo's.
pub fn program() -> PathBuf {
    let made = || PathBuf::from(env!("CARGO_BIN_EXE_analyze"));
    std::env::var_os("SYSTAPE_BIN_DIR").map_or_else(made, |dir| Path::new(&dir).join("analyze"))
}

/// A directory to work in and `analyze` to run there.
pub struct Place {
    // before the directory that it works in
    asker: Mutex<Option<asker::Asker>>,
    dir: tempfile::TempDir,
}

impl Place {
    /// An empty directory.
    pub fn new() -> Self {
        Self { asker: Mutex::default(), dir: tempfile::tempdir().unwrap() }
    }

    /// One with `sample.tape` in it.
    pub fn with_sample() -> Self {
        let place = Self::new();
        sample(&place.path("sample.tape"));
        sched::tape(&place.path("sched.tape"), false);
        sched::tape(&place.path("sched-lost.tape"), true);
        place
    }

    /// One with a tape of each kind beside `sample.tape`, none of which lacks anything.
    pub fn with_tapes() -> Self {
        let place = Self::with_sample();
        events::write(&place.path("events.tape"), false);
        life::write(&place.path("life.tape"), &[]);
        stacks::write(&place.path("stacks.tape"), 1);
        stacks::write(&place.path("more.tape"), 3);
        ledger::write(&place.path("ledger.tape"), &[]);
        stats::write(&place.path("stats.tape"));
        tools::write(&place.path("tools.tape"), &[]);
        udp::write(&place.path("udp.tape"), &[]);
        locks::write(&place.path("locks.tape"), &[]);
        held::write(&place.path("held.tape"), &[]);
        looks::write(&place.path("looks.tape"), &[]);
        exchanges::write(&place.path("requests.tape"), &[]);
        exchanges::write_served(&place.path("served.tape"));
        for (tape, name) in commands::MACHINES.into_iter().zip(["web.tape", "db.tape"]) {
            std::fs::copy(tape, place.path(name)).unwrap();
        }
        place
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `analyze` with `words`, separated by spaces.
    pub fn analyze(&self, words: &str) -> Output {
        let words = words.split(' ').filter(|word| !word.is_empty());
        let output = Command::new(program()).args(words).current_dir(self.dir.path()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Output { status: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The same by one process for all questions, and so without a sandbox: for tests that ask very many.
    pub fn ask(&self, words: &str) -> Output {
        self.ask_words(words.split(' ').filter(|word| !word.is_empty()))
    }

    /// The same of words that may have spaces.
    pub fn ask_words<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Output {
        let mut asker = self.asker.lock().unwrap();
        asker.get_or_insert_with(|| asker::Asker::begin(self.dir.path())).ask(words)
    }
}

/// What a run gave.
#[derive(Debug)]
pub struct Output {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Output {
    /// What stderr has beyond the line that says why there are no rows.
    pub fn told(&self) -> String {
        let lines = self.err.lines().filter(|line| !line.starts_with("analyze: nothing "));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// Its lines of JSON.
    pub fn json(&self) -> Vec<serde_json::Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
    }
}
