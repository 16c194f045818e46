//! `analyze fds` and `analyze env` on a made tape: exact at every moment, in both chunks, and what a loss makes uncertain.

use serde_json::Value;
use systape_format::model::Gap;

use crate::common::{self, OPEN, Place, US, gap};

fn place(gaps: &[Gap]) -> Place {
    let place = Place::new();
    common::held::write(&place.path("held.tape"), gaps);
    place
}

/// `3 /etc/passwd` of each descriptor of `pid` at `at`; `*` behind a path as it was given, `?` behind one that may be closed.
fn held(place: &Place, pid: u32, at: &str) -> Vec<String> {
    let rows = place.analyze(&format!("fds held.tape -p {pid} --at {at} --format json")).json();
    let one = |row: &Value| {
        let name = match (row["name"].as_str(), row["given"].as_str()) {
            (Some(name), _) => name.to_owned(),
            (None, Some(given)) => format!("{given}*"),
            (None, None) => row["kind"].as_str().unwrap_or("?").to_owned(),
        };
        format!("{} {name}{}", row["fd"], if row["open"] == true { "" } else { "?" })
    };
    rows.iter().filter(|row| !row["fd"].is_null()).map(one).collect()
}

/// Its current directory at `at`, and who has the pipe that is its descriptor 5 open too.
fn cwd_and_peers(place: &Place, pid: u32, at: &str) -> (String, Vec<u64>) {
    let rows = place.analyze(&format!("fds held.tape -p {pid} --at {at} --format json")).json();
    let of = |wanted: Value| rows.iter().find(|row| row["fd"] == wanted);
    let cwd = of(Value::Null).map_or("?", |row| row["name"].as_str().unwrap());
    let peers = of(5.into()).and_then(|row| row["peers"].as_array()).into_iter().flatten();
    (cwd.to_owned(), peers.map(|peer| peer["pid"].as_u64().unwrap()).collect())
}

#[test]
fn a_process_has_a_directory_and_others_its_pipe() {
    let place = place(&[]);
    assert_eq!(cwd_and_peers(&place, 100, "5us"), ("/srv".into(), vec![]));
    // both ends are its own until it forks
    assert_eq!(cwd_and_peers(&place, 100, "45us"), ("/srv".into(), vec![]));
    assert_eq!(cwd_and_peers(&place, 100, "105us"), ("/srv".into(), vec![70_000]));
    assert_eq!(cwd_and_peers(&place, 70_000, "150us"), ("/srv".into(), vec![100]));
    let text = place.analyze("fds held.tape -p 70000 --at 150us").out;
    assert!(text.contains("pipe:[4711] -> app[100]"), "{text}");
    let lost = Gap { first: OPEN + 140 * US, last: OPEN + 150 * US, pid: 100, ..gap() };
    let place = self::place(&[lost]);
    // what it has is not sure, so it is no peer
    assert_eq!(cwd_and_peers(&place, 70_000, "160us").1, [0; 0]);
    let row = place.analyze("fds held.tape -p 70000 --at 160us --format json").json();
    assert!(row.iter().all(|row| row["fd"] != 5 || row["peers_at_least"] == true), "{row:?}");
}

