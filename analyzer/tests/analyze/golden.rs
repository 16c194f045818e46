//! Text that must not change unnoticed: testdata/analyzer/NAME.cmd holds arguments, NAME.txt what `analyze` prints for them on the
//! tapes of `common`: sample.tape, events.tape, life.tape, lost.tape (the same, without some signals), stacks.tape, more.tape, ledger.tape, tables.tape, udp.tape, locks.tape, looks.tape, requests.tape, served.tape, held.tape, stats.tape, tools.tape. `UPDATE_GOLDEN=1 cargo test -p systape-analyzer --test analyze golden::` writes them anew; read the diff.

use std::fs;
use std::path::Path;

use crate::common::{self, Place};
use systape_analyzer::exercise::VIEWS;
use systape_format::model::{Family, Gap, GapCause};

#[test]
fn goldens() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/analyzer");
    let place = Place::with_tapes();
    common::life::write(&place.path("lost.tape"), &[lost_signals()]);
    common::tables::write(&place.path("tables.tape"));
    let expected =
        "some calls: top --by syscall => sum(calls) > 2\neach took some time: top --by syscall => min(calls) >= 1\n";
    fs::write(place.path("expect.txt"), expected).unwrap();
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    let mut asked = Vec::new();
    for entry in fs::read_dir(&dir).unwrap() {
        let command = entry.unwrap().path();
        if command.extension().is_none_or(|extension| extension != "cmd") {
            continue;
        }
        let words = fs::read_to_string(&command).unwrap();
        asked.push(words.clone());
        let got = place.analyze(words.trim());
        assert_eq!((got.status, got.err.as_str()), (0, ""), "{}", command.display());
        let expected = command.with_extension("txt");
        let out = without_sizes(&got.out);
        if update {
            fs::write(&expected, &out).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != out {
            wrong.push(format!("{}: analyze {}\n{out}", expected.display(), words.trim()));
        }
    }
    // what writes a file, needs a directory of tapes or is asked by a client is tested elsewhere
    const NOT_HERE: [&str; 14] = [
        "repair",
        "redact",
        "cut",
        "merge",
        "list",
        "report",
        "export perfetto",
        "export pprof",
        "export firefox",
        "import strace",
        "export arrow",
        "mcp",
        "open",
        "tui",
    ];
    let named = VIEWS.iter().map(|view| view.name).filter(|name| !NOT_HERE.contains(name));
    let is_of = |words: &String, name: &str| match name {
        "" => !VIEWS.iter().any(|view| !view.name.is_empty() && words.starts_with(view.name)),
        "summary" => words.contains("-s ") || words.contains("--summary"),
        "with-summary" => words.contains("-S "),
        name => words.starts_with(name),
    };
    let missing: Vec<_> = named.filter(|name| !asked.iter().any(|words| is_of(words, name))).collect();
    assert!(missing.is_empty(), "no golden of {missing:?} in {}", dir.display());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Between the SIGKILL at 12.345 ms and the death at 12.745 ms.
fn lost_signals() -> Gap {
    let at = |us| common::OPEN + us * common::US;
    let (cause, family) = (GapCause::RingFull, Family::Signal);
    Gap { cause, family, cpu: 1, count: 5, first: at(12_400), last: at(12_600), pid: 0, ledger: false }
}

/// How many bytes a tape takes changes with zstd and with every improvement of the format: `info` and `check` without them.
fn without_sizes(text: &str) -> String {
    let mut kept = String::new();
    let mut sizes = false;
    for line in text.lines() {
        sizes = line.starts_with("bytes ") || (sizes && line.starts_with(' '));
        if !sizes {
            kept.push_str(line.split(" segments, ").next().unwrap_or(line));
            kept.push('\n');
        }
    }
    kept
}
