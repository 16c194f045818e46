//! The tape is enough: on a copy of it, in a chroot without /proc, /sys, /etc and libbpf, as an unprivileged user with
//! another environment, every report is the same byte for byte.

use systape_e2e::more::{bare_root, in_bare_root};
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

#[test]
fn reports_need_nothing_but_the_tape() {
    let Some(lab) = Lab::beside() else { return };
    let busy =
        "ls -l /etc/passwd /nowhere; cat /etc/passwd | wc; sleep 0.1; python3 -c 'import socket; socket.socket()'";
    lab.record("t.tape", &[], &["sh", "-c", busy]).expect(0);
    lab.assert_whole("t.tape");

    let (root, libraries) = bare_root(&lab, "t.tape");
    for outside in ["proc", "sys", "etc", "usr/share"] {
        assert!(!root.join(outside).exists(), "{outside}");
    }
    assert!(!libraries.contains("libbpf"), "analyze needs libbpf: {libraries}");

    for report in REPORTS {
        let here = lab.analyze(report).expect(0);
        assert!(here.stdout.len() > 40, "{report:?} prints nothing");
        let mut there = in_bare_root(&lab, &root, report);
        there.env("TZ", "Asia/Tokyo").env("LC_ALL", "ja_JP.UTF-8").env("COLUMNS", "40").env("TERM", "xterm");
        let there = lab::run(there).expect(0);
        assert_eq!((there.text(), &there.stderr), (here.text(), &here.stderr), "{report:?}");
        assert_eq!(there.stdout, here.stdout, "{report:?}");
    }
}
