//! Calls of functions: what a program says it did, whatever way they end, and what bpftrace sees of the same run.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use systape_e2e::lab::run;
use systape_e2e::rows::args;
use systape_e2e::{Background, Lab};

/// How often each kind of end is among the unpaired ones.
fn ends(lab: &Lab, function: &str) -> BTreeMap<String, usize> {
    let mut ends = BTreeMap::new();
    for row in lab.rows("t.tape", &format!("uprobe:{function}.unpaired")) {
        *ends.entry(args(&row)["end"].as_str().expect("end").to_owned()).or_default() += 1;
    }
    ends
}

#[test]
fn calls_are_the_programs() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cxx("calls", &[]);
    let spec = |function: &str| format!("{program}:{function}");
    let specs = [
        spec("recurse(n=int)->long"),
        spec("jumps(n=int,why=string)->int"),
        spec("throws(n=int)->int"),
        spec("stays(program=string)->void"),
        spec("says(n=int,loud=bool)->string"),
        spec("forks(n=int)->int"),
    ];
    let options: Vec<&str> = specs.iter().flat_map(|spec| ["--uprobe", spec]).collect();
    lab.record("t.tape", &options, &[&program, "/bin/true"]).expect(0);
    lab.assert_whole("t.tape");

    // a sum each, of the innermost first
    let sums = lab.rows("t.tape", "uprobe:recurse");
    assert_eq!(sums.len(), 50 * 21, "{:?}", sums.last());
    for (at, row) in sums.iter().enumerate() {
        let n = at as i64 % 21;
        assert_eq!((&args(row)["n"], &args(row)["ret"]), (&n.into(), &(n * (n + 1) / 2).into()), "{at}: {row}");
    }
    let inside = |outer: &Value, inner: &Value| args(outer)["dur_ns"].as_u64() > args(inner)["dur_ns"].as_u64();
    assert!(
        sums.chunks(21).all(|one| one.windows(2).all(|pair| inside(&pair[1], &pair[0]))),
        "an outer call is longer"
    );

    let jumps = lab.rows("t.tape", "uprobe:jumps");
    let returned: Vec<i64> = (0..300).filter(|n| n % 3 != 0).collect();
    assert_eq!(jumps.iter().map(|row| args(row)["n"].as_i64().expect("n")).collect::<Vec<_>>(), returned);
    // nobody had read the page of the text before the first call
    assert!(jumps.iter().skip(1).all(|row| args(row)["why"] == "three"), "{jumps:?}");
    assert!(jumps.iter().all(|row| args(row)["ret"].as_i64() == args(row)["n"].as_i64().map(|n| n + 5)));
    assert_eq!(ends(&lab, "jumps"), BTreeMap::from([("entry".to_owned(), 100)]));

    let throws = lab.rows("t.tape", "uprobe:throws");
    assert_eq!(throws.len(), 150);
    assert!(throws.iter().all(|row| args(row)["ret"].as_i64() == args(row)["n"].as_i64().map(|n| -n)), "{throws:?}");
    assert_eq!(ends(&lab, "throws"), BTreeMap::from([("entry".to_owned(), 50)]));

    // a thread that ends inside, and an exec
    assert_eq!(lab.rows("t.tape", "uprobe:stays").len(), 0);
    let stays = lab.rows("t.tape", "uprobe:stays.unpaired");
    let values: Vec<_> = stays.iter().map(|row| args(row)["values"].as_str().expect("values")).collect();
    assert_eq!(values, ["program=?", "program=\"/bin/true\""], "a null pointer is no string");

    let says = lab.rows("t.tape", "uprobe:says");
    let said: Vec<_> = says.iter().map(|row| (args(row)["n"].as_i64(), args(row)["ret"].as_str())).collect();
    let expected: Vec<String> =
        (0..10).map(|n| format!("{} {n}", if n % 2 == 1 { "NUMBER" } else { "number" })).collect();
    let expected = expected.iter().zip(0..).map(|(text, n)| (Some(n), Some(text.as_str())));
    assert_eq!(said, [(Some(-1), None)].into_iter().chain(expected).collect::<Vec<_>>());

    // the child returns from what its parent entered
    let forks = lab.rows("t.tape", "uprobe:forks");
    assert_eq!(forks.iter().map(|row| &args(row)["ret"]).collect::<Vec<_>>(), [7]);
    let child = lab.rows("t.tape", "uprobe:forks.unpaired");
    let child: Vec<_> = child.iter().map(|row| (args(row)["end"].as_str(), args(row)["values"].as_str())).collect();
    assert_eq!(child, [(Some("return"), Some("ret=100"))]);
}

