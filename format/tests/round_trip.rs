//! What goes in comes out, whatever the values.

mod common;

use common::{
    Events, GROUPS, ID, Place, Stack, TableRow, Value, Window, checkpoint, clock, encode, end, sample, session,
    symbols, tape, task, window,
};
use proptest::prelude::*;
use systape_format::exercise::{read_segments, read_symbols};
use systape_format::model::{
    Ancestor, Args, BESIDE, BlockCause, BlockHolds, BlockIo, BlockLayer, Came, CommandLine, Core, FD_FIRST, Fds,
    Function, LedgerReason, LedgerRow, NetState, OomMemory, RecordedFamilies, RunState, Sample, SignalEvent,
    SignalInfo, SignalKind, Sleeper, StackOf, StackSettings, StackStatus, Stacks, Switch, Symbol, Symbols, UringOp,
    Wakeup,
};
use systape_format::reader::PickedRows;
use systape_format::{
    BlockKind, ByteStatus, Call, CallState, Captured, Checkpoint, Encoder, End, Error, Family, Fd, FdTable, Gap,
    GapCause, InFlight, ProcessEvent, ProcessKind, SegmentBuilder, Session, SyscallRow, Tape, Task, Writer,
};

fn check(windows: &[Window]) {
    let bytes = encode(windows);
    let tape = Tape::from_bytes(bytes).unwrap();
    assert_eq!(tape.findings(), []);
    assert!(tape.has_index());
    assert_eq!(tape.session(), &session());
    assert_eq!(tape.end(), Some(&end(windows.last().map_or(1000, |w| w.end))));
    assert_eq!(tape.segments().len(), windows.len());
    // Windows drawn at random overlap, and a call cannot last longer than the clock runs.
    if let [w] = windows
        && w.rows.iter().all(|r| r.dur <= r.end)
    {
        assert_eq!(tape.verify(&|_| ()), []);
    }
    for (i, (w, got)) in windows.iter().zip(read_segments(&tape)).enumerate() {
        let (order, carry_rows) = w.order();
        let dict = got.dict.unwrap();
        assert_eq!((&dict.tasks, &dict.calls), (&w.tasks, &w.calls));
        assert_eq!((dict.window_start, dict.window_end), (w.start, w.end));
        let pick = |f: &dyn Fn(&SyscallRow) -> u64| order.iter().map(|&i| f(&w.rows[i])).collect::<Vec<u64>>();
        let wide = |v: &[u32]| v.iter().map(|&v| u64::from(v)).collect::<Vec<_>>();
        let core = got.core.unwrap().unwrap();
        assert_eq!(core.carry_rows, carry_rows);
        assert_eq!(core.dur, pick(&|r| r.dur));
        assert_eq!(wide(&core.task), pick(&|r| r.task.into()));
        assert_eq!(wide(&core.call), pick(&|r| r.call.into()));
        assert_eq!(core.errno.iter().map(|&e| u64::from(e)).collect::<Vec<_>>(), pick(&|r| r.errno.into()));
        assert_eq!(core.state.iter().map(|&s| s as u64).collect::<Vec<_>>(), pick(&|r| r.state as u64));
        let unselected = pick(&|r| r.unselected.into());
        if core.unselected.is_empty() {
            assert!(unselected.iter().all(|&u| u == 0));
        } else {
            assert_eq!(core.unselected.iter().map(|&u| u64::from(u)).collect::<Vec<_>>(), unselected);
        }
        let time = got.time.unwrap().unwrap();
        assert_eq!(time.start, pick(&|r| r.end.saturating_sub(r.dur)));
        assert_eq!(wide(&time.cpu), pick(&|r| r.cpu.into()));
        let args = got.args.unwrap().unwrap();
        assert_eq!(args.ret, order.iter().map(|&i| w.rows[i].ret).collect::<Vec<_>>());
        assert_eq!(args.args, order.iter().map(|&i| w.rows[i].args).collect::<Vec<_>>());
        let unknown: Vec<u8> = order.iter().map(|&i| w.rows[i].unknown).collect();
        let none = unknown.iter().all(|bits| *bits == 0);
        assert_eq!(args.unknown, if none { Vec::new() } else { unknown });
        let fds = got.fds.unwrap().unwrap();
        check_picked(&tape, i, &core, (&args, &fds, got.captured.as_ref().unwrap().as_ref().unwrap()));
        if fds.fd.is_empty() {
            assert!(w.rows.iter().all(|r| r.fd == 0 && r.fd2 == 0));
        } else {
            assert_eq!((wide(&fds.fd), &fds.names), (pick(&|r| r.fd.into()), &w.names));
            if fds.fd2.is_empty() {
                assert!(w.rows.iter().all(|r| r.fd2 == 0));
            } else {
                assert_eq!(wide(&fds.fd2), pick(&|r| r.fd2.into()));
            }
        }
        let mut captured = w.captured.clone();
        for c in &mut captured {
            c.row = order.iter().position(|&i| i == c.row as usize).unwrap() as u32;
        }
        captured.sort_by_key(|c| (c.row, c.arg));
        assert_eq!(got.captured.unwrap().unwrap(), captured);
        let mut processes = w.processes.clone();
        processes.sort_by_key(|e| e.ts);
        assert_eq!(got.processes.unwrap().unwrap(), processes);
        let sorted = w.events.clone().sorted();
        assert_eq!(got.switches.unwrap().unwrap(), sorted.switches);
        assert_eq!(got.wakeups.unwrap().unwrap(), sorted.wakeups);
        assert_eq!(got.blocks.unwrap().unwrap(), sorted.blocks);
        assert_eq!(got.signals.unwrap().unwrap(), sorted.signals);
        assert_eq!(got.nets.unwrap().unwrap(), sorted.nets);
        assert_eq!(got.urings.unwrap().unwrap(), sorted.urings);
        assert_eq!(got.samples.unwrap().unwrap(), sorted.samples);
        assert_eq!(got.sleepers.unwrap().unwrap(), sorted.sleepers);
        assert_eq!(got.ledger.unwrap().unwrap(), sorted.ledger);
        let tables = got.tables.unwrap().unwrap();
        let stacks = got.stacks.unwrap();
        assert_eq!(TableRow::all(&tables, &stacks), sorted.tables);
        let times = || sorted.tables.iter().map(|row| row.ts);
        let span = (tape.segments()[i].table_start_min, tape.segments()[i].table_end_max);
        assert_eq!(span, (times().min().unwrap_or(0), times().max().unwrap_or(0)));
        assert_eq!(Stack::all(&stacks), w.sorted_stacks());
        assert_eq!(got.gaps.unwrap(), w.gaps);
        let info = &tape.segments()[i];
        assert_eq!(info.rows as usize, w.rows.len());
        assert_eq!(info.max_dur, w.rows.iter().map(|r| r.dur).max().unwrap_or(0));
        assert_eq!(
            info.failures as usize,
            w.rows.iter().filter(|r| ![0, 512, 513, 514, 516].contains(&r.errno)).count()
        );
        assert!(w.tasks.iter().all(|t| info.may_contain_pid(t.pid)));
    }
}

