//! Structures that arguments point to, compared one by one with what strace prints of the same calls.

use std::fs;

use serde_json::Value;
use systape_e2e::more::FREESTANDING;
use systape_e2e::{Call, Lab, strace};

/// What differs between two runs: times that pass, ids, addresses.
fn constant(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        out.push_str(before);
        let hex = number.starts_with("0x");
        let end = number.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(number.len());
        let changes = (hex && end > 6) || ["si_pid=", "inode="].iter().any(|label| before.ends_with(label));
        out.push_str(if changes { "N" } else { &number[..end] });
        rest = &number[end..];
    }
    out + rest
}

/// A time that passed: only that there is one.
fn passed(text: &str) -> String {
    let mut out = String::new();
    for part in text.split_inclusive("tv_") {
        match part.split_once('=') {
            Some((unit @ ("sec" | "nsec" | "usec"), value)) => {
                let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
                out.push_str(&format!("{unit}=N{}", &value[end..]));
            }
            _ => out.push_str(part),
        }
    }
    out
}

/// strace's text without what ours leaves out.
fn theirs(text: &str) -> String {
    let mut out = text.to_owned();
    // dates of times of files
    while let (Some(from), Some(to)) = (out.find(" /*"), out.find("*/")) {
        out.replace_range(from..to + 2, "");
    }
    // the kernel does not write them
    if let Some(at) = out.find(", si_utime=") {
        out.replace_range(at.., "}");
    }
    constant(&out)
}

/// Ours without the names of files behind descriptors.
fn ours(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, name)) = rest.split_once('<') {
        // `<<` stands in a status
        let Some((_, after)) = name.split_once('>').filter(|_| !name.starts_with('<')) else { break };
        out.push_str(before);
        rest = after;
    }
    constant(&(out + rest))
}

fn is_structure(text: &str) -> bool {
    ["{", "[", "~["].iter().any(|begin| text.starts_with(begin))
}

/// Calls between the two markers that the workload's main thread made.
fn between<T: Clone>(calls: &[T], is_marker: impl Fn(&T) -> bool) -> Vec<T> {
    let at: Vec<_> = (0..calls.len()).filter(|i| is_marker(&calls[*i])).collect();
    let [from, to] = at[..] else { panic!("{} markers", at.len()) };
    calls[from + 1..to].to_vec()
}

/// The workload recorded with `structs`, in JSON; and strace's account of another run.
fn both(structs: &str) -> Option<(Lab, Vec<Call>, Vec<strace::Traced>)> {
    let lab = Lab::beside()?;
    let workload = lab.cc("structs", &[]);
    for dir in ["recorded", "traced"] {
        fs::create_dir(lab.path(dir)).expect("mkdir");
    }
    lab.record("t.tape", &["--structs", structs], &[&workload, "recorded"]).expect(0);
    let traced = strace::trace(&lab, &["-s", "32"], &[&workload, "traced"]);
    let (main, calls) = (traced[0].tid, lab.calls("t.tape", &[]));
    let tid = calls[0].tid();
    let calls: Vec<_> = calls.into_iter().filter(|call| call.tid() == tid).collect();
    let traced: Vec<_> = traced.into_iter().filter(|call| call.tid == main).collect();
    let calls = between(&calls, |call| call.0["args"]["filename"] == "/case/");
    let traced = between(&traced, |call| call.name == "access" && call.bytes(0).is_some_and(|b| b == b"/case/"));
    Some((lab, calls, traced))
}

/// The text of an argument before the call, and after it.
fn texts(value: &Value) -> (String, Option<String>) {
    let text = |value: &Value| {
        let text = value.get("text").unwrap_or(value);
        text.as_str().map(ours)
    };
    match value.get("before") {
        Some(before) => (text(before).unwrap_or_default(), text(&value["after"])),
        None => (text(value).unwrap_or_default(), None),
    }
}

/// Texts of a call's structures, sorted; and those after the call, by argument.
fn structures(call: &Call) -> (Vec<String>, Vec<(String, String)>) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (name, value) in call.0["args"].as_object().expect("args") {
        let (text, left) = texts(value);
        if is_structure(&text) {
            before.push(text);
        }
        after.extend(left.map(|left| (name.clone(), left)));
    }
    before.sort_unstable();
    (before, after)
}

