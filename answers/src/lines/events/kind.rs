//! The selection of `-e` among kinds of event and tables of a tape.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use rustc_hash::FxHashMap;
use systape_abi::EventTerm;
use systape_format::families::{OWN, RECORDED};
use systape_format::model::Family;
use systape_format::table::TableDef;

use super::describe::stored_shape;
use super::filter::FieldFilter;
use crate::catalogue::shape::Shape;
use crate::catalogue::{CataloguedKind, Event, EventTable, TABLES, kinds};
use crate::values::bad_usage::BadUsage;
use systape_events::values::glob;

/// One `family:event` of `-e`; either part may be a glob.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    pattern: String,
    negated: bool,
    /// It names a kind, or a table, that this program knows.
    built_in: bool,
    /// The filter behind it: which of these events are meant.
    filter: Option<String>,
}

impl Term {
    fn names(&self, name: &str) -> bool {
        glob::matches(self.pattern.as_bytes(), name.as_bytes())
    }

    /// Whether it names the table called `name`, by its name or an alias.
    fn names_table(&self, name: &str) -> bool {
        self.names(name) || RECORDED.iter().any(|table| table.def.name == name && self.names(&table.alias()))
    }

    /// The filter for events of `shape`; None: it has none, so all of them are meant.
    fn filter(&self, shape: &Shape) -> Option<Result<(FieldFilter, Vec<String>), String>> {
        self.filter.as_deref().map(|text| FieldFilter::new(text, shape))
    }
}

/// Which events of one kind, or of one table, are selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SelectedEvents {
    /// No event.
    #[default]
    None,
    /// Every event.
    All,
    /// Events that one of the filters lets through.
    Some(Vec<FieldFilter>),
}

impl SelectedEvents {
    /// What `terms` select, all of which name events of `shape`. A filter that is about other fields selects none of them.
    fn of<'t>(terms: impl Iterator<Item = &'t Term>, shape: &Shape) -> Self {
        let mut selected = Self::None;
        for term in terms {
            match (term.negated, term.filter(shape), &mut selected) {
                (true, ..) => return Self::None,
                (_, None, _) => selected = Self::All,
                (_, Some(Ok((filter, _))), Self::Some(filters)) => filters.push(filter),
                (_, Some(Ok((filter, _))), Self::None) => selected = Self::Some(vec![filter]),
                (_, Some(_), _) => {}
            }
        }
        selected
    }

    /// Whether `event` is one of them.
    pub fn has(&self, event: &Event<'_>) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(filters) => filters.iter().any(|filter| filter.lets(event)),
        }
    }
}

/// The selected kinds, and the tables that a tape may define.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// By name of the kind: what the positive terms select without the negated ones.
    kinds: FxHashMap<&'static str, SelectedEvents>,
    terms: Vec<Term>,
}

impl Wanted {
    /// The selection of these terms. [`Self::check`] tests whether the terms without a kind name a table of the tape, and
    /// their filters.
    pub fn new(terms: &[EventTerm]) -> Self {
        let term = |term: &EventTerm| {
            let pattern = format!("{}:{}", term.family, term.event);
            let mut term = Term { pattern, negated: term.negated, built_in: false, filter: term.filter.clone() };
            term.built_in = Self::kinds_of(&term).next().is_some()
                || RECORDED.iter().any(|table| term.names_table(&table.def.name));
            term
        };
        let terms: Vec<Term> = terms.iter().map(term).collect();
        let of_kind = |kind: &CataloguedKind| {
            let naming = terms.iter().filter(|term| is_named(kind, term));
            (kind.name, SelectedEvents::of(naming, &kind.shape))
        };
        let kinds = kinds().map(of_kind).filter(|(_, selected)| *selected != SelectedEvents::None).collect();
        Self { kinds, terms }
    }

