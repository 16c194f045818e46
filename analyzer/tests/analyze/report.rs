//! `analyze report`: the page holds the figures of the other reports, no text of a tape is markup, and nothing is loaded. What a browser
//! makes of it is tested in report_browser.rs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{self, Place};
use serde_json::Value;
use systape_format::header::HEADER_LEN;

/// A recorded tape of the repository.
fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes").join(name)
}

/// The page of `tape`.
fn page(place: &Place, tape: &str) -> String {
    let got = place.analyze(&format!("report {tape} -o page.html"));
    assert_eq!((got.status, got.out.as_str()), (0, ""), "{tape}: {}", got.err);
    fs::read_to_string(place.path("page.html")).unwrap()
}

/// The data of its charts.
fn data(page: &str) -> Value {
    let begin = "<script type=\"application/json\" id=\"data\">";
    let (_, rest) = page.split_once(begin).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// What is markup of it: without the contents of scripts and the style.
fn markup(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some(at) = ["<script", "<style"].iter().filter_map(|tag| rest.find(tag)).min() {
        let inside = at + rest[at..].find('>').unwrap() + 1;
        text.push_str(&rest[..inside]);
        let end = inside + rest[inside..].find("</s").unwrap();
        rest = &rest[end..];
        let (tag, behind) = rest.split_once('>').unwrap();
        text.push_str(tag);
        text.push('>');
        rest = behind;
    }
    text.push_str(rest);
    text
}

/// The names of all tags and attributes in markup.
fn vocabulary(page: &str) -> Vec<String> {
    let markup = markup(page);
    let mut words: Vec<String> = Vec::new();
    for tag in markup.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap();
        // values in quotes hold no quote
        let outside: String = tag.split('"').step_by(2).collect();
        words.extend(outside.split_whitespace().map(|word| word.trim_end_matches('=').to_owned()));
    }
    words.sort();
    words.dedup();
    words
}

fn rows(place: &Place, words: &str) -> Vec<Value> {
    let got = place.analyze(&format!("{words} --format json"));
    assert_eq!(got.status, 0, "{words}: {}", got.err);
    got.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{value} is no number"))
}

fn sum(values: &Value) -> u64 {
    values.as_array().unwrap().iter().map(number).sum()
}

