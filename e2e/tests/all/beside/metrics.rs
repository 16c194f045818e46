//! `record --metrics`: the file's numbers are those of the tape.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use systape_e2e::Lab;
use systape_e2e::more::FREESTANDING;

/// Values by name and labels.
fn values(text: &str) -> BTreeMap<&str, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.rsplit_once(' ').expect("a value"))
        .map(|(name, n)| (name, n.parse().expect("number")))
        .collect()
}

#[test]
fn the_last_numbers_are_those_of_the_tape() {
    let Some(lab) = Lab::beside() else { return };
    let flood = lab.cc("flood", &FREESTANDING);
    let options = ["-m", "1", "--families", "syscall", "--metrics", "x.prom"];
    let said = lab.record("t.tape", &options, &[&flood, "2", "600011"]).expect(0).stderr;
    let text = fs::read_to_string(lab.path("x.prom")).expect("metrics");
    let values = values(&text);
    let info = lab.info("t.tape");
    let sum = |what: &str| {
        let of = values.iter().filter(|(name, _)| name.starts_with(what));
        of.map(|(_, value)| *value).sum::<f64>()
    };
    assert_eq!(values["systape_recording"], 0.0);
    let digits: String = said.split(" events").next().unwrap_or("").chars().filter(char::is_ascii_digit).collect();
    assert_eq!(values["systape_events_total"], digits.parse::<f64>().expect("events"), "{said}");
    // flooded: calls are counted, by cause, and nothing is lost
    let counted = systape_e2e::more::lost_calls(&info);
    assert!(counted > 1000, "nothing to test: only {counted}");
    assert_eq!(sum("systape_counted_calls_total"), counted as f64, "{text}");
    assert_eq!(sum("systape_lost_events_total"), 0.0, "{text}");
    let fill = values["systape_ring_fill_ratio{ring=\"calls\"}"];
    assert!(fill > 0.4 && fill <= 1.1, "{text}");
    let size = fs::metadata(lab.path("t.tape")).expect("tape").len() as f64;
    assert!(values["systape_tape_bytes_total"] > size / 2.0 && values["systape_tape_bytes_total"] <= size, "{text}");
    assert_eq!(fs::metadata(lab.path("x.prom")).expect("file").permissions().mode() & 0o777, 0o644);
}

#[test]
fn of_a_flight_recorder_triggers_and_tapes_are_counted() {
    let Some(lab) = Lab::beside() else { return };
    let options = ["--last", "5s", "--dir", "tapes", "--keep-free", "0", "--after", "100ms", "--on", "exit:sh!=0"];
    let mut record = lab.command(systape_e2e::lab::binary("record"));
    record.args(options).args(["--metrics", "x.prom", "--", "sh", "-c", "sh -c 'exit 3'; sleep 0.5"]);
    systape_e2e::lab::run(record).expect(0);
    let text = fs::read_to_string(lab.path("x.prom")).expect("metrics");
    let values = values(&text);
    assert_eq!(values["systape_trigger_fired_total{on=\"exit:sh!=0\"}"], 1.0, "{text}");
    assert_eq!((values["systape_tapes_written_total"], values["systape_tapes_failed_total"]), (1.0, 0.0), "{text}");
    let (began, last) = (values["systape_start_time_seconds"], values["systape_last_tape_time_seconds"]);
    assert!(last >= began && last < began + 60.0, "{text}");
}

#[test]
fn a_file_that_cannot_be_written_does_not_end_the_recording() {
    let Some(lab) = Lab::beside() else { return };
    let run = lab.record("t.tape", &["--metrics", "none/x.prom"], &["true"]).expect(0);
    assert_eq!(run.stderr.matches("--metrics none/x.prom: ").count(), 1, "{}", run.stderr);
    lab.assert_whole("t.tape");
}
