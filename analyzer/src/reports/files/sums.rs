//! Sums of calls on files by keys.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use anyhow::Result;
use rustc_hash::{FxHashMap, FxHashSet};
use systape_abi::{ArgKind, ContentIo};
use systape_format::model::{CPU_NONE, Call, CallState, ERRNO_ANY, Family, Gap, GapCause};
use systape_format::reader::Tape;
use systape_format::table::TableDef;

use super::work::{Kept, Work};
use super::{FILES, is_file, names_file, on_files};
use crate::reports::{Context, losses};
use systape_answers::derive::operations;
use systape_answers::derive::paths::feed::{Reader, Told, Waiting, feed};
use systape_answers::derive::paths::join;
use systape_answers::derive::paths::names::{Name, Use, uses};
use systape_answers::derive::summary::labels::Labels;
use systape_answers::derive::summary::ledger::{Judged, RowJudge, counts, threads};
use systape_answers::derive::summary::plan::{Plan, RowPart};
use systape_answers::keys::{KeyWords, RowKeys};
use systape_answers::render::by;
use systape_answers::render::columns::Layout;
use systape_answers::render::keys::with_keys;
use systape_answers::render::mark;
use systape_answers::render::out::{Out, TopRows};
use systape_answers::render::rank;
use systape_answers::render::row::Row;
use systape_answers::render::table::{Table, millis};
use systape_events::group::Add as _;
use systape_events::group::by::GroupKey;
use systape_events::group::open::{Judge as OpenJudge, Open};
use systape_events::group::packed::Packed;
use systape_events::group::spilling::{Ordered, Parts, Spilling};
use systape_events::group::value::{Key, Value};
use systape_events::load::Loaded;
use systape_events::picked::{Is, names};
use systape_events::scan::{Coverage, Scan, lost};
use systape_events::values::spill::Store;

/// Whether `on` may be no file: a descriptor of which nothing is known.
fn may_be_none(segment: &Loaded, row: usize, on: &Use<'_>) -> bool {
    on.name == Name::Unknown && matches!(segment.call(row).args[on.arg].kind, ArgKind::Fd)
}

/// Reads calls for sums.
struct SumReader<'a> {
    context: &'a Context<'a>,
    plan: &'a Plan,
    sockets: bool,
}

/// Sums, of a segment or of all.
#[derive(Default)]
struct Sums {
    groups: Spilling<Kept>,
    /// Counted calls that may belong to other groups, by what they leave open: calls, opens, reads, writes.
    open: [Open; 4],
    /// Stored calls on what is not known, which are in the group of the unknown file.
    nameless: Work,
    /// Names of the tasks among the keys.
    labels: Labels,
    /// Calls in no group, because it is not known whether they pass.
    doubts: u64,
    /// Some of them were lost: counted and not stored.
    doubts_lost: bool,
}

impl Sums {
    fn merge(&mut self, mut other: Self) {
        let changes = other.groups.groups.len();
        self.groups.groups.merge(&mut other.groups.groups);
        self.groups.relieve(changes, 0);
        self.open.iter_mut().zip(other.open).for_each(|(open, other)| open.merge(other));
        self.nameless.add(&other.nameless);
        self.labels.merge(&mut other.labels);
        self.doubts = self.doubts.saturating_add(other.doubts);
        self.doubts_lost |= other.doubts_lost;
    }

    /// Stored calls; `at`: the place of the file among the keys.
    fn add(&mut self, key: &[Value], work: &Work, at: Option<usize>) {
        self.groups.groups.of(key).add_work(work);
        self.groups.relieve(1, 0);
        if at.is_some_and(|at| !key[at].is_known()) {
            self.nameless.add(work);
        }
    }

    /// Counted calls; `lost`: not by request.
    fn count(&mut self, key: &[Value], work: &Work, lost: bool) {
        self.groups.groups.of(key).add_work(work);
        self.groups.relieve(1, 0);
        self.leave_open(key, work, false, lost);
    }