#[test]
fn figures_are_those_of_the_reports() {
    let place = Place::new();
    for name in ["mix-1.5.tape", "stacks-1.2.tape", "kernel-6.1-mix.tape", "mix-1.1.tape", "ledger-1.3.tape"] {
        fs::copy(recorded(name), place.path("t.tape")).unwrap();
        let data = data(&page(&place, "t.tape"));
        let by_name = rows(&place, "rate --by syscall --slices 1000 t.tape");
        let names = data["calls"]["names"].as_array().unwrap();
        assert_eq!(names.len(), by_name.len(), "{name}");
        let from = data["from"].as_u64().unwrap();
        for row in &by_name {
            let ours = names.iter().find(|ours| ours["name"] == row["syscall"]).unwrap();
            assert_eq!((&ours["calls"], &ours["untimed"]["n"]), (&row["calls"], &row["untimed_calls"]), "{row}");
            assert_eq!(data["width"], row["slice_ns"]);
            let slices = row["slices"].as_array().unwrap();
            let begin = ours["at"].as_array().unwrap().iter().map(|at| from + number(at) * number(&data["width"]));
            assert_eq!(
                begin.collect::<Vec<_>>(),
                slices.iter().map(|slice| number(&slice["from"])).collect::<Vec<_>>()
            );
            let counts = slices.iter().map(|slice| slice["count"].clone()).collect::<Value>();
            assert_eq!(ours["n"], counts, "{row}");
        }
        for row in rows(&place, "top --by syscall t.tape") {
            let ours = names.iter().find(|ours| ours["name"] == row["syscall"]).unwrap();
            let total = |name: &str| sum(&ours[name]) + number(&ours["untimed"][name]);
            assert_eq!((total("ns"), total("err")), (number(&row["total_ns"]), number(&row["errors"])), "{row}");
            assert_eq!(total("open"), number(&row["incomplete_calls"]), "{row}");
        }
        let timed: u64 = rows(&place, "top --by second --hist t.tape")
            .iter()
            .filter(|row| !row["second"].is_null())
            .flat_map(|row| row["durations"].as_array().unwrap())
            .map(|bucket| number(&bucket["count"]))
            .sum();
        assert_eq!(sum(&data["calls"]["heat"]["n"]), timed, "{name}");
        if !data["threads"].is_null() {
            let states: BTreeMap<String, u64> = rows(&place, "states --by state t.tape")
                .iter()
                .map(|row| (row["state"].as_str().unwrap().to_owned(), number(&row["time_ns"])))
                .collect();
            for (state, column) in [("RUN", "run"), ("RQ", "wait"), ("D", "disk"), ("?", "unknown")] {
                let expected = states.get(state).copied().unwrap_or(0);
                assert_eq!(sum(&data["threads"][column]), expected, "{name}: {state}");
            }
        }
        if !data["disks"].is_null() {
            let disks = rows(&place, "block --top --by disk t.tape");
            let lowest = disks.iter().filter(|row| row["in_total"] == true);
            let (ios, timed) =
                lowest.fold((0, 0), |(ios, timed), row| (ios + number(&row["ios"]), timed + number(&row["timed_ios"])));
            assert_eq!((sum(&data["disks"]["ios"]), sum(&data["disks"]["heat"]["n"])), (ios, timed), "{name}");
        }
        assert_eq!(data["marks"]["kills"].as_array().unwrap().len(), rows(&place, "kills t.tape").len());
        assert_eq!(data["processes"]["pid"].as_array().unwrap().len(), rows(&place, "exec --tree t.tape").len());
        if !data["path"].is_null() {
            let mut causes: BTreeMap<String, u64> = BTreeMap::new();
            for row in rows(&place, "path --sums t.tape") {
                *causes.entry(row["cause"].as_str().unwrap().to_owned()).or_default() += number(&row["total_ns"]);
            }
            let ours = data["path"]["causes"].as_array().unwrap().iter();
            let ours = ours.map(|cause| (cause["name"].as_str().unwrap().to_owned(), number(&cause["all"])));
            assert_eq!(ours.collect::<BTreeMap<_, _>>(), causes, "{name}");
        }
    }
}

#[test]
fn sums_of_slices_are_those_of_their_time() {
    let place = Place::new();
    for name in ["mix-1.5.tape", "stacks-1.2.tape", "kernel-6.1-mix.tape"] {
        fs::copy(recorded(name), place.path("t.tape")).unwrap();
        let data = data(&page(&place, "t.tape"));
        let (from, width) = (number(&data["from"]), number(&data["width"]));
        for (first, end) in [(0, 500), (300, 700), (999, 1000), (0, 1000)] {
            // of nobody it is known when a call began that was there before
            let time = format!("{}ns,{}ns", from + first * width, from + end * width);
            let rows = rows(&place, &format!("top --by syscall --time {time} t.tape"));
            for ours in data["calls"]["names"].as_array().unwrap() {
                let column = |name: &str| ours[name].as_array().unwrap();
                let inside = |at: &usize| (first..end).contains(&number(&column("at")[*at]));
                let sum = |name: &str| {
                    let places = (0..column("at").len()).filter(inside);
                    places.map(|at| number(&column(name)[at])).sum::<u64>()
                };
                if ours["untimed"]["n"] != 0 {
                    continue;
                }
                let row = rows.iter().find(|row| row["syscall"] == ours["name"]);
                let of = |name: &str| row.map_or(0, |row| number(&row[name]));
                let expected = (of("calls"), of("errors"), of("total_ns"));
                assert_eq!((sum("n"), sum("err"), sum("ns")), expected, "{name} {time} {}", ours["name"]);
                let bound = row.is_some_and(|row| row["total_ns_at_least"] == true);
                assert_eq!(sum("open") > 0, bound, "{name} {time} {}", ours["name"]);
            }
        }
    }
}

