//! `analyze stays`: what threads were in, by looks at all of them (`record --sample`): states, calls and files, with how many threads
//! were in them on average, and how far that may be off; or the longest stays one by one. What other reports say of looks is here too:
//! sums ([`sums`]), one instant ([`at`]) and locks ([`locks`]).

pub(super) mod at;
pub(super) mod full;
mod list;
pub(super) mod locks;
pub(super) mod sums;

use anyhow::{Result, bail};
use systape_format::model::Family;
use systape_format::reader::Tape;

use self::sums::{DEFAULT, STAYS};
use super::idle;
use super::{Context, losses};
use crate::asked::config::view::Part::{All, Keys as KeysPart};
use crate::asked::config::view::{AnswerFn, Own, Rows, TASKS, View};
use crate::asked::config::{self, Config};
use crate::asked::options::idle::Idle;
use systape_answers::derive::looks::sums::KNOWN;
use systape_answers::render::by::BY;
use systape_answers::render::out::Out;
use systape_answers::render::rank::Few;
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::group::by::GroupKey;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "stays",
    about: "What threads were in, by looks at all of them (record --sample): states, calls, files, with error bars",
    options: &[TASKS, &["time", "by"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze stays --time 10,20", "what threads waited for in ten seconds"),
        ("analyze stays --longest -p 2214", "the longest stays of a process, one by one"),
    ],
    tables: &[Rows::of("stays", &[KeysPart(&BY), All(&STAYS)]), Rows::of("stays --longest", &[All(&list::LONGEST)])],
    check,
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, clap::Args)]
struct Options {
    /// The longest stays one by one, instead of sums
    #[arg(long)]
    longest: bool,

    #[command(flatten)]
    rank: Few,

    #[command(flatten)]
    idle: Idle,
}

fn keys(config: &Config) -> Result<Vec<GroupKey>> {
    let keys = GroupKey::parse(&config.by, &KNOWN, "'analyze stays'")?;
    Ok(if keys.is_empty() { DEFAULT.to_vec() } else { keys })
}

fn check(config: &Config) -> Result<()> {
    let own: Options = config.own()?;
    keys(config)?;
    if own.longest {
        config::refuse(&[(!config.by.is_empty(), "--by")], "--longest lists stays one by one")?;
    }
    own.idle.check(config, &[])
}

/// Prints the answer for `config`.
fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    families::require(tape, Family::Look, "looks at threads")?;
    let own: Options = config.own()?;
    let by = keys(config)?;
    let mut context = context(config, tape)?;
    let folds = !own.rank.all() && idle::folds(own.idle, config, tape, &context.question.scope);
    if own.longest {
        return list::run(&mut context, config.few(own.rank), folds, out);
    }
    sums::print(&mut context, &by, (folds, config.few(own.rank)), &[], out)
}

/// Binds `config` to a tape of looks.
pub(super) fn context<'a>(config: &'a Config, tape: &'a Tape) -> Result<Context<'a>> {
    Context::about(config, tape, &[Family::Look, Family::Sample])
}

/// Refuses options without effect on looks.
///
/// # Errors
/// One of them is given.
pub(super) fn refuse(options: &[(bool, &str)], why: &str) -> Result<()> {
    match options.iter().find(|(given, _)| *given) {
        Some((_, option)) => bail!("{option}: this tape has looks at threads (record --sample), and {why}"),
        None => Ok(()),
    }
}
