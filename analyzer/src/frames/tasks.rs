//! Tables `threads`, `processes` and `stacks`.

use std::collections::BTreeMap;

use systape_format::model::{Frame as Place, Task};
use systape_format::reader::{Segment, Tape};

use super::events::stack_id;
use super::make::Maker;
use super::{Batch, Frame, defs};
use systape_answers::derive::stacks::names::Names;

/// Each thread as it was last known, by its number. The tape notes what of it cannot be read.
fn threads(tape: &Tape) -> BTreeMap<u32, Task> {
    let mut threads = BTreeMap::new();
    for checkpoint in (0..tape.checkpoints()).filter_map(|at| tape.checkpoint(at).ok()) {
        threads.extend(checkpoint.tasks.into_iter().map(|task| (task.utid, task)));
    }
    // where a segment mentions a thread it says what became of it
    for dict in (0..tape.segments().len()).filter_map(|at| tape.segment(at).dict().ok()) {
        threads.extend(dict.tasks.into_iter().map(|task| (task.utid, task)));
    }
    threads.remove(&0);
    threads
}

impl Frame<'_> {
    /// Rows of table `threads`.
    pub(super) fn threads(&self) -> Batch {
        let tasks: Vec<Task> = threads(self.tape).into_values().collect();
        let mut maker = Maker::new(&defs::THREADS, self.wanted.iter().copied(), self.common, tasks.len());
        self.about(&mut maker, &tasks);
        maker.int("ns_tid", |at| some(tasks[at].ns_tid));
        maker.flag("leader", |at| Some(tasks[at].tid == tasks[at].pid));
        Batch { rows: tasks.len(), columns: maker.fields(self.wanted) }
    }

    /// Rows of table `processes`.
    pub(super) fn processes(&self) -> Batch {
        let mut processes: BTreeMap<u32, (Task, i64)> = BTreeMap::new();
        for task in threads(self.tape).into_values().filter(|task| task.upid != 0) {
            let leads = task.tid == task.pid;
            match processes.get_mut(&task.upid) {
                Some((known, threads)) => {
                    *threads += 1;
                    if leads {
                        *known = task;
                    }
                }
                None => drop(processes.insert(task.upid, (task, 1))),
            }
        }
        let (tasks, threads): (Vec<Task>, Vec<i64>) = processes.into_values().unzip();
        let mut maker = Maker::new(&defs::PROCESSES, self.wanted.iter().copied(), self.common, tasks.len());
        self.about(&mut maker, &tasks);
        maker.int("threads", |at| Some(threads[at]));
        Batch { rows: tasks.len(), columns: maker.fields(self.wanted) }
    }

    /// What both have.
    fn about(&self, maker: &mut Maker<'_>, tasks: &[Task]) {
        let session = self.tape.session();
        maker.task("", tasks, |task| session.cgroup_path(task.cgroup_id), |at| u32::try_from(at).ok());
        maker.int("ns_pid", |at| some(tasks[at].ns_pid));
        maker.int("ppid", |at| some(tasks[at].ppid));
    }

    /// Rows of table `stacks`.
    pub(super) fn stacks(&self, segment: &Segment<'_>, names: &Names) -> Result<Batch, systape_format::Error> {
        let stacks = segment.stacks()?;
        let number = segment.info().segment;
        let mappings: Vec<Option<u32>> = stacks.mappings.iter().map(|mapping| names.mapping(mapping)).collect();
        let mut rows: Vec<(Option<i64>, i64, bool, bool, Place)> = Vec::new();
        for (at, ends) in stacks.distinct.iter().enumerate() {
            let frames = |leaf, kernel| stacks.frames_from(leaf).map(move |frame| (kernel, *frame));
            let all = frames(ends.kernel, true).chain(frames(ends.user, false));
            let row = |(depth, (kernel, frame)): (usize, (bool, Place))| {
                (stack_id(number, at), depth as i64, kernel, ends.status.is_complete(), frame)
            };
            rows.extend(all.enumerate().map(row));
        }
        let mapping = |at: usize| stacks.mappings.get(rows[at].4.mapping as usize);
        let text = |bytes: &[u8]| Some(bytes.to_vec()).filter(|bytes| !bytes.is_empty());
        let mut maker = Maker::new(&defs::STACKS, self.wanted.iter().copied(), self.common, rows.len());
        maker.int("stack", |at| rows[at].0);
        maker.int("depth", |at| Some(rows[at].1));
        maker.flag("kernel", |at| Some(rows[at].2));
        maker.text("module", |at| mapping(at).and_then(|mapping| text(&mapping.path)));
        maker.text("build_id", |at| {
            let id: String = mapping(at)?.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            text(id.as_bytes())
        });
        maker.text("offset", |at| Some(format!("{:#x}", rows[at].4.offset).into_bytes()));
        maker.text("function", |at| {
            let frame = &rows[at].4;
            let known = mappings.get(frame.mapping as usize).copied().flatten();
            names.at(known, frame).first().and_then(|function| text(&function.name))
        });
        maker.flag("complete", |at| Some(rows[at].3));
        Ok(Batch { rows: rows.len(), columns: maker.fields(self.wanted) })
    }
}

/// A number; 0 = not known.
fn some(number: u32) -> Option<i64> {
    Some(i64::from(number)).filter(|number| *number != 0)
}