    /// Calls with this `work` might pass.
    fn doubt(&mut self, key: &[Value], work: &Work, lost: bool) {
        self.doubts = self.doubts.saturating_add(work.calls);
        self.doubts_lost |= lost;
        self.leave_open(key, work, true, lost);
    }

    /// Calls with this `work` may be of another group than that of `key`; `missing`: they are in none.
    fn leave_open(&mut self, key: &[Value], work: &Work, missing: bool, lost: bool) {
        for (open, calls) in self.open.iter_mut().zip([work.calls, work.opens, work.reads, work.writes]) {
            if calls > 0 {
                open.add(key, missing, lost);
            }
        }
    }
}

/// A call on a file in the current directory.
struct RelativeWork {
    key: Key,
    /// Index of the file in it.
    at: usize,
    name: Vec<u8>,
    work: Work,
}

impl SumReader<'_> {
    /// Whether calls on a possible non-file are in a row: in that of the unknown file.
    fn counts_unknown(&self) -> bool {
        self.sockets || self.plan.has(GroupKey::File)
    }

    /// Adds what was done by io_uring and io_submit.
    fn operations(&self, sums: &mut Sums) -> Coverage {
        let question = &self.context.question;
        let tape = question.tape;
        operations::read(question, |operation, passes, (segment, entry)| {
            let file = operation.file.filter(|file| self.sockets || is_file(&Name::Known((*file).into())));
            // of what has no file: an end that was not told of, one of several results, a wait
            let unknown = operation.file.is_none() && (operation.io() != ContentIo::None || operation.op.is_none());
            if file.is_none() && !unknown {
                return;
            }
            let mut key = match operation.task {
                Some(task) => self.plan.key(task, Call::default()),
                None => self.plan.keys().iter().map(|_| Value::Unknown).collect(),
            };
            let part = RowPart {
                errno: operation.error.map_or(ERRNO_ANY, |error| error as u16),
                cpu: CPU_NONE,
                ..RowPart::default()
            };
            self.plan.row(&mut key, part, |_| file.map_or(Value::Unknown, |file| Value::Text(file.into())));
            if let Some(at) = self.plan.place(GroupKey::Syscall) {
                key[at] = operation.op.map_or(Value::Unknown, |op| Value::Text(op.into()));
            }
            let work = Work::of_operation(&operation);
            if passes == Is::Maybe || (unknown && !self.counts_unknown()) {
                sums.doubt(&key, &work, false);
                return;
            }
            if let Some(task) = operation.task {
                let number = tape.segments()[segment].segment;
                sums.labels.add(self.plan.whose_is(task), task, self.plan, (number, entry));
            }
            sums.add(&key, &work, self.plan.place(GroupKey::File));
        })
    }

    /// Adds the counted calls that were not stored.
    fn ledger(&self, tape: &Tape, sums: &mut Sums) -> Coverage {
        let question = &self.context.question;
        let (scope, book) = (&question.scope, &question.book);
        let threads = threads(tape, scope, self.plan);
        let judge = RowJudge { scope, book, plan: self.plan, threads: threads.as_ref() };
        let segments = (0..tape.segments().len()).filter(|at| counts(tape, scope, *at)).collect();
        let (parts, coverage) = Scan::of(tape, segments).fold(Sums::default, |sums, segment, coverage| {
            let read = segment.dict().and_then(|dict| judge.rows(segment, &dict, |row| self.counted(sums, row)));
            if let Err(error) = read {
                coverage.hole(segment, u32::MAX, &error);
            }
        });
        parts.into_iter().for_each(|part| sums.merge(part));
        coverage
    }

    /// Adds a row of the ledger.
    fn counted(&self, sums: &mut Sums, counted: Judged<'_>) {
        let Judged { row, info, task, key, doubt, place } = counted;
        if !on_files(&info) {
            return;
        }
        let (work, lost) = (Work::counted(&info, &row), row.reason.is_loss());
        // of a descriptor that may be a socket's
        let may_be_none = !self.counts_unknown() && info.io != ContentIo::Open && !names_file(&info);
        if may_be_none || doubt.is_some() {
            sums.doubt(&key, &work, lost);
            return;
        }
        if let Some(task) = task {
            sums.labels.add(self.plan.whose(&key), task, self.plan, place);
        }
        sums.count(&key, &work, lost);
    }
}

