//! A case: a program, and on top of it what it plants.
//!
//! The first lines of the program that begin with `#:` or `//:` are the truth:
//!
//! | word | what follows it |
//! |---|---|
//! | `what` | one sentence: the cause, and what the program does without it |
//! | `cause` | a [`Pattern`]: a finding that names the cause; of several lines any one will do |
//! | `cause-budget` | the same of a line of the budget: time that no finding has to explain (sleeps, the program's own code) |
//! | `costless` | nothing: the cause costs (nearly) nothing, so no finding of it need be there |
//! | `load` | nothing: others who keep CPUs busy are the cause; else waits for a CPU on a busy machine are not counted |
//! | `healthy` | nothing: there is no cause, and nothing may be found |
//! | `innocent` | programs that have nothing to do with it; `*`: every program |
//! | `budget` | seconds that the program spends by its making, and the pattern of their lines in the budget |
//! | `run`, `helper`, `prepare` | commands; `{prog}` is the program, `{mode}` is `on` or `off`, `{dir}` its directory |
//! | `record` | options for `record` |
//! | `needs` | programs or files without which the case is left out |
//!
//! The command `run` (by default `{prog} {mode}`) is recorded. `helper` is started before it outside the recording and is ready
//! when it prints a line. `prepare` runs once. All run in the case's own directory.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::pattern::{Pattern, words};
use crate::tools::in_path;

/// A program and its truth.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The program's file name without its ending.
    pub name: &'static str,
    /// The program's file name.
    pub file: &'static str,
    /// The program.
    pub source: &'static str,
    /// The cause in a sentence.
    pub what: String,
    /// There is no cause.
    pub healthy: bool,
    /// The cause costs nothing.
    pub costless: bool,
    /// Any of these is the cause.
    pub causes: Vec<Pattern>,
    /// The same in the budget.
    pub budget_causes: Vec<Pattern>,
    /// Programs that must not be blamed.
    pub innocents: Vec<String>,
    /// Seconds in the budget that are known by the program's making, with the cause on.
    pub known: Option<(f64, Pattern)>,
    /// What is recorded.
    pub run: Vec<String>,
    /// What runs beside it.
    pub helper: Vec<String>,
    /// What runs once before.
    pub prepare: Vec<String>,
    /// Options for `record`.
    pub record: Vec<String>,
    plants_load: bool,
    needs: Vec<String>,
}

impl Case {
    /// Reads the truth on top of a program.
    pub(crate) fn read(file: &'static str, source: &'static str) -> Result<Self> {
        let name = file.split('.').next().unwrap_or(file);
        let mut case = Self {
            name,
            file,
            source,
            what: String::new(),
            healthy: false,
            costless: false,
            causes: Vec::new(),
            budget_causes: Vec::new(),
            innocents: Vec::new(),
            known: None,
            run: words("{prog} {mode}"),
            helper: Vec::new(),
            prepare: Vec::new(),
            record: Vec::new(),
            plants_load: false,
            needs: Vec::new(),
        };
        let lines = source.lines().filter_map(|l| l.strip_prefix("#:").or_else(|| l.strip_prefix("//:")));
        for line in lines {
            case.line(line.trim()).with_context(|| format!("{file}: {line}"))?;
        }
        case.check().with_context(|| file.to_owned())?;
        Ok(case)
    }

    fn line(&mut self, line: &str) -> Result<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "what" => rest.clone_into(&mut self.what),
            "healthy" => self.healthy = true,
            "load" => self.plants_load = true,
            "costless" => self.costless = true,
            "cause" => self.causes.push(Pattern::parse(rest)?),
            "cause-budget" => self.budget_causes.push(Pattern::parse(rest)?),
            "innocent" => self.innocents.extend(words(rest)),
            "budget" => {
                let (seconds, pattern) = rest.split_once(' ').context("budget: seconds and a pattern")?;
                self.known = Some((seconds.parse()?, Pattern::parse(pattern)?));
            }
            "run" => self.run = words(rest),
            "helper" => self.helper = words(rest),
            "prepare" => self.prepare = words(rest),
            "record" => self.record = words(rest),
            "needs" => self.needs.extend(words(rest)),
            _ => bail!("an unknown word"),
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let caused = !self.causes.is_empty() || !self.budget_causes.is_empty();
        if self.what.is_empty() {
            bail!("what it plants is not said");
        }
        if caused == self.healthy {
            bail!("a case has a cause or is healthy");
        }
        Ok(())
    }

    /// Whether others who keep CPUs busy are what it plants.
    pub(crate) fn is_of_cpu(&self) -> bool {
        self.plants_load
    }

    /// Why it cannot run here.
    pub(crate) fn missing(&self) -> Option<String> {
        let compiler: &[&str] = match self.file.rsplit('.').next() {
            Some("c") => &["cc"],
            Some("py") => &["python3"],
            Some("go") => &["go"],
            Some("java") => &["java", "javac"],
            Some("js") => &["node"],
            Some("rs") => &["rustc"],
            _ => &[],
        };
        let needs = compiler.iter().copied().chain(self.needs.iter().map(String::as_str));
        let there = |name: &str| if name.starts_with('/') { Path::new(name).exists() } else { in_path(name).is_some() };
        needs.into_iter().find(|name| !there(name)).map(|name| format!("{name} is not there"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_is_on_top() {
        let text = "#!/bin/sh\n#: what a lock\n#: cause syscall=flock\n#: innocent a b\n#: budget 0.5 syscall*=sleep\n#: record -a\n";
        let case = Case::read("x.sh", text).expect("a case");
        assert_eq!((case.name, case.what.as_str(), case.causes.len()), ("x", "a lock", 1));
        assert_eq!((case.innocents.len(), case.run.join(" ")), (2, "{prog} {mode}".into()));
        assert_eq!(case.known.as_ref().map(|(seconds, _)| *seconds), Some(0.5));
        assert_eq!(case.missing(), None);
    }

    #[test]
    fn a_case_has_a_cause_or_is_healthy() {
        for wrong in ["#: what x", "#: what x\n#: healthy\n#: cause a=b", "#: healthy", "#: what x\n#: healthy\n#: odd"]
        {
            assert!(Case::read("x.sh", wrong).is_err(), "{wrong}");
        }
    }
}
