//! Rules of files and build ids, asked of a process that reads what another one opened.

mod common;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use systape_symbols::{Carrier, Lost, RuleReader, run_carrier};
use systape_unwind::{Module, ModuleLimits, RuleSource};

const MOST: u64 = 48 << 20;
const BUDGET: u64 = 1 << 20;

#[test]
#[ignore = "the child of the other tests"]
fn child() {
    common::be_the_child();
}

/// Opens paths; `hang` never ends, `die` does.
#[test]
#[ignore = "the process that opens files for the other tests"]
fn opener() {
    let _ = run_carrier(|what| match what {
        b"hang" => loop {
            std::thread::park();
        },
        b"die" => std::process::abort(),
        path => {
            let file = File::open(Path::new(std::ffi::OsStr::from_bytes(path))).map_err(|error| error.to_string())?;
            Ok((b"with it".to_vec(), file))
        }
    });
    std::process::exit(0);
}

fn command(test: &str) -> Vec<OsString> {
    let words = ["--exact", test, "--ignored", "--nocapture", "--test-threads=1"];
    std::iter::once(std::env::current_exe().unwrap().into_os_string()).chain(words.map(OsString::from)).collect()
}

fn reader() -> RuleReader {
    RuleReader::new(command("child"), Carrier::new(command("opener")))
}

fn open(carrier: &Carrier, path: &Path) -> File {
    carrier.open(path.as_os_str().as_bytes()).unwrap().1
}

#[test]
fn what_is_opened_only_has_a_name() {
    let carrier = Carrier::new(command("opener"));
    let (with, mut file) = carrier.open(b"/proc/self/exe").unwrap();
    assert_eq!(with, b"with it");
    assert!(file.read(&mut [0]).is_err(), "it could be read");
    let none = carrier.open(b"/none").unwrap_err();
    assert!(none.why.contains("No such file") && !none.hangs, "{none:?}");
    let hangs = carrier.open(b"hang").unwrap_err();
    assert!(hangs.hangs && hangs.why.contains("too long"), "{hangs:?}");
    let died = carrier.open(b"die").unwrap_err();
    assert!(!died.hangs && died.why.contains("SIGABRT"), "{died:?}");
    // another one takes its place
    assert!(carrier.open(b"/proc/self/exe").is_ok());
}

#[test]
fn another_process_knows_what_this_one_would() {
    let dir = tempfile::tempdir().unwrap();
    let path = common::build_c(dir.path(), &[]);
    let module = Module::open(&File::open(&path).unwrap(), ModuleLimits { unwind_bytes: MOST }).unwrap();
    let reader = reader();
    let file = open(&reader.carrier(), &path);
    let ident = reader.ident(&file).unwrap();
    assert!(ident.elf && ident.build_id == common::build_id(&path));
    let rules = reader.open(7, &file, MOST).unwrap();
    assert_eq!((rules.has_rules(), rules.memory()), (true, module.memory() as u64));
    let (mut known, mut questions) = (0, 0);
    for offset in 0x1000..0x1400 {
        let address = module.address_of(offset).unwrap();
        assert_eq!(rules.address_of(offset), Some(address));
        let (mut left, mut spent) = (BUDGET, BUDGET);
        let facts = rules.facts(address, &mut left);
        assert_eq!(facts, module.facts(address, &mut spent), "{address:#x}");
        assert!(left < spent || left == BUDGET, "asking costs too");
        questions += usize::from(left < BUDGET);
        known += usize::from(facts.is_some());
    }
    assert!(known > 100, "{known}");
    // of a row there is one question, and one of its first address, where a function may begin; most addresses here are in none
    assert!(questions + 100 < known, "{questions} of {known}");
    assert_eq!(rules.facts(0x1000, &mut 10), None, "without a budget nobody is asked");
    assert_eq!(reader.take_lost(), None);
}

#[test]
fn a_reader_that_dies_is_told_and_another_takes_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = common::build_c(dir.path(), &[]);
    let reader = reader();
    let file = open(&reader.carrier(), &path);
    let rules = reader.open(1, &file, MOST).unwrap();
    let other = reader.open(2, &file, MOST).unwrap();
    let address = rules.address_of(0x1000).unwrap();
    assert!(rules.facts(address, &mut BUDGET.clone()).is_some());
    // both are of this thread: neither is asked anything now
    let me = std::fs::read_link("/proc/thread-self").unwrap();
    let children = std::fs::read_to_string(format!("/proc/{}/children", me.display())).unwrap();
    for pid in children.split_whitespace() {
        let pid = pid.parse().unwrap();
        // SAFETY: a number; it is a child of this very thread and is waited for by nobody else.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        // until all its threads have ended, not its first one only; it stays for whom it belongs to
        // SAFETY: waitid writes one siginfo_t, all of whose bytes may be zero.
        let waited = unsafe {
            libc::waitid(libc::P_PID, pid.cast_unsigned(), &mut std::mem::zeroed(), libc::WEXITED | libc::WNOWAIT)
        };
        assert_eq!(waited, 0);
    }
    assert_eq!(rules.facts(address, &mut BUDGET.clone()), None);
    assert_eq!(reader.take_lost(), Some(Lost { by: Some(1) }));
    // the other one's file went with it
    assert_eq!(other.facts(address, &mut BUDGET.clone()), None);
    assert_eq!(reader.take_lost(), Some(Lost { by: None }));
    let again = reader.open(2, &open(&reader.carrier(), &path), MOST).unwrap();
    assert!(again.facts(address, &mut BUDGET.clone()).is_some());
    reader.forget();
    assert_eq!(again.facts(address, &mut BUDGET.clone()), None);
}
