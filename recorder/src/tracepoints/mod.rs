//! Tracepoints that `-e CATEGORY:NAME` asks for: what the kernel has, and the table that each one's events are rows of.
//!
//! Their fields are known only here, from tracefs, so the tape defines these tables itself.

mod filter;
mod format;
pub(crate) mod packet;
mod steps;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use anyhow::{Result, bail};
use systape_abi::{EventTerm, glob_matches, nearest};
use systape_bpf::wire::TracepointFilter;
use systape_format::class::Class;
use systape_format::model::Family;
use systape_format::table::{ColumnDef, TableDef, Type};
use systape_format::tables::{CPU, Field, MAX_COLUMNS, MAX_TABLE_DOC};

use crate::machine::bounded;
use filter::RecordCondition;
use format::{Place, Value};
use packet::Packet;
use steps::FilterProgram;

/// Where tracefs may be mounted, the newer place first.
const PLACES: [&str; 2] = ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"];
/// Format files are pages of the kernel's; the longest have 40 KiB.
const FORMAT_BYTES: usize = 1 << 20;
/// Fields behind the fixed part that the program can be told of.
const MAX_LOCATED: usize = 4;
/// In a cookie: the tracepoint has a filter.
const FILTERED: u64 = 0x8000;
/// Columns that all tables have.
const OWN_COLUMNS: [&str; 4] = ["ts", "task", CPU, "stack"];

/// Tracepoints that a family stores as events of its own, which `analyze` lists under these names (waits for locks as
/// `lock:contention`). Those of locks must not go another way: they come where BPF holds a lock of the ring.
const OF_FAMILIES: [(&str, Family); 20] = [
    ("block:block_bio_complete", Family::Block),
    ("block:block_rq_complete", Family::Block),
    ("cgroup:cgroup_attach_task", Family::Process),
    ("exceptions:page_fault_user", Family::Fault),
    ("io_uring:io_uring_submit_req", Family::IoUring),
    ("io_uring:io_uring_submit_sqe", Family::IoUring),
    ("lock:contention_begin", Family::Lock),
    ("lock:contention_end", Family::Lock),
    ("oom:mark_victim", Family::Signal),
    ("sched:sched_process_exec", Family::Process),
    ("sched:sched_process_exit", Family::Process),
    ("sched:sched_process_fork", Family::Process),
    ("sched:sched_switch", Family::Sched),
    ("sched:sched_wakeup", Family::Sched),
    ("sched:sched_wakeup_new", Family::Sched),
    ("sched:sched_waking", Family::Sched),
    ("signal:signal_deliver", Family::Signal),
    ("signal:signal_generate", Family::Signal),
    ("sock:inet_sock_set_state", Family::Net),
    ("task:task_rename", Family::Process),
];

/// A tracepoint to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// Directory of the tracepoint in tracefs: `writeback`.
    pub category: String,
    /// Name of the tracepoint in there.
    pub name: String,
    /// The table of its events.
    pub def: Arc<TableDef>,
    fields: Vec<format::TracepointField>,
    /// Bytes of the part of a record that every event has.
    fixed: usize,
    /// Which of its events are recorded; None = all.
    filter: Option<Filter>,
    /// Where its records have a packet; None = it is not one of packets.
    pub(crate) packet: Option<Packet>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Filter {
    condition: RecordCondition,
    program: FilterProgram,
}

/// What `-e` asks for besides calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Tracepoints that are recorded as tables; in a tape's order.
    pub tracepoints: Vec<Arc<Tracepoint>>,
    /// Families that store what is asked for.
    pub families: Vec<Family>,
    /// What the user should know of it.
    pub notes: Vec<String>,
}

impl Tracepoint {
    /// Whether its events have the number of an inode, whose name is wanted then.
    pub(crate) fn has_inode(&self) -> bool {
        ["i_ino", "s_dev"].iter().all(|name| self.def.columns.iter().any(|column| column.name == *name))
    }

