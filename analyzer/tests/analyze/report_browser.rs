//! Pages of `analyze report` in a browser: report_browser/check.mjs opens and uses them.
//!
//! It needs node, Debian's Chromium and playwright-core (`scripts/setup.sh test` installs them). Without them the test says SKIPPED, and
//! fails where SYSTAPE_REQUIRE_BROWSER or CI is set. `SYSTAPE_BROWSER_TAPES=a.tape,b.tape` adds tapes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, Place};
use serde_json::{Value, json};

/// Where setup.sh puts playwright-core.
fn modules() -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/browser");
    std::env::var_os("SYSTAPE_BROWSER_MODULES").map_or(target, PathBuf::from)
}

/// What is missing to open pages; None: nothing.
fn missing() -> Option<String> {
    let runs =
        |program: &str| Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if let Some(program) = ["node", "chromium"].into_iter().find(|program| !runs(program)) {
        return Some(format!("no {program}"));
    }
    let module = modules().join("node_modules/playwright-core");
    (!module.exists()).then(|| format!("no {}", module.display()))
}

/// One page: its name, its file, and the figures that it must show.
fn page(place: &Place, name: &str, tape: &Path) -> Value {
    let tape = tape.to_str().unwrap();
    let file = format!("{name}.html");
    let got = place.analyze(&format!("report {tape} -o {file}"));
    assert_eq!(got.status, 0, "{name}: {}", got.err);
    let size = fs::metadata(place.path(&file)).unwrap().len();
    println!("{name}: {size} bytes");
    let top = place.analyze(&format!("top --by syscall --format json {tape}"));
    assert_eq!(top.status, 0, "{name}: {}", top.err);
    let calls: Value = top.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
    json!({"name": name, "file": place.path(&file), "calls": calls})
}

#[test]
fn pages_work_in_a_browser() {
    if let Some(missing) = missing() {
        let required = ["SYSTAPE_REQUIRE_BROWSER", "CI"].iter().any(|name| std::env::var_os(name).is_some());
        assert!(!required, "{missing}: scripts/setup.sh test installs it");
        println!("SKIPPED: {missing}");
        return;
    }
    let place = Place::new();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tapes");
    let mut pages = Vec::new();
    for name in ["mix-1.5", "stacks-1.2", "ledger-1.3"] {
        pages.push(page(&place, name, &recorded.join(format!("{name}.tape"))));
    }
    common::hostile::write(&place.path("hostile.tape"));
    pages.push(page(&place, "hostile", &place.path("hostile.tape")));
    let more = std::env::var("SYSTAPE_BROWSER_TAPES").unwrap_or_default();
    for tape in more.split(',').filter(|tape| !tape.is_empty()).map(Path::new) {
        pages.push(page(&place, &tape.file_stem().unwrap().to_string_lossy(), tape));
    }
    fs::write(place.path("pages.json"), Value::from(pages).to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report_browser/check.mjs");
    let mut node = Command::new("node");
    node.arg(script).arg(modules().canonicalize().unwrap()).arg("/usr/bin/chromium").arg(place.path("pages.json"));
    let output = node.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    println!("{}", text(&output.stdout));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(" pages, 0 faults"), "{}", text(&output.stdout));
}
