//! The command `record`.

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use systape_recorder::args::Args;
use systape_recorder::config::Config;
use systape_recorder::generate::generate;
use systape_recorder::habits;
use systape_recorder::rights;
use systape_recorder::run::{self, FAILED};
use systape_recorder::say::say;
use systape_recorder::stacks::names;

/// The command line cannot be followed.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|arg| arg == names::CHILD) {
        // it gets open files; whatever they hold, it has no rights
        return if rights::give_up_all().is_ok() { systape_symbols::run_child() } else { ExitCode::FAILURE };
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(e) if e.use_stderr() => return usage(&e),
        Err(e) => e.exit(),
    };
    if let Some(what) = args.generate {
        let done = generate(what, &mut std::io::stdout());
        return if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let Some(word) = args.command.first().and_then(|word| word.to_str()).filter(|word| word.starts_with('-')) {
        say(format_args!("{}", unknown(word)));
        return ExitCode::from(USAGE);
    }
    let config = match Config::new(args) {
        Ok(config) => config,
        Err(e) => return fail(USAGE, &e),
    };
    for note in config.selection.notes() {
        say(note);
    }
    keep_memory();
    match run::record(&config) {
        Ok(status) => ExitCode::from(status),
        // with a command, 1 would look like the command's own status
        Err(e) => fail(if config.command.is_empty() { 1 } else { FAILED }, &e),
    }
}

/// Has the allocator keep what segments and batches are made of instead of giving it back and getting it zeroed each time: an eighth
/// of the recorder's CPU time (docs/performance.md). It keeps 64 MiB at most.
#[cfg(target_env = "gnu")]
fn keep_memory() {
    // SAFETY: mallopt takes two numbers; no other thread is running yet. What it refuses stays as it was.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 16 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 64 << 20);
        // each more is one that keeps as much
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

#[cfg(not(target_env = "gnu"))]
fn keep_memory() {}

/// What is wrong with `word`, which is no option.
fn unknown(word: &str) -> String {
    let command = Args::command();
    let longs = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(|arg| arg.get_long());
    let shown = systape_recorder::say::quoted(word);
    match (habits::instead_of(word), habits::nearest(word, longs)) {
        (Some(text), _) => format!("{shown} is no option of record: {text}"),
        (None, Some(near)) => format!("{shown} is no option of record; did you mean '--{near}'? (see 'record --help')"),
        (None, None) => format!("{shown} is no option of record, and no command (see 'record --help')"),
    }
}

/// What clap says over several lines, in one.
fn usage(error: &clap::Error) -> ExitCode {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let tip = lines.find_map(hint).unwrap_or_default();
    say(format_args!("{first}{tip} (see 'record --help')"));
    ExitCode::from(USAGE)
}

/// What of clap's further lines helps: a tip, or the values an option takes.
fn hint(line: &str) -> Option<String> {
    match line.strip_prefix("tip: ") {
        Some(tip) => Some(format!("; {tip}")),
        None => line.starts_with("[possible values").then(|| format!(" {line}")),
    }
}

fn fail(status: u8, error: &anyhow::Error) -> ExitCode {
    say(format_args!("{error:#}"));
    ExitCode::from(status)
}
