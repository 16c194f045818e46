//! `analyze opensnoop`: the opens of `analyze files --opens` in opensnoop's columns.

use super::paths::{TOOL, answer};
use crate::asked::config::view::Part::All;
use crate::asked::config::view::{AnswerFn, Rows, View};
use crate::reports::files::FILE_CALLS;
use crate::reports::files::lines::ListedAction;
use systape_answers::lines::tables::LOSSES;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "opensnoop",
    about: "Opens of files in the columns of bcc's opensnoop, paths as the programs gave them",
    examples: [
        ("analyze opensnoop -x", "opens that failed"),
        ("analyze opensnoop -n nginx --clock start", "those of threads named nginx, with times"),
    ],
    tables: &[Rows::of("opensnoop", &[All(&FILE_CALLS)]), Rows::json("opensnoop", &[All(&LOSSES)])],
    run: AnswerFn::Prints(|config, tape, out| answer::<6>(config, tape, ListedAction::Open, out)),
    ..TOOL
};
