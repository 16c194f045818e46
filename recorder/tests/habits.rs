//! Command lines that users of strace, perf, the bcc tools and sysdig type: each is taken as it is meant, or answered with what to type.

use std::ffi::OsString;

use systape_cli::Stop;
use systape_recorder::cli;

/// Taken, with `ls` or nothing as the command.
const TAKEN: &[&str] = &[
    // strace
    "ls",
    "-f ls -l",
    "-ff ls",
    "-y ls",
    "-yy ls",
    "-v ls",
    "-q ls",
    "-qq ls",
    "-o t.tape ls",
    "-s 256 ls",
    "-p 4711",
    "-p 1,2",
    "-u nobody",
    "-e trace=open,close ls",
    "-e open ls",
    "-e %file ls",
    "--trace=read ls",
    "--attach 4711",
    "--follow-forks ls",
    "--output=t.tape ls",
    "--user=nobody",
    "--string-size=99 ls",
    // perf trace, perf record
    "-a",
    "-a -- sleep 1",
    "--all-cpus",
    "-t 4711",
    "-C 0,1",
    "--cpu 0-3",
    "--pid 4711",
    "--tid=4711",
    "--uid nobody",
    "--event open",
    "--expr open",
    "--duration 10 ls",
    "--failure ls",
    "--failed ls",
    "-g ls",
    "--call-graph dwarf ls",
    "--call-graph=fp ls",
    "-F 99 -a",
    "--freq=99 -a",
    "-D 100 ls",
    "--delay 100 ls",
    "-m 128 ls",
    "--mmap-pages 128 ls",
    "--no-inherit ls",
    "-G system.slice -a",
    "--cgroup=system.slice",
    "--max-size 1G",
    "--quiet ls",
    "--verbose ls",
];

/// Refused, with words that help.
const ANSWERED: &[(&str, &str)] = &[
    ("-c ls", "analyze -s"),
    ("-w ls", "analyze -s"),
    ("-r ls", "times are always recorded"),
    ("-tt ls", "times are always recorded"),
    ("-ttt ls", "times are always recorded"),
    ("-T ls", "how long"),
    ("-k ls", "-g"),
    ("-z ls", "--failure"),
    ("-Z ls", "--failure"),
    ("-x ls", "--failure"),
    ("-P /etc ls", "paths"),
    ("-E A=b ls", "env"),
    ("-A ls", "FILE.old"),
    ("-S ls", "analyze -s"),
    ("--stack-trace ls", "-g"),
    ("--stack-traces ls", "-g"),
    ("--summary ls", "analyze -s"),
    ("--summary-only ls", "analyze -s"),
    ("--with-summary ls", "analyze -s"),
    ("--relative-timestamps ls", "times"),
    ("--syscall-times ls", "how long"),
    ("--successful-only ls", "--failure"),
    ("--trace-path=/etc ls", "analyze -P PATH"),
    ("--inject=read:error=EIO ls", "strace"),
    ("--kill-on-exit ls", "strace"),
    ("--no-syscalls -a", "--families"),
    ("--pf all", "--families fault"),
    ("-F all", "--families fault"),
    ("-F max", "write 99"),
    ("--with-hits -a", "analyze info"),
    ("--max-events 3", "--max-size"),
    ("--max-stack 9", "analyze"),
    ("--filter-pids 3", "analyze -p"),
    ("--sort total", "analyze"),
    ("--stdio", "analyze"),
    ("--bpf-summary", "perf"),
    ("--switch-events -a", "--families sched"),
    ("--count=1000 -a", "--freq"),
    ("--raw-samples -a", "always"),
    ("--overwrite -a", "--duration"),
    ("--switch-output -a", "--duration"),
    ("-n nginx", "--comm"),
    ("-d 10", "--for"),
    ("-U", "users"),
    ("--timeout 10", "--for"),
    ("--name nginx", "--comm"),
    ("-p nginx", "pgrep nginx"),
    ("--pid abc", "pgrep abc"),
    ("-s all ls", "1 to 4096"),
    ("--fro 3s", "--for"),
    ("--familis sched", "--families"),
];

/// What is answered to a command line; None if it is taken.
fn answer(line: &str) -> Option<String> {
    let words = std::iter::once("record").chain(line.split_whitespace());
    cli::parse(words.map(OsString::from)).err().map(|(Stop::Usage(text) | Stop::Printed(text))| text)
}

#[test]
fn what_others_type_is_taken_or_answered() {
    for line in TAKEN {
        assert_eq!(answer(line), None, "record {line}");
    }
    for (line, help) in ANSWERED {
        let said = answer(line).unwrap_or_else(|| panic!("record {line}: taken"));
        assert!(said.contains(help), "record {line}: {said}");
        assert!(!said.contains("invalid digit") && !said.contains("to pass"), "record {line}: {said}");
    }
}
