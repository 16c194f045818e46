//! What the disk, or whoever reads the tape, may do to a recording: full, broken, read-only, without power, slow; a pipe that
//! nobody reads any more or that nobody reads now. Each time `record` tells by its line and its status, the recorded
//! program goes on, and the tape has every call until the time until which it says it is complete, or counts those it
//! lost: none is missing without a word. The table is in docs/internals/reliability.md.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use systape_e2e::damage::{BadDisk, assert_whole_until_the_end, seeks, start_numbered};
use systape_e2e::disk::{Loop, has};
use systape_e2e::lab::run;
use systape_e2e::more::{FREESTANDING, Mounted, lost_calls, monotonic, numbered};
use systape_e2e::{Background, Lab};

/// `record` with its tape on a descriptor of ours; what it says is in the file `said`.
struct Streaming(Child);

impl Streaming {
    fn start(lab: &Lab, options: &[&str], command: &[&str], stdout: impl Into<Stdio>) -> Self {
        let said = File::create(lab.path("said")).expect("said");
        let mut record = lab.record_command("-", options, command);
        Self(record.stdout(stdout).stderr(said).spawn().expect("record"))
    }

    fn signal(&self, signal: i32) {
        // SAFETY: no memory is touched; the child has not been waited for, so the pid is its.
        assert_eq!(unsafe { libc::kill(self.0.id().cast_signed(), signal) }, 0);
    }

