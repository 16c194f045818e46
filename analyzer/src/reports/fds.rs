//! `analyze fds`: which descriptors processes held at one moment, as lsof and `ls -l /proc/PID/fd` show them.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use systape_format::model::{Family, GapCause, Task};
use systape_format::reader::Tape;

use super::idle::of_machine;
use super::instant::{all_ended, instant};
use super::{Context, losses};
use crate::asked::config::Config;
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use systape_answers::derive::fds::calls::matters;
use systape_answers::derive::fds::feed::{Fed, Held, feed};
use systape_answers::derive::fds::file::{kind, kind_made};
use systape_answers::derive::fds::tables::Open;
use systape_answers::derive::lost_calls::has_effect;
use systape_answers::derive::paths::cwds::{Cwds, Moves};
use systape_answers::derive::sharers::Member;
use systape_answers::render::cell::Cell;
use systape_answers::render::json::bytes;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::row::{Row, some, user};
use systape_answers::render::table::{Table, seconds};
use systape_answers::values::say::Verdict;
use systape_events::loss::ListedLoss;
use systape_events::question::Question;
use systape_events::values::timespec::{self, Edge};
use systape_events::values::words::{escaped, named};

systape_format::tables! {
    /// One row for each descriptor that was open, in order of processes and numbers; before those of a process one for its current directory, if that is known.
    pub FDS = "fds" {
        ts_ns: Time key "the moment"
        pid: Int key "process"
        tid: Int key "thread, if the table is of this thread alone; null: it is the process's"
        upid: Int key "the process, unique in the tape; null: not known"
        comm: Str [Comm] "name of the process's first thread, or of the thread, at that moment"
        uid: Int "real user; null: not known"
        fd: Int key "descriptor; null: it is the current directory"
        kind: Word "`cwd`, `path`, `pipe`, `socket`, `eventfd`, `eventpoll` and so on; null: not known"
        name: Str [Path] "what it stands for, as /proc/PID/fd has it, of sockets their addresses; a file keeps the name it was opened by. null: no call or checkpoint of the tape has it"
        given: Str [Path] "path that the call that opened it was given; null: none, or that call is not on the tape"
        mode: Word "`r`, `w` or `rw`, by the flags of that call; null: not known"
        cloexec: Flag "exec closes it; null: not known"
        peers ? AtLeast: Nested [Comm] "of a pipe: other processes that have it open too, at either end; of a connected UNIX socket those that hold the other end. `[{pid, comm, upid}]`; null: it is neither, or not known"
        since_ns: Time "when the descriptor became this file; null: before the tape, or in a way that is not on it"
        by: Word "call that opened the file; null: it is not on the tape"
        open: Flag "it was open, and this; false: what is not on the tape may have closed it, and given its number to another"
        complete: Flag "the process had no other descriptors, as far as calls tell"
        unseen: Flag "others may have come in ways that no call shows: in messages of a UNIX socket, by an io_uring"
    }
}

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "fds",
    about: "Which descriptors processes held at one moment (lsof)",
    options: &[TASKS, &["max_events"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze fds -p 4711 --at 12.5", "what a process had open at 12.5 s"),
        ("analyze fds --comm=nginx --at 100%", "of all that lived at the end of the tape"),
    ],
    tables: &[Rows::of("fds", &[All(&FDS)])],
    check,
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// The moment (as an end of --time) [default: the end of the tape]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: Option<String>,
}

impl Options {
    fn at(&self) -> Result<Edge> {
        timespec::edge(self.at.as_deref().unwrap_or("100%")).context("--at")
    }
}

/// The moment must be one.
fn check(config: &Config) -> Result<()> {
    config.own::<Options>()?.at().map(drop)
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let edge = config.own::<Options>()?.at()?;
    let mut context = Context::about(config, tape, &[Family::Syscall, Family::Process])?;
    let at = instant(tape, edge, out)?;
    let scope = &context.question.scope;
    let fed = feed(&context.question, at, |task| scope.task(task));
    context.question.loss.keep_counted_of(tape, scope, |call| has_effect(call, matters));
    let cwds = directories(&context.question, &fed, at);
    let shown = Shown { at, context: &context, fed: &fed };
    let notes = shown.notes();
    let rows: Vec<Line<'_>> = fed.held.iter().zip(&cwds).flat_map(lines).collect();
    let open =
        || rows.iter().filter_map(|row| if let Line::Fd(held, _, open) = row { Some((*held, *open)) } else { None });
    let unnamed = open().any(|(_, open)| open.file.name().is_none());
    let unsure = |(held, open): (&Held, &Open)| {
        !open.is_open || (held.table.lost && (open.since.is_none() || open.file.origin.is_none()))
    };
    let doubted =
        fed.held.iter().any(|held| !held.table.complete) || open().any(unsure) || cwds.iter().any(Option::is_none);
    let mut loss = context.question.loss.clone();
    // what was lost matters if it made something unknown: a table until the moment, a name also behind it
    if doubted || unnamed || rows.is_empty() {
        loss.add_earlier(tape, &context.question.families, if unnamed { u64::MAX } else { at });
    } else {
        loss.gaps.retain(|gap| matches!(gap.cause, GapCause::Damaged | GapCause::DetailDamaged));
    }
    out.ranking(
        TopRows { table: &FDS, judged: context.judged(), headings: table(), all: rows.len(), limit: config.most() },
        rows.iter(),
        |row| shown.row(row),
        |row| shown.cells(row),
    )?;
    if shown.peers_lack() && open().any(|(held, open)| shown.peers(held, open).is_some_and(|all| !all.is_empty())) {
        out.text(["-> names recorded processes that hold the same or its other end; others may, too"])?;
    }
    out.notes(&notes)?;
    let Fed { coverage, .. } = fed;
    context.question.loss = loss;
    coverage.tell(&mut context.question.loss);
    losses::end(&context, out, false, ListedLoss::Nothing)
}

