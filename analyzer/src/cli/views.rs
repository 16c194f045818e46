//! The list of views. Each is declared in its report's file. The command line, its help, man pages, completions and
//! documents use it.
//!
//! A view that is not in the list of an option refuses it: no option is taken without an effect (tests/analyze/options.rs tries all of them).

use std::ffi::OsStr;
use std::path::Path;

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::asked::args::Args;
use crate::asked::config::view::{Rows, View};
use crate::reports::{self, calls};

/// Every view, the most frequently used first.
pub static VIEWS: &[&View] = &[
    &calls::LISTING,
    &calls::SUMMARY,
    &calls::WITH_SUMMARY,
    &reports::kills::VIEW,
    &reports::exec::VIEW,
    &reports::block::VIEW,
    &reports::top::VIEW,
    // behind block: of options that several have the first form is the one of words before the report
    &reports::why::VIEW,
    &reports::page::VIEW,
    &reports::files::VIEW,
    &reports::tools::opensnoop::VIEW,
    &reports::tools::statsnoop::VIEW,
    &reports::tools::execsnoop::VIEW,
    &reports::tools::biosnoop::VIEW,
    &reports::tools::biolatency::VIEW,
    &reports::tools::tcplife::VIEW,
    &reports::tools::syscount::VIEW,
    &reports::tools::filetop::VIEW,
    &reports::tools::killsnoop::VIEW,
    &reports::tools::gethostlatency::VIEW,
    &reports::tools::offcputime::VIEW,
    &reports::rate::VIEW,
    &reports::net::VIEW,
    &reports::locks::VIEW,
    &reports::probes::VIEW,
    &reports::path::VIEW,
    &reports::sched::TIMEHIST,
    &reports::sched::LATENCY,
    &reports::runqlat::VIEW,
    &reports::runqlat::CPUDIST,
    &reports::offcpu::VIEW,
    &reports::states::VIEW,
    &reports::fds::VIEW,
    &reports::env::VIEW,
    &reports::callgraph::VIEW,
    &reports::samples::VIEW,
    &reports::diff::VIEW,
    &reports::export::perfetto::VIEW,
    &reports::export::strace::VIEW,
    &reports::export::pprof::VIEW,
    &reports::info::VIEW,
    &reports::info::list::VIEW,
    &reports::tables::VIEW,
    &reports::schema::VIEW,
    &reports::expect::VIEW,
    &reports::check::VIEW,
    &reports::repair::VIEW,
    &reports::repair::REDACT_VIEW,
    &reports::cut::VIEW,
    &reports::merge::VIEW,
];

/// Every kind of row of every view.
pub fn tables() -> impl Iterator<Item = &'static Rows> {
    VIEWS.iter().flat_map(|view| view.tables)
}

/// The view selected by the first of `words`, and the number of its words; None: they name no view. `sched` alone is
/// its first view.
pub(crate) fn named<'a>(words: impl Iterator<Item = &'a str> + Clone) -> Option<(&'static View, usize)> {
    let first = words.clone().next()?;
    let two = words.take(2).collect::<Vec<_>>().join(" ");
    let exact = |name: &str| VIEWS.iter().find(|view| !view.name.is_empty() && view.name == name);
    if let Some(view) = exact(&two) {
        return Some((view, view.name.split(' ').count()));
    }
    let begins = |view: &&&View| view.name.split_once(' ').is_some_and(|(word, _)| word == first);
    exact(first).or_else(|| VIEWS.iter().find(begins)).map(|view| (*view, 1))
}

/// The view selected by `args`, and the number of its words: by the first ones, or by an option among `matches`.
pub(crate) fn chosen(args: &Args, matches: &ArgMatches) -> (&'static View, usize) {
    let words = args.words.iter().map_while(|word| word.to_str());
    let given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    // options of -s go with -S too, which stands behind it
    let switched = || VIEWS.iter().rev().find(|view| view.switches.iter().any(&given));
    named(words).unwrap_or_else(|| (switched().copied().unwrap_or(VIEWS[0]), 0))
}

/// The first words of all views but the listing, each once.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let first = |at: &usize| VIEWS[*at].name.split(' ').next().unwrap_or_default();
    let new = move |at: &usize| !first(at).is_empty() && (0..*at).all(|before| first(&before) != first(at));
    (0..VIEWS.len()).filter(new).map(move |at| first(&at))
}

/// Whether `word` is the first of a report's name.
pub(crate) fn begins(word: impl AsRef<OsStr>) -> bool {
    names().any(|name| word.as_ref() == name)
}

/// The report whose name `path` resembles, for a message: a word without `/` or `.`.
pub(crate) fn nearest(path: &Path) -> Option<&'static str> {
    let word = path.to_str().filter(|word| !word.contains(['/', '.']))?;
    systape_abi::nearest(word, names()).first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_resembles_a_report() {
        assert_eq!(nearest(Path::new("chek")), Some("check"));
        assert_eq!(nearest(Path::new("my.tape")), None);
    }
}
