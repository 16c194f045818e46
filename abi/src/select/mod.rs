//! The `-e` expressions of `record` and `analyze`: which syscalls are meant.
//!
//! Several expressions, each a comma list of terms. What is selected is the union of the positive terms, or everything if there is
//! none, minus the union of the negative ones; the order of terms never matters. A term is
//!
//! - a name (`openat`), an exact name (`=stat`), a glob (`epoll*`, `?` for one character) or a number (`sys_451`)
//! - a group, `%file` or `file`; where a call has the name of a group (`signal` and `ipc` of i386), the bare word is the group, which
//!   contains the call, and `=signal` the call. `%stat`, `%lstat`, `%fstat`, `%statfs` and `%fstatfs` need their `%`, the bare words being
//!   calls on most ABIs
//! - `all`, or `none`
//! - `syscalls:sys_enter_openat` (perf's name of a tracepoint) for `=openat`, `raw_syscalls:*` for all, with a note
//! - `family:event` for what is no syscall, or `family:event/FILTER/` for some of these; such terms are parsed here and resolved by the
//!   caller. A comma in the filter ends no term
//!
//! A name stands for the calls libc makes in its place as well (`stat` for newfstatat and statx), with a [note](Selection::notes), and
//! silently for later widths of the same call on i386 (`getuid` for getuid32). A leading `!` negates a term; in front of a whole list it
//! negates every term of it, as in strace and perf. A leading `?` accepts a name this version does not know, `trace=` in front of a
//! list is accepted and ignored, `name@64`, `@32` and `@x32` restrict a name to an ABI as in strace (`@64` is x86_64 and aarch64), and so do the ABIs' own
//! names, `name@i386`.
//!
//! Terms apply to every ABI by name. A tape's own tables are not looked at, so a selection is the same for every tape.

mod aliases;
mod error;
mod groups;
mod nrset;

use std::collections::BTreeSet;
use std::sync::LazyLock;

pub use error::SelectError;
use nrset::NrSet;

use crate::{Abi, names};

/// A set of syscalls, made from `-e` expressions.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    positive: NrSet,
    negative: NrSet,
    has_positive: bool,
    notes: Vec<Note>,
    events: Vec<EventTerm>,
}

/// A term of the form `family:event`, e.g. `sched:*`; either part may be a glob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventTerm {
    /// Whether the term was negated.
    pub negated: bool,
    /// What stood before the first colon, never empty.
    pub family: String,
    /// What stood after it, never empty.
    pub event: String,
    /// What stood between the slashes of `family:event/FILTER/`: which of these events are meant, by their fields.
    pub filter: Option<String>,
}

/// Names of every ABI, each once.
static NAMES: LazyLock<BTreeSet<&'static str>> =
    LazyLock::new(|| Abi::KNOWN.into_iter().flat_map(names::all).map(|(_, name)| name).collect());

