//! Calls on files one a line, as opensnoop and fileslower print them.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use anyhow::Result;
use systape_abi::{ArgKind, ContentIo, FlagStyle, errno_name};
use systape_format::model::{CallState, Task};

use super::{FILE_CALLS, is_file, on_files};
use crate::reports::timed::Timed;
use crate::reports::{Context, losses};
use systape_answers::derive::paths::feed::{Reader, Told, Waiting, feed};
use systape_answers::derive::paths::join;
use systape_answers::derive::paths::names::{Name, uses};
use systape_answers::lines::row::{Duration, duration};
use systape_answers::lines::value::narrow;
use systape_answers::render::cell::Cell;
use systape_answers::render::fields::{TextColumn, TextColumns};
use systape_answers::render::mark;
use systape_answers::render::out::Out;
use systape_answers::render::paint;
use systape_answers::render::row::{Row, ShownTimes};
use systape_answers::render::stamp::{Column, Stamps};
use systape_answers::render::table::millis;
use systape_answers::values::say::Verdict;
use systape_events::calls::{ArgInfo, CallInfo};
use systape_events::filter::failed;
use systape_events::load::Loaded;
use systape_events::moved::Moved;
use systape_events::values::words::{errno_text, escaped};

/// Reads calls that are listed.
struct Lines<'a> {
    context: &'a Context<'a>,
    list: &'a List,
}

/// Which calls are listed, and how their lines look.
pub(in crate::reports) struct List {
    /// What they do.
    pub doing: ListedAction,
    /// Least duration of calls that are listed, ns.
    pub slower: Option<u64>,
    /// Whether those on what is no file are listed too.
    pub sockets: bool,
    /// Makes the texts of times.
    pub stamps: Stamps,
    /// What lines of text look like.
    pub layout: Layout,
}

/// What calls do that are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::reports) enum ListedAction {
    Open,
    /// Calls that ask for the attributes of a path or of what it is on.
    Stat,
    /// Calls that work on files, by path or descriptor.
    Any,
}

impl ListedAction {
    fn is_done_by(self, info: &CallInfo) -> bool {
        /// Those of bcc's statsnoop, and others that do the same.
        const STATS: [&str; 9] =
            ["stat", "lstat", "newfstatat", "fstatat64", "stat64", "lstat64", "statx", "statfs", "statfs64"];
        match self {
            Self::Open => info.io == ContentIo::Open,
            Self::Stat => STATS.contains(&&*info.name),
            Self::Any => on_files(info),
        }
    }
}

/// How text looks.
pub(in crate::reports) struct Layout {
    /// The heading.
    pub head: fn(&Stamps) -> Vec<u8>,
    /// A call; its thread's directory, if known, stands before paths that are relative to it.
    pub line: fn(&ListedCall, Option<&[u8]>, &Stamps) -> Vec<u8>,
}

/// Layout of opensnoop, with flags and full paths.
pub(super) const OPENS: Layout = Layout {
    head: |stamps| format!("{}\n", TextColumns::timed(stamps.heading(TIME), OPENED).head()).into_bytes(),
    line: |call, cwd, stamps| call.text(cwd, true, stamps),
};
/// Layout of fileslower.
pub(super) const SLOWER: Layout = Layout {
    head: |stamps| format!("{}\n", TextColumns::timed(stamps.heading(TIME), SLOW).head()).into_bytes(),
    line: |call, cwd, stamps| call.text(cwd, false, stamps),
};

/// A known path, or one that may become known with the directory.
pub(in crate::reports) enum Place {
    Known(Vec<u8>),
    InCwd(Vec<u8>),
    Unknown,
}

impl Place {
    /// The path, where `cwd` is the thread's directory.
    pub(in crate::reports) fn path(&self, cwd: Option<&[u8]>) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Known(path) => Some(Cow::Borrowed(path)),
            Self::InCwd(name) => join(cwd?, name).map(Cow::Owned),
            Self::Unknown => None,
        }
    }
}

/// A call that is listed.
pub(in crate::reports) struct ListedCall {
    pub start: u64,
    end: u64,
    dur: Duration,
    pub task: Task,
    call: String,
    /// What it returned; None: it failed, or did not return.
    pub ret: Option<i64>,
    /// The new descriptor; None: it failed, did not return, or opens nothing.
    pub fd: Option<i64>,
    /// Error of the call; None: it did not fail, or did not return.
    pub errno: Option<u16>,
    flags: Option<(u64, String)>,
    read: Option<u64>,
    written: Option<u64>,
    /// It moved bytes, and it is not known how many.
    unsized_bytes: bool,
    /// The path as the program gave it.
    pub given: Option<Vec<u8>>,
    /// Whether it is longer.
    pub cut: bool,
    /// The file that was opened, as the kernel named it.
    opened: Option<Vec<u8>>,
    pub files: [Option<Place>; 2],
}

