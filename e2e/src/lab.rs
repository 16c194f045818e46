//! A test's directory, the programs it runs in it, and the lock that keeps recordings from disturbing each other.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Call;

/// No program of a test takes longer; one that does is killed and fails the test.
const PATIENCE: Duration = Duration::from_secs(90);

/// A directory of its own for one test; with it, for tests that record, the lock all of them share.
pub struct Lab {
    dir: tempfile::TempDir,
    _lock: Option<File>,
}

/// How a program ended and what it said.
#[derive(Debug)]
pub struct Run {
    /// What it was, for messages.
    pub what: String,
    /// How it ended.
    pub status: ExitStatus,
    /// All of its standard output.
    pub stdout: Vec<u8>,
    /// All of its standard error.
    pub stderr: String,
}

impl Run {
    /// Exit status; a signal fails the test.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("{}: {}\n{}", self.what, self.status, self.stderr))
    }

    /// Fails the test unless it exited with `code`.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "{}\nstdout: {}\nstderr: {}", self.what, self.text(), self.stderr);
        self
    }

    /// What it said on standard error, but for that an answer is empty, and that `-p` leaves out processes below that one.
    pub fn complaints(&self) -> String {
        let said = |line: &&str| !line.starts_with("analyze: nothing ") && !line.ends_with(" --tree");
        self.stderr.lines().filter(said).collect::<Vec<_>>().join("\n")
    }

    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard output, one JSON value a line.
    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{}: {e} in: {line}", self.what));
        self.text().lines().map(parse).collect()
    }
}

impl Lab {
    /// For a test that records while nobody else does: the whole machine, or something that is measured. `None`: not root, and said so.
    #[must_use]
    pub fn with_bpf() -> Option<Self> {
        Self::recording(libc::LOCK_EX)
    }

    /// For a test that records its own programs, and counts what they did: others of its kind may record beside it. `None`: not root,
    /// and said so.
    #[must_use]
    pub fn beside() -> Option<Self> {
        Self::recording(libc::LOCK_SH)
    }

    fn recording(lock: libc::c_int) -> Option<Self> {
        // SAFETY: geteuid has no preconditions.
        if unsafe { libc::geteuid() } != 0 {
            let name = std::thread::current().name().unwrap_or("?").to_owned();
            assert!(
                std::env::var_os("SYSTAPE_REQUIRE_BPF").is_none_or(|v| v != "1"),
                "{name}: SYSTAPE_REQUIRE_BPF=1, but not root"
            );
            // not eprintln!: the test harness hides what passing tests print with it
            writeln!(std::io::stderr(), "SKIPPED: needs root: {name}").ok();
            return None;
        }
        // whoever wants to be alone keeps the door: else there would always be somebody else inside
        let _door = locked("systape-e2e-door.lock", libc::LOCK_EX);
        Some(Self { _lock: Some(locked("systape-e2e.lock", lock)), ..Self::plain() })
    }

