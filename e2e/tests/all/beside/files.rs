//! What `analyze files` says of opens, reads and writes, against a program that logs what the kernel says of each open and
//! whose reads and writes are known, and against strace.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use systape_e2e::call::from_hex;
use systape_e2e::disk::{Loop, has};
use systape_e2e::lab::run;
use systape_e2e::more::Mounted;
use systape_e2e::{Background, Lab, strace};

/// The program, and what it is called when it runs itself again.
const OURS: &str = "--comm=files,exe";

/// An open as the program logged it.
#[derive(Debug)]
struct Logged {
    pid: i64,
    result: i64,
    dir: Option<PathBuf>,
    name: String,
}

fn text(hex: &str) -> String {
    String::from_utf8(from_hex(hex)).expect("UTF-8")
}

fn logged(stdout: &str) -> Vec<Logged> {
    let open = |line: &str| {
        let [pid, result, dir, name] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let dir = (dir != "-").then(|| text(dir).into());
        Logged { pid: pid.parse().expect("pid"), result: result.parse().expect("result"), dir, name: text(name) }
    };
    stdout.lines().map(open).collect()
}

#[track_caller]
fn rows(lab: &Lab, tape: &str, arguments: &[&str]) -> Vec<Value> {
    let run = lab.analyze(&[&["files", tape, "--format", "json"], arguments].concat()).expect(0);
    assert_eq!(run.complaints(), "");
    run.json()
}

/// Where `file` is; the program has no symbolic links, but goes up by `..`, in a loop further than a path may be long.
fn real(file: &str) -> PathBuf {
    let file = &file.replace("/d/..", "");
    let (dir, name) = file.rsplit_once('/').expect("a full path");
    fs::canonicalize(dir).map_or_else(|_| file.into(), |dir| dir.join(name))
}

/// Opens by relative names, which are the program's own: those of the loader are not.
fn own(rows: Vec<Value>) -> Vec<Value> {
    rows.into_iter().filter(|row| row["name"].as_str().is_some_and(|name| !name.starts_with('/'))).collect()
}

#[test]
fn opens_have_the_paths_that_the_kernel_opened() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("files", &[]);
    let run = lab.record("t.tape", &[], &[&program]).expect(0);
    lab.assert_whole("t.tape");
    let (log, opens) = (logged(&run.text()), own(rows(&lab, "t.tape", &["--opens", OURS])));
    assert_eq!((log.len(), opens.len()), (21, 21), "{opens:?}");
    let top = lab.dir().canonicalize().expect("directory");
    let mut times: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for (logged, row) in log.iter().zip(&opens) {
        let result = row["fd"].as_i64().unwrap_or_else(|| -row["errno_code"].as_i64().expect("an error"));
        let of = (row["pid"].as_i64(), row["name"].as_str());
        assert_eq!((of, result), ((Some(logged.pid), Some(&*logged.name)), logged.result), "{row}");
        let Some(dir) = &logged.dir else {
            // relative to nobody knows what: known is what was opened
            let file = row["file"].as_str().map(PathBuf::from);
            assert_eq!(file.is_some(), result >= 0, "{row}");
            if let Some(file) = file {
                assert!(file.ends_with(&logged.name) && file.is_file(), "{row}");
                *times.entry(file).or_default() += 1;
            }
            continue;
        };
        let mut path = dir.join(logged.name.trim_start_matches("./"));
        let file = row["file"].as_str().unwrap_or_else(|| panic!("{logged:?}: {row}"));
        if result >= 0 && !path.starts_with(&top) {
            // in a chroot: the kernel's name begins outside
            path = top.join(path.strip_prefix("/").expect("a full path"));
        }
        assert_eq!(real(file), path, "{row}");
        *times.entry(path).or_default() += 1;
    }

    let mut sums: BTreeMap<PathBuf, [u64; 5]> = BTreeMap::new();
    for row in rows(&lab, "t.tape", &["--top", "0", OURS]) {
        let Some(file) = row["file"].as_str().map(real).filter(|file| file.starts_with(&top)) else { continue };
        let number = |name: &str| match &row[name] {
            Value::String(text) => text.parse().expect("a number"),
            value => value.as_u64().expect("a number"),
        };
        assert_eq!((&row["reads_at_least"], &row["write_bytes_at_least"]), (&false.into(), &false.into()), "{row}");
        // of two opens nobody knows of what: they are told once, below
        assert_eq!(row["opens_at_least"], false, "{row}");
        let sum = sums.entry(file).or_default();
        let more = ["opens", "reads", "read_bytes", "writes", "write_bytes"].map(number);
        sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    let of = |name: &str| sums[&top.join(name)];
    let opened = |name: &str| times[&top.join(name)];
    assert_eq!(of("top"), [opened("top"), 2, 100, 3, 300]);
    assert_eq!(of("d/one"), [opened("d/one"), 5, 40, 4, 40]);
    assert_eq!(of("d/e/two"), [opened("d/e/two"), 0, 0, 1, 1000]);
    assert_eq!(of("d/e/new\nline/file"), [1, 0, 0, 0, 0]);
    assert_eq!(of("d/absent"), [1, 0, 0, 0, 0]);

    let text = lab.analyze(&["files", "t.tape"]).expect(0).text();
    assert!(text.contains("calls on files that are not known: other rows may lack them"), "{text}");

    // one line a call that took time, as many as were added up
    let lines = rows(&lab, "t.tape", &["--slower", "0ns", OURS]);
    let calls: u64 = rows(&lab, "t.tape", &["--by", "syscall", "--top", "0", OURS])
        .iter()
        .map(|row| row["calls"].as_u64().expect("calls"))
        .sum();
    assert_eq!(lines.len() as u64, calls);
    assert!(lines.iter().all(|row| row["dur_ns"].as_i64().is_some_and(|ns| ns > 0)));
}