    /// Its status and what it said.
    fn wait(mut self, lab: &Lab) -> (Option<i32>, String) {
        lab.until("the end of record", || self.0.try_wait().expect("wait").is_some());
        (self.0.wait().expect("wait").code(), fs::read_to_string(lab.path("said")).expect("said"))
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn pipe() -> (File, OwnedFd) {
    let (reader, writer) = std::io::pipe().expect("pipe");
    (File::from(OwnedFd::from(reader)), OwnedFd::from(writer))
}

/// Bytes that wait in a pipe.
fn waiting(reader: &File) -> i32 {
    let mut bytes = 0;
    // SAFETY: it writes an int; the descriptor is open as long as `reader` lives.
    assert_eq!(unsafe { libc::ioctl(reader.as_raw_fd(), libc::FIONREAD, &raw mut bytes) }, 0);
    bytes
}

/// fcntl(2) with a number for its argument.
fn fcntl(file: &File, command: i32, argument: i32) {
    // SAFETY: no memory is touched; the descriptor is open as long as `file` lives.
    assert_ne!(unsafe { libc::fcntl(file.as_raw_fd(), command, argument) }, -1);
}

/// Most memory a process had, bytes.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("kB") << 10
}

/// An ext4 of `len` bytes at `disk`.
fn ext4(lab: &Lab, len: usize, options: &str) -> Option<(Mounted, Loop)> {
    if !has("mkfs.ext4") {
        return None;
    }
    let image = Loop::new(lab, "image", len)?;
    run(lab.command("mkfs.ext4").args(["-q", "-m", "0", &image.path])).expect(0);
    fs::create_dir(lab.path("disk")).ok();
    let mounted = Mounted::with(lab, "disk", &["-o", options, &image.path]);
    Some((mounted, image))
}

/// Records a running program into `tape` until that fails; the program goes on. `t.tape` is then a copy of it.
fn record_until_it_fails(lab: &Lab, tape: &str, options: &[&str], words: &[&str]) {
    let mut program = start_numbered(lab, 0);
    let pid = program.pid_text();
    let options = [&["-p", &pid, "--flush", "100ms"], options].concat();
    run(lab.record_command(tape, &options, &[])).says(1, &[&[tape], words].concat());
    assert!(program.ended().is_none(), "the program did not go on");
    if lab.path(tape).exists() && tape != "t.tape" {
        fs::copy(lab.path(tape), lab.path("t.tape")).expect("copy");
    }
    assert_whole_until_the_end(lab, &numbered(lab, "truth"));
}

#[test]
fn the_command_outlives_a_killed_recorder() {
    let Some(lab) = Lab::beside() else { return };
    let script = "trap '' HUP; echo $$ > started; sleep 0.7; echo went on > done";
    let recorder = Background::start(lab.record_command("t.tape", &["--flush", "50ms"], &["sh", "-c", script]));
    lab.until_file("started");
    std::thread::sleep(Duration::from_millis(300));
    recorder.stop(libc::SIGKILL);
    assert_eq!(lab.until_file("done"), "went on\n");
    let exec = lab.analyze(&["t.tape", "-e", "execve", "--format", "json"]).expect(0).json();
    assert!(exec.iter().any(|call| call["ret"] == 0), "{exec:?}");
}

#[test]
fn full_disk() {
    let Some(lab) = Lab::beside() else { return };
    let Some(_disk) = ext4(&lab, 2 << 20, "defaults") else { return };
    leave_room(&lab.path("disk/filler"), 300_000);
    record_until_it_fails(&lab, "disk/t.tape", &[], &["No space left on device"]);
}

/// Fills the disk with one file but for this many bytes: a tape must not end before the disk does.
fn leave_room(filler: &Path, bytes: u64) {
    let mut file = File::create(filler).expect("filler");
    let full = std::iter::repeat_with(|| file.write_all(&[0; 4096])).find_map(Result::err).expect("a full disk");
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    let size = file.metadata().expect("filler").len();
    file.set_len(size.checked_sub(bytes).expect("a larger disk")).expect("filler");
    // the room is free once the journal says so
    file.sync_all().expect("filler");
}

#[test]
fn broken_disk() {
    let Some(lab) = Lab::beside() else { return };
    let _disk = BadDisk::mount(&lab, "eio", 300_007);
    let mut program = start_numbered(&lab, 0);
    let options = ["-p", &program.pid_text(), "--flush", "100ms"];
    run(lab.record_command("disk/t.tape", &options, &[])).says(1, &["disk/t.tape", "Input/output error"]);
    assert!(program.ended().is_none());
    assert_eq!(fs::metadata(lab.path("t.tape")).expect("tape").len(), 300_007);
    assert_whole_until_the_end(&lab, &numbered(&lab, "truth"));
}

#[test]
fn file_size_limit() {
    let Some(lab) = Lab::beside() else { return };
    let mut program = start_numbered(&lab, 0);
    let record = lab.record_command("t.tape", &["-p", &program.pid_text(), "--flush", "100ms"], &[]);
    let mut limited = lab.command("prlimit");
    limited.arg("--fsize=300000").arg(record.get_program()).args(record.get_args());
    // not killed by SIGXFSZ
    run(limited).says(1, &["t.tape", "File too large"]);
    assert!(program.ended().is_none());
    assert_whole_until_the_end(&lab, &numbered(&lab, "truth"));
    // a command has the signal as it was
    let script = "head -c 100000 /dev/zero > big";
    let mut inside = lab.record_command("u.tape", &[], &["prlimit", "--fsize=1000", "sh", "-c", script]);
    assert_eq!(run(&mut inside).code(), 128 + libc::SIGXFSZ);
}

#[test]
fn file_system_turns_read_only() {
    let Some(lab) = Lab::with_bpf() else { return };
    let Some((_disk, image)) = ext4(&lab, 32 << 20, "errors=remount-ro") else { return };
    let trigger = format!("/sys/fs/ext4/{}/trigger_fs_error", image.name);
    let mut program = start_numbered(&lab, 100);
    let recorder = lab.attach("disk/t.tape", &["-p", &program.pid_text(), "--flush", "100ms"]);
    std::thread::sleep(Duration::from_millis(1500));
    fs::write(trigger, "1").expect("trigger_fs_error");
    let broken = monotonic();
    recorder.wait().says(1, &["disk/t.tape", "Read-only file system"]);
    assert!(program.ended().is_none());
    fs::copy(lab.path("disk/t.tape"), lab.path("t.tape")).expect("copy");
    let last = assert_whole_until_the_end(&lab, &numbered(&lab, "truth"));
    println!("{} ms before it was read-only", (broken - last) / 1_000_000);
    assert!(broken - last < 1_000_000_000, "the last call is {} ms before", (broken - last) / 1_000_000);
}

/// Cuts the power of an ext4: nothing reaches the disk any more, neither what was written nor the journal.
fn cut_power(lab: &Lab) -> i64 {
    const EXT4_IOC_SHUTDOWN: libc::c_ulong = 0x8004_587d;
    let no_log_flush = 2_u32;
    let root = File::open(lab.path("disk")).expect("disk");
    let at = monotonic();
    // SAFETY: the ioctl reads one u32.
    let done = unsafe { libc::ioctl(root.as_raw_fd(), EXT4_IOC_SHUTDOWN as _, &raw const no_log_flush) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    at
}

#[test]
fn power_cut() {
    let Some(lab) = Lab::with_bpf() else { return };
    let mut program = start_numbered(&lab, 200);
    for sync in ["200ms", "no"] {
        let Some((disk, image)) = ext4(&lab, 64 << 20, "defaults") else { return };
        let options = ["-p", &program.pid_text(), "--flush", "100ms", "--sync", sync];
        let recorder = lab.attach("disk/t.tape", &options);
        std::thread::sleep(Duration::from_millis(2500));
        let cut = cut_power(&lab);
        recorder.wait().says(1, &["disk/t.tape", "Input/output error"]);
        assert!(program.ended().is_none());
        drop(disk);
        // power is back: the journal is replayed
        let _disk = Mounted::with(&lab, "disk", &[&image.path]);
        if sync == "no" {
            // it was all in memory: a file of nothing, or none, and neither passes for a tape
            assert!(fs::read(lab.path("disk/t.tape")).is_ok_and(|t| t.is_empty()) || !lab.path("disk/t.tape").exists());
            lab.analyze(&["disk/t.tape", "-s"]).says(1, &["disk/t.tape"]);
            continue;
        }
        fs::copy(lab.path("disk/t.tape"), lab.path("t.tape")).expect("copy");
        let last = assert_whole_until_the_end(&lab, &numbered(&lab, "truth"));
        println!("{} ms before the power was cut", (cut - last) / 1_000_000);
        assert!(cut - last < 1_500_000_000, "the last call is {} ms before", (cut - last) / 1_000_000);
    }
}

#[test]
fn errors_that_come_late() {
    let Some(lab) = Lab::beside() else { return };
    let command = ["sh", "-c", "echo ran > done; exit 7"];
    for (how, options, word) in [
        ("fsync", &["--sync", "end"][..], "cannot sync the tape: Input/output error"),
        ("close", &["--sync", "no"], "cannot close the tape: Input/output error"),
    ] {
        let _disk = BadDisk::mount(&lab, how, 0);
        lab.record("disk/t.tape", options, &command).says(125, &["disk/t.tape", word]);
        assert_eq!(fs::read_to_string(lab.path("done")).ok().as_deref(), Some("ran\n"));
        // all of it was taken
        lab.assert_whole("t.tape");
        fs::remove_file(lab.path("done")).expect("remove");
    }
    // one who does not ask is not told
    {
        let _disk = BadDisk::mount(&lab, "fsync", 0);
        lab.record("disk/t.tape", &["--sync", "no"], &command).expect(7);
    }
    // found while it runs: it ends then
    let _disk = BadDisk::mount(&lab, "fsync", 0);
    let mut program = start_numbered(&lab, 1000);
    let options = ["-p", &program.pid_text(), "--sync", "100ms"];
    run(lab.record_command("disk/t.tape", &options, &[])).says(1, &["disk/t.tape", "cannot sync the tape"]);
    assert!(program.ended().is_none());
}

#[test]
fn slow_disk() {
    const EACH: u64 = 1_200_007;
    let Some(lab) = Lab::beside() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    let _disk = BadDisk::mount(&lab, "slow", 300);
    lab.record("disk/t.tape", &["-m", "64k", "--buffer", "1M"], &[&flood, "2", &EACH.to_string()]).expect(0);
    let info = lab.info("t.tape");
    let lost = lost_calls(&info);
    assert!(lost > 1000, "nothing to test: {info}");
    // what could not be stored is counted: the sums are whole
    let rows = lab.analyze(&["t.tape", "-s", "--summary-mode", "total", "--format", "json"]).expect(0).json();
    assert!(rows.iter().all(|row| row["calls_at_least"] == false), "{rows:?}");
    let calls: u64 = rows.iter().map(|row| row["calls"].as_u64().expect("calls")).sum();
    assert_eq!(calls, 6 + 2 * (EACH + 1));
    let stored = calls - lost;
    assert_eq!(lab.analyze(&["check", "t.tape", "--format", "json"]).expect(0).json()[0]["grade"], "good");
    println!("{stored} stored, {lost} lost, {} MiB", info["recorder_peak_rss"].as_u64().unwrap_or(0) >> 20);
    // rings of 64 KiB, 8 and 4 MiB, which are mapped twice
    let peak = info["recorder_peak_rss"].as_u64().expect("peak");
    assert!(peak < (128 + 26) << 20, "{} MiB", peak >> 20);
}

#[test]
fn reader_dies() {
    let Some(lab) = Lab::beside() else { return };
    let mut program = start_numbered(&lab, 0);
    let (reader, writer) = pipe();
    let record = Streaming::start(&lab, &["-p", &program.pid_text(), "--flush", "100ms"], &[], writer);
    let mut tape = Vec::new();
    reader.take(400_000).read_to_end(&mut tape).expect("read"); // and closes it
    let (status, said) = record.wait(&lab);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.starts_with("record: -: ") && said.contains("Broken pipe") && said.lines().count() == 1, "{said}");
    assert!(program.ended().is_none());
    fs::write(lab.path("t.tape"), tape).expect("write");
    assert_whole_until_the_end(&lab, &numbered(&lab, "truth"));
}

#[test]
fn reader_sleeps() {
    const EACH: u64 = 900_001;
    let Some(lab) = Lab::beside() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    let (mut reader, writer) = pipe();
    // so that it is full soon: 64 KiB may be all that is stored of such a flood
    fcntl(&reader, libc::F_SETPIPE_SZ, 4096);
    let script = format!("echo started > started; {flood} 2 {EACH}; echo done > done");
    let record = Streaming::start(&lab, &["-m", "64k", "--buffer", "1M"], &["sh", "-c", &script], writer);
    // the tape's beginning is longer than the pipe: the command waits for it
    let mut tape = Vec::new();
    fcntl(&reader, libc::F_SETFL, libc::O_NONBLOCK);
    lab.until("the command", || {
        match reader.read_to_end(&mut tape) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            result => panic!("{result:?}"),
        }
        lab.path("started").exists()
    });
    fcntl(&reader, libc::F_SETFL, 0);
    lab.until_file("done");
    // the command is not held up; memory is bounded while nobody reads
    let peak = peak(record.0.id());
    println!("{} MiB", peak >> 20);
    assert!(peak < (128 + 26) << 20, "{} MiB", peak >> 20);
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).expect("read");
    let (status, said) = record.wait(&lab);
    assert_eq!(status, Some(0), "{said}");
    tape.extend(rest);
    fs::write(lab.path("t.tape"), tape).expect("write");
    let info = lab.info("t.tape");
    assert!(info["clean_end"] == true && lost_calls(&info) > 1000, "nothing to test: {info}");
    let count = ["-s", "--summary-mode", "total", "-e", "getppid", "--format", "json"];
    let rows = lab.analyze(&[&["t.tape"], &count[..]].concat()).expect(0).json();
    let calls: u64 = rows.iter().map(|row| row["calls"].as_u64().expect("calls")).sum();
    println!("{} lost", lost_calls(&info));
    // a shell asks once as well
    assert!((2 * EACH..=2 * EACH + 1).contains(&calls) && rows[0]["calls_at_least"] == false, "{rows:?}");
    assert!(said.contains(" as totals only"), "{said}");
}

