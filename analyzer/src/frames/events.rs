//! Tables of events other than calls, of what was counted, and of what is missing.

use rustc_hash::FxHashMap;
use systape_abi::{iouring_op_name, tcp};
use systape_format::model::{
    CPU_NONE, CallState, Dict, ERRNO_ANY, Ends, FORK_THREAD, Family, Gap, LedgerReason, LedgerRow, ProcessKind,
    SIGNAL_GROUP, SignalKind, StackOf,
};
use systape_format::reader::Segment;
use systape_format::table::{TableDef, Type};
use systape_format::tables::TableRows;

use super::make::Maker;
use super::values::{NONE, Values};
use super::{Batch, Frame, defs, stored};
use systape_answers::derive::net::words::{address, protocol_name};
use systape_answers::lines::row::incomplete;
use systape_events::filter::failed;
use systape_events::loss::{cause_name, cause_text, cut_text, family_name, finding_text, is_loss, miss_text};

type Read = Result<Batch, systape_format::Error>;

/// The number of a stack: its segment's, then its place among the distinct ones of that.
pub(super) fn stack_id(segment: u32, at: usize) -> Option<i64> {
    Some(i64::from(segment) << 24 | i64::try_from(at).ok().filter(|at| *at < 1 << 24)?)
}

impl Frame<'_> {
    fn maker<'m>(&'m self, def: &'m TableDef, rows: usize) -> Maker<'m> {
        Maker::new(def, self.wanted.iter().copied(), self.common, rows)
    }

    /// The rows that `passes`: of a cut those of its window and its tasks. The others tell reports of what was before.
    fn batch(&self, maker: &Maker<'_>, rows: usize, passes: impl Fn(usize) -> bool) -> Read {
        Ok(self.kept(maker, rows, passes))
    }

    fn kept(&self, maker: &Maker<'_>, rows: usize, passes: impl Fn(usize) -> bool) -> Batch {
        let mut columns = maker.fields(self.wanted);
        if !self.question.scope.narrows() {
            return Batch { rows, columns };
        }
        let kept: Vec<bool> = (0..rows).map(passes).collect();
        columns.iter_mut().for_each(|values| values.keep(&kept));
        Batch { rows: kept.iter().filter(|kept| **kept).count(), columns }
    }

    /// Whether an event at `ts` is one of those that are asked for; one of nobody known is everybody's.
    fn passes<const N: usize>(&self, dict: &Dict, ts: u64, tasks: [Option<u32>; N]) -> bool {
        let scope = &self.question.scope;
        let mut known = tasks.into_iter().flatten().filter_map(|task| dict.tasks.get(task as usize)).peekable();
        scope.at(ts) && (known.peek().is_none() || known.any(|task| scope.task(task)))
    }

    fn task(&self, maker: &mut Maker<'_>, group: &str, dict: &Dict, of: impl Fn(usize) -> Option<u32>) {
        let session = self.tape.session();
        maker.task(group, &dict.tasks, |task| session.cgroup_path(task.cgroup_id), of);
    }

    /// Rows of table `sched`.
    pub(super) fn switches(&self, segment: &Segment<'_>, dict: &Dict) -> Read {
        let events = segment.switches(dict)?;
        let mut maker = self.maker(&defs::SCHED, events.len());
        maker.time("ts_ns", |at| Some(events[at].ts));
        maker.int("cpu", |at| Some(events[at].cpu.into()));
        self.task(&mut maker, "prev", dict, |at| Some(events[at].prev));
        maker.word("prev_state", |at| letter(events[at].prev_letter()));
        maker.flag("preempted", |at| Some(events[at].preempted));
        self.task(&mut maker, "next", dict, |at| Some(events[at].next));
        self.batch(&maker, events.len(), |at| {
            self.passes(dict, events[at].ts, [Some(events[at].prev), Some(events[at].next)])
        })
    }

    /// Rows of table `wakeups`.
    pub(super) fn wakeups(&self, segment: &Segment<'_>, dict: &Dict) -> Read {
        let events = segment.wakeups(dict)?;
        let mut maker = self.maker(&defs::WAKEUPS, events.len());
        maker.time("ts_ns", |at| Some(events[at].ts));
        maker.int("cpu", |at| Some(events[at].cpu.into()));
        self.task(&mut maker, "waker", dict, |at| events[at].waker);
        self.task(&mut maker, "wakee", dict, |at| Some(events[at].wakee));
        maker.int("target_cpu", |at| Some(events[at].target_cpu.into()));
        maker.flag("new", |at| Some(events[at].new));
        maker.flag("softirq", |at| Some(events[at].softirq));
        self.batch(&maker, events.len(), |at| {
            self.passes(dict, events[at].ts, [events[at].waker, Some(events[at].wakee)])
        })
    }

    /// Rows of table `signals`.
    pub(super) fn signals(&self, segment: &Segment<'_>, dict: &Dict) -> Read {
        let events = segment.signals(dict)?;
        let mut maker = self.maker(&defs::SIGNALS, events.len());
        let generate = |at: usize| events[at].kind == SignalKind::Generate;
        maker.time("ts_ns", |at| Some(events[at].ts));
        maker.word("event", |at| {
            Some(match events[at].kind {
                SignalKind::Generate => "generate",
                SignalKind::Deliver => "deliver",
                SignalKind::OomVictim => "oom-victim",
            })
        });
        let signal = |at: usize| Some(events[at].sig).filter(|_| events[at].kind != SignalKind::OomVictim);
        maker.int("signal", |at| signal(at).map(i64::from));
        maker.text("signal_name", |at| signal(at).map(|sig| systape_abi::signal_name(sig).as_bytes().to_vec()));
        maker.int("code", |at| Some(events[at].code.into()));
        maker.int("result", |at| generate(at).then(|| events[at].result.into()));
        maker.flag("to_group", |at| Some(events[at].flags & SIGNAL_GROUP != 0));
        self.task(&mut maker, "sender", dict, |at| events[at].sender);
        self.task(&mut maker, "target", dict, |at| Some(events[at].target));
        self.batch(&maker, events.len(), |at| {
            self.passes(dict, events[at].ts, [events[at].sender, Some(events[at].target)])
        })
    }

    /// Rows of table `process_events`.
    pub(super) fn life(&self, segment: &Segment<'_>, dict: &Dict) -> Read {
        let events = segment.processes(dict)?;
        let mut maker = self.maker(&defs::LIFE, events.len());
        let is = |at: usize, kind| events[at].kind == kind;
        maker.time("ts_ns", |at| Some(events[at].ts));
        maker.word("event", |at| {
            Some(match events[at].kind {
                ProcessKind::Fork => "fork",
                ProcessKind::Exec => "exec",
                ProcessKind::Exit => "exit",
                ProcessKind::Rename => "rename",
                ProcessKind::Cred => "cred",
                ProcessKind::Cgroup => "cgroup",
                ProcessKind::Target => "target",
            })
        });
        self.task(&mut maker, "", dict, |at| Some(events[at].task));
        self.task(&mut maker, "parent", dict, |at| is(at, ProcessKind::Fork).then_some(events[at].parent));
        maker.flag("thread", |at| is(at, ProcessKind::Fork).then_some(events[at].flags & FORK_THREAD != 0));
        let end = |at: usize| is(at, ProcessKind::Exit).then_some(events[at].exit_code);
        maker.int("exit_code", |at| end(at).filter(|code| code & 0x7f == 0).map(|code| (code >> 8 & 0xff).into()));
        maker.int("exit_signal", |at| end(at).map(|code| i64::from(code & 0x7f)).filter(|signal| *signal != 0));
        maker.flag("group_dead", |at| is(at, ProcessKind::Exit).then_some(events[at].group_dead));
        maker.text("path", |at| is(at, ProcessKind::Exec).then(|| events[at].path.clone()));
        self.batch(&maker, events.len(), |at| self.passes(dict, events[at].ts, [Some(events[at].task)]))
    }

    /// Rows of table `socket_states`.
    pub(super) fn sockets(&self, segment: &Segment<'_>, dict: &Dict) -> Read {
        let events = segment.nets(dict)?;
        let mut maker = self.maker(&defs::SOCKETS, events.len());
        maker.time("ts_ns", |at| Some(events[at].ts));
        maker.int("socket", |at| i64::try_from(events[at].socket).ok());
        maker.text("old_state", |at| Some(tcp::state_name(events[at].old_state).into_bytes()));
        maker.text("new_state", |at| Some(tcp::state_name(events[at].new_state).into_bytes()));
        maker.text("protocol", |at| Some(protocol_name(events[at].protocol).into_bytes()));
        maker.text("local", |at| address(&events[at].saddr).map(String::into_bytes));
        maker.int("local_port", |at| Some(i64::from(events[at].sport)).filter(|port| *port != 0));
        maker.text("remote", |at| address(&events[at].daddr).map(String::into_bytes));
        maker.int("remote_port", |at| Some(events[at].dport.into()));
        self.task(&mut maker, "", dict, |at| events[at].task);
        self.batch(&maker, events.len(), |at| self.passes(dict, events[at].ts, [events[at].task]))
    }

    /// Rows of table `io_uring`.
    pub(super) fn urings(&self, segment: &Segment<'_>, dict: &Dict) -> Read {
        let events = segment.urings(dict)?;
        let mut maker = self.maker(&defs::URING, events.len());
        maker.time("ts_ns", |at| Some(events[at].ts));
        maker.text("op", |at| Some(iouring_op_name(events[at].op).into_bytes()));
        self.task(&mut maker, "", dict, |at| Some(events[at].task));
        self.batch(&maker, events.len(), |at| self.passes(dict, events[at].ts, [Some(events[at].task)]))
    }

    /// Rows of table `samples`.
    pub(super) fn samples(&self, segment: &Segment<'_>, dict: &Dict) -> Read {
        let events = segment.samples(dict)?;
        let mut maker = self.maker(&defs::SAMPLES, events.len());
        maker.time("ts_ns", |at| Some(events[at].ts));
        maker.int("cpu", |at| Some(events[at].cpu.into()));
        self.task(&mut maker, "", dict, |at| Some(events[at].task));
        maker.word("mode", |at| Some(if events[at].kernel { "kernel" } else { "user" }));
        if maker.wants(&["stack"]) {
            let stacks = segment.stacks()?;
            let places: FxHashMap<Ends, usize> =
                stacks.distinct.iter().enumerate().map(|(at, ends)| (*ends, at)).collect();
            let number = segment.info().segment;
            maker.int("stack", |at| {
                let attached = stacks.of(StackOf::Sample, u32::try_from(at).ok()?)?;
                stack_id(number, *places.get(&Ends::from(attached))?)
            });
        }
        self.batch(&maker, events.len(), |at| self.passes(dict, events[at].ts, [Some(events[at].task)]))
    }

    /// Rows of table `ledger`.
    pub(super) fn ledger(&self, segment: &Segment<'_>, dict: &Dict) -> Read {
        // the child's side of fork and clone is nobody's call
        let all = segment.ledger(dict)?.into_iter();
        let events: Vec<LedgerRow> = all.filter(|row| row.state != CallState::CloneChild).collect();
        let mut maker = self.maker(&defs::LEDGER, events.len());
        let number = |number: u64| i64::try_from(number).ok();
        maker.time("ts_ns", |at| Some(events[at].first));
        maker.time("until_ns", |at| Some(events[at].last));
        maker.word("reason", |at| {
            Some(match events[at].reason {
                LedgerReason::Lost => "lost",
                LedgerReason::Filtered => "filtered",
                LedgerReason::OverShare => "over-share",
                LedgerReason::Checked => "checked",
                LedgerReason::Behind => "behind",
            })
        });
        maker.int("calls", |at| number(events[at].count));
        let book = &self.question.book;
        let lasts = |at: usize| match events[at].state {
            CallState::Complete => true,
            CallState::InFlight | CallState::Killed | CallState::NoReturn | CallState::BeganBefore => {
                !book.get(dict.calls[events[at].call as usize]).is_exit
            }
            CallState::CloneChild | CallState::Denied | CallState::LostEnter => false,
        };
        maker.int("sum_ns", |at| number(events[at].sum).filter(|_| lasts(at)));
        maker.int("min_ns", |at| number(events[at].min).filter(|_| lasts(at)));
        maker.int("max_ns", |at| number(events[at].max).filter(|_| lasts(at)));
        maker.flag("exact", |at| Some(events[at].state == CallState::Complete));
        maker.flag("failed", |at| Some(failed(events[at].state, events[at].errno)));
        maker.int("cpu", |at| Some(events[at].cpu).filter(|cpu| *cpu != CPU_NONE).map(i64::from));
        self.task(&mut maker, "", dict, |at| events[at].task);
        let by_call = |name: &dyn Fn(usize) -> Vec<u8>| {
            let names = (0..dict.calls.len()).map(name).collect();
            Values::Text(events.iter().map(|event| event.call).collect(), names)
        };
        maker.put("abi", || by_call(&|call| book.get(dict.calls[call]).abi.as_str().as_bytes().to_vec()));
        maker.put("syscall", || by_call(&|call| book.get(dict.calls[call]).name.as_bytes().to_vec()));
        let errno = |at: usize| Some(events[at].errno).filter(|errno| ![0, ERRNO_ANY].contains(errno));
        maker.word("errno", |at| errno(at).and_then(systape_abi::errno_name));
        maker.int("errno_code", |at| errno(at).map(i64::from));
        maker.word("incomplete", |at| incomplete(events[at].state));
        self.batch(&maker, events.len(), |at| {
            let of = |task: u32| dict.tasks.get(task as usize).is_none_or(|task| self.question.scope.task(task));
            self.question.scope.began(&events[at]) == Some(true) && events[at].task.is_none_or(of)
        })
    }

    /// Rows of table `gaps`.
    pub(super) fn gaps(&self, segment: &Segment<'_>) -> Read {
        let gaps: Vec<Gap> = segment.gaps()?;
        let mut maker = self.maker(&defs::GAPS, gaps.len());
        let known = |gap: &Gap| gap.last != 0;
        maker.time("ts_ns", |at| Some(gaps[at].first).filter(|_| known(&gaps[at])));
        maker.time("until_ns", |at| Some(gaps[at].last).filter(|_| known(&gaps[at])));
        maker.word("family", |at| Some(family_name(gaps[at].family)));
        maker.word("cause", |at| Some(cause_name(gaps[at].cause)));
        maker.word("about", |at| Some(cause_text(gaps[at].cause)));
        maker.int("events", |at| {
            Some(gaps[at].count).filter(|count| *count != 0).and_then(|count| i64::try_from(count).ok())
        });
        maker.flag("is_loss", |at| Some(is_loss(gaps[at].cause)));
        maker.flag("in_ledger", |at| Some(gaps[at].ledger));
        maker.int("cpu", |at| Some(gaps[at].cpu).filter(|cpu| *cpu != CPU_NONE).map(i64::from));
        maker.int("pid", |at| Some(gaps[at].pid).filter(|pid| *pid != 0).map(i64::from));
        let scope = &self.question.scope;
        self.batch(&maker, gaps.len(), |at| {
            !known(&gaps[at]) || (gaps[at].last >= scope.from && gaps[at].first < scope.to)
        })
    }

    /// Rows of table `gaps` about what cannot be read, as far as that has been noticed.
    pub(super) fn doubts(&self) -> Batch {
        let tape = self.tape;
        let mut doubts: Vec<(&str, String, Option<u64>)> = Vec::new();
        doubts.extend(tape.findings().iter().map(|finding| ("unreadable", finding_text(finding), None)));
        doubts.extend(tape.misses().all().iter().map(|miss| ("unreadable", miss_text(miss), None)));
        if tape.end().is_none() {
            let until = tape.complete_until();
            doubts.push(("cut", cut_text(until, tape.session(), tape.is_being_written()), Some(until)));
        }
        let mut maker = self.maker(&defs::GAPS, doubts.len());
        maker.time("ts_ns", |at| doubts[at].2);
        maker.word("family", |_| Some(family_name(Family::Unknown)));
        maker.word("cause", |at| Some(doubts[at].0));
        maker.text("about", |at| Some(doubts[at].1.clone().into_bytes()));
        maker.flag("is_loss", |_| Some(true));
        maker.flag("in_ledger", |_| Some(false));
        Batch { rows: doubts.len(), columns: maker.fields(self.wanted) }
    }

    /// Rows of the table that the tape calls `name`; `def` is its declaration for a query.
    pub(super) fn stored(
        &self,
        (name, def): (&str, &TableDef),
        segment: &Segment<'_>,
        dict: &Dict,
    ) -> Result<Vec<Batch>, systape_format::Error> {
        let tables = segment.tables(dict)?;
        let ours = tables.iter().filter(|table| table.def.name == name);
        Ok(ours.map(|table| self.stored_rows(def, table, segment.info().segment, dict)).collect())
    }

    fn stored_rows(&self, def: &TableDef, table: &TableRows, segment: u32, dict: &Dict) -> Batch {
        let rows = table.ts.len();
        let mut maker = self.maker(def, rows);
        maker.time("ts_ns", |at| Some(table.ts[at]));
        for (number, (column, values)) in table.def.columns.iter().skip(1).zip(&table.columns).enumerate() {
            let known = |at: usize| !(column.ty.is_number() && table.is_unread(at, number + 1));
            let value = |at: usize| values.get(at).copied().filter(|_| known(at));
            if column.ty == Type::Task {
                let of = |at| u32::try_from(value(at)?).ok()?.checked_sub(1);
                self.task(&mut maker, &stored::group(&table.def, &column.name), dict, of);
                continue;
            }
            let name = stored::column_name(&column.name);
            // another definition of that name may lack it, or have it as another type
            if column.ty == Type::Unread || !maker.has(&name) {
                continue;
            }
            match column.ty {
                Type::Str => maker.put(&name, || {
                    let code = |at| value(at).and_then(|code| u32::try_from(code).ok()?.checked_sub(1)).unwrap_or(NONE);
                    Values::Text((0..rows).map(code).collect(), table.strings.clone())
                }),
                Type::Stack => {
                    maker.int(&name, |at| stack_id(segment, usize::try_from(value(at)?).ok()?.checked_sub(1)?))
                }
                Type::Wide => {
                    maker.put(&name, || Values::Wide((0..rows).map(|at| value(at).map(i128::from)).collect()))
                }
                Type::Hex => maker.text(&name, |at| value(at).map(|value| format!("{value:#x}").into_bytes())),
                Type::Flag => maker.flag(&name, |at| value(at).map(|value| value != 0)),
                Type::Time => maker.time(&name, value),
                _ => maker.int(&name, |at| value(at).map(u64::cast_signed)),
            }
        }
        let owner = table.def.columns.iter().skip(1).zip(&table.columns).find(|(column, _)| column.ty == Type::Task);
        let of = |at: usize| u32::try_from(*owner?.1.get(at)?).ok()?.checked_sub(1);
        self.kept(&maker, rows, |at| self.passes(dict, table.ts[at], [of(at)]))
    }
}

/// The letter of a state as text.
fn letter(state: u8) -> Option<&'static str> {
    const LETTERS: &str = "RSDTtXZPI";
    let at = LETTERS.bytes().position(|letter| letter == state)?;
    LETTERS.get(at..=at)
}
