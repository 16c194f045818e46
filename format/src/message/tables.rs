//! Definitions of tables, and their rows.

use std::collections::HashMap;
use std::sync::Arc;

use super::data;
use super::rows::{Rows, deltas, rows_of};
use super::session::{read_containers, write_containers};
use crate::column::{put, put_signed};
use crate::error::{Error, Result, capnp_err};
use crate::header::{Header, MAX_ROWS};
use crate::model::{Appeared, Class};
use crate::payload::{Message, list_len, new_message, plain_len};
use crate::table::{ColumnDef, TableDef, Type};
use crate::tables::{MAX_CELLS, MAX_COLUMNS, MAX_TABLES, TableRows, fault};
use crate::trace_capnp as schema;
use capnp::message::{Builder, HeapAllocator};
use schema::ColumnType;
use xxhash_rust::xxh3::xxh3_64;

const DEFS: &str = "table definitions";
const TABLES: &str = "tables";

/// Types as the schema has them.
const TYPES: [(Type, ColumnType); 12] = [
    (Type::Time, ColumnType::Time),
    (Type::Duration, ColumnType::Duration),
    (Type::Count, ColumnType::Count),
    (Type::Bytes, ColumnType::Bytes),
    (Type::Int, ColumnType::Int),
    (Type::Wide, ColumnType::Wide),
    (Type::Hex, ColumnType::Hex),
    (Type::Flag, ColumnType::Flag),
    (Type::Str, ColumnType::Str),
    (Type::Task, ColumnType::Task),
    (Type::Stack, ColumnType::Stack),
    (Type::Unread, ColumnType::Unread),
];

fn type_raw(ty: Type) -> ColumnType {
    TYPES.iter().find(|(known, _)| *known == ty).map_or(ColumnType::Unknown, |(_, raw)| *raw)
}

/// The hash by which rows refer to a definition.
pub(crate) fn table_id(def: &TableDef) -> u64 {
    let mut bytes = Vec::new();
    let mut add = |text: &str| {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    };
    add(&def.name);
    add(&def.doc);
    for column in def.columns.iter() {
        add(&column.name);
        add(&column.doc);
        add(column.class.map_or("", Class::name));
        add(&(type_raw(column.ty) as u16).to_string());
    }
    xxh3_64(&bytes)
}

/// What a block defines.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// Tables that are defined.
    pub tables: Vec<Arc<TableDef>>,
    /// Names of what appeared since the recording began.
    pub appeared: Appeared,
}

/// The message that defines tables and names what appeared.
pub(crate) fn write_table_defs(defs: &[Arc<TableDef>], appeared: &Appeared) -> Builder<HeapAllocator> {
    let bytes: usize = defs.iter().map(|def| 64 + def.columns.len() * 400).sum();
    let Appeared { cgroups, containers } = appeared;
    let names: usize = cgroups.iter().map(|(_, path)| 32 + path.len()).sum();
    let mut message = new_message(bytes + names + containers.len() * 256);
    let mut b = message.init_root::<schema::table_defs::Builder<'_>>();
    let mut list = b.reborrow().init_cgroups(cgroups.len() as u32);
    for (at, (id, path)) in cgroups.iter().enumerate() {
        let mut b = list.reborrow().get(at as u32);
        b.set_id(*id);
        b.set_path(path);
    }
    write_containers(b.reborrow().init_containers(containers.len() as u32), containers);
    let mut list = b.init_defs(defs.len() as u32);
    for (at, def) in defs.iter().enumerate() {
        let mut b = list.reborrow().get(at as u32);
        b.set_name(&*def.name);
        b.set_doc(&*def.doc);
        let mut columns = b.init_columns(def.columns.len() as u32);
        for (at, column) in def.columns.iter().enumerate() {
            let mut b = columns.reborrow().get(at as u32);
            b.set_name(&*column.name);
            b.set_doc(&*column.doc);
            b.set_type(type_raw(column.ty));
            b.set_class(column.class.map_or("", Class::name));
        }
    }
    message
}

