//! Bytes per row and ns per row of encoding and decoding, on rows made by code:
//!
//!     cargo run --release -p systape-format --example bench_codec [ROWS]
//!
//! `dd`: one thread, read and write of one byte in turn. `mixed`: 100 threads, 60 calls, skewed durations, errors,
//! pointers and paths behind fds. `sched`: switches, each with the wake-up before it, of 60 tasks on 4 CPUs. `stacks`:
//! calls with the stacks of a program that goes 50 ways, 2,000, or never the same one twice. One thread; the best of
//! five runs is printed.

use std::time::Instant;

use systape_format::model::{
    Attached, FRAME_EXACT, Frame, Mapping, MappingKind, Node, StackOf, StackStatus, Switch, Wakeup,
};
use systape_format::{
    BlockKind, Call, CallState, Core, Encoder, End, SegmentBuilder, SegmentData, Session, SyscallRow, Tape, Task,
    Writer,
};

/// xorshift: the same rows in each run.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Mostly near `typical`, sometimes much longer, as durations are.
    fn dur(&mut self, typical: u64) -> u64 {
        let tail = if self.below(100) == 0 { 1 << self.below(20) } else { 1 };
        (typical + self.below(typical / 4 + 1)) * tail
    }
}

fn task(i: u32) -> Task {
    Task {
        tid: i + 1,
        pid: i / 4 + 1,
        comm: format!("worker{i}").into_bytes(),
        utid: i + 1,
        upid: i / 4 + 1,
        ..Task::default()
    }
}

/// Segments of `rows` rows; `fill` makes row `n` at time `now`, which it moves on.
fn segments(rows: usize, mut fill: impl FnMut(&mut SegmentBuilder, &mut u64)) -> Vec<SegmentData> {
    let (mut now, mut done, mut all) = (1_000_000_000u64, 0, Vec::new());
    while done < rows {
        let mut b = SegmentBuilder::new(now);
        while !b.is_full() && done < rows {
            fill(&mut b, &mut now);
            done += 1;
        }
        now += 1;
        all.push(b.finish(now));
    }
    all
}

fn dd(rows: usize) -> Vec<SegmentData> {
    let mut rng = Rng(7);
    let mut write = false;
    segments(rows, move |b, now| {
        let task = b.intern_task(&task(0));
        let call = b.intern_call(Call { abi: 1, nr: u32::from(write) });
        let fd = b.intern_fd_name(if write { b"/dev/null" } else { b"/dev/zero" });
        let dur = rng.dur(180);
        *now += dur + 60 + rng.below(20);
        let args = [u64::from(write), 0x5581_2345_6000, 1, 0, 0, 0];
        write = !write;
        b.push_syscall(SyscallRow { end: *now, dur, task, call, ret: 1, args, fd, ..SyscallRow::default() });
    })
}

fn mixed(rows: usize) -> Vec<SegmentData> {
    let mut rng = Rng(9);
    let mut offsets = [0u64; 100];
    segments(rows, move |b, now| {
        // A few threads and calls are most of it.
        let who = rng.below(10).min(rng.below(10)) * rng.below(11);
        let nr = rng.below(8) * rng.below(8) + who % 3;
        let task = b.intern_task(&task(who as u32));
        let call = b.intern_call(Call { abi: 1, nr: nr as u32 });
        let dur = rng.dur(200 + nr * 130);
        *now += rng.dur(400);
        let failed = rng.below(12) == 0;
        let fd = match nr % 3 {
            0 => 0,
            _ => b.intern_fd_name(format!("/srv/data/file{}", rng.below(40)).as_bytes()),
        };
        offsets[who as usize] += 512;
        let args =
            [fd.into(), 0x7f00_0000_0000 + (who << 24) + rng.below(16) * 4096, 4096, offsets[who as usize], 0, 0];
        let errno = if failed { [2, 11, 110][rng.below(3) as usize] } else { 0 };
        let ret = if failed { 0 } else { [0, 1, 4096, 512][rng.below(4) as usize] };
        let state = if rng.below(5000) == 0 { CallState::LostEnter } else { CallState::Complete };
        let (cpu, end) = (rng.below(2) as u32, *now);
        b.push_syscall(SyscallRow { end, dur, cpu, task, call, ret, errno, state, args, fd, ..SyscallRow::default() });
    })
}