/// A line of the answer.
#[derive(Clone, Copy)]
enum Line<'a> {
    /// The current directory.
    Cwd(&'a Held, &'a [u8]),
    /// A descriptor.
    Fd(&'a Held, i32, &'a Open),
}

fn lines<'a>((held, cwd): (&'a Held, &'a Option<Arc<[u8]>>)) -> impl Iterator<Item = Line<'a>> {
    let fds = held.table.fds.iter().map(move |(fd, open)| Line::Fd(held, *fd, open));
    cwd.iter().map(move |cwd| Line::Cwd(held, cwd)).chain(fds)
}

/// The current directory at `at` of each whose table is shown; None: it is not known.
fn directories(question: &Question<'_>, fed: &Fed, at: u64) -> Vec<Option<Arc<[u8]>>> {
    let Some(moves) = Moves::all(question).filter(|_| !fed.held.is_empty()) else { return vec![None; fed.held.len()] };
    let mut cwds = Cwds::new(&moves);
    cwds.advance(at, at);
    let cwd = |held: &Held| cwds.history()?.cwd(Member::of(&held.task), at, at).cloned();
    fed.held.iter().map(cwd).collect()
}

/// What is printed.
struct Shown<'a> {
    /// The moment.
    at: u64,
    context: &'a Context<'a>,
    fed: &'a Fed,
}

/// Most processes that notes name, and that a line names at the other end of a pipe.
const NOTED: usize = 8;
const PEERS: usize = 3;

