//! What `record` can do with how many rights: capability by capability as an unprivileged user, with little of everything that
//! limits give, without tracefs, with the kernel's addresses hidden. What is missing in a tape is said when it is made and
//! in the tape. Once it records, it has given up what it does not need, in every thread and for good; the command it runs has
//! not. docs/reference/requirements.md says what each is for.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use systape_e2e::lab::{binary, run};
use systape_e2e::more::{NOBODY, count};
use systape_e2e::{Background, Lab, Run};

/// Bits of capabilities, linux/capability.h.
const KILL: u64 = 1 << 5;
const SETGID: u64 = 1 << 6;
const SETUID: u64 = 1 << 7;
const DAC_READ_SEARCH: u64 = 1 << 2;
const SYS_PTRACE: u64 = 1 << 19;
const SYS_ADMIN: u64 = 1 << 21;
const CHECKPOINT_RESTORE: u64 = 1 << 40;

/// A copy of `record` that others may run, and a directory `out` they may write.
fn with_nobody() -> Option<Lab> {
    let lab = Lab::beside()?;
    fs::copy(binary("record"), lab.path("record")).expect("copy");
    fs::create_dir(lab.path("out")).expect("mkdir");
    chown(lab.path("out"), Some(65534), Some(65534)).expect("chown");
    Some(lab)
}

/// A command of nobody's with capabilities, written as `bpf,perfmon`.
fn nobody(lab: &Lab, capabilities: &str) -> Command {
    let mut setpriv = lab.command(NOBODY[0]);
    setpriv.args(&NOBODY[1..]);
    let set = capabilities.split(',').map(|cap| format!(",+{cap}")).collect::<String>();
    for option in ["inh-caps", "ambient-caps", "bounding-set"] {
        setpriv.arg(format!("--{option}=-all{set}"));
    }
    setpriv
}

/// A process of root's that reads a file which it had open before any recording.
fn reader(lab: &Lab) -> Background {
    let file = fs::File::open("/etc/hostname").expect("hostname");
    Background::start(lab.command("sh").args(["-c", "while :; do read line; done"]).stdin(file))
}

/// `record` with these capabilities; the tape is `out/t.tape`.
fn record_with(lab: &Lab, capabilities: &str, options: &[&str]) -> Run {
    fs::remove_file(lab.path("out/t.tape")).ok();
    run(nobody(lab, capabilities).args(["./record", "-o", "out/t.tape"]).args(options))
}

/// What a set of capabilities says it lacks, of these.
fn lacks(text: &str) -> Vec<&'static str> {
    let words = ["CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH: open files", "(CAP_DAC_READ_SEARCH)", "CAP_SYSLOG"];
    words.into_iter().filter(|word| text.contains(word)).collect()
}

#[test]
fn capability_by_capability() {
    let Some(lab) = with_nobody() else { return };
    let program = reader(&lab);
    let pid = program.pid_text();
    let hidden = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").is_ok_and(|level| level.trim() > "1")
        || fs::read_to_string("/proc/sys/kernel/kptr_restrict").is_ok_and(|level| level.trim() > "0");
    let syslog = if hidden { &["CAP_SYSLOG"][..] } else { &[] };
    // capabilities, what it says it lacks, whether the file open since before is known
    for (capabilities, lacking, known) in [
        ("bpf,perfmon", &["CAP_SYS_PTRACE", "(CAP_DAC_READ_SEARCH)"][..], false),
        ("sys_admin", &["CAP_SYS_PTRACE", "(CAP_DAC_READ_SEARCH)"], false),
        ("bpf,perfmon,sys_ptrace", &["CAP_DAC_READ_SEARCH: open files", "(CAP_DAC_READ_SEARCH)"], false),
        ("bpf,perfmon,dac_read_search", &["CAP_SYS_PTRACE"], false),
        ("bpf,perfmon,sys_ptrace,dac_read_search", &[], true),
    ] {
        let run = record_with(&lab, capabilities, &["-p", &pid, "--for", "100ms"]).expect(0);
        let lacking = [lacking, syslog].concat();
        assert_eq!(lacks(&run.stderr), lacking, "{capabilities}: {}", run.stderr);
        lab.assert_whole("out/t.tape");
        let notes = lab.info("out/t.tape")["notes"].to_string();
        assert_eq!(lacks(&notes), lacking, "{capabilities}: {notes}");
        let reads = lab.calls("out/t.tape", &["-e", "read"]);
        assert!(!reads.is_empty(), "{capabilities}");
        for read in &reads {
            let path = known.then_some("/etc/hostname");
            assert_eq!(read.fd_path("fd"), path, "{capabilities}: {read:?}");
        }
    }
    let run = record_with(&lab, "bpf,perfmon,syslog", &["-p", &pid, "--for", "50ms"]).expect(0);
    assert!(!run.stderr.contains("CAP_SYSLOG"), "{}", run.stderr);
    // its own processes it knows without
    let script = "exec 3</etc/hostname; sleep 0.1; read line <&3";
    record_with(&lab, "bpf,perfmon", &["--", "sh", "-c", script]).expect(0);
    let reads = lab.calls("out/t.tape", &["-e", "read", "--comm=sh"]);
    assert!(reads.iter().any(|read| read.fd_path("fd") == Some("/etc/hostname")), "{reads:?}");
    // stacks: the programs and libraries of its own processes have names
    let run = record_with(&lab, "bpf,perfmon", &["--call-graph", "dwarf", "--", "true"]).expect(0);
    assert!(run.stderr.contains("CAP_CHECKPOINT_RESTORE") && run.stderr.contains("CAP_SYS_ADMIN"), "{}", run.stderr);
    let graph = lab.analyze(&["callgraph", "out/t.tape", "--folded", "--event", "syscall"]);
    assert!(graph.code() != 0 || !graph.text().is_empty(), "{}", graph.stderr);
}