impl Reader for SumReader<'_> {
    type Sum = Sums;
    type Row = RelativeWork;

    fn wants(&self, segment: usize) -> bool {
        self.context.question.scope.may_match(&self.context.question.tape.segments()[segment])
    }

    fn read(&self, segment: &Loaded, range: Range<usize>, waiting: &mut Vec<Waiting<RelativeWork>>) -> Sums {
        let filter = self.context.question.scope.segment(&segment.dict, segment.number);
        let calls: Vec<bool> = segment.calls.iter().map(|info| on_files(info)).collect();
        let mut part = Part::new(self, segment);
        for row in range {
            let call = segment.core.call[row] as usize;
            let passes = filter.core(&segment.core, row) && filter.time(&segment.time, row);
            if calls[call] && passes && segment.core.state[row] != CallState::CloneChild {
                part.call(row, waiting);
            }
        }
        part.sums()
    }
}

/// Source of a row's key: task, call; 0 if not needed. Files are indices into a list.
type Codes = (u32, u32, RowPart);

/// Sums of a segment by its own numbers.
struct Part<'a> {
    totals: &'a SumReader<'a>,
    segment: &'a Loaded,
    /// Whether task, call are needed.
    by_task: bool,
    by_call: bool,
    files: Vec<Value>,
    numbers: FxHashMap<Cow<'a, [u8]>, u32>,
    sums: FxHashMap<Codes, Work>,
    /// Calls on possible non-files.
    open: Vec<(Codes, Work)>,
    /// Tasks of calls that wait for the directory.
    waiting: FxHashSet<u32>,
}

/// The index of the unknown file.
const UNKNOWN: u32 = 1;

impl<'a> Part<'a> {
    fn new(totals: &'a SumReader<'a>, segment: &'a Loaded) -> Self {
        let has = |by: &GroupKey| totals.plan.has(*by);
        Self {
            totals,
            segment,
            by_task: [GroupKey::Pid, GroupKey::Tid, GroupKey::Comm, GroupKey::Uid].iter().any(has)
                || totals.plan.by_cgroup(),
            by_call: has(&GroupKey::Syscall),
            files: vec![Value::None, Value::Unknown],
            numbers: FxHashMap::default(),
            sums: FxHashMap::default(),
            open: Vec::new(),
            waiting: FxHashSet::default(),
        }
    }

    /// Adds a call that passes.
    fn call(&mut self, row: usize, waiting: &mut Vec<Waiting<RelativeWork>>) {
        let on = uses(self.segment, row).filter(|on| on.name != Name::Nothing);
        let on = on.filter(|on| self.totals.sockets || is_file(&on.name)).map(|on| match on.opened {
            // by the name that its reads and writes have
            Some(file) if self.totals.sockets || file.starts_with(b"/") => Use { name: Name::Known(file.into()), ..on },
            _ => on,
        });
        let on: Vec<Use<'a>> = on.collect();
        if on.is_empty() {
            return;
        }
        if self.totals.plan.has(GroupKey::File) { self.each_file(row, on, waiting) } else { self.together(row, on) }
    }