/// Some rows have what they have when all are read.
fn check_picked(tape: &Tape, at: usize, core: &Core, (args, fds, captured): (&Args, &Fds, &[Captured])) {
    let segment = tape.segment(at);
    for step in [1, 3, usize::MAX] {
        let rows: Vec<u32> = (0..core.dur.len() as u32).skip(at % 2).step_by(step).collect();
        let picked = PickedRows::only(core, rows.iter().copied().chain([u32::MAX]));
        let only = segment.args_of(core, &picked).unwrap();
        assert_eq!((only.ret.len(), only.args.len()), (args.ret.len(), args.args.len()));
        let named = |fds: &Fds, column: &[u32], row: u32| match column[row as usize] {
            file if file >= FD_FIRST => Err(fds.names[(file - FD_FIRST) as usize].clone()),
            file => Ok(file),
        };
        let files = segment.fds_of(core, &picked).unwrap();
        assert_eq!((files.fd.len(), files.fd2.len()), (fds.fd.len(), fds.fd2.len()));
        assert!(files.names.len() <= 2 * rows.len(), "names of other rows");
        for row in rows.iter().copied() {
            let at = row as usize;
            assert_eq!((only.ret.get(at), only.args.get(at)), (args.ret.get(at), args.args.get(at)));
            for (mine, all) in [(&files.fd, &fds.fd), (&files.fd2, &fds.fd2)].iter().filter(|(_, all)| !all.is_empty())
            {
                assert_eq!(named(&files, mine, row), named(fds, all, row));
            }
        }
        let of_rows: Vec<Captured> = captured.iter().filter(|value| rows.contains(&value.row)).cloned().collect();
        assert_eq!(segment.captured_of(core, Some(&picked)).unwrap(), of_rows);
    }
}

/// Small numbers, powers of two and their neighbours, anything.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..300u64,
        2 => (0..64u32, -1..=1i64).prop_map(|(bit, d)| (1u64 << bit).wrapping_add_signed(d)),
        1 => Just(u64::MAX),
        1 => any::<u64>(),
    ]
}

prop_compose! {
    fn row(tasks: u32, calls: u32, names: u32)(
        end in prop_oneof![3 => 5000..6000u64, 1 => number()],
        dur in number(),
        cpu in prop_oneof![0..4u32, any::<u32>()],
        task in 0..tasks,
        call in 0..calls,
        ret in number(),
        errno in prop_oneof![3 => Just(0u16), 1 => 1..600u16, 1 => any::<u16>()],
        state in 1..9u8,
        unselected in any::<bool>(),
        args in prop::array::uniform6(number()),
        unknown in prop_oneof![3 => Just(0u8), 1 => 0..64u8],
        fd in 0..names + 2,
        fd2 in prop_oneof![3 => Just(0), 1 => 0..names + 2],
    ) -> SyscallRow {
        let state = CallState::from_raw(state).unwrap();
        SyscallRow { end, dur, cpu, task, call, ret: ret as i64, errno, state, unselected, args, unknown, fd, fd2 }
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..20)
}

prop_compose! {
    fn any_task(i: u32)(
        tid in any::<u32>(), pid in any::<u32>(), start_ns in number(), comm in bytes(), exe in bytes(), env in bytes(),
        uid in any::<u32>(), cgroup_id in number(), recorded in any::<u32>().prop_map(RecordedFamilies::from_raw),
    ) -> Task {
        Task { tid, pid, start_ns, leader_start_ns: start_ns, comm, exe, uid, cgroup_id, utid: i, upid: i, ns_tid: 1, ns_pid: 2, ppid: 3, recorded, env }
    }
}

prop_compose! {
    fn event(tasks: u32)(
        ts in number(), kind in 1..6u8, task in 0..tasks, parent in 0..tasks, flags in any::<u32>(),
        path in bytes(), argv in bytes(), status in 1..8u8, group_dead in any::<bool>(), comm in bytes(),
    ) -> ProcessEvent {
        let kind = match kind {
            1 => ProcessKind::Fork,
            2 => ProcessKind::Exec,
            3 => ProcessKind::Exit,
            4 => ProcessKind::Rename,
            _ => ProcessKind::Cred,
        };
        ProcessEvent {
            ts, kind, task, parent, flags, exit_code: flags, group_dead, path, argv, argv_full: ts,
            argv_status: ByteStatus::from_raw(status).unwrap(), old_tid: flags, comm,
        }
    }
}

prop_compose! {
    fn switch(tasks: u32)(
        ts in number(), cpu in prop_oneof![0..3u32, any::<u32>()], prev in 0..tasks, next in 0..tasks,
        prev_state in prop_oneof![0..3u32, any::<u32>()], preempted in any::<bool>(),
        throttled in any::<bool>(), unthrottled_ns in number(),
        came in prop::option::of((1..=u64::MAX >> 1, any::<bool>()).prop_map(|(ns, at_most)| Came { ns, at_most })),
    ) -> Switch {
        Switch { ts, cpu, prev, next, prev_state, preempted, throttled, unthrottled_ns, came }
    }
}

