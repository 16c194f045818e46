//! Static probes: what a program says it passed, argument by argument, what bpftrace sees of the same run, and those of Debian's libraries.

use std::fs;

use serde_json::{Value, json};
use systape_e2e::lab::run;
use systape_e2e::rows::args;
use systape_e2e::{Background, Lab};

/// How often each place of the workload is passed.
const TIMES: i64 = 101;

/// Arguments of all rows of a probe of the workload.
fn passed(lab: &Lab, name: &str) -> Vec<Value> {
    lab.rows("t.tape", &format!("usdt:forms:{name}")).iter().map(|row| args(row).clone()).collect()
}

fn hex(value: i64) -> Value {
    format!("{value:#x}").into()
}

#[test]
fn arguments_are_the_programs() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("usdt", &[]);
    assert_eq!(run(&mut lab.command(&program)).expect(0).text().trim(), "0", "nobody listens");
    let option = format!("{program}:forms:*");
    let recorded = lab.record("t.tape", &["--usdt", &option], &[&program]).expect(0);
    lab.assert_whole("t.tape");
    // the semaphore opens the guarded one
    assert_eq!(recorded.text().trim(), TIMES.to_string());
    assert!(recorded.stderr.contains("--usdt forms:many: 12 of 13 arguments are recorded"), "{}", recorded.stderr);
    assert!(recorded.stderr.contains("--usdt forms:reals: the argument 8f@%xmm0 is not read"), "{}", recorded.stderr);
    assert_eq!(run(&mut lab.command(&program)).expect(0).text().trim(), "0", "nobody listens any more");

    let table = [10, -11, 12, -13, 14, -15, 16, -17];
    let all = |name: &str, row: &dyn Fn(i64) -> Value| {
        let expected: Vec<Value> = (0..TIMES).map(row).collect();
        assert_eq!(passed(&lab, name), expected, "{name}");
    };
    all("registers", &|i| {
        let big = i * 10_000_000_019;
        json!({"arg0": i, "arg1": hex(big), "arg2": 4_000_000_000 + i, "arg3": -i, "arg4": i, "arg5": -big})
    });
    all("memory", &|i| {
        let at = (i % 8 - 1).max(0) as usize;
        json!({"arg0": -3 * i, "arg1": (250 + i) % 256, "arg2": -11, "arg3": table[at + 1], "arg4": table[at]})
    });
    all("constants", &|_| json!({"arg0": -7, "arg1": "0x5", "arg2": 0xffff_fff0u32}));
    all("reals", &|i| json!({"arg0": null, "arg1": i}));
    all("long_nop", &|i| json!({"arg0": i, "arg1": hex(10)}));
    all("guarded", &|i| json!({"arg0": i}));
    let places: Vec<Value> =
        (0..TIMES).flat_map(|i| (0..3).map(move |place| json!({"arg0": place, "arg1": i}))).collect();
    assert_eq!(passed(&lab, "places"), places);
    let twelve = (0..12).map(|at| (format!("arg{at}"), at.into()));
    assert_eq!(passed(&lab, "many"), [Value::Object(twelve.collect())]);
    assert_eq!(passed(&lab, "absent"), [json!({"arg0": null, "arg1": 1})]);
    assert_eq!(passed(&lab, "none"), [json!({})]);
}

#[test]
fn listed_arguments_have_names_and_text() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("usdt", &[]);
    let option = format!("usdt:{program}:texts(text=string,number=int,nothing=string)");
    // somebody else's are not recorded
    let script = format!("while :; do {program}; done > /dev/null");
    let other = Background::start(lab.command("sh").args(["-c", &script]));
    lab.record("t.tape", &["--usdt", &option, "-g"], &[&program]).expect(0);
    drop(other);
    let texts = ["first", "", "the \"third\""];
    let rows = passed(&lab, "texts");
    assert_eq!(rows.len(), TIMES as usize);
    for (i, row) in (0..).zip(&rows) {
        assert_eq!(*row, json!({"text": texts[i % 3], "number": i, "nothing": null}), "{i}");
    }
    let stacks = lab.analyze(&["t.tape", "-e", "usdt:*", "--call-graph", "--format", "json"]).expect(0).json();
    assert!(stacks.iter().any(|row| row["stack"].to_string().contains("main")), "{:?}", stacks.first());
    // redaction takes out what the program had in memory
    lab.analyze(&["redact", "--level", "all", "t.tape", "r.tape"]).expect(0);
    assert!(lab.rows("r.tape", "usdt:*").iter().all(|row| !args(row)["text"].to_string().contains("first")));
}

