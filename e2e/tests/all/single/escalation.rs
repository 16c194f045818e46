//! `record --sample --escalate`: stalls that programs plant are followed by full recordings, in which the stay that fired is a call that began
//! before, with its arguments; the recorder's own processes are in no look.

use std::fs;

use serde_json::Value;
use systape_e2e::{Background, Lab, lab};

/// Names of the full recordings whose tapes are whole, in order.
fn full_tapes(lab: &Lab) -> Vec<String> {
    let names = fs::read_dir(lab.dir()).expect("the directory").flatten();
    let names = names.filter(|entry| entry.metadata().is_ok_and(|m| m.len() > 0));
    let mut names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.starts_with("t.full-"));
    names.sort();
    names
}

/// Whose stall a full recording was begun for; None: it has not ended yet.
fn begun_for(lab: &Lab, tape: &str) -> Option<String> {
    let info = lab.analyze(&["info", tape, "--format", "json"]);
    if info.status.code() != Some(0) || info.json()[0]["end_reason"] != "--for reached" {
        return None;
    }
    let why = lab.analyze(&["why", tape, "--format", "json"]).expect(0).json();
    Some(why.first().and_then(|row| row["comm"].as_str()).unwrap_or_default().to_owned())
}

/// Plants the stall until it has been followed: the full recording may not have been ready, or was begun for a stall of somebody else on
/// the machine. Returns its tape.
fn planted(lab: &Lab, program: &str, kind: &str) -> String {
    let mut others = full_tapes(lab);
    let mut stall: Option<Background> = None;
    let mut found = None;
    lab.until(kind, || {
        if let Some(tape) = full_tapes(lab).into_iter().find(|name| !others.contains(name)) {
            match begun_for(lab, &tape) {
                Some(comm) if comm == "stalls" => found = Some(tape),
                Some(_) => others.push(tape),
                None => {}
            }
        } else if stall.as_mut().is_none_or(|stall| stall.ended().is_some()) {
            stall = Some(Background::start(lab.command(program).args([kind, "2.5"])));
        }
        found.is_some()
    });
    if let Some(stall) = stall {
        stall.wait();
    }
    found.expect("a tape")
}