/// In C, where the kernel's own return probe is used, deeper than it follows.
#[test]
fn deeper_than_the_kernel_follows() {
    let Some(lab) = Lab::beside() else { return };
    let source = "long down(long n) { volatile long x = n; if (n) x += down(n - 1); return x; }\n\
        int main(void) { return down(99) != 4950 || down(9) != 45; }";
    fs::write(lab.path("deep.c"), source).expect("source");
    run(lab.command("cc").args(["-O1", "-fno-optimize-sibling-calls", "-o", "deep", "deep.c"])).expect(0);
    let deep = lab.path("deep").display().to_string();
    lab.record("t.tape", &["--uprobe", &format!("{deep}:down(n=long)->long")], &[&deep]).expect(0);
    let calls = lab.rows("t.tape", "uprobe:down");
    for row in &calls {
        let n = args(row)["n"].as_i64().expect("n");
        assert_eq!(args(row)["ret"].as_i64(), Some(n * (n + 1) / 2), "{row}");
    }
    let unpaired = ends(&lab, "down").get("entry").copied().unwrap_or_default();
    assert_eq!(calls.len() + unpaired, 110);
    assert!(calls.len() >= 10 + 64, "{}", calls.len());
}

/// Numbers that calls leave behind a pointer: also of recursive calls, of failed ones, and where nothing is.
#[test]
fn numbers_behind_pointers_are_read_at_the_return() {
    let Some(lab) = Lab::beside() else { return };
    let source = "#define KEEP __attribute__((noipa))\n\
        KEEP int fills(int n, unsigned long *out) { if (n % 3 == 0) return 0; *out = n * 10000000019ul; return 1; }\n\
        KEEP int down(int n, int *left) { int below = 0; if (n) down(n - 1, &below); if (left) *left = below - n; return n; }\n\
        int main(void) { unsigned long o; int left; for (int i = 0; i < 101; i++) fills(i, &o); down(20, &left);\n\
        down(0, 0); return left != -210; }";
    fs::write(lab.path("outs.c"), source).expect("source");
    run(lab.command("cc").args(["-O1", "-fno-optimize-sibling-calls", "-o", "outs", "outs.c"])).expect(0);
    let outs = lab.path("outs").display().to_string();
    let options = [format!("{outs}:fills(n=int,out=*ulong)->bool"), format!("{outs}:down(n=int,left=*int)->int")];
    lab.record("t.tape", &["--uprobe", &options[0], "--uprobe", &options[1]], &[&outs]).expect(0);
    lab.assert_whole("t.tape");
    let fills = lab.rows("t.tape", "uprobe:fills");
    assert_eq!(fills.len(), 101);
    for (row, n) in fills.iter().zip(0u64..) {
        let out = (n % 3 != 0).then(|| (n * 10_000_000_019).to_string());
        assert_eq!((args(row)["n"].as_u64(), args(row)["out"].as_str()), (Some(n), out.as_deref()), "{row}");
    }
    let down = lab.rows("t.tape", "uprobe:down");
    assert_eq!(down.len(), 22);
    for (row, n) in down.iter().zip((0..21i64).chain([0])) {
        assert_eq!(args(row)["n"].as_i64(), Some(n), "{row}");
    }
    let lefts: Vec<Option<i64>> = down.iter().map(|row| args(row)["left"].as_i64()).collect();
    let expected: Vec<Option<i64>> = (0..21).map(|n| Some(-n * (n + 1) / 2)).chain([None]).collect();
    assert_eq!(lefts, expected);
}