/// The same passes by bpftrace, which reads registers and the stack alike.
#[test]
fn bpftrace_sees_the_same() {
    let Some(lab) = Lab::beside() else { return };
    if !systape_e2e::disk::has("bpftrace") {
        return;
    }
    let program = lab.cc("usdt", &[]);
    let script = format!(
        "usdt:{program}:forms:registers {{ printf(\"registers %d %lu %u %d %u %ld\\n\", arg0, arg1, arg2, arg3, arg4, arg5); }} \
         usdt:{program}:forms:places {{ printf(\"places %d %d\\n\", arg0, arg1); }} BEGIN {{ printf(\"begun\\n\"); }}"
    );
    let said = lab.path("said");
    let mut peer = lab.command("bpftrace");
    peer.args(["-e", &script]).stdout(fs::File::create(&said).expect("said"));
    let mut peer = peer.spawn().expect("bpftrace");
    lab.until("bpftrace", || fs::read_to_string(&said).is_ok_and(|text| text.contains("begun")));
    lab.record("t.tape", &["--usdt", &format!("{program}:forms:*")], &[&program]).expect(0);
    let lines = |name: &str| {
        let said = fs::read_to_string(&said).expect("said");
        said.lines().filter_map(|line| line.strip_prefix(name).map(str::to_owned)).collect::<Vec<_>>()
    };
    lab.until("bpftrace's last line", || lines("places").len() as i64 == 3 * TIMES);
    run(lab.command("kill").args(["-INT", &peer.id().to_string()])).expect(0);
    peer.wait().expect("bpftrace");
    for (name, count) in [("registers", 6), ("places", 2)] {
        let text = |value: &Value| match value.as_str().and_then(|text| text.strip_prefix("0x")) {
            Some(hex) => u64::from_str_radix(hex, 16).expect("hex").to_string(),
            None => value.to_string(),
        };
        let ours = passed(&lab, name);
        let ours: Vec<String> = ours
            .iter()
            .map(|row| (0..count).map(|at| format!(" {}", text(&row[format!("arg{at}")]))).collect())
            .collect();
        assert_eq!(ours, lines(name), "{name}");
    }
}

/// Probes that others wrote: of the C++ library, and of Python, which guards them.
#[test]
fn libraries_have_them() {
    let Some(lab) = Lab::beside() else { return };
    let has = |file: &str, name: &str| {
        let notes = run(lab.command("readelf").args(["-n", file]));
        notes.stdout.windows(name.len()).any(|part| part == name.as_bytes())
    };
    let calls = lab.cxx("calls", &[]);
    let library = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6";
    if has(library, "libstdcxx") {
        lab.record("t.tape", &["--usdt", "libstdc++.so.6:libstdcxx:*"], &[&calls, "/bin/true"]).expect(0);
        for event in ["throw", "catch"] {
            assert_eq!(lab.rows("t.tape", &format!("usdt:libstdcxx:{event}")).len(), 50, "{event}");
        }
    }
    let python = "/usr/bin/python3";
    if fs::exists(python).is_ok_and(|there| there) && has(python, "audit") {
        let program = "import sys\nfor i in range(53): sys.audit('systape.test', i)";
        let option = format!("{python}:python:audit(event=string)");
        lab.record("t.tape", &["--usdt", &option], &[python, "-S", "-E", "-c", program]).expect(0);
        let rows = lab.rows("t.tape", "usdt:python:audit");
        assert_eq!(rows.iter().filter(|row| args(row)["event"] == "systape.test").count(), 53);
    }
}

#[test]
fn what_is_not_there_is_said() {
    let Some(lab) = Lab::beside() else { return };
    let program = lab.cc("usdt", &[]);
    let says = |option: &str| lab.record("t.tape", &["--usdt", option], &["true"]).expect(2).stderr;
    assert!(says(&format!("{program}:forms:register")).contains("the nearest are forms:registers"));
    assert!(says(&format!("{program}:zzz")).contains("it has forms:absent, forms:constants"));
    assert!(says("/bin/sh:a:b").contains("no static probes"));
    assert!(says("/etc/passwd:a:b").contains("no 64-bit ELF file"));
    assert!(says(&format!("{program}:forms:*(int)")).contains("arguments can be listed for one"));
    assert!(says(&format!("{program}:forms:guarded(int,int)")).contains("it has 1 arguments, 2 are listed"));
    assert!(says(&format!("{program}:forms:guarded->int")).contains("has no return"));
}