#[test]
fn opens_are_those_that_strace_sees() {
    let (Some(lab), other) = (Lab::beside(), Lab::plain()) else { return };
    let program = lab.cc("files", &[]);
    lab.record("t.tape", &[], &[&program]).expect(0);
    let opens = rows(&lab, "t.tape", &["--opens", OURS]);
    let name = |row: &Value| row["name"].as_str().expect("a name").to_owned();
    let seen: Vec<_> = opens.iter().map(|row| (name(row), row["errno"].as_str().map(str::to_owned))).collect();
    let local = |path: String| path.replace(other.dir().to_str().expect("UTF-8"), lab.dir().to_str().expect("UTF-8"));
    let traced: Vec<_> = strace::trace(&other, &["-e", "trace=open,openat,openat2,creat"], &[&program])
        .into_iter()
        .map(|call| {
            let path = call.bytes(usize::from(call.name.starts_with("openat"))).expect("a path");
            (local(String::from_utf8(path).expect("UTF-8")), call.errno)
        })
        .collect();
    assert!(traced.len() > 21, "{traced:?}");
    assert_eq!(seen, traced);
}

#[test]
fn without_changes_of_directories_relative_paths_are_not_known() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("files", &[]);
    let run = lab.record("t.tape", &["-e", "openat"], &[&program]).expect(0);
    let (log, opens) = (logged(&run.text()), own(rows(&lab, "t.tape", &["--opens", OURS])));
    assert_eq!(opens.len(), log.len());
    // what was opened is known, and those by a descriptor of a directory; not what could not be opened by a relative name
    let (opened, failed): (Vec<_>, Vec<_>) = opens.iter().partition(|row| row["fd"].is_number());
    assert!(opened.len() > 10 && opened.iter().all(|row| row["file"].is_string()), "{opened:?}");
    let known: Vec<&str> = failed.iter().filter_map(|row| row["file"].as_str()).collect();
    assert_eq!((failed.len(), known.len()), (3, 1), "{failed:?}");
}

#[test]
fn a_process_that_moves_while_the_recording_begins_is_nowhere_wrong() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("files", &[]);
    let mut command = lab.command(&program);
    let loops = Background::start(command.arg("loop"));
    lab.until("it runs", || lab.path("ready").exists());
    let top = lab.dir().canonicalize().expect("directory");
    let mut known = 0;
    for _ in 0..6 {
        let record = lab.attach("t.tape", &["-p", &loops.pid_text()]);
        std::thread::sleep(std::time::Duration::from_millis(50));
        record.stop(libc::SIGINT).expect(0);
        let opens = own(rows(&lab, "t.tape", &["--opens"]));
        assert!(opens.len() > 10, "{opens:?}");
        for row in opens {
            let name = row["name"].as_str().expect("a name");
            let expected = if name == "one" { top.join("d/one") } else { top.join(name) };
            if let Some(file) = row["file"].as_str() {
                assert_eq!(real(file), expected, "{row}");
                known += 1;
            }
        }
    }
    fs::write(lab.path("stop"), "").expect("stop");
    loops.wait().expect(0);
    println!("{known} paths were known");
}

