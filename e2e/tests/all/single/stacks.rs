//! Stacks of calls are the chains of functions that made them: programs whose chains are known, compiled in every way, with
//! all that makes unwinding hard; and what perf says of the same run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use systape_e2e::disk::has;
use systape_e2e::lab;
use systape_e2e::more::FREESTANDING;
use systape_e2e::stacks::{ALL, Case, Event, compile, events, tool, wrong};
use systape_e2e::{Lab, stacks};

/// What workloads/chains/chains.c has, by the numbers in chains.h.
const C: [Case; 15] = [
    Case::new(1, "plain", "leaf middle outer run_case main"),
    Case::new(2, "inlines", "inlined_inner! inlined_outer! holder run_case main"),
    Case::new(3, "recursion", "leaf recurse*200 run_case main"),
    Case { times: 23, status: "cut", ..Case::new(4, "deep", "leaf recurse_wide*40 ...") },
    Case::new(5, "trap", "leaf middle outer on_signal @signal interrupted run_case main"),
    Case::new(6, "alarm", "leaf middle outer on_signal @signal ?callee spinning run_case main"),
    Case::new(
        7,
        "vdso",
        "leaf middle outer on_signal @signal @libs ?~clock_gettime ?@unnamed asking_the_time run_case main",
    ),
    Case { status: "other-stack", ..Case::new(8, "altstack", "leaf middle outer on_signal @signal interrupted") },
    Case::new(9, "realign", "leaf middle outer realigned run_case main"),
    Case::new(10, "vfork", "leaf in_child vforks run_case main"),
    Case::new(11, "fork", "leaf in_child forks run_case main"),
    Case::new(12, "thread", "leaf middle outer thread_body"),
    Case::new(13, "clone", "leaf middle outer clone_body"),
    // begins at the first byte of a function, which is no call's end
    Case { status: "complete|no-unwind-info", ..Case::new(14, "coroutine", "leaf middle outer coroutine_body @any") },
    Case::new(15, "jit", "leaf called_back made_at_run_time calls_made_code run_case main"),
];

/// Records `script` with stacks of the calls that the workloads make.
#[track_caller]
fn record(lab: &Lab, call_graph: &str, script: &str) -> Vec<Event> {
    lab.record("t.tape", &["--call-graph", call_graph, "-e", "=lseek"], &["sh", "-c", script]).expect(0);
    let events = events(lab, "t.tape", &[]);
    // one that finds no buffer, or the ring full, is lost, and counted: the calls are all there
    if !events.iter().any(is_lost) {
        lab.assert_whole("t.tape");
    }
    events
}

fn is_lost(event: &Event) -> bool {
    event.stack.as_ref().is_some_and(|stack| stack.status == "lost")
}

#[track_caller]
fn expect_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The files that tell perf and others the names of code made at run time outlive their processes.
struct PerfMaps(BTreeSet<i64>);

impl Drop for PerfMaps {
    fn drop(&mut self) {
        for pid in &self.0 {
            fs::remove_file(format!("/tmp/perf-{pid}.map")).ok();
        }
    }
}

impl PerfMaps {
    fn of(events: &[Event]) -> Self {
        Self(events.iter().filter(|e| e.case == 15).map(|e| e.tid).collect())
    }
}

#[test]
fn c_compiled_in_every_way() {
    let Some(lab) = Lab::with_bpf() else { return };
    let ways: [(&str, &[&str]); 7] = [
        ("frame-pointers", &["-O1", "-fno-omit-frame-pointer", "-DRAW"]),
        ("optimized", &["-O2", "-fomit-frame-pointer"]),
        ("unoptimized", &["-O0", "-fomit-frame-pointer", "-Wno-inline"]),
        ("no-pie", &["-O2", "-no-pie"]),
        ("static", &["-O2", "-static"]),
        ("static-pie", &["-O2", "-static-pie"]),
        ("link-time", &["-O2", "-flto=auto", "-Wl,-z,noseparate-code"]),
    ];
    compile(&lab, &ways.map(|(name, flags)| (name, "chains.c", flags)));
    let script: Vec<_> = ways.iter().map(|(name, _)| format!("./{name} {} || exit 1", ALL.join(" "))).collect();
    let events = record(&lab, "dwarf", &script.join("\n"));
    let _maps = PerfMaps::of(&events);
    expect_none(&ways.iter().flat_map(|(name, _)| wrong(&events, name, &C, true)).collect::<Vec<_>>());
}

