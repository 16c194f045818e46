//! Stacks that were fetched of threads asleep at the start: they count for that sleep and for no other.

use crate::common::{self, Place, US, sched};
use serde_json::Value;

/// A directory with that tape.
fn place() -> Place {
    let place = Place::new();
    common::asleep::write(&place.path("asleep.tape"));
    place
}

fn groups(place: &Place, at: &str) -> Vec<Value> {
    place.analyze(&format!("states asleep.tape --at {at} --call-graph --format json")).json()
}

/// Status and number of functions of the stack of a thread.
fn stack(groups: &[Value], tid: u64) -> (String, usize) {
    let has = |group: &&Value| group["tids"].as_array().unwrap().iter().any(|other| *other == tid);
    let group = groups.iter().find(has).unwrap_or_else(|| panic!("{tid}: {groups:?}"));
    (group["stack_status"].as_str().unwrap().to_owned(), group["stack"].as_array().unwrap().len())
}

#[test]
fn a_look_counts_for_the_sleep_it_fell_into() {
    let place = place();
    for at in ["0", "100us", "1500us"] {
        assert_eq!(stack(&groups(&place, at), 300), ("complete".into(), 2), "{at}: before and after it was looked at");
    }
    // the look at 101 fell into its next sleep, which has the stack of its switch, if any
    assert_eq!(stack(&groups(&place, "100us"), 101), ("began-before".into(), 0));
    assert_eq!(stack(&groups(&place, "1200us"), 101), ("not-stored".into(), 0));
    assert_eq!(stack(&groups(&place, "400us"), 101), ("running".into(), 0));
}

#[test]
fn the_time_off_the_cpu_before_the_start_has_the_stack() {
    let place = place();
    let run = place.analyze("callgraph asleep.tape --of offcpu --folded");
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    let of_sleeper: Vec<&str> = run.out.lines().filter(|line| line.starts_with("sleeper;")).collect();
    let [line] = of_sleeper[..] else { panic!("{}", run.out) };
    assert!(!line.contains("no stack") && line.ends_with(&format!(" {}", sched::LENGTH * US)), "{line}");
    assert!(run.out.lines().any(|line| line.starts_with("app;[no stack")), "{}", run.out);
}

#[test]
fn groups_are_bounded_as_asked() {
    let place = place();
    let all = place.analyze("states asleep.tape --at 100us --call-graph");
    assert!(all.out.contains("off a CPU for >=0.100 ms, came on one 5000.100 ms ago"), "{}", all.out);
    assert_eq!(all.out.matches(" thread").count(), 3, "{}", all.out);
    let deep = place.analyze("states asleep.tape --at 100us --min-stack 1");
    assert_eq!(deep.out.matches(" thread").count(), 1, "{}", deep.out);
    let first = place.analyze("states asleep.tape --at 100us --max-stack 1 --max-events 1");
    assert_eq!(
        (first.out.matches(" thread").count(), first.out.matches("\n        ").count()),
        (1, 1),
        "{}",
        first.out
    );
}
