//! Pages that the kernel gave: rows of the table `kmem:mm_page_alloc`.

use std::sync::{Arc, LazyLock};

use systape_bpf::wire;
use systape_format::families::MM_PAGE_ALLOC;
use systape_format::model::{Family, StackOf};
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::rows::Rows;
use super::world::World;

static TABLE: LazyLock<Arc<TableDef>> = LazyLock::new(|| Arc::new(MM_PAGE_ALLOC.clone()));

/// Stores a row.
pub(super) fn record(p: &wire::Page, world: &mut World, rows: &mut Rows) {
    let ts = p.row.ts;
    if rows.sheds(Family::Page, ts) {
        return;
    }
    let task = Field::Task(rows.who(&mut world.tasks, &p.row.who));
    let number = |number: u32| Field::Number(number.into());
    let fields = [task, number(p.row.hdr.cpu.into()), number(p.order), number(p.movable), Field::Unknown];
    let Ok(row) = rows.builder.push_table_row(&TABLE, ts, &fields) else { return rows.bad_records(1, ts, ts) };
    rows.stored(Family::Page, ts);
    rows.attach_who(&mut world.tasks, (StackOf::Row, row), &p.row.who, ts, true);
}