impl Selection {
    /// Names of all groups, without `%`.
    pub fn groups() -> &'static [&'static str] {
        &groups::GROUPS
    }

    /// Every syscall, unknown ones included.
    pub fn all() -> Self {
        Self::default()
    }

    /// Parses the expressions of all `-e` options together; none at all selects everything.
    ///
    /// ```
    /// # use systape_abi::{Abi, Selection};
    /// let some = Selection::parse(&["file,!stat", "%network"]).unwrap();
    /// assert!(some.contains(Abi::X86_64, 257), "openat has a path");
    /// assert!(!some.contains(Abi::X86_64, 4), "stat was taken out");
    /// assert!(Selection::parse(&["opennat"]).unwrap_err().to_string().contains("openat"));
    /// ```
    ///
    /// # Errors
    /// A name, group or glob that names nothing, and terms that are empty or not understood.
    pub fn parse<S: AsRef<str>>(exprs: &[S]) -> Result<Self, SelectError> {
        let mut selection = Self::default();
        for expr in exprs {
            selection.add_list(expr.as_ref())?;
        }
        Ok(selection)
    }

    /// Whether call `nr` is selected. A number without a name is if no positive term was given or a term names it (`sys_451`).
    pub fn contains(&self, abi: Abi, nr: u32) -> bool {
        !self.negative.contains(abi, nr) && (!self.has_positive || self.positive.contains(abi, nr))
    }

    /// Whether call `nr` is selected because a positive term matches it; never true when all is selected by default.
    pub fn positively_names(&self, abi: Abi, nr: u32) -> bool {
        self.positive.contains(abi, nr) && !self.negative.contains(abi, nr)
    }

    /// Whether any positive term was given. Event terms count: `-e 'sched:*'` alone selects no syscalls, as in perf trace.
    #[cfg(test)]
    pub(crate) fn has_positive(&self) -> bool {
        self.has_positive
    }

    /// Whether any call can be selected: not when only events are named.
    pub fn selects_calls(&self) -> bool {
        !self.has_positive || !self.positive.is_empty()
    }

    /// Remarks for the user, e.g. `stat also selects newfstatat, statx (write =stat for stat alone)`; each at most once.
    pub fn notes(&self) -> Vec<String> {
        self.notes.iter().map(Note::to_string).collect()
    }

    /// The `family:event` terms, in the order given.
    pub fn other_events(&self) -> &[EventTerm] {
        &self.events
    }

    fn add_list(&mut self, expr: &str) -> Result<(), SelectError> {
        let list = expr.trim();
        let list = list.strip_prefix("trace=").or_else(|| list.strip_prefix("t=")).unwrap_or(list);
        let (all_negated, list) = match list.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, list),
        };
        for term in terms(list) {
            let term = term.trim();
            // `!a,!b` means both lists of habits: the second `!` repeats the first, it does not undo it
            let (negated, term) = match term.strip_prefix('!') {
                Some(rest) => (true, rest.trim_start()),
                None => (all_negated, term),
            };
            if term.is_empty() {
                return Err(SelectError::Empty { expr: expr.to_owned() });
            }
            self.add_term(term, negated)?;
        }
        Ok(())
    }

    fn add_term(&mut self, term: &str, negated: bool) -> Result<(), SelectError> {
        self.has_positive |= !negated;
        if let Some((family, event)) = term.split_once(':') {
            let before_filter = if term.starts_with('/') { term } else { term.split('/').next().unwrap_or(term) };
            if let Some(reason) = error::not_supported(before_filter) {
                return Err(SelectError::Unsupported { term: term.to_owned(), reason });
            }
            let (event, filter) = split_filter(event).ok_or_else(|| {
                let reason = "a filter ends with a slash: CATEGORY:NAME/FILTER/";
                SelectError::Unsupported { term: term.to_owned(), reason }
            })?;
            if family.is_empty() || event.is_empty() {
                return Err(SelectError::Event { term: term.to_owned() });
            }
            if filter.is_some() && negated {
                let reason = "leave the filter out, or negate its conditions: CATEGORY:NAME/!(FILTER)/";
                return Err(SelectError::Unsupported { term: term.to_owned(), reason });
            }
            if let Some(calls) = tracepoint(family, event) {
                if filter.is_some() {
                    let reason =
                        "calls take no filter; choose with --failure, --errno and --duration, or when it is read";
                    return Err(SelectError::Unsupported { term: term.to_owned(), reason });
                }
                let (set, _) = resolve_known(&calls, negated)?;
                if negated { &mut self.negative } else { &mut self.positive }.merge(&set);
                let note =
                    format!("{term} is {}: a call's enter and exit are one event here", calls.trim_start_matches('='));
                self.note(Note::Said(note));
                return Ok(());
            }
            let (family, event, filter) = (family.to_owned(), event.to_owned(), filter.map(str::to_owned));
            self.events.push(EventTerm { negated, family, event, filter });
            return Ok(());
        }
        let (set, note) = resolve(term, negated)?;
        if negated { &mut self.negative } else { &mut self.positive }.merge(&set);
        note.into_iter().for_each(|note| self.note(note));
        Ok(())
    }

    /// Adds it; names that stand for the same calls have one.
    fn note(&mut self, note: Note) {
        if !self.notes.iter_mut().any(|known| known.takes(&note)) {
            self.notes.push(note);
        }
    }
}

/// The terms of a list: what is between its commas, but for commas of a filter.
fn terms(list: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut rest = list;
    loop {
        let filter = rest.find('/').filter(|slash| rest[..*slash].contains(':') && !rest[..*slash].contains(','));
        let behind = filter.map_or(0, |slash| slash + 1 + end_of_filter(&rest[slash + 1..]).unwrap_or(0));
        let Some(comma) = rest[behind..].find(',').map(|at| behind + at) else {
            terms.push(rest);
            return terms;
        };
        terms.push(&rest[..comma]);
        rest = &rest[comma + 1..];
    }
}

