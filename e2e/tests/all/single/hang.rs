//! A process that is stuck with its mmap lock held, as when a disk stalls: reading its arguments or mappings waits as long
//! as it does. `record` begins and ends in its time all the same, and says what it could not read.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use systape_e2e::disk::{Loop, has};
use systape_e2e::lab::run;
use systape_e2e::more::Mounted;
use systape_e2e::{Background, Lab};

/// The file system goes on after this long whatever happens. Every recording here must have ended before: each takes seconds, and
/// more only on a machine that is busy; one that waits for the file system is killed after 90 s and fails the test.
const FROZEN: Duration = Duration::from_secs(300);

fn fsfreeze(how: &str, dir: &PathBuf) {
    Command::new("fsfreeze").arg(how).arg(dir).stderr(Stdio::null()).status().ok();
}

/// A file system that takes no writes, until it is dropped or [`FROZEN`] is over.
struct Frozen {
    dir: PathBuf,
    thawed: Arc<AtomicBool>,
    watchdog: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Frozen {
    fn new(dir: PathBuf) -> Self {
        let (thawed, (stop, stopped)) = (Arc::new(AtomicBool::new(false)), channel::<()>());
        let watchdog = {
            let (dir, thawed) = (dir.clone(), Arc::clone(&thawed));
            thread::spawn(move || {
                if stopped.recv_timeout(FROZEN) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                    thawed.store(true, Ordering::SeqCst);
                }
                fsfreeze("--unfreeze", &dir);
            })
        };
        let this = Self { dir, thawed, watchdog: Some((stop, watchdog)) };
        fsfreeze("--freeze", &this.dir);
        this
    }

    /// Whether what was done until now was done while it was frozen.
    #[track_caller]
    fn still(&self, what: &str) {
        assert!(!self.thawed.load(Ordering::SeqCst), "{what}: waited until the file system went on");
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        if let Some((stop, watchdog)) = self.watchdog.take() {
            drop(stop);
            watchdog.join().ok();
        }
    }
}

/// What threads of a process wait in, as the kernel has it.
fn waits_in(pid: i32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| fs::read_to_string(task.path().join("stack")).ok()).collect()
}

#[test]
fn who_is_stuck_with_its_mmap_lock_held_keeps_nobody_waiting() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has("fsfreeze") || !has("mkfs.ext4") {
        return;
    }
    let Some(disk) = Loop::new(&lab, "disk.img", 32 << 20) else { return };
    run(lab.command("mkfs.ext4").args(["-q", &disk.path])).expect(0);
    let mounted = Mounted::disk(&lab, "mnt", &disk.path);
    lab.cc("stuck", &[]);
    let (input, mut go) = std::io::pipe().expect("pipe");
    let program = Background::start(lab.command("./stuck").arg("mnt/file").stdin(input));
    let stuck = program.pid();
    lab.until("it is ready", || waits_in(stuck).first().is_some_and(|stack| stack.contains("pipe_read")));
    let frozen = Frozen::new(lab.path("mnt"));
    go.write_all(b"g").expect("go");
    // the one that unmaps holds the mmap lock, and waits for the mapping that the other holds
    lab.until("it hangs", || {
        let stacks = waits_in(stuck);
        stacks.iter().any(|stack| stack.contains("munmap")) && stacks.len() == 3
    });
    frozen.still("hanging");

    let pid = program.pid_text();
    let recordings: [(&str, &[&str], &[&str]); 7] = [
        ("command", &[], &["date"]),
        ("command-g", &["-g"], &["date"]),
        ("all-command-g", &["-a", "-g"], &["date"]),
        ("all", &["-a", "--for", "1s"], &[]),
        ("all-g", &["-a", "-g", "--for", "1s"], &[]),
        ("pid", &["-p", &pid, "--for", "1s"], &[]),
        ("pid-dwarf", &["-p", &pid, "--call-graph", "dwarf", "--for", "1s"], &[]),
    ];
    let mut said = Vec::new();
    for (name, options, command) in recordings {
        let ended = lab.record(&format!("{name}.tape"), options, command).expect(0);
        frozen.still(name);
        if !command.is_empty() {
            assert_ne!(ended.text(), "", "{name}: the command ran");
        }
        said.push((name, ended.stderr));
    }
    // the kernel would wait for it with the probe in hand
    let refused = lab.record("dns.tape", &["--probe", "dns"], &["date"]).expect(2).stderr;
    assert!(refused.contains(&format!("the memory map of process {stuck} is locked")), "{refused}");
    frozen.still("dns");
    // the kernel still holds it; nothing else made the difference
    assert_eq!(waits_in(stuck).len(), 3);
    frozen.still("all recordings");
    drop(frozen);
    program.wait().expect(0);
    drop(mounted);

    for (name, stderr) in said {
        let is_target = !name.starts_with("command");
        let told = ["could not be read in time, so arguments", &format!("pid {stuck} stuck")];
        assert!(told.iter().all(|told| stderr.contains(told) == is_target), "{name}: {stderr}");
        let info = lab.info(&format!("{name}.tape"));
        assert_eq!(info["clean_end"], true, "{name}");
        let gaps = info["gaps"].as_array().expect("gaps");
        let unread: Vec<_> = gaps.iter().filter(|gap| gap["cause"] == "not-read").collect();
        assert_eq!(unread.len(), usize::from(is_target), "{name}: {gaps:?}");
        let shown = lab.analyze(&["info", &format!("{name}.tape")]).expect(0).text();
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let named = words.contains("could not be read in time") && words.contains(&format!("(pid {stuck}"));
        assert_eq!(named, is_target, "{name}: {shown}");
        assert!(unread.iter().all(|gap| gap["family"] == "process"), "{name}: its files are known: {gaps:?}");
    }
    // no event is missing, and what can be read of it is there: it hangs in the kernel, by name
    let info = lab.info("pid.tape");
    assert_eq!((&info["complete"], &info["lost"]), (&true.into(), &serde_json::json!({})), "{info}");
    let states = lab.analyze(&["states", "pid.tape", "--at", "0.5", "--format", "json"]).expect(0).text();
    assert!(states.contains(&format!("{stuck}")), "{states}");
}
