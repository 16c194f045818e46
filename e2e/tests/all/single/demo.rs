//! `systape`: one name for both programs, and its demonstration.

use serde_json::Value;
use systape_e2e::lab::{Lab, binary, run};

#[test]
fn it_becomes_the_program_that_is_named() {
    let lab = Lab::plain();
    let tape = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/tapes/mix-1.5.tape");
    let systape = |words: &[&str]| run(lab.command(binary("systape")).args(words));
    let theirs = lab.analyze(&["kills", "--format", "json", tape]);
    for words in [&["analyze", "kills", "--format", "json", tape][..], &["kills", "--format", "json", tape]] {
        let ours = systape(words);
        assert_eq!((ours.code(), ours.text()), (theirs.code(), theirs.text()), "{words:?}");
    }
    assert!(!theirs.text().is_empty());
    // options behind the program's name are that program's
    assert_eq!(systape(&["record", "--help"]).text(), run(lab.command(binary("record")).arg("--help")).text());
    assert_eq!(systape(&["analyze", "why", "--help"]).text(), lab.analyze(&["why", "--help"]).text());
    let (wrong, theirs) = (systape(&["--fro"]), systape(&["wyh"]));
    assert!(wrong.code() == 2 && wrong.stderr.starts_with("systape: --fro is no option"), "{}", wrong.stderr);
    assert!(theirs.code() != 0 && theirs.stderr.contains("'why'"), "{}", theirs.stderr);
}

#[test]
fn it_has_pages_and_completions() {
    let lab = Lab::plain();
    for (what, word) in
        [("man", ".TH systape 1"), ("bash", "complete"), ("zsh", "#compdef systape"), ("fish", "-c systape")]
    {
        let page = run(lab.command(binary("systape")).args(["--generate", what])).expect(0).text();
        assert!(page.contains(word), "{what}: {page}");
    }
    // bash completes by it
    std::fs::write(lab.path("c"), run(lab.command(binary("systape")).args(["--generate", "bash"])).expect(0).text())
        .expect("write");
    let words = "source ./c; COMP_WORDS=(systape wh); COMP_CWORD=1; _systape; echo ${COMPREPLY[@]}";
    assert_eq!(run(lab.command("bash").args(["-c", words])).expect(0).text().trim(), "why");
}

#[test]
fn the_demonstration_finds_the_fault_that_it_planted() {
    let Some(lab) = Lab::with_bpf() else { return };
    let shown = run(lab.command(binary("systape")).args(["demo", "here"])).expect(0);
    let text = shown.text();
    assert!(
        text.contains("\n$ analyze why demo.tape\n") && text.contains("\n$ analyze path --sums demo.tape\n"),
        "{text}"
    );
    let why = lab.analyze(&["why", "--format", "json", "--expand", "here/demo.tape"]).expect(0).json();
    // each of four clients asks 100 times, one request in ten has the backend compute for 40 ms behind the one lock
    let budget = why.iter().find(|row| row["kind"] == "budget" && row["level"] == 1).expect("a budget");
    assert_eq!(budget["comm"], "backend", "{budget}");
    let took = budget["cost_ns"].as_u64().expect("time");
    // what waits for a CPU has lines of its own
    assert!(took >= 36 * 40_000_000, "{budget}");
    // which of the two has the larger cost is a matter of who comes first
    let is_web = |row: &&Value| row["comm"].as_str().is_some_and(|comm| comm.starts_with("web-"));
    let is_fault = |row: &Value| row["rule"] == "lock" || row["syscall"] == "recvfrom";
    assert!(why.iter().filter(is_web).any(is_fault), "{why:?}");
    let calls = lab.calls("here/demo.tape", &["-e", "write", "--comm", "web-*"]);
    assert_eq!(calls.len(), 400, "a line of the log for each request");
    assert!(std::fs::metadata(lab.path("here/demo.html")).is_ok_and(|page| page.len() > 50_000));
    let size = std::fs::metadata(lab.path("here/demo.tape")).expect("a tape").len().div_ceil(1024);
    assert!(text.contains(&format!("The tape has {size} KiB.")), "{text}");
}
