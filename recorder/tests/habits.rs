//! Command lines that users of strace, perf, the bcc tools and sysdig type: each is taken as it is meant, or answered with what to type.

use std::ffi::OsString;

use systape_cli::Stop;
use systape_recorder::commands::cli;
use systape_recorder::config::RecordConfig;

/// `record` and these words record the same as `record` and those; PID is a process that runs.
const MEANT: &[(&str, &str)] = &[
    // strace
    ("ls", "-- ls"),
    ("ls -l -f", "-- ls -l -f"),
    ("-f ls -l", "-- ls -l"),
    ("-ff ls", "ls"),
    ("-fff ls", "ls"),
    ("--follow-forks --output-separately ls", "ls"),
    ("-y ls", "ls"),
    ("-yy ls", "ls"),
    ("-fyy ls", "ls"),
    ("--decode-fds=all ls", "ls"),
    ("-v ls", "ls"),
    ("--verbose=all ls", "ls"),
    ("-q ls", "--quiet ls"),
    ("-qq ls", "-q ls"),
    ("-qfvo t.tape ls", "-q -o t.tape ls"),
    ("--output=t.tape ls", "-o t.tape ls"),
    ("-ot.tape ls", "-o t.tape ls"),
    ("-s256 ls", "-s 256 ls"),
    ("-s=256 ls", "-s 256 ls"),
    ("-fs256 -eread,write ls -F99", "-s 256 -e read,write -- ls -F99"),
    ("-e!close ls", "-e !close ls"),
    ("-F99 -a", "-F 99 -a"),
    ("-gF99 -C0", "-g -F 99 -C 0"),
    ("--string-size=99 ls", "-s 99 ls"),
    ("--string-limit=99 ls", "-s 99 ls"),
    ("-pPID", "-p PID"),
    ("--attach PID", "-p PID"),
    ("--attach=PID", "-p PID"),
    ("-p PID -p 1", "-p PID,1"),
    ("-u root", "-u 0"),
    ("--user=root", "-u root"),
    ("--trace=read ls", "-e read ls"),
    ("-eread ls", "-e read ls"),
    ("-e %file ls", "--event %file ls"),
    ("-fe open ls", "-e open ls"),
    ("--failed-only ls", "--failure ls"),
    ("-D 100 ls", "--delay 100ms ls"),
    // perf trace, perf record
    ("-a", "--all"),
    ("", "--flush 1s"),
    ("-a -- sleep 1", "-a sleep 1"),
    ("--all-cpus", "-a"),
    ("-t PID", "--tid=PID"),
    ("-C 0", "--cpu 0"),
    ("--pid PID", "-p PID"),
    ("--uid root", "-u root"),
    ("--event open ls", "-e open ls"),
    ("--expr open ls", "-e open ls"),
    ("--duration 10 ls", "--duration 10ms ls"),
    ("--failed ls", "--failure ls"),
    ("-g ls", "--call-graph fp ls"),
    ("--call-graph=fp ls", "-g ls"),
    ("--call-graph=dwarf ls", "--call-graph dwarf ls"),
    ("--freq=99 -a", "-F 99 -a"),
    ("-m 128 ls", "--mmap-pages=128 ls"),
    ("-m 512k ls", "-m 128 ls"),
    ("--max-size 1G", "--max-size 1GiB"),
    // bcc
    ("-p PID -F 99", "-F 99 -p PID"),
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
    ("--env A=b ls", "env A=b record"),
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
    ("--kill-on-exit ls", "--kill"),
    ("-cf ls", "analyze -s"),
    ("-fc ls", "analyze -s"),
    ("-fk ls", "-g"),
    ("-t ls", "times are always recorded"),
    ("-fr ls", "times"),
    ("-D ls", "30s"),
    ("-C ls", "analyze -S"),
    ("-i ls", "--no-inherit"),
    ("-o |gzip", "record -o - ... | gzip"),
    ("-o !gzip", "record -o - ... | gzip"),
    ("-e inject=read:error=EIO ls", "nothing is changed"),
    ("-e read=3 ls", "on the tape"),
    ("-e status=failed ls", "--failure"),
    ("-e /open ls", "glob"),
    ("--status=failed ls", "--failure"),
    ("--signal=none ls", "analyze kills"),
    ("--columns=40 ls", "analyze"),
    ("--daemonize ls", "strace"),
    ("--comm nginx,php", "analyze --comm=nginx,php"),
    ("--comm nginx*", "one name"),
    ("--comm !nginx", "one name"),
    ("-p PID 30", "--for 30s"),
    ("-p PID ls", "-a"),
    ("-a -p PID", "leave out -a"),
    ("-e cycles -a", "-F 99"),
    ("-e instructions:u ls", "-F 99"),
    ("-e opne ls", "open"),
    ("--call-graph lbr ls", "dwarf"),
    ("--filter x ls", "--failure"),
    ("--off-cpu -a", "analyze offcpu"),
    ("--sched -a", "analyze offcpu"),
    ("--errno-summary ls", "analyze -s"),
    ("--stats", "--self-stats"),
    ("-K -a", "--kernel-stacks"),
    ("-w x.scap", "-o FILE"),
    ("-M 10", "--for"),
    ("-m x ls", "64k"),
    ("--for soon", "30s"),
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
    ("--overwrite -a", "--last TIME"),
    ("--switch-output -a", "--rotate"),
    ("-n nginx", "--comm"),
    ("-d 10", "--for"),
    ("-U", "users"),
    ("--timeout 10", "--for"),
    ("--name nginx", "--comm"),
    ("-p nginx", "pgrep nginx"),
    ("--pid abc", "pgrep abc"),
    ("-s all ls", "1 to 4096"),
    ("--fro 3s", "--for"),
    // bpftrace
    ("-e usdt:/usr/bin/python3:python:function__entry ls", "--usdt '/usr/bin/python3:python:function__entry'"),
    ("-e uprobe:libc.so.6:f(a=int,b=int)->int ls", "--uprobe 'libc.so.6:f(a=int,b=int)->int'"),
    ("-e uretprobe:libc.so.6:getenv ls", "--uprobe 'libc.so.6:getenv->int'"),
    ("-e kprobe:vfs_* ls", "--kprobe 'vfs_*'"),
    ("-e kr:vfs_read ls", "--kprobe 'vfs_read->int'"),
    ("-e fentry:vfs_read ls", "--kprobe 'vfs_read'"),
    ("--familis sched", "--families"),
];

