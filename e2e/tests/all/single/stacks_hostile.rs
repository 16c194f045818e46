//! Stacks of programs whose files are broken: unwind information that lies, loops or is cut, debug information that is
//! noise, files that turn into something else once they are loaded; and of programs whose registers point anywhere. They
//! cost their own frames and names and nothing else. And the recorder may be killed at any time.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use systape_e2e::elf::Elf;
use systape_e2e::stacks::{Case, Event, Stack, compile, wrong};
use systape_e2e::{Background, Lab, lab, stacks};

/// Events each broken library makes, and as many are made beside it.
const TURNS: usize = 13;

/// A way to break a library: a name, and what is done to the file.
type Way = (&'static str, fn(&mut Elf));

/// Every FDE's first field after its length, a distance back to its CIE, and what it should be.
fn cie_pointers(elf: &mut Elf, pointer: u32) {
    for fde in elf.fdes() {
        elf.put(fde.start + 4, &pointer.to_le_bytes());
    }
}

const UNWIND: [Way; 18] = [
    ("length-huge", |elf| elf.put(elf.section(".eh_frame").start, &0xffff_fff0_u32.to_le_bytes())),
    ("length-64", |elf| {
        elf.put(elf.section(".eh_frame").start, &[[0xff; 4], [0xf0, 0xff, 0xff, 0xff], [0xff; 4]].concat());
    }),
    ("ends-at-once", |elf| elf.put(elf.section(".eh_frame").start, &[0; 4])),
    ("cie-itself", |elf| cie_pointers(elf, 4)),
    ("cie-outside", |elf| cie_pointers(elf, 0x7fff_fff0)),
    ("noise", |elf| elf.scramble(".eh_frame", 0)),
    ("noise-later", |elf| elf.scramble(".eh_frame", 24)),
    ("noise-hdr", |elf| elf.scramble(".eh_frame_hdr", 4)),
    ("count-huge", |elf| elf.put(elf.section(".eh_frame_hdr").start + 8, &[0xff; 4])),
    ("section-cut", |elf| elf.put(elf.header(".eh_frame") + 0x20, &7_u64.to_le_bytes())),
    ("section-huge", |elf| elf.put(elf.header(".eh_frame") + 0x20, &(u64::MAX / 2).to_le_bytes())),
    ("section-away", |elf| elf.put(elf.header(".eh_frame") + 0x18, &(u64::MAX - 64).to_le_bytes())),
    ("sections-away", |elf| elf.put(0x28, &(u64::MAX - 640).to_le_bytes())),
    ("sections-many", |elf| elf.put(0x3c, &[0xff; 4])),
    // DW_CFA_def_cfa_expression { DW_OP_skip -3 }: for ever
    ("expression-loops", |elf| elf.rules(&[0x0f, 3, 0x2f, 0xfd, 0xff])),
    // DW_CFA_def_cfa_expression { DW_OP_lit0; DW_OP_deref }: memory that is not there
    ("expression-null", |elf| elf.rules(&[0x0f, 2, 0x30, 0x06])),
    // DW_CFA_def_cfa rsp 0, DW_CFA_same_value rip: the caller is the function itself
    ("stands-still", |elf| elf.rules(&[0x0c, 7, 0, 0x08, 16])),
    // DW_CFA_remember_state for ever
    ("remembers", |elf| elf.rules(&[0x0a; 8])),
];

const DEBUG: [Way; 10] = [
    ("info-noise", |elf| elf.scramble(".debug_info", 11)),
    ("info-huge", |elf| elf.put(elf.section(".debug_info").start, &0xffff_fff0_u32.to_le_bytes())),
    ("abbrev-noise", |elf| elf.scramble(".debug_abbrev", 0)),
    ("line-noise", |elf| elf.scramble(".debug_line", 4)),
    ("str-noise", |elf| elf.scramble(".debug_str", 0)),
    ("symtab-noise", |elf| elf.scramble(".symtab", 0)),
    ("symtab-huge", |elf| elf.put(elf.header(".symtab") + 0x20, &(u64::MAX - 7).to_le_bytes())),
    ("strtab-gone", |elf| elf.put(elf.header(".symtab") + 0x28, &0xffff_u32.to_le_bytes())),
    // SHF_COMPRESSED: the unit's header read as one of compression, with a size of exabytes
    ("compressed", |elf| {
        let (header, at) = (elf.header(".debug_info"), elf.section(".debug_info").start);
        elf.put(header + 8, &0x800_u64.to_le_bytes());
        elf.put(at, &[1_u64.to_le_bytes(), (u64::MAX / 4).to_le_bytes(), 1_u64.to_le_bytes()].concat());
    }),
    ("note-huge", |elf| elf.put(elf.section(".note.gnu.build-id").start, &[0xff; 8])),
];

/// Makes a library for each way, and some whose files are replaced while they are in use.
fn libraries(lab: &Lab, ways: &[Way]) -> Vec<String> {
    let flags = ["-O2", "-fPIC", "-shared", "-DPREFIX=plug", "-DID=LIBRARY"];
    compile(lab, &[("plug.so", "chainlib.c", &flags)]);
    let sound = Elf::read(&lab.path("plug.so"));
    let broken = |(name, way): &Way| {
        let mut elf = sound.clone();
        way(&mut elf);
        assert_ne!(elf.0, sound.0, "{name} breaks nothing");
        let path = format!("./{name}.so");
        fs::write(lab.path(&path), &elf.0).expect("write");
        path
    };
    ways.iter().map(broken).collect()
}

/// Records the program with these libraries; gives its events, of which those outside the libraries are right.
#[track_caller]
fn record(lab: &Lab, plugs: &[String]) -> Vec<Event> {
    compile(lab, &[("hostile", "hostile.c", &["-O2"])]);
    let command: Vec<_> = ["./hostile"].into_iter().chain(plugs.iter().map(String::as_str)).collect();
    lab.record("t.tape", &["--call-graph", "dwarf", "-e", "=lseek"], &command).expect(0);
    let events = stacks::events(lab, "t.tape", &[]);
    let sound = Case { times: TURNS * plugs.len(), ..Case::new(40, "sound", "sound_inner sound_outer main") };
    let found = wrong(&events, "hostile", &[sound], true);
    assert!(found.is_empty(), "{}", found.join("\n"));
    lab.analyze(&["callgraph", "t.tape", "--of", "syscall", "--folded"]).expect(0);
    lab.assert_whole("t.tape");
    events
}

/// The stacks of the library that is argument `number` of the program.
fn stacks_of(events: &[Event], number: usize) -> Vec<&Stack> {
    let of = |e: &&Event| e.case == 20 && e.turn / 1000 == i64::try_from(number).expect("small");
    events.iter().filter(of).filter_map(|e| e.stack.as_ref()).collect()
}

const CHAIN: &str = "plug_leaf plug_middle plug_outer calls_plug main";

#[test]
fn broken_unwind_information() {
    let Some(lab) = Lab::with_bpf() else { return };
    let plugs = libraries(&lab, &UNWIND);
    let events = record(&lab, &plugs);
    let mut wrong = Vec::new();
    for (i, (name, _)) in UNWIND.iter().enumerate() {
        let stacks = stacks_of(&events, i + 1);
        assert_eq!(stacks.len(), TURNS, "{name}");
        // right all the same (it may not look at what is broken), or it does not call itself complete
        let lies = |s: &&&Stack| s.status == "complete" && !s.is(CHAIN, false);
        if let Some(stack) = stacks.iter().find(lies) {
            wrong.push(format!("{name}: {}", stack.brief()));
        }
        // where the call was made is known whatever the file says, and has a name unless the file lost its sections
        let named = !name.starts_with("sections-");
        let begins = |s: &&&Stack| s.is("plug_leaf ...", named);
        if let Some(stack) = stacks.iter().find(|s| !begins(s)) {
            wrong.push(format!("{name}: does not begin with plug_leaf: {}", stack.brief()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn broken_debug_information() {
    let Some(lab) = Lab::with_bpf() else { return };
    let mut plugs = libraries(&lab, &DEBUG);
    // what takes their place once they are loaded would be waited for, or read, for ever
    for name in ["fifo", "zero"] {
        fs::copy(lab.path("plug.so"), lab.path(&format!("{name}.so"))).expect("copy");
        plugs.push(format!("./{name}.so"));
    }
    // a link to debug information that is a pipe nobody writes to
    stacks::tool(&lab, "cp", &["plug.so", "linked.so"]);
    stacks::tool(&lab, "cp", &["plug.so", "pipe.debug"]);
    stacks::tool(&lab, "objcopy", &["--strip-all", "--add-gnu-debuglink=pipe.debug", "linked.so"]);
    fs::remove_file(lab.path("pipe.debug")).expect("rm");
    stacks::tool(&lab, "mkfifo", &["pipe.debug"]);
    plugs.push("./linked.so".into());
    let events = record(&lab, &plugs);
    let mut wrong = Vec::new();
    for (i, name) in plugs.iter().enumerate() {
        let stacks = stacks_of(&events, i + 1);
        assert_eq!(stacks.len(), TURNS, "{name}");
        // frames do not depend on debug information, but on a file that can still be opened
        let gone = ["./fifo.so", "./zero.so"].contains(&name.as_str());
        let frames = |s: &Stack| {
            let real = s.frames.iter().filter(|frame| !frame.inlined).count();
            s.status == "complete" && real >= 8 || gone && s.status == "no-file"
        };
        if let Some(stack) = stacks.iter().find(|s| !frames(s)) {
            wrong.push(format!("{name}: {}", stack.brief()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn broken_executables() {
    let Some(lab) = Lab::with_bpf() else { return };
    compile(&lab, &[("sound", "chains.c", &["-O2"])]);
    let sound = Elf::read(&lab.path("sound"));
    let mut script = String::new();
    let ways = UNWIND.iter().chain(&DEBUG);
    for (name, way) in ways.clone() {
        let mut elf = sound.clone();
        way(&mut elf);
        fs::copy(lab.path("sound"), lab.path(name)).expect("copy");
        fs::write(lab.path(name), &elf.0).expect("write");
        script.push_str(&format!("./{name} once || exit 1\n"));
    }
    script.push_str("./sound plain\n");
    lab.record("t.tape", &["--call-graph", "dwarf", "-e", "=lseek"], &["sh", "-c", &script]).expect(0);
    lab.assert_whole("t.tape");
    let events = stacks::events(&lab, "t.tape", &[]);
    let plain = Case::new(1, "plain", "leaf middle outer run_case main");
    let found = wrong(&events, "sound", &[plain], true);
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert_eq!(events.iter().filter(|e| e.comm != "sound").count(), ways.count());
}

#[test]
fn odd_registers() {
    let Some(lab) = Lab::with_bpf() else { return };
    compile(&lab, &[("odd", "registers.c", &["-O1", "-fno-omit-frame-pointer"])]);
    for (call_graph, status) in [("dwarf", "complete"), ("fp", "frame-pointers")] {
        let options = ["--call-graph", call_graph, "-e", "=lseek", "--kernel-stacks"];
        let run = lab.record("t.tape", &options, &["./odd"]).expect(0);
        let times = run.text().trim().parse().expect("a number");
        let events = stacks::events(&lab, "t.tape", &[]);
        lab.assert_whole("t.tape");
        // by frame pointers the C library's wrapper hides who called it
        let chain = if status == "complete" { "sound_inner sound_outer main" } else { "sound_outer main" };
        let sound = Case { times, status, ..Case::new(40, "sound", chain) };
        let mut found = wrong(&events, "odd", &[sound], true);
        let odd: Vec<_> = events.iter().filter(|e| e.case == 41).collect();
        assert_eq!(odd.len(), times, "{call_graph}");
        // where the call was made is known whatever the other registers are; nothing leads to the outermost frame, but a
        // return address of 0, where there is one, says that this is it
        let fits = |s: &Stack| s.is("odd_call ...", true) && (s.status != "complete" || s.frames.len() == 1);
        let bad: Vec<_> = odd.iter().filter_map(|e| e.stack.as_ref()).filter(|s| !fits(s)).collect();
        found.extend(bad.first().map(|s| format!("{call_graph}: {} odd: {}", bad.len(), s.brief())));
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

/// Unmounts what hangs, also when the test fails; what waits for it goes on then.
struct HangMaps;

impl Drop for HangMaps {
    fn drop(&mut self) {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        for path in mounts.lines().filter_map(|line| line.strip_prefix("hangmap ")?.split(' ').next()) {
            let name = std::ffi::CString::new(path).expect("no NUL");
            // SAFETY: name is a NUL-terminated string.
            unsafe { libc::umount2(name.as_ptr(), libc::MNT_FORCE | libc::MNT_DETACH) };
            fs::remove_file(path).ok();
        }
    }
}

#[test]
fn names_of_made_code_that_never_come() {
    let Some(lab) = Lab::with_bpf() else { return };
    compile(&lab, &[("chains", "chains.c", &["-O2"])]);
    lab.cc("hangmap", &[]);
    // instead of a list of names: a pipe nobody writes to, a list of a terabyte, one that never ends, another's file, a good list
    // that another user owns, one on a file system that does not answer
    for map in ["pipe", "huge", "/dev/zero", "/etc/passwd", "planted", "hangs"] {
        let mut record = lab.record_command("t.tape", &["--call-graph", "dwarf", "-e", "=lseek"], &["./chains", "jit"]);
        let _mounted = HangMaps;
        lab::run(record.env("ODD_MAP", map)).expect(0);
        let events = stacks::events(&lab, "t.tape", &[]);
        events.iter().for_each(|e| drop(fs::remove_file(format!("/tmp/perf-{}.map", e.tid))));
        let made = Case::new(15, map, "leaf called_back @unnamed calls_made_code run_case main");
        let found = wrong(&events, "chains", &[made], true);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

/// A program that makes code in a mount namespace with a /tmp of its own, both of which end before the recording does.
#[test]
fn names_of_made_code_in_a_container_that_has_ended() {
    let Some(lab) = Lab::with_bpf() else { return };
    compile(&lab, &[("chains", "chains.c", &["-O2"])]);
    let inside = "mount -t tmpfs none /mnt && cp $0 /mnt && mount -t tmpfs none /tmp && exec /mnt/chains jit rest";
    let program = lab.file("chains");
    // the recorder's own /tmp has no such map, now or later
    let outside = |events: &[Event]| events.iter().any(|e| Path::new(&format!("/tmp/perf-{}.map", e.tid)).exists());
    for unshare in [&["unshare", "-m"][..], &["unshare", "-m", "-p", "--fork", "--mount-proc"]] {
        let command = [unshare, &["sh", "-c", inside, &program]].concat();
        lab.record("t.tape", &["--call-graph", "dwarf", "-e", "=lseek"], &command).expect(0);
        lab.assert_whole("t.tape");
        let events = stacks::events(&lab, "t.tape", &[]);
        assert!(!outside(&events));
        let made = Case::new(15, "jit", "leaf called_back made_at_run_time calls_made_code run_case main");
        let found = wrong(&events, "chains", &[made], true);
        assert!(found.is_empty(), "{unshare:?}: {}", found.join("\n"));
    }
}

#[test]
fn recorder_killed() {
    let Some(lab) = Lab::with_bpf() else { return };
    compile(&lab, &[("chains", "chains.c", &["-O2"])]);
    let program = Background::start(lab.command("./chains").arg("forever"));
    let options = ["--call-graph", "dwarf", "-e", "=lseek", "-p", &program.pid_text()];
    let recorder = lab.attach("t.tape", &options);
    std::thread::sleep(Duration::from_millis(3500));
    assert_eq!(lab::killed_by(&recorder.stop(libc::SIGKILL)), Some(libc::SIGKILL));
    drop(program);
    let info = lab.info("t.tape");
    assert_eq!(info["clean_end"], false, "{info}");
    let stacks = |options: &[&str]| {
        let run = lab.analyze(&[&["t.tape", "-e", "=lseek", "--call-graph", "--format", "json"], options].concat());
        let lines = run.expect(0).json();
        let stored = |line: &&Value| line.get("lost").is_none() && line["incomplete"] != "in-flight";
        let events: Vec<_> = lines.iter().filter(stored).filter_map(Event::of).collect();
        assert!(events.len() > 500, "{} events", events.len());
        events
    };
    // names come with a chunk's end, which it did not live to see; frames with every segment
    let whole = |e: &Event, named| {
        let stack = e.stack.as_ref();
        stack.is_some_and(|s| s.status == "complete" && s.is("leaf middle outer run_case main", named))
    };
    let events = stacks(&[]);
    let good = events.iter().filter(|e| whole(e, false) || whole(e, true)).count();
    assert!(
        good * 100 >= events.len() * 99,
        "{good} of {}: {:?}",
        events.len(),
        events.iter().find(|e| !whole(e, false))
    );
    // where the files still are, the names are too
    let events = stacks(&["--debug-dir", lab.dir().to_str().expect("UTF-8")]);
    let good = events.iter().filter(|e| whole(e, true)).count();
    assert!(
        good * 100 >= events.len() * 99,
        "{good} of {}: {:?}",
        events.len(),
        events.iter().find(|e| !whole(e, true))
    );
}