    /// Adds a call for each file it is on.
    fn each_file(&mut self, row: usize, mut on: Vec<Use<'a>>, waiting: &mut Vec<Waiting<RelativeWork>>) {
        let asked = &self.totals.context.config.filters.paths;
        let is_asked = |of: &Use<'_>| matches!(&of.name, Name::Known(path) if names(asked, path));
        // a call that passes by one of its files is not asked about for the other; by a link's name it passes for the file behind it
        if !asked.is_empty() && on.iter().any(is_asked) {
            on.retain(|of| is_asked(of) || !matches!(of.name, Name::Known(_)));
        }
        while let Some(Use { arg, name, .. }) = on.pop() {
            // twice the same, as dup2 of a descriptor to itself, is one file
            let mut args = vec![arg];
            if matches!(name, Name::Known(_)) {
                on.retain(|other| {
                    let same = other.name == name;
                    args.extend(same.then_some(other.arg));
                    !same
                });
            }
            let work = Work::of(self.segment, row, &args);
            let file = match name {
                Name::Unknown | Name::Nothing => UNKNOWN,
                Name::Known(path) => *self.numbers.entry(path).or_insert_with_key(|path| {
                    self.files.push(Value::Text(Arc::from(&**path)));
                    self.files.len() as u32 - 1
                }),
                Name::InCwd(name) => {
                    let at = self.totals.plan.place(GroupKey::File).unwrap_or(0);
                    let key = self.key(self.codes(row, UNKNOWN));
                    waiting.push(Waiting { row, what: RelativeWork { key, at, name: name.to_vec(), work } });
                    self.waiting.insert(self.segment.core.task[row]);
                    continue;
                }
            };
            self.sums.entry(self.codes(row, file)).or_default().add(&work);
        }
    }