/// The definitions of a block.
pub(crate) fn read_table_defs(header: &Header, message: &Message<'_>) -> Result<Definitions> {
    let err = capnp_err(DEFS);
    let r = message.get_root::<schema::table_defs::Reader<'_>>().map_err(&err)?;
    let list = r.get_defs().map_err(&err)?;
    let n = list_len::<schema::table_def::Builder<'_>>(DEFS, "defs", list.len(), header)?;
    if n > MAX_TABLES {
        return Err(Error::invalid(DEFS, format!("{n} tables, at most {MAX_TABLES} may be")));
    }
    let text = |r: capnp::Result<capnp::text::Reader<'_>>| -> Result<String> {
        let text = r.map_err(&err)?.to_str().map_err(|e| Error::invalid(DEFS, format!("a name is no UTF-8: {e}")))?;
        Ok(text.to_owned())
    };
    let mut defs = Vec::with_capacity(n);
    for r in list {
        let of = r.get_columns().map_err(&err)?;
        let n = list_len::<schema::table_column::Builder<'_>>(DEFS, "columns", of.len(), header)?;
        if n > MAX_COLUMNS {
            return Err(Error::invalid(DEFS, format!("{n} columns, at most {MAX_COLUMNS} may be")));
        }
        let mut columns = Vec::with_capacity(n);
        for r in of {
            let raw = r.get_type().map_err(|e| Error::invalid(DEFS, format!("unknown type {} of a column", e.0)))?;
            let ty = TYPES.iter().find(|(_, known)| *known == raw).map(|(ty, _)| *ty);
            let ty = ty.ok_or_else(|| Error::invalid(DEFS, "a column of type 0"))?;
            let class = Class::named(&text(r.get_class())?);
            columns.push(ColumnDef::stored(text(r.get_name())?, ty, class, text(r.get_doc())?));
        }
        let def =
            TableDef { name: text(r.get_name())?.into(), doc: text(r.get_doc())?.into(), columns: columns.into() };
        if let Some(why) = fault(&def) {
            return Err(Error::invalid(DEFS, why));
        }
        defs.push(Arc::new(def));
    }
    let list = r.get_cgroups().map_err(&err)?;
    list_len::<schema::cgroup::Builder<'_>>(DEFS, "cgroups", list.len(), header)?;
    let cgroups = list.iter().map(|r| Ok((r.get_id(), data(DEFS, r.get_path())?))).collect::<Result<_>>()?;
    let containers = read_containers(DEFS, header, r.get_containers())?;
    Ok(Definitions { tables: defs, appeared: Appeared { cgroups, containers } })
}

/// The message of a segment's rows; each table's must be sorted by ts.
pub(crate) fn write_tables(tables: &[TableRows]) -> Builder<HeapAllocator> {
    let strings = |table: &TableRows| table.strings.iter().map(|s| 16 + s.len()).sum::<usize>();
    let bytes: usize = tables.iter().map(|t| 256 + t.ts.len() * (8 * t.columns.len() + 8) + strings(t)).sum();
    let mut message = new_message(bytes);
    let b = message.init_root::<schema::tables::Builder<'_>>();
    let mut list = b.init_tables(tables.len() as u32);
    for (at, table) in tables.iter().enumerate() {
        let mut b = list.reborrow().get(at as u32);
        let first = table.ts.first().copied().unwrap_or(0);
        b.set_def(table_id(&table.def));
        b.set_rows(table.ts.len() as u32);
        b.set_first(first);
        put(b.reborrow().init_delta(), &deltas(&table.ts, first));
        let mut columns = b.reborrow().init_columns(table.columns.len() as u32);
        for (at, values) in table.columns.iter().enumerate() {
            let to = columns.reborrow().get(at as u32);
            match table.def.columns.get(at + 1).map(|column| column.ty) {
                Some(Type::Int) => put_signed(to, &values.iter().map(|v| v.cast_signed()).collect::<Vec<_>>()),
                _ => put(to, values),
            }
        }
        let mut list = b.init_strings(table.strings.len() as u32);
        for (at, string) in table.strings.iter().enumerate() {
            list.reborrow().get(at as u32).set_value(string);
        }
    }
    message
}

