//! What reports say of a tape of looks: estimates with bounds where they can, one sentence where they cannot, and never sums of both.

use serde_json::Value;

use crate::common::{self, Place};

fn place() -> Place {
    let place = Place::with_sample();
    common::looks::write(&place.path("looks.tape"), &[]);
    place
}

fn rows(place: &Place, words: &str) -> Vec<Value> {
    let got = place.analyze(&format!("{words} --format json looks.tape"));
    assert_eq!(got.status, 0, "{words}: {}", got.err);
    got.json()
}

#[test]
fn a_cut_has_the_looks_of_its_time_though_stays_end_behind_it() {
    let place = place();
    for time in ["0.3,0.6", "0.45,", ",0.5"] {
        let made = place.analyze(&format!("cut looks.tape cut.tape --time {time}"));
        assert_eq!(made.status, 0, "{made:?}");
        for report in
            ["stays --idle=list", "stays --by comm,state", "stays --longest", "locks", "states --by tid,syscall"]
        {
            let (before, after) = (
                place.analyze(&format!("{report} --time {time} looks.tape")),
                place.analyze(&format!("{report} cut.tape")),
            );
            assert_eq!(before.out, after.out, "{report} {time}");
            assert!(before.out.lines().count() > 2, "{before:?}");
        }
        std::fs::remove_file(place.path("cut.tape")).unwrap();
    }
}

#[test]
fn states_and_top_have_the_sums_of_stays() {
    let place = place();
    assert_eq!(rows(&place, "states"), rows(&place, "stays"));
    assert_eq!(rows(&place, "top"), rows(&place, "stays --by comm,syscall"));
    let fsync = rows(&place, "top --by file -e fsync");
    assert_eq!((fsync.len(), &fsync[0]["file"]), (1, &Value::from("/var/db/journal")));
    // what runs is no stay, whatever the keys are
    let app = rows(&place, "top --by comm").into_iter().find(|row| row["comm"] == "app" && row["rest"] == false);
    let app = app.expect("a row");
    assert_eq!((app["looks"].as_u64(), app["stays"].as_u64()), (Some(32), Some(4)), "{app}");
    let peers = rows(&place, "top --by peer,port");
    assert!(peers.iter().any(|row| row["peer"] == "10.0.0.2:443" && row["port"] == 443), "{peers:?}");
}

#[test]
fn an_instant_is_known_by_the_looks_around_it() {
    let place = place();
    let at = |ms: u32| -> Vec<(u64, String, String)> {
        let of = |row: &Value| {
            let text = |name: &str| row[name].as_str().expect(name).to_owned();
            (row["tid"].as_u64().expect("tid"), text("state"), text("is"))
        };
        rows(&place, &format!("states --at {ms}ms")).iter().map(of).collect()
    };
    let has = |all: &[(u64, String, String)], tid: u64, state: &str, is: &str| {
        all.contains(&(tid, state.to_owned(), is.to_owned()))
    };
    // looks at 325 and 375 ms found these; a sample at 310 ms what runs
    let middle = at(350);
    assert!(has(&middle, 103, "S", "certain") && has(&middle, 104, "D", "certain"), "{middle:?}");
    // its last look was at 325 ms, and that at 375 ms found it over
    assert!(has(&middle, 100, "D", "before") && !has(&at(380), 100, "D", "before"), "{middle:?}");
    assert!(has(&at(390), 100, "RUN", "before"));
    // it was first found at 325 ms, and had been so for 30 ms
    assert!(has(&at(300), 104, "D", "certain") && !at(290).iter().any(|(tid, ..)| *tid == 104));
    let lasted =
        rows(&place, "states --at 350ms").into_iter().find(|row| row["tid"] == 104).expect("it")["lasted_ns"].clone();
    assert_eq!(lasted, 55_000_000);
}

#[test]
fn locks_are_named_with_their_holders() {
    let place = place();
    let locks = rows(&place, "locks");
    assert_eq!(locks.len(), 1, "{locks:?}");
    let lock = &locks[0];
    assert_eq!((&lock["address"], &lock["owner_tid"]), (&Value::from("0x7f0000001000"), &Value::from(100)));
    assert_eq!((&lock["owner_comm"], lock["owner_share"].as_f64()), (&Value::from("app"), Some(1.0)));
    let bounds = ["time_low_ns", "time_ns", "time_high_ns"].map(|name| lock[name].as_u64().expect(name));
    assert!(bounds[0] < bounds[1] && bounds[1] == 250_000_000 && bounds[1] < bounds[2], "{lock}");
}

#[test]
fn why_has_findings_with_bounds() {
    let place = place();
    let found = rows(&place, "why");
    let of = |rule: &str, syscall: &str| {
        let row = found.iter().find(|row| row["rule"] == rule && row["syscall"] == syscall);
        row.unwrap_or_else(|| panic!("{rule} {syscall}: {found:?}")).clone()
    };
    let disk = of("seen-waiting", "fsync");
    assert_eq!((&disk["object"], &disk["cost_is"]), (&Value::from("/var/db/journal"), &Value::from("estimate")));
    let bounds = ["cost_lo_ns", "cost_ns", "cost_hi_ns"].map(|name| disk[name].as_u64().expect(name));
    assert!(bounds[0] < bounds[1] && bounds[1] < bounds[2], "{disk}");
    assert_eq!((&disk["max_ns_of_known"], &disk["cost_ns_of_known"]), (&Value::from(true), &Value::from(false)));
    assert!(of("seen-waiting", "futex")["text"].as_str().expect("text").contains("that thread 100 holds"));
    // who rests is no finding
    assert!(!found.iter().any(|row| row["object"] == "pipe:[17]" || row["object"] == "/dev/pts/0"), "{found:?}");
    // its command shows it
    let command = disk["command"].as_str().expect("a command");
    assert!(place.analyze(&format!("{command} looks.tape")).out.contains("/var/db/journal"), "{command}");
}

#[test]
fn who_takes_figures_for_exact_gets_no_estimates() {
    let place = place();
    std::fs::write(place.path("expect.txt"), "a: states => rows > 0\nb: locks => rows = 0\nc: stays => rows > 0\n")
        .unwrap();
    let judged = place.ask("assert looks.tape expect.txt --format json").json();
    let outcomes: Vec<&str> = judged.iter().map(|row| row["outcome"].as_str().expect("a word")).collect();
    assert_eq!(outcomes, ["not_known", "not_known", "holds"]);
}

#[test]
fn what_looks_cannot_say_is_refused_in_a_sentence() {
    let place = place();
    for (words, said) in [
        ("path", "also at one instant (--at TIME)"),
        ("offcpu", "'analyze stays'"),
        ("-s", "'analyze stays'"),
        ("sched latency", "'analyze stays'"),
        ("states -C 0", "is on no CPU"),
        ("states --at 0.5 --call-graph", "analyze callgraph --of look"),
        ("top --hist", "--hist: this tape has looks"),
        ("top --metric calls", "--metric"),
        ("top --by errno", "'analyze top' of looks"),
        ("top --failure", "--failure"),
        ("locks --kind lock", "--kind"),
    ] {
        let got = place.ask(&format!("{words} looks.tape"));
        assert!(got.status == 1 && got.err.contains(said), "{words}: {got:?}");
    }
}
