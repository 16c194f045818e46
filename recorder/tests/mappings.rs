//! Address spaces against what programs say of themselves: their own addresses, maps and clock, readelf's build ids.
//!
//! The side-band and other processes' files need root, and a container may refuse the former even so: these tests say when they are skipped.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use systape_recorder::mappings::{Backing, Lost, Region, Tracker, TrackerConfig, proc_maps};
use systape_recorder::own::clock::monotonic;
use systape_symbols::{Carrier, RuleReader};

#[test]
#[ignore = "the reader of files of the other tests"]
fn child() {
    let _ = systape_symbols::run_child();
    std::process::exit(0);
}

#[test]
#[ignore = "the process that opens files for the other tests"]
fn opener() {
    let _ = systape_recorder::commands::opening::run();
    std::process::exit(0);
}

/// Reads files in a process that is [`child`], which [`opener`] opens.
fn reader() -> RuleReader {
    let this = std::env::current_exe().unwrap().into_os_string();
    let command = |test: &str| {
        let words = ["--exact", test, "--ignored", "--nocapture", "--test-threads=1"];
        std::iter::once(this.clone()).chain(words.map(Into::into)).collect()
    };
    RuleReader::new(command("child"), Carrier::new(command("opener")))
}

/// A tracker that has scanned all processes; None where the side-band is refused, or files of others.
fn tracker(config: &TrackerConfig) -> Option<Tracker> {
    // SAFETY: only reads an id.
    if unsafe { libc::geteuid() } != 0 {
        println!("SKIPPED: not root");
        return None;
    }
    let (mut tracker, notes) = Tracker::open(config, reader());
    for note in &notes {
        println!("note: {note}");
    }
    if !tracker.has_sideband() {
        println!("SKIPPED: no side-band");
        return None;
    }
    tracker.scan(&proc_maps::pids());
    Some(tracker)
}

/// Reads every millisecond while `work` runs elsewhere.
fn while_reading<T: Send>(tracker: &mut Tracker, work: impl FnOnce() -> T + Send) -> T {
    let (done, ended) = mpsc::channel::<()>();
    let result = thread::scope(|scope| {
        let work = scope.spawn(|| {
            let result = work();
            drop(done);
            result
        });
        while ended.recv_timeout(Duration::from_millis(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
            tracker.read();
        }
        work.join().unwrap()
    });
    tracker.read();
    result
}

fn cc(dir: &Path, name: &str, source: &str, arguments: &[&str]) -> PathBuf {
    let (from, to) = (dir.join(format!("{name}.c")), dir.join(name));
    fs::write(&from, source).unwrap();
    let mut command = Command::new("cc");
    let status = command.args(["-O1", "-Wl,--build-id", "-o"]).arg(&to).arg(&from).args(arguments).status().unwrap();
    assert!(status.success());
    to
}

/// By another program's reading.
fn build_id(path: &Path) -> Vec<u8> {
    let out = Command::new("readelf").arg("-n").arg(path).output().unwrap().stdout;
    let text = String::from_utf8(out).unwrap();
    let Some((_, id)) = text.split_once("Build ID: ") else { return Vec::new() };
    let id = id.lines().next().unwrap().trim();
    (0..id.len()).step_by(2).map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap()).collect()
}

fn libc_path() -> PathBuf {
    let maps = proc_maps::read(std::process::id()).unwrap();
    let found = maps.into_iter().find(|m| m.path.ends_with(b"/libc.so.6")).unwrap();
    String::from_utf8(found.path).unwrap().into()
}

/// Path and build id of a region's file, and whether it can be read.
fn file_of(tracker: &mut Tracker, region: &Region) -> (PathBuf, Vec<u8>, Result<(), String>) {
    let Backing::File(id) = region.backing else { panic!("{region:?}") };
    let mapping = tracker.files().mapping(id).unwrap().clone();
    let opened = tracker.files_mut().get(id).map(|_| ()).map_err(str::to_owned);
    (String::from_utf8(mapping.path).unwrap().into(), mapping.build_id, opened)
}

