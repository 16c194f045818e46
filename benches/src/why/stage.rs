//! Where a case runs: its directory, its program ready to start, and what runs beside it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::Plan;
use super::case::Case;
use crate::process::run_quietly;
use crate::tools::output;

/// Whoever was asked to end is killed after this.
const PATIENCE: Duration = Duration::from_secs(3);

/// The variable in which a case's programs find how their control groups are called, and how the names begin.
pub(crate) const GROUP: (&str, &str) = ("BENCH_WHY_GROUP", "bench-why-");

/// How the control groups of this bench are called; others may run at the same time.
pub(crate) fn group() -> String {
    format!("{}{}", GROUP.1, std::process::id())
}

/// Functions that the cases' programs share, beside each of them.
const SHARED: &[(&str, &str)] =
    &[("shared.py", include_str!("common/shared.py")), ("shared.h", include_str!("common/shared.h"))];

/// The programs of a run of this bench, and a directory for the cases'.
#[derive(Debug)]
pub(crate) struct Stage {
    /// systape's recorder.
    pub record: PathBuf,
    /// systape's analyzer.
    pub analyze: PathBuf,
    python: String,
    dir: TempDir,
}

impl Stage {
    /// Finds and builds what every case needs.
    ///
    /// # Errors
    /// `record` or `analyze` is missing, or the compiler fails.
    pub(crate) fn set(plan: &Plan) -> Result<Self> {
        let bench = std::env::current_exe().context("cannot tell where this program is")?;
        let beside = bench.parent().context("this program has no directory")?;
        let bin = plan.bin_dir.as_deref().unwrap_or(beside);
        let program = |name: &str| {
            let path = bin.join(name);
            path.canonicalize().with_context(|| format!("{} is missing: cargo build", path.display()))
        };
        let dir = tempfile::Builder::new().prefix("bench-why.").tempdir()?;
        // not what a version manager calls python3: that is a script
        let python = output("python3", &["-c", "import sys; print(sys.executable)"]);
        let stage = Self { record: program("record")?, analyze: program("analyze")?, python, dir };
        stage.compile("stamp", include_str!("common/stamp.c"), &[])?;
        if plan.beside {
            stage.compile("neighbour", include_str!("common/neighbour.c"), &[])?;
        }
        Ok(stage)
    }

    /// The program that writes down when a case began and turns into the case.
    pub(crate) fn stamp(&self) -> PathBuf {
        self.dir.path().join("stamp")
    }

    fn compile(&self, name: &str, source: &str, flags: &[&str]) -> Result<PathBuf> {
        let (file, program) = (self.dir.path().join(format!("{name}.c")), self.dir.path().join(name));
        if !program.exists() {
            fs::write(&file, source)?;
            cc(&file, &program, flags)?;
        }
        Ok(program)
    }

    /// Makes a case ready: its directory, its program, what it prepares.
    ///
    /// # Errors
    /// The program cannot be built or prepared.
    pub(crate) fn ready<'a>(&'a self, case: &'a Case) -> Result<ReadyCase<'a>> {
        let dir = self.dir.path().join(case.name);
        fs::create_dir_all(&dir)?;
        for (name, text) in SHARED.iter().chain([&(case.file, case.source)]) {
            fs::write(dir.join(name), text)?;
        }
        let mut ready = ReadyCase { stage: self, case, dir, prog: Vec::new(), slow_fs: String::new() };
        ready.prog = ready.build()?;
        let commands = [&case.run, &case.helper, &case.prepare];
        if commands.iter().any(|words| words.iter().any(|word| word.contains("{slowfs}"))) {
            let flags = ["-D_FILE_OFFSET_BITS=64", "-I/usr/include/fuse3", "-lfuse3"];
            let program = self.compile("slowfs", include_str!("common/slowfs.c"), &flags)?;
            ready.slow_fs = program.display().to_string();
        }
        if !case.prepare.is_empty() {
            run_quietly(&mut ready.command(&case.prepare, true)?)?;
        }
        Ok(ready)
    }

    /// Starts a program that keeps a CPU busy; gone when what is returned is dropped.
    pub(crate) fn neighbour(&self) -> Result<Helper> {
        Helper::start(Command::new(self.dir.path().join("neighbour")).current_dir(self.dir.path()))
    }
}

fn cc(source: &Path, program: &Path, flags: &[&str]) -> Result<()> {
    let mut cc = Command::new("cc");
    run_quietly(cc.args(["-O1", "-g", "-w", "-pthread", "-o"]).arg(program).arg(source).args(flags))
}