/// Where the slash is that ends a filter: the first one outside of quotes; None = there is none.
fn end_of_filter(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '/' => return Some(at),
            None if c == '"' || c == '\'' => quote = Some(c),
            None => {}
        }
    }
    None
}

/// `event/FILTER/`: the event and the filter; None = the filter has no end, or something stands behind it.
fn split_filter(event: &str) -> Option<(&str, Option<&str>)> {
    let Some((event, rest)) = event.split_once('/') else { return Some((event, None)) };
    let end = end_of_filter(rest)?;
    (end + 1 == rest.len()).then_some((event, Some(&rest[..end])))
}

/// The term for the calls of a tracepoint of the syscalls themselves; None: it is another event.
fn tracepoint(family: &str, event: &str) -> Option<String> {
    let name = event.strip_prefix("sys_enter_").or_else(|| event.strip_prefix("sys_exit_"));
    match (family, name) {
        ("syscalls", Some(name)) if name.contains(['*', '?', '[']) => Some(name.to_owned()),
        // the tracepoints have the kernel's names
        ("syscalls", Some(name)) => Some(format!("={name}")),
        ("syscalls", None) if event == "*" => Some("all".to_owned()),
        ("raw_syscalls", _) if ["sys_enter", "sys_exit", "*", "sys_*"].contains(&event) => Some("all".to_owned()),
        _ => None,
    }
}

/// The calls one term (without its `!`) stands for, and a note about it.
fn resolve(term: &str, negated: bool) -> Result<(NrSet, Option<Note>), SelectError> {
    let (optional, rest) = match term.strip_prefix('?') {
        Some(rest) => (true, rest),
        None => (false, term),
    };
    match resolve_known(rest, negated) {
        Err(SelectError::Unknown { .. }) if optional => Ok((NrSet::default(), None)),
        // `?` begins a glob as well: `?open*` that is no optional name may still match something
        Err(SelectError::Nothing { .. }) if optional => resolve_known(term, negated),
        other => other,
    }
}

fn resolve_known(term: &str, negated: bool) -> Result<(NrSet, Option<Note>), SelectError> {
    if let Some(reason) = error::not_supported(term) {
        return Err(SelectError::Unsupported { term: term.to_owned(), reason });
    }
    let (whole, abis) = split_abi(term);
    let mut set = NrSet::default();
    if let Some(group) = whole.strip_prefix('%') {
        let group = group.trim_start_matches('%');
        let members = groups::members(group).ok_or_else(|| SelectError::Group { name: group.to_owned() })?;
        set.insert_names(members, abis);
        return Ok((set, None));
    }
    if let Some(name) = whole.strip_prefix('=') {
        add_exact(name, abis, &mut set)?;
        return Ok((set, None));
    }
    if whole == "none" {
        return Ok((set, None));
    }
    if whole == "all" {
        set.insert_all(abis);
        return Ok((set, None));
    }
    if whole.contains(['*', '?', '[']) {
        set.insert_names(NAMES.iter().copied().filter(|name| glob_matches(whole, name)), abis);
        return if set.is_empty() { Err(SelectError::Nothing { glob: whole.to_owned() }) } else { Ok((set, None)) };
    }
    if let Some(members) = groups::bare_members(whole) {
        set.insert_names(members, abis);
        return Ok((set, None));
    }
    let others = aliases::made_by_libc(whole);
    let exact = add_exact(whole, abis, &mut set);
    let exists = exact.is_ok();
    if others.is_empty() {
        exact?;
    }
    for name in std::iter::once(&whole).chain(others) {
        set.insert_names(aliases::later_widths(name), abis);
    }
    set.insert_names(others.iter().copied(), abis);
    let stands = Note::Stands {
        names: vec![whole.to_owned()],
        verb: if negated { "exclude" } else { "select" },
        others,
        exists,
    };
    Ok((set, (!others.is_empty()).then_some(stands)))
}

/// `name@64` and its like: the name and the ABIs it is meant for.
fn split_abi(term: &str) -> (&str, &'static [Abi]) {
    let known: &'static [Abi] = &Abi::KNOWN;
    match term.rsplit_once('@') {
        Some((name, "64")) => (name, &[Abi::X86_64, Abi::Aarch64]),
        Some((name, "32")) => (name, &[Abi::I386]),
        Some((name, abi)) => {
            let named = known.iter().position(|known| known.as_str() == abi);
            named.map_or((term, known), |at| (name, &known[at..=at]))
        }
        None => (term, known),
    }
}