/// Code made at run time without rules and without a frame pointer; its callers keep none.
#[test]
fn a_trampoline_made_at_run_time() {
    let Some(lab) = Lab::with_bpf() else { return };
    let optimized = ["-O2", "-fomit-frame-pointer"];
    compile(&lab, &[("through", "trampoline.c", &optimized)]);
    // the recorder reads the trampoline's code while the process lives
    let events = record(&lab, "dwarf", "sleep 5 | ./through");
    let through: Vec<_> = events.iter().filter(|e| e.case == 18).filter_map(|e| e.stack.as_ref()).collect();
    let whole = |s: &stacks::Stack| {
        let jit = s.frames.iter().position(|f| f.module == "[jit]");
        let callers = jit.map_or(0, |at| s.frames[at..].iter().filter(|f| f.module.ends_with("/through")).count());
        // three of them, and _start
        callers == 4 && s.status == "complete" && s.is("leaf called_back @unnamed calls_trampoline again main", true)
    };
    // what it did not come to in time ends there, and claims no more
    let ends = |s: &stacks::Stack| s.status == "jit" && s.frames.last().is_some_and(|f| f.module == "[jit]");
    let wrong: Vec<_> = through.iter().filter(|s| !whole(s) && !ends(s) && s.status != "lost").collect();
    assert!(wrong.is_empty(), "{} of {}: {}", wrong.len(), through.len(), wrong[0].brief());
    let reached = through.iter().filter(|s| whole(s)).count();
    assert!(reached > stacks::TIMES / 2, "{reached} of {} reach main", through.len());
}

