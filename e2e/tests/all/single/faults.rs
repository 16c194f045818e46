//! Page faults of a program that touches pages at addresses it prints are exactly those: addresses, reasons and order, with every kind of
//! target; beside perf on the same run. Stacks name the function that touched, sums agree with the listing, and what finds no room is counted.
//! Bytes of a file that a program touches, whose pages are not in memory, are major faults with that file and offset, and as many as getrusage counts.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use systape_e2e::disk::has;
use systape_e2e::lab;
use systape_e2e::{Background, Lab};

const PAGES: u64 = 96;
const FAULT: &[&str] = &["-e", "fault:page_fault_user", "--format", "json"];

/// A fault: address, error code, and the function that touched.
type Fault = (u64, u64, String);

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// What the workload says that it did: its region, and its faults in there.
fn truth(said: &str) -> ((u64, u64), Vec<Fault>) {
    let mut lines = said.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let Some(["region", from, to]) =
        lines.next().as_deref().map(|words| <[&str; 3]>::try_from(words).expect("3 words"))
    else {
        panic!("no region: {said}")
    };
    let fault = |words: Vec<&str>| (hex(words[0]), hex(words[1]), words[2].to_owned());
    ((hex(from), hex(to)), lines.map(fault).collect())
}

/// The faults of a tape in `region`, in order of time; without -g without a function.
fn faults(lab: &Lab, options: &[&str], region: (u64, u64)) -> Vec<Fault> {
    let lines = lab.analyze(&[&["t.tape"], FAULT, options].concat()).expect(0).json();
    let mut found = Vec::new();
    for line in lines {
        assert_eq!(line["event"], "exceptions:page_fault_user", "{line}");
        assert!(line["cpu"].is_u64() && line["tid"].is_u64(), "{line}");
        let args = &line["args"];
        let [address, code] = ["address", "error_code"].map(|name| hex(args[name].as_str().expect(name)));
        let function = line["stack"][0]["sym"].as_str().unwrap_or_default().to_owned();
        if (region.0..region.1).contains(&address) {
            found.push((address, code, function));
        }
    }
    found
}

fn without_functions(faults: &[Fault]) -> Vec<Fault> {
    faults.iter().map(|(address, code, _)| (*address, *code, String::new())).collect()
}

fn workload(lab: &Lab) -> String {
    lab.cc("page_faults", &["-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"])
}

#[test]
fn faults_are_those_of_the_program_whatever_the_target() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = workload(&lab);
    let pages = PAGES.to_string();
    // as a command
    let run = lab.record("t.tape", &["--families", "fault"], &[&program, &pages]).expect(0);
    let (region, all) = truth(&run.text());
    assert_eq!(all.len() as u64, 3 * PAGES);
    assert_eq!(faults(&lab, &[], region), without_functions(&all));
    lab.assert_whole("t.tape");
    assert_eq!(lab.info("t.tape")["families"], serde_json::json!(["process", "fault"]));
    // beside others
    for target in [&["-p", "PID"][..], &["-a", "--comm", "page_faults"], &["-a"]] {
        fs::remove_file(lab.path("go")).ok();
        let waits = Background::start(lab.command(&program).args([pages.as_str(), "go"]));
        let pid = waits.pid_text();
        let words = target.iter().map(|word| if *word == "PID" { pid.as_str() } else { word });
        let options: Vec<&str> = ["--families", "fault"].into_iter().chain(words).collect();
        let record = lab.attach("t.tape", &options);
        fs::write(lab.path("go"), "").expect("go");
        let (region, all) = truth(&waits.wait().expect(0).text());
        record.stop(libc::SIGINT).expect(0);
        assert_eq!(faults(&lab, &["-p", &pid], region), without_functions(&all), "{options:?}");
        // of nobody else, unless everybody is recorded
        let lines = lab.analyze(&[&["t.tape"], FAULT].concat()).expect(0).json();
        let others = lines.iter().filter(|line| line["pid"].as_u64() != pid.parse().ok()).count();
        assert!(others == 0 || options.last() == Some(&"-a"), "{options:?}: {others} faults of others");
    }
}