    /// The kinds that a term names.
    fn kinds_of(term: &Term) -> impl Iterator<Item = &'static CataloguedKind> {
        kinds().filter(|kind| is_named(kind, term))
    }

    /// Refuses a term that names neither a kind nor one of `tables`, those of the tape, and a filter that no event that its term
    /// names can have. Tables are read only if some term names no kind, or has a filter. Returns what is to be said of names in filters.
    ///
    /// # Errors
    /// There is such a term: bad usage.
    pub fn check<'a>(&self, tables: impl FnOnce() -> Vec<&'a TableDef>) -> Result<Vec<String>> {
        if self.terms.iter().all(|term| term.built_in && term.filter.is_none()) {
            return Ok(Vec::new());
        }
        let tables = tables();
        let unknown = |term: &&Term| !term.built_in && !tables.iter().any(|table| term.names(&table.name));
        if let Some(term) = self.terms.iter().find(unknown) {
            let names: Vec<&str> = tables.iter().map(|table| &*table.name).collect();
            let recorded = RECORDED.iter().map(|table| &*table.def.name).filter(|name| !names.contains(name));
            let kinds = kinds().map(|kind| kind.name);
            let known: Vec<_> = kinds.chain(names.iter().copied()).chain(recorded).collect();
            let near = systape_abi::nearest(&term.pattern, known.iter().copied());
            let meant = match near.first() {
                Some(name) => format!("did you mean '{name}'?"),
                None => format!("{};", stored_by(&term.pattern)),
            };
            bail!(BadUsage(format!("-e '{}': no such event; {meant} there are {}", term.pattern, known.join(", "))));
        }
        let mut notes = BTreeSet::new();
        for term in self.terms.iter().filter(|term| term.filter.is_some()) {
            notes.extend(term_notes(term, &tables)?);
        }
        Ok(notes.into_iter().collect())
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && !self.tables()
    }

    /// Whether something is selected that only a table of the tape can be.
    pub fn tables(&self) -> bool {
        let recorded = RECORDED.iter().any(|table| self.has_table(&table.def.name));
        recorded || self.terms.iter().any(|term| !term.negated && !term.built_in)
    }

    /// Which events of the kind called `name` are selected.
    pub fn of_kind(&self, name: &str) -> &SelectedEvents {
        self.kinds.get(name).unwrap_or(&SelectedEvents::None)
    }

    /// Whether events of this table of the catalogue are selected.
    pub fn has(&self, table: &dyn EventTable) -> bool {
        table.kinds().iter().any(|kind| self.kinds.contains_key(kind.name))
    }

    /// Whether events of the table called `name` are selected.
    pub fn has_table(&self, name: &str) -> bool {
        let named = |negated| self.terms.iter().any(|term| term.negated == negated && term.names_table(name));
        named(false) && !named(true)
    }

    /// Which events of the table of this shape are selected.
    pub fn of_table(&self, shape: &Shape) -> SelectedEvents {
        SelectedEvents::of(self.terms.iter().filter(|term| term.names_table(&shape.event)), shape)
    }

    /// Whether some events are selected by their fields.
    pub fn has_filters(&self) -> bool {
        self.terms.iter().any(|term| term.filter.is_some())
    }

    /// The tape's families of the selected kinds, each once.
    pub fn families(&self) -> Vec<Family> {
        let mut families: Vec<_> =
            TABLES.iter().filter(|table| self.has(**table)).map(|table| table.about().family).collect();
        families.dedup();
        for table in RECORDED.iter().chain(OWN).filter(|table| self.has_table(&table.def.name)) {
            if !families.contains(&table.family) {
                families.push(table.family);
            }
        }
        // any of them may name tracepoints too, which only the tape knows
        if self.terms.iter().any(|term| !term.negated) {
            families.push(Family::Tracepoint);
        }
        families
    }
}

fn is_named(kind: &CataloguedKind, term: &Term) -> bool {
    term.names(kind.name) || kind.aliases.iter().any(|name| term.names(name))
}

/// What is to be said of the names in a term's filter.
///
/// # Errors
/// No event that the term names can have the filter: bad usage.
fn term_notes(term: &Term, tables: &[&TableDef]) -> Result<Vec<String>> {
    let absent =
        RECORDED.iter().map(|table| table.def).filter(|def| !tables.iter().any(|table| table.name == def.name));
    let tables = tables.iter().copied().chain(absent).filter(|table| term.names_table(&table.name));
    let stored: Vec<Shape> = tables.map(|table| stored_shape(&table.name, &table.columns)).collect();
    let shapes = Wanted::kinds_of(term).map(|kind| &kind.shape).chain(&stored);
    let (mut notes, mut error, mut fits) = (Vec::new(), None, false);
    for made in shapes.filter_map(|shape| term.filter(shape)) {
        match made {
            Ok((_, of_event)) => {
                fits = true;
                notes.extend(of_event);
            }
            Err(why) => error = error.or(Some(why)),
        }
    }
    match error.filter(|_| !fits) {
        Some(why) => {
            let filter = term.filter.as_deref().unwrap_or_default();
            Err(BadUsage(format!("-e '{}/{filter}/': {why}", term.pattern)).into())
        }
        None => Ok(notes),
    }
}