/// Address, file offset and name as the program itself found them in its /proc/self/maps.
fn expect_at(tracker: &mut Tracker, pid: u32, address: u64, path: &Path, offset: u64) {
    let region = *tracker.find(pid, address).unwrap_or_else(|| panic!("{pid} has nothing at {address:#x}"));
    assert_eq!(region.offset(address), offset);
    let (found, id, opened) = file_of(tracker, &region);
    assert_eq!(found, path);
    assert_eq!(id, build_id(path));
    assert_eq!(opened, Ok(()));
}

/// Prints "NAME address file-offset path" for an address.
const WHERE: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static void where(const char *name, void *at)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[8192], path[4096];
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long start, end, offset, address = (unsigned long)at;
		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095[^\n]", &start, &end, &offset, path) == 4 &&
		    start <= address && address < end)
			printf("%s %d %lu %lu %lu %s\n", name, getpid(), address, address - start + offset,
			       now.tv_sec * 1000000000ul + now.tv_nsec, path);
	}
	fclose(maps);
	fflush(stdout);
}
"#;

#[derive(Debug)]
struct Place {
    name: String,
    pid: u32,
    address: u64,
    offset: u64,
    time: u64,
    path: PathBuf,
}

fn place(line: &str) -> Place {
    let mut fields = line.trim_end().splitn(6, ' ');
    let mut next = || fields.next().unwrap().to_owned();
    Place {
        name: next(),
        pid: next().parse().unwrap(),
        address: next().parse().unwrap(),
        offset: next().parse().unwrap(),
        time: next().parse().unwrap(),
        path: next().into(),
    }
}

fn places(program: &Path, arguments: &[&Path]) -> Vec<Place> {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(place).collect()
}