#[test]
fn stacks_and_sums_agree_with_the_listing() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = workload(&lab);
    for graph in [&["-g"][..], &["--call-graph", "dwarf"]] {
        let options = [&["--families", "syscall,fault"], graph].concat();
        let run = lab.record("t.tape", &options, &[&program, &PAGES.to_string()]).expect(0);
        let (region, all) = truth(&run.text());
        assert_eq!(faults(&lab, &["--call-graph"], region), all, "{graph:?}");
        // in text the function stands below the line
        let text = lab.analyze(&["t.tape", "-e", "fault:*", "--call-graph"]).expect(0).text();
        assert_eq!(text.lines().filter(|line| line.contains(" write_read_pages (")).count() as u64, PAGES, "{text}");
        // sums by task
        let lines = lab.analyze(&[&["t.tape"], FAULT].concat()).expect(0).json();
        let sums = lab.analyze(&[&["t.tape", "-s"], FAULT].concat()).expect(0).json();
        assert!(!sums.is_empty());
        for sum in &sums {
            let of = lines.iter().filter(|line| line["utid"] == sum["utid"]).count();
            assert_eq!((&sum["count"], &sum["count_at_least"]), (&of.into(), &false.into()), "{sum}");
        }
        let counted: u64 = sums.iter().filter_map(|sum| sum["count"].as_u64()).sum();
        assert_eq!(counted, lines.len() as u64);
        // the graph
        let rows = lab.analyze(&["callgraph", "t.tape", "--of", "fault", "--format", "json"]).expect(0).json();
        let roots = rows.iter().filter(|row| row["parent"].is_null());
        assert_eq!(roots.filter_map(|row| row["count"].as_u64()).sum::<u64>(), counted);
        for function in ["read_pages", "write_pages", "write_read_pages"] {
            let of = rows.iter().filter(|row| row["sym"] == function);
            assert_eq!(of.filter_map(|row| row["self_count"].as_u64()).sum::<u64>(), PAGES, "{function}");
        }
        // a copy without names has the rows and their stacks; names of tasks, which rows are apart by, are gone
        lab.analyze(&["redact", "--level", "all", "t.tape", "r.tape"]).expect(0);
        let copy = lab.analyze(&["callgraph", "r.tape", "--of", "fault", "--format", "json"]).expect(0).json();
        let by_function = |rows: &[Value]| -> BTreeMap<String, u64> {
            let mut sums = BTreeMap::new();
            for row in rows {
                *sums.entry(row["sym"].to_string()).or_default() += row["self_count"].as_u64().expect("a count");
            }
            sums
        };
        assert_eq!(by_function(&copy), by_function(&rows));
        fs::remove_file(lab.path("r.tape")).expect("remove");
    }
}

#[test]
fn perf_sees_the_same() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has("perf") {
        eprintln!("SKIPPED perf_sees_the_same: no perf");
        return;
    }
    let program = workload(&lab);
    let pages = PAGES.to_string();
    let perf = ["perf", "record", "-q", "-o", "p.data", "-e", "exceptions:page_fault_user", "--", &program, &pages];
    let run = lab.record("t.tape", &["--families", "fault"], &perf).expect(0);
    let (region, all) = truth(&run.text());
    let script = lab::run(lab.command("perf").args(["script", "-i", "p.data", "-F", "trace"])).expect(0).text();
    let field = |line: &str, name: &str| {
        let (_, rest) = line.split_once(name).unwrap_or_else(|| panic!("no {name} in {line}"));
        hex(rest.split(' ').next().unwrap_or_default())
    };
    let seen = script.lines().map(|line| (field(line, "address="), field(line, "error_code="), String::new()));
    let of_perf: Vec<Fault> = seen.filter(|(address, ..)| (region.0..region.1).contains(address)).collect();
    assert_eq!(of_perf, without_functions(&all), "perf");
    assert_eq!(faults(&lab, &[], region), of_perf);
}

#[test]
fn what_finds_no_room_is_counted() {
    let Some(lab) = Lab::with_bpf() else { return };
    if !has("perf") {
        eprintln!("SKIPPED what_finds_no_room_is_counted: no perf");
        return;
    }
    let program = workload(&lab);
    // perf counts from the execve on, which gives the task its name
    let options = ["-m", "1", "--families", "fault", "-a", "--comm", "page_faults"];
    let stat =
        ["perf", "stat", "-x", ",", "-o", "stat.txt", "-e", "exceptions:page_fault_user", "--", &program, "30011"];
    let run = lab.record("t.tape", &options, &stat).expect(0);
    let (_, all) = truth(&run.text());
    let said = fs::read_to_string(lab.path("stat.txt")).expect("stat.txt");
    let of_perf: u64 = said.lines().find_map(|line| line.split(',').next()?.parse().ok()).expect("a count");
    assert!(of_perf >= all.len() as u64, "{said}");
    let info = lab.info("t.tape");
    let lost = info["lost"]["fault"].as_u64().expect("nothing was lost, so nothing is tested");
    let sums = lab.analyze(&[&["t.tape", "-s"], FAULT].concat()).expect(0).json();
    let counted: u64 = sums.iter().filter_map(|sum| sum["count"].as_u64()).sum();
    assert_eq!(counted + lost, of_perf, "{info}");
    assert!(sums.iter().all(|sum| sum["count_at_least"] == true), "{sums:?}");
    // every answer about them says so
    let lines = lab.analyze(&[&["t.tape"], FAULT].concat()).expect(0).json();
    let (gaps, events): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line.get("lost").is_some());
    assert_eq!(events.len() as u64, counted);
    assert!(gaps.iter().all(|gap| gap["family"] == "fault" && gap["cause"] == "ring-full"), "{gaps:?}");
    assert_eq!(gaps.iter().filter_map(|gap| gap["lost"].as_u64()).sum::<u64>(), lost);
    let text = lab.analyze(&["t.tape", "-s", "-e", "fault:*"]).expect(0).text();
    assert!(text.contains("LOST ") && text.contains(&format!(">={counted}")), "{text}");
    assert_eq!(lab.analyze(&["t.tape", "-s", "-e", "fault:*", "--fail-on-loss"]).code(), 3);
}

