//! Rows of tables: a wire record becomes a row by the table's declaration (systape-format's families.rs), for any
//! family.

use std::sync::Arc;

use systape_bpf::wire;
use systape_format::families::RECORDED;
use systape_format::model::{Family, StackOf};
use systape_format::table::{TableDef, Type};
use systape_format::tables::{CPU, Field};

use super::rows::Rows;
use super::world::World;
use crate::tracepoints::{Tracepoint, packet};

macro_rules! names {
    ($(($name:literal))*) => {
        /// Tables by their number in records, from 1 on.
        const NAMES: &[&str] = &[$($name),*];
    };
}
systape_bpf::row_tables!(names);

/// The tables of records.
#[derive(Debug)]
pub(super) struct RowTables {
    /// In the order of their numbers; None = it has no declaration.
    declared: Vec<Option<(Family, Arc<TableDef>)>>,
    /// In the order of their own numbers.
    tracepoints: Vec<Arc<Tracepoint>>,
}

impl RowTables {
    /// `tracepoints`: by the number of their records, from 1 on.
    pub(super) fn new(tracepoints: Vec<Arc<Tracepoint>>) -> Self {
        let table = |name: &&str| {
            let of = RECORDED.iter().find(|table| table.def.name == **name)?;
            Some((of.family, Arc::new(of.def.clone())))
        };
        Self { declared: NAMES.iter().map(table).collect(), tracepoints }
    }

    /// Stores a row.
    pub(super) fn record(&self, r: &wire::Row, data: &[u8], world: &mut World, rows: &mut Rows) {
        let number = usize::from(r.hdr.flags).checked_sub(1);
        let Some((family, def)) = number.and_then(|number| self.declared.get(number)?.as_ref()) else {
            return rows.bad_records(1, r.ts, r.ts);
        };
        if rows.sheds(*family, r.ts) {
            return;
        }
        let task = rows.who(&mut world.tasks, &r.who);
        match fields(def, r, task, data) {
            Some(fields) => store((*family, def), r, &fields, world, rows),
            None => rows.bad_records(1, r.ts, r.ts),
        }
    }

    /// Stores an event of a tracepoint; `socket`: that of its packet.
    pub(super) fn event(
        &self,
        r: &wire::Row,
        (socket, data): (Option<&wire::Socket>, &[u8]),
        world: &mut World,
        rows: &mut Rows,
    ) {
        let number = usize::from(r.hdr.flags).checked_sub(1);
        let Some(tracepoint) = number.and_then(|number| self.tracepoints.get(number)) else {
            return rows.bad_records(1, r.ts, r.ts);
        };
        if !tracepoint.is_asked_for(data) || rows.sheds(Family::Tracepoint, r.ts) {
            return;
        }
        let task = rows.who(&mut world.tasks, &r.who);
        let mut values = tracepoint.values(data);
        if tracepoint.packet.is_some() {
            let socket = socket.filter(|socket| socket.family != 0);
            let owner = socket.and_then(|socket| world.owner(socket.inode));
            let owner = owner.map(|owner| &world.tasks.get(owner).task);
            values.extend(packet::values(socket, owner.map(|owner| (owner.pid, &*owner.comm))));
        }
        let fields = tracepoint.row(task, r.hdr.cpu, &values);
        store((Family::Tracepoint, &tracepoint.def), r, &fields, world, rows);
    }
}

/// Stores a row of `def`.
fn store(
    (family, def): (Family, &Arc<TableDef>),
    r: &wire::Row,
    fields: &[Field<'_>],
    world: &mut World,
    rows: &mut Rows,
) {
    let Ok(row) = rows.builder.push_table_row(def, r.ts, fields) else { return rows.bad_records(1, r.ts, r.ts) };
    rows.stored(family, r.ts);
    if def.stack_column().is_some() {
        rows.attach_who(&mut world.tasks, (StackOf::Row, row), &r.who, r.ts, true);
    }
}

/// The values of a row: for each column without a field in the record the next word of `data`, for a string its length;
/// None = `data` ends too early.
fn fields<'a>(def: &TableDef, r: &wire::Row, task: u32, data: &'a [u8]) -> Option<Vec<Field<'a>>> {
    let from_record = |column: &systape_format::table::ColumnDef| match column.ty {
        Type::Task => Some(Field::Task(task)),
        Type::Stack => Some(Field::Unknown),
        _ if column.name == CPU => Some(Field::Number(r.hdr.cpu.into())),
        _ => None,
    };
    let columns = || def.columns.iter().skip(1);
    let words = columns().filter(|column| from_record(column).is_none()).count();
    let (words, mut strings) = data.split_at_checked(words * 8)?;
    let mut words = words.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
    let mut field = |column: &systape_format::table::ColumnDef| {
        if let Some(field) = from_record(column) {
            return Some(field);
        }
        let word = words.next()?;
        if column.ty != Type::Str {
            return Some(Field::Number(word));
        }
        let (string, rest) = strings.split_at_checked(usize::try_from(word).ok()?)?;
        strings = rest;
        Some(Field::Bytes(string))
    };
    columns().map(&mut field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    systape_format::tables! {
        /// A table of every source of values.
        ALL = "a:b" {
            ts: Time "when"
            task: Task "whose"
            name: Str [Path] "a string"
            size: Bytes "a word"
            cpu: Int "where"
            other: Str [Path] "another string"
            stack: Stack "in which functions"
        }
    }

    #[test]
    fn records_hold_what_the_declaration_says() {
        let mut r = wire::Row::default();
        r.hdr.cpu = 3;
        let words = [2u64, 4096, 0].map(u64::to_ne_bytes).concat();
        let data = [words.as_slice(), b"abc"].concat();
        let expected = [
            Field::Task(7),
            Field::Bytes(b"ab"),
            Field::Number(4096),
            Field::Number(3),
            Field::Bytes(b""),
            Field::Unknown,
        ];
        assert_eq!(fields(&ALL, &r, 7, &data).unwrap(), expected);
        assert_eq!(fields(&ALL, &r, 7, &data[..25]), None, "a string is cut");
        assert_eq!(fields(&ALL, &r, 7, &data[..23]), None, "a word is");
        let long = [u64::MAX, 0, 0].map(u64::to_ne_bytes).concat();
        assert_eq!(fields(&ALL, &r, 7, &long), None, "a length that cannot be");
    }

    #[test]
    fn every_table_of_the_programs_is_declared() {
        let tables = RowTables::new(Vec::new());
        for (name, table) in NAMES.iter().zip(&tables.declared) {
            let (family, def) = table.as_ref().unwrap_or_else(|| panic!("{name} is not in families.rs"));
            assert!(
                crate::kernel::families::Families::parse(&[family.name().to_owned()]).is_ok(),
                "{family:?} has no name"
            );
            assert!(def.columns.iter().all(|column| column.ty != Type::Nested), "{name}");
        }
    }
}
