//! A real mixed program (git, gcc, python3, find, tar, rm, mv, ls under a shell): for every process of the same
//! deterministic run, the multiset of (syscall, return value, error) and every (syscall, path string) are strace's.
//! [`EXPLAINED`] is the whole list of calls compared otherwise.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use systape_e2e::more::without_random;
use systape_e2e::strace::{self, Traced};
use systape_e2e::{Call, Lab, lab};

/// What a call returns that may differ between two correct observations of the same program.
#[derive(Clone, Copy, PartialEq)]
enum Returns {
    /// An address.
    Address,
    /// A pid, or nothing but a pid or an error.
    Pid,
    /// Anything: it depends on time or on the machine.
    Any,
    /// The same, but how often varies from run to run.
    Often,
}

/// Calls compared by less than their return value, and why.
const EXPLAINED: [(&str, Returns, &str); 17] = [
    ("getrandom", Returns::Often, "mkstemp draws again on some runs, also of git and gcc under no observer"),
    ("mmap", Returns::Address, "the stack, and with it the mapping area, moves with strace's and record's environment"),
    ("mremap", Returns::Address, "as mmap"),
    ("brk", Returns::Address, "as mmap"),
    ("clone", Returns::Pid, "two runs have different pids"),
    ("clone3", Returns::Pid, "two runs have different pids"),
    ("vfork", Returns::Pid, "two runs have different pids"),
    ("fork", Returns::Pid, "two runs have different pids"),
    ("wait4", Returns::Pid, "two runs have different pids"),
    ("getpid", Returns::Pid, "two runs have different pids"),
    ("getppid", Returns::Pid, "two runs have different pids"),
    ("gettid", Returns::Pid, "two runs have different pids"),
    ("getpgrp", Returns::Pid, "two runs have different pids"),
    ("getpgid", Returns::Pid, "two runs have different pids"),
    ("set_tid_address", Returns::Pid, "two runs have different pids"),
    ("rt_sigreturn", Returns::Any, "restores the register of whatever call the signal interrupted"),
    ("exit_group", Returns::Any, "strace prints ?, the tape null: neither returns"),
];

/// Names of arguments that are path strings.
const PATH_ARGS: [&str; 10] =
    ["filename", "pathname", "path", "oldname", "newname", "name", "old", "new", "link_path", "library"];

/// For strace, which has no names: position of the path strings, and of the names of extended attributes.
const PATH_AT: [(&str, &[usize]); 39] = [
    ("access", &[0]),
    ("chdir", &[0]),
    ("chmod", &[0]),
    ("chown", &[0]),
    ("creat", &[0]),
    ("execve", &[0]),
    ("faccessat", &[1]),
    ("faccessat2", &[1]),
    ("fchmodat", &[1]),
    ("fchownat", &[1]),
    ("getxattr", &[0, 1]),
    ("lchown", &[0]),
    ("lgetxattr", &[0, 1]),
    ("link", &[0, 1]),
    ("linkat", &[1, 3]),
    ("listxattr", &[0]),
    ("llistxattr", &[0]),
    ("lstat", &[0]),
    ("mkdir", &[0]),
    ("mkdirat", &[1]),
    ("mknod", &[0]),
    ("mknodat", &[1]),
    ("newfstatat", &[1]),
    ("open", &[0]),
    ("openat", &[1]),
    ("openat2", &[1]),
    ("readlink", &[0]),
    ("readlinkat", &[1]),
    ("rename", &[0, 1]),
    ("renameat", &[1, 3]),
    ("renameat2", &[1, 3]),
    ("rmdir", &[0]),
    ("stat", &[0]),
    ("statfs", &[0]),
    ("statx", &[1]),
    ("symlinkat", &[0, 2]),
    ("unlink", &[0]),
    ("unlinkat", &[1]),
    ("utimensat", &[1]),
];

type Bag = BTreeMap<String, i64>;

/// What one process did.
#[derive(Default)]
struct Did {
    /// Programs it was, from its successful execves.
    programs: Vec<String>,
    /// (syscall, ret, errno) and how often.
    returns: Bag,
    /// (syscall, path) and how often.
    paths: Bag,
}

/// Either observer's call.
struct Seen {
    tid: i64,
    name: String,
    ret: Option<i64>,
    errno: Option<String>,
    paths: Vec<Vec<u8>>,
}

impl From<&Traced> for Seen {
    fn from(call: &Traced) -> Self {
        let at = PATH_AT.iter().find(|(name, _)| *name == call.name).map_or(&[][..], |(_, at)| at);
        let paths = at.iter().filter_map(|&i| call.bytes(i)).collect();
        Self { tid: call.tid, name: call.name.clone(), ret: call.ret, errno: call.errno.clone(), paths }
    }
}

impl From<&Call> for Seen {
    fn from(call: &Call) -> Self {
        let known = PATH_AT.iter().any(|(name, _)| *name == call.name());
        let of = |arg: &&str| call.bytes(arg).filter(|_| known);
        let errno = call.errno().map(str::to_owned);
        Self {
            tid: call.tid(),
            name: call.name().into(),
            ret: call.ret(),
            errno,
            paths: PATH_ARGS.iter().filter_map(of).collect(),
        }
    }
}

fn explained(call: &str) -> Option<Returns> {
    EXPLAINED.iter().find(|(name, ..)| *name == call).map(|(_, class, _)| *class)
}

