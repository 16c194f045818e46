//! Table `syscalls`: calls that the tape stores, the rows of the listing without filters.

use std::cell::OnceCell;
use std::ops::{Index, Range};
use std::sync::Arc;

use serde_json::Value as Json;
use systape_format::header::BlockKind;
use systape_format::model::{CallState, FD_FIRST, Time};
use systape_format::reader::Segment;

use super::defs::SYSCALLS;
use super::make::Maker;
use super::nullable::Nullable;
use super::values::{Argument, NONE, Values};
use super::{Batch, Frame, FrameField};
use systape_answers::lines::json::args::Arguments;
use systape_answers::lines::row::{self, CallOutcome};
use systape_events::filter::failed;
use systape_events::load::{Base, FdPath, Loaded, OpenCalls};
use systape_events::loss::Hole;
use systape_events::scan::carry::Rows;
use systape_events::values::columns;

/// The bounds of a query as what calls and tasks of a segment pass.
struct CallBounds {
    calls: Option<Vec<bool>>,
    tasks: Option<Vec<bool>>,
    least_ns: Option<i64>,
}

impl CallBounds {
    fn new(frame: &Frame<'_>, loaded: &Loaded) -> Self {
        let within = frame.within;
        let calls = within.calls.as_ref();
        let pids = within.pids.as_ref();
        Self {
            calls: calls.map(|names| loaded.calls.iter().map(|call| names.contains(&call.name)).collect()),
            tasks: pids.map(|pids| loaded.dict.tasks.iter().map(|task| pids.contains(&task.pid)).collect()),
            least_ns: within.least_ns,
        }
    }

    /// Whether there are none.
    fn has_all(&self) -> bool {
        self.calls.is_none() && self.tasks.is_none() && self.least_ns.is_none()
    }

    /// Whether `row` is within them; its time is not looked at.
    fn has(&self, loaded: &Loaded, row: usize) -> bool {
        let core = &loaded.core;
        let passes = |those: &Option<Vec<bool>>, at: u32| those.as_ref().is_none_or(|those| those[at as usize]);
        passes(&self.calls, core.call[row])
            && passes(&self.tasks, core.task[row])
            && self.least_ns.is_none_or(|least| {
                let known = row::duration(loaded, row).known();
                known.is_some_and(|(ns, _)| i64::try_from(ns).is_ok_and(|ns| ns >= least))
            })
    }
}

/// The calls of a segment that are shown, ascending.
struct ShownCalls {
    /// Runs of rows that follow each other.
    runs: Vec<Range<usize>>,
    /// Each row, once somebody asks for that.
    list: OnceCell<Vec<usize>>,
}

impl ShownCalls {
    fn new(runs: Vec<Range<usize>>) -> Self {
        Self { runs, list: OnceCell::new() }
    }

    fn of(rows: impl Iterator<Item = usize>) -> Self {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for row in rows {
            match runs.last_mut() {
                Some(last) if last.end == row => last.end += 1,
                _ => runs.push(row..row + 1),
            }
        }
        Self::new(runs)
    }

    fn len(&self) -> usize {
        self.runs.iter().map(Range::len).sum()
    }

    fn list(&self) -> &[usize] {
        self.list.get_or_init(|| self.runs.iter().cloned().flatten().collect())
    }
}

impl Index<usize> for ShownCalls {
    type Output = usize;

    fn index(&self, at: usize) -> &usize {
        &self.list()[at]
    }
}

