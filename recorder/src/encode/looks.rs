//! Looks at all threads: rows of the tables `look:stay`, `look:second` and `look:idle`.

use std::sync::Arc;

use systape_abi::{Abi, display_name};
use systape_bpf::wire::{self, STAY_BEGINS, STAY_BOUND, STAY_CONNECTED, STAY_HAS_STACK, STAY_IN_CALL, STAY_UNREAD};
use systape_format::families::{LOOK_IDLE, LOOK_SECOND, LOOK_STAY, RECORD_TRIGGER};
use systape_format::model::{CPU_NONE, Family, Gap, GapCause, StackOf};
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::rows::Rows;
use super::world::World;
use crate::looks::UNKNOWN;

/// What looks found, and the looks.
#[derive(Debug)]
pub(super) struct LookRows {
    stays: Arc<TableDef>,
    seconds: Arc<TableDef>,
    idle: Arc<TableDef>,
    triggers: Arc<TableDef>,
}

impl Default for LookRows {
    fn default() -> Self {
        let of = |def: &TableDef| Arc::new(def.clone());
        Self { stays: of(&LOOK_STAY), seconds: of(&LOOK_SECOND), idle: of(&LOOK_IDLE), triggers: of(&RECORD_TRIGGER) }
    }
}

/// A number, or that it is not known.
fn known(number: Option<u64>) -> Field<'static> {
    number.map_or(Field::Unknown, Field::Number)
}

/// A name; empty = none.
fn named(name: &[u8]) -> Field<'_> {
    if name.is_empty() { Field::Unknown } else { Field::Bytes(name) }
}

impl LookRows {
    /// Stores a stay, or a part of one.
    pub(super) fn stay(&self, s: &wire::Stay, (file, path): (&[u8], &[u8]), world: &mut World, rows: &mut Rows) {
        let ts = s.row.ts;
        if rows.sheds(Family::Look, ts) {
            return;
        }
        let flag = |bit| s.row.hdr.flags & bit != 0;
        let call = flag(STAY_IN_CALL).then(|| display_name(Abi::from_raw(s.abi), s.nr));
        let arg = |at: usize| known(call.is_some().then(|| s.args[at]));
        let number = |flag: bool| Field::Number(flag.into());
        let fields = [
            Field::Task(rows.who(&mut world.tasks, &s.row.who)),
            Field::Bytes(&[s.state]),
            call.as_ref().map_or(Field::Unknown, |name| Field::Bytes(name.as_bytes())),
            call.as_ref().map_or(Field::Unknown, |_| Field::Bytes(Abi::from_raw(s.abi).as_str().as_bytes())),
            number(flag(STAY_BEGINS)),
            Field::Number(s.looks),
            Field::Number(s.interval),
            Field::Number(s.seen),
            Field::Number(s.ago),
            known((s.since != UNKNOWN).then_some(s.since)),
            Field::Number(s.look),
            named(file),
            named(path),
            known((s.lock != 0).then_some(s.lock)),
            known((s.owner != 0).then_some(s.owner.into())),
            arg(0),
            arg(1),
            arg(2),
            arg(3),
            arg(4),
            arg(5),
            number(!flag(STAY_UNREAD)),
            if flag(STAY_CONNECTED) || flag(STAY_BOUND) { number(flag(STAY_CONNECTED)) } else { Field::Unknown },
            Field::Unknown,
            Field::Unknown,
        ];
        let Ok(row) = rows.builder.push_table_row(&self.stays, ts, &fields) else {
            return rows.bad_records(1, ts, ts);
        };
        rows.stored(Family::Look, ts);
        rows.attach_who(&mut world.tasks, (StackOf::Row, row), &s.row.who, ts, flag(STAY_HAS_STACK));
    }

    /// Stores the looks of some seconds, and what they lack.
    pub(super) fn second(&self, s: &wire::LookSums, rows: &mut Rows) {
        let numbers = [
            s.look,
            s.looks,
            s.interval,
            s.span,
            s.skipped,
            s.threads,
            s.noted,
            s.displaced,
            s.stopped,
            s.over,
            s.uncopied,
            s.cost,
        ];
        rows.beside(&self.seconds, s.ts, &numbers.map(Field::Number));
        let first = s.ts.saturating_sub(s.span);
        // a look that was skipped takes its time with it, which a row says; a thread that had no room would be taken for absent
        if s.over > 0 {
            let (cause, family, count, last) = (GapCause::Crowded, Family::Look, s.over, s.ts);
            rows.shedding.count((cause, family), count);
            rows.gap(Gap { cause, family, cpu: CPU_NONE, count, first, last, pid: 0, ledger: false });
        }
    }