#[test]
fn libraries() {
    let Some(lab) = Lab::with_bpf() else { return };
    let library = ["-O2", "-fPIC", "-shared"];
    let flags = |more: &[&'static str]| [&library, more].concat();
    compile(
        &lab,
        &[
            ("liblinked.so", "chainlib.c", &flags(&["-DPREFIX=linked", "-DID=LIBRARY"])),
            ("first.so", "chainlib.c", &flags(&["-DPREFIX=first", "-DID=FIRST"])),
            ("second.so", "chainlib.c", &flags(&["-DPREFIX=second", "-DID=SECOND"])),
            (
                "resolved.so",
                "chainlib.c",
                &flags(&["-Wl,-z,lazy", "-DPREFIX=resolved", "-DID=LIBRARY", "-DRESOLVED=\"resolved_resolve\""]),
            ),
        ],
    );
    let linked = ["-O2", "-L.", "-llinked", "-Wl,-rpath,$ORIGIN"];
    compile(&lab, &[("lazy", "plugs.c", &[&linked[..], &["-Wl,-z,lazy"]].concat())]);
    compile(&lab, &[("now", "plugs.c", &[&linked[..], &["-Wl,-z,now"]].concat())]);
    let script = "
        LD_BIND_NOT=1 ./lazy library; ./now library
        ./lazy come-and-go ./first.so ./second.so >same
        ./now resolve ./resolved.so";
    let events = record(&lab, "dwarf", script);
    assert_eq!(fs::read_to_string(lab.path("same")).expect("same"), format!("{}\n", stacks::TIMES), "other addresses");
    let library = Case::new(20, "library", "linked_leaf linked_middle linked_outer calls_library main");
    let cases = [
        library,
        Case::new(21, "first", "first_leaf first_middle first_outer calls_plug main"),
        Case::new(22, "second", "second_leaf second_middle second_outer calls_plug main"),
    ];
    let resolver = Case::new(23, "resolver", "~resolved_resolve @libs resolved_calls_resolved calls_plug main");
    let mut all = wrong(&events, "lazy", &cases, true);
    all.extend(wrong(&events, "now", &[library, resolver], true));
    expect_none(&all);
}

#[test]
fn cxx_and_rust() {
    let Some(lab) = Lab::with_bpf() else { return };
    compile(&lab, &[("cxx", "chains.cc", &["-O2"]), ("rust", "chains.rs", &["-O"])]);
    let events = record(&lab, "dwarf", "./cxx && ./rust");
    let cxx = [
        Case::new(
            30,
            "template, virtual, lambda",
            "~shapes::Box<double>::area ~shapes::measure ~lambda(long)#1 ~shapes::for_each<main:: main",
        ),
        Case::new(31, "lambda", "~lambda(long)#2 ~shapes::for_each<main:: main"),
        Case::new(32, "destructor", "~shapes::Guard::~Guard ~shapes::thrower ~shapes::catcher main"),
    ];
    let rust = [
        Case::new(50, "generic", "~event! ~shapes::generic ~chains::main @any _start"),
        Case::new(51, "closure", "~event! ~closure! ~for_each ~chains::main @any _start"),
        Case::new(52, "trait object", "~event! ~Shape>::area ~shapes::measure ~chains::main @any _start"),
    ];
    let mut all = wrong(&events, "cxx", &cxx, true);
    all.extend(wrong(&events, "rust", &rust, true));
    expect_none(&all);
}

#[test]
fn stripped() {
    let Some(lab) = Lab::with_bpf() else { return };
    compile(&lab, &[("whole", "chains.c", &["-O2"])]);
    // debug information in a file of its own; none at all but the table of symbols; not even that
    tool(&lab, "objcopy", &["--only-keep-debug", "whole", "linked.debug"]);
    tool(&lab, "strip", &["-o", "linked", "whole"]);
    tool(&lab, "objcopy", &["--add-gnu-debuglink=linked.debug", "linked"]);
    tool(&lab, "strip", &["--strip-debug", "-o", "symbols", "whole"]);
    tool(&lab, "strip", &["-o", "bare", "whole"]);
    let cases = ["plain", "recursion", "trap", "realign", "vfork", "thread"];
    let script = format!("for p in linked symbols bare; do ./$p {} inlines || exit 1; done", cases.join(" "));
    let events = record(&lab, "dwarf", &script);
    let without: Vec<_> = C.into_iter().filter(|case| cases.contains(&case.name)).collect();
    let inlines = C[1];
    let mut all = wrong(&events, "linked", &[&without[..], &[inlines]].concat(), true);
    let holder = Case { chain: "holder run_case main", ..inlines };
    all.extend(wrong(&events, "symbols", &[&without[..], &[holder]].concat(), true));
    all.extend(wrong(&events, "bare", &[&without[..], &[holder]].concat(), false));
    expect_none(&all);
    // what has no name is not given another's
    let named = |e: &&Event| {
        let frames = e.stack.as_ref().map_or(&[][..], |s| &s.frames);
        let ours = frames.iter().filter(|f| f.module.ends_with("/bare"));
        ours.filter_map(|f| f.sym.as_deref()).any(|sym| !["_start", "[signal]"].contains(&sym))
    };
    let bare: Vec<_> = events.iter().filter(|e| e.comm == "bare").collect();
    assert_eq!(bare.iter().filter(|e| named(e)).count(), 0, "{:?}", bare.iter().find(|e| named(e)));
}

#[test]
fn programs_that_are_gone() {
    let Some(lab) = Lab::with_bpf() else { return };
    compile(&lab, &[("deleted", "chains.c", &["-O2"]), ("short", "chains.c", &["-O2"])]);
    compile(&lab, &[("jailed", "chains.c", &["-O2", "-static"]), ("second", "chains.c", &["-O1", "-no-pie"])]);
    fs::create_dir(lab.path("jail")).expect("mkdir");
    fs::rename(lab.path("jailed"), lab.path("jail/jailed")).expect("mv");
    // 101 processes that live for a millisecond; one that deletes itself first; one whose path is another outside its root;
    // one that becomes another program
    let script = "
        for i in $(seq 101); do ./short once; done
        ./deleted delete plain trap
        chroot jail /jailed plain trap
        ln short first; ./first plain exec ./second plain trap";
    let events = record(&lab, "dwarf", script);
    let named = |name: &str| C.into_iter().find(|case| case.name == name).expect("case");
    let cases = [named("plain"), named("trap")];
    let mut all = wrong(&events, "short", &[Case { times: 101, ..named("plain") }], true);
    all.extend(wrong(&events, "deleted", &cases, true));
    all.extend(wrong(&events, "jailed", &cases, true));
    all.extend(wrong(&events, "first", &cases[..1], true));
    all.extend(wrong(&events, "second", &cases, true));
    expect_none(&all);
}

/// Turns of the case whose stacks are as deep as the turn says.
const VARIED: i64 = 4001;

#[test]
fn each_call_has_its_own() {
    let Some(lab) = Lab::with_bpf() else { return };
    compile(&lab, &[("chains", "chains.c", &["-O2"])]);
    for (case, id, function) in [("varied", 16, "recurse"), ("flood", 17, "recurse_wide")] {
        let options = ["--call-graph", "dwarf", "-e", "=lseek"];
        lab.record("t.tape", &options, &["./chains", case]).expect(0);
        let run = lab.analyze(&["t.tape", "-e", "=lseek", "--call-graph", "--format", "json"]).expect(0);
        let events: Vec<_> = run.json().iter().filter_map(Event::of).filter(|e| e.case == id).collect();
        // however many stacks are lost, no call is
        let turns: BTreeMap<_, _> = events.iter().map(|e| ((e.tid, e.turn), e)).collect();
        assert_eq!((turns.len() as i64, events.len() as i64), (2 * VARIED, 2 * VARIED), "{case}");
        let (mut whole, mut without) = (0, BTreeMap::<&str, u64>::new());
        for event in &events {
            let stack = event.stack.as_ref().unwrap_or_else(|| panic!("{case}: no stack, and no reason: {event:?}"));
            let chain = format!("leaf {function}*{} varied_body", 1 + event.turn % 41);
            if stack.status == "complete" {
                assert!(stack.is(&chain, true), "{case}, turn {}: {}", event.turn, stack.brief());
                whole += 1;
            } else {
                *without.entry(&stack.status).or_default() += 1;
            }
        }
        println!("{case}: {whole} whole stacks, others {without:?}");
        assert!(without.keys().all(|status| ["lost", "late"].contains(status)), "{case}: {without:?}");
        assert!(whole * 100 >= events.len() * if case == "varied" { 99 } else { 10 }, "{case}: {whole}, {without:?}");
        // what was lost or given up is in the tape's account, of whatever event it was
        let info = lab.info("t.tape");
        let kinds = info["stacks"]["events"].as_object().unwrap().values();
        let lacks = |kind: &serde_json::Value| {
            ["lost", "late"].map(|s| kind["status"][s].as_u64().unwrap_or(0)).iter().sum::<u64>()
        };
        let lacking: u64 = kinds.map(lacks).sum();
        let lost = &info["lost"];
        assert!(lacking >= without.values().sum(), "{case}: {lost} {lacking} {without:?}");
        assert!(lost["stack"].as_u64().unwrap_or(0) >= lacking, "{case}: {lost} {lacking} {without:?}");
        assert_eq!(lost != &serde_json::json!({}), lacking > 0, "{case}: {lost} {lacking} {without:?}");
    }
}

/// Whether `some` is `all` with nothing or something left out.
fn is_part_of(some: &[&str], all: &[&str]) -> bool {
    let mut all = all.iter();
    some.iter().all(|name| all.any(|other| other == name))
}

#[test]
fn by_frame_pointers() {
    let Some(lab) = Lab::with_bpf() else { return };
    // optimized, gcc leaves it out of functions that call none
    let keeps = ["-O0", "-fno-omit-frame-pointer", "-DRAW"];
    compile(&lab, &[("keeps", "chains.c", &keeps), ("omits", "chains.c", &["-O2", "-fomit-frame-pointer"])]);
    let cases = ["plain", "inlines", "realign", "vfork", "fork", "thread", "jit"];
    let script = format!("./keeps {0}; ./omits {0}", cases.join(" "));
    lab.record("t.tape", &["-g", "-e", "=lseek"], &["sh", "-c", &script]).expect(0);
    lab.assert_whole("t.tape");
    let events = events(&lab, "t.tape", &[]);
    let _maps = PerfMaps::of(&events);
    // the C library has none: its part below main may be missing
    let known = C.into_iter().filter(|case| cases.contains(&case.name));
    let known: Vec<_> = known.map(|case| Case { status: "frame-pointers", ..case }).collect();
    let mut all = wrong(&events, "keeps", &known, true);
    for case in &known {
        let chain: Vec<_> = case.chain.split_whitespace().map(|word| word.trim_end_matches('!')).collect();
        for event in events.iter().filter(|e| e.comm == "omits" && e.case == case.id) {
            let Some(stack) = &event.stack else { continue };
            let ours = stack.frames.iter().filter(|f| f.module.ends_with("/omits") && f.name() != "_start");
            let ours: Vec<_> = ours.map(stacks::Frame::name).collect();
            if !is_part_of(&ours, &chain) {
                all.push(format!("omits {}: {} is not part of {chain:?}", case.name, stack.brief()));
                break;
            }
        }
    }
    expect_none(&all);
}

#[test]
fn a_32_bit_program() {
    let Some(lab) = Lab::with_bpf() else { return };
    let i386 = lab.cc("i386", &[&FREESTANDING[..], &["-m32", "-fno-pic", "-no-pie"]].concat());
    for call_graph in ["fp", "dwarf"] {
        lab.record("t.tape", &["--call-graph", call_graph], &[&i386]).expect(3);
        lab.assert_whole("t.tape");
        let run =
            lab.analyze(&["t.tape", "--comm=i386", "-e", "!execve", "--call-graph", "--format", "json"]).expect(0);
        let lines = run.json();
        assert_eq!(lines.len(), 1009 + 3);
        for line in lines {
            // its registers are not those that unwind information speaks of
            let stack = stacks::Stack::of(&line).expect("a stack");
            assert!(stack.status == "frame-pointers" && stack.is("call! _start", true), "{line}");
        }
    }
}

/// Function names of one of perf's samples, the innermost first.
type Chain = Vec<String>;

/// Samples of `perf script -F comm,tid,event,trace,ip,sym,dso` by case and turn. Of the C library's functions, which have
/// several names, only the library's stays.
fn perf_chains(text: &str) -> BTreeMap<(i64, i64), Chain> {
    let mut chains: BTreeMap<_, Chain> = BTreeMap::new();
    let mut at = None;
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once(" fd: 0x") {
            let number = |text: &str| i64::from_str_radix(text, 16).expect("hex");
            let (fd, rest) = rest.split_once(", offset: 0x").expect("offset");
            let (offset, _) = rest.split_once(',').expect("whence");
            let fd = i64::from(u32::from_str_radix(fd, 16).expect("hex").cast_signed());
            at = (fd <= -1000).then(|| (-1000 - fd, number(offset)));
        } else if let (Some(at), Some((_, frame))) = (at, line.trim().split_once(' ')) {
            let (name, module) = frame.rsplit_once(" (").unwrap_or((frame, ""));
            chains.entry(at).or_default().push(plain_name(name, module.trim_end_matches(')')));
        }
    }
    chains
}