/// Adds the call `name`, or the number N of `sys_N`.
fn add_exact(name: &str, abis: &'static [Abi], set: &mut NrSet) -> Result<(), SelectError> {
    if name == names::display_name(Abi::Unknown, names::NO_CALL) {
        set.insert_number(names::NO_CALL);
        return Ok(());
    }
    let number = name.strip_prefix("sys_").filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    if let Some(nr) = number.and_then(|digits| digits.parse().ok()) {
        set.insert_number(nr);
        return Ok(());
    }
    match NAMES.get(name) {
        Some(name) => {
            set.insert_names([*name], abis);
            Ok(())
        }
        None => Err(SelectError::unknown(name)),
    }
}

/// A remark for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Note {
    /// A remark that was made.
    Said(String),
    /// Names of calls that stand for these others too, or, without calls of their own, for these alone.
    Stands { names: Vec<String>, verb: &'static str, others: &'static [&'static str], exists: bool },
}

impl Note {
    /// Says what `other` says as well, if that is of the same calls.
    fn takes(&mut self, other: &Self) -> bool {
        match (&mut *self, other) {
            (
                Self::Stands { names, verb, others, exists },
                Self::Stands { names: more, verb: v, others: o, exists: e },
            ) if (&*verb, &*others, &*exists) == (v, o, e) => {
                let new: Vec<String> = more.iter().filter(|name| !names.contains(name)).cloned().collect();
                names.extend(new);
                true
            }
            (one, other) => one == other,
        }
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (names, verb, others, exists) = match self {
            Self::Said(text) => return f.write_str(text),
            Self::Stands { names, verb, others, exists } => (names, verb, others, exists),
        };
        let (s, it) = if names.len() == 1 { ("s", "it") } else { ("", "them") };
        let (all, others) = (names.join(", "), others.join(", "));
        if !exists {
            return write!(f, "{all} {verb}{s} {others}, the calls libc makes for {it}");
        }
        let exact: Vec<String> = names.iter().map(|name| format!("={name}")).collect();
        write!(f, "{all} also {verb}{s} {others} (write {} for {all} alone)", exact.join(","))
    }
}

/// Whether `glob` (`*`, `?`, `[a-z]`, `[!a-z]`) matches the whole of `text`. Both are short; a `*` backtracks to the latest one only,
/// so the time is at most the product of the lengths.
pub fn glob_matches(glob: &str, text: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let (mut g, mut t, mut retry) = (0, 0, None);
    while t < text.len() {
        if glob.get(g) == Some(&'*') {
            retry = Some((g + 1, t));
            g += 1;
            continue;
        }
        if let Some(width) = glob.get(g..).and_then(|rest| one_char(rest, text[t])) {
            g += width;
            t += 1;
            continue;
        }
        match retry {
            Some((after_star, from)) => {
                retry = Some((after_star, from + 1));
                (g, t) = (after_star, from + 1);
            }
            None => return false,
        }
    }
    glob[g..].iter().all(|&c| c == '*')
}

/// How many characters at the start of `glob` match exactly `c`; `None` if they do not.
fn one_char(glob: &[char], c: char) -> Option<usize> {
    match glob.first()? {
        '?' => Some(1),
        '[' => {
            // a `]` right after the opening one is a member, as in the shell; without a closing one `[` is itself
            let negated = glob.get(1) == Some(&'!');
            let start = if negated { 2 } else { 1 };
            let Some(len) = glob.get(start + 1..).and_then(|rest| rest.iter().position(|&c| c == ']')).map(|at| at + 1)
            else {
                return (c == '[').then_some(1);
            };
            (class_contains(&glob[start..start + len], c) != negated).then_some(start + len + 1)
        }
        &first => (first == c).then_some(1),
    }
}

fn class_contains(class: &[char], c: char) -> bool {
    let mut rest = class;
    while let [first, tail @ ..] = rest {
        if let ['-', last, after @ ..] = tail {
            if (*first..=*last).contains(&c) {
                return true;
            }
            rest = after;
        } else {
            if *first == c {
                return true;
            }
            rest = tail;
        }
    }
    false
}

#[cfg(test)]
mod tests;