    /// What the program has to know of it; `number` is that of its records, from 1 on.
    pub(crate) fn cookie(&self, number: usize) -> u64 {
        let words = self.fields.iter().filter(|field| field.place != Place::Fixed).map(|field| field.offset as u64 / 4);
        let places = words.enumerate().fold(0, |places, (at, word)| places | word << (8 * at));
        let number = number as u64 & (FILTERED - 1) | if self.filter.is_some() { FILTERED } else { 0 };
        let packet = self.packet.map_or(0, |packet| packet.cookie());
        number | (self.fixed as u64 & 0xffff) << 16 | places << 32 | packet
    }

    /// Filter of the tracepoint as the program takes it.
    pub(crate) fn filter(&self) -> Option<TracepointFilter> {
        Some(self.filter.as_ref()?.program.entry())
    }

    /// Whether a record that the program let through is one to store. One with a part that is too long to tell is.
    pub(crate) fn is_asked_for(&self, record: &[u8]) -> bool {
        let filter = self.filter.as_ref().filter(|filter| filter.program.partial);
        filter.is_none_or(|filter| filter::holds(&filter.condition, record) != Some(false))
    }

    /// Values of the fields of a record, in the order of its table, between those of [`OWN_COLUMNS`]; an unknown one is
    /// None.
    pub(crate) fn values(&self, record: &[u8]) -> Vec<Option<Value>> {
        self.fields.iter().map(|field| field.told(record)).collect()
    }

    /// The row of a table for these values.
    pub(crate) fn row<'a>(&self, task: u32, cpu: u32, values: &'a [Option<Value>]) -> Vec<Field<'a>> {
        let of = |value: &'a Option<Value>| match value {
            Some(Value::Number(number)) => Field::Number(*number),
            Some(Value::Text(text)) => Field::Bytes(text),
            None => Field::Unknown,
        };
        let own = [Field::Task(task), Field::Number(cpu.into())];
        own.into_iter().chain(values.iter().map(of)).chain([Field::Unknown]).collect()
    }

    /// From its format file; Err = why it cannot be recorded.
    fn new(category: &str, name: &str, text: &str) -> Result<Self, String> {
        if text.contains("__rel_loc") {
            return Err("its record has parts of varying size in a form (__rel_loc) that is not followed".into());
        }
        let Some(fields) = format::parse(text) else { return Err("its format file is not understood".into()) };
        let located = || fields.iter().filter(|field| field.place != Place::Fixed);
        if located().count() > MAX_LOCATED || located().any(|field| field.offset % 4 != 0 || field.offset / 4 > 0xff) {
            return Err("its record has more parts of varying size than are followed".into());
        }
        let fixed = fields.iter().map(|field| field.offset + field.size).max().unwrap_or(8).max(8);
        let packet = Packet::of(&format!("{category}:{name}"), &fields);
        let def = Arc::new(declared(category, name, &fields, packet.is_some())?);
        Ok(Self { category: category.to_owned(), name: name.to_owned(), def, fields, fixed, filter: None, packet })
    }

    /// Only events for which one of `filters` holds.
    ///
    /// # Errors
    /// One of them is not understood.
    fn filtered(self, filters: &[&str]) -> Result<Self> {
        let of = |text: &&str| match filter::parse(text, &self.fields) {
            Ok(condition) => Ok(condition),
            Err(why) => bail!("-e {}/{text}/: {why}", self.def.name),
        };
        let mut conditions = filters.iter().map(of).collect::<Result<Vec<_>>>()?;
        let condition = if conditions.len() == 1 { conditions.remove(0) } else { RecordCondition::Any(conditions) };
        let program = FilterProgram::new(&condition);
        Ok(Self { filter: Some(Filter { condition, program }), ..self })
    }
}