#[test]
fn every_structure_is_as_strace_prints_it() {
    let Some((_lab, calls, traced)) = both("all") else { return };
    let names = |call: &Call| call.name().to_owned();
    assert_eq!(
        calls.iter().map(names).collect::<Vec<_>>(),
        traced.iter().map(|call| call.name.clone()).collect::<Vec<_>>()
    );
    let (mut compared, mut after_compared, mut wrong) = (0, 0, Vec::new());
    for (call, traced) in calls.iter().zip(&traced) {
        if ["pipe", "pipe2", "timer_create", "rt_sigreturn"].contains(&call.name()) {
            continue;
        }
        let (before, mut left) = structures(call);
        let mut want: Vec<_> = traced.split().into_iter().map(theirs).filter(|text| is_structure(text)).collect();
        want.sort_unstable();
        compared += want.len();
        // the time left of an interrupted sleep
        let interrupted = call.errno().is_some_and(|errno| errno.starts_with("ERESTART"));
        let comparable = |texts: &[String]| match interrupted {
            true => texts.iter().map(|text| passed(text)).collect(),
            false => texts.to_vec(),
        };
        if comparable(&before) != comparable(&want) {
            wrong.push(format!("{}:\n  ours   {before:?}\n  strace {want:?}", call.name()));
        }
        const ORDER: [&str; 6] = ["ufds", "inp", "outp", "exp", "tvp", "tsp"];
        left.sort_by_key(|(name, _)| ORDER.iter().position(|known| known == name));
        let left: Vec<_> = left
            .iter()
            .filter(|(_, text)| text != "[]")
            .map(|(name, text)| match name.as_str() {
                "ufds" => text.clone(),
                "inp" => format!("in {text}"),
                "outp" => format!("out {text}"),
                "exp" => format!("except {text}"),
                _ => format!("left {}", passed(text)),
            })
            .collect();
        let polls = ["poll", "ppoll", "select", "pselect6"].contains(&call.name()) && call.ret() > Some(0);
        if polls {
            after_compared += 1;
            let want = passed(&theirs(traced.rest.trim_start_matches('(').trim_end_matches(')')));
            if left.join(", ") != want {
                wrong.push(format!("{}:\n  ours   {}\n  strace {want}", call.name(), left.join(", ")));
            }
        } else if !left.is_empty() {
            wrong.push(format!("{} left {left:?}", call.name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 130 && after_compared >= 8, "{compared} and {after_compared} structures compared");
}

#[test]
fn descriptors_that_are_polled_have_names() {
    let Some((lab, calls, _)) = both("waits") else { return };
    let polled: Vec<_> = calls.iter().filter(|call| call.name() == "poll").collect();
    let before = polled[0].arg("ufds")["before"].as_str().expect("text");
    let after = polled[0].arg("ufds")["after"].as_str().expect("text");
    assert!(before.starts_with("[{fd=") && before.contains("<pipe:[") && before.contains(">, events="), "{before}");
    assert!(after.contains("<pipe:[") && after.contains(">, revents=POLLIN}"), "{after}");
    let text = lab.analyze(&["t.tape", "-e", "=poll"]).expect(0).text();
    assert!(text.lines().any(|line| line.contains(after) && line.contains(before)), "{text}");
    // redaction takes the names out, the numbers stay
    lab.analyze(&["redact", "--level", "all", "t.tape", "all.tape"]).expect(0);
    let redacted = lab.calls("all.tape", &["-e", "=poll"]);
    assert!(redacted[0].arg("ufds")["before"].as_str().is_some_and(|text| text.contains("events=POLLIN|POLLPRI")));
}

#[test]
fn structs_are_chosen() {
    for (choice, waits, frequent) in [("none", false, false), ("waits", true, false), ("all", true, true)] {
        let Some((_lab, calls, _)) = both(choice) else { return };
        let is_decoded = |name: &str, arg: &str| {
            let call = calls.iter().find(|call| call.name() == name).unwrap_or_else(|| panic!("no {name}"));
            is_structure(&texts(call.arg(arg)).0)
        };
        for (name, arg) in [("nanosleep", "rqtp"), ("poll", "ufds"), ("wait4", "stat_addr"), ("prlimit64", "new_rlim")]
        {
            assert_eq!(is_decoded(name, arg), waits, "{choice}: {name}");
        }
        for (name, arg) in [
            ("rt_sigaction", "act"),
            ("rt_sigprocmask", "nset"),
            ("fstat", "statbuf"),
            ("statx", "buffer"),
            ("epoll_ctl", "event"),
        ] {
            assert_eq!(is_decoded(name, arg), frequent, "{choice}: {name}");
        }
    }
}

#[test]
fn structures_of_32_bit_code() {
    let Some(lab) = Lab::beside() else { return };
    let i386 = lab.cc("structs32", &[&FREESTANDING[..], &["-m32", "-fno-pic", "-no-pie"]].concat());
    lab.record("t.tape", &["--structs", "all"], &[&i386]).expect(0);
    let traced = strace::trace(&lab, &[], &[&i386]);
    let calls = lab.calls("t.tape", &[]);
    let tid = calls[0].tid();
    let calls: Vec<_> = calls[1..].iter().filter(|call| call.tid() == tid).collect();
    let traced: Vec<_> = traced[1..].iter().filter(|call| call.tid == traced[0].tid).collect();
    assert_eq!(calls.len(), traced.len(), "{calls:?}\n{traced:?}");
    let mut compared = 0;
    for (call, traced) in calls.iter().zip(traced) {
        assert_eq!((call.name(), &call.0["abi"]), (traced.name.as_str(), &"i386".into()));
        let mut want: Vec<_> = traced.split().into_iter().map(theirs).filter(|text| is_structure(text)).collect();
        want.sort_unstable();
        compared += want.len();
        // strace prints the upper half of the nanoseconds, which the kernel ignores: the calls succeed
        want = want.iter().map(|text| text.replace("tv_nsec=330712482792", "tv_nsec=1000")).collect();
        if call.name() != "pipe" {
            assert_eq!(structures(call).0, want, "{}", call.name());
        }
    }
    assert!(compared > 15, "{compared} structures compared");
}