/// CPUs of `sched`.
const CPUS: usize = 4;

/// Every CPU goes from idle to a task that was woken, sometimes to another that waited, and back. `rows` switches.
fn sched(rows: usize) -> Vec<SegmentData> {
    let mut rng = Rng(11);
    let mut running = [0u32; CPUS];
    let mut home = [0u32; 61];
    segments(rows, move |b, now| {
        let cpu = rng.below(CPUS as u64) as u32;
        let prev = running[cpu as usize];
        // Few tasks do most; from idle a task, from a task mostly idle.
        let who = 1 + (rng.below(60).min(rng.below(60))) as u32;
        let elsewhere = running.contains(&who);
        let next = if elsewhere || (prev != 0 && rng.below(10) < 7) { 0 } else { who };
        *now += rng.dur(3000);
        if next == prev {
            return;
        }
        let of = |b: &mut SegmentBuilder, i: u32| b.intern_task(&task(i));
        let (prev_id, next_id) = (of(b, prev), of(b, next));
        if next != 0 {
            let irq = rng.below(3) == 0;
            let waker_cpu = if irq { cpu } else { rng.below(CPUS as u64) as u32 };
            let waker = (!irq).then(|| of(b, running[waker_cpu as usize]));
            let target_cpu = std::mem::replace(&mut home[next as usize], cpu);
            let ts = *now - 1000 - rng.below(1500);
            b.push_wakeup(Wakeup {
                ts,
                cpu: waker_cpu,
                waker,
                wakee: next_id,
                target_cpu,
                new: rng.below(500) == 0,
                softirq: false,
                ..Wakeup::default()
            });
        }
        let preempted = prev != 0 && rng.below(8) == 0;
        let prev_state = if prev == 0 || preempted { 0 } else { 1 + u32::from(rng.below(12) == 0) };
        running[cpu as usize] = next;
        b.push_switch(Switch {
            ts: *now,
            cpu,
            prev: prev_id,
            next: next_id,
            prev_state,
            preempted,
            ..Switch::default()
        });
    })
}

fn run_sched(rows: usize) -> Result<(), systape_format::Error> {
    let (_, encoded) = best(|| {
        let data = sched(rows);
        let start = Instant::now();
        let mut encoder = Encoder::new(3);
        let mut writer = Writer::create(Vec::new(), [1; 16], &Session::default())?;
        for segment in data {
            writer.segment(encoder.segment(segment)?)?;
        }
        writer.finish(&End::default()).map(|bytes| (bytes, start.elapsed()))
    });
    let (bytes, encode) = encoded?;
    let tape = Tape::from_bytes(bytes)?;
    let all = || (0..tape.segments().len()).map(|i| tape.segment(i));
    let (read, (switches, wakeups)) = best(|| {
        all().fold((0, 0), |(switches, wakeups), s| {
            let dict = s.dict().expect("own tape");
            let (a, b) = (s.switches(&dict).expect("own tape"), s.wakeups(&dict).expect("own tape"));
            (switches + a.len(), wakeups + b.len())
        })
    });
    println!("sched: {switches} switches, {wakeups} wake-ups, {} segments", tape.segments().len());
    for (kind, rows) in [(BlockKind::Sched, switches), (BlockKind::Wakeups, wakeups)] {
        let stored: u64 = all().map(|s| s.stored_len(kind)).sum();
        println!("  {:<16} {:.3} bytes/row", kind.name(), stored as f64 / rows as f64);
    }
    let rows = (switches + wakeups) as f64;
    println!("  encode {:.1} ns/row, decode {:.2}", encode.as_nanos() as f64 / rows, read / rows);
    Ok(())
}