/// The table of a tracepoint's events.
fn declared(category: &str, name: &str, fields: &[format::TracepointField], packet: bool) -> Result<TableDef, String> {
    let more: &[packet::Column] = if packet { &packet::COLUMNS } else { &[] };
    if fields.len() + OWN_COLUMNS.len() + more.len() > MAX_COLUMNS {
        return Err(format!("it has {} fields, more than a table takes", fields.len()));
    }
    let own = |name: &'static str, ty: Type, doc: &'static str| ColumnDef::stored(name, ty, None, doc);
    let mut columns = vec![
        own(OWN_COLUMNS[0], Type::Time, "when"),
        own(OWN_COLUMNS[1], Type::Task, "the task that ran then"),
        own(CPU, Type::Int, "where"),
    ];
    for field in fields {
        // a field that is called like one of ours
        let taken = OWN_COLUMNS.iter().chain(more.iter().map(|(name, ..)| name)).any(|own| *own == field.name);
        let name = if taken { format!("event_{}", field.name) } else { field.name.clone() };
        if columns.iter().any(|column| column.name == name) {
            return Err(format!("it has two fields '{name}'"));
        }
        // what the kernel put there may be anything
        let class = matches!(field.ty(), Type::Str).then_some(Class::String);
        columns.push(ColumnDef::stored(name, field.ty(), class, clipped(&field.declared)));
    }
    columns.extend(more.iter().map(|(name, ty, class, doc)| ColumnDef::stored(*name, *ty, *class, *doc)));
    columns.push(own(OWN_COLUMNS[3], Type::Stack, "the functions in which it happened"));
    let name = format!("{category}:{name}");
    let doc = clipped(&format!("The kernel came to the tracepoint {name}."));
    Ok(TableDef { name: name.into(), doc: doc.into(), columns: columns.into() })
}

/// A sentence no longer than a tape takes.
fn clipped(text: &str) -> String {
    text.chars().filter(char::is_ascii).take(MAX_TABLE_DOC).collect()
}

/// The tracepoints and families that `terms` ask for.
///
/// # Errors
/// A term that matches nothing, and more tracepoints than a tape takes.
pub(crate) fn find(terms: &[EventTerm]) -> Result<Wanted> {
    if terms.is_empty() {
        return Ok(Wanted::default());
    }
    let Some(root) = PLACES.into_iter().find(|place| Path::new(place).is_dir()) else {
        bail!("-e {}: tracefs is not mounted (mount -t tracefs nodev /sys/kernel/tracing)", written(&terms[0]));
    };
    find_in(Path::new(root), terms)
}

fn written(term: &EventTerm) -> String {
    format!("{}{}:{}", if term.negated { "!" } else { "" }, term.family, term.event)
}

/// Filters of a tracepoint by the terms that name it; None = one of them takes all events.
type TracepointFilters<'a> = Option<Vec<&'a str>>;

fn find_in(root: &Path, terms: &[EventTerm]) -> Result<Wanted> {
    let mut names: BTreeMap<(String, String), TracepointFilters<'_>> = BTreeMap::new();
    // negative terms last: their order does not matter
    for term in terms.iter().filter(|term| !term.negated) {
        let found = matching(root, term)?;
        if found.is_empty() {
            bail!("{}", no_such(root, term));
        }
        for name in found {
            let filters = names.entry(name).or_insert_with(|| Some(Vec::new()));
            match &term.filter {
                Some(text) => filters.iter_mut().for_each(|filters| filters.push(text)),
                None => *filters = None,
            }
        }
    }
    for term in terms.iter().filter(|term| term.negated) {
        let out = matching(root, term)?;
        names.retain(|name, _| !out.contains(name));
    }
    let mut wanted = Wanted::default();
    for ((category, name), filters) in names {
        add(&mut wanted, root, (&category, &name), filters.as_deref())?;
    }
    if wanted.tracepoints.is_empty() && wanted.families.is_empty() && terms.iter().any(|term| !term.negated) {
        bail!("-e: nothing is left to record: {}", wanted.notes.join("; "));
    }
    Ok(wanted)
}

/// Adds one tracepoint, or the family that stores it, or a note why not.
fn add(wanted: &mut Wanted, root: &Path, (category, name): (&str, &str), filters: Option<&[&str]>) -> Result<()> {
    let full = format!("{category}:{name}");
    if let Some((_, family)) = OF_FAMILIES.iter().find(|(known, _)| *known == full) {
        if let Some(filters) = filters {
            bail!(
                "-e {full}/{}/: it is recorded by the family {}, which takes no filter; record all, or leave it out: -e '!{full}'",
                filters.join("/ and /"),
                family.name()
            );
        }
        wanted.notes.push(format!("{full} is recorded by the family {}", family.name()));
        if !wanted.families.contains(family) {
            wanted.families.push(*family);
        }
        return Ok(());
    }
    let text = bounded::lines(root.join(category).join(name).join("format"), FORMAT_BYTES);
    let made = text.map_err(|error| error.to_string()).and_then(|text| Tracepoint::new(category, name, &text));
    match (made, filters) {
        (Ok(tracepoint), None) => wanted.tracepoints.push(Arc::new(tracepoint)),
        (Ok(tracepoint), Some(filters)) => wanted.tracepoints.push(Arc::new(tracepoint.filtered(filters)?)),
        (Err(why), _) => wanted.notes.push(format!("{full} is not recorded: {why}")),
    }
    Ok(())
}