/// A name that does not depend on who gives it.
fn plain_name(name: &str, module: &str) -> String {
    let file = Path::new(module).file_name().map_or(module, |f| f.to_str().unwrap_or(module));
    let library = ["libc", "ld-linux", "[vdso"].into_iter().find(|prefix| file.starts_with(prefix));
    library.unwrap_or(name.split(['@', '+']).next().unwrap_or(name)).to_owned()
}

#[test]
fn as_perf_says() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has("perf") {
        return;
    }
    compile(&lab, &[("optimized", "chains.c", &["-O2"])]);
    let cases =
        ["plain", "inlines", "recursion", "trap", "alarm", "vdso", "realign", "vfork", "fork", "thread", "clone"];
    // perf needs 64 KB for each sample, however little of it is stack
    let perf = "perf record -q -N -m 256M -e syscalls:sys_enter_lseek --call-graph dwarf,65528";
    let script = format!("{perf} -o perf.data -- ./optimized {}", cases.join(" "));
    let events = record(&lab, "dwarf", &script);
    let fields = ["-F", "comm,tid,event,trace,ip,sym,dso", "--max-stack", "1024", "--no-inline"];
    let run = lab::run(lab.command("perf").args(["script", "-i", "perf.data"]).args(fields)).expect(0);
    let theirs = perf_chains(&run.text());
    assert!(theirs.len() > 1000, "perf has {} stacks: {}", theirs.len(), run.stderr);

    let (mut compared, mut same, mut differ) = (BTreeMap::<i64, u32>::new(), 0, BTreeMap::<String, u32>::new());
    for event in &events {
        let (Some(theirs), Some(stack)) = (theirs.get(&(event.case, event.turn)), &event.stack) else { continue };
        let real = stack.frames.iter().filter(|frame| !frame.inlined);
        let ours: Vec<_> = real.map(|frame| plain_name(frame.name(), &frame.module)).collect();
        *compared.entry(event.case).or_default() += 1;
        // the trampoline of signals has no name in perf
        let equal = |(a, b): (&String, &String)| a == b || b == "[unknown]" || (b == "libc" && a == "[signal]");
        if ours.len() == theirs.len() && ours.iter().zip(theirs).all(equal) {
            same += 1;
        } else {
            *differ.entry(format!("case {}\n  ours {ours:?}\n  perf {theirs:?}", event.case)).or_default() += 1;
        }
    }
    let total: u32 = compared.values().sum();
    println!("{same} of {total} stacks are as perf has them; by case {compared:?}");
    assert!(total > 1000 && compared.len() >= 8, "only {compared:?} compared");
    let differ: Vec<_> = differ.into_iter().take(8).map(|(what, n)| format!("{n}x {what}")).collect();
    assert!(same * 100 >= total * 95, "{same} of {total} are as perf has them\n{}", differ.join("\n"));
}

