//! The answers to the questions of the bcc tools beside bpftrace on the same run, or beside what the program counted where such a tool needs
//! kprobes, which not every machine has. `UPDATE_GOLDEN=1` writes what was compared to docs/reference/parity.md.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use systape_e2e::disk::{Loop, has};
use systape_e2e::{Background, Lab};

/// What one tool is compared in: who says what.
struct Row {
    tool: &'static str,
    command: &'static str,
    peer: &'static str,
    theirs: String,
    ours: String,
    note: &'static str,
}

/// The peer's questions; it prints them whenever a process of the workload ends, so that nothing depends on how it is stopped.
fn script(disk: u64) -> String {
    format!(
        r#"BEGIN {{ printf("ready\n"); }}
tracepoint:raw_syscalls:sys_enter /comm == "parity"/ {{ @calls[args->id] = count(); }}
tracepoint:sched:sched_wakeup, tracepoint:sched:sched_wakeup_new /args->comm == "parity"/ {{ @woken[args->pid] = nsecs; }}
tracepoint:sched:sched_switch /args->prev_comm == "parity"/ {{
    if (@in[args->prev_pid]) {{ @runs = count(); @ran = sum(nsecs - @in[args->prev_pid]); }}
    @out[args->prev_pid] = nsecs;
    if ((args->prev_state & 0xff) == 0) {{ @woken[args->prev_pid] = nsecs; }}
}}
tracepoint:sched:sched_switch /args->next_comm == "parity"/ {{
    if (@woken[args->next_pid]) {{ @waits = count(); @waited = sum(nsecs - @woken[args->next_pid]); delete(@woken[args->next_pid]); }}
    if (@out[args->next_pid]) {{ @aways = count(); @away = sum(nsecs - @out[args->next_pid]); }}
    @in[args->next_pid] = nsecs;
}}
tracepoint:sched:sched_waking /args->comm == "parity"/ {{ @wakes[args->pid] = count(); }}
uprobe:./parity:work {{ @entered[tid] = nsecs; }}
uretprobe:./parity:work /@entered[tid]/ {{ @works = count(); @worked = sum(nsecs - @entered[tid]); delete(@entered[tid]); }}
tracepoint:block:block_rq_issue /args->dev == {disk}/ {{ @size[args->bytes] = count(); }}
tracepoint:block:block_rq_complete /args->dev == {disk}/ {{ @done = count(); }}
tracepoint:sched:sched_process_exit /comm == "parity"/ {{
    printf("maps\n");
    print(@calls); print(@runs); print(@ran); print(@waits); print(@waited); print(@aways); print(@away);
    print(@works); print(@worked); print(@size); print(@done); print(@wakes);
    printf("end\n");
}}
"#
    )
}

/// The last maps that it printed: `calls[39]`, `runs`.
fn maps(text: &str) -> BTreeMap<String, u64> {
    let last = text.rsplit("maps\n").next().unwrap_or_default();
    let pairs = last.lines().filter_map(|line| line.strip_prefix('@')?.split_once(": "));
    pairs.map(|(name, value)| (name.to_owned(), value.trim().parse().expect("a number"))).collect()
}

/// Starts one of bpftrace's own tools, and says where it writes.
fn tool(lab: &Lab, name: &str) -> (Background, PathBuf) {
    let script = ["/usr/sbin", "/usr/share/bpftrace/tools"].map(|dir| PathBuf::from(dir).join(name));
    let script = script.into_iter().find(|path| path.exists()).expect(name);
    started(lab, name, &script, "PID")
}

fn started(lab: &Lab, name: &str, script: &Path, ready: &str) -> (Background, PathBuf) {
    let said = lab.path(&format!("{name}.said"));
    let words = format!("exec bpftrace -B line '{}' >'{}'", script.display(), said.display());
    let peer = Background::start(lab.command("sh").args(["-c", &words]));
    lab.until(name, || fs::read_to_string(&said).is_ok_and(|text| text.contains(ready)));
    (peer, said)
}

/// Sum of a column of the rows of JSON.
fn sum(rows: &[Value], column: &str) -> u64 {
    rows.iter()
        .map(|row| match &row[column] {
            Value::String(text) => text.parse().expect("a number"),
            value => value.as_u64().unwrap_or(0),
        })
        .sum()
}