    /// Adds a call once, whatever its files.
    fn together(&mut self, row: usize, on: Vec<Use<'a>>) {
        let sure = |on: &Use<'_>| self.totals.counts_unknown() || !may_be_none(self.segment, row, on);
        let (sure, unsure): (Vec<_>, Vec<_>) = on.into_iter().partition(sure);
        let work = |on: &[Use<'_>]| Work::of(self.segment, row, &on.iter().map(|on| on.arg).collect::<Vec<_>>());
        let codes = self.codes(row, 0);
        if !unsure.is_empty() {
            let mut work = work(&unsure);
            if !sure.is_empty() {
                // the call itself is on a file
                (work.calls, work.opens) = (0, 0);
            }
            self.open.push((codes, work));
        }
        if !sure.is_empty() {
            self.sums.entry(codes).or_default().add(&work(&sure));
        }
    }

    fn codes(&self, row: usize, file: u32) -> Codes {
        let core = &self.segment.core;
        let asked = |asked: bool, code: u32| if asked { code } else { 0 };
        let cpu = self.segment.time.cpu.get(row).copied().unwrap_or(CPU_NONE);
        let part = self.totals.plan.part((core.state[row], core.errno[row]), file, cpu, None);
        (asked(self.by_task, core.task[row]), asked(self.by_call, core.call[row]), part)
    }

    fn key(&self, (task, call, part): Codes) -> Key {
        let (plan, dict) = (self.totals.plan, &self.segment.dict);
        let mut key = plan.key(&dict.tasks[task as usize], dict.calls[call as usize]);
        plan.row(&mut key, part, |file| self.files[file as usize].clone());
        key
    }

    fn sums(mut self) -> Sums {
        let (mut all, plan) = (Sums::default(), self.totals.plan);
        let (open, sums) = (std::mem::take(&mut self.open), std::mem::take(&mut self.sums));
        let mut seen = std::mem::take(&mut self.waiting);
        seen.extend(sums.keys().map(|codes| codes.0).chain(open.iter().map(|(codes, _)| codes.0)));
        for entry in seen.into_iter().filter(|_| plan.has(GroupKey::Pid)) {
            let task = &self.segment.dict.tasks[entry as usize];
            all.labels.add(plan.whose_is(task), task, plan, (self.segment.number, entry));
        }
        for (codes, work) in open {
            all.doubt(&self.key(codes), &work, false);
        }
        for (codes, work) in sums {
            all.add(&self.key(codes), &work, plan.place(GroupKey::File));
        }
        all
    }
}

/// Prints sums by `by`; returns whether a sum may be too low because calls were lost.
pub(super) fn print(context: &mut Context<'_>, asked: &Asked<'_>, out: &mut Out) -> Result<bool> {
    let plan = Plan::by(asked.by).naming(context.question.tape.session());
    let totals = SumReader { context, plan: &plan, sockets: asked.sockets };
    let mut sums = Sums { groups: Spilling::new(Store::of_process(), 1), ..Sums::default() };
    let read = feed(&context.question, &totals, |told| {
        match told {
            Told::Sum(part) => sums.merge(part),
            Told::Row(RelativeWork { mut key, at, name, work }, cwd) => {
                if let Some(path) = cwd.and_then(|cwd| join(&cwd, &name)) {
                    key[at] = Value::Text(path.into());
                }
                sums.add(&key, &work, Some(at));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let told = totals.operations(&mut sums);
    let coverage = totals.ledger(context.question.tape, &mut sums);
    told.tell(&mut context.question.loss);
    coverage.tell(&mut context.question.loss);
    // what is in the ledger is in the sums
    context.question.loss.gaps.retain(|gap| !gap.ledger);
    read.tell(&mut context.question.loss);
    let groups = Parts::of(vec![std::mem::take(&mut sums.groups)]);
    let shown = Shown::new(context, (&sums, &groups), &plan, asked);
    shown.print(out)?;
    Ok(sums.doubts_lost || shown.lost())
}

/// Which sums are printed, and how.
pub(in crate::reports) struct Asked<'a> {
    /// The keys of rows.
    pub by: &'a [GroupKey],
    /// Whether sums of what is no file are made too.
    pub sockets: bool,
    /// Most rows.
    pub limit: usize,
    /// Rank: those with most of this come first; 0: they are left out.
    pub rank: fn(&Work) -> u128,
    /// Rows of such files are left out.
    pub without: fn(&[u8]) -> bool,
    /// Columns of text; None: the report's own.
    pub layout: Option<&'static Layout>,
}

/// The printed form of sums.
struct Shown<'a> {
    context: &'a Context<'a>,
    words: KeyWords<'a>,
    sums: &'a Sums,
    asked: &'a Asked<'a>,
    by: &'a [GroupKey],
    /// What operations of io_uring or io_submit read and wrote is not on the tape.
    operations_unseen: bool,
    /// The calls of the tape say what they needed.
    needs: bool,
    /// The sums in the order that is asked for.
    rows: Ordered<'a, Kept>,
}

/// Most files that the line of mapped ones names.
const MAPPED_SHOWN: usize = 3;

/// Whether calls, opens, reads, writes of a row may be too low.
type MayBeLow = [bool; 4];

impl<'a> Shown<'a> {
    fn new(
        context: &'a Context<'a>,
        (sums, groups): (&'a Sums, &'a Parts<Kept>),
        plan: &'a Plan,
        asked: &'a Asked<'a>,
    ) -> Self {
        let question = &context.question;
        let words = KeyWords { session: question.tape.session(), book: &question.book, plan };
        let out = |key: Packed<'_>| match plan.place(GroupKey::File).map(|at| key.key().swap_remove(at)) {
            Some(Value::Text(path)) => (asked.without)(&path),
            _ => false,
        };
        let rank = asked.rank;
        let number = |key: Packed<'_>, kept: &Kept| {
            let rank = rank(&kept.work());
            (rank > 0 && !out(key)).then_some(coarse(rank))
        };
        // no two have the same key
        let rows = Ordered::new(groups, number, move |one, other| {
            let [a, b] = [one, other].map(|(_, kept)| kept.work());
            rank(&b).cmp(&rank(&a)).then(b.calls.cmp(&a.calls)).then_with(|| one.0.cmp(&other.0))
        });
        context.config.shown.rows(rows.len());
        let operations_unseen = operations::unseen(question);
        let needs = says_needs(question.tape);
        Self { context, words, sums, asked, by: asked.by, operations_unseen, needs, rows }
    }

    /// Whether a row may be too low because calls were lost, and not left out by request.
    fn lost(&self) -> bool {
        let judges = self.sums.open.each_ref().map(|open| open.judge(None));
        let lost = |key: &[Value]| judges.iter().any(|judge| judge.lost(key));
        judges.iter().any(OpenJudge::any) && self.rows.iter().any(|entry| lost(&entry.key().key()))
    }

    fn print(&self, out: &mut Out) -> Result<()> {
        let limit = self.asked.limit;
        let lost = !self.context.question.loss.complete();
        let judges = self.sums.open.each_ref().map(|open| open.judge(None));
        let rows = self.rows.iter().map(|entry| {
            let key = entry.key().key();
            let [calls, opens, reads, writes] = judges.each_ref().map(|judge| lost || judge.short(&key));
            let unseen = self.operations_unseen;
            (key, entry.sum.work(), [calls, opens, reads || unseen, writes || unseen])
        });
        losses::head(self.context, losses::AT_LEAST, out)?;
        let doubts = (self.sums.doubts > 0)
            .then(|| doubt_text(self.sums.doubts, self.words.plan, self.context.config.filters.by_path()));
        let end = if out.is_text() { "\n" } else { "" };
        out.notes(doubts.map(|text| format!("{text}{end}")))?;
        let declared = with_keys(by::columns(self.by), &FILES);
        let row = |(key, work, short): (Key, Work, MayBeLow)| self.row(&declared, &key, &work, short);
        if let (true, Some(layout)) = (out.is_text(), self.asked.layout) {
            layout.print(rows.take(limit).map(row).map(|row| row.judged(self.context.judged())), out)?;
            out.text(rank::more(self.rows.len(), limit))?;
            return self.foot(limit, out);
        }
        let headings = [
            "total ms",
            "max ms",
            "calls",
            "opens",
            "reads",
            "cached",
            "writes",
            "read bytes",
            "written bytes",
            "errors",
        ];
        let headings = headings.into_iter().fold(Table::default(), Table::number);
        out.ranking(
            TopRows {
                table: &declared,
                judged: self.context.judged(),
                headings: self.by.iter().fold(headings, |table, by| table.word(by.heading())).leaving(&[
                    "cached",
                    "opens",
                    "writes",
                    "reads",
                    "errors",
                    "max ms",
                    "calls",
                    "written bytes",
                ]),
                all: self.rows.len(),
                limit,
            },
            rows,
            row,
            |(key, work, short): (Key, Work, MayBeLow)| self.cells(&key, &work, short),
        )?;
        self.foot(limit, out)
    }

    /// Lines below the table.
    fn foot(&self, limit: usize, out: &mut Out) -> Result<()> {
        let nameless = Some(&self.sums.nameless).filter(|work| work.calls > 0 && self.rows.len() > 1);
        out.text(nameless.map(nameless_text))?;
        out.notes(self.unseen_text())?;
        if out.is_text() {
            out.text(self.mapped_text(limit))?;
        }
        Ok(())
    }

    fn unseen_text(&self) -> Option<&'static str> {
        let text = "AT LEAST: what operations of io_uring or io_submit read and wrote is not on the tape";
        self.operations_unseen.then_some(text)
    }