#[test]
fn short_processes_are_resolved_to_the_last() {
    const COUNT: usize = 200;
    let Some(mut tracker) = tracker(&TrackerConfig::default()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let source = format!("{WHERE}int main(void) {{ where(\"main\", main); where(\"libc\", puts); return 0; }}");
    let program = cc(dir.path(), "short", &source, &[]);
    let truth = fs::canonicalize("/bin/true").unwrap();

    let (quick, told) = while_reading(&mut tracker, || {
        let quick: Vec<u32> = (0..COUNT)
            .map(|_| {
                let mut child = Command::new(&truth).spawn().unwrap();
                child.wait().unwrap();
                child.id()
            })
            .collect();
        let told: Vec<Place> = (0..COUNT).flat_map(|_| places(&program, &[])).collect();
        (quick, told)
    });
    assert_eq!(told.len(), 2 * COUNT);
    tracker.apply_until(u64::MAX);

    let libc = libc_path();
    let (true_id, libc_id) = (build_id(&truth), build_id(&libc));
    let mut resolved = 0;
    for pid in quick {
        let regions: Vec<Region> = tracker.regions(pid).copied().collect();
        let mut files = BTreeMap::new();
        let mut vdso = 0;
        for region in regions {
            match region.backing {
                Backing::File(_) => {
                    let (path, id, opened) = file_of(&mut tracker, &region);
                    assert_eq!(opened, Ok(()));
                    files.insert(path, id);
                }
                Backing::Vdso => {
                    assert_eq!(region.offset(region.start), 0);
                    vdso += 1;
                }
                Backing::Jit | Backing::Unknown => panic!("{region:?}"),
            }
        }
        assert_eq!(files.get(&truth), Some(&true_id));
        assert_eq!(files.get(&libc), Some(&libc_id));
        assert_eq!(vdso, 1);
        resolved += 1;
    }
    for place in &told {
        expect_at(&mut tracker, place.pid, place.address, &place.path, place.offset);
        resolved += 1;
    }
    println!("{resolved} of {} resolved, {:?}, lost {:?}", 3 * COUNT, tracker.files().counts(), tracker.lost());
    let lost = tracker.lost();
    assert_eq!(Lost { late: 0, ..lost }, Lost::default());

    // they have ended: nothing of them stays
    let pids: Vec<u32> = told.iter().map(|place| place.pid).collect();
    tracker.sweep(u64::MAX);
    assert!(pids.iter().all(|pid| !tracker.is_known(*pid)));
}

/// Runs `count` copies of a program that deletes itself at once; returns how many were opened.
fn self_deleting(count: usize, exec_watch: bool) -> Option<usize> {
    let mut tracker = tracker(&TrackerConfig { exec_watch, ..TrackerConfig::default() })?;
    let dir = tempfile::tempdir().unwrap();
    let source = "#include <unistd.h>\nint main(int argc, char **argv) { return unlink(argv[0]); }";
    let program = cc(dir.path(), "gone", source, &["-static"]);
    let id = build_id(&program);
    let copies: Vec<PathBuf> = (0..count).map(|i| dir.path().join(format!("gone{i}"))).collect();
    for copy in &copies {
        fs::copy(&program, copy).unwrap();
    }
    let pids = while_reading(&mut tracker, || {
        let run = |path: &PathBuf| {
            let mut child = Command::new(path).spawn().unwrap();
            assert!(child.wait().unwrap().success());
            child.id()
        };
        copies.iter().map(run).collect::<Vec<_>>()
    });
    tracker.apply_until(u64::MAX);
    let mut opened = 0;
    for (pid, path) in pids.into_iter().zip(&copies) {
        let regions: Vec<Region> = tracker.regions(pid).copied().collect();
        let region = regions.iter().find(|r| matches!(r.backing, Backing::File(_))).unwrap();
        let (found, found_id, result) = file_of(&mut tracker, region);
        assert_eq!(&found, path);
        match result {
            Ok(()) => {
                assert_eq!(found_id, id);
                opened += 1;
            }
            Err(reason) => assert!(reason.contains("had ended"), "{reason}"),
        }
    }
    println!("{opened} of {count} opened, watching for exec: {exec_watch}");
    Some(opened)
}

#[test]
fn a_program_that_deletes_itself_is_open() {
    const COUNT: usize = 50;
    // without the watch it is luck
    self_deleting(COUNT, false);
    if let Some(opened) = self_deleting(COUNT, true) {
        assert_eq!(opened, COUNT);
    }
}

#[test]
fn a_library_at_the_place_of_another() {
    let Some(mut tracker) = tracker(&TrackerConfig::default()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let library = |name: &str| {
        let source = format!("int there(void) {{ return {}; }}", name.len());
        cc(dir.path(), name, &source, &["-shared", "-fPIC", "-nostdlib"])
    };
    let (one, other) = (library("one.so"), library("another.so"));
    let source = format!(
        "{WHERE}
        #include <dlfcn.h>
        int main(int argc, char **argv) {{
            for (int i = 0; i < 20; i++) {{
                void *library = dlopen(argv[1 + i % 2], RTLD_NOW);
                where(i % 2 ? \"other\" : \"one\", dlsym(library, \"there\"));
                dlclose(library);
            }}
            return 0;
        }}"
    );
    let program = cc(dir.path(), "switch", &source, &["-ldl"]);
    let told = while_reading(&mut tracker, || places(&program, &[&one, &other]));
    assert_eq!(told.len(), 20);
    let same = told.windows(2).filter(|pair| pair[0].address == pair[1].address).count();
    println!("{same} of 19 at the same place");
    assert!(same > 0);
    for place in &told {
        let expect = if place.name == "one" { &one } else { &other };
        tracker.apply_until(place.time);
        expect_at(&mut tracker, place.pid, place.address, expect, place.offset);
    }
}

#[test]
fn a_fork_without_exec_has_its_parents_mappings() {
    let Some(mut tracker) = tracker(&TrackerConfig::default()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let source = format!(
        "{WHERE}
        #include <sys/wait.h>
        int main(void) {{
            for (int i = 0; i < 50; i++) {{
                if (fork() == 0) {{ where(\"child\", main); where(\"libc\", puts); _exit(0); }}
                wait(NULL);
            }}
            where(\"parent\", main);
            return 0;
        }}"
    );
    let program = cc(dir.path(), "fork", &source, &[]);
    let told = while_reading(&mut tracker, || places(&program, &[]));
    assert_eq!(told.len(), 101);
    for place in &told {
        tracker.apply_until(place.time);
        expect_at(&mut tracker, place.pid, place.address, &place.path, place.offset);
    }
    println!("{} of {} resolved", told.len(), told.len());
}

/// A program that waits for a line before it ends.
struct Waiting {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Waiting {
    fn start(program: &Path, arguments: &[&Path]) -> Self {
        let mut command = Command::new(program);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout }
    }

    fn place(&mut self) -> Place {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        place(&line)
    }

    fn end(mut self) {
        let _ = self.stdin.take().unwrap().write_all(b"\n");
        self.child.wait().unwrap();
    }
}

#[test]
fn a_replaced_library_is_each_processs_own() {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("lib.so");
    let make = |name: &str, value: u32| {
        let source = format!("int there(void) {{ return {value}; }}");
        cc(dir.path(), name, &source, &["-shared", "-fPIC", "-nostdlib"])
    };
    let (old, new) = (make("old.so", 1), make("new.so", 2));
    let (old_id, new_id) = (build_id(&old), build_id(&new));
    assert_ne!(old_id, new_id);
    let source = format!(
        "{WHERE}
        #include <dlfcn.h>
        int main(int argc, char **argv) {{
            where(\"there\", dlsym(dlopen(argv[1], RTLD_NOW), \"there\"));
            getchar();
            return 0;
        }}"
    );
    let program = cc(dir.path(), "wait", &source, &["-ldl"]);

    // one has the old library mapped before anything is tracked, and the library is replaced before that, too
    fs::rename(&old, &library).unwrap();
    let mut before = Waiting::start(&program, &[&library]);
    let first = before.place();
    fs::rename(&new, &library).unwrap();
    let Some(mut tracker) = tracker(&TrackerConfig::default()) else { return before.end() };
    let mut after = Waiting::start(&program, &[&library]);
    let second = after.place();
    tracker.read();
    tracker.apply_until(monotonic());
    for (place, id) in [(&first, &old_id), (&second, &new_id)] {
        let region = *tracker.find(place.pid, place.address).unwrap();
        assert_eq!(region.offset(place.address), place.offset);
        assert_eq!(file_of(&mut tracker, &region), (library.clone(), id.clone(), Ok(())));
    }
    before.end();
    after.end();
}

#[test]
fn files_of_other_mount_namespaces_and_roots() {
    let Some(mut tracker) = tracker(&TrackerConfig::default()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let source = format!("{WHERE}int main(void) {{ where(\"main\", main); getchar(); return 0; }}");
    let program = cc(dir.path(), "inside", &source, &["-static"]);
    let id = build_id(&program);
    if !Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success()) {
        return println!("SKIPPED: no mount namespaces");
    }
    // a tmpfs that nobody else sees, and a root in it with the /proc that the program reads
    let setup =
        "set -e; mkdir -p $1/there; mount -t tmpfs none $1/there; mkdir $1/there/proc; cp $1/inside $1/there/inside;
        mount --rbind /proc $1/there/proc";
    let there = dir.path().join("there/inside");
    for (run, path) in [("exec $1/there/inside", &there), ("exec chroot $1/there /inside", &PathBuf::from("/inside"))] {
        let script = format!("{setup}; {run}");
        let arguments = ["-m", "sh", "-c", &script, "sh", dir.path().to_str().unwrap()].map(Path::new);
        let mut child = Waiting::start(Path::new("unshare"), &arguments);
        let place = child.place();
        tracker.read();
        tracker.apply_until(monotonic());
        let region = *tracker.find(place.pid, place.address).unwrap();
        assert_eq!(region.offset(place.address), place.offset);
        assert!(!there.exists());
        assert_eq!(file_of(&mut tracker, &region), (path.clone(), id.clone(), Ok(())));
        child.end();
    }
}

#[test]
fn a_layer_of_overlayfs_is_the_file_itself() {
    let Some(mut tracker) = tracker(&TrackerConfig::default()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let source = format!("{WHERE}int main(void) {{ where(\"main\", main); getchar(); return 0; }}");
    let program = cc(dir.path(), "inside", &source, &["-static"]);
    let id = build_id(&program);
    // layers of two file systems: inode numbers seen from above are not those below. The first look is at the lower layer's program, the
    // second at its copy in the upper one
    let setup = "set -e; cd $1; mkdir low up all; mount -t tmpfs none low; mount -t tmpfs none up; mkdir up/top up/work
        cp inside low/inside; mount -t overlay -o lowerdir=low,upperdir=up/top,workdir=up/work none all";
    let arguments = |script: &str| {
        let script = format!("{setup}; {script}");
        ["-m", "sh", "-c", &script, "sh", dir.path().to_str().unwrap()].map(str::to_owned)
    };
    if !Command::new("unshare").args(arguments("true")).status().is_ok_and(|status| status.success()) {
        return println!("SKIPPED: no overlayfs");
    }
    for script in ["exec $1/all/inside", "chmod 700 all/inside; exec $1/all/inside"] {
        let _ = ["low", "up", "all"].map(|name| fs::remove_dir(dir.path().join(name)));
        let arguments = arguments(script);
        let mut child = Waiting::start(Path::new("unshare"), &arguments.each_ref().map(Path::new));
        let place = child.place();
        tracker.read();
        tracker.apply_until(monotonic());
        let region = *tracker.find(place.pid, place.address).unwrap();
        assert_eq!(region.offset(place.address), place.offset);
        let found = file_of(&mut tracker, &region);
        assert_eq!(found, (dir.path().join("all/inside"), id.clone(), Ok(())), "{script}");
        child.end();
    }
}

/// A kernel bug lets the options of one side-band reach into the records of another (see mappings/sideband.rs).
#[test]
fn perf_works_beside_the_side_band() {
    let Some(mut tracker) = tracker(&TrackerConfig::default()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("perf.data");
    let perf = |arguments: &[&str]| Command::new("perf").args(arguments).output();
    if !perf(&["--version"]).is_ok_and(|out| out.status.success()) {
        return println!("SKIPPED: no perf");
    }
    for _ in 0..5 {
        let recorded = perf(&["record", "-q", "-e", "cpu-clock", "-o", data.to_str().unwrap(), "--", "true"]).unwrap();
        assert!(recorded.status.success(), "{recorded:?}");
        tracker.read();
        let maps = perf(&["script", "-i", data.to_str().unwrap(), "--show-mmap-events"]).unwrap();
        let maps = String::from_utf8(maps.stdout).unwrap();
        let libc = maps.lines().find(|line| line.contains("PERF_RECORD_MMAP2") && line.contains("libc.so.6")).unwrap();
        assert!(!libc.contains("<"), "no build id was asked for: {libc}");
    }
}

#[test]
fn an_executed_memfd_is_a_file() {
    let Some(mut tracker) = tracker(&TrackerConfig::default()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let waits = "#include <stdio.h>\nint main(void) { puts(\"ready\"); fflush(stdout); return getchar() == 0; }";
    let image = cc(dir.path(), "image", waits, &["-static"]);
    let source = "
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <sys/mman.h>
        #include <sys/sendfile.h>
        #include <unistd.h>
        int main(int argc, char **argv, char **environment) {
            int from = open(argv[1], O_RDONLY), to = memfd_create(\"image\", MFD_CLOEXEC);
            while (sendfile(to, from, NULL, 1 << 20) > 0) { }
            return fexecve(to, argv, environment);
        }";
    let mut child = Waiting::start(&cc(dir.path(), "run", source, &[]), &[&image]);
    let mut line = String::new();
    child.stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    tracker.read();
    tracker.apply_until(monotonic());
    let regions: Vec<Region> = tracker.regions(child.child.id()).copied().collect();
    let region = regions.iter().find(|r| matches!(r.backing, Backing::File(_))).unwrap();
    assert_eq!(file_of(&mut tracker, region), ("/memfd:image".into(), build_id(&image), Ok(())));
    child.end();
}

#[test]
fn code_made_at_run_time_has_no_file() {
    let Some(mut tracker) = tracker(&TrackerConfig::default()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let source = "
        #define _GNU_SOURCE
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <unistd.h>
        static void tell(void *at) { printf(\"jit %d %lu 0 0 -\\n\", getpid(), (unsigned long)at); }
        int main(void) {
            char *anonymous = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            mprotect(anonymous + 4096, 4096, PROT_READ | PROT_EXEC);
            tell(anonymous + 4096);
            int memfd = memfd_create(\"code\", 0);
            ftruncate(memfd, 4096);
            tell(mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, memfd, 0));
            tell(mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
            char name[] = \"/tmp/codeXXXXXX\";
            int fd = mkstemp(name);
            unlink(name);
            ftruncate(fd, 4096);
            tell(mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0));
            fflush(stdout);
            getchar();
            return 0;
        }";
    let program = cc(dir.path(), "jit", source, &[]);
    let mut child = Waiting::start(&program, &[]);
    let told: Vec<Place> = (0..4).map(|_| child.place()).collect();
    tracker.read();
    tracker.apply_until(monotonic());
    for place in told {
        let region = tracker.find(place.pid, place.address).unwrap();
        assert_eq!(region.backing, Backing::Jit, "{place:?}");
        assert_eq!(region.offset(place.address), place.address);
    }
    child.end();
}

#[test]
fn without_the_side_band_proc_is_read() {
    let (mut tracker, notes) =
        Tracker::open(&TrackerConfig { sideband: false, exec_watch: false, ..TrackerConfig::default() }, reader());
    assert_eq!(notes, [""; 0]);
    let pid = std::process::id();
    assert!(!tracker.is_known(pid));
    assert!(tracker.look_again(pid));
    assert!(!tracker.look_again(pid), "not twice at once");
    let here = without_the_side_band_proc_is_read as *const () as u64;
    let region = *tracker.find(pid, here).unwrap();
    let (path, id, opened) = file_of(&mut tracker, &region);
    let exe = std::env::current_exe().unwrap();
    assert_eq!((path, id, opened), (exe.clone(), build_id(&exe), Ok(())));
}

#[test]
fn a_ring_that_is_too_small_loses_by_count_and_proc_is_read_again() {
    let Some(mut tracker) = tracker(&TrackerConfig { ring_bytes: 4096, ..TrackerConfig::default() }) else { return };
    tracker.read();
    let before = monotonic();
    let truth = fs::canonicalize("/bin/true").unwrap();
    // nobody reads meanwhile
    for _ in 0..100 {
        Command::new(&truth).status().unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let source = format!("{WHERE}int main(void) {{ where(\"main\", main); getchar(); return 0; }}");
    let mut child = Waiting::start(&cc(dir.path(), "late", &source, &[]), &[]);
    let place = child.place();
    tracker.read();
    // the kernel tells of the loss with the next record that fits, on the same CPU
    for _ in 0..100 {
        Command::new(&truth).status().unwrap();
        tracker.read();
    }
    let lost = tracker.lost();
    println!("{lost:?}");
    assert!(lost.records > 0);
    let (first, last) = tracker.take_lost_span().unwrap();
    assert!(before < last && first <= last && last <= monotonic(), "{first} {last}");
    assert_eq!(tracker.take_lost_span(), None);
    tracker.apply_until(monotonic());
    expect_at(&mut tracker, place.pid, place.address, &place.path, place.offset);
    child.end();
}