#[test]
fn reader_never_reads() {
    let Some(lab) = Lab::beside() else { return };
    let program = start_numbered(&lab, 0);
    let (mut reader, writer) = pipe();
    let record = Streaming::start(&lab, &["-p", &program.pid_text()], &[], writer);
    let mut tape = vec![0; 60_000];
    reader.read_exact(&mut tape).expect("read");
    // else all that is left fits; a segment comes each second
    let mut before = 0;
    lab.until("a full pipe", || {
        std::thread::sleep(Duration::from_millis(1500));
        let now = waiting(&reader);
        now > 0 && now == std::mem::replace(&mut before, now)
    });
    record.signal(libc::SIGINT);
    // one who asked for the end waits for the tape, and is told what to do about it
    let said = || fs::read_to_string(lab.path("said")).unwrap_or_default();
    lab.until("words", || said().contains("Ctrl-C gives up"));
    record.signal(libc::SIGINT);
    let (status, said) = record.wait(&lab);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("was given up"), "{said}");
    reader.read_to_end(&mut tape).expect("read");
    fs::write(lab.path("t.tape"), tape).expect("write");
    assert_eq!(lab.info("t.tape")["clean_end"], false);
    lab.analyze(&["check", "t.tape"]).expect(1);
}

#[test]
fn socket_for_standard_output() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &[]);
    let (mut ours, theirs) = UnixStream::pair().expect("socket");
    let reader = std::thread::spawn(move || {
        let mut tape = Vec::new();
        ours.read_to_end(&mut tape).map(|_| tape)
    });
    // what the command prints is not the tape's
    let script = format!("echo printed; exec {target} spin 997");
    let record = Streaming::start(&lab, &[], &["sh", "-c", &script], OwnedFd::from(theirs));
    let (status, said) = record.wait(&lab);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.lines().any(|line| line == "printed"), "{said}");
    fs::write(lab.path("t.tape"), reader.join().expect("thread").expect("read")).expect("write");
    lab.assert_whole("t.tape");
    let calls = lab.calls("t.tape", &["-e", "getppid", "--comm=target"]);
    assert_eq!(calls.len(), 997);
    // the same socket, closed at the other end
    let program = start_numbered(&lab, 0);
    let (ours, theirs) = UnixStream::pair().expect("socket");
    drop(ours);
    let record = Streaming::start(&lab, &["-p", &program.pid_text()], &[], OwnedFd::from(theirs));
    let (status, said) = record.wait(&lab);
    assert!(status == Some(1) && said.contains("Broken pipe"), "{status:?}: {said}");
}

