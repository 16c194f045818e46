//! Descriptors that operations of io_uring make and close: rows of the table `io_uring:descriptor`. Records of them are like those of
//! calls, which change the tables of open files.

use std::rc::Rc;
use std::sync::Arc;

use systape_abi::Abi;
use systape_abi::descriptors::Made;
use systape_bpf::wire;
use systape_format::families::IO_URING_DESCRIPTOR;
use systape_format::model::Family;
use systape_format::table::TableDef;
use systape_format::tables::Field;

use super::rows::Rows;
use super::world::World;
use crate::tasks::TaskId;

/// Calls that stand for operations, and what these are called.
const MADE: [(&str, &str); 3] = [("openat", "OPENAT"), ("accept4", "ACCEPT"), ("socket", "SOCKET")];

/// Rows of the table of what operations of rings did to descriptors.
#[derive(Debug)]
pub(super) struct RingDescriptors {
    def: Arc<TableDef>,
}

impl Default for RingDescriptors {
    fn default() -> Self {
        Self { def: Arc::new(IO_URING_DESCRIPTOR.clone()) }
    }
}

/// A change of a descriptor.
#[derive(Clone, Copy)]
struct RingChange<'a> {
    ts: u64,
    fd: i32,
    op: Option<&'a str>,
    /// It is open, and whether exec closes it.
    open: Option<bool>,
    name: Option<&'a [u8]>,
}

impl RingDescriptors {
    /// A CLOSE was submitted: from now on nobody knows what the descriptor is.
    pub(super) fn closing(&self, c: &wire::Closing, world: &mut World, rows: &mut Rows) {
        let (task, fd) = (world.tasks.find_or_add(&c.id), c.args[0] as i32);
        world.touch(c.id.pid, |touched| touched.made([fd, -1]));
        world.tasks.files_mut(task).close(c.ts, fd);
        if c.hdr.flags & wire::UNSELECTED == 0 {
            let change = RingChange { ts: c.ts, fd, op: Some("CLOSE"), open: None, name: None };
            self.store(task, change, world, rows);
        }
    }

    /// An operation ended; the tables of open files have what its descriptor is since.
    pub(super) fn changed(&self, s: &wire::Syscall, world: &mut World, rows: &mut Rows) {
        let Some(task) = world.tasks.find(&s.id).filter(|_| s.hdr.flags & wire::UNSELECTED == 0) else { return };
        let Made::One { fd, cloexec } = world.call_info(s.abi, s.nr).made(&s.args, s.ret, None) else { return };
        let open = (s.captures > 0).then_some(cloexec);
        let call = systape_abi::name(Abi::from_raw(s.abi), s.nr);
        let op = MADE.iter().find(|(name, _)| call == Some(name)).map(|(_, op)| *op);
        let files = world.tasks.files(task);
        // what a CLOSE closed was closed by its submission, unless it was replaced since
        if op.is_none() && open.is_none() && !files.closed_at(s.end, fd) {
            return;
        }
        let name = files.at(s.end, fd).map(|name| name.at(s.end, Rc::clone));
        let name = name.as_ref().map(|name| &name.bytes[..]);
        self.store(task, RingChange { ts: s.end, fd, op, open, name }, world, rows);
    }

    fn store(&self, task: TaskId, change: RingChange<'_>, world: &mut World, rows: &mut Rows) {
        if rows.sheds(Family::IoUring, change.ts) {
            return;
        }
        let fields = [
            Field::Task(rows.task(&mut world.tasks, task)),
            Field::Number(u64::from(change.fd.cast_unsigned())),
            change.op.map_or(Field::Unknown, |op| Field::Bytes(op.as_bytes())),
            Field::Number(change.open.is_some().into()),
            change.name.map_or(Field::Unknown, Field::Bytes),
            Field::Number(change.open.unwrap_or(false).into()),
        ];
        rows.beside(&self.def, change.ts, &fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptors::names::Name;
    use crate::encode::stacks::WaitingStacks;
    use crate::tasks::Tasks;
    use crate::tasks::targets::Targets;
    use systape_format::model::StackSettings;

    #[test]
    fn a_close_holds_from_its_submission_and_what_is_there_then_counts() {
        let mut world = World::new(Tasks::new(false, Targets::default()), Arc::default());
        let mut rows = Rows::new(0, WaitingStacks::new(StackSettings::default(), 0));
        let (rings, id) = (RingDescriptors::default(), wire::Ident { tid: 7, pid: 7, start: 1, leader_start: 1 });
        let task = world.tasks.find_or_add(&id);
        let now = |ts, nr, captures| {
            let mut s =
                wire::Syscall { id, end: ts, start: ts, ret: 3, nr, abi: 1, captures, ..wire::Syscall::default() };
            s.hdr.flags = wire::OF_RING;
            s
        };
        let mut closing = wire::Closing { id, ts: 20, args: [3, 0, 0], nr: 3, abi: 1, ..wire::Closing::default() };
        world.tasks.files_mut(task).set(10, 3, Name::new(b"/a".to_vec()), false);
        rings.changed(&now(10, 257, 1), &mut world, &mut rows);
        rings.closing(&closing, &mut world, &mut rows);
        assert!(world.tasks.files(task).at(19, 3).is_some() && world.tasks.files(task).at(20, 3).is_none());
        // over, and nothing was there: the submission has said so
        rings.changed(&now(25, 72, 0), &mut world, &mut rows);
        // a call made it another file, which the next that waited closed
        world.tasks.files_mut(task).set(30, 3, Name::new(b"/b".to_vec()), false);
        world.tasks.files_mut(task).close(40, 3);
        rings.changed(&now(40, 72, 0), &mut world, &mut rows);
        // nothing of a task that is not recorded
        closing.hdr.flags = wire::OF_RING | wire::UNSELECTED;
        world.tasks.files_mut(task).set(50, 3, Name::new(b"/c".to_vec()), false);
        rings.closing(&wire::Closing { ts: 60, ..closing }, &mut world, &mut rows);
        assert!(world.tasks.files(task).at(60, 3).is_none());
        let data = rows.builder.finish(100);
        let [table] = data.tables() else { panic!("{:?}", data.tables()) };
        let text = |name: &str, row: usize| {
            let value = table.string(table.column(name).expect("a column")[row]);
            value.map_or("?".to_owned(), |text| String::from_utf8_lossy(text).into_owned())
        };
        let line = |row: usize| {
            let open = table.column("open").expect("a column")[row];
            format!("{} {} {open} {}", table.ts[row], text("op", row), text("file", row))
        };
        assert_eq!((0..table.ts.len()).map(line).collect::<Vec<_>>(), ["10 OPENAT 1 /a", "20 CLOSE 0 ?", "40 ? 0 ?"]);
    }
}
