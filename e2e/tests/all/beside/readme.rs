//! The commands of README.md are run as they stand there, in their order, in one shell.

use std::fs;
use std::path::Path;

use systape_e2e::Lab;
use systape_e2e::lab::{binary, run};

/// Lines of `page` that show a command: `    $ record ...`.
fn commands(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix("    $ ")).collect()
}

#[test]
fn the_commands_of_the_readme_work() {
    let Some(lab) = Lab::beside() else { return };
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).expect("README.md");
    let commands = commands(&page);
    assert!(commands.len() >= 10, "{commands:?}");
    // tar ends with 1 when a file changed while it was read, which record passes on
    let failed = |command: &str| if command.contains("tar ") { 1 } else { 0 };
    // each job in a group of its own, to be ended with what it started
    let mut script = "set -um; trap 'for job in $(jobs -p); do kill -- -$job; done 2>/dev/null' EXIT\n".to_owned();
    for (number, command) in commands.iter().enumerate() {
        script += &format!("{command}\n");
        if !command.contains(" & ") {
            let most = failed(command);
            script += &format!(
                "status=$?; [ $status -le {most} ] || {{ echo \"command {number}: $status\" >&2; exit 9; }}\n"
            );
        }
    }
    let record = binary("record");
    let bin = record.parent().expect("directory");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let done = run(lab.command("bash").args(["-c", &script]).env("PATH", path)).expect(0);
    let said = done.text();
    // the answers that the page gives
    for words in ["SIGTERM  sleep (", "killed by sh (", "__do_sys_flock", "dd "] {
        assert!(said.contains(words), "{words}: {said}\n{}", done.stderr);
    }
}
