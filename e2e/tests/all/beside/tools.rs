//! The reports by the names of bcc's tools beside bpftrace's own of the same run: line by line, column by column.

use std::fs;
use std::path::PathBuf;
use std::process::Child;

use systape_e2e::Lab;
use systape_e2e::disk::has;
use systape_e2e::lab::run;

/// Opens and asks about paths that are there and paths that are not, by each call that the tools trace.
const ASKS: &str = "#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    struct stat stat; struct statfs fs; char room[256];
    for (int n = 0; n < 20; n++) {
        const char *path = n % 3 ? \"here\" : n ? \"/no/where\" : \"\";
        int fd = syscall(SYS_open, path, O_RDONLY), at = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
        syscall(SYS_stat, path, &stat); syscall(SYS_lstat, path, &stat);
        syscall(SYS_statx, AT_FDCWD, path, 0, STATX_BASIC_STATS, room); syscall(SYS_statfs, path, &fs);
        if (n % 2) { close(fd); close(at); }
    }
    return 0;
}";

/// Starts one of bpftrace's tools, and says where it writes.
fn start(lab: &Lab, tool: &str) -> (Child, PathBuf) {
    let script = ["/usr/sbin", "/usr/share/bpftrace/tools"].map(|dir| PathBuf::from(dir).join(tool));
    let script = script.into_iter().find(|path| path.exists()).expect(tool);
    let said = lab.path(&format!("{tool}.said"));
    let file = fs::File::create(&said).expect("said");
    let peer = lab.command("bpftrace").arg(script).stdout(file).spawn().expect("bpftrace");
    // the heading comes when it is attached
    lab.until(tool, || fs::read_to_string(&said).is_ok_and(|text| text.contains("PID")));
    (peer, said)
}

/// Lines of words, without the heading.
fn words(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().skip_while(|line| !line.contains("PID")).skip(1);
    let split = lines.map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<String>>());
    split.filter(|words| !words.is_empty()).collect()
}

#[test]
fn lines_are_those_of_bpftrace() {
    let Some(lab) = Lab::beside() else { return };
    if !has("bpftrace") {
        return;
    }
    fs::write(lab.path("asks.c"), ASKS).expect("source");
    fs::write(lab.path("here"), "").expect("file");
    run(lab.command("cc").args(["-o", "asks", "asks.c"])).expect(0);
    let peers = ["opensnoop.bt", "statsnoop.bt", "execsnoop.bt"].map(|tool| start(&lab, tool));
    lab.record("t.tape", &[], &["sh", "-c", "./asks; ./asks one two; ./none; /bin/true 'three'; :"]).expect(0);
    std::thread::sleep(std::time::Duration::from_secs(1));
    let mut said = Vec::new();
    for (mut peer, path) in peers {
        run(lab.command("kill").args(["-INT", &peer.id().to_string()])).expect(0);
        peer.wait().expect("bpftrace");
        said.push(words(&fs::read_to_string(path).expect("said")));
    }
    let ours = |arguments: &[&str]| words(&lab.analyze(&[arguments, &["t.tape"]].concat()).expect(0).text());

    let opens = ours(&["opensnoop", "--comm=asks"]);
    let theirs: Vec<_> = said[0].iter().filter(|line| line[1] == "asks").cloned().collect();
    assert!(opens.len() >= 2 * 40, "{opens:?}");
    assert_eq!(opens, theirs);

    // it has no FD, and newfstatat not either: the loader asks by that
    let mut stats = ours(&["statsnoop", "--comm=asks", "-e", "=stat,=lstat,=statx,statfs"]);
    stats.iter_mut().for_each(|line| drop(line.remove(2)));
    let theirs: Vec<_> = said[1].iter().filter(|line| line[1] == "asks").cloned().collect();
    assert_eq!(stats.len(), 2 * 80);
    assert_eq!(stats, theirs);

    // pid and arguments; it has attempts that fail too, and those of the whole machine
    let execs: Vec<Vec<String>> =
        ours(&["execsnoop", "-x"]).into_iter().map(|line| [&line[1..2], &line[4..]].concat()).collect();
    let pids: Vec<&String> = execs.iter().map(|line| &line[0]).collect();
    let theirs: Vec<Vec<String>> =
        said[2].iter().map(|line| line[1..].to_vec()).filter(|line| pids.contains(&&line[0])).collect();
    assert_eq!(execs.iter().filter(|line| line[1] == "./asks").count(), 2, "{execs:?}");
    assert!(execs.iter().any(|line| line[1..] == ["./none"]), "{execs:?}");
    let of_children = |all: &[Vec<String>]| {
        let mut all: Vec<_> = all.iter().filter(|line| line[1] != "sh").cloned().collect();
        all.sort();
        all
    };
    assert_eq!(of_children(&execs), of_children(&theirs));
}