/// What of `record` stores the event `name`, which this tape does not have.
fn stored_by(name: &str) -> String {
    let behind = |kind: &str| name.strip_prefix(kind);
    match (behind("kprobe:"), behind("uprobe:"), behind("usdt:")) {
        (Some(function), ..) => format!("functions of the kernel are stored by record --kprobe {function}"),
        (_, Some(function), _) => format!("functions of programs are stored by record --uprobe FILE:{function}"),
        (.., Some(probe)) => format!("static probes are stored by record --usdt FILE:{probe}"),
        _ => format!("a tracepoint is stored by record -e '{name}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systape_abi::Selection;
    use systape_format::table::{ColumnDef, Type};

    fn asked(text: &str) -> Wanted {
        Wanted::new(Selection::parse(&[text]).unwrap().other_events())
    }

    fn wanted(text: &str) -> Vec<&'static str> {
        let wanted = asked(text);
        kinds().map(|kind| kind.name).filter(|name| *wanted.of_kind(name) != SelectedEvents::None).collect()
    }

    fn def(name: &'static str) -> TableDef {
        TableDef {
            name: name.into(),
            doc: "x".into(),
            columns: vec![
                ColumnDef::stored("ts", Type::Time, None, "x"),
                ColumnDef::stored("ino", Type::Int, None, "x"),
            ]
            .into(),
        }
    }

    #[test]
    fn terms_add_up() {
        let written = def("writeback:written");
        assert_eq!(wanted("sched:sched_switch,read"), ["sched:sched_switch"]);
        let error = asked("sched:*,!sched:sched_[x],!sched:sched_process*").check(|| vec![&written]).unwrap_err();
        assert!(error.to_string().contains("sched:sched_[x]"), "{error}");
        assert!(error.to_string().contains("writeback:written, exceptions:page_fault_user"), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
        assert_eq!(
            wanted("sched:*,!sched:sched_process*"),
            ["sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup_new"]
        );
        assert_eq!(wanted("process:*").len(), 7);
        assert_eq!(wanted("*:signal_d*"), ["signal:signal_deliver"]);
        assert_eq!(wanted("!signal:*"), [""; 0]);
        let families = [Family::Sched, Family::Process, Family::IoUring, Family::Tracepoint];
        assert_eq!(asked("sched:*,io_uring:*").families(), families);
    }

    #[test]
    fn tables_of_a_tape_have_names_too() {
        let [written, start] = ["writeback:written", "writeback:start"].map(def);
        let wanted = asked("writeback:*,!*:start");
        assert!(wanted.check(|| vec![&written, &start]).is_ok());
        assert!(wanted.check(|| vec![&written]).is_err(), "what is left out must be there");
        assert!(wanted.has_table("writeback:written") && !wanted.has_table("writeback:start"));
        assert!(!wanted.has_table("x:y") && wanted.tables() && !wanted.is_empty());
        assert!(asked("writeback:*/ino==1/").check(|| vec![&written]).unwrap().is_empty());
        let error = asked("writeback:*/inode==1/").check(|| vec![&written]).unwrap_err();
        assert!(error.to_string().contains("-e 'writeback:*/inode==1/': writeback:written has no field"), "{error}");
        assert!(asked("sched:*").has_table("sched:mine") && !asked("sched:*").tables());
        assert!(asked("!signal:*").is_empty() && asked("read").is_empty());
    }

    #[test]
    fn filters_add_up() {
        let of = |text: &str, kind: &str| match asked(text).of_kind(kind) {
            SelectedEvents::None => 0,
            SelectedEvents::All => usize::MAX,
            SelectedEvents::Some(filters) => filters.len(),
        };
        let both = "sched:sched_switch/prev_state==D/,sched:*/next_tid==0/";
        assert_eq!(
            (of(both, "sched:sched_switch"), of(both, "sched:sched_waking")),
            (2, 0),
            "waking has no such field"
        );
        assert_eq!(of("sched:sched_switch/prev_state==D/,sched:sched_switch", "sched:sched_switch"), usize::MAX);
        assert_eq!(of("sched:sched_switch/prev_state==D/,!sched:*", "sched:sched_switch"), 0);
        assert!(asked(both).check(Vec::new).unwrap().is_empty());
        let error = asked("sched:*/prev_stat==D/").check(Vec::new).unwrap_err();
        assert!(error.to_string().contains("did you mean prev_state"), "{error}");
    }
}