prop_compose! {
    fn wakeup(tasks: u32)(
        ts in number(), cpu in any::<u32>(), waker in prop::option::of(0..tasks), wakee in 0..tasks,
        target_cpu in 0..3u32, new in any::<bool>(), softirq in any::<bool>(), throttled in any::<bool>(),
    ) -> Wakeup {
        Wakeup { ts, cpu, waker, wakee, target_cpu, new, softirq, throttled }
    }
}

/// `t` at some distance from `of`, or a number of its own; 0 among them.
fn near(of: u64) -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(of), (-300..300i64).prop_map(move |d| of.wrapping_add_signed(d)), number()]
}

prop_compose! {
    fn block(tasks: u32)(complete in number())(
        issued in near(complete), queued in near(complete), complete in Just(complete), dev in any::<u32>(),
        sector in number(), (bytes, flags) in any::<(u32, u32)>(), (errno, requeues, merged) in any::<(u16, u16, u16)>(),
        bio in any::<bool>(), cause in 0..4usize, origin in prop::option::of(0..tasks),
        owner in prop::option::of(0..tasks), cgroup_id in number(), inode in number(),
        holds in any::<u8>(), file in number(),
    ) -> BlockIo {
        let cause = [BlockCause::Unknown, BlockCause::Direct, BlockCause::Dirtier, BlockCause::CgroupOwner][cause];
        let layer = if bio { BlockLayer::Bio } else { BlockLayer::Request };
        BlockIo {
            complete, queued, issued, dev, sector, bytes, flags, errno, requeues, merged, layer, origin, cause, owner,
            cgroup_id, inode, holds: BlockHolds::from_raw(holds % 8), file,
        }
    }
}

fn ancestors() -> impl Strategy<Value = Vec<Ancestor>> {
    let one = (any::<u32>(), number(), bytes()).prop_map(|(pid, start_ns, comm)| Ancestor { pid, start_ns, comm });
    prop::collection::vec(one, 0..3)
}

prop_compose! {
    fn signal(tasks: u32, calls: u32)(
        (ts, addr, ip, argv_full) in (number(), number(), number(), number()),
        (sig, si_pid, si_uid, flags) in any::<(u32, u32, u32, u32)>(), (code, errno) in any::<(i32, i32)>(),
        kind in 0..3usize, info in 0..4usize, status in 1..8u8, result in any::<u8>(), target in 0..tasks,
        sender in prop::option::of(0..tasks), call in prop::option::of(0..calls),
        call_args in prop_oneof![Just([0; 4]), prop::array::uniform4(number())],
        (call_path, argv) in (bytes(), bytes()),
        (sender_ancestors, target_ancestors) in (ancestors(), ancestors()),
        oom in prop_oneof![Just([0; 4]), prop::array::uniform4(number())],
    ) -> SignalEvent {
        SignalEvent {
            ts,
            kind: [SignalKind::Generate, SignalKind::Deliver, SignalKind::OomVictim][kind],
            sig, code, errno,
            info: [SignalInfo::Unknown, SignalInfo::Siginfo, SignalInfo::NoInfo, SignalInfo::Priv][info],
            result, flags, target, sender, call, call_args, call_path, si_pid, si_uid, addr, ip, sender_ancestors,
            target_ancestors, argv,
            argv_status: ByteStatus::from_raw(status).unwrap(),
            argv_full,
            oom: OomMemory { total_vm: oom[0], anon: oom[1], file: oom[2], shmem: oom[3] },
        }
    }
}

prop_compose! {
    fn net(tasks: u32)(
        ts in number(), task in prop::option::of(0..tasks), socket in number(),
        (family, protocol, sport, dport) in any::<(u16, u16, u16, u16)>(),
        (old_state, new_state) in any::<(u8, u8)>(),
        sender in prop::option::of(0..tasks), saddr in prop::collection::vec(any::<u8>(), 0..17), daddr in prop::collection::vec(any::<u8>(), 0..17),
    ) -> NetState {
        NetState { ts, task, sender, socket, family, protocol, old_state, new_state, sport, dport, saddr, daddr }
    }
}

prop_compose! {
    fn counted(tasks: u32, calls: u32)(
        task in prop::option::of(0..tasks), call in 0..calls, reason in 1..5u8, errno in any::<u16>(), state in 1..9u8,
        cpu in any::<u32>(), sum in number(), (min, max) in (number(), number()), (first, last) in (number(), number()),
        sizes in prop::collection::btree_map(0..64u8, 1..1u64 << 40, 0..64), count in 1..u64::MAX,
    ) -> LedgerRow {
        let sizes: Vec<(u8, u64)> = sizes.into_iter().collect();
        let count = if sizes.is_empty() { count } else { sizes.iter().map(|(_, n)| n).sum() };
        let (reason, state) = (LedgerReason::from_raw(reason).unwrap(), CallState::from_raw(state).unwrap());
        let (min, max, first, last) = (min.min(max), max.max(min), first.min(last), last.max(first));
        LedgerRow { task, call, reason, errno, state, cpu, count, sum, min, max, first, last, sizes }
    }
}

prop_compose! {
    fn any_events(tasks: u32, calls: u32)(
        switches in prop::collection::vec(switch(tasks), 0..30),
        wakeups in prop::collection::vec(wakeup(tasks), 0..30),
        blocks in prop::collection::vec(block(tasks), 0..20),
        signals in prop::collection::vec(signal(tasks, calls), 0..4),
        nets in prop::collection::vec(net(tasks), 0..5),
        urings in prop::collection::vec((number(), 0..tasks, any::<u8>()), 0..20),
        tables in prop::collection::vec(drawn(), 0..20),
        samples in prop::collection::vec((number(), any::<u32>(), 0..tasks, any::<bool>()), 0..20),
        sleepers in prop::collection::vec((number(), 0..tasks, any::<u8>()), 0..20),
        ledger in prop::collection::vec(counted(tasks, calls), 0..8),
    ) -> Events {
        let tables = tables.into_iter().map(|row| row.into_row(tasks)).collect();
        let urings = urings.into_iter().map(|(ts, task, op)| UringOp { ts, task, op }).collect();
        let samples = samples.into_iter().map(|(ts, cpu, task, kernel)| Sample { ts, cpu, task, kernel }).collect();
        let sleepers = sleepers.into_iter().map(|(ts, task, state)| Sleeper { ts, task, state }).collect();
        Events { switches, wakeups, blocks, signals, nets, urings, samples, sleepers, ledger, tables }
    }
}