    /// The files of the rows that were mapped; None: none, or rows are of no file.
    fn mapped_text(&self, limit: usize) -> Option<String> {
        self.by.contains(&GroupKey::File).then_some(())?;
        let mapped = self.rows.iter().take(limit).filter(|entry| entry.sum.work().mapped);
        // in the order of the rows, of which a file may have several
        let mut names: Vec<String> = mapped.map(|entry| self.keys(&entry.key().key()).text(GroupKey::File)).collect();
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        let shown: Vec<&str> = names.iter().take(MAPPED_SHOWN).map(String::as_str).collect();
        let more = match names.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = "mapped into memory: reads and writes there are not counted:";
        (!names.is_empty()).then(|| format!("{text} {}{more}", shown.join(" ")))
    }

    fn keys<'k>(&'k self, values: &'k [Value]) -> RowKeys<'k> {
        RowKeys { words: self.words, values, task: self.sums.labels.get(values, self.words.plan) }
    }

    fn row<'t>(&self, table: &'t TableDef, key: &[Value], work: &Work, short: MayBeLow) -> Row<'t> {
        let [calls, opens, reads, writes] = short;
        let (mut row, keys) = (Row::new(table), self.keys(key));
        by::fill(&mut row, self.by, |by, name| keys.cell(by, name).into_owned());
        row.bound("calls", work.calls, calls).bound("opens", work.opens, opens).bound("reads", work.reads, reads);
        row.bound("cached_reads", Some(work.cached).filter(|_| self.needs), reads || work.cached_short);
        row.bound("writes", work.writes, writes).bound("errors", work.errors, calls);
        row.bound("read_bytes", work.read, reads || work.read_short);
        row.bound("write_bytes", work.written, writes || work.written_short);
        row.bound("total_ns", work.ns, calls || work.ns_short).bound("max_ns", work.max, calls || work.ns_short);
        // calls of the unknown file may be another's, and what is lost may have mapped it
        let nameless = self.words.plan.place(GroupKey::File).is_some_and(|at| !key[at].is_known());
        row.set("mapped", Some(work.mapped).filter(|mapped| !nameless && (*mapped || !calls)));
        row.bound("ledger_calls", work.ledger, calls);
        let since = |ts: u64| ts.wrapping_sub(self.words.session.window_open) as i64;
        // of a call that was counted, its end is known at best
        row.bound("first_ns", work.first.map(since), calls || work.ns_short || work.ledger > 0);
        row.bound("last_ns", work.last.map(since), calls || work.ns_short);
        row
    }

    fn cells(&self, key: &[Value], work: &Work, [calls, opens, reads, writes]: MayBeLow) -> Vec<String> {
        let lead = mark::at_least;
        let count = |(count, more): (u64, bool)| format!("{}{count}", lead(more));
        let time = lead(calls || work.ns_short);
        let mut cells = vec![millis(work.ns, time), millis(work.max, time)];
        cells.extend([(work.calls, calls), (work.opens, opens), (work.reads, reads)].map(count));
        let cached = count((work.cached, reads || work.cached_short));
        cells.push(if self.needs { cached } else { "?".to_owned() });
        cells.push(count((work.writes, writes)));
        cells.push(count((work.read, reads || work.read_short)));
        cells.push(count((work.written, writes || work.written_short)));
        cells.push(count((work.errors, calls)));
        let keys = self.keys(key);
        cells.extend(self.by.iter().map(|by| keys.text(*by)));
        cells
    }
}