/// Directories in `dir`; ftrace's own are no tracepoints.
fn directories(dir: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(dir)?.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name != "ftrace");
    names.sort_unstable();
    Ok(names)
}

/// Category and name of the tracepoints that a term matches.
fn matching(root: &Path, term: &EventTerm) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let of = |error: io::Error| anyhow::anyhow!("-e {}: tracefs cannot be read: {error}", written(term));
    for dir in directories(root).map_err(of)?.into_iter().filter(|dir| glob_matches(&term.family, dir)) {
        // calls are recorded with their arguments by their own names
        if dir == "syscalls" || dir == "raw_syscalls" {
            continue;
        }
        let names = directories(&root.join(&dir)).map_err(of)?;
        found.extend(names.into_iter().filter(|name| glob_matches(&term.event, name)).map(|name| (dir.clone(), name)));
    }
    Ok(found)
}

/// Why a term asks for nothing: the nearest names there are.
fn no_such(root: &Path, term: &EventTerm) -> String {
    let EventTerm { family, event, .. } = term;
    let names_in = |category: &str| directories(&root.join(category)).unwrap_or_default();
    let closest = |word: &str, names: &[String]| {
        nearest(word, names.iter().map(String::as_str)).first().map(|near| (*near).to_owned())
    };
    // most begin with their category, which is easily left out
    let event_of = |category: &str, names: &[String]| {
        closest(event, names).or_else(|| closest(&format!("{category}_{event}"), names))
    };
    let categories = directories(root).unwrap_or_default();
    let hint = if categories.contains(family) {
        let names = names_in(family);
        match event_of(family, &names) {
            Some(near) => format!("did you mean {family}:{near}?"),
            None => format!("{family} has {}", names.join(", ")),
        }
    } else {
        match closest(family, &categories) {
            // the name may be misspelt too
            Some(near) => {
                let name = event_of(&near, &names_in(&near)).unwrap_or_else(|| event.clone());
                format!("did you mean {near}:{name}?")
            }
            None => format!("there are the categories {}", categories.join(", ")),
        }
    };
    format!("-e {}: this kernel has no such tracepoint; {hint}", written(term))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(text: &str) -> EventTerm {
        let (negated, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let (family, event) = rest.split_once(':').unwrap();
        let (event, filter) = event.split_once('/').map_or((event, None), |(event, filter)| (event, Some(filter)));
        let filter = filter.map(|filter| filter.trim_end_matches('/').to_owned());
        EventTerm { negated, family: family.to_owned(), event: event.to_owned(), filter }
    }

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let field = "\tfield:int value;\toffset:8;\tsize:4;\tsigned:1;\n";
        for (name, fields) in [
            ("timer/timer_start", field),
            ("timer/timer_cancel", "\tfield:int cpu;\toffset:8;\tsize:4;\tsigned:1;\n"),
            ("sched/sched_switch", field),
            ("ftrace/function", field),
            ("syscalls/sys_enter_read", field),
            ("odd/odd", "\tfield:__rel_loc char[] a;\toffset:8;\tsize:4;\tsigned:0;\n"),
        ] {
            let path = dir.path().join(name);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("format"), fields).unwrap();
        }
        dir
    }

    fn names(terms: &[&str]) -> Result<Vec<String>> {
        let dir = tree();
        let terms: Vec<EventTerm> = terms.iter().map(|text| term(text)).collect();
        let found = find_in(dir.path(), &terms)?;
        let families = found.families.iter().map(|family| family.name().to_owned());
        Ok(found.tracepoints.iter().map(|one| one.def.name.clone().into_owned()).chain(families).collect())
    }

    #[test]
    fn terms_choose_among_what_the_kernel_has() {
        assert_eq!(names(&["timer:*"]).unwrap(), ["timer:timer_cancel", "timer:timer_start"]);
        assert_eq!(names(&["timer:*", "!*:*start"]).unwrap(), ["timer:timer_cancel"]);
        assert_eq!(names(&["sched:*"]).unwrap(), ["sched"], "its family stores it");
        let error = |text| names(&[text]).unwrap_err().to_string();
        assert!(error("timr:timer_start").contains("did you mean timer:timer_start?"), "{}", error("timr:timer_start"));
        assert!(error("timer:timer_stop").contains("timer:timer_start"));
        assert!(error("timr:strat").contains("did you mean timer:timer_start?"), "{}", error("timr:strat"));
        assert!(error("timer:start").contains("did you mean timer:timer_start?"), "{}", error("timer:start"));
        assert!(error("timr:timer_stop").contains("did you mean timer:timer_start?"), "{}", error("timr:timer_stop"));
        assert!(error("syscalls:*").contains("no such tracepoint"), "calls have names of their own");
        assert!(error("ftrace:function").contains("no such tracepoint"));
        assert!(error("odd:odd").contains("nothing is left"), "{}", error("odd:odd"));
    }

    #[test]
    fn filters_choose_among_events() {
        let dir = tree();
        let of = |terms: &[&str]| find_in(dir.path(), &terms.iter().map(|text| term(text)).collect::<Vec<_>>());
        let recorded = |terms: &[&str], value: i32| {
            let found = of(terms).unwrap();
            let one = found.tracepoints.iter().find(|one| one.name == "timer_start").expect("it is recorded");
            let Some(filter) = &one.filter else { return true };
            assert_eq!((one.cookie(3) & 0xffff, one.filter().is_some()), (0x8003, true));
            let record = [&[0; 8], &value.to_ne_bytes()[..], &[0; 8]].concat();
            filter::holds(&filter.condition, &record).unwrap()
        };
        assert!(recorded(&["timer:timer_start/value>1/"], 2) && !recorded(&["timer:timer_start/value>1/"], 1));
        let two = ["timer:timer_start/value==1/", "timer:*start/value==2/"];
        assert_eq!([1, 2, 3].map(|value| recorded(&two, value)), [true, true, false]);
        assert!(recorded(&["timer:timer_start/value==1/", "timer:timer_start"], 3), "one term takes all");
        let error = |terms: &[&str]| of(terms).unwrap_err().to_string();
        let said = error(&["timer:*/value==1/"]);
        assert!(
            said.contains("timer:timer_cancel/value==1/: there is no field 'value'") && said.contains("cpu"),
            "{said}"
        );
        assert!(of(&["timer:*/value==1/", "!*:*cancel"]).is_ok(), "what is left out needs no such field");
        assert!(error(&["sched:*/value==1/"]).contains("the family sched, which takes no filter"));
    }

    #[test]
    fn a_field_does_not_hide_a_column() {
        let dir = tree();
        let found = find_in(dir.path(), &[term("timer:timer_cancel")]).unwrap();
        let columns: Vec<&str> = found.tracepoints[0].def.columns.iter().map(|column| &*column.name).collect();
        assert_eq!(columns, ["ts", "task", "cpu", "event_cpu", "stack"]);
        let values = found.tracepoints[0].values(&[0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0]);
        let row = [Field::Task(7), Field::Number(3), Field::Number(5), Field::Unknown];
        assert_eq!(found.tracepoints[0].row(7, 3, &values), row);
    }

    #[test]
    fn the_program_is_told_where_the_parts_are() {
        let text = "\tfield:char a[4];\toffset:8;\tsize:4;\tsigned:0;\n\
            \tfield:__data_loc char[] b;\toffset:12;\tsize:4;\tsigned:0;\n\
            \tfield:__data_loc char[] c;\toffset:16;\tsize:4;\tsigned:0;\n";
        let one = Tracepoint::new("a", "b", text).unwrap();
        assert_eq!(one.cookie(9), 9 | 20 << 16 | 3 << 32 | 4 << 40);
    }
}