#[test]
fn options_of_stacks() {
    let Some(lab) = Lab::with_bpf() else { return };
    compile(&lab, &[("chains", "chains.c", &["-O2"])]);
    // a larger copy reaches the outermost frame of deep stacks, a smaller one only some of the others
    let deep = Case { status: "complete", chain: "leaf recurse_wide*100 run_case main", ..C[3] };
    let events = record(&lab, "dwarf,262144", "./chains deep");
    expect_none(&wrong(&events, "chains", &[deep], true));
    let events = record(&lab, "dwarf,2048", "./chains plain recursion");
    let cut = Case { status: "cut", chain: "leaf recurse*20 ...", ..C[2] };
    expect_none(&wrong(&events, "chains", &[C[0], cut], true));

    // names looked up later are those that would have been stored
    let options = ["--call-graph", "dwarf", "--no-symbols", "-e", "=lseek"];
    lab.record("t.tape", &options, &["./chains", "plain", "trap", "inlines"]).expect(0);
    let nameless = events_of(&lab, &[]);
    assert!(nameless.iter().all(|e| e.stack.as_ref().is_some_and(|s| s.frames.iter().all(|f| f.sym.is_none()))));
    let dir = lab.dir().to_str().expect("UTF-8");
    expect_none(&wrong(&events_of(&lab, &["--debug-dir", dir]), "chains", &[C[0], C[1]], true));

    // stacks of the calls that were asked for only
    let none = |event: &Event| event.stack.as_ref().is_none_or(|stack| stack.frames.is_empty());
    let calls = ["--call-graph", "dwarf", "-e", "=lseek", "--stacks-min", "10000"];
    lab.record("t.tape", &calls, &["./chains", "plain"]).expect(0);
    assert!(events_of(&lab, &[]).iter().all(none));
    let switches = ["--call-graph", "dwarf", "-e", "=lseek", "--stacks-on", "switch"];
    lab.record("t.tape", &switches, &["./chains", "plain"]).expect(0);
    lab.analyze(&["t.tape", "-e", "=lseek", "--call-graph"]).says(1, &["none of syscalls", "analyze callgraph"]);

    // the kernel's part: its entry is below every call
    lab.record("t.tape", &["--call-graph", "dwarf", "--kernel-stacks", "-e", "=lseek"], &["./chains", "plain"])
        .expect(0);
    let run = lab.analyze(&["t.tape", "-e", "=lseek", "--call-graph", "--format", "json"]).expect(0);
    let kernel = |line: &serde_json::Value| {
        let frames = line["stack"].as_array().cloned().unwrap_or_default();
        let first_user = frames.iter().position(|f| f["kernel"] != true);
        let kernel: Vec<_> = frames.iter().filter(|f| f["kernel"] == true).collect();
        // inner frames first, and the user's behind all of them
        !kernel.is_empty()
            && first_user == Some(kernel.len())
            && kernel.iter().any(|f| f["sym"].as_str().is_some_and(|sym| sym.contains("syscall")))
    };
    let lines = run.json();
    let of_chains: Vec<_> = lines.iter().filter(|line| Event::of(line).is_some()).collect();
    assert_eq!(of_chains.len(), stacks::TIMES);
    assert!(of_chains.iter().all(|line| kernel(line)), "{:?}", of_chains.iter().find(|line| !kernel(line)));
    expect_none(&wrong(&events_of(&lab, &[]), "chains", &[C[0]], true));
}

#[track_caller]
fn events_of(lab: &Lab, options: &[&str]) -> Vec<Event> {
    let events = events(lab, "t.tape", options);
    assert!(!events.is_empty());
    events
}