#[test]
fn standard_output_that_takes_no_tape() {
    let Some(lab) = Lab::beside() else { return };
    let record = lab.record_command("-", &[], &["touch", "ran"]);
    let line = [record.get_program()].into_iter().chain(record.get_args()).map(|word| word.to_str().expect("UTF-8"));
    let line = line.collect::<Vec<_>>().join(" ");
    run(lab.command("sh").args(["-c", &format!("{line} >&-")])).says(125, &["standard output is closed"]);
    // the length is taken for what it is likely meant to be, and said so
    let warned = line.replacen(" -o - ", " -o - --duration 10s ", 1);
    assert!(warned != line, "{line}");
    let shown = run(lab.command("script").args(["-qec", &line, "/dev/null"])).expect(125).text();
    assert!(shown.contains("standard output is a terminal") && shown.lines().count() == 1, "{shown:?}");
    assert!(!lab.path("ran").exists());
    // what it has to say is not worth a failure
    run(lab.command("sh").args(["-c", &format!("{line} > t.tape 2>/dev/full")])).expect(0);
    lab.assert_whole("t.tape");
    assert!(lab.path("ran").exists());
    run(lab.command("sh").args(["-c", &format!("{warned} > warned.tape 2>/dev/full")])).expect(0);
    assert!(!seeks(&lab, &[]).iter().any(|call| call.name() != "lseek"));
}