#[test]
fn flame_graphs_have_the_totals_of_callgraph() {
    let place = Place::new();
    fs::copy(recorded("stacks-1.2.tape"), place.path("t.tape")).unwrap();
    let graphs = data(&page(&place, "t.tape"))["graphs"].clone();
    assert_eq!(graphs.as_array().unwrap().len(), 3);
    for (graph, of) in graphs.as_array().unwrap().iter().zip(["cpu", "offcpu", "syscall"]) {
        let rows = rows(&place, &format!("callgraph --of {of} --metric time t.tape"));
        let total: u64 = rows.iter().filter(|row| row["parent"].is_null()).map(|row| number(&row["time_ns"])).sum();
        let column = |name: &str| graph[name].as_array().unwrap();
        let roots = column("parent").iter().zip(column("ns")).filter(|(parent, _)| **parent == -1);
        assert_eq!(roots.map(|(_, ns)| number(ns)).sum::<u64>(), total, "{of}");
        let comms: std::collections::BTreeSet<&str> = rows.iter().map(|row| row["comm"].as_str().unwrap()).collect();
        assert_eq!(column("parent").len(), rows.len() + comms.len(), "{of}: no frame is left out");
        assert!(column("parent").iter().enumerate().all(|(at, parent)| parent.as_i64().unwrap() < at as i64));
        // a wait is in the answer of each part that it touches
        if of == "offcpu" {
            assert!(graph["parts"].is_null());
            continue;
        }
        let parts = graph["parts"].as_array().unwrap_or_else(|| panic!("{of}: no parts"));
        let mut by_frame = vec![0; rows.len() + comms.len()];
        for part in parts {
            let frames = part["at"].as_array().unwrap().iter().zip(part["ns"].as_array().unwrap());
            frames.for_each(|(at, ns)| by_frame[number(at) as usize] += number(ns));
        }
        assert_eq!(by_frame, column("ns").iter().map(number).collect::<Vec<_>>(), "{of}: parts add up");
        assert!(parts.iter().filter(|part| part["at"] != Value::Array(Vec::new())).count() > 1, "{of}");
    }
}

#[test]
fn text_of_a_tape_is_no_markup() {
    let place = Place::new();
    fs::copy(recorded("mix-1.5.tape"), place.path("sound.tape")).unwrap();
    common::life::write(&place.path("life.tape"), &[]);
    let mut known = vocabulary(&page(&place, "sound.tape"));
    known.extend(vocabulary(&page(&place, "life.tape")));
    common::hostile::write(&place.path("hostile.tape"));
    let page = page(&place, "hostile.tape");
    // what other tapes lack: a page without findings and the like
    let new: Vec<String> = vocabulary(&page).into_iter().filter(|word| !known.contains(word)).collect();
    assert!(new.is_empty(), "{new:?}");
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (2, 2));
    assert!(!page.contains("<!--") && !page.contains(['\0', '\x1b', '\u{202e}', '\u{2028}', '\u{200b}', '\x7f']));
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;window.canary=1") && page.contains(r"a\xe2\x80\xaetxt.exe"));
    assert!(data(&page)["rows"]["failed"]["texts"].to_string().contains("<img src=x onerror"));
    assert!(page.len() < 400_000, "64 KiB of one argument are cut: {}", page.len());
}

#[test]
fn a_page_loads_nothing() {
    let place = Place::with_sample();
    let page = page(&place, "sample.tape");
    let policy = "content=\"default-src &#39;none&#39;; script-src &#39;sha256-";
    assert!(page.contains(policy) && page.contains("require-trusted-types-for &#39;script&#39;"));
    let markup = markup(&page);
    for word in
        [" src=", "<link", "<iframe", "<object", "<embed", "<base", "<form", "srcset", "ping=", "http:", "https:"]
    {
        assert!(!markup.contains(word), "{word}");
    }
    let links: Vec<&str> = markup.split("href=\"").skip(1).map(|rest| &rest[..1]).collect();
    assert!(links.len() > 5 && links.iter().all(|first| *first == "#"), "{links:?}");
    // what stands behind a name of a place is on the page
    for place in markup.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(markup.contains(&format!("id=\"{place}\"")), "{place}");
    }
}

