//! Sleeps of threads that wait for work, as [`systape_abi::rest`] knows them.

use rustc_hash::FxHashMap;
use systape_abi::rest::{at_rest, takes};
use systape_format::model::{Call, Task};

use super::keys::is_kernel;
use super::{Doing, End, Interval, State};
use crate::derive::waits::is_futex;
use systape_events::calls::{CallBook, CallInfo};

/// Whether who is in the call `info`, which is on the file `on`, is at rest whatever wakes it. None: not known on what; a call that takes data
/// is then not at rest. Of waits for futexes only who wakes them says it.
pub fn rests(info: &CallInfo, on: Option<&[u8]>) -> bool {
    let takes = on.is_some() && takes(&info.name, info.io);
    !is_futex(&info.name) && at_rest(&info.name, takes, on)
}

/// What a sleep in a call is.
#[derive(Clone, Copy, Debug)]
enum SleepKind {
    /// Waits for data: its file says for whose.
    Data,
    /// Waits for a futex.
    Futex,
    /// A sleep that is rest.
    Rest,
    /// A sleep that is none.
    Other,
}

/// Tells idle sleeps from others.
#[derive(Clone, Debug)]
pub struct Rests {
    /// The selected time: who sleeps for all of it is at rest in a futex, too.
    span: (u64, u64),
    /// By number of the file, whether who takes data from it rests.
    files: Vec<bool>,
    calls: FxHashMap<Call, SleepKind>,
}

impl Rests {
    /// Makes one of sleeps in `span`.
    pub fn new(span: (u64, u64)) -> Self {
        Self { span, files: Vec::new(), calls: FxHashMap::default() }
    }

    /// Takes what [`super::IntervalSink::file`] gives.
    pub fn file(&mut self, number: u32, name: &[u8]) {
        let at = number as usize;
        // of a file that is not known that is not known either
        self.files.resize(self.files.len().max(at + 1), true);
        self.files[at] = at_rest("read", true, Some(name));
    }

    /// Whether `task` is at rest in `interval`: asleep, and nothing but work ends that.
    pub fn is(&mut self, book: &CallBook<'_>, task: &Task, interval: &Interval) -> bool {
        match (interval.state, interval.doing) {
            // what the kernel itself calls idle
            (State::Sleeping(b'I'), _) => true,
            (State::Sleeping(b'S'), _) if is_kernel(task) => true,
            (State::Sleeping(b'S'), Doing::Call(call)) => {
                match *self.calls.entry(call.call).or_insert_with(|| sleep(&book.get(call.call))) {
                    SleepKind::Data => self.files.get(call.file as usize).copied().unwrap_or(true),
                    SleepKind::Futex => self.whole(interval),
                    SleepKind::Rest => true,
                    SleepKind::Other => false,
                }
            }
            _ => false,
        }
    }

    /// Whether it lasts from the beginning of the time to its end.
    fn whole(&self, interval: &Interval) -> bool {
        (interval.from <= self.span.0 || interval.continued)
            && (interval.to >= self.span.1 || matches!(interval.end, End::Stop | End::Step))
    }
}

fn sleep(info: &CallInfo) -> SleepKind {
    match info {
        _ if takes(&info.name, info.io) => SleepKind::Data,
        _ if is_futex(&info.name) => SleepKind::Futex,
        _ if rests(info, None) => SleepKind::Rest,
        _ => SleepKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use systape_format::model::{CPU_NONE, Call, Session};

    use super::super::InCall;
    use super::*;

    #[test]
    fn who_waits_for_work_is_at_rest() {
        let session = Session { machine: "x86_64".to_owned(), ..Session::default() };
        let book = CallBook::new(&session);
        let mut rests = Rests::new((0, 100));
        rests.file(2, b"pipe:[7]");
        rests.file(3, b"/var/lib/db");
        let sleep = |nr, file, state, to| Interval {
            state,
            from: 0,
            to,
            began_before: false,
            continued: false,
            end: End::Woken(None),
            doing: Doing::Call(InCall { call: Call { abi: 1, nr }, file, ..InCall::default() }),
            cpu: CPU_NONE,
        };
        let user = Task { tid: 5, pid: 5, ppid: 1, exe: b"/bin/app".to_vec(), ..Task::default() };
        let mut kernels = rests.clone();
        let mut is = |interval: Interval| rests.is(&book, &user, &interval);
        let (s, d) = (State::Sleeping(b'S'), State::Sleeping(b'D'));
        // poll, read of a pipe, of a file that is not known
        assert!(is(sleep(7, 0, s, 5)) && is(sleep(0, 2, s, 5)) && is(sleep(0, 1, s, 5)));
        // read of a file, of a pipe in uninterruptible sleep, fsync
        assert!(!is(sleep(0, 3, s, 5)) && !is(sleep(0, 2, d, 5)) && !is(sleep(74, 3, s, 5)));
        // a futex only for all of the time
        assert!(!is(sleep(202, 0, s, 99)) && is(sleep(202, 0, s, 100)));
        let kernel = Task { tid: 9, pid: 9, ppid: 2, ..Task::default() };
        let asleep = Interval { doing: Doing::User, ..sleep(0, 0, s, 5) };
        assert!(kernels.is(&book, &kernel, &asleep) && !is(asleep));
        assert!(!kernels.is(&book, &kernel, &Interval { state: d, ..asleep }));
    }
}