/// Reads pages of a file in an order with repeats, each by pread64 if mincore(2) says that the page cache has it, else by readv.
/// Prints how many of each. Given `wait`, it says that it is ready and waits for a file first.
const CACHED: &str = r#"
import ctypes, mmap, os, random, sys, time
path, pages, reads = sys.argv[1], 256, 600
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open(path, os.O_RDWR)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
view = mmap.mmap(fd, pages * 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(view))
if 'wait' in sys.argv:
    open('ready', 'w').close()
    while not os.path.exists('go'):
        time.sleep(0.01)
seen = ctypes.create_string_buffer(1)
random.seed(7)
cached = missed = 0
for _ in range(reads):
    page = random.randrange(pages)
    assert libc.mincore(ctypes.c_void_p(at + page * 4096), 4096, seen) == 0
    if seen.raw[0] & 1:
        cached += len(os.pread(fd, 4096, page * 4096)) == 4096
    else:
        os.lseek(fd, page * 4096, os.SEEK_SET)
        missed += os.readv(fd, [bytearray(4096)]) == 4096
print(cached, missed)
"#;

#[test]
fn reads_from_the_page_cache_are_those_of_mincore() {
    let Some(lab) = Lab::with_bpf() else { return };
    let Some(disk) = Loop::new(&lab, "image", 64 << 20) else { return };
    if !has("mkfs.ext4") {
        return;
    }
    run(lab.command("mkfs.ext4").args(["-q", "-F", &disk.path])).expect(0);
    let _mounted = Mounted::disk(&lab, "ext4", &disk.path);
    let data = lab.path("ext4/data");
    fs::write(&data, vec![7; 256 * 4096]).expect("data");
    run(lab.command("sync").arg(&data)).expect(0);
    fs::write(lab.path("cached.py"), CACHED).expect("program");
    let (script, file) = (lab.path("cached.py").display().to_string(), data.display().to_string());
    let told = |tape: &str, text: &str| {
        let counts: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [cached, missed] = counts[..] else { panic!("{text}") };
        assert!(cached > 100 && missed > 100, "{text}");
        let rows = rows(&lab, tape, &["--by", "file,syscall"]);
        let of = |syscall: &str| {
            let row = rows.iter().find(|row| row["file"] == file.as_str() && row["syscall"] == syscall).expect("a row");
            (row["reads"].as_u64(), row["cached_reads"].as_u64())
        };
        assert_eq!(of("pread64"), (Some(cached), Some(cached)), "{rows:?}");
        assert_eq!(of("readv"), (Some(missed), Some(0)), "{rows:?}");
    };
    // with calls that are counted, those that are stored go another way
    for options in [&[][..], &["--duration", "0ns"], &["-e", "pread64,readv,openat"]] {
        let run = lab.record("t.tape", options, &["python3", &script, &file]).expect(0);
        told("t.tape", &run.text());
    }
    let mut command = lab.command("python3");
    let waits = Background::start(command.args([&script, &file, "wait"]));
    lab.until("it is ready", || lab.path("ready").exists());
    let record = lab.attach("p.tape", &["-p", &waits.pid_text()]);
    fs::write(lab.path("go"), "").expect("go");
    let text = waits.wait().expect(0).text();
    record.stop(libc::SIGINT).expect(0);
    told("p.tape", &text);
    // without switches nobody knows who waited
    lab.record("n.tape", &["--families", "syscall,process,block"], &["python3", &script, &file]).expect(0);
    let unknown = rows(&lab, "n.tape", &["--rank", "reads"]);
    assert!(unknown[0]["reads"].as_u64() > Some(0) && unknown[0]["cached_reads"].is_null(), "{unknown:?}");
}