#[test]
fn what_is_lost_is_said() {
    let place = Place::new();
    fs::copy(recorded("ledger-1.3.tape"), place.path("recorded.tape")).unwrap();
    let page = page(&place, "recorded.tape");
    assert!(page.contains("Events are missing.") && page.contains("LOST 47 syscall events on cpu 1"));
    assert!(page.contains("&gt;="), "figures have marks");
    assert_eq!(data(&page)["calls"]["exact"], false);
    let marks = data(&page)["marks"]["losses"].as_array().unwrap().len();
    assert_eq!(marks, 5);
    assert_eq!(place.analyze("report --fail-on-loss recorded.tape -o x.html").status, 3);
}

#[test]
fn a_damaged_byte_is_never_silent() {
    let place = Place::new();
    let sound = fs::read(recorded("mix-1.5.tape")).unwrap();
    fs::write(place.path("t.tape"), &sound).unwrap();
    let expected = page(&place, "t.tape");
    assert!(expected.contains("Nothing was lost"));
    let blocks = systape_format::Tape::open(&place.path("t.tape")).unwrap().blocks();
    let mut damaged = 0;
    for block in blocks {
        let mut bytes = sound.clone();
        bytes[block.offset as usize + HEADER_LEN + block.stored_len as usize / 2] ^= 0x55;
        fs::write(place.path("t.tape"), &bytes).unwrap();
        let got = place.analyze("report --fail-on-loss t.tape -o page.html");
        if got.status == 1 {
            assert!(!got.err.is_empty());
            continue;
        }
        let page = fs::read_to_string(place.path("page.html")).unwrap();
        let told = page.contains("Events are missing.") && page.contains("DAMAGED") && got.status == 3;
        assert!(told || page == expected, "{:?}: {}", block.kind, got.err);
        damaged += u32::from(told);
    }
    assert!(damaged > 5, "{damaged}");
}

#[test]
fn a_part_of_the_time() {
    let place = Place::new();
    fs::copy(recorded("mix-1.5.tape"), place.path("t.tape")).unwrap();
    let got = place.analyze("report --time 0.4,0.5 t.tape");
    assert!(got.status == 0 && got.err.starts_with("analyze: wrote report.html, "), "{got:?}");
    let page = fs::read_to_string(place.path("report.html")).unwrap();
    assert!(page.contains("Only a part of the tape:") && page.contains("analyze top --by syscall --time 0.4,0.5"));
    let calls: u64 = data(&page)["calls"]["names"].as_array().unwrap().iter().map(|name| number(&name["calls"])).sum();
    let expected: u64 =
        rows(&place, "top --by syscall --time 0.4,0.5 t.tape").iter().map(|row| number(&row["calls"])).sum();
    assert!(calls == expected && calls > 100, "{calls} {expected}");
}

#[test]
fn what_is_refused() {
    let place = Place::with_sample();
    fs::copy(place.path("sample.tape"), place.path("b.tape")).unwrap();
    for (words, status, said) in [
        ("report --format json sample.tape", 2, "leave out --format"),
        ("report sample.tape b.tape", 2, "a page is about one tape"),
        ("report -o no/such.html sample.tape", 1, "cannot write no/such.html"),
        ("report -o new.html no.tape", 1, "no.tape"),
        ("report -p 1 sample.tape", 2, "-p"),
    ] {
        let got = place.analyze(words);
        assert!(got.status == status && got.err.contains(said) && got.out.is_empty(), "{words}: {got:?}");
    }
    assert!(!place.path("new.html").exists() && !place.path("report.html").exists());
    // the same tape gives the same page
    assert_eq!(page(&place, "sample.tape"), page(&place, "sample.tape"));
}

#[test]
fn assets_of_others_are_those_of_their_package() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/assets.sh");
    let checked = std::process::Command::new(script).arg("check").output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && said.lines().count() == 3, "{said}");
}