/// The rows of a block whose segment has `tasks` tasks; `defs` are the tape's definitions by number. The caller checks
/// that the segment has each stack, because stacks are in another block. No stack is above [`MAX_ROWS`].
pub(crate) fn read_tables(
    header: &Header,
    message: &Message<'_>,
    tasks: usize,
    defs: &HashMap<u64, Arc<TableDef>>,
) -> Result<Vec<TableRows>> {
    let err = capnp_err(TABLES);
    let r = message.get_root::<schema::tables::Reader<'_>>().map_err(&err)?;
    let list = r.get_tables().map_err(&err)?;
    let n = list_len::<schema::table_rows::Builder<'_>>(TABLES, "tables", list.len(), header)?;
    if n > MAX_TABLES {
        return Err(Error::invalid(TABLES, format!("{n} tables, at most {MAX_TABLES} may be")));
    }
    // before anything is decoded: constant columns take no bytes, so only this bounds what they become
    let (mut cells, mut all) = (0usize, 0u64);
    for r in list {
        let columns = r.get_columns().map_err(&err)?.len() as usize + 1;
        cells = cells.saturating_add(rows_of(TABLES, r.get_rows())?.saturating_mul(columns));
        all += u64::from(r.get_rows());
    }
    if cells > MAX_CELLS {
        return Err(Error::invalid(TABLES, format!("{cells} cells, at most {MAX_CELLS} may be")));
    }
    if all != u64::from(header.rows) {
        return Err(Error::invalid(TABLES, format!("{all} rows, its header says {}", header.rows)));
    }
    list.iter().map(|r| table(header, r, tasks, defs)).collect()
}

fn table(
    header: &Header,
    r: schema::table_rows::Reader<'_>,
    tasks: usize,
    defs: &HashMap<u64, Arc<TableDef>>,
) -> Result<TableRows> {
    let err = capnp_err(TABLES);
    let id = r.get_def();
    let def = defs.get(&id).ok_or_else(|| Error::invalid(TABLES, format!("the definition {id:#018x} is lost")))?;
    let rows = Rows { block: TABLES, n: rows_of(TABLES, r.get_rows())? };
    let ts = rows.times(r.get_first(), r.get_delta())?;
    let list = r.get_strings().map_err(&err)?;
    plain_len(TABLES, "strings", list.len(), 8, header)?;
    let strings = list.iter().map(|r| data(TABLES, r.get_value())).collect::<Result<Vec<_>>>()?;
    let of = r.get_columns().map_err(&err)?;
    if of.len() as usize + 1 != def.columns.len() {
        let why = format!("{} columns of '{}', which has {}", of.len() + 1, def.name, def.columns.len());
        return Err(Error::invalid(TABLES, why));
    }
    let mut columns = Vec::with_capacity(of.len() as usize);
    for (column, r) in def.columns.iter().skip(1).zip(of) {
        let values: Vec<u64> = rows.column("value", Ok(r))?;
        let most = match column.ty {
            Type::Str => strings.len() as u64,
            Type::Task => tasks as u64,
            Type::Flag => 1,
            Type::Stack => u64::from(MAX_ROWS),
            _ => u64::MAX,
        };
        if let Some(bad) = values.iter().find(|value| **value > most) {
            return Err(Error::invalid(
                TABLES,
                format!("{} of '{}' is {bad}, at most {most} may be", column.name, def.name),
            ));
        }
        columns.push(values);
    }
    Ok(TableRows { def: Arc::clone(def), ts, columns, strings })
}