    /// For a test that does not record.
    #[must_use]
    pub fn plain() -> Self {
        let dir = tempfile::Builder::new().prefix("systape-e2e-").tempdir().expect("temporary directory");
        // other users run programs in it
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(dir.path(), open).expect("chmod");
        Self { dir, _lock: None }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A file in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The same as text.
    pub fn file(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    /// A program to be run in the directory, with nothing on standard input.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.dir()).stdin(Stdio::null());
        // cargo sets it, and the loader of each program would look there first
        command.env_remove("LD_LIBRARY_PATH");
        // a suite that runs in the background was started with SIGINT ignored, which `record` would respect
        let defaults = || {
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                // SAFETY: signal() is async-signal-safe and touches no memory of ours.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Ok(())
        };
        // SAFETY: the closure runs between fork and exec and calls nothing but signal().
        unsafe { command.pre_exec(defaults) };
        command
    }

    /// Compiles `workloads/NAME.c` to NAME in the directory; `flags` come last.
    #[track_caller]
    pub fn cc(&self, name: &str, flags: &[&str]) -> String {
        self.compile("cc", &format!("{name}.c"), flags)
    }

    /// The same for `NAME.cc`.
    #[track_caller]
    pub fn cxx(&self, name: &str, flags: &[&str]) -> String {
        self.compile("c++", &format!("{name}.cc"), flags)
    }

    #[track_caller]
    fn compile(&self, compiler: &str, source: &str, flags: &[&str]) -> String {
        let target = self.file(source.split('.').next().expect("a name"));
        // by a program: a child that another test forks meanwhile would have what this process writes open, and nobody could execute it
        run(self.command("cp").arg(compiled(compiler, source, flags)).arg(&target)).expect(0);
        target
    }

    /// `record -o TAPE OPTIONS -- COMMAND`, to its end.
    #[track_caller]
    pub fn record(&self, tape: &str, options: &[&str], command: &[&str]) -> Run {
        run(self.record_command(tape, options, command))
    }

    /// The same, not yet run.
    pub fn record_command(&self, tape: &str, options: &[&str], command: &[&str]) -> Command {
        let mut record = self.command(binary("record"));
        record.args(["-o", tape]).args(options);
        if !command.is_empty() {
            record.arg("--").args(command);
        }
        record
    }

    /// Starts `record` without a command, and returns once it records. An older tape of that name is removed, since its
    /// bytes would be taken for the new one's.
    #[track_caller]
    pub fn attach(&self, tape: &str, options: &[&str]) -> Background {
        fs::remove_file(self.path(tape)).ok();
        let mut record = Background::start(&mut self.record_command(tape, options, &[]));
        let (path, deadline) = (self.path(tape), Instant::now() + PATIENCE);
        // its first bytes are written when everything is attached and counts
        while fs::metadata(&path).map_or(0, |m| m.len()) == 0 {
            if let Some(run) = record.ended() {
                panic!("record ended early: {run:?}");
            }
            assert!(Instant::now() < deadline, "record does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        record
    }

    /// `analyze ARGUMENTS`.
    #[track_caller]
    pub fn analyze(&self, arguments: &[&str]) -> Run {
        run(self.command(binary("analyze")).args(arguments))
    }

    /// Calls of a tape that `filters` select, in order of start. Lines of lost events fail the test.
    #[track_caller]
    pub fn calls(&self, tape: &str, filters: &[&str]) -> Vec<Call> {
        let run = self.analyze(&[&[tape, "--format", "json"], filters].concat()).expect(0);
        assert_eq!(run.complaints(), "", "analyze {tape} {filters:?}");
        let lines = run.json();
        for line in &lines {
            assert!(line.get("lost").is_none(), "{tape}: {line}");
        }
        lines.into_iter().map(Call).collect()
    }

    /// The one object of `analyze info`.
    #[track_caller]
    pub fn info(&self, tape: &str) -> Value {
        self.analyze(&["info", tape, "--format", "json"]).expect(0).json().pop().expect("info prints an object")
    }

    /// Fails unless nothing was lost, the recording ended as it should and `analyze check` finds the tape good.
    #[track_caller]
    pub fn assert_whole(&self, tape: &str) {
        let info = self.info(tape);
        let lost = info["lost"].as_object().expect("lost");
        assert!(lost.keys().all(|family| family == "block" || family == "sched"), "{tape}: {lost:?} {}", info["gaps"]);
        // a string at an address without memory is no loss; and a kernel may run no program at the end of an I/O, of
        // which the tests of block I/O know more, or when a task that it hides leaves a CPU
        let unseen = |gap: &Value| (gap["family"] == "block" || gap["family"] == "sched") && gap["cause"] == "hidden";
        let gaps = info["gaps"].as_array().expect("gaps");
        let told = gaps.iter().all(|gap| gap["cause"] == "string-fault" || unseen(gap));
        assert!(told, "{tape}: {lost:?} {}", info["gaps"]);
        // only such an event, told above, makes a recording incomplete
        let ended = (&info["complete"], &info["clean_end"]);
        assert_eq!(ended, (&lost.is_empty().into(), &true.into()), "{tape}: {info}");
        let check = self.analyze(&["check", tape, "--format", "json"]).expect(0).json();
        assert_eq!(check[0]["grade"], "good", "{tape}: {check:?}");
        assert_eq!(check[0]["findings"], serde_json::json!([]), "{tape}: {check:?}");
    }

    /// Waits until `condition` holds; fails after 60 seconds: what resends lost segments takes 25 where others run beside it.
    #[track_caller]
    pub fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !condition() {
            assert!(Instant::now() < deadline, "waited in vain: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until a file of the directory exists and is not empty; gives its text.
    #[track_caller]
    pub fn until_file(&self, name: &str) -> String {
        self.until(name, || fs::metadata(self.path(name)).is_ok_and(|m| m.len() > 0));
        fs::read_to_string(self.path(name)).expect(name)
    }
}

/// A workload as a program, in the build directory: many tests use the same one, and it is compiled for the first of them. Its name has what
/// it was made of.
#[track_caller]
fn compiled(compiler: &str, source: &str, flags: &[&str]) -> PathBuf {
    let workloads = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads");
    let mut hash = DefaultHasher::new();
    (compiler, flags).hash(&mut hash);
    let headers = fs::read_dir(&workloads).expect("workloads").map(|entry| entry.expect("entry").path());
    let mut files: Vec<PathBuf> = headers.filter(|path| path.extension().is_some_and(|of| of == "h")).collect();
    files.sort();
    files.push(workloads.join(source));
    files.iter().for_each(|file| fs::read(file).expect("a workload").hash(&mut hash));
    let dir = build_directory().join("workloads");
    fs::create_dir_all(&dir).expect("mkdir");
    let name = format!("{source}-{:016x}", hash.finish());
    let (made, path) =
        (dir.join(format!("{name}.{}.{:?}", std::process::id(), std::thread::current().id())), dir.join(name));
    if !path.exists() {
        let mut cc = Command::new(compiler);
        cc.args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(&made);
        run(cc.current_dir(&dir).arg(&files[files.len() - 1]).args(flags)).expect(0);
        fs::rename(&made, &path).expect("rename");
    }
    path
}

/// Where cargo puts programs of this profile.
fn build_directory() -> PathBuf {
    let test = std::env::current_exe().expect("path of the test");
    // target/PROFILE/deps/TEST-HASH
    test.ancestors().nth(2).expect("target directory").to_owned()
}

/// A file in the temporary directory, locked until it is closed.
fn locked(name: &str, how: libc::c_int) -> File {
    let path = std::env::temp_dir().join(name);
    let file = File::create(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    // SAFETY: the descriptor is open as long as `file` lives.
    let taken = unsafe { libc::flock(file.as_raw_fd(), how) };
    assert_eq!(taken, 0, "{}: {}", path.display(), std::io::Error::last_os_error());
    file
}

/// Where `record` or `analyze` is.
///
/// # Panics
/// When it has not been built.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    let dir = std::env::var_os("SYSTAPE_BIN_DIR").map_or_else(build_directory, PathBuf::from);
    let path = dir.join(name);
    assert!(
        path.is_file(),
        "{} is missing: build it first (cargo build -p systape-recorder -p systape-analyzer, with --release when the tests \
         run so), or set SYSTAPE_BIN_DIR",
        path.display()
    );
    path
}

/// Runs a program to its end.
#[track_caller]
pub fn run(command: impl std::borrow::BorrowMut<Command>) -> Run {
    Background::start(command).wait()
}

/// A running program; killed when the test is over or fails.
pub struct Background {
    what: String,
    child: Child,
    stdout: File,
    stderr: File,
    ended: bool,
}

impl Background {
    /// Starts it. Output goes to files, so that nothing blocks on a pipe, unless the command says otherwise.
    #[track_caller]
    pub fn start(mut command: impl std::borrow::BorrowMut<Command>) -> Self {
        let command = command.borrow_mut();
        let [stdout, stderr] = [(); 2].map(|()| tempfile::tempfile().expect("temporary file"));
        command.stdout(stdout.try_clone().expect("dup")).stderr(stderr.try_clone().expect("dup"));
        let what = format!("{command:?}");
        let child = command.spawn().unwrap_or_else(|e| panic!("{what}: {e}"));
        Self { what, child, stdout, stderr, ended: false }
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("pid")
    }

    /// The same as text.
    pub fn pid_text(&self) -> String {
        self.child.id().to_string()
    }

    /// Sends it a signal.
    #[track_caller]
    pub fn signal(&self, signal: i32) {
        // SAFETY: kill has no memory effects here; the child has not been waited for, so the pid is its.
        let sent = unsafe { libc::kill(self.pid(), signal) };
        assert_eq!(sent, 0, "{}: {}", self.what, std::io::Error::last_os_error());
    }

    /// What it did, if it has ended.
    pub fn ended(&mut self) -> Option<Run> {
        let status = self.child.try_wait().expect("wait")?;
        self.ended = true;
        let [stdout, stderr] = [&mut self.stdout, &mut self.stderr].map(|file| {
            let mut bytes = Vec::new();
            file.rewind().expect("seek");
            file.read_to_end(&mut bytes).expect("read");
            bytes
        });
        Some(Run { what: self.what.clone(), status, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() })
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(mut self) -> Run {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(run) = self.ended() {
                return run;
            }
            assert!(Instant::now() < deadline, "{}: still runs after {PATIENCE:?}", self.what);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Sends it a signal and waits for its end.
    #[track_caller]
    pub fn stop(self, signal: i32) -> Run {
        self.signal(signal);
        self.wait()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if !self.ended {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

/// The signal a process was killed by, if one.
#[must_use]
pub fn killed_by(run: &Run) -> Option<i32> {
    run.status.signal()
}