#[test]
fn faults_are_recorded_only_when_they_are_named() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = workload(&lab);
    for families in [&[][..], &["--families", "all"]] {
        lab.record("t.tape", families, &[&program, "3"]).expect(0);
        assert!(!lab.info("t.tape")["families"].to_string().contains("fault"));
        let run = lab.analyze(&["t.tape", "-e", "fault:*"]);
        assert!(run.code() != 0 && run.stderr.contains("fault events were not recorded"), "{}", run.stderr);
    }
    lab.record("t.tape", &["--families", "all,fault"], &[&program, "3"]).expect(0);
    let families = lab.info("t.tape")["families"].to_string();
    assert!(families.contains("fault") && families.contains("sched"), "{families}");
    // a kernel that refuses the program
    let force = ["--families", "syscall,fault", "--force", "unloadable=page_fault_user"];
    let said = lab.record("t.tape", &force, &[&program, "3"]).expect(0).stderr;
    assert!(said.contains("fault is not recorded: the kernel refused the program page_fault_user"), "{said}");
    let run = lab.analyze(&["t.tape", "-s", "-e", "fault:*"]);
    assert!(run.code() != 0 && run.stderr.contains("page_fault_user"), "{}", run.stderr);
}

/// A touch of the workload: memory, offset, access, and by whom.
type Touch = (String, String, String, String);

#[test]
fn major_faults_have_file_offset_and_duration() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("mapped_faults", &["-fno-omit-frame-pointer"]);
    let file = lab.path("mapped").display().to_string();
    let run = lab.record("t.tape", &["--families", "fault", "-g"], &[&program, &file]).expect(0);
    lab.assert_whole("t.tape");
    let said = run.text();
    let mut truth: Vec<(u64, Touch)> = Vec::new();
    let mut counted = None;
    for line in said.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            [address, memory, offset, access, by] => {
                let memory = if memory == "file" { file.as_str() } else { memory };
                let offset = if offset == "-" { "?" } else { offset };
                let touch = (memory.to_owned(), offset.to_owned(), access.to_owned(), by.to_owned());
                truth.push((hex(address), touch));
            }
            ["faults", count] => counted = count.parse::<usize>().ok(),
            _ => panic!("{line}"),
        }
    }
    let rows = |event: &str| lab.analyze(&["t.tape", "-e", event, "--format", "json"]).expect(0).json();
    let text = |row: &Value, name: &str| row["args"][name].as_str().unwrap_or("?").to_owned();
    // where each touch by the program was, is known when it begins
    let begun = rows("fault:page_fault_user");
    let mut begins = BTreeMap::new();
    for (address, (memory, offset, _, _)) in truth.iter().filter(|(_, touch)| touch.3 == "program") {
        let of =
            begun.iter().find(|row| hex(&text(row, "address")) == *address).unwrap_or_else(|| panic!("{address:x}"));
        assert_eq!((text(of, "memory"), text(of, "offset")), (memory.clone(), offset.clone()), "{of}");
        begins.insert(*address, of["ts_ns"].as_i64().expect("a time"));
    }
    // of the file those that waited for storage: all of them, if the page cache gave all of it away
    let majors: Vec<Value> = rows("fault:major").into_iter().filter(|row| text(row, "memory") == file).collect();
    let mut left = truth.iter();
    for row in &majors {
        let address = hex(&text(row, "address"));
        let (_, touch) = left.find(|(at, _)| *at == address).unwrap_or_else(|| panic!("in no order: {row}"));
        let seen = ["memory", "offset", "access", "by"].map(|name| text(row, name));
        assert_eq!(seen, [&touch.0, &touch.1, &touch.2, &touch.3].map(Clone::clone), "{row}");
        let (end, dur) = (row["ts_ns"].as_i64().expect("a time"), row["args"]["dur"].as_i64().expect("a duration"));
        assert!(dur > 0, "{row}");
        if let Some(begin) = begins.get(&address) {
            assert_eq!(end - dur, *begin, "{row}");
        }
    }
    let by_program = |row: &&Value| text(row, "by") == "program" && text(row, "offset") != "4173";
    assert_eq!(Some(majors.iter().filter(by_program).count()), counted, "{said}");
    if counted == Some(0) {
        eprintln!("SKIPPED the end of major_faults_have_file_offset_and_duration: files here are in memory");
        return;
    }
    // the sums by file, and the graph, are of the same rows
    let sums = lab.analyze(&["t.tape", "-s", "-e", "fault:major", "--by", "file", "--format", "json"]).expect(0).json();
    let of_file = sums.iter().find(|row| row["file"] == *file).expect("a sum of the file");
    assert_eq!(of_file["count"], majors.len());
    let graph = lab.analyze(&["callgraph", "t.tape", "--of", "fault:major", "--format", "json"]).expect(0).json();
    let of_main = graph.iter().filter(|row| row["sym"] == "main");
    assert!(of_main.filter_map(|row| row["count"].as_u64()).sum::<u64>() >= counted.unwrap_or(0) as u64);
}