#[test]
fn the_capabilities_that_are_suggested_are_enough() {
    let Some(lab) = with_nobody() else { return };
    let program = reader(&lab);
    let pid = program.pid_text();
    let mut plain = lab.command(NOBODY[0]);
    plain.args(&NOBODY[1..]).args(["./record", "-o", "out/t.tape", "-p", &pid, "--for", "100ms"]);
    let refused = run(&mut plain);
    let advice = refused.stderr.split_once("sudo setcap ").expect("advice").1;
    let set = advice.split_whitespace().next().expect("capabilities");
    run(lab.command("setcap").args([set, "record"])).expect(0);
    let kptr = fs::read_to_string("/proc/sys/kernel/kptr_restrict").expect("sysctl");
    let run = run(&mut plain).expect(0);
    if kptr.trim() != "2" {
        let lines: Vec<&str> = run.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "nothing is missing: {}", run.stderr);
        assert_eq!(lab.info("out/t.tape")["notes"].as_array().map(Vec::len), Some(0));
    }
    let reads = lab.calls("out/t.tape", &["-e", "read"]);
    assert!(reads.iter().any(|read| read.fd_path("fd") == Some("/etc/hostname")), "{reads:?}");
    // the pages say the same
    for page in ["docs/reference/requirements.md", "docs/install.md"] {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
        let text = fs::read_to_string(&page).expect("page");
        assert!(text.contains(&format!("sudo setcap {set}")), "{}: {set}", page.display());
    }
}

#[test]
fn the_setting_that_hides_the_kernel_s_addresses_is_named() {
    let Some(lab) = with_nobody() else { return };
    let _shown = Sysctl::set("kptr_restrict", "0");
    let record = || record_with(&lab, "bpf,perfmon", &["--", "true"]).expect(0).stderr;
    {
        let _hidden = Sysctl::set("perf_event_paranoid", "2");
        let said = record();
        assert!(said.contains("CAP_SYSLOG, or sysctl kernel.perf_event_paranoid=1 (it is 2)"), "{said}");
        assert!(!said.contains("kptr_restrict"), "{said}");
    }
    // what is said helps
    let _open = Sysctl::set("perf_event_paranoid", "1");
    let said = record();
    assert!(!said.contains("are hidden"), "{said}");
}

/// CapInh, CapPrm, CapEff, CapAmb and NoNewPrivs of a task.
fn rights(status: &str) -> Vec<u64> {
    let text = fs::read_to_string(status).expect(status);
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        u64::from_str_radix(line.trim(), 16).expect("hex")
    };
    ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:", "NoNewPrivs:"].map(field).to_vec()
}