/// Frames of few places, so that stacks share callers, and of any.
/// A row of one of the two tables, before it is known how many tasks there are.
#[derive(Clone, Debug)]
struct Drawn {
    first: bool,
    ts: u64,
    task: Option<u32>,
    text: Option<Vec<u8>>,
    number: u64,
    flag: bool,
    stack: Option<Vec<Place>>,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let text = prop::option::of(prop::sample::select(vec![b"a".to_vec(), b"".to_vec(), b"/b\xff".to_vec()]));
    let rest = (prop::option::of(any::<u32>()), text, number(), any::<bool>(), prop::option::of(places()));
    (any::<bool>(), number(), rest).prop_map(|(first, ts, (task, text, number, flag, stack))| Drawn {
        first,
        ts,
        task,
        text,
        number,
        flag,
        stack,
    })
}

impl Drawn {
    fn into_row(self, tasks: u32) -> TableRow {
        let [first, other] = common::table_defs();
        let task = Value::Task(self.task.filter(|_| tasks > 0).map(|task| task % tasks));
        let text = Value::Bytes(self.text);
        match self.first {
            true => {
                let values = vec![task, text.clone(), text, Value::Number(self.number), Value::Stack(self.stack)];
                TableRow { def: first, ts: self.ts, values }
            }
            false => {
                // some numbers are not known: their place is 0
                let unread = [self.stack.is_none(), self.task.is_none()].map(u64::from);
                let values =
                    [self.number * (1 - unread[0]), u64::from(self.flag) * (1 - unread[1]), unread[0] | unread[1] << 1];
                TableRow { def: other, ts: self.ts, values: values.map(Value::Number).to_vec() }
            }
        }
    }
}

fn places() -> impl Strategy<Value = Vec<Place>> {
    let place = prop_oneof![
        3 => (0..3u32, 0..3u64, 0..2u8),
        1 => (0..20u32, number(), 0..8u8),
    ];
    let place = place.prop_map(|(mapping, offset, flags)| (common::mapping(mapping), offset, flags));
    prop::collection::vec(place, 0..8)
}

/// A stack whose event is still to be chosen.
fn stack() -> impl Strategy<Value = (prop::sample::Index, Stack)> {
    let status = (0..17u8).prop_map(|raw| StackStatus::from_raw(raw).unwrap());
    (any::<prop::sample::Index>(), 0..StackOf::ALL.len(), places(), places(), status).prop_map(
        |(event, of, user, kernel, status)| (event, Stack { of: StackOf::ALL[of], row: 0, user, kernel, status }),
    )
}

/// The drawn stacks, each of one of the events there are.
fn any_stacks(calls: usize, events: &Events, drawn: Vec<(prop::sample::Index, Stack)>) -> Vec<Stack> {
    let len = |of| match of {
        StackOf::Syscall => calls,
        _ => events.times(of).len(),
    };
    let of_event = |(event, s): (prop::sample::Index, Stack)| Stack { row: event.index(len(s.of)) as u32, ..s };
    drawn.into_iter().filter(|(_, s)| len(s.of) > 0).map(of_event).collect()
}

prop_compose! {
    fn any_window()(
        n_tasks in prop_oneof![1..4u32, 60..80u32],
        n_calls in 1..130u32,
        n_names in 0..3u32,
        start in prop_oneof![Just(0u64), Just(5000), number()],
    )(
        tasks in (0..n_tasks).map(any_task).collect::<Vec<_>>(),
        rows in prop::collection::vec(row(n_tasks, n_calls, n_names), 0..80),
        values in prop::collection::vec((any::<prop::sample::Index>(), 0..=BESIDE, any::<bool>(), 1..8u8, number(), bytes()), 0..20),
        processes in prop::collection::vec(event(n_tasks), 0..4),
        events in any_events(n_tasks, n_calls),
        gap_counts in prop::collection::vec(number(), 0..3),
        drawn in prop::collection::vec(stack(), 0..60),
        n_calls in Just(n_calls),
        n_names in Just(n_names),
        start in Just(start),
    ) -> Window {
        let mut captured: Vec<Captured> = values
            .into_iter()
            .filter(|_| !rows.is_empty())
            .map(|(row, arg, second, status, full, bytes)| Captured {
                row: row.index(rows.len()) as u32,
                arg: if arg == BESIDE { arg } else { arg | u8::from(second) << 3 },
                status: ByteStatus::from_raw(status).unwrap(),
                full,
                bytes,
            })
            .collect();
        let rows_len = rows.len();
        // Two values of one argument keep no order of their own.
        captured.sort_by_key(|c| (c.row, c.arg));
        captured.dedup_by_key(|c| (c.row, c.arg));
        let gap = |count| Gap { cause: GapCause::Skipped, family: Family::Sched, cpu: u32::MAX, count, first: 1, last: count, pid: 9, ledger: false };
        Window {
            start,
            end: u64::MAX,
            tasks,
            calls: (0..n_calls).map(|i| Call { abi: (i % 3) as u8, nr: i * 77777 }).collect(),
            names: (0..n_names).map(|i| vec![0xff, i as u8]).collect(),
            rows,
            captured,
            processes,
            stacks: any_stacks(rows_len, &events, drawn),
            events,
            gaps: gap_counts.into_iter().map(gap).collect(),
        }
    }
}

