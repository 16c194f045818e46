//! Stacks of a tape's calls, and whether they are the chains of functions that a workload is known to have.
//!
//! A chain is written as words, the innermost function first, up to `main` or what a thread begins with:
//!
//! | word | stands for |
//! |---|---|
//! | `leaf` | a function of that name |
//! | `leaf!` | the same, inlined |
//! | `~area` | a function with that in its name |
//! | `?leaf` | the same or nothing |
//! | `recurse*200` | 200 of them |
//! | `@unnamed` | a function without a name: an entry of the PLT |
//! | `@signal` | what the kernel returns through from a signal handler |
//! | `@libs` | any number of frames of the C library, the dynamic linker and the vDSO, whatever their names |
//! | `@any` | any number of any frames |
//! | `...` | the rest is not looked at |
//!
//! The C library's wrapper of the syscall may stand before a chain. Behind it, unless `...` does, nothing but what calls
//! `main` or begins a thread may stand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::lab::run;
use crate::{Call, Lab};

/// Events of most cases: see workloads/chains/chains.h.
pub const TIMES: usize = 211;
/// Every case that workloads/chains/chains.c has; `deep` has fewer events.
pub const ALL: [&str; 15] = [
    "plain",
    "inlines",
    "recursion",
    "deep",
    "trap",
    "alarm",
    "vdso",
    "altstack",
    "realign",
    "vfork",
    "fork",
    "thread",
    "clone",
    "coroutine",
    "jit",
];
/// Names of the syscall's wrapper in a C library.
const WRAPPERS: [&str; 7] = ["lseek", "lseek64", "__lseek", "__lseek64", "llseek", "__libc_lseek64", "__GI___lseek64"];
/// Names of what calls `main`, of what begins a thread, and of what begins a coroutine.
const OUTERMOST: [&str; 12] = [
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_main@@GLIBC_2.34",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "__clone_internal",
    "__start_context",
];

/// A frame as `analyze --call-graph --format json` gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Name of the function; None: not known.
    pub sym: Option<String>,
    /// Path of the file, or `[kernel]` and the like.
    pub module: String,
    /// It was inlined into the next one.
    pub inlined: bool,
    /// It is the kernel's.
    pub kernel: bool,
    /// It is what the kernel returns through from a signal handler.
    pub signal: bool,
    /// Source file, if known.
    pub file: Option<String>,
    /// Line in it, if known.
    pub line: Option<u64>,
}

impl Frame {
    fn of(value: &Value) -> Self {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        Self {
            sym: text("sym"),
            module: text("module").unwrap_or_default(),
            inlined: value["inlined"] == true,
            kernel: value["kernel"] == true,
            signal: value["signal"] == true,
            file: text("file"),
            line: value["line"].as_u64(),
        }
    }

    /// The name, `?` without one.
    pub fn name(&self) -> &str {
        if self.signal { "[signal]" } else { self.sym.as_deref().unwrap_or("?") }
    }

    /// Whether it is in the C library, the dynamic linker or the vDSO.
    pub fn is_libs(&self) -> bool {
        let file = self.module.rsplit('/').next().unwrap_or_default();
        file.starts_with("libc.so") || file.starts_with("ld-linux") || file.starts_with("[vdso")
    }

    fn is_outermost(&self) -> bool {
        self.is_libs() || self.sym.as_ref().is_some_and(|sym| OUTERMOST.contains(&sym.as_str()))
    }

    fn is_wrapper(&self) -> bool {
        self.sym.as_ref().is_some_and(|sym| WRAPPERS.contains(&sym.split('@').next().unwrap_or_default()))
    }
}

/// A user stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The innermost first.
    pub frames: Vec<Frame>,
    /// How far it reaches.
    pub status: String,
}

impl Stack {
    /// Of a line of JSON; None: it has none.
    pub fn of(line: &Value) -> Option<Self> {
        let frames = line["stack"].as_array()?.iter().map(Frame::of).filter(|frame| !frame.kernel).collect();
        Some(Self { frames, status: line["stack_status"].as_str().unwrap_or("null").to_owned() })
    }

    /// Names, the innermost first, with `!` behind those that were inlined.
    pub fn names(&self) -> Vec<String> {
        let name = |frame: &Frame| format!("{}{}", frame.name(), if frame.inlined { "!" } else { "" });
        self.frames.iter().map(name).collect()
    }