#[test]
fn each_moment_has_its_descriptors() {
    let place = place(&[]);
    let start = ["0 /dev/null", "1 /var/log/app", "7 TCP:[10.0.0.1:80]"];
    assert_eq!(held(&place, 100, "5us"), start);
    assert_eq!(held(&place, 100, "15us"), ["0 /dev/null", "1 /var/log/app", "3 /etc/passwd", "7 TCP:[10.0.0.1:80]"]);
    // a name is where a call uses it: the second chunk has that of 4, the child that of the pipe
    let all = [
        "0 /dev/null",
        "1 /var/log/app",
        "4 /srv/data/cache",
        "5 pipe:[4711]",
        "6 pipe:[4711]",
        "7 TCP:[10.0.0.1:80]",
        "9 /etc/passwd",
    ];
    assert_eq!(held(&place, 100, "85us"), all);
    assert_eq!(held(&place, 70_000, "105us"), all, "a copy");
    // exec closes 7; the child closed 1
    assert_eq!(
        held(&place, 70_000, "150us"),
        ["0 /dev/null", "4 /srv/data/cache", "5 pipe:[4711]", "6 pipe:[4711]", "9 /etc/passwd"]
    );
    assert_eq!(
        held(&place, 100, "215us"),
        ["0 /dev/null", "1 /var/log/app", "5 pipe:[4711]", "6 pipe:[4711]", "7 TCP:[10.0.0.1:80]", "9 /etc/passwd"]
    );
    assert_eq!(
        held(&place, 100, "100%"),
        ["0 /dev/null", "1 /var/log/app", "5 pipe:[4711]", "6 pipe:[4711]", "9 /etc/passwd"]
    );
    let rows = place.analyze("fds held.tape -t 101 --at 85us --format json").json();
    let of = |fd: i64| rows.iter().find(|row| row["fd"] == fd).unwrap();
    assert_eq!(
        (&of(4)["mode"], &of(4)["by"], &of(4)["since_ns"]),
        (&Value::from("rw"), &Value::from("openat"), &Value::from(32_000))
    );
    assert_eq!(
        (&of(9)["mode"], &of(9)["by"], &of(9)["since_ns"]),
        (&Value::from("r"), &Value::from("openat"), &Value::from(51_000))
    );
    assert_eq!((&of(7)["cloexec"], &of(7)["since_ns"]), (&Value::from(true), &Value::Null));
    assert!(rows.iter().all(|row| row["complete"] == true && row["tid"].is_null()), "{rows:?}");
}

#[test]
fn a_loss_makes_it_uncertain_until_the_next_checkpoint() {
    let lost = |pid| Gap { first: OPEN + 140 * US, last: OPEN + 150 * US, pid, ..gap() };
    let place = place(&[lost(100)]);
    let run = |at: &str, pid: u32| place.analyze(&format!("fds held.tape -p {pid} --at {at} --fail-on-loss"));
    assert_eq!((run("130us", 100).status, run("160us", 100).status, run("230us", 100).status), (0, 3, 3));
    // since when what the checkpoint lists was open is not known
    assert!(!run("230us", 100).out.contains("INCOMPLETE"));
    assert_eq!(run("160us", 70_000).status, 0, "nothing of it was lost");
    assert!(run("160us", 100).out.contains("INCOMPLETE"), "{}", run("160us", 100).out);
    assert!(held(&place, 100, "160us").iter().all(|row| row.ends_with('?')));
    // the checkpoint lists what is open
    assert_eq!(held(&place, 100, "205us"), held(&place, 100, "135us"));
}

#[test]
fn variables_of_each_program() {
    let place = place(&[]);
    let rows = |words: &str| place.analyze(&format!("env held.tape --format json {words}")).json();
    let text =
        |row: &Value| format!("{} {} {}={}", row["ts_ns"], row["pid"], row["name"].as_str().unwrap(), row["value"]);
    let all = |words: &str| rows(words).iter().map(text).collect::<Vec<_>>();
    let before = [r#"null 100 JOB="17""#, "null 100 STAGE=null"];
    let started = [r#"120000 70000 JOB="18""#, r#"120000 70000 STAGE="two words""#];
    assert_eq!(all(""), [before, started].concat());
    assert_eq!(all("-p 70000"), started);
    assert_eq!(all("--var S* --time 1us,"), started[1..]);
    assert_eq!(rows("-p 70000")[0]["path"], "/bin/tool");
    let none = Place::with_sample().analyze("env sample.tape");
    assert_eq!(none.status, 1);
    assert!(none.err.contains("record --env"), "{}", none.err);
}
