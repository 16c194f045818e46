//! `analyze export strace`: the lines that `strace -f -ttt -T -o FILE` writes, for programs that read those.
//!
//! [`read`] makes events of a tape, [`lines`] writes them in order of time, and [`signals`] knows what strace says of a signal.

mod lines;
mod read;
mod signals;
mod waiting;

use anyhow::Result;
use systape_format::model::Family;
use systape_format::reader::Tape;

use self::lines::{Lines, StraceLook};
use self::read::Events;
use super::not_text;
use crate::asked::config::Config;
use crate::asked::config::view::{AnswerFn, CALLS, CPUS, Own, PATHS, TASKS, View};
use crate::reports::{Context, losses};
use systape_answers::render::out::Out;
use systape_answers::values::say::Verdict;
use systape_events::families;
use systape_events::loss::ListedLoss;
use systape_events::question::clock;
use systape_events::scan::Scan;

/// What is asked.
pub(crate) static VIEW: View = View {
    name: "export strace",
    about: "Calls, signals and exits in strace's syntax (strace -f -ttt -T), for programs that read that",
    options: &[TASKS, CALLS, PATHS, CPUS, &["time", "max_events", "clock"]],
    own: Own::of::<Options>(),
    examples: [
        ("analyze export strace t.tape > t.strace", "what strace -f -ttt -T -o t.strace writes"),
        (
            "analyze export strace -y --clock wall -e file",
            "as strace -f -tt -T -y -e file: times of day, files of descriptors",
        ),
    ],
    check,
    run: AnswerFn::Prints(run),
    ..View::PLAIN
};

#[derive(Debug, Default, clap::Args)]
struct Options {
    /// Show the files of descriptors: 3</etc/passwd>, as strace -y
    #[arg(short = 'y', long = "show-files", help_heading = "Listing")]
    show_files: bool,
}

fn check(config: &Config) -> Result<()> {
    not_text(config)?;
    if config.is_of_many() {
        anyhow::bail!("strace's lines do not say which machine they are of: export one tape at a time");
    }
    Ok(())
}

fn run(config: &Config, tape: &Tape, out: &mut Out) -> Result<Verdict> {
    let own: Options = config.own()?;
    families::require(tape, Family::Syscall, "syscalls")?;
    let mut context = Context::about(config, tape, &[Family::Syscall, Family::Process, Family::Signal])?;
    if families::recorded(tape, Family::Signal) == Some(false) {
        out.say(&format!("signals were not recorded: {}", families::instead(tape, Family::Signal)));
    }
    let clock = clock(tape);
    if clock.samples() == 0 {
        out.say("no time of day is known: times are of CLOCK_MONOTONIC, as by --clock mono");
    }
    config.shown.rows(0);
    let question = &context.question;
    let look = StraceLook { base: config.base(), clock, open: tape.session().window_open, files: own.show_files };
    let mut lines = Lines::new(&mut *out, look, config.max_events);
    let events = Events { question };
    let coverage = Scan::candidates(question).stream(&events, [], &mut lines);
    config.shown.rows(usize::try_from(lines.finish()?).unwrap_or(usize::MAX));
    coverage.tell(&mut context.question.loss);
    losses::tell_filtered(&context, out);
    losses::end(&context, out, false, ListedLoss::Nothing)
}
