//! Tables of events other than calls, of what was counted, and of what is missing.

use rustc_hash::FxHashMap;
use systape_format::model::{
    CPU_NONE, CallState, Dict, ERRNO_ANY, Ends, Family, Gap, LedgerReason, LedgerRow, StackOf, Stacks, Task,
};
use systape_format::reader::Segment;
use systape_format::table::{TableDef, Type};
use systape_format::tables::TableRows;

use super::make::Maker;
use super::values::{NONE, Values};
use super::{Batch, Frame, defs, stored};
use systape_answers::catalogue::{EventTable, Surroundings};
use systape_answers::lines::row::incomplete;
use systape_answers::render::cell::Cell;
use systape_answers::render::row::ShownTimes;
use systape_events::filter::failed;
use systape_events::loss::{cause_text, cut_text, family_name, finding_text, is_loss, miss_text};
use systape_events::values::clock::Clock;
use systape_events::values::devices::Devices;

type Read = Result<Batch, systape_format::Error>;

/// The number of a stack: its segment's, then its place among the distinct ones of that.
pub(super) fn stack_id(segment: u32, at: usize) -> Option<i64> {
    Some(i64::from(segment) << 24 | i64::try_from(at).ok().filter(|at| *at < 1 << 24)?)
}

/// The numbers of the stacks of events of one kind.
struct StackNumbers {
    kind: StackOf,
    segment: u32,
    stacks: Stacks,
    places: FxHashMap<Ends, usize>,
}

impl StackNumbers {
    fn read(segment: &Segment<'_>, kind: StackOf) -> Result<Self, systape_format::Error> {
        let stacks = segment.stacks()?;
        let places = stacks.distinct.iter().enumerate().map(|(at, ends)| (*ends, at)).collect();
        Ok(Self { kind, segment: segment.info().segment, stacks, places })
    }

    /// That of the event in this row; None: it has none.
    fn of(&self, row: usize) -> Option<i64> {
        let attached = self.stacks.of(self.kind, u32::try_from(row).ok()?)?;
        stack_id(self.segment, *self.places.get(&Ends::from(attached))?)
    }
}

impl Frame<'_> {
    fn maker<'m>(&'m self, def: &'m TableDef, rows: usize) -> Maker<'m> {
        Maker::new(def, self.wanted.iter().copied(), self.common, rows)
    }

    /// The rows that `passes`: of a cut those of its window and its tasks. The others tell reports of what was before.
    fn batch(&self, maker: Maker<'_>, rows: usize, passes: impl Fn(usize) -> bool) -> Read {
        Ok(self.kept(maker, rows, passes))
    }

    fn kept(&self, maker: Maker<'_>, rows: usize, passes: impl Fn(usize) -> bool) -> Batch {
        let mut columns = maker.fields(self.wanted);
        if !self.question.scope.narrows() {
            return Batch { rows, columns };
        }
        let kept: Vec<bool> = (0..rows).map(passes).collect();
        columns.iter_mut().for_each(|values| values.keep(&kept));
        Batch { rows: kept.iter().filter(|kept| **kept).count(), columns }
    }

    /// Whether an event at `ts` is one of those that are asked for; one of nobody known is everybody's.
    fn passes<const N: usize>(&self, ts: u64, tasks: [Option<&Task>; N]) -> bool {
        let scope = &self.question.scope;
        let mut known = tasks.into_iter().flatten().peekable();
        scope.at(ts) && (known.peek().is_none() || known.any(|task| scope.task(task)))
    }

    fn task(&self, maker: &mut Maker<'_>, group: &str, dict: &Dict, of: impl Fn(usize) -> Option<u32>) {
        let session = self.tape.session();
        maker.task(group, &dict.tasks, |task| session.cgroup_path(task.cgroup_id), of);
    }

    /// Rows of a table of the catalogue.
    pub(super) fn events(&self, of: &'static dyn EventTable, segment: &Segment<'_>, dict: &Dict) -> Read {
        // no such table has times of day
        let times = ShownTimes { session: self.tape.session(), clock: Clock::default() };
        let at = Surroundings { times: &times, devices: &Devices::default(), dict, files: None };
        let columns = &of.about().def.columns;
        let maker = self.maker(of.about().def, 0);
        let wanted: Vec<usize> = (0..columns.len()).filter(|at| maker.wants(&[&columns[*at].full_name()])).collect();
        let stacks = of.about().stacks.filter(|_| wanted.iter().any(|at| columns[*at].ty == Type::Stack));
        let stacks = stacks.map(|kind| StackNumbers::read(segment, kind)).transpose()?;
        let mut rows: Vec<Vec<Cell<'static>>> = Vec::new();
        of.read(segment, at, &mut |event, row| {
            if self.question.scope.narrows() && !self.passes(event.ts, [event.task, event.other]) {
                return;
            }
            let cell = |at: &usize| match (&stacks, columns[*at].ty) {
                (Some(stacks), Type::Stack) => stacks.of(row).map_or(Cell::Null, |stack| Cell::Int(stack.into())),
                _ => event.values.cell(*at).into_owned(),
            };
            rows.push(wanted.iter().map(cell).collect());
        })?;
        let mut maker = self.maker(of.about().def, rows.len());
        for (number, at) in wanted.iter().enumerate() {
            let column = &columns[*at];
            maker.put(&column.full_name(), || {
                Values::of_cells(column.ty, self.common.open, rows.iter().map(|row| &row[number]))
            });
        }
        Ok(Batch { rows: rows.len(), columns: maker.fields(self.wanted) })
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
        self.batch(maker, events.len(), |at| {
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
        maker.word("cause", |at| Some(gaps[at].cause.name()));
        maker.word("about", |at| Some(cause_text(gaps[at].cause)));
        maker.int("events", |at| {
            Some(gaps[at].count).filter(|count| *count != 0).and_then(|count| i64::try_from(count).ok())
        });
        maker.flag("is_loss", |at| Some(is_loss(gaps[at].cause)));
        maker.flag("in_ledger", |at| Some(gaps[at].ledger));
        maker.int("cpu", |at| Some(gaps[at].cpu).filter(|cpu| *cpu != CPU_NONE).map(i64::from));
        maker.int("pid", |at| Some(gaps[at].pid).filter(|pid| *pid != 0).map(i64::from));
        let scope = &self.question.scope;
        self.batch(maker, gaps.len(), |at| {
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
        let of = |at: usize| dict.task_of(*owner?.1.get(at)?);
        self.kept(maker, rows, |at| self.passes(table.ts[at], [of(at)]))
    }
}