/// Processes that start later, threads, entries alone, and other programs than the target.
#[test]
fn entries_of_whom_was_asked_for() {
    let Some(lab) = Lab::beside() else { return };
    let script = "for i in 1 2 3; do getent ahosts localhost; done >/dev/null; python3 -c \"
import socket, threading
def one(name):
    try: socket.getaddrinfo(name, 80)
    except OSError: pass
threads = [threading.Thread(target=one, args=(name,)) for name in ('localhost', 'no.such.host.invalid')]
[t.start() for t in threads]; [t.join() for t in threads]\"";
    // somebody else's are not recorded
    let other =
        Background::start(lab.command("sh").args(["-c", "while :; do getent ahosts localhost; done > /dev/null"]));
    lab.record("t.tape", &["--probe", "dns", "-g"], &["sh", "-c", script]).expect(0);
    lab.record("u.tape", &["--uprobe", "libc.so.6:getaddrinfo(host=string)"], &["sh", "-c", script]).expect(0);
    drop(other);
    let calls = lab.rows("t.tape", "dns:getaddrinfo");
    let mut hosts: Vec<_> = calls.iter().map(|row| args(row)["host"].as_str().expect("host")).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["localhost", "localhost", "localhost", "localhost", "no.such.host.invalid"]);
    for row in &calls {
        let failed = args(row)["host"] == "no.such.host.invalid";
        assert_eq!(args(row)["ret"].as_i64() != Some(0), failed, "{row}");
        assert!(args(row)["dur_ns"].as_u64() > Some(1000), "{row}");
    }
    assert_eq!(lab.rows("u.tape", "uprobe:getaddrinfo").len(), 5);
    assert_eq!(lab.rows("t.tape", "dns:*.unpaired").len(), 0);
}

