//! The tape is enough: on a copy of it, in a chroot without /proc, /sys, /etc and libbpf, as an unprivileged user with
//! another environment, every report is the same byte for byte.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use systape_e2e::{Lab, lab};

const REPORTS: [&[&str]; 9] = [
    &["t.tape"],
    &["t.tape", "--sort", "end", "-T", "--show-zeros", "--show-prefix"],
    &["t.tape", "--summary", "--errno-summary"],
    &["t.tape", "--summary", "--summary-mode", "cgroup"],
    &["t.tape", "--format", "json"],
    &["t.tape", "--format", "csv"],
    &["info", "t.tape"],
    &["info", "t.tape", "--format", "json"],
    &["check", "t.tape"],
];

/// Copies a file to the same path under `root`.
fn copy_into(root: &Path, file: &str) {
    let target = root.join(file.trim_start_matches('/'));
    fs::create_dir_all(target.parent().expect("parent")).expect("mkdir");
    fs::copy(file, &target).unwrap_or_else(|e| panic!("{file}: {e}"));
}

#[test]
fn reports_need_nothing_but_the_tape() {
    let Some(lab) = Lab::with_bpf() else { return };
    let busy =
        "ls -l /etc/passwd /nowhere; cat /etc/passwd | wc; sleep 0.1; python3 -c 'import socket; socket.socket()'";
    lab.record("t.tape", &[], &["sh", "-c", busy]).expect(0);
    lab.assert_whole("t.tape");

    let root = lab.path("root");
    let analyze = lab::binary("analyze").canonicalize().expect("analyze");
    let libraries = lab::run(lab.command("ldd").arg(&analyze)).expect(0).text();
    let mut copied = 0;
    for library in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
        copy_into(&root, library);
        copied += 1;
    }
    assert!(copied >= 2, "{libraries}");
    fs::copy(&analyze, root.join("analyze")).expect("copy");
    fs::copy(lab.path("t.tape"), root.join("t.tape")).expect("copy");
    fs::set_permissions(root.join("t.tape"), fs::Permissions::from_mode(0o444)).expect("chmod");
    for outside in ["proc", "sys", "etc", "usr/share"] {
        assert!(!root.join(outside).exists(), "{outside}");
    }
    assert!(!libraries.contains("libbpf"), "analyze needs libbpf: {libraries}");

    for report in REPORTS {
        let here = lab.analyze(report).expect(0);
        assert!(here.stdout.len() > 40, "{report:?} prints nothing");
        let mut there = lab.command("chroot");
        there.args(["--userspec=65534:65534", "--groups=65534"]).arg(&root).arg("/analyze").args(report);
        // PATH is how chroot itself is found
        let path = std::env::var_os("PATH").unwrap_or_default();
        there
            .env_clear()
            .env("PATH", path)
            .env("TZ", "Asia/Tokyo")
            .env("LC_ALL", "ja_JP.UTF-8")
            .env("COLUMNS", "40")
            .env("TERM", "xterm");
        let there = lab::run(there).expect(0);
        assert_eq!((there.text(), &there.stderr), (here.text(), &here.stderr), "{report:?}");
        assert_eq!(there.stdout, here.stdout, "{report:?}");
    }
}