/// A case that can be run.
#[derive(Debug)]
pub(crate) struct ReadyCase<'a> {
    stage: &'a Stage,
    /// The case.
    pub case: &'a Case,
    /// The directory in which all its programs run.
    pub dir: PathBuf,
    prog: Vec<String>,
    slow_fs: String,
}

impl ReadyCase<'_> {
    /// The words that start the program.
    fn build(&self) -> Result<Vec<String>> {
        let (name, file) = (self.case.name, self.dir.join(self.case.file));
        let (binary, text) = (self.dir.join(name).display().to_string(), file.display().to_string());
        Ok(match self.case.file.rsplit('.').next() {
            Some("c") => {
                cc(&file, Path::new(&binary), &[])?;
                vec![binary]
            }
            Some("py") => vec![self.stage.python.clone(), text],
            Some("go") => {
                let mut go = Command::new("go");
                run_quietly(go.args(["build", "-o", &binary, &text]).env("GO111MODULE", "off").env("GOFLAGS", ""))?;
                vec![binary]
            }
            Some("rs") => {
                run_quietly(Command::new("rustc").args(["-O", "-o", &binary, &text]))?;
                vec![binary]
            }
            Some("java") => {
                run_quietly(Command::new("javac").args(["-d"]).arg(&self.dir).arg(&file))?;
                ["java", "-cp", &self.dir.display().to_string(), "Main"].map(str::to_owned).into()
            }
            Some("js") => vec!["node".into(), text],
            Some("sh") => vec!["/bin/sh".into(), text],
            other => bail!("{}: nobody knows how to run {other:?}", self.case.file),
        })
    }

    /// A command of the case's.
    pub(crate) fn words(&self, template: &[String], on: bool) -> Vec<String> {
        let dir = self.dir.display().to_string();
        let mode = if on { "on" } else { "off" };
        let mut words = Vec::new();
        for word in template {
            if word == "{prog}" {
                words.extend(self.prog.iter().cloned());
            } else {
                let word = word.replace("{mode}", mode).replace("{dir}", &dir).replace("{group}", &group());
                words.push(word.replace("{slowfs}", &self.slow_fs).replace("{python}", &self.stage.python));
            }
        }
        words
    }

    fn command(&self, template: &[String], on: bool) -> Result<Command> {
        let words = self.words(template, on);
        let (program, args) = words.split_first().context("a command without a word")?;
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.dir).env(GROUP.0, group());
        Ok(command)
    }

    /// Starts what runs beside the case, if it has that, and waits until it is ready.
    pub(crate) fn helper(&self, on: bool) -> Result<Option<Helper>> {
        if self.case.helper.is_empty() {
            return Ok(None);
        }
        Helper::start(&mut self.command(&self.case.helper, on)?).map(Some)
    }
}

impl Drop for ReadyCase<'_> {
    /// Removes the control groups that the case's programs made: their names begin with [`group`].
    fn drop(&mut self) {
        let controllers = fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
        let groups = controllers.flat_map(|c| fs::read_dir(c.path()).into_iter().flatten().flatten());
        let prefix = group();
        let ours = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(prefix.as_bytes());
        // one that is not empty stays: a case hangs, and was told of
        groups.filter(|group| ours(&group.file_name())).for_each(|group| drop(fs::remove_dir(group.path())));
    }
}

/// A program beside the case, in a process group of its own; gone, and waited for, when this is dropped.
#[derive(Debug)]
pub(crate) struct Helper(Child);

impl Helper {
    fn start(command: &mut Command) -> Result<Self> {
        let errors = tempfile::tempfile()?;
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors.try_clone()?).process_group(0);
        let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
        let out = child.stdout.take().context("a pipe")?;
        let helper = Self(child);
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        if line.is_empty() {
            let mut text = String::new();
            (&errors).seek(SeekFrom::Start(0))?;
            (&errors).read_to_string(&mut text)?;
            bail!("{command:?}: ended before it was ready: {}", text.trim());
        }
        Ok(helper)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let group = -self.0.id().cast_signed();
        // SAFETY: kill touches no memory; the group is the child's own, and it is not reaped yet.
        unsafe { libc::kill(group, libc::SIGTERM) };
        let started = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) && started.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        // what is left of the group: children that did not hear it
        // SAFETY: as above; a group that is gone is an error, which is ignored.
        unsafe { libc::kill(group, libc::SIGKILL) };
        self.0.wait().ok();
    }
}