#[test]
fn stalls_are_recorded_in_full() {
    let Some(lab) = Lab::with_bpf() else { return };
    let program = lab.cc("stalls", &["-pthread"]);
    let options =
        ["-a", "--sample=20", "--escalate", "1500ms,100%", "--escalate-on", "stuck>700ms,d>700ms,stopped>700ms"];
    let record = lab.attach("t.tape", &options);
    let tapes: Vec<(&str, String)> =
        ["disk", "lock", "dns", "backend", "stop"].map(|kind| (kind, planted(&lab, &program, kind))).into();
    // others may record on this machine
    let own = record.pid_text();
    let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    let own: Vec<u64> =
        [&*own].into_iter().chain(children.split_whitespace()).map(|pid| pid.parse().expect("pid")).collect();
    record.stop(libc::SIGINT).expect(0);
    // that of a full recording that nobody asked for is gone
    lab.until("the last one to end", || {
        let entries = fs::read_dir(lab.dir()).expect("the directory").flatten();
        let mut full = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("t.full-"));
        full.all(|entry| entry.metadata().is_ok_and(|m| m.len() > 0))
    });

    let fired = lab.rows("t.tape", "record:trigger");
    let fired: Vec<&Value> = fired.iter().filter(|row| row["comm"] == "stalls").collect();
    for (kind, tape) in &tapes {
        let row =
            fired.iter().find(|row| row["args"]["name"].as_str().is_some_and(|name| name.ends_with(tape.as_str())));
        let row = row.unwrap_or_else(|| panic!("{kind}: no row of {tape}: {fired:?}"));
        let (condition, call) = match *kind {
            "disk" => ("d>700ms", "vfork"),
            "lock" => ("stuck>700ms", "flock"),
            "dns" => ("stuck>700ms", "poll"),
            "backend" => ("stuck>700ms", "read"),
            _ => ("stopped>700ms", ""),
        };
        assert_eq!(row["args"]["trigger"], condition, "{kind}: {row}");
        let what = row["args"]["what"].as_str().expect("words");
        assert!(what.contains(call) && what.contains("everything is recorded from "), "{kind}: {what}");
        lab.analyze(&["check", tape]).expect(0);
        // the whole machine, with everything
        let info = lab.info(tape);
        assert_eq!(info["end_reason"], "--for reached", "{kind}: {info}");
        let families = info["families"].to_string();
        assert!(families.contains("syscall") && families.contains("sched"), "{families}");
        let comms = lab.analyze(&["-s", tape, "--by", "comm", "--format", "json"]).expect(0).json();
        assert!(comms.len() > 1, "{kind}: other programs too: {comms:?}");
        // it says itself what it was begun for, and whose that is
        let why = lab.analyze(&["why", tape, "--format", "json"]).expect(0).json();
        let begun = &why[0];
        assert_eq!(
            (&begun["rule"], &begun["comm"]),
            (&Value::from("begun-for"), &Value::from("stalls")),
            "{kind}: {why:?}"
        );
        assert_eq!(begun["pid"], row["pid"], "{kind}");
        let text = begun["text"].as_str().expect("a sentence");
        assert!(text.contains(call) && text.contains(condition), "{kind}: {text}");
        if call.is_empty() {
            continue;
        }
        let calls = lab.analyze(&[tape, "--comm", "stalls", "-e", call, "--format", "json"]).expect(0).json();
        let began = calls.iter().filter(|row| row["incomplete"] == "began-before" || row["incomplete"] == "in-flight");
        let began: Vec<&Value> = began.collect();
        assert!(!began.is_empty(), "{kind}: {calls:?}");
        let args = began[0]["args"].to_string();
        match *kind {
            "lock" => assert!(args.contains("stalls.lock") && args.contains("LOCK_EX"), "{args}"),
            "backend" => assert!(args.contains("TCP:["), "{args}"),
            _ => {}
        }
    }
    // reports on the looks have the exact rows of these times, and no look of them
    let states = lab.analyze(&["states", "t.tape", "--by", "comm,state,syscall", "--format", "json"]).expect(0);
    let said = states.stderr.matches("no look of which is counted").count();
    assert_eq!(said, full_tapes(&lab).len(), "{}", states.stderr);
    let rows = states.json();
    let of = |bound: bool| -> f64 {
        let is =
            |row: &&Value| row["comm"] == "stalls" && row["syscall"] == "flock" && row["time_low_ns"].is_u64() == bound;
        rows.iter().filter(is).map(|row| row["time_ns"].as_f64().expect("ns")).sum()
    };
    let looks = lab.analyze(&["stays", "t.tape", "--by", "comm,syscall", "--format", "json"]).expect(0).json();
    let all = looks.iter().find(|row| row["comm"] == "stalls" && row["syscall"] == "flock").expect("its looks");
    let all = all["time_ns"].as_f64().expect("ns");
    // looks of that time, or the calls: the same time
    assert!(of(true) > 0.3e9 && of(false) > 0.8e9, "{} {}", of(true), of(false));
    assert!(((of(true) + of(false)) / all - 1.0).abs() < 0.25, "{} and {} of {all}", of(true), of(false));
    // none of the recorder's own
    let stays = lab.analyze(&["stays", "t.tape", "--by", "comm,pid", "--format", "json"]);
    let stays = stays.expect(0).json();
    assert!(stays.iter().all(|row| row["pid"].as_u64().is_none_or(|pid| !own.contains(&pid))), "{own:?}: {stays:?}");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let lab = Lab::plain();
    for (options, why) in [
        (&["-a", "--escalate", "30s"][..], "needs --sample"),
        (&["-a", "--sample", "--escalate-on", "d>1s"], "--escalate TIME says for how long"),
        (&["-a", "--sample", "--escalate", "30s", "--escalate-on", "io>1s"], "there are stuck>TIME"),
        (&["-a", "--sample", "--escalate", "30s,0%"], "1% to 100%"),
    ] {
        let refused = lab::run(&mut lab.record_command("t.tape", options, &[]));
        assert!(refused.code() != 0 && refused.stderr.contains(why), "{options:?}: {refused:?}");
    }
    let refused = lab::run(&mut lab.record_command("t.tape", &["--sample", "--escalate", "30s"], &["true"]));
    assert!(refused.code() != 0 && refused.stderr.contains("instead of a command"), "{refused:?}");
}