prop_compose! {
    fn any_symbols()(
        mappings in 1..6u32,
    )(
        symbols in prop::collection::vec(
            (0..mappings, number(), prop::collection::vec((bytes(), bytes(), any::<u32>()), 0..4)), 0..60),
        failures in prop::collection::vec((0..mappings, ".{0,20}"), 0..4),
        mappings in Just(mappings),
    ) -> Symbols {
        let function = |(name, file, line)| Function { name, file, line };
        let symbol = |(mapping, offset, functions): (u32, u64, Vec<_>)| {
            Symbol { mapping, offset, functions: functions.into_iter().map(function).collect() }
        };
        Symbols {
            mappings: (0..mappings).map(common::mapping).collect(),
            symbols: symbols.into_iter().map(symbol).collect(),
            failures,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_windows(windows in prop::collection::vec(any_window(), 0..3)) {
        check(&windows);
    }

    #[test]
    fn any_names(symbols in any_symbols()) {
        let mut writer = Writer::create(Vec::new(), ID, &session()).unwrap();
        writer.symbols(Encoder::new(3).symbols(&symbols).unwrap()).unwrap();
        let tape = Tape::from_bytes(writer.finish(&End::default()).unwrap()).unwrap();
        assert_eq!(tape.verify(&|_| ()), []);
        // Sorted, and of two of a place the later one.
        let mut truth = symbols;
        truth.symbols.reverse();
        truth.symbols.sort_by_key(|s| (s.mapping, s.offset));
        truth.symbols.dedup_by_key(|s| (s.mapping, s.offset));
        truth.failures.sort_by_key(|f| f.0);
        assert_eq!((tape.symbol_blocks(), tape.symbols(0).unwrap()), (1, truth));
    }
}

#[test]
fn sample_is_whole() {
    check(&[window(0), window(1), window(2)]);
    let tape = Tape::from_bytes(sample()).unwrap();
    assert_eq!(tape.verify(&|_| ()), []);
    assert_eq!(tape.checkpoints(), 2);
    assert_eq!(tape.checkpoint(0).unwrap(), checkpoint(1000));
    assert_eq!(tape.checkpoint(1).unwrap(), checkpoint(3000));
    assert!(matches!(tape.checkpoint(2), Err(Error::Missing { .. })));
    assert_eq!(tape.symbol_blocks(), 2);
    assert!(read_symbols(&tape).into_iter().all(|s| s.unwrap() == symbols()));
    assert!(matches!(tape.symbols(2), Err(Error::Missing { .. })));
    assert_eq!(tape.tape_id(), ID);
    assert_eq!(tape.version(), (1, 5));
    assert_eq!(tape.complete_until(), 4000);
    assert_eq!(tape.len_bytes(), sample().len() as u64);
}

#[test]
fn empty_tape() {
    check(&[]);
    let tape = Tape::from_bytes(encode(&[])).unwrap();
    assert_eq!(tape.verify(&|_| ()), []);
    assert_eq!((tape.segments(), tape.checkpoints()), (&[][..], 0));
}

#[test]
fn extremes() {
    let row = |end, dur| SyscallRow { end, dur, ..SyscallRow::default() };
    check(&[Window {
        start: 10,
        end: u64::MAX,
        tasks: vec![Task::default()],
        calls: vec![Call { abi: 255, nr: u32::MAX }],
        rows: vec![
            row(u64::MAX, 0),
            row(u64::MAX, u64::MAX),
            row(0, u64::MAX),
            row(0, 0),
            SyscallRow { ret: i64::MIN, errno: u16::MAX, cpu: u32::MAX, args: [u64::MAX; 6], ..row(20, 1) },
            SyscallRow { ret: i64::MAX, ..row(20, 1) },
            SyscallRow { ret: -1, fd: 1, ..row(20, 0) },
        ],
        ..Window::default()
    }]);
}

#[test]
fn a_segment_of_gaps_alone_has_times() {
    let gap = window(0).gaps[0];
    let w = Window { start: 1000, end: 2000, gaps: vec![gap], ..Window::default() };
    check(std::slice::from_ref(&w));
    let tape = Tape::from_bytes(encode(&[w])).unwrap();
    assert_eq!(tape.verify(&|_| ()), []);
    let info = &tape.segments()[0];
    assert_eq!((info.start_min, info.end_min, info.end_max), (1001, 1001, 1009));
    assert_eq!(info.calls, Some(vec![]));
    assert!(info.may_contain_pid(1), "gaps of no process concern all");
}

#[test]
fn a_segment_of_events_alone_has_times() {
    let w = Window {
        events: common::events(1000),
        rows: vec![],
        captured: vec![],
        processes: vec![],
        stacks: vec![],
        ..window(0)
    };
    check(std::slice::from_ref(&w));
    let tape = Tape::from_bytes(encode(std::slice::from_ref(&w))).unwrap();
    assert_eq!(tape.verify(&|_| ()), []);
    let info = &tape.segments()[0];
    // The I/O was queued before the window; the first switch was late.
    assert_eq!((info.rows, info.start_min, info.end_min, info.end_max), (0, 900, 995, 1500));
    assert_eq!(info.pids, Some(vec![100]));
    let switches = Events { switches: w.events.switches.clone(), ..Events::default() };
    let tape = Tape::from_bytes(encode(&[Window { events: switches, gaps: vec![], ..w }])).unwrap();
    let info = &tape.segments()[0];
    assert_eq!((info.start_min, info.end_min, info.end_max), (995, 995, 1020));
    assert_eq!(tape.segment(0).wakeups(&tape.segment(0).dict().unwrap()).unwrap(), [], "none were written");
}

#[test]
fn events_at_the_edges_of_time() {
    let ends = [u64::MAX, 0, u64::MAX, 1, 0];
    let io = |&t: &u64| BlockIo { complete: t, issued: u64::MAX, queued: t, ..BlockIo::default() };
    let sent = &common::events(1000).signals[1];
    let w = Window {
        start: 10,
        end: u64::MAX,
        tasks: vec![Task::default()],
        calls: vec![Call::default(), Call { abi: 1, nr: 62 }],
        events: Events {
            switches: ends.map(|ts| Switch { ts, cpu: u32::MAX, prev_state: u32::MAX, ..Switch::default() }).to_vec(),
            wakeups: ends.map(|ts| Wakeup { ts, target_cpu: u32::MAX, ..Wakeup::default() }).to_vec(),
            blocks: ends.iter().map(io).collect(),
            signals: ends.map(|ts| SignalEvent { ts, target: 0, ..sent.clone() }).to_vec(),
            nets: ends.map(|ts| NetState { ts, ..NetState::default() }).to_vec(),
            urings: ends.map(|ts| UringOp { ts, ..UringOp::default() }).to_vec(),
            samples: ends.map(|ts| Sample { ts, ..Sample::default() }).to_vec(),
            sleepers: ends.map(|ts| Sleeper { ts, ..Sleeper::default() }).to_vec(),
            ledger: ends
                .map(|first| LedgerRow { last: u64::MAX, ..LedgerRow { first, ..common::counted(0, None) } })
                .to_vec(),
            tables: ends.map(|ts| TableRow { ts, ..common::events(1000).tables.remove(1) }).to_vec(),
        },
        ..Window::default()
    };
    check(&[w]);
}

#[test]
fn a_wrong_time_of_an_event_is_told() {
    let whole = encode(&[window(0)]);
    let kinds = [BlockKind::Sched, BlockKind::Wakeups, BlockKind::Blocks, BlockKind::Signals, BlockKind::Net];
    for kind in kinds.into_iter().chain([BlockKind::Uring, BlockKind::Samples, BlockKind::Sleepers, BlockKind::Ledger])
    {
        let blocks = Tape::from_bytes(whole.clone()).unwrap().blocks();
        let at = blocks.iter().find(|b| b.kind == kind).unwrap().offset as usize;
        let mut bytes = whole.clone();
        // Its header's end_max: later than anything in the segment.
        bytes[at + 56..at + 64].copy_from_slice(&9999u64.to_le_bytes());
        common::fix_crc(&mut bytes, at);
        let tape = Tape::from_bytes(bytes).unwrap();
        assert!(tape.findings().iter().any(|f| f.text.contains("the index is not used")), "{kind:?}");
        let findings = tape.verify(&|_| ());
        assert!(findings.iter().any(|f| f.text.contains("the events")), "{kind:?}: {findings:?}");
    }
}

#[test]
fn old_tapes_have_none_of_the_new_families() {
    for name in ["kernel-6.1-sh.tape", "kernel-6.12-sh.tape"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes").join(name);
        let tape = Tape::open(&path).unwrap();
        assert_eq!(tape.version(), (1, 0));
        assert_eq!(tape.verify(&|_| ()), []);
        assert_eq!((&tape.session().device_links[..], &tape.session().families[..]), (&[][..], &[][..]));
        assert_eq!((&tape.session().stacks, tape.symbol_blocks()), (&StackSettings::default(), 0));
        for cp in systape_format::exercise::read_checkpoints(&tape) {
            let cp = cp.unwrap();
            assert_eq!((cp.run, cp.commands), (vec![], vec![]));
        }
        assert_ne!(tape.segments().len(), 0);
        for (i, s) in read_segments(&tape).into_iter().enumerate() {
            assert!(!s.core.unwrap().unwrap().dur.is_empty());
            assert_eq!(s.switches.unwrap().unwrap(), []);
            assert_eq!(s.wakeups.unwrap().unwrap(), []);
            assert_eq!(s.blocks.unwrap().unwrap(), []);
            assert_eq!(s.signals.unwrap().unwrap(), []);
            assert_eq!(s.nets.unwrap().unwrap(), []);
            assert_eq!(s.urings.unwrap().unwrap(), []);
            assert_eq!(s.samples.unwrap().unwrap(), []);
            assert_eq!(s.sleepers.unwrap().unwrap(), []);
            assert_eq!(s.stacks.unwrap(), Stacks::default());
            assert!(!tape.segment(i).has(BlockKind::Sched));
        }
    }
}

#[test]
fn many_pids_are_in_a_filter() {
    let tasks: Vec<Task> = (0..200).map(|i| Task { pid: 5000 + i, ..task(i) }).collect();
    let w = Window { tasks, ..window(0) };
    let tape = Tape::from_bytes(encode(&[w])).unwrap();
    let info = &tape.segments()[0];
    assert_eq!(info.pids, None);
    assert!((5000..5200).all(|pid| info.may_contain_pid(pid)));
    assert!((6000..7000).any(|pid| !info.may_contain_pid(pid)));
    assert_eq!(tape.verify(&|_| ()), []);
}

#[test]
fn a_full_segment_has_64_ki_rows() {
    let mut b = SegmentBuilder::new(0);
    b.intern_task(&Task::default());
    b.intern_call(Call::default());
    let mut n = 0u64;
    while !b.is_full() {
        b.push_syscall(SyscallRow {
            end: n * 100,
            dur: n % 50,
            ret: -(n as i64),
            args: [n; 6],
            ..SyscallRow::default()
        });
        n += 1;
    }
    assert_eq!(n, 65536);
    let mut writer = Writer::create(Vec::new(), ID, &session()).unwrap();
    writer.segment(Encoder::new(1).segment(b.finish(n * 100)).unwrap()).unwrap();
    let tape = Tape::from_bytes(writer.finish(&End::default()).unwrap()).unwrap();
    assert_eq!(tape.verify(&|_| ()), []);
    assert_eq!(tape.segments()[0].rows, 65536);
}

#[test]
fn a_large_checkpoint_takes_several_blocks() {
    let fds = |n: i32| {
        (0..n).map(|fd| Fd { fd, path: format!("/srv/data/{fd}").into_bytes(), cloexec: fd % 2 == 0 }).collect()
    };
    let cp = Checkpoint {
        ts: 5,
        clock: clock(5),
        tasks: (0..30_000).map(task).collect(),
        fd_tables: (0..4)
            .map(|i| FdTable { upid: i, complete: true, cwd: b"/".to_vec(), fds: fds(50_000), ..FdTable::default() })
            .collect(),
        in_flight: (0..40_000).map(|i| InFlight { utid: i, args: vec![1; 6], ..InFlight::default() }).collect(),
        run: (0..200_000).map(|utid| RunState { utid, state: b'S', ..RunState::default() }).collect(),
        commands: (0..50_000)
            .map(|upid| CommandLine { upid, argv: format!("worker\0{upid}").into_bytes(), full: 12 })
            .collect(),
        source: "tracked".to_owned(),
    };
    let mut encoder = Encoder::new(1);
    let mut writer = Writer::create(Vec::new(), ID, &session()).unwrap();
    for _ in 0..2 {
        writer.checkpoint(encoder.checkpoint(&cp).unwrap()).unwrap();
        writer.segment(encoder.segment(window(0).data()).unwrap()).unwrap();
    }
    let bytes = writer.finish(&End::default()).unwrap();
    let tape = Tape::from_bytes(bytes.clone()).unwrap();
    let parts = tape.blocks().iter().filter(|b| b.kind == BlockKind::Checkpoint).count();
    assert!(parts >= 6, "{parts}");
    assert_eq!(tape.checkpoints(), 2);
    assert!(tape.checkpoint(1).unwrap() == cp);
    // Without the index, and with the last part of the second checkpoint gone.
    let last = tape.blocks().iter().rfind(|b| b.kind == BlockKind::Checkpoint).unwrap().offset;
    let tape = Tape::from_bytes(bytes[..last as usize].to_vec()).unwrap();
    assert!(tape.checkpoint(0).unwrap() == cp);
    assert!(matches!(tape.checkpoint(1), Err(Error::Missing { segment: 1, .. })));
}

#[test]
fn a_long_recording_has_several_index_blocks() {
    let mut encoder = Encoder::new(1);
    let mut writer = Writer::create(Vec::new(), ID, &session()).unwrap();
    let tasks: Vec<Task> = (0..200).map(task).collect();
    let n = 9000;
    for i in 0..n {
        let w = Window {
            start: i * 10,
            end: i * 10 + 10,
            tasks: if i % 100 == 0 { tasks.clone() } else { vec![task(i as u32)] },
            calls: (0..112).map(|nr| Call { abi: 1, nr }).collect(),
            rows: vec![SyscallRow { end: i * 10 + 5, ..SyscallRow::default() }],
            ..Window::default()
        };
        writer.segment(encoder.segment(w.data()).unwrap()).unwrap();
    }
    let bytes = writer.finish(&end(n * 10)).unwrap();
    let tape = Tape::from_bytes(bytes).unwrap();
    let index = tape.blocks().iter().filter(|b| b.kind == BlockKind::Index).count();
    assert!(index > 1, "{index}");
    assert_eq!(tape.segments().len() as u64, n);
    assert_eq!(tape.findings(), []);
    assert!(tape.has_index());
    assert_eq!(tape.segments()[8999].segment, 8999);
}

#[test]
fn names_of_many_places_take_several_blocks() {
    let function = |i: u64| Function { name: format!("f{i}").into_bytes(), file: vec![], line: 1 };
    let all = Symbols {
        mappings: vec![common::mapping(0)],
        symbols: (0..300_000).map(|i| Symbol { mapping: 0, offset: i * 16, functions: vec![function(i)] }).collect(),
        failures: vec![],
    };
    let mut writer = Writer::create(Vec::new(), ID, &session()).unwrap();
    writer.symbols(Encoder::new(1).symbols(&all).unwrap()).unwrap();
    writer.symbols(Encoder::new(1).symbols(&Symbols::default()).unwrap()).unwrap();
    let bytes = writer.finish(&End::default()).unwrap();
    let with = Tape::from_bytes(bytes.clone()).unwrap();
    assert_eq!(with.verify(&|_| ()), []);
    assert!(with.has_index() && with.symbol_blocks() > 1, "{}", with.symbol_blocks());
    let index = with.blocks().iter().find(|b| b.kind == BlockKind::Index).unwrap().offset as usize;
    for tape in [with, Tape::from_bytes(bytes[..index].to_vec()).unwrap()] {
        let parts: Vec<Symbols> = read_symbols(&tape).into_iter().map(Result::unwrap).collect();
        assert!(parts.iter().all(|p| p.mappings == all.mappings));
        assert!(parts.into_iter().flat_map(|p| p.symbols).eq(all.symbols.iter().cloned()));
    }
}

#[test]
fn a_stack_outside_the_tables_is_refused() {
    use systape_format::model::{Attached, Frame, Node, Sample};
    let attached = Attached { of: StackOf::Sample, row: 0, user: None, kernel: None, status: StackStatus::Complete };
    let refused = |what: &str, fill: &dyn Fn(&mut SegmentBuilder)| {
        let mut b = SegmentBuilder::new(0);
        b.intern_task(&Task::default());
        b.push_sample(Sample::default());
        fill(&mut b);
        let e = Encoder::new(1).segment(b.finish(1)).unwrap_err().to_string();
        assert!(e.contains(what), "{what}: {e}");
    };
    let frame = Frame::default();
    refused("event of a stack 1 was not", &|b| b.push_stack(Attached { row: 1, ..attached }));
    refused("event of a stack 0 was not", &|b| b.push_stack(Attached { of: StackOf::Switch, ..attached }));
    refused("node of a stack 0 was not", &|b| b.push_stack(Attached { user: Some(0), ..attached }));
    refused("node of a stack 7 was not", &|b| b.push_stack(Attached { kernel: Some(7), ..attached }));
    refused("frame of a node 0 was not", &|b| _ = b.intern_node(Node { parent: None, frame: 0 }));
    refused("mapping of a frame 0 was not", &|b| _ = b.intern_frame(frame));
    refused("unknown flags 0x9 of a frame", &|b| {
        b.intern_mapping(&common::mapping(0));
        b.intern_frame(Frame { flags: 9, ..frame });
    });
    refused("caller of a node 0 was not", &|b| {
        b.intern_mapping(&common::mapping(0));
        b.intern_frame(frame);
        b.intern_node(Node { parent: Some(0), frame: 0 });
    });
}

#[test]
fn the_first_of_two_stacks_of_one_event_is_kept() {
    let mut w = window(0);
    let other = Stack { status: StackStatus::Late, user: vec![], ..w.stacks[0].clone() };
    w.stacks.push(other.clone());
    check(std::slice::from_ref(&w));
    w.stacks.insert(0, other);
    check(std::slice::from_ref(&w));
}

#[test]
fn a_session_that_fits_no_block_is_refused() {
    let session = Session { users: (0..200_000).map(|i| (i, vec![b'u'; 40])).collect(), ..session() };
    let e = Writer::create(Vec::new(), ID, &session).unwrap_err();
    assert!(matches!(e, Error::TooLarge { limit: 8388608, .. }), "{e}");
}

#[test]
fn a_row_outside_the_tables_is_refused() {
    let mut b = SegmentBuilder::new(0);
    b.push_syscall(SyscallRow::default());
    let e = Encoder::new(1).segment(b.finish(1)).unwrap_err();
    assert!(e.to_string().contains("task 0 was not interned"), "{e}");
    let refused = |what: &str, events: Events| {
        let w = Window { tasks: vec![Task::default()], calls: vec![Call::default()], events, ..Window::default() };
        let e = Encoder::new(1).segment(w.data()).unwrap_err();
        assert!(e.to_string().contains(what) && e.to_string().contains("1 was not interned"), "{what}: {e}");
    };
    let Events { switches, wakeups, blocks, signals, nets, urings, samples, sleepers, ledger, tables } =
        common::events(1000);
    refused("task of a switch", Events { switches, ..Events::default() });
    refused("task of a wake-up", Events { wakeups, ..Events::default() });
    refused("task of a block I/O", Events { blocks, ..Events::default() });
    refused("task of a signal", Events { signals: signals.clone(), ..Events::default() });
    let signals = vec![SignalEvent { target: 0, ..signals[1].clone() }];
    refused("call of a signal", Events { signals, ..Events::default() });
    refused("task of a socket", Events { nets, ..Events::default() });
    refused("task of an io_uring operation", Events { urings, ..Events::default() });
    refused("task of a row", Events { tables, ..Events::default() });
    refused("task of a sample", Events { samples, ..Events::default() });
    refused("task of a sleeper", Events { sleepers, ..Events::default() });
    refused("task of a ledger row", Events { ledger: ledger.clone(), ..Events::default() });
    let ledger = vec![LedgerRow { task: None, ..ledger[0].clone() }];
    refused("call of a ledger row", Events { ledger, ..Events::default() });
}

#[test]
fn a_long_command_line_of_a_checkpoint_is_cut() {
    let long = CommandLine { upid: 1, argv: vec![b'x'; (1 << 20) + 1], full: 0 };
    let cp = Checkpoint { commands: vec![long; 10], ..checkpoint(5) };
    let mut writer = Writer::create(Vec::new(), ID, &session()).unwrap();
    writer.checkpoint(Encoder::new(1).checkpoint(&cp).unwrap()).unwrap();
    let tape = Tape::from_bytes(writer.finish(&End::default()).unwrap()).unwrap();
    assert!(tape.blocks().iter().all(|b| b.raw_len <= 5 << 20));
    let commands = tape.checkpoint(0).unwrap().commands;
    assert_eq!(commands.len(), 10);
    assert!(commands.iter().all(|c| (c.argv.len(), c.full) == (1 << 20, (1 << 20) + 1)));
}

/// Takes `room` bytes and then fails, once.
struct Full {
    bytes: Vec<u8>,
    room: usize,
}

impl std::io::Write for Full {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        if self.room == 0 {
            self.room = usize::MAX;
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let n = buf.len().min(self.room);
        self.room -= n;
        self.bytes.extend_from_slice(&buf[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn goes_on_after_a_full_disk() {
    let whole = sample();
    let mut kept = Vec::new();
    for room in (1000..whole.len() - 1500).step_by(37) {
        let mut encoder = Encoder::new(3);
        let mut writer = Writer::create(Full { bytes: Vec::new(), room }, ID, &session()).unwrap();
        let (mut failed, mut names) = (Vec::new(), Vec::new());
        for i in 0..3 {
            if i % 2 == 0 {
                failed.push(writer.checkpoint(encoder.checkpoint(&checkpoint(1000 * (i + 1))).unwrap()).is_err());
            }
            failed.push(writer.segment(encoder.segment(window(i).data()).unwrap()).is_err());
            if i % 2 == 0 {
                names.push(writer.symbols(encoder.symbols(&symbols()).unwrap()).is_err());
            }
        }
        assert_eq!(failed.iter().chain(&names).filter(|&&f| f).count(), 1, "room {room}");
        let bytes = writer.finish(&end(4000)).unwrap().bytes;
        let tape = Tape::from_bytes(bytes).unwrap();
        assert!(tape.end().is_some());
        assert_ne!(tape.verify(&|_| ()), [], "room {room}: a hole that is not told");
        assert_eq!(read_symbols(&tape).len(), names.iter().filter(|&&f| !f).count(), "room {room}");
        assert!(read_symbols(&tape).into_iter().all(|s| s.unwrap() == symbols()), "room {room}");
        let segments = failed.len() - 2 - usize::from(failed[1] || failed[2] || failed[4]);
        assert!(tape.segments().len() >= segments, "room {room}: {} segments", tape.segments().len());
        kept.push(common::Truth::of(&whole).check(&tape, "full disk"));
    }
    assert!(kept.contains(&(3 * GROUPS)) && kept.iter().any(|&k| k < 3 * GROUPS), "{kept:?}");
}

#[test]
fn opens_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tape");
    std::fs::write(&path, sample()).unwrap();
    let tape = Tape::open(&path).unwrap();
    assert_eq!(common::Truth::of(&sample()).check(&tape, "file"), 3 * GROUPS);
    // Someone truncates it while it is open: errors, no crash.
    std::fs::write(&path, &sample()[..500]).unwrap();
    let e = tape.segment(2).dict().unwrap_err();
    assert!(matches!(e, Error::Truncated { .. }), "{e}");
    assert_ne!(tape.verify(&|_| ()), []);
    std::fs::write(&path, b"").unwrap();
    assert!(matches!(Tape::open(&path), Err(Error::Empty)));
    assert!(matches!(Tape::open(dir.path()), Err(Error::Io { .. })));
    assert!(Tape::open(&dir.path().join("none")).unwrap_err().to_string().contains("none"));
}

#[test]
fn two_ids_differ() {
    assert_ne!(tape([1; 16], &[]), tape([2; 16], &[]));
}
