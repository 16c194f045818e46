//! Page faults: rows of the tables `exceptions:page_fault_user` and `fault:major`, with the path of the mapped file.

use std::sync::Arc;

use systape_bpf::wire;
use systape_format::families::{FAULT_MAJOR, PAGE_FAULT_USER};
use systape_format::model::{Family, StackOf};
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::paths::OpenFilePaths;
use super::rows::Rows;
use super::world::World;

/// Bits of x86's error code.
const WRITE: u64 = 0x2;
const FETCH: u64 = 0x10;

/// Page faults, each of which becomes a row.
#[derive(Debug)]
pub(super) struct Faults {
    begun: Arc<TableDef>,
    major: Arc<TableDef>,
}

impl Default for Faults {
    fn default() -> Self {
        Self { begun: Arc::new(PAGE_FAULT_USER.clone()), major: Arc::new(FAULT_MAJOR.clone()) }
    }
}

impl Faults {
    /// Stores a fault.
    pub(super) fn record(&self, f: &wire::Fault, paths: &mut OpenFilePaths, world: &mut World, rows: &mut Rows) {
        let ts = f.row.ts;
        if rows.sheds(Family::Fault, ts) {
            return;
        }
        let task = Field::Task(rows.who(&mut world.tasks, &f.row.who));
        let cpu = Field::Number(f.row.hdr.cpu.into());
        let memory = match f.memory {
            wire::MEMORY_FILE => paths.of(f.file, f.file_tag).map_or(Field::Unknown, Field::Bytes),
            other => word(other),
        };
        let (address, unread, stack) = (Field::Number(f.address), Field::Unknown, Field::Unknown);
        let offset = if f.memory == wire::MEMORY_FILE { Field::Number(f.offset) } else { Field::Unknown };
        let flag = |bit| f.row.hdr.flags & bit != 0;
        let stored = if flag(wire::FAULT_MAJOR) {
            let began = flag(wire::FAULT_BEGAN);
            let dur = if began { Field::Number(ts.saturating_sub(f.began)) } else { Field::Unknown };
            let access = if began { Field::Bytes(access(f.error_code)) } else { Field::Unknown };
            let by: &[u8] = if flag(wire::FAULT_IN_KERNEL) { b"kernel" } else { b"program" };
            let fields = [task, cpu, dur, address, access, Field::Bytes(by), memory, offset, unread, stack];
            rows.builder.push_table_row(&self.major, ts, &fields)
        } else {
            let fields = [task, cpu, address, Field::Number(f.error_code), memory, offset, unread, stack];
            rows.builder.push_table_row(&self.begun, ts, &fields)
        };
        let Ok(row) = stored else { return rows.bad_records(1, ts, ts) };
        rows.stored(Family::Fault, ts);
        rows.attach_who(&mut world.tasks, (StackOf::Row, row), &f.row.who, ts, true);
    }
}

/// The name of memory of no file, much as /proc/PID/maps has it.
fn word(memory: u8) -> Field<'static> {
    Field::Bytes(match memory {
        wire::MEMORY_NONE => b"[none]",
        wire::MEMORY_HEAP => b"[heap]",
        wire::MEMORY_STACK => b"[stack]",
        wire::MEMORY_SPECIAL => b"[special]",
        wire::MEMORY_ANON => b"[anon]",
        _ => return Field::Unknown,
    })
}

/// What was tried, by the CPU's error code.
fn access(error_code: u64) -> &'static [u8] {
    match error_code {
        code if code & FETCH != 0 => b"exec",
        code if code & WRITE != 0 => b"write",
        _ => b"read",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::stacks::WaitingStacks;
    use crate::tasks::Tasks;
    use crate::tasks::targets::Targets;
    use systape_format::model::StackSettings;

    fn fault(flags: u16, memory: u8, file: (u64, u64)) -> wire::Fault {
        let mut f = wire::Fault { address: 0x1234, memory, file: file.0, file_tag: file.1, ..wire::Fault::default() };
        (f.row.hdr.flags, f.row.ts) = (flags, 500);
        (f.began, f.offset, f.error_code) = (200, 4096, 6);
        f
    }

    #[test]
    fn rows_have_the_file_and_what_is_not_known_is_unknown() {
        let (faults, mut paths) = (Faults::default(), OpenFilePaths::default());
        let mut rows = Rows::new(0, WaitingStacks::new(StackSettings::default(), 0));
        let mut world = World::new(Tasks::new(false, Targets::default()), Arc::default());
        let named = wire::File { address: 7, tag: 9, ..wire::File::default() };
        paths.name(&named, b"Pb\0a\0");
        let major = wire::FAULT_MAJOR;
        for f in [
            fault(0, wire::MEMORY_FILE, (7, 9)),
            fault(0, wire::MEMORY_FILE, (7, 10)),
            fault(0, wire::MEMORY_ANON, (0, 0)),
            fault(0, wire::MEMORY_UNKNOWN, (0, 0)),
            fault(major | wire::FAULT_BEGAN, wire::MEMORY_FILE, (7, 9)),
            fault(major | wire::FAULT_IN_KERNEL, wire::MEMORY_NONE, (0, 0)),
        ] {
            faults.record(&f, &mut paths, &mut world, &mut rows);
        }
        let data = rows.builder.finish(1000);
        let [begun, majors] = data.tables() else { panic!("{:?}", data.tables()) };
        let texts = |table: &systape_format::tables::TableRows, name: &str| -> Vec<Option<Vec<u8>>> {
            let codes = table.column(name).expect("a column").iter();
            codes.map(|code| table.string(*code).map(<[u8]>::to_vec)).collect()
        };
        let some = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(texts(begun, "memory"), [some("/a/b"), None, some("[anon]"), None]);
        // bits of the columns behind the time: offset; dur and offset
        assert_eq!(begun.unread(), Some(&[0, 0, 1 << 5, 1 << 5][..]));
        assert_eq!(majors.unread(), Some(&[0, 1 << 2 | 1 << 7][..]));
        assert_eq!(texts(majors, "memory"), [some("/a/b"), some("[none]")]);
        assert_eq!(texts(majors, "access"), [some("write"), None]);
        assert_eq!(texts(majors, "by"), [some("program"), some("kernel")]);
    }
}