/// Without kprobes in the kernel: a refusal that says so, before anything is recorded, and what to type instead. Where there are some, they are
/// tried: scripts/test-kernels.sh compares them with what a program does.
#[test]
fn functions_of_the_kernel_are_recorded_or_refused() {
    let Some(lab) = Lab::beside() else { return };
    let done = lab.record("t.tape", &["--kprobe", "hrtimer_nanosleep->int"], &["sleep", "0.01"]);
    if fs::exists("/sys/bus/event_source/devices/kprobe/type").expect("sysfs") {
        done.expect(0);
        assert_eq!(lab.rows("t.tape", "kprobe:hrtimer_nanosleep").len(), 1);
        return;
    }
    let said = done.expect(2).stderr;
    let parts =
        ["--kprobe 'hrtimer_nanosleep->int'", "devices/kprobe/type", "CONFIG_KPROBES", "-e CATEGORY:NAME", "--uprobe"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    assert!(!lab.path("t.tape").exists());
}

/// The same calls by bpftrace, which waits on entry and return itself.
#[test]
fn bpftrace_sees_the_same() {
    let Some(lab) = Lab::beside() else { return };
    if !systape_e2e::disk::has("bpftrace") {
        return;
    }
    let libc = run(lab.command("sh").args(["-c", "ldd /bin/sh | awk '/libc.so/ { print $3 }'"])).expect(0).text();
    let libc = libc.trim();
    let script = format!(
        "uprobe:{libc}:getaddrinfo {{ @s[tid] = nsecs; @h[tid] = str(arg0); }} \
         uretprobe:{libc}:getaddrinfo /@s[tid]/ {{ printf(\"%d %s %d %llu\\n\", tid, @h[tid], (int32)retval, nsecs - @s[tid]); \
         delete(@s[tid]); delete(@h[tid]); }} BEGIN {{ printf(\"begun\\n\"); }}"
    );
    let said = lab.path("said");
    let file = fs::File::create(&said).expect("said");
    let mut peer = lab.command("bpftrace");
    peer.args(["-e", &script]).stdout(file);
    let mut peer = peer.spawn().expect("bpftrace");
    lab.until("bpftrace", || fs::read_to_string(&said).is_ok_and(|text| text.contains("begun")));
    let names = ["localhost", "127.0.0.1", "no.such.host.invalid", "::1"];
    let line = names.map(|name| format!("getent ahosts {name} > /dev/null; ")).concat();
    lab.record("t.tape", &["--probe", "dns"], &["sh", "-c", &format!("for i in 1 2 3 4 5; do {line} done; true")])
        .expect(0);
    std::thread::sleep(std::time::Duration::from_secs(1));
    run(lab.command("kill").args(["-INT", &peer.id().to_string()])).expect(0);
    peer.wait().expect("bpftrace");
    let said = fs::read_to_string(&said).expect("said");
    let mut theirs: BTreeMap<(u64, String), (i64, u64)> = BTreeMap::new();
    for line in said.lines().filter(|line| *line != "begun" && !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let [tid, host, ret, ns] = words[..] else { continue };
        let number = |word: &str| word.parse::<i64>().expect("a number");
        theirs.insert((number(tid) as u64, host.to_owned()), (number(ret), number(ns) as u64));
    }
    let calls = lab.rows("t.tape", "dns:getaddrinfo");
    assert_eq!(calls.len(), 20);
    for row in &calls {
        let key = (row["tid"].as_u64().expect("tid"), args(row)["host"].as_str().expect("host").to_owned());
        let (ret, ns) = theirs.get(&key).unwrap_or_else(|| panic!("{row} {theirs:?}"));
        assert_eq!(args(row)["ret"].as_i64(), Some(*ret), "{row}");
        // one of the two is inside the other
        let apart = args(row)["dur_ns"].as_u64().expect("ns").abs_diff(*ns);
        assert!(apart < ns / 10 + 200_000, "{row}: {ns}");
    }
}

/// A program with functions of its own in place of a library's.
#[test]
fn static_programs_are_named() {
    let Some(lab) = Lab::beside() else { return };
    fs::write(lab.path("still.c"), "#include <unistd.h>\nint main(void) { sleep(1000); return 0; }").expect("source");
    run(lab.command("cc").args(["-static", "-o", "still", "still.c"])).expect(0);
    run(lab.command("cc").args(["-o", "other", "still.c"])).expect(0);
    let note = "is linked statically: it does not use";
    let library = "libc.so.6, and calls of its own code are not seen";
    for (program, is_static) in [("still", true), ("other", false)] {
        let program = lab.path(program).display().to_string();
        let running = Background::start(&mut lab.command(&program));
        let options = ["--probe", "dns", "--for", "100ms", "-p", &running.pid_text()];
        let attached = run(lab.record_command("t.tape", &options, &[])).expect(0);
        assert_eq!(
            attached.stderr.contains(note) && attached.stderr.contains(library),
            is_static,
            "{}",
            attached.stderr
        );
        let options = ["--probe", "dns", "--for", "100ms", "--kill"];
        let started = run(lab.record_command("t.tape", &options, &[&program]));
        assert_eq!(started.stderr.contains(note) && started.stderr.contains(library), is_static, "{}", started.stderr);
    }
    // its own functions are another matter
    let program = lab.path("still").display().to_string();
    let options = ["--uprobe", &format!("{program}:main"), "--for", "100ms", "--kill"];
    let own = run(lab.record_command("t.tape", &options, &[&program]));
    assert!(!own.stderr.contains(note), "{}", own.stderr);
}

#[test]
fn what_cannot_be_probed_is_said() {
    let Some(lab) = Lab::beside() else { return };
    let says = |options: &[&str]| {
        let run = lab.record("t.tape", options, &["true"]).expect(2);
        run.stderr.trim().to_owned()
    };
    assert!(says(&["--uprobe", "libc.so.6:no_such"]).contains("it has no function 'no_such'"));
    assert!(says(&["--uprobe", "libnone.so:f"]).contains("no library libnone.so"));
    assert!(says(&["--uprobe", "main"]).contains("FILE:FUNCTION"));
    assert!(says(&["--uprobe", "libc.so.6:getenv(name=text)"]).contains("'text' is no type"));
    assert!(says(&["--uprobe", "/etc/passwd:main"]).contains("no 64-bit ELF file"));
    assert!(says(&["--probe", "smtp"]).contains("there are dns and tls"));
}

/// A function of a library with a name of its own, and a program that calls it when it is told to.
const LIBRARY: &str = "int greet(int n) { return n * 3; }";
const GREETER: &str = "#include <signal.h>
#include <stdlib.h>
int greet(int);
int main(int argc, char **argv) {
    sigset_t set; int got, sum = 0;
    sigemptyset(&set); sigaddset(&set, SIGUSR1); sigprocmask(SIG_BLOCK, &set, 0);
    sigwait(&set, &got);
    for (int n = 1; n <= atoi(argv[argc - 1]); n++) sum += greet(n);
    return sum == 0;
}";

/// Containers: a library by its soname wherever a process has it, each file once. Two of them share a layer, one of these
/// begins later; one has a copy; a process of this machine has another by its environment.
#[test]
fn libraries_of_other_mount_namespaces() {
    let Some(lab) = Lab::with_bpf() else { return };
    fs::create_dir_all(lab.path("image/work")).expect("directory");
    fs::write(lab.path("greet.c"), LIBRARY).expect("source");
    fs::write(lab.path("greeter.c"), GREETER).expect("source");
    let made = "set -e
        cc -shared -fPIC -Wl,-soname,libgreet.so.7 -o image/libgreet-1.2.so greet.c
        cc -o image/greeter greeter.c image/libgreet-1.2.so
        ln -s libgreet-1.2.so image/libgreet.so.7
        for file in $(ldd image/greeter | grep -o '/[^ ]*'); do
            case $file in *greet*) continue;; esac
            mkdir -p image$(dirname $file); cp -L $file image$file
        done
        mkdir tmp copy own; cp image/libgreet-1.2.so own/libgreet.so.7
        for one in a b; do mkdir -p $one/upper $one/work $one/merged; done";
    run(lab.command("sh").args(["-c", made])).expect(0);
    let overlay = |one: &str, times: &str| {
        let script = format!(
            "mount -t overlay overlay -o lowerdir=image,upperdir={one}/upper,workdir={one}/work {one}/merged &&
             exec env LD_LIBRARY_PATH=/ chroot {one}/merged /greeter {times}"
        );
        Background::start(lab.command("unshare").args(["-m", "sh", "-c", &script]))
    };
    let copied =
        "mount -t tmpfs none copy && cp -a image/. copy/ && exec env LD_LIBRARY_PATH=/ chroot copy /greeter 23";
    let early = [
        overlay("a", "11"),
        Background::start(lab.command("unshare").args(["-m", "sh", "-c", copied])),
        Background::start(lab.command("env").args(["LD_LIBRARY_PATH=own", "image/greeter", "7"])),
    ];
    let waits = |one: &Background| {
        lab.until("a greeter that waits", || {
            let call = fs::read_to_string(format!("/proc/{}/syscall", one.pid())).unwrap_or_default();
            call.starts_with(&format!("{} ", libc::SYS_rt_sigtimedwait))
        });
    };
    early.iter().for_each(waits);
    let recorder = lab.attach("t.tape", &["-a", "--uprobe", "libgreet.so.7:greet(n=int)->int"]);
    let late = overlay("b", "5");
    waits(&late);
    let all: Vec<Background> = early.into_iter().chain([late]).collect();
    all.iter().for_each(|one| one.signal(libc::SIGUSR1));
    let pids: Vec<i64> = all.iter().map(|one| i64::from(one.pid())).collect();
    all.into_iter().for_each(|one| drop(one.wait().expect(0)));
    recorder.stop(libc::SIGINT).expect(0);
    lab.assert_whole("t.tape");
    let rows = lab.rows("t.tape", "uprobe:greet");
    for (pid, times) in pids.into_iter().zip([11, 23, 7, 5]) {
        let of: Vec<i64> = rows
            .iter()
            .filter(|row| row["pid"].as_i64() == Some(pid))
            .map(|row| args(row)["n"].as_i64().expect("n"))
            .collect();
        assert_eq!(of, (1..=times).collect::<Vec<i64>>(), "{pid}");
    }
}