impl Frame<'_> {
    /// The `rows` of a segment: the wanted columns of those that the listing shows.
    pub(super) fn calls(&self, segment: Segment<'_>, rows: Option<Rows>, holes: &mut Vec<Hole>) -> Option<Batch> {
        let scope = &self.question.scope;
        let info = segment.info();
        // of a cut some calls began before or behind what it is about
        let timed = scope.timed();
        let shown = |loaded: &Loaded, number: u32| {
            let filter = scope.segment(&loaded.dict, number);
            let all = rows.map_or(0..loaded.core.call.len(), |rows| rows.of(&loaded.core));
            let within = CallBounds::new(self, loaded);
            if !timed && within.has_all() && filter.core_has_all(&loaded.core) {
                let runs = columns::runs_without(&loaded.core.state, all, CallState::CloneChild);
                return ShownCalls::new(runs);
            }
            let shown = |row: &usize| {
                let inside = within.has(loaded, *row) && (!timed || filter.time(&loaded.time, *row));
                inside && loaded.core.state[*row] != CallState::CloneChild && filter.core(&loaded.core, *row)
            };
            ShownCalls::of(all.filter(shown))
        };
        let maker = |rows: usize| Maker::new(&SYSCALLS, self.wanted.iter().copied(), self.common, rows);
        let wants = maker(0);
        // The summary's columns, and of the others what is wanted. Without times, arguments or files a call still has its
        // row, so that it does not depend on the columns of a query which rows there are.
        let mut read = || -> Result<Loaded, systape_format::Error> {
            let dict = segment.dict()?;
            let core = segment.core(&dict)?;
            let time = match (timed, wants.wants(&["ts_ns", "cpu"])) {
                (true, _) => segment.time(&dict, &core)?,
                (false, true) => segment.time(&dict, &core).unwrap_or_default(),
                (false, false) => Time::default(),
            };
            if wants.wants(&["args"]) {
                return Ok(Base::with(segment, dict, core, time).load(&self.question.book, holes));
            }
            let mut loaded = Loaded::of_columns(info.segment, dict, core, time, &self.question.book);
            if wants.wants(&["ret"]) {
                loaded.args = segment.args(&loaded.core).unwrap_or_default();
            }
            if wants.wants(&["file", "file2"]) {
                loaded.fds = segment.fds(&loaded.core).unwrap_or_default();
            }
            Ok(loaded)
        };
        // what cannot be read is among the tape's misses
        let loaded = read().ok()?;
        let shown = shown(&loaded, info.segment);
        Some(self.made(maker(shown.len()), &loaded, &shown))
    }

    /// The calls that were open when the recording ended abnormally.
    pub(super) fn open_calls(&self) -> Option<Batch> {
        let open = OpenCalls::read(self.tape)?;
        let loaded = open.load(&self.question.book);
        let filter = self.question.scope.segment(&loaded.dict, u32::MAX);
        let within = CallBounds::new(self, &loaded);
        let inside = |row: &usize| {
            within.has(&loaded, *row) && filter.core(&loaded.core, *row) && filter.time(&loaded.time, *row)
        };
        let shown = ShownCalls::of((0..loaded.rows()).filter(inside));
        let maker = Maker::new(&SYSCALLS, self.wanted.iter().copied(), self.common, shown.len());
        Some(self.made(maker, &loaded, &shown))
    }

    fn made(&self, mut maker: Maker<'_>, loaded: &Loaded, shown: &ShownCalls) -> Batch {
        let (core, time) = (&loaded.core, &loaded.time);
        let session = self.tape.session();
        maker.put("ts_ns", || match time.start.len() == core.state.len() {
            true => Values::Int(Nullable::new(columns::taken_signed(&time.start, &shown.runs), &[])),
            false => Values::Int(Nullable::all_null(shown.len())),
        });
        maker.bound("dur_ns", || durations(loaded, shown));
        maker.int("cpu", |at| time.cpu.get(shown[at]).map(|cpu| i64::from(*cpu)));
        maker.task("", &loaded.dict.tasks, |task| session.cgroup_path(task.cgroup_id), |at| Some(core.task[shown[at]]));
        let by_call = |name: &dyn Fn(usize) -> Vec<u8>| {
            let names = (0..loaded.calls.len()).map(name).collect();
            Values::Text(columns::taken(&core.call, &shown.runs), names)
        };
        maker.put("abi", || by_call(&|call| loaded.calls[call].abi.as_str().as_bytes().to_vec()));
        maker.put("syscall", || by_call(&|call| loaded.calls[call].name.as_bytes().to_vec()));
        maker.put("args", || arguments(loaded, shown));
        for (column, name) in [(0, "file"), (1, "file2")] {
            maker.put(name, || files(loaded, shown, column));
        }
        maker.int("ret", |at| match row::outcome(loaded, shown[at]) {
            CallOutcome::Ret(ret) => Some(ret),
            CallOutcome::Errno(_) => Some(-1),
            _ => None,
        });
        let errno = |at: usize| match core.state[shown[at]] {
            CallState::InFlight | CallState::Killed | CallState::NoReturn => None,
            _ => Some(core.errno[shown[at]]).filter(|errno| *errno != 0),
        };
        maker.word("errno", |at| errno(at).and_then(systape_abi::errno_name));
        maker.int("errno_code", |at| errno(at).map(i64::from));
        maker.flag("failed", |at| Some(failed(core.state[shown[at]], core.errno[shown[at]])));
        maker.word("incomplete", |at| row::incomplete(core.state[shown[at]]));
        Batch { rows: shown.len(), columns: maker.fields(self.wanted) }
    }
}