impl Reader for Lines<'_> {
    type Sum = ();
    type Row = Box<ListedCall>;

    fn wants(&self, segment: usize) -> bool {
        self.context.question.scope.may_match(&self.context.question.tape.segments()[segment])
    }

    fn read(&self, segment: &Loaded, range: Range<usize>, waiting: &mut Vec<Waiting<Box<ListedCall>>>) {
        let filter = self.context.question.scope.segment(&segment.dict, segment.number);
        let calls: Vec<bool> = segment.calls.iter().map(|info| self.list.doing.is_done_by(info)).collect();
        let anything = self.list.sockets || self.list.doing != ListedAction::Any;
        for row in range {
            let state = segment.core.state[row];
            let dur = duration(segment, row);
            // of what is open the time so far
            let slow = self.list.slower.is_none_or(|least| match dur {
                Duration::Exact(ns) => ns > least,
                Duration::AtLeast(ns) => ns >= least,
                Duration::Unknown => false,
            });
            let passes = filter.core(&segment.core, row) && filter.time(&segment.time, row);
            if !slow || !calls[segment.core.call[row] as usize] || state == CallState::CloneChild || !passes {
                continue;
            }
            let mut on = uses(segment, row).filter(|on| anything || is_file(&on.name));
            let (Some(first), second) = (on.next(), on.next()) else { continue };
            let (info, errno) = (segment.call(row), segment.core.errno[row]);
            let ret = segment.args.ret.get(row).copied().filter(|_| errno == 0 && state.returned());
            let place = |name: &Name<'_>| match name {
                Name::Known(path) => Place::Known(path.to_vec()),
                Name::InCwd(name) => Place::InCwd(name.to_vec()),
                Name::Unknown | Name::Nothing => Place::Unknown,
            };
            let moved = Moved::by(segment, row);
            let bytes = |does: bool| (does && ret.is_some() && !moved.is_short()).then(|| moved.least());
            let start = segment.time.start[row];
            waiting.push(Waiting {
                row,
                what: Box::new(ListedCall {
                    start,
                    end: start.saturating_add(segment.core.dur[row]),
                    dur,
                    task: segment.task(row).clone(),
                    call: info.long_name.clone(),
                    ret,
                    fd: ret.filter(|_| info.io == ContentIo::Open),
                    errno: failed(state, errno).then_some(errno),
                    flags: if info.io == ContentIo::Open { open_flags(segment, row) } else { None },
                    read: bytes(info.io.reads().is_some()),
                    written: bytes(info.io.writes().is_some()),
                    unsized_bytes: moved.is_short(),
                    given: first.given.map(<[u8]>::to_vec),
                    cut: first.cut,
                    opened: first.opened.map(<[u8]>::to_vec),
                    files: [Some(place(&first.name)), second.map(|second| place(&second.name))],
                }),
            });
        }
    }
}

/// The flags of the open in `row`, as in the listing; None: not known.
fn open_flags(segment: &Loaded, row: usize) -> Option<(u64, String)> {
    let (info, args) = (segment.call(row), segment.args.of(row)?);
    let flags = systape_abi::open_flags(info.abi);
    let value = if info.name == "creat" {
        // O_CREAT|O_WRONLY|O_TRUNC
        0o1101
    } else {
        let at = |arg: &ArgInfo| matches!(arg.kind, ArgKind::Flags(_) | ArgKind::OpenHow { .. });
        let at = info.args.iter().position(at)?;
        match info.args[at].kind {
            ArgKind::OpenHow { .. } => {
                let how = segment.captured(row).iter().find(|value| usize::from(value.arg) == at)?;
                u64::from_le_bytes(*how.bytes.first_chunk::<8>()?)
            }
            kind => narrow(kind, args[at]),
        }
    };
    let mut text = String::new();
    flags.write_text(value, FlagStyle { prefix: false }, &mut text);
    Some((value, text))
}

/// Column of times.
const TIME: Column = Column { name: "time", width: 11, places: 6, right: false };

/// The whole answer of a report that is such a list.
pub(in crate::reports) fn answer(context: &mut Context<'_>, list: &List, out: &mut Out) -> Result<Verdict> {
    print(context, list, out)?;
    losses::tell_filtered(context, out);
    losses::end_of_list(context, out)
}

fn print(context: &mut Context<'_>, list: &List, out: &mut Out) -> Result<()> {
    let (times, loss) = (context.times(), &context.question.loss);
    let head = || (list.layout.head)(&list.stamps);
    let mut timed = Timed::begin(context, loss, (&FILE_CALLS, None), head, out)?;
    let lines = Lines { context, list };
    let read = feed(&context.question, &lines, |row| {
        let Told::Row(call, cwd) = row else { return Ok(ControlFlow::Continue(())) };
        let cwd = cwd.as_deref();
        let text = |out: &mut Vec<u8>| out.extend((list.layout.line)(&call, cwd, &list.stamps));
        timed.event(call.end, text, || call.row(cwd, &times));
        Ok(timed.write_many()?)
    })?;
    timed.end()?;
    read.tell(&mut context.question.loss);
    Ok(())
}

