//! Writes a tape of made-up calls for measuring: `cargo run --release --example synthetic -- OUT.tape ROWS [dd|mixed]`.
//!
//! `dd` is one thread that reads and writes in turn; `mixed` is 16 threads with paths, failures and calls that last across
//! segments. The same arguments give the same tape.

use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::{Context, Result, bail};
use systape_abi::{Abi, number};
use systape_format::model::{
    ByteStatus, Call, CallState, Checkpoint, ClockSample, End, FD_NONE, FD_UNKNOWN, Family, Session, SyscallRow, Task,
};
use systape_format::{Encoder, SegmentBuilder, Writer};

const START: u64 = 1_000_000_000_000;

/// Marsaglia's xorshift64: the same numbers everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let [_, path, rows, rest @ ..] = words.as_slice() else { bail!("usage: synthetic OUT.tape ROWS [dd|mixed]") };
    let rows: u64 = rows.parse().context("ROWS")?;
    let mixed = rest.first().is_some_and(|kind| kind == "mixed");
    let clock = ClockSample { monotonic: START, boottime: START, realtime: 1_795_240_099_000_000_000, width: 100 };
    let session = Session {
        clock,
        window_open: START,
        hostname: b"bench".to_vec(),
        machine: "x86_64".into(),
        target: "synthetic".into(),
        ..Session::default()
    };
    let mut writer = Writer::create(BufWriter::new(File::create(path)?), [7; 16], &session)?;
    let mut encoder = Encoder::new(3);
    writer.checkpoint(encoder.checkpoint(&Checkpoint {
        ts: START,
        clock,
        source: "snapshot".into(),
        ..Checkpoint::default()
    })?)?;
    let mut tape = Tape { numbers: Numbers(88_172_645_463_325_252), now: START, mixed, open: vec![START; 16] };
    let mut left = rows;
    while left > 0 {
        let count = left.min(65_536);
        let from = tape.now;
        let mut builder = SegmentBuilder::new(from);
        for _ in 0..count {
            if mixed { tape.mixed(&mut builder) } else { tape.dd(&mut builder) }
        }
        tape.now += 1;
        writer.segment(encoder.segment(builder.finish(tape.now))?)?;
        left -= count;
    }
    let end = End {
        clock: ClockSample { monotonic: tape.now, realtime: clock.realtime + tape.now - START, ..clock },
        window_close: tape.now,
        reason: "command exited".into(),
        events: vec![(Family::Syscall, rows)],
        ..End::default()
    };
    writer.finish(&end)?.flush()?;
    Ok(())
}

struct Tape {
    numbers: Numbers,
    now: u64,
    mixed: bool,
    /// When each thread's next call begins.
    open: Vec<u64>,
}

fn call(name: &str) -> Call {
    Call { abi: Abi::X86_64 as u8, nr: number(Abi::X86_64, name).unwrap_or(0) }
}

impl Tape {
    fn task(&self, thread: u32) -> Task {
        let (tid, pid) = if self.mixed { (4000 + thread, 4000 + thread / 4 * 4) } else { (4000, 4000) };
        let comm = if self.mixed { format!("worker-{}", thread / 4) } else { "dd".into() };
        Task {
            tid,
            pid,
            utid: thread + 1,
            upid: thread / 4 + 1,
            start_ns: 1,
            leader_start_ns: 1,
            comm: comm.into_bytes(),
            uid: 1000,
            ..Task::default()
        }
    }

    fn dd(&mut self, builder: &mut SegmentBuilder) {
        let name = if self.now.is_multiple_of(2) { "read" } else { "write" };
        let dur = 150 + self.numbers.below(60);
        self.now += (dur + 200) | 1;
        let (task, call) = (builder.intern_task(&self.task(0)), builder.intern_call(call(name)));
        let fd = builder.intern_fd_name(if name == "read" { b"/dev/zero" } else { b"/dev/null" });
        let args = [u64::from(name == "write"), 0x55fa_d126_3000, 1, 0, 0, 0];
        builder.push_syscall(SyscallRow {
            end: self.now,
            dur,
            task,
            call,
            ret: 1,
            args,
            fd,
            state: CallState::Complete,
            ..SyscallRow::default()
        });
    }

    fn mixed(&mut self, builder: &mut SegmentBuilder) {
        self.now += 300 + self.numbers.below(900);
        let thread = self.numbers.below(16) as usize;
        let start = self.open[thread];
        let span = self.now.saturating_sub(start).max(2);
        // a few calls wait for as long as their thread was quiet, most are short
        let dur = if self.numbers.below(200) == 0 { span - 1 } else { (200 + self.numbers.below(4000)).min(span - 1) };
        self.open[thread] = self.now;
        let task = builder.intern_task(&self.task(thread as u32));
        let choice = self.numbers.below(10);
        let (name, args, fd, ret, errno): (&str, [u64; 6], u32, i64, u16) = match choice {
            0 | 1 => ("openat", [0xffff_ff9c, 0x7ffc_5f8d_b0a0, 0o2_000_000, 0, 0, 0], FD_NONE, 3, 0),
            2 => ("openat", [0xffff_ff9c, 0x7ffc_5f8d_b0a0, 0o2_000_000, 0, 0, 0], FD_NONE, 0, 2),
            3 => ("futex", [0x7f34_dd50_9478, 128, 2, 0, 0, 0], FD_NONE, 0, 0),
            4 => ("mmap", [0, 8192, 3, 0x22, 0xffff_ffff, 0], FD_NONE, 0x7f34_dd54_9000, 0),
            5 => ("close", [3, 0, 0, 0, 0, 0], FD_UNKNOWN, 0, 0),
            6 | 7 => {
                ("read", [5, 0x55fa_d126_3500, 8192, 0, 0, 0], builder.intern_fd_name(b"/staging/big_file"), 8192, 0)
            }
            _ => ("write", [1, 0x55fa_d126_3500, 79, 0, 0, 0], builder.intern_fd_name(b"/var/log/SchedLog"), 79, 0),
        };
        let call = builder.intern_call(call(name));
        let row = SyscallRow {
            end: self.now,
            dur,
            cpu: thread as u32 % 4,
            task,
            call,
            ret,
            errno,
            args,
            fd,
            state: CallState::Complete,
            ..SyscallRow::default()
        };
        let id = builder.push_syscall(row);
        if name == "openat" {
            let path = format!("/usr/lib/python3/dist-packages/module{}.py", self.numbers.below(500));
            builder.push_captured(id, 1, ByteStatus::Whole, path.len() as u64, path.as_bytes());
        }
    }
}