/// The durations of calls, and whether each is a lower bound.
fn durations(loaded: &Loaded, shown: &ShownCalls) -> (Values, Nullable<bool>) {
    let values = columns::taken_signed(&loaded.core.dur, &shown.runs);
    // of most calls the number that is stored is the duration
    let states = columns::taken(&loaded.core.state, &shown.runs);
    let (mut bounds, mut unknown) = (vec![false; values.len()], Vec::new());
    for at in columns::others(&states, CallState::Complete) {
        match row::duration(loaded, shown[at]).known() {
            Some((_, short)) => bounds[at] = short,
            None => unknown.push(at),
        }
    }
    let bounds = Nullable::new(bounds, &unknown);
    // longer than a number with a sign can say
    unknown.extend(columns::negative(&values));
    (Values::Int(Nullable::new(values, &unknown)), bounds)
}

fn files(loaded: &Loaded, shown: &ShownCalls, column: usize) -> Values {
    let column_of = if column == 0 { &loaded.fds.fd } else { &loaded.fds.fd2 };
    let code = |row: &usize| match loaded.fd_of_column(*row, column) {
        FdPath::Known(_) => column_of.get(*row).map_or(NONE, |fd| fd - FD_FIRST),
        FdPath::None | FdPath::Unknown => NONE,
    };
    Values::Text(shown.list().iter().map(code).collect(), loaded.fds.names.clone())
}

/// The arguments, each as a short text of what the listing's JSON has.
fn arguments(loaded: &Loaded, shown: &ShownCalls) -> Values {
    let mut writer = Arguments::new(loaded);
    let names: Vec<Vec<Arc<str>>> =
        loaded.calls.iter().map(|call| call.args.iter().map(|arg| Arc::from(&*arg.name)).collect()).collect();
    let one = |row: &usize| {
        if !writer.is_recorded(*row) {
            return None;
        }
        let names = &names[loaded.core.call[*row] as usize];
        let mut made: Vec<Argument> = Vec::with_capacity(names.len());
        writer.each(*row, |at, json| made.push((Arc::clone(&names[at]), short(json))));
        Some(made)
    };
    Values::Map(shown.list().iter().map(one).collect())
}

/// The text of a value that our own writer made as JSON. Most are numbers, plain strings and descriptors.
fn short(json: &[u8]) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    match json {
        b"null" => return None,
        [b'0'..=b'9' | b'-', ..] => return text(json),
        // a descriptor; one of them has a word of its own
        [b'{', b'"', b'f', b'd', b'"', b':', rest @ ..] if !rest.starts_with(b"-100") => {
            return rest.split(|byte| *byte == b',').next().and_then(text);
        }
        [b'"', inner @ .., b'"'] if !inner.iter().any(|byte| matches!(byte, b'"' | b'\\')) => return text(inner),
        _ => {}
    }
    serde_json::from_slice(json).ok().and_then(text_of)
}

/// The text of a value: of an object its `text`, or the number of its descriptor.
fn text_of(value: Json) -> Option<String> {
    match value {
        Json::Null => None,
        Json::String(text) => Some(text),
        Json::Object(map) if map.contains_key("fd") => match (map.get("text"), map.get("fd")) {
            (Some(Json::String(text)), _) => Some(text.clone()),
            (_, fd) => fd.map(Json::to_string),
        },
        Json::Object(map) if map.contains_key("text") && !map.contains_key("missing") => match map.get("text") {
            Some(Json::String(text)) => Some(text.clone()),
            _ => None,
        },
        other => Some(other.to_string()),
    }
}

/// The blocks that are read of a segment for the columns `wanted`.
pub(super) fn blocks(wanted: &[&FrameField]) -> Vec<BlockKind> {
    let maker = |names: &[&str]| wanted.iter().any(|field| names.iter().any(|name| column(field) == Some(name)));
    let mut kinds = vec![BlockKind::SyscallsCore];
    let all = maker(&["args"]);
    let groups: [(&[&str], BlockKind); 4] = [
        (&["ts_ns", "cpu"], BlockKind::SyscallsTime),
        (&["ret"], BlockKind::SyscallsArgs),
        (&["file", "file2"], BlockKind::SyscallsFds),
        (&[], BlockKind::SyscallsBytes),
    ];
    kinds.extend(groups.into_iter().filter(|(names, _)| all || maker(names)).map(|(_, kind)| kind));
    kinds
}

/// The column of the declaration that a field shows.
fn column(field: &FrameField) -> Option<&'static str> {
    SYSCALLS.columns.get(field.of).map(|column| &*column.name)
}