fn returned(call: &Seen) -> String {
    match (explained(&call.name), call.ret, &call.errno) {
        (Some(Returns::Any), ..) => format!("{} = *", call.name),
        (_, None, Some(errno)) => format!("{} = ? {errno}", call.name),
        (_, None, None) => format!("{} = ?", call.name),
        (_, Some(_), Some(errno)) => format!("{} = -1 {errno}", call.name),
        (Some(Returns::Address), Some(_), None) => format!("{} = address", call.name),
        (Some(Returns::Pid), Some(1..), None) => format!("{} = pid", call.name),
        (_, Some(ret), None) => format!("{} = {ret}", call.name),
    }
}

/// The name of a process: `0`, its second child `0.01`, and so on.
fn way_down(tid: i64, parents: &HashMap<i64, (i64, u32)>) -> String {
    parents.get(&tid).map_or("0".into(), |(parent, n)| format!("{}.{n:02}", way_down(*parent, parents)))
}

/// Sorts calls by process.
fn by_process(calls: &[Seen]) -> BTreeMap<String, Did> {
    // children in the order in which their parent was told of them
    let mut children: HashMap<i64, u32> = HashMap::new();
    let mut parent_of: HashMap<i64, (i64, u32)> = HashMap::new();
    for call in calls {
        let forks = ["fork", "vfork", "clone", "clone3"].contains(&call.name.as_str());
        if let Some(child) = call.ret.filter(|&ret| forks && ret > 0) {
            let n = children.entry(call.tid).or_default();
            parent_of.insert(child, (call.tid, *n));
            *n += 1;
        }
    }
    let mut processes: BTreeMap<String, Did> = BTreeMap::new();
    for call in calls {
        let did = processes.entry(way_down(call.tid, &parent_of)).or_default();
        let count = did.returns.entry(returned(call)).or_default();
        *count = if explained(&call.name) == Some(Returns::Often) { 1 } else { *count + 1 };
        for path in &call.paths {
            *did.paths.entry(format!("{} {:?}", call.name, without_random(path))).or_default() += 1;
        }
        if call.name == "execve" && call.ret == Some(0) {
            did.programs.extend(call.paths.first().map(|p| String::from_utf8_lossy(p).into_owned()));
        }
    }
    processes
}

/// Lines of what only one side has.
fn differences(process: &str, what: &str, strace: &Bag, tape: &Bag) -> Vec<String> {
    let mut keys: Vec<_> = strace.keys().chain(tape.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let count = |bag: &Bag, key: &String| bag.get(key).copied().unwrap_or(0);
    keys.iter()
        .filter(|key| count(strace, key) != count(tape, key))
        .map(|key| format!("{process} {what}: {key}: strace {}, tape {}", count(strace, key), count(tape, key)))
        .collect()
}

#[test]
fn processes_do_what_strace_says() {
    let Some(lab) = Lab::beside() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads/mixed.sh");
    let (script, work) = (script.to_str().expect("UTF-8"), lab.file("work"));
    let (home, at) = (format!("HOME={work}"), format!("cd {work} && exec sh {script} >/dev/null 2>&1"));
    let command = [
        &["env", "-i", "PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", &home, "GIT_CONFIG_NOSYSTEM=1", "PYTHONHASHSEED=0"]
            [..],
        &["GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_AUTHOR_DATE=1700000000 +0000"],
        &["GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_COMMITTER_DATE=1700000000 +0000"],
        &["setarch", "-R", "sh", "-c", &at],
    ]
    .concat();
    let fresh = || {
        fs::remove_dir_all(&work).ok();
        fs::create_dir(&work).expect("mkdir");
    };
    // once without an observer: fills caches, and shows that the script works here
    fresh();
    lab::run(lab.command(command[0]).args(&command[1..])).expect(0);
    fresh();
    let traced = strace::trace(&lab, &[], &command);
    fresh();
    lab.record("t.tape", &[], &command).expect(0);
    lab.assert_whole("t.tape");
    let recorded = lab.calls("t.tape", &["--sort", "end"]);
    // strace prints what returned to the program only; a killed call would be neither here
    assert!(recorded.iter().all(|c| matches!(c.incomplete(), None | Some("no-return"))), "incomplete calls");

    let truth = by_process(&traced.iter().map(Seen::from).collect::<Vec<_>>());
    let tape = by_process(&recorded.iter().map(Seen::from).collect::<Vec<_>>());
    let programs =
        |all: &BTreeMap<String, Did>| all.iter().map(|(k, v)| (k.clone(), v.programs.clone())).collect::<Vec<_>>();
    assert_eq!(programs(&tape), programs(&truth));
    assert!(truth.len() > 30, "only {} processes: the script did not run", truth.len());
    assert!(traced.len() > 5_000, "only {} calls: the script did not run", traced.len());

    let mut different = Vec::new();
    for (name, strace) in &truth {
        let tape = &tape[name];
        let who = format!("{name} {}", strace.programs.last().map_or("(fork)", String::as_str));
        different.extend(differences(&who, "returns", &strace.returns, &tape.returns));
        different.extend(differences(&who, "paths", &strace.paths, &tape.paths));
    }
    assert!(different.is_empty(), "{} differences:\n{}", different.len(), different.join("\n"));
}