/// Whether calls of `tape` say what they needed: that was watched, and all of the time.
fn says_needs(tape: &Tape) -> bool {
    let session = tape.session();
    let watches = [Family::Sched, Family::Block];
    let missed = |gap: &Gap| watches.contains(&gap.family) && gap.cause == GapCause::Skipped;
    session.needs && watches.iter().all(|family| session.families.contains(family)) && !lost::any(tape, missed)
}

/// A number that is no less for what is more: how many bits it has, then the highest of them.
fn coarse(number: u128) -> u64 {
    let zeros = number.leading_zeros();
    let highest = number.checked_shl(zeros).unwrap_or(0) >> 72;
    (u64::from(u128::BITS - zeros) << 56) | highest as u64
}

/// `?: 5 calls, 249 bytes on files that are not known: other rows may lack them`.
fn nameless_text(work: &Work) -> String {
    let calls = if work.calls == 1 { "1 call".to_owned() } else { format!("{} calls", work.calls) };
    let bytes = work.read.saturating_add(work.written);
    let short = mark::at_least(work.read_short || work.written_short);
    let moved = if bytes > 0 || !short.is_empty() { format!(", {short}{bytes} bytes") } else { String::new() };
    format!("?: {calls}{moved} on files that are not known: other rows may lack them")
}

fn doubt_text(calls: u64, plan: &Plan, by_path: bool) -> String {
    let are = if calls == 1 { "call is" } else { "calls are" };
    let hint = match (by_path, plan.has(GroupKey::File)) {
        (true, true) => " (without -P most are in rows)",
        (true, false) => " (without -P --by file,... shows most)",
        (false, false) => " (--by file,... shows most)",
        (false, true) => "",
    };
    format!("AT LEAST: {calls} more {are} in no row: whether they are on files that were asked for is unknown{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_more_is_no_less(one: u128, other: u128, shifts in [0_u32..128, 0_u32..128]) {
            let (one, other) = (one >> shifts[0], other >> shifts[1]);
            prop_assert!(coarse(one.min(other)) <= coarse(one.max(other)));
            prop_assert!(coarse(one) < coarse(one.saturating_mul(3)) || one == 0 || one > u128::MAX / 3);
        }
    }
}