impl Shown<'_> {
    fn row<'r>(&self, line: &Line<'r>) -> Row<'r> {
        let (Line::Cwd(held, _) | Line::Fd(held, ..)) = *line;
        let (task, table) = (&*held.task, &held.table);
        let window = self.context.question.tape.session().window_open;
        let relative = |ts: u64| ts.wrapping_sub(window) as i64;
        let mut row = Row::new(&FDS);
        row.set("ts_ns", relative(self.at)).set("pid", task.pid).set("tid", held.own.then_some(task.tid));
        row.set("upid", some(task.upid)).set("comm", &task.comm).set("uid", user(task.uid));
        let (fd, open) = match *line {
            Line::Cwd(_, cwd) => {
                row.set("fd", None::<u64>).set("kind", "cwd").set("name", cwd.to_vec());
                row.set("given", None::<u64>).set("mode", None::<u64>).set("cloexec", None::<u64>);
                row.bound("peers", None::<u64>, false).set("since_ns", None::<u64>).set("by", None::<u64>);
                row.set("open", true).set("complete", table.complete).set("unseen", table.unseen);
                return row;
            }
            Line::Fd(_, fd, open) => (fd, open),
        };
        let origin = open.file.origin.as_ref();
        row.set("fd", fd).set("kind", self.kind(open)).set("name", open.file.name().map(|name| name.to_vec()));
        row.set("given", origin.and_then(|origin| origin.given.as_deref()).map(<[u8]>::to_vec));
        row.set("mode", mode(open)).set("cloexec", open.cloexec);
        row.bound(
            "peers",
            self.peers(held, open)
                .map(|peers| Cell::Spelled(peers.iter().map(peer).collect(), whose_all(&peers, usize::MAX))),
            self.peers_lack(),
        );
        row.set("since_ns", open.since.map(relative)).set("by", self.by(open)).set("open", open.is_open);
        row.set("complete", table.complete).set("unseen", table.unseen);
        row
    }

    /// The processes at the other end of a pipe or UNIX socket.
    fn peers(&self, held: &Held, open: &Open) -> Option<Vec<Arc<Task>>> {
        self.fed.holders.others(&held.task, &open.file)
    }

    /// Whether others may be there that the tape does not have.
    fn peers_lack(&self) -> bool {
        !self.fed.all_known || self.fed.unrecorded || !of_machine(self.context.question.tape)
    }

    fn kind(&self, open: &Open) -> Option<String> {
        let name = open.file.name();
        let known = name.as_deref().and_then(kind).map(escaped_word);
        known.or_else(|| self.by(open).and_then(|by| kind_made(&by)).map(str::to_owned))
    }

    fn by(&self, open: &Open) -> Option<String> {
        let origin = open.file.origin.as_ref()?;
        Some(self.context.question.book.get(origin.call).long_name.clone())
    }

    /// A row of [`table`].
    fn cells(&self, line: &Line<'_>) -> Vec<String> {
        let window = self.context.question.tape.session().window_open;
        let (held, fd, open) = match *line {
            Line::Cwd(held, cwd) => {
                let [no_mode, since, by] = ["-", "", "-"].map(str::to_owned);
                return vec![whose(held), "-".to_owned(), "cwd".to_owned(), no_mode, since, by, escaped(cwd)];
            }
            Line::Fd(held, fd, open) => (held, fd, open),
        };
        let doubt = if open.is_open { "" } else { "?" };
        let exec = if open.cloexec == Some(true) { " cloexec" } else { "" };
        let origin = open.file.origin.as_ref();
        let name = match (open.file.name(), origin.and_then(|origin| origin.given.as_deref())) {
            (Some(name), _) => escaped(&name),
            (None, Some(given)) => format!("{} (as given)", escaped(given)),
            (None, None) => "?".to_owned(),
        };
        let peers = self.peers(held, open).filter(|peers| !peers.is_empty());
        let name = peers.map_or(name.clone(), |peers| format!("{name} -> {}", whose_all(&peers, PEERS)));
        vec![
            whose(held),
            format!("{doubt}{fd}"),
            self.kind(open).unwrap_or_else(|| "?".to_owned()),
            format!("{}{exec}", mode(open).unwrap_or("-")),
            open.since.map_or_else(|| "before".to_owned(), |since| seconds(since, window)),
            self.by(open).unwrap_or_else(|| "-".to_owned()),
            name,
        ]
    }

    /// What the tables do not hold, and why.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let list = |which: fn(&Held) -> bool| {
            let all: Vec<String> = self.fed.held.iter().filter(|held| which(held)).map(whose).collect();
            let more = all.len().saturating_sub(NOTED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            (!all.is_empty()).then(|| format!("{}{more}", all[..all.len().min(NOTED)].join(", ")))
        };
        if self.fed.held.is_empty() {
            let window = self.context.question.tape.session().window_open;
            let ended = all_ended(self.context, self.at);
            ended.iter().for_each(|_| self.context.config.shown.explained());
            notes.push(ended.unwrap_or_else(|| {
                format!(
                    "no process asked for is known to have lived at {} s; --at TIME asks for another moment",
                    seconds(self.at, window)
                )
            }));
        }
        if self.fed.unrecorded {
            notes.push(
                "NOT RECORDED: record left out calls that open or close descriptors: these are what checkpoints and \
                 calls of the tape show, and may have been closed"
                    .to_owned(),
            );
        } else if let Some(whose) = list(|held| !held.table.complete) {
            notes.push(format!(
                "INCOMPLETE: others may have been open, and those with ? closed, because events were lost or the table \
                 was not known at the start: {whose}"
            ));
        }
        if let Some(whose) = list(|held| held.table.unseen) {
            notes.push(format!(
                "UNSEEN: descriptors may have come or gone in messages of a UNIX socket, by an io_uring or by clone's \
                 pidfd: {whose}"
            ));
        }
        notes
    }
}

/// The printed table, without rows.
fn table() -> Table {
    let table = Table::default().word("process").number("fd").word("type").word("mode").number("since");
    table.word("by").word("name").leaving(&["by", "mode", "since", "type"])
}

/// A process as JSON has it.
fn peer(task: &Arc<Task>) -> serde_json::Value {
    serde_json::json!({ "pid": task.pid, "comm": bytes(&task.comm), "upid": some(task.upid) })
}

/// `cat[17], wc[18] and 2 more`.
fn whose_all(tasks: &[Arc<Task>], limit: usize) -> String {
    let named: Vec<String> =
        tasks.iter().take(limit).map(|task| format!("{}[{}]", named(&task.comm), task.pid)).collect();
    let more = tasks.len().saturating_sub(limit);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

/// `nginx[17]`; `nginx[17/18]`: of that thread alone.
fn whose(held: &Held) -> String {
    let thread = if held.own { format!("/{}", held.task.tid) } else { String::new() };
    format!("{}[{}{thread}]", named(&held.task.comm), held.task.pid)
}

fn mode(open: &Open) -> Option<&'static str> {
    match open.file.origin.as_ref()?.mode? {
        0 => Some("r"),
        1 => Some("w"),
        2 => Some("rw"),
        _ => None,
    }
}

fn escaped_word(word: &str) -> String {
    escaped(word.as_bytes())
}