    /// Stores what was wrong when everything was recorded, and in which tape that is.
    pub(super) fn escalation(
        &self,
        e: &wire::Escalation,
        [condition, what, tape]: [&[u8]; 3],
        world: &mut World,
        rows: &mut Rows,
    ) {
        let fields = [
            // pressure is nobody's
            if e.row.who.tid == 0 { Field::Unknown } else { Field::Task(rows.who(&mut world.tasks, &e.row.who)) },
            Field::Bytes(condition),
            Field::Bytes(what),
            Field::Bytes(tape),
            Field::Number(e.value),
            Field::Number(1),
            Field::Number(1),
            Field::Number(0),
        ];
        rows.beside(&self.triggers, e.row.ts, &fields);
    }

    /// Stores how many threads were in a call that waits for work.
    pub(super) fn idle(&self, s: &wire::IdleThreads, rows: &mut Rows) {
        let call = display_name(Abi::from_raw(s.abi), s.nr);
        let numbers = [s.threads, s.looks, s.interval].map(Field::Number);
        let [threads, looks, interval] = numbers;
        rows.beside(&self.idle, s.ts, &[Field::Bytes(call.as_bytes()), threads, looks, interval]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::stacks::WaitingStacks;
    use crate::tasks::Tasks;
    use crate::tasks::targets::Targets;
    use systape_format::model::StackSettings;

    #[test]
    fn what_is_not_known_of_a_stay_is_unknown() {
        let looks = LookRows::default();
        let mut rows = Rows::new(0, WaitingStacks::new(StackSettings::default(), 0));
        let mut world = World::new(Tasks::new(false, Targets::default()), Arc::default());
        let nr = systape_abi::number(Abi::X86_64, "read").unwrap();
        let mut s = wire::Stay { nr, abi: Abi::X86_64 as u8, state: b'S', looks: 3, since: 9, ..wire::Stay::default() };
        (s.row.ts, s.row.hdr.flags, s.lock, s.owner) = (500, STAY_IN_CALL | STAY_BEGINS, 0x10, 4);
        looks.stay(&s, (b"pipe:[7]", b""), &mut world, &mut rows);
        let mut none = wire::Stay { since: UNKNOWN, state: b'D', ..wire::Stay::default() };
        (none.row.ts, none.row.hdr.flags) = (600, STAY_UNREAD);
        looks.stay(&none, (b"", b""), &mut world, &mut rows);
        looks.second(
            &wire::LookSums { ts: 700, looks: 20, span: 100, skipped: 2, over: 3, ..Default::default() },
            &mut rows,
        );
        let escalation = wire::Escalation { value: 7, ..wire::Escalation::default() };
        looks.escalation(&escalation, [b"d>1s", b"in D", b"day.full-1.tape"], &mut world, &mut rows);
        looks.idle(&wire::IdleThreads { ts: 700, threads: 40, looks: 20, nr, abi: 1, ..Default::default() }, &mut rows);
        let data = rows.builder.finish(1000);
        let [stays, seconds, triggers, idle] = data.tables() else { panic!("{:?}", data.tables()) };
        let text = |name: &str| -> Vec<Option<Vec<u8>>> {
            let codes = stays.column(name).expect("a column").iter();
            codes.map(|code| stays.string(*code).map(<[u8]>::to_vec)).collect()
        };
        let some = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!((text("state"), text("call")), (vec![some("S"), some("D")], vec![some("read"), None]));
        assert_eq!((text("file"), text("path")), (vec![some("pipe:[7]"), None], vec![None, None]));
        // since, lock, owner, six arguments, and which end of a connection it is
        let unknown = 1_u64 << 9 | 1 << 13 | 1 << 14 | 0b11_1111 << 15 | 1 << 22;
        assert_eq!(stays.unread(), Some(&[1 << 22, unknown][..]));
        assert_eq!((seconds.ts.len(), idle.ts.len()), (1, 1));
        let name = triggers.column("name").and_then(|names| triggers.string(names[0]));
        assert_eq!((triggers.ts.len(), name), (1, Some(&b"day.full-1.tape"[..])));
        let gaps: Vec<_> = data.gaps().iter().map(|gap| (gap.cause, gap.count, gap.first)).collect();
        assert_eq!(gaps, [(GapCause::Crowded, 3, 600)]);
    }
}
