//! The commands of README.md that record, and those that read what these recorded, are run as they stand there, in their order. What they
//! print of tapes in testdata is compared by the manual's tests.

use std::fs;
use std::path::{Path, PathBuf};

use systape_e2e::lab::{binary, run};
use systape_e2e::{Background, Lab};

/// Commands of `page` below its first heading "My service is slow": `    sudo record ...`, `    analyze ...` and `$ analyze ...`.
fn commands(page: &str) -> Vec<String> {
    let (_, below) = page.split_once("## My service is slow").expect("the section");
    let lines = below.lines().filter_map(|line| line.strip_prefix("    ").or_else(|| line.strip_prefix("$ ")));
    let is_ours = |line: &&str| ["record", "analyze", "sudo"].contains(&line.split(' ').next().unwrap_or_default());
    lines.filter(is_ours).map(|line| line.split("  #").next().unwrap_or(line).trim_end().to_owned()).collect()
}

/// The cgroup of a unit, where systemd would make it; removed at the end.
struct Unit(PathBuf);

impl Unit {
    fn named(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let mount =
            mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|of| of[2] == "cgroup2")?[1].to_owned();
        let dir = Path::new(&mount).join(format!("{name}.service"));
        fs::create_dir_all(&dir).expect("mkdir");
        Some(Self(dir))
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        // what the shell had started ends a moment after it
        let gone = || fs::remove_dir(&self.0).is_ok();
        (0..200).any(|_| {
            gone() || {
                std::thread::sleep(std::time::Duration::from_millis(10));
                false
            }
        });
    }
}

#[test]
fn the_commands_of_the_readme_work() {
    let Some(lab) = Lab::beside() else { return };
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).expect("README.md");
    let commands = commands(&page);
    assert!(commands.len() >= 10, "{commands:?}");

    // the service that is slow: each answer waits for a file to reach the disk. Without cgroup v2 there are no units, and it is chosen by
    // its number, the README's other way
    let unit = Unit::named("shop");
    let enter = unit.as_ref().map_or_else(String::new, |unit| format!("echo 0 >{}/cgroup.procs;", unit.0.display()));
    let work = "while :; do dd if=/dev/zero of=answer bs=4k count=1 conv=fsync 2>dd.log; sleep 0.02; done";
    let service = Background::start(lab.command("sh").args(["-c", &format!("{enter} echo $$ >pid; {work}")]));
    lab.until_file("pid");

    let path = format!(
        "{}:{}",
        binary("record").parent().expect("a directory").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let shell = |line: &str| {
        // root needs no sudo, and a bare machine has none
        let line = line.replace("sudo ", "").replace("/var/lib/systape", "tapes");
        let line = match &unit {
            Some(_) => line,
            None => line.replace("--unit shop", &format!("-p {}", service.pid())),
        };
        let mut shell = lab.command("sh");
        shell.args(["-c", &format!("exec {line}")]).env("PATH", &path).env("USER", "root");
        shell
    };
    fs::create_dir(lab.path("tapes")).expect("mkdir");
    let mut background = Vec::new();
    for line in &commands {
        if line.contains(" chown ") {
            run(lab.command("sh").args(["-c", &line.replace("sudo ", "")]).env("USER", "root")).expect(0);
        } else if line.contains(" --last ") {
            // however full the machine's disk is
            background.push(Background::start(shell(&format!("{line} --keep-free 0"))));
            lab.until("the flight recorder begins", || {
                run(shell("record status --dir tapes --format json")).status.success()
            });
        } else if line.starts_with("analyze open") {
            let mut open = Background::start(shell(line));
            std::thread::sleep(std::time::Duration::from_millis(500));
            assert!(open.ended().is_none(), "{line}");
            background.push(open);
        } else if line.contains("kill.tape") {
            // recorded here, since the README shows a tape of testdata
            run(shell("record -a -o kill.tape -- sh -c 'sleep 60 & sleep 0.2; kill $!; wait; true'")).expect(0);
            let said = run(shell(line)).expect(0).text();
            assert!(said.contains("SIGTERM  sleep (") && said.contains("killed by sh ("), "{said}");
        } else {
            run(shell(&line.replace("--for 10s", "--for 1s"))).expect(0);
        }
    }
    lab.until("the tape that record trigger asked for", || {
        let mut names = fs::read_dir(lab.path("tapes")).expect("tapes").map(|entry| entry.expect("entry").file_name());
        names.any(|name| name.to_string_lossy().contains("complaint"))
    });

    // what was recorded is the service, and the cause is in the answer
    let why = run(shell("analyze why demo.tape --format json")).expect(0).text();
    assert!(why.contains("fsync") && why.contains("dd"), "{why}");
    for name in ["demo.tape", "send.tape"] {
        run(shell(&format!("analyze check {name}"))).expect(0);
    }
    assert!(fs::read_to_string(lab.path("demo.html")).expect("the page").contains("<html"));
    for program in background {
        program.stop(libc::SIGINT);
    }
    service.stop(libc::SIGKILL);
}
