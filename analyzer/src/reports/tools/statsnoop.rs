//! `analyze statsnoop`: the calls that ask for the attributes of a path, in statsnoop's columns.

use super::paths::{TOOL, answer};
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Rows, View};
use crate::reports::files::FILE_CALLS;
use crate::reports::files::lines::ListedAction;
use systape_answers::lines::tables::LOSSES;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "statsnoop",
    about: "Calls of stat and its like in the columns of bcc's statsnoop, paths as the programs gave them",
    examples: [
        ("analyze statsnoop -x", "those that failed: where a program looks in vain"),
        ("analyze statsnoop -P /etc/localtime", "who asks for this file"),
    ],
    tables: &[Rows::of("statsnoop", &[All(&FILE_CALLS)]), Rows::json("statsnoop", &[All(&LOSSES)])],
    run: AnswerFn::Prints(|config, tape, out| answer::<7>(config, tape, ListedAction::Stat, out)),
    ..TOOL
};