/// Way `path` through a made-up program: frames from the outermost inwards. A function has up to 8 calls in it, the first
/// ones likelier.
fn walk(path: u64, kernel: bool, mut f: impl FnMut(usize, u64)) {
    let rng = &mut Rng(path.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    rng.next();
    let depth = if kernel { 4 + rng.below(6) } else { 8 + rng.below(24) };
    let mut place = u64::from(kernel);
    for _ in 0..depth {
        let way = rng.below(8).min(rng.below(8)).min(rng.below(8));
        // The function called at one place is always the same, and many places call one.
        place = (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % 4000 * 16 + way;
        let function = place / 16;
        let mapping = if kernel { 0 } else { 1 + function as usize % 5 };
        f(mapping, function * 0x240 + way * 23 + 9);
    }
}

/// Calls with a stack each, some with the kernel's part.
fn stacks(rows: usize, paths: u64) -> Vec<SegmentData> {
    let mut rng = Rng(13);
    let mappings: Vec<Mapping> = (0..6u8)
        .map(|i| Mapping {
            kind: if i == 0 { MappingKind::Kernel } else { MappingKind::Elf },
            build_id: (0..20).map(|b: u8| b.wrapping_mul(37) ^ i.wrapping_mul(91)).collect(),
            path: format!("/usr/lib/x86_64-linux-gnu/library{i}.so.6").into_bytes(),
            upid: 0,
        })
        .collect();
    segments(rows, move |b, now| {
        let task = b.intern_task(&task(rng.below(8) as u32));
        let call = b.intern_call(Call { abi: 1, nr: rng.below(20) as u32 });
        *now += rng.dur(2000);
        let row = b.push_syscall(SyscallRow { end: *now, dur: rng.dur(300), task, call, ..SyscallRow::default() });
        let mut leaf = |kernel| {
            let mut parent = None;
            walk(rng.below(paths).min(rng.below(paths)), kernel, |mapping, offset| {
                let mapping = b.intern_mapping(&mappings[mapping]);
                let flags = if kernel { FRAME_EXACT } else { 0 };
                let frame = b.intern_frame(Frame { mapping, offset, flags });
                parent = Some(b.intern_node(Node { parent, frame }));
            });
            parent
        };
        let (user, kernel) = (leaf(false), leaf(true));
        let kernel = kernel.filter(|_| row % 3 == 0);
        b.push_stack(Attached { of: StackOf::Syscall, row, user, kernel, status: StackStatus::Complete });
    })
}

fn run_stacks(rows: usize, paths: u64) -> Result<(), systape_format::Error> {
    let mut encode = f64::MAX;
    let mut bytes = Vec::new();
    for _ in 0..5 {
        let data = stacks(rows, paths);
        let start = Instant::now();
        let mut encoder = Encoder::new(3);
        let mut writer = Writer::create(Vec::new(), [1; 16], &Session::default())?;
        for segment in data {
            writer.segment(encoder.segment(segment)?)?;
        }
        encode = encode.min(start.elapsed().as_nanos() as f64);
        bytes = writer.finish(&End::default())?;
    }
    let tape = Tape::from_bytes(bytes)?;
    let all = || (0..tape.segments().len()).map(|i| tape.segment(i));
    let (read, (nodes, frames)) = best(|| {
        all().map(|s| s.stacks().expect("own tape")).fold((0, 0), |n, s| (n.0 + s.nodes.len(), n.1 + s.frames.len()))
    });
    let stored: u64 = all().map(|s| s.stored_len(BlockKind::Stacks)).sum();
    let n = rows as f64;
    let ways = if paths == u64::MAX { "ever new".to_owned() } else { paths.to_string() };
    println!("stacks: {rows} rows of {ways} ways, {} segments, {nodes} nodes, {frames} frames", tape.segments().len());
    println!("  {:<16} {:.3} bytes/row", BlockKind::Stacks.name(), stored as f64 / n);
    println!("  encode with calls {:.1} ns/row, decode {:.2}", encode / n, read / n);
    Ok(())
}

fn best<T>(mut f: impl FnMut() -> T) -> (f64, T) {
    let mut result = None;
    let mut least = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let value = f();
        least = least.min(start.elapsed().as_secs_f64());
        result = Some(value);
    }
    (least * 1e9, result.expect("the loop ran"))
}

/// ns for a row of a call already interned: two lookups by value, one push.
fn push_ns() -> f64 {
    let (task, n) = (task(1), 65536);
    let row = SyscallRow { dur: 100, fd: 2, ..SyscallRow::default() };
    let (ns, _) = best(|| {
        let mut b = SegmentBuilder::new(0);
        for end in 0..n {
            let task = b.intern_task(&task);
            let call = b.intern_call(Call { abi: 1, nr: end as u32 & 1 });
            b.push_syscall(SyscallRow { end, task, call, ..row.clone() });
            std::hint::black_box(b.is_full());
        }
        b
    });
    ns / n as f64
}

fn run(name: &str, rows: usize, make: fn(usize) -> Vec<SegmentData>) -> Result<(), systape_format::Error> {
    let n = rows as f64;
    let push = push_ns();
    let (mut encode, mut bytes) = (f64::MAX, Vec::new());
    for _ in 0..5 {
        let data = make(rows);
        let start = Instant::now();
        let mut encoder = Encoder::new(3);
        let mut writer = Writer::create(Vec::new(), [1; 16], &Session::default())?;
        for segment in data {
            writer.segment(encoder.segment(segment)?)?;
        }
        encode = encode.min(start.elapsed().as_secs_f64() * 1e9);
        bytes = writer.finish(&End::default())?;
    }
    let tape = Tape::from_bytes(bytes)?;
    let size = tape.len_bytes() as f64;
    println!("{name}: {rows} rows, {} segments, {:.3} bytes/row", tape.segments().len(), size / n);
    for kind in BlockKind::of_segment() {
        let stored: u64 = (0..tape.segments().len()).map(|i| tape.segment(i).stored_len(kind)).sum();
        println!("  {:<16} {:.3} bytes/row", kind.name(), stored as f64 / n);
    }
    let all = || (0..tape.segments().len()).map(|i| tape.segment(i));
    let mut core = Core::default();
    let (scan, total) = best(|| {
        let mut total = 0u64;
        for s in all() {
            let dict = s.dict().expect("own tape");
            s.core_into(&dict, &mut core).expect("own tape");
            total += core.dur.iter().sum::<u64>();
        }
        total
    });
    let (time, _) = best(|| {
        for s in all() {
            let dict = s.dict().expect("own tape");
            s.core_into(&dict, &mut core).expect("own tape");
            s.time(&dict, &core).expect("own tape");
        }
    });
    let (listing, _) = best(|| {
        for s in all() {
            let dict = s.dict().expect("own tape");
            let core = s.core(&dict).expect("own tape");
            s.time(&dict, &core).expect("own tape");
            s.args(&core).expect("own tape");
            s.fds(&core).expect("own tape");
        }
    });
    println!("  push {push:.1} ns/row, encode {:.1}", encode / n);
    println!("  decode dict + core {:.2} ns/row = {:.0} M rows/s (sum of dur {total})", scan / n, n / scan * 1e3);
    println!("  + time {:.2}, + args and fds {:.2} ns/row", time / n, listing / n);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows = std::env::args().nth(1).map_or(Ok(1_000_000), |arg| arg.parse())?;
    run("dd", rows, dd)?;
    run("mixed", rows, mixed)?;
    run_sched(rows)?;
    for paths in [50, 2000, u64::MAX] {
        run_stacks(rows / 100, paths)?;
    }
    Ok(())
}