/// The columns of opensnoop's lines behind the time.
const OPENED: [TextColumn; 6] = [
    TextColumn::left("pid", 7).leaves(2),
    TextColumn::left("comm", 15).shortens(),
    TextColumn::right("fd", 4).leaves(3),
    TextColumn::left("error", 8),
    TextColumn::left("flags", 24).leaves(1),
    TextColumn::left("path", 0).shortens(),
];

/// Those of fileslower's.
const SLOW: [TextColumn; 6] = [
    TextColumn::left("comm", 15).shortens(),
    TextColumn::left("tid", 7).leaves(1),
    TextColumn::left("call", 12),
    TextColumn::right("bytes", 9).leaves(2),
    TextColumn::right("took ms", 10),
    TextColumn::left("file", 0).shortens(),
];

impl ListedCall {
    fn text(&self, cwd: Option<&[u8]>, opens: bool, stamps: &Stamps) -> Vec<u8> {
        let or = |text: Option<String>, otherwise: &str| text.unwrap_or_else(|| otherwise.to_owned());
        let (time, comm) = (stamps.text(TIME, self.start), escaped(&self.task.comm));
        let fill = |text: String| if opens { format!("{text:<8}") } else { format!("{text:>9}") };
        let error = or(self.errno.map(|errno| paint::error(fill(errno_text(errno)))), "-");
        let [first, second] = self.files.each_ref().map(|place| place.as_ref().map(|place| place.path(cwd)));
        // of what is relative to nobody knows what, at least its name
        let given = self.given.as_ref();
        let given = given.map(|given| format!("?/{}{}", escaped(given), if self.cut { "..." } else { "" }));
        let path = |path: Option<Cow<'_, [u8]>>, given: Option<String>| match path {
            Some(path) => escaped(&path),
            None => or(given, "?"),
        };
        let named = path(first.flatten(), given);
        let mut file = match self.opened.as_ref().map(|file| escaped(file)) {
            Some(file) if file != named => format!("{file} (opened as {named})"),
            _ => named,
        };
        if let Some(second) = second {
            file = format!("{file} -> {}", path(second, None));
        }
        if opens {
            let fd = or(self.fd.map(|fd| fd.to_string()), "-");
            let flags = self.flags.as_ref().map_or("?", |(_, text)| text);
            let texts = [&self.task.pid.to_string(), &comm, &fd, &error, flags, &file];
            return format!("{}\n", TextColumns::timed(time, OPENED).line(&texts)).into_bytes();
        }
        let unknown = if self.unsized_bytes { "?" } else { &error };
        let bytes = or(self.read.or(self.written).map(|bytes| bytes.to_string()), unknown);
        let (latency, known) = match self.dur {
            Duration::Exact(ns) => (millis(ns, ""), Some(ns)),
            Duration::AtLeast(ns) => (millis(ns, mark::AT_LEAST), Some(ns)),
            Duration::Unknown => ("?".to_owned(), None),
        };
        let latency = paint::time(&latency, 10, known);
        let texts = [&comm, &self.task.tid.to_string(), &self.call, &bytes, &latency, &file];
        format!("{}\n", TextColumns::timed(time, SLOW).line(&texts)).into_bytes()
    }

    fn row<'a>(&'a self, cwd: Option<&[u8]>, times: &ShownTimes<'a>) -> Row<'a> {
        let path = |place: &'a Option<Place>| place.as_ref()?.path(cwd).map(Cell::Text);
        let [first, second] = self.files.each_ref().map(path);
        let mut row = Row::new(&FILE_CALLS);
        row.set("ts_ns", times.since(self.start)).time("time", Some(self.start), times);
        match self.dur {
            Duration::Exact(ns) => row.bound("dur_ns", ns, false),
            Duration::AtLeast(ns) => row.bound("dur_ns", ns, true),
            Duration::Unknown => row.set("dur_ns", None::<u64>),
        };
        row.task("", Some(&self.task)).set("syscall", &*self.call).set("fd", self.fd);
        row.set("errno", self.errno.and_then(errno_name)).set("errno_code", self.errno);
        match &self.flags {
            Some((value, text)) => row.set("flags_value", *value).set("flags_text", &**text),
            None => row.absent("flags"),
        };
        row.set("read_bytes", self.read).set("write_bytes", self.written);
        row.set("file", self.opened.as_ref().map(Cell::from).or(first)).set("name", self.given.as_ref());
        row.set("file2", second);
        row
    }
}
