//! `analyze tui` in a pseudoterminal: keys in, screens out, and the terminal is left as it was found.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::common::program;

/// How long a screen may take to come, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// `analyze tui` behind a pseudoterminal.
struct Shown {
    child: Child,
    terminal: File,
    /// The other end, whose settings are the terminal's.
    other: File,
    before: libc::termios,
    seen: String,
    /// Bytes of `seen` that are on the grid.
    drawn: usize,
    grid: Grid,
}

fn settings(terminal: &File) -> libc::termios {
    // SAFETY: zeros are a value of it; the call fills it or fails.
    let mut settings = unsafe { std::mem::zeroed() };
    // SAFETY: see above.
    assert_eq!(unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut settings) }, 0);
    settings
}

fn resize(terminal: &File, (columns, rows): (u16, u16)) {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the size lives.
    assert_eq!(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }, 0);
}

/// What a terminal shows of the sequences that are sent: places, letters, and that all is cleared.
#[derive(Default)]
struct Grid {
    cells: Vec<Vec<char>>,
    at: (usize, usize),
}

impl Grid {
    fn put(&mut self, letter: char) {
        let (row, column) = self.at;
        if self.cells.len() <= row {
            self.cells.resize(row + 1, Vec::new());
        }
        let line = &mut self.cells[row];
        if line.len() <= column {
            line.resize(column + 1, ' ');
        }
        line[column] = letter;
        self.at.1 += 1;
    }

    /// Takes whole sequences of `text`, and returns how many bytes that were.
    fn take(&mut self, text: &str) -> usize {
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            let Some(sequence) = rest.strip_prefix("\x1b[") else {
                match letter {
                    '\r' => self.at.1 = 0,
                    '\n' => self.at = (self.at.0 + 1, 0),
                    letter => self.put(letter),
                }
                rest = &rest[letter.len_utf8()..];
                continue;
            };
            let Some(end) = sequence.find(|c: char| c.is_ascii_alphabetic()) else { break };
            match (&sequence[..end], &sequence[end..=end]) {
                ("2", "J") => self.cells.clear(),
                (place, "H") => {
                    let (row, column) = place.split_once(';').unwrap();
                    self.at = (row.parse::<usize>().unwrap() - 1, column.parse::<usize>().unwrap() - 1);
                }
                _ => {}
            }
            rest = &sequence[end + 1..];
        }
        text.len() - rest.len()
    }

    fn text(&self) -> String {
        self.cells.iter().map(|line| line.iter().collect::<String>() + "\n").collect()
    }
}

impl Shown {
    fn new(tape: &str, size: (u16, u16), env: &[(&str, &str)]) -> Self {
        let (mut ours, mut theirs) = (0, 0);
        // SAFETY: two numbers are written; the rest is optional.
        let opened = unsafe {
            let none = std::ptr::null_mut();
            libc::openpty(&raw mut ours, &raw mut theirs, none, std::ptr::null_mut(), std::ptr::null_mut())
        };
        assert_eq!(opened, 0);
        // SAFETY: both are new and nobody else's.
        let (terminal, other) = unsafe { (File::from_raw_fd(ours), File::from_raw_fd(theirs)) };
        // SAFETY: a flag of a descriptor.
        unsafe { libc::fcntl(ours, libc::F_SETFL, libc::O_NONBLOCK) };
        resize(&terminal, size);
        let end = || Stdio::from(other.try_clone().unwrap());
        let mut command = Command::new(program());
        let tape = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes").join(tape);
        command.arg("tui").arg(tape).env("TERM", "xterm").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
        command.envs(env.iter().copied()).stdin(end()).stdout(end()).stderr(end());
        let before = settings(&other);
        Self {
            child: command.spawn().unwrap(),
            terminal,
            other,
            before,
            seen: String::new(),
            drawn: 0,
            grid: Grid::default(),
        }
    }

    fn press(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until `text` is on the screen.
    fn wait_for(&mut self, text: &str) {
        let begun = Instant::now();
        loop {
            self.read();
            self.drawn += self.grid.take(&self.seen[self.drawn..]);
            let screen = self.grid.text();
            if screen.contains(text) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "no {text:?} in\n{screen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Reads what came since.
    fn read(&mut self) {
        let mut piece = [0; 4096];
        // nothing there, or nobody writes any more
        while let Ok(read @ 1..) = self.terminal.read(&mut piece) {
            self.seen.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    }

    /// The end, after which the terminal is as it was.
    fn end(mut self) -> ExitStatus {
        let begun = Instant::now();
        let status = loop {
            self.read();
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "it goes on");
            std::thread::sleep(Duration::from_millis(10));
        };
        self.read();
        assert!(self.seen.ends_with("\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l"), "{:?}", self.seen);
        let after = settings(&self.other);
        assert_eq!(
            (after.c_iflag, after.c_oflag, after.c_lflag, after.c_cflag),
            (self.before.c_iflag, self.before.c_oflag, self.before.c_lflag, self.before.c_cflag)
        );
        status
    }
}

#[test]
fn keys_lead_to_screens() {
    let mut shown = Shown::new("mix-1.5.tape", (80, 24), &[]);
    shown.wait_for("[1 overview]");
    shown.wait_for("went to:");
    let status = fs::read_to_string(format!("/proc/{}/status", shown.child.id())).unwrap();
    assert!(status.contains("Seccomp:\t2\n") && status.contains("NoNewPrivs:\t1\n"), "{status}");
    shown.press("2");
    shown.wait_for(">=576.378");
    shown.press("\x1b[B\r");
    shown.wait_for("[process 93 sleep]");
    shown.wait_for("analyze top --by tid,comm -p ");
    shown.press("3");
    shown.wait_for("wait4(upid: -1");
    shown.press("e -e openat\r");
    shown.wait_for("analyze trace -e openat");
    shown.wait_for(": dd/167 openat(");
    shown.press("4");
    shown.wait_for("threads, 0.000000000 to ");
    shown.press("?");
    shown.wait_for("Ctrl-C");
    shown.press("x");
    resize(&shown.terminal, (50, 10));
    shown.wait_for("50x10 is too small: at least 60x15");
    resize(&shown.terminal, (120, 40));
    shown.wait_for("threads, 0.000000000 to ");
    shown.press("q");
    assert_eq!(shown.end().code(), Some(0));
}

#[test]
fn signals_end_it_and_leave_the_terminal_as_it_was() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let mut shown = Shown::new("ledger-1.3.tape", (80, 24), &[("NO_COLOR", "1")]);
        shown.wait_for("[1 overview]");
        // SAFETY: a child of ours that was not waited for.
        unsafe { libc::kill(shown.child.id() as libc::pid_t, signal) };
        assert_eq!(shown.end().signal(), Some(signal));
    }
    let mut shown = Shown::new("ledger-1.3.tape", (80, 24), &[]);
    shown.wait_for("[1 overview]");
    shown.press("\x03");
    assert_eq!(shown.end().code(), Some(0));
}

#[test]
fn without_a_terminal_it_says_what_to_ask() {
    let tape = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes/ledger-1.3.tape");
    let output = Command::new(program()).arg("tui").arg(&tape).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("must be a terminal") && said.contains("'analyze why "), "{said}");
    let mut dumb = Shown::new("ledger-1.3.tape", (80, 24), &[("TERM", "dumb")]);
    dumb.wait_for("must be a terminal");
    assert_eq!(dumb.child.wait().unwrap().code(), Some(2));
}