/// What a command line comes to: all of what is recorded, or what is wrong with it.
fn asked(line: &str) -> Result<String, String> {
    let line = line.replace("PID", &std::process::id().to_string());
    let words = std::iter::once("record").chain(line.split_whitespace());
    let args = cli::parse(words.map(OsString::from)).map_err(|(Stop::Usage(text) | Stop::Printed(text))| text)?;
    let config = RecordConfig::new(args).map_err(|error| format!("{error:#}"))?;
    Ok(format!("{config:?}"))
}

#[test]
fn what_is_meant_is_recorded() {
    for (typed, same) in MEANT {
        let expected = asked(same).unwrap_or_else(|why| panic!("record {same}: {why}"));
        assert_eq!(asked(typed).as_ref(), Ok(&expected), "record {typed} is not record {same}");
    }
}

#[test]
fn what_is_not_is_answered_with_what_to_type() {
    for (line, help) in ANSWERED {
        let said = asked(line).expect_err(line);
        assert!(said.contains(help) && said.lines().count() == 1, "record {line}: {said}");
        let useless = ["invalid digit", "to pass '", "unexpected argument"];
        assert!(!useless.iter().any(|text| said.contains(text)), "record {line}: {said}");
    }
    assert!(MEANT.len() + ANSWERED.len() >= 130);
}

#[test]
fn a_user_beside_a_command_is_not_taken_in_silence() {
    let notes = |line: &str| {
        let args = cli::parse(line.split(' ').map(OsString::from)).expect(line);
        RecordConfig::new(args).expect(line).notes()
    };
    assert!(notes("record -u 54321 ls").concat().contains("setpriv --reuid 54321"));
    for silent in ["record -u 54321", "record -a -u 54321 ls", "record ls"] {
        assert!(notes(silent).is_empty(), "{silent}");
    }
}
