//! The registers with which tasks entered the kernel: what is derived from them (how a signal was sent, calls that began before the recording,
//! user stacks) is right wherever a kernel keeps them, and unknown, never something else, where they are not found.

use serde_json::Value;
use systape_e2e::{Background, Lab};

const SAID: &str = "the registers of tasks in the kernel are not where";
const KILL: &str = "sleep 100 & sleep 0.3; kill -TERM $!; wait; true";

/// What a recording says of the three.
struct Answers {
    said: bool,
    noted: bool,
    kill: Value,
    /// The call of a process that has been asleep since before the recording.
    asleep_in: Value,
    /// How the stacks of the command's calls end.
    stacks: Vec<String>,
}

fn answers(lab: &Lab, force: &[&str]) -> Answers {
    let sleeper = Background::start(lab.command("sleep").arg("1000"));
    let wchan = format!("/proc/{}/syscall", sleeper.pid());
    lab.until("the sleeper to sleep", || std::fs::read_to_string(&wchan).is_ok_and(|text| text.starts_with("230 ")));
    let everyone = [force, &["-a"]].concat();
    let run = lab.record("t.tape", &everyone, &["sh", "-c", KILL]).expect(0);
    let notes = lab.info("t.tape")["notes"].to_string();
    let kills = lab.analyze(&["kills", "t.tape", "--format", "json"]).expect(0).json();
    let kill = kills.into_iter().find(|k| k["signal_name"] == "SIGTERM" && k["target"]["comm"] == "sleep");
    let states = ["states", "t.tape", "--at", "50%", "-p", &sleeper.pid_text(), "--format", "json"];
    let states = lab.analyze(&states).expect(0).json();
    let own = states.iter().find(|row| row["pid"] == sleeper.pid()).unwrap_or_else(|| panic!("{states:?}"));
    let target = lab.cc("target", &["-g"]);
    let stacks = [force, &["--call-graph", "dwarf"]].concat();
    lab.record("s.tape", &stacks, &[&target, "spin", "97"]).expect(0);
    let lines = lab.analyze(&["s.tape", "-e", "getppid", "--call-graph", "--format", "json"]).expect(0).json();
    let stacks: Vec<String> = lines.iter().filter_map(|line| Some(line["stack_status"].as_str()?.to_owned())).collect();
    assert!(stacks.len() >= 97, "{lines:?}");
    lab.analyze(&["check", "t.tape"]).expect(0);
    lab.analyze(&["check", "s.tape"]).expect(0);
    Answers {
        said: run.stderr.contains(SAID),
        noted: notes.contains(SAID),
        kill: kill.expect("the signal is there"),
        asleep_in: own["syscall"].clone(),
        stacks,
    }
}

fn are_right(found: &Answers) {
    assert!(!found.said && !found.noted);
    assert_eq!((&found.kill["via"], &found.kill["sender"]["comm"]), (&"kill".into(), &"sh".into()), "{}", found.kill);
    assert_eq!(found.asleep_in, "clock_nanosleep");
    assert!(found.stacks.iter().all(|status| status == "complete"), "{:?}", found.stacks);
}

#[test]
fn registers_are_found_by_the_kernels_helper_and_without_it() {
    let Some(lab) = Lab::beside() else { return };
    are_right(&answers(&lab, &[]));
    are_right(&answers(&lab, &["--force", "registers-by-hand"]));
}

#[test]
fn registers_that_are_elsewhere_are_noticed_and_what_they_tell_is_unknown() {
    let Some(lab) = Lab::beside() else { return };
    // as far as they are on a kernel that is built for FRED from where they are on others
    let found = answers(&lab, &["--force", "registers-off=16"]);
    assert!(found.said && found.noted);
    assert_eq!(found.kill["via"], "unknown", "{}", found.kill);
    // who sent it needs no registers: the signal itself says it
    assert_eq!(found.kill["sender"]["comm"], "sh", "{}", found.kill);
    assert_eq!(found.asleep_in, "?");
    assert!(found.stacks.iter().all(|status| status == "failed"), "{:?}", found.stacks);
}