    /// Whether it is a chain; `named`: names are known.
    pub fn is(&self, chain: &str, named: bool) -> bool {
        let nameless = |frame: &Frame| frame.is_libs() && (!named || frame.sym.is_none());
        let skip = self.frames.first().is_some_and(|frame| frame.is_wrapper() || nameless(frame));
        let words: Vec<_> = chain.split_whitespace().collect();
        matches(&self.frames[usize::from(skip)..], &words, named)
    }

    /// In a few words, for messages.
    pub fn brief(&self) -> String {
        let names = self.names();
        let middle = if names.len() > 24 { format!(" … {} … ", names.len() - 20) } else { String::new() };
        let (head, tail) =
            if names.len() > 24 { (&names[..12], &names[names.len() - 8..]) } else { (&names[..], &[][..]) };
        format!("{}{middle}{} ({})", head.join(" "), tail.join(" "), self.status)
    }
}

fn matches(frames: &[Frame], words: &[&str], named: bool) -> bool {
    let Some((&word, rest)) = words.split_first() else {
        return frames.iter().all(|frame| frame.is_outermost() || !named);
    };
    let any_number = |fits: &dyn Fn(&Frame) -> bool| {
        let most = frames.iter().take_while(|frame| fits(frame)).count();
        (0..=most).rev().any(|n| matches(&frames[n..], rest, named))
    };
    match word {
        "..." => return true,
        "@any" => return any_number(&|_| true),
        "@libs" => return any_number(&Frame::is_libs),
        _ => {}
    }
    if let Some(optional) = word.strip_prefix('?') {
        return matches(frames, &[&[optional], rest].concat(), named) || matches(frames, rest, named);
    }
    if let Some((one, times)) = word.split_once('*') {
        let times = times.parse().expect("a number");
        return matches(frames, &[&vec![one; times], rest].concat(), named);
    }
    let Some((frame, others)) = frames.split_first() else { return false };
    let inlined = word.ends_with('!');
    // without names there are no inlined frames either
    let word = word.trim_end_matches('!');
    let fits = match (&frame.sym, word) {
        (_, "@signal") => frame.signal,
        (sym, "@unnamed") => sym.is_none(),
        (Some(sym), _) if word.starts_with('~') => sym.contains(&word[1..]),
        (Some(sym), _) => sym == word,
        (None, _) => !named,
    };
    fits && frame.inlined == inlined && matches(others, rest, named)
}

/// One call of a workload with known chains.
#[derive(Clone, Debug)]
pub struct Event {
    /// Name of the program.
    pub comm: String,
    /// Its thread.
    pub tid: i64,
    /// Which chain it has.
    pub case: i64,
    /// Number of the event in its case.
    pub turn: i64,
    /// Its stack; None: it has none.
    pub stack: Option<Stack>,
}

impl Event {
    /// Of a line of JSON; None: it is none of the workload's.
    pub fn of(line: &Value) -> Option<Self> {
        let call = Call(line.clone());
        if call.0["syscall"] != "lseek" || call.num("fd") > -1000 {
            return None;
        }
        let stack = Stack::of(line);
        let (case, turn) = (-1000 - call.num("fd"), call.num("offset"));
        Some(Self { comm: call.comm().to_owned(), tid: call.tid(), case, turn, stack })
    }
}

/// The workload's events in a tape. What `analyze` has to say on stderr fails the test.
#[track_caller]
pub fn events(lab: &Lab, tape: &str, options: &[&str]) -> Vec<Event> {
    let run = lab.analyze(&[&[tape, "-e", "=lseek", "--call-graph", "--format", "json"], options].concat()).expect(0);
    assert_eq!(run.complaints(), "", "analyze --call-graph {tape}");
    run.json().iter().filter_map(Event::of).collect()
}

/// A chain that a workload has.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its number.
    pub id: i64,
    /// For messages.
    pub name: &'static str,
    /// Events it has.
    pub times: usize,
    /// The chain.
    pub chain: &'static str,
    /// How far its stacks reach; several: one of them, with `|` between.
    pub status: &'static str,
}

impl Case {
    /// One with the usual number of whole stacks.
    pub const fn new(id: i64, name: &'static str, chain: &'static str) -> Self {
        Self { id, name, times: TIMES, chain, status: "complete" }
    }
}