fn words(lines: &str) -> Vec<Vec<String>> {
    lines.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn each_tool_says_the_same() {
    let Some(lab) = Lab::beside() else { return };
    if !has("bpftrace") {
        return;
    }
    let Some(disk) = Loop::new(&lab, "image", 16 << 20) else { return };
    lab.cc("parity", &[]);
    fs::write(lab.path("peer.bt"), script(disk.dev())).expect("script");
    let (peer, said) = started(&lab, "peer", &lab.path("peer.bt"), "ready");
    let (kills, kills_said) = tool(&lab, "killsnoop.bt");
    let (names, names_said) = tool(&lab, "gethostlatency.bt");
    let command = format!("./parity {} {}; getent ahosts localhost; getent ahosts localhost", lab.file(""), disk.path);
    let options = ["--probe", "dns", "--uprobe", "./parity:work(n=int)->int"];
    let out = lab.record("t.tape", &options, &["sh", "-c", &command]).expect(0).text();
    lab.until("maps", || fs::read_to_string(&said).is_ok_and(|text| text.matches("\nend\n").count() == 2));
    // what it printed last is on its way
    std::thread::sleep(std::time::Duration::from_secs(1));
    [peer, kills, names].into_iter().for_each(|peer| drop(peer.stop(libc::SIGKILL)));
    let [theirs, kills, names] = [said, kills_said, names_said].map(|path| fs::read_to_string(path).expect("said"));
    let theirs = maps(&theirs);
    let mut rows = Vec::new();
    let mut row = |tool, command, peer, theirs: String, ours: String, note| {
        rows.push(Row { tool, command, peer, theirs, ours, note });
    };
    let json = |words: &[&str]| lab.analyze(&[words, &["--format", "json", "t.tape"]].concat()).expect(0).json();
    let text = |words: &[&str]| lab.analyze(&[words, &["t.tape"]].concat()).expect(0).text();
    let program: Vec<&str> = out.lines().find(|line| line.starts_with("port ")).expect(&out).split(' ').collect();
    let [_, port, _, pid, _, server] = program[..] else { panic!("{program:?}") };

    // syscount
    let counted = json(&["syscount", "--comm=parity"]);
    let by_name: BTreeMap<&str, u64> = counted
        .iter()
        .map(|row| (row["syscall"].as_str().expect("name"), row["calls"].as_u64().expect("calls")))
        .collect();
    let known =
        [("read", 0), ("write", 1), ("getppid", 110), ("kill", 62), ("tgkill", 234), ("connect", 42), ("pwrite64", 18)];
    for (name, number) in known {
        assert_eq!(Some(&by_name[name]), theirs.get(&format!("calls[{number}]")), "{name}: {by_name:?} {theirs:?}");
    }
    assert_eq!(by_name["getppid"], 20_000);
    let all: u64 = theirs.iter().filter(|(name, _)| name.starts_with("calls[")).map(|(_, count)| count).sum();
    let ours: u64 =
        by_name.iter().filter(|(name, _)| !["execve", "[user]"].contains(name)).map(|(_, calls)| calls).sum();
    assert_eq!(all, ours, "{by_name:?} {theirs:?}");
    row(
        "syscount",
        "syscount",
        "bpftrace, sys_enter",
        format!("{all} calls"),
        format!("{ours} calls"),
        "each kind of call too",
    );

    // killsnoop: kill alone
    let lines = |text: &str, comm: &str| -> Vec<Vec<String>> {
        words(text)
            .into_iter()
            .filter(|line| line.iter().any(|word| word == comm))
            .map(|line| line[1..].to_vec())
            .collect()
    };
    let theirs_kills = lines(&kills, "parity");
    let ours_kills = lines(&text(&["killsnoop", "--comm=parity"]), "parity");
    let of_kill: Vec<_> = ours_kills[..7.min(ours_kills.len())].to_vec();
    assert_eq!((of_kill.len(), ours_kills.len()), (7, 9), "{ours_kills:?}");
    assert_eq!(of_kill, theirs_kills);
    row(
        "killsnoop",
        "killsnoop",
        "killsnoop.bt",
        "7 lines".into(),
        "7 lines, 2 of tgkill".into(),
        "each column but the time",
    );

    // gethostlatency
    let theirs_names = lines(&names, "getent");
    let ours_names = lines(&text(&["gethostlatency", "--comm=getent"]), "getent");
    let hosts = |lines: &[Vec<String>]| -> Vec<(String, String)> {
        lines.iter().map(|line| (line[0].clone(), line.last().expect("host").clone())).collect()
    };
    assert_eq!(hosts(&ours_names).len(), 2, "{ours_names:?}");
    assert_eq!(hosts(&ours_names), hosts(&theirs_names));
    row(
        "gethostlatency",
        "gethostlatency",
        "gethostlatency.bt",
        "2 lines".into(),
        "2 lines".into(),
        "process and host of each",
    );

    // funclatency
    let works = json(&["probes", "-e", "uprobe:*"]);
    let (calls, took) = (sum(&works, "count"), sum(&works, "total_ns"));
    assert_eq!((works.len(), calls, theirs["works"]), (1, 500, 500), "{works:?}");
    row(
        "funclatency",
        "probes --hist",
        "bpftrace, uprobe and uretprobe",
        micros(500, theirs["worked"]),
        micros(500, took),
        "both wait on entry and return",
    );

    // runqlat, cpudist, offcputime: the run in which exec came is one of another name to the peer
    let near = |ours: u64, theirs: u64| ours.abs_diff(theirs) <= 8 + theirs / 50;
    let waits = sum(&json(&["runqlat", "--comm=parity"]), "count");
    assert!(waits > 150 && near(waits, theirs["waits"]), "waits {waits}: {theirs:?}");
    row(
        "runqlat",
        "runqlat",
        "bpftrace, sched_wakeup and sched_switch",
        format!("{} waits", theirs["waits"]),
        format!("{waits} waits"),
        OF_EXEC,
    );
    let runs = sum(&json(&["cpudist", "--comm=parity"]), "count");
    assert!(runs > 150 && near(runs, theirs["runs"]), "runs {runs}: {theirs:?}");
    row(
        "cpudist",
        "cpudist",
        "bpftrace, sched_switch",
        format!("{} times", theirs["runs"]),
        format!("{runs} times"),
        OF_EXEC,
    );
    let off = json(&["states", "--by", "comm,state", "--comm=parity"]);
    let away: u64 =
        off.iter().filter(|row| row["state"] != "RUN").map(|row| row["time_ns"].as_u64().unwrap_or(0)).sum();
    let same = away.abs_diff(theirs["away"]) <= theirs["away"] / 5;
    assert!(same && away > 100_000_000, "off the CPU {away}: {theirs:?}");
    row(
        "offcputime",
        "offcputime",
        "bpftrace, sched_switch",
        millis(theirs["away"]),
        millis(away),
        "the time of each process until its end; two tracers, which wait for one another",
    );

    let woken = sum(&json(&["offcpu", "--wakers", pid]), "count");
    let wakes = theirs[&format!("wakes[{pid}]")];
    assert!(woken > 150 && near(woken, wakes), "woken {woken}: {theirs:?}");
    row(
        "wakeuptime",
        "offcpu --wakers PID",
        "bpftrace, sched_waking",
        format!("{wakes} wake-ups"),
        format!("{woken} wake-ups"),
        "of one process; those of the tape ended a sleep",
    );

    // biosnoop, biolatency, bitesize: a kernel may hide the ends of some
    let ios = json(&["biosnoop", "-p", pid]);
    let (done, lines) = (theirs["done"], ios.len() as u64);
    assert!(done <= lines && lines <= 40, "{done} {lines}");
    row(
        "biosnoop",
        "biosnoop",
        "bpftrace, block_rq_complete; the program did 40",
        format!("{done} I/Os"),
        format!("{lines} I/Os"),
        HIDDEN,
    );
    let latencies = json(&["biolatency", "-p", pid]);
    assert_eq!(sum(&latencies, "timed_ios"), lines);
    row(
        "biolatency",
        "biolatency",
        "the same",
        format!("{done} I/Os"),
        format!("{} I/Os", sum(&latencies, "timed_ios")),
        HIDDEN,
    );
    let sizes = json(&["block", "--sizes", "--by", "comm", "-p", pid]);
    let buckets = sizes[0]["histogram"].as_array().expect("buckets").clone();
    let mut all = Vec::new();
    for (bytes, most) in [(4096, 20), (8192, 10), (65536, 10)] {
        let found = buckets
            .iter()
            .find(|bucket| bucket["from"] == bytes / 1024)
            .map_or(0, |bucket| sum(std::slice::from_ref(bucket), "count"));
        let peer = theirs.get(&format!("size[{bytes}]")).copied().unwrap_or(0);
        assert!(found <= most && peer <= most && found + 4 >= most, "{bytes}: {found} {peer} of {most}");
        all.push((format!("{peer} of {} KiB", bytes / 1024), format!("{found} of {} KiB", bytes / 1024)));
    }
    let list = |nth: usize| all.iter().map(|(one, other)| [one, other][nth].clone()).collect::<Vec<_>>().join(", ");
    row("bitesize", "block --sizes", "bpftrace, block_rq_issue", list(0), list(1), HIDDEN);

    // tcplife, tcpconnect, tcpaccept: what the program moved
    let mut ends = Vec::new();
    for line in words(&text(&["tcplife", "--comm=parity"])).iter().skip(1) {
        let [of, _, _, lport, _, rport, sent, received, _] = &line[..] else { panic!("{line:?}") };
        let is_client = rport == port;
        assert!((is_client && of == pid) || (lport == port && of == server), "{line:?}");
        ends.push((is_client, sent.clone(), received.clone()));
    }
    ends.sort();
    let mut moved: Vec<_> = (1..=5_u32)
        .flat_map(|nth| {
            let (request, answer) = ((nth * 10_000 / 1024).to_string(), (2000 / 1024).to_string());
            [(true, request.clone(), answer.clone()), (false, answer, request)]
        })
        .collect();
    moved.sort();
    assert_eq!(ends, moved);
    row(
        "tcplife",
        "tcplife",
        "the program",
        "10 ends, 5 * 2000 + 150000 bytes".into(),
        "10 ends, the same KiB".into(),
        "ports, processes and KiB of each end",
    );
    let net = json(&["net", "--comm=parity"]);
    let of = |direction: &str| net.iter().filter(|row| row["direction"] == direction).count();
    assert_eq!((of("connect"), of("accept")), (5, 5));
    row("tcpconnect", "net", "the program", "5".into(), "5 (`connect`)".into(), "");
    row("tcpaccept", "net", "the program", "5".into(), "5 (`accept`)".into(), "");

    // filetop
    let mut top = Vec::new();
    for line in words(&text(&["filetop", "-p", pid, "-P", &format!("{}file*", lab.file(""))])).iter().skip(1) {
        let [_, _, reads, writes, read, written, kind, file] = &line[..] else { panic!("{line:?}") };
        assert_eq!(kind, "R");
        top.push((
            file.rsplit('/').next().expect("name").to_owned(),
            [reads, writes, read, written].map(|number| number.parse().expect("number")),
        ));
    }
    top.sort();
    let did = |f: u64| (format!("file{f}"), [7, 10, 7000 * (f + 1) / 1024, 10_000 * (f + 1) / 1024]);
    assert_eq!(top, [did(0), did(1), did(2)]);
    row(
        "filetop",
        "filetop",
        "the program",
        "3 files, 21 reads, 30 writes".into(),
        "the same".into(),
        "KiB of each file too",
    );

    write(&rows);
}

const OF_EXEC: &str = "a thread that execs has another name before";
const HIDDEN: &str = "bpftrace misses what happens while another program of its kind runs on that CPU; a kernel may hide an end from all (`info` says so)";

fn micros(calls: u64, ns: u64) -> String {
    format!("{calls} calls, {} µs each", ns / calls / 1000)
}

fn millis(ns: u64) -> String {
    format!("{} ms", ns / 1_000_000)
}

/// The page's table, anew if that is asked for; else it must name each tool.
fn write(rows: &[Row]) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/parity.md");
    let text = fs::read_to_string(&page).expect("docs/reference/parity.md");
    let (head, rest) = text.split_once("<!-- table -->\n").expect("a table");
    let (_, foot) = rest.split_once("<!-- end -->").expect("its end");
    let mut table =
        "| tool | `analyze` | beside | it says | the tape says | compared |\n|---|---|---|---|---|---|\n".to_owned();
    for Row { tool, command, peer, theirs, ours, note } in rows {
        table.push_str(&format!("| {tool} | `{command}` | {peer} | {theirs} | {ours} | {note} |\n"));
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&page, format!("{head}<!-- table -->\n{table}<!-- end -->{foot}")).expect("docs/reference/parity.md");
    }
    for row in rows {
        assert!(
            rest.contains(&format!("| {} |", row.tool)) || std::env::var_os("UPDATE_GOLDEN").is_some(),
            "{}",
            row.tool
        );
    }
}