#[test]
fn what_is_not_needed_is_given_up() {
    let Some(lab) = Lab::with_bpf() else { return };
    let all = rights("/proc/self/status")[1];
    let core = SYS_PTRACE | DAC_READ_SEARCH;
    let stacks = core | SYS_ADMIN | CHECKPOINT_RESTORE | SETUID | SETGID | KILL;
    for (options, kept) in [
        (&["-a"][..], core),
        (&["-a", "--call-graph", "dwarf", "-F", "49"], stacks),
        (&["-a", "--call-graph", "dwarf", "--no-symbols"], stacks),
    ] {
        let recorder = lab.attach("t.tape", options);
        std::thread::sleep(Duration::from_millis(300));
        let tasks = fs::read_dir(format!("/proc/{}/task", recorder.pid())).expect("tasks");
        let mut threads = 0;
        for task in tasks.flatten() {
            let dir = task.path();
            let dir = dir.to_str().expect("UTF-8");
            let name = fs::read_to_string(format!("{dir}/comm")).expect("comm");
            let kept = kept & all;
            assert_eq!(rights(&format!("{dir}/status")), [0, kept, kept, 0, 1], "{options:?}: {name}");
            threads += 1;
        }
        assert!(threads >= 5, "{options:?}: {threads} threads");
        recorder.stop(libc::SIGINT).expect(0);
        assert_eq!(lab.info("t.tape")["clean_end"], true);
    }
    // the child that reads ELF files
    let (_ours, theirs) = UnixStream::pair().expect("socket");
    let mut child = Killed(
        lab.command(binary("record")).arg("--look-up-names").stdin(OwnedFd::from(theirs)).spawn().expect("record"),
    );
    let status = format!("/proc/{}/status", child.0.id());
    lab.until("no rights", || rights(&status) == [0, 0, 0, 0, 1]);
    assert!(child.0.try_wait().expect("wait").is_none());
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn the_command_keeps_its_rights() {
    let Some(lab) = Lab::with_bpf() else { return };
    // not SigQ: it counts for all processes of the user
    let words = "^(Cap|NoNewPrivs|Sig[A-P]|Seccomp:|Uid|Groups)";
    let show = ["grep", "-E", words, "/proc/self/status"];
    let limits = ["sh", "-c", "cat /proc/self/limits; nice; ulimit -n"];
    for what in [&show[..], &limits] {
        let without = run(lab.command(what[0]).args(&what[1..])).expect(0).text();
        let with = lab.record("t.tape", &[], what).expect(0).text();
        assert_eq!(with, without);
        let with = lab.record("t.tape", &["--call-graph", "dwarf", "-a"], what).expect(0).text();
        assert_eq!(with, without);
    }
    // one that has become another user's can still be ended
    let sleep = [&NOBODY[..], &["sleep", "60"]].concat();
    let run = lab.record("t.tape", &["--for", "300ms", "--kill"], &sleep);
    assert_eq!(run.code(), 128 + libc::SIGTERM, "{}", run.stderr);
}

#[test]
fn tight_limits() {
    let Some(lab) = with_nobody() else { return };
    let target = lab.cc("target", &[]);
    let limited = |limit: &str| {
        fs::remove_file(lab.path("t.tape")).ok();
        fs::remove_file(lab.path("ran")).ok();
        fs::remove_file(lab.path("done")).ok();
        let record =
            lab.record_command("t.tape", &[], &["sh", "-c", &format!("touch ran; {target} spin 997; touch done")]);
        run(lab.command("prlimit").arg(limit).arg(record.get_program()).args(record.get_args()))
    };
    let works = |run: Run| {
        run.expect(0);
        lab.assert_whole("t.tape");
        assert_eq!(count(&lab.calls("t.tape", &["--comm=target"]), "getppid"), 997);
    };
    // room that may be taken is taken; what root may not take is said
    works(limited("--nofile=64:4096"));
    let run_64 = limited("--nofile=64:64");
    if run_64.code() == 0 {
        works(run_64)
    } else {
        run_64.says(125, &["ulimit -n 1024"]);
    }
    works(limited("--memlock=0:0"));
    works(limited("--stack=262144"));
    works(limited("--core=0"));
    // memory: it works, or says what it could not have, and the command ran to its end or not at all
    let mut refused = 0;
    for limit in
        ["--as=20000000", "--as=60000000", "--as=150000000", "--as=400000000", "--data=4000000", "--data=40000000"]
    {
        let run = limited(limit);
        if run.status.code() == Some(0) {
            works(run);
            continue;
        }
        refused += 1;
        let said = run.stderr.lines().any(|line| line.starts_with("record: ") || line.starts_with("prlimit: "));
        assert!(!run.stderr.is_empty() && !run.stderr.contains("panicked"), "{limit}: {} {}", run.status, run.stderr);
        // what cannot have a few bytes may end by a signal, and says that it could not have them
        assert!(said || run.status.code() != Some(125), "{limit}: {}", run.stderr);
        assert_eq!(lab.path("ran").exists(), lab.path("done").exists(), "{limit}: {}", run.stderr);
    }
    assert!(refused > 0, "nothing was too little");
    // processes: root is not limited
    let capabilities = "bpf,perfmon,sys_ptrace,dac_read_search,syslog";
    let mut command = nobody(&lab, capabilities);
    command.args(["prlimit", "--nproc=1:1", "./record", "-o", "out/t.tape", "--", "touch", "out/ran"]);
    let run = run(command);
    assert_eq!(run.code(), 125, "{}", run.stderr);
    assert!(
        run.stderr.starts_with("record: ") && run.stderr.contains("Resource temporarily unavailable"),
        "{}",
        run.stderr
    );
    assert!(!lab.path("out/ran").exists());
}

#[test]
fn without_tracefs() {
    let Some(lab) = Lab::beside() else { return };
    let target = lab.cc("target", &[]);
    let record = lab.record_command("t.tape", &[], &[&target, "spin", "997"]);
    let line = [record.get_program()].into_iter().chain(record.get_args()).map(|word| word.to_str().expect("UTF-8"));
    let line = line.collect::<Vec<_>>().join(" ");
    let script =
        format!("for dir in /sys/kernel/tracing /sys/kernel/debug; do umount -l $dir 2>/dev/null; done; exec {line}");
    let run = run(lab.command("unshare").args(["-m", "sh", "-c", &script])).expect(0);
    assert!(run.stderr.contains("mount -t tracefs nodev /sys/kernel/tracing"), "{}", run.stderr);
    lab.assert_whole("t.tape");
    assert!(lab.info("t.tape")["notes"].to_string().contains("mount -t tracefs"));
    let calls = lab.calls("t.tape", &[]);
    assert_eq!(count(&calls, "getppid"), 997);
    // the built-in names of arguments
    assert!(calls.iter().any(|call| call.name() == "execve" && call.text("filename") == target), "{:?}", calls[0]);
}

/// A setting of the kernel, put back when the test is over.
struct Sysctl(String, String);

impl Sysctl {
    fn set(name: &str, value: &str) -> Self {
        let path = format!("/proc/sys/kernel/{name}");
        let before = fs::read_to_string(&path).expect("sysctl");
        fs::write(&path, value).expect("sysctl");
        Self(path, before)
    }
}

impl Drop for Sysctl {
    fn drop(&mut self) {
        fs::write(&self.0, &self.1).ok();
    }
}

#[test]
fn hidden_addresses_and_paranoid_kernels() {
    let Some(lab) = with_nobody() else { return };
    let target = lab.cc("target", &[]);
    {
        let _hidden = Sysctl::set("kptr_restrict", "2");
        let run = lab.record("t.tape", &["-g", "--kernel-stacks"], &[&target, "spin", "97"]).expect(0);
        assert!(run.stderr.contains("kernel.kptr_restrict"), "{}", run.stderr);
        assert_eq!(count(&lab.calls("t.tape", &[]), "getppid"), 97);
        let notes = lab.info("t.tape")["notes"].to_string();
        assert!(notes.contains("kptr_restrict") && notes.contains("frames of the kernel have no names"), "{notes}");
    }
    for level in ["3", "4"] {
        let _paranoid = Sysctl::set("perf_event_paranoid", level);
        lab.record("t.tape", &["-g", "-F", "49"], &[&target, "spin", "97"]).expect(0);
        lab.assert_whole("t.tape");
        // no root: with samples or with the words for why not; without samples it always works
        let run = record_with(&lab, "bpf,perfmon", &["-F", "49", "--", &target, "spin", "97"]);
        if run.code() != 0 {
            run.says(125, &["CAP_SYS_ADMIN", "kernel.perf_event_paranoid"]);
        }
        record_with(&lab, "bpf,perfmon", &["-g", "--", &target, "spin", "97"]).expect(0);
        assert_eq!(count(&lab.calls("out/t.tape", &[]), "getppid"), 97);
    }
}

#[test]
fn namespaces_without_rights_or_without_proc() {
    let Some(lab) = Lab::beside() else { return };
    let record = lab.record_command("t.tape", &[], &["touch", "ran"]);
    let inside =
        |options: &[&str]| run(lab.command("unshare").args(options).arg(record.get_program()).args(record.get_args()));
    if run(lab.command("unshare").args(["-Ur", "true"])).code() == 0 {
        inside(&["-Ur"]).says(125, &["user namespace"]);
        inside(&["-Ur", "--pid", "--fork", "--mount-proc"]).says(125, &["user namespace"]);
    }
    // another namespace's /proc speaks of other processes
    inside(&["--pid", "--fork"]).says(125, &["/proc is not of this pid namespace", "--mount-proc"]);
    assert!(!lab.path("ran").exists() && !lab.path("t.tape").exists());
}