/// What is wrong with the events that `comm` made: of a case all events must be there, 99 of 100 with the chain it should
/// have, and none that lacks it may call itself complete.
pub fn wrong(events: &[Event], comm: &str, cases: &[Case], named: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for case in cases {
        let ours: Vec<_> = events.iter().filter(|e| e.comm == comm && e.case == case.id).collect();
        if ours.len() != case.times {
            wrong.push(format!("{comm} {}: {} events of {}", case.name, ours.len(), case.times));
        }
        let reaches = |s: &Stack| case.status.split('|').any(|status| status == s.status);
        let right = |e: &&Event| e.stack.as_ref().is_some_and(|s| reaches(s) && s.is(case.chain, named));
        let (good, bad): (Vec<&Event>, Vec<&Event>) = ours.into_iter().partition(right);
        let lies = bad.iter().filter(|e| e.stack.as_ref().is_some_and(|s| s.status == "complete")).count();
        if good.len() * 100 < case.times * 99 || lies > 0 {
            let mut seen: BTreeMap<String, usize> = BTreeMap::new();
            for event in &bad {
                *seen.entry(event.stack.as_ref().map_or("no stack".into(), Stack::brief)).or_default() += 1;
            }
            let mut seen: Vec<_> = seen.into_iter().map(|(stack, n)| (n, stack)).collect();
            seen.sort();
            let seen: Vec<_> = seen.iter().rev().take(3).map(|(n, stack)| format!("  {n}x {stack}")).collect();
            wrong.push(format!(
                "{comm} {}: {} of {} are right, {lies} of the others call themselves complete\n  want {} ({})\n{}",
                case.name,
                good.len(),
                case.times,
                case.chain,
                case.status,
                seen.join("\n")
            ));
        }
    }
    wrong
}

/// Where the sources of chains are.
#[must_use]
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/chains").join(name)
}

/// A compiler's command that makes the program or library `name` in the lab, of `workloads/chains/SOURCE`. rustc is the
/// one this was built with.
#[must_use]
pub fn compiler(lab: &Lab, name: &str, from: &str, flags: &[&str]) -> Command {
    let mut command = match from.rsplit('.').next() {
        Some("rs") => {
            let mut rustc = lab.command(Path::new(env!("CARGO")).with_file_name("rustc"));
            rustc.args(["-g", "--edition", "2024"]);
            rustc
        }
        extension => {
            let mut cc = lab.command(if extension == Some("cc") { "c++" } else { "cc" });
            cc.args(["-g", "-Wall", "-Wextra", "-Werror", "-pthread"]);
            cc
        }
    };
    command.arg(source(from)).args(flags).arg("-o").arg(name);
    command
}

/// Compiles all of `(NAME, SOURCE, FLAGS)`, a few at a time.
#[track_caller]
pub fn compile(lab: &Lab, programs: &[(&str, &str, &[&str])]) {
    for some in programs.chunks(4) {
        let commands = some.iter().map(|(name, from, flags)| compiler(lab, name, from, flags));
        let running: Vec<_> = commands.map(crate::Background::start).collect();
        running.into_iter().for_each(|compiler| drop(compiler.wait().expect(0)));
    }
}

/// Runs a program of binutils and the like, which has to work.
#[track_caller]
pub fn tool(lab: &Lab, program: &str, arguments: &[&str]) {
    run(lab.command(program).args(arguments)).expect(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(text: &str) -> Stack {
        let frame = |word: &str| {
            let (name, module) = word.split_once('@').unwrap_or((word, "/prog"));
            Frame {
                sym: (!name.starts_with('?')).then(|| name.trim_end_matches('!').to_owned()),
                module: if module == "libc" { "/lib/libc.so.6".into() } else { module.into() },
                inlined: name.ends_with('!'),
                kernel: false,
                signal: name == "[signal]",
                file: None,
                line: None,
            }
        };
        Stack { frames: text.split_whitespace().map(frame).collect(), status: "complete".into() }
    }

    #[test]
    fn chains_are_told_apart() {
        let whole = stack("lseek64@libc leaf outer main __libc_start_call_main@libc _start");
        assert!(whole.is("leaf outer main", true) && whole.is("~ea ?nothing outer main", true));
        assert!(whole.is("leaf ...", true) && whole.is("@any main", true));
        assert!(!whole.is("leaf main", true) && !whole.is("leaf outer", true) && !whole.is("leaf! outer main", true));
        let inlined = stack("leaf! a a a [signal] f@libc main");
        assert!(inlined.is("leaf! a*3 @signal @libs main", true) && !inlined.is("leaf! a*2 @signal @libs main", true));
        let bare = stack("?@libc ? ? ? ?@libc ?");
        assert!(bare.is("leaf outer main", false) && !bare.is("leaf outer main", true));
    }
}
