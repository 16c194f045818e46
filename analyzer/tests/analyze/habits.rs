//! Command lines of strace, perf, the bcc tools and sysdig users, tried on `analyze`: each is accepted as meant, which is what the other
//! command line does, or is refused with a sentence that names what to type. None differs silently.

use systape_analyzer::exercise::parse;
use systape_cli::Stop;

/// `analyze` and these words do the same as `analyze` and those.
const MEANT: &[(&str, &str)] = &[
    // strace
    ("-f t.tape", "t.tape"),
    ("-ff t.tape", "t.tape"),
    ("-yy t.tape", "-y t.tape"),
    ("export strace -f -ttt -T t.tape", "export strace t.tape"),
    ("export strace -f -tt -yy t.tape", "export strace --clock wall --show-files t.tape"),
    ("-fyy t.tape", "-y t.tape"),
    ("-v t.tape", "t.tape"),
    ("-q t.tape", "t.tape"),
    ("-qq -f t.tape", "t.tape"),
    ("--follow-forks --decode-fds=all t.tape", "-y t.tape"),
    ("--decode-pids=comm t.tape", "t.tape"),
    ("--syscall-times=ns t.tape", "t.tape"),
    ("-c t.tape", "-s --summary-mode total t.tape"),
    ("-cw t.tape", "-s --summary-mode total t.tape"),
    ("-cf t.tape", "-s --summary-mode total t.tape"),
    ("-c -w -f t.tape", "-s --summary-mode total t.tape"),
    ("-fc t.tape", "-s --summary-mode total t.tape"),
    ("--summary-only t.tape", "-s t.tape"),
    ("-c -S calls t.tape", "-s --summary-mode total --sort calls t.tape"),
    ("-c -S max-time t.tape", "-s --summary-mode total --sort max-time t.tape"),
    ("-c --summary-sort-by=time t.tape", "-s --summary-mode total --sort time t.tape"),
    ("-k t.tape", "--call-graph t.tape"),
    ("-kk t.tape", "--call-graph t.tape"),
    ("--stack-trace=symbol t.tape", "--call-graph t.tape"),
    ("-e trace=open,close t.tape", "-etrace=open,close t.tape"),
    ("-e t=%file t.tape", "t.tape -e t=%file"),
    ("-e %file t.tape", "--trace %file t.tape"),
    ("--trace=read t.tape", "-e read t.tape"),
    ("-efile t.tape", "-e file t.tape"),
    ("-fe read t.tape", "-e read t.tape"),
    ("-P /etc/passwd t.tape", "--path /etc/passwd t.tape"),
    ("--trace-path=/etc t.tape", "-P /etc t.tape"),
    ("-Z t.tape", "--failure t.tape"),
    ("--failed-only t.tape", "--failure t.tape"),
    ("-T t.tape", "--absolute-time t.tape"),
    ("--attach=2214 t.tape", "-p 2214 t.tape"),
    ("--attach 2214 t.tape", "-p 2214 t.tape"),
    ("-p2214 t.tape", "-p 2214 t.tape"),
    ("--user=root t.tape", "-u root t.tape"),
    // perf trace
    ("-i t.tape -s", "-s t.tape"),
    ("-s -f -i t.tape", "-s t.tape"),
    ("--summary t.tape", "-s t.tape"),
    ("-S t.tape", "--with-summary t.tape"),
    ("--comm tar t.tape", "--comm=tar t.tape"),
    ("-s --comm worth t.tape", "-s --comm=worth t.tape"),
    ("--comm worth -s t.tape", "--comm=worth -s t.tape"),
    ("t.tape --comm worth", "t.tape --comm=worth"),
    ("--comm worth -i t.tape", "-i t.tape --comm=worth"),
    ("--comm worth", "--comm=worth"),
    ("--comm t.tape", "t.tape --comm"),
    ("kills --comm nginx t.tape", "kills --comm=nginx t.tape"),
    // bcc
    ("opensnoop -x t.tape", "opensnoop --failure t.tape"),
    ("opensnoop --failed -n nginx t.tape", "opensnoop --failure --comm=nginx t.tape"),
    ("opensnoop --timestamp t.tape", "opensnoop --clock=start t.tape"),
    ("statsnoop -x t.tape", "statsnoop --failure t.tape"),
    ("execsnoop -x -n sh t.tape", "execsnoop --fails --comm=sh t.tape"),
    ("execsnoop --timestamp t.tape", "execsnoop --clock=start t.tape"),
    ("biosnoop -Q t.tape", "biosnoop --queued t.tape"),
    ("biosnoop --queue t.tape", "biosnoop --queued t.tape"),
    ("biolatency -DQ t.tape", "biolatency --disks --queued t.tape"),
    ("tcplife -w --timestamp t.tape", "tcplife --wide --clock=start t.tape"),
    ("killsnoop -x t.tape", "killsnoop --failure t.tape"),
    ("killsnoop -s 9 t.tape", "killsnoop --signal=9 t.tape"),
    ("syscount -P -x -T 5 t.tape", "syscount --process --failure --top=5 t.tape"),
    ("syscount -L t.tape", "syscount --latency t.tape"),
    ("filetop -a -s reads -r 5 t.tape", "filetop --all-files --rank=reads --top=5 t.tape"),
    ("filetop --sort wbytes t.tape", "filetop --rank=wbytes t.tape"),
    ("files --sort=rbytes t.tape", "files --rank=rbytes t.tape"),
    ("locks --sort max t.tape", "locks --metric=max t.tape"),
    ("offcputime -f t.tape", "offcputime --folded t.tape"),
    ("--comm nginx kills t.tape", "kills --comm=nginx t.tape"),
    ("sched latency --comm nginx", "sched latency --comm=nginx"),
    ("--call-graph dwarf t.tape", "--call-graph=dwarf t.tape"),
    ("--call-graph dwarf,16384 t.tape", "--call-graph=dwarf,16384 t.tape"),
    ("--call-graph fp t.tape", "--call-graph=fp t.tape"),
    ("--call-graph t.tape", "--call-graph t.tape"),
    ("-g t.tape", "--call-graph t.tape"),
    ("-s --cpu 0 t.tape", "-s --cpu=0 t.tape"),
    ("--cpu 0-3,7 t.tape", "--cpu=0-3,7 t.tape"),
    ("-s --cpu t.tape", "t.tape -s --cpu"),
    ("--expr read t.tape", "-e read t.tape"),
    ("--event=read t.tape", "-e read t.tape"),
    ("--bpf-summary t.tape", "-s t.tape"),
    ("--force-btf t.tape", "t.tape"),
    ("--force t.tape", "t.tape"),
    ("--json t.tape", "--format json t.tape"),
    ("-j t.tape", "--format json t.tape"),
    ("--csv -s t.tape", "-s --format csv t.tape"),
    // perf report, script, sched
    ("callgraph -g t.tape", "callgraph t.tape"),
    ("callgraph --stdio t.tape", "callgraph t.tape"),
    ("callgraph --percent-limit 1 t.tape", "callgraph --min-percent 1 t.tape"),
    ("callgraph --symfs /x t.tape", "callgraph --debug-dir /x t.tape"),
    ("--comms tar,gzip t.tape", "--comm=tar,gzip t.tape"),
    ("--no-color t.tape", "--color=never t.tape"),
    ("--colour always t.tape", "--color=always t.tape"),
    ("--reltime t.tape", "t.tape"),
    ("--time 10%,20% t.tape", "--time 10%,20% t.tape"),
    ("sched t.tape", "sched timehist t.tape"),
    // bcc
    ("--name tar t.tape", "--comm=tar t.tape"),
    // words in another order
    ("t.tape kills", "kills t.tape"),
    ("t.tape sched latency", "sched latency t.tape"),
    ("t.tape -v kills", "kills -v t.tape"),
    ("t.tape summary", "summary t.tape"),
    ("block --top 10 t.tape", "block --top=10 t.tape"),
    ("block --top t.tape", "block t.tape --top"),
    ("summary t.tape", "-s t.tape"),
    ("t.tape -s", "-s t.tape"),
];

/// `analyze` refuses these words, and says this.
const REFUSED: &[(&str, &str)] = &[
    // strace
    ("-tt t.tape", "--clock wall prints times of day"),
    ("-ttt t.tape", "times of day"),
    ("-t t.tape", "times of day"),
    ("-ft t.tape", "times of day"),
    ("--absolute-timestamps=precision:us t.tape", "times of day"),
    ("-r t.tape", "--clock wall"),
    ("-C t.tape", "-S (strace -C)"),
    ("-s 32 t.tape", "record -s 32"),
    ("-S time t.tape", "add -s"),
    ("-c -S name t.tape", "--sort calls"),
    ("-o out.txt t.tape", "> FILE"),
    ("--output=out.txt t.tape", "> FILE"),
    ("-z t.tape", "--failure"),
    ("--status=failed t.tape", "--failure"),
    ("-x t.tape", "--failure"),
    ("-xx t.tape", "hex"),
    ("-X raw t.tape", "--show-prefix"),
    ("-n t.tape", "--comm=NAME"),
    ("-N t.tape", "--format json"),
    ("-a 40 t.tape", "record -a"),
    ("-b execve t.tape", "record --help"),
    ("-E A=1 t.tape", "record --help"),
    ("-w t.tape", "analyze -s"),
    ("-U name,calls t.tape", "--format"),
    ("-O 1us t.tape", "--format"),
    ("--summary-sort-by=calls t.tape", "add -s"),
    ("-s --sort end t.tape", "calls, errors, total"),
    ("--string-limit=64 t.tape", "record -s"),
    ("--inject=read:error=EIO t.tape", "record --help"),
    ("-e inject=read:error=EIO t.tape", "strace"),
    ("-e status=failed t.tape", "--failure"),
    ("-e signal=none t.tape", "signal:*"),
    ("-e /^open t.tape", "glob"),
    ("-e opennat t.tape", "openat"),
    ("-e decode-fds=all t.tape", "descriptors"),
    ("-p abc t.tape", "--comm=NAME"),
    ("--pid abc t.tape", "--comm=NAME"),
    ("-p nginx,apache t.tape", "--comm=NAME"),
    ("--syscall-limit=9 t.tape", "--max-events"),
    // perf trace
    ("-t abc t.tape", "numbers of threads"),
    ("--tid=abc t.tape", "numbers of threads"),
    ("-C all t.tape", "such as 0-3,7"),
    ("--no-syscalls t.tape", "sched:*"),
    ("--pf=all t.tape", "fault:*"),
    ("--pf maj t.tape", "fault:*"),
    ("-F all t.tape", "fault:*"),
    ("--with-hits t.tape", "analyze info"),
    ("--sched t.tape", "--cpu"),
    ("--filter-pids 1 t.tape", "--comm=NAME"),
    ("--filter 'a==1' t.tape", "--duration"),
    ("-m 128 t.tape", "record"),
    ("--max-summary 5 t.tape", "head"),
    ("-s --max-events 5 t.tape", "--max-events"),
    ("--max-events many t.tape", "no number"),
    ("-a t.tape", "record -a"),
    ("--switch-on x t.tape", "--time"),
    ("--tool_stats t.tape", "perf alone"),
    ("--kernel-syscall-graph t.tape", "--call-graph"),
    ("--sort total t.tape", "add -s"),
    ("--no-inherit t.tape", "record --help"),
    ("--duratoin 5 t.tape", "--duration"),
    ("--sumary t.tape", "--summary"),
    ("--no-such-option-at-all t.tape", "no option of analyze"),
    ("-J t.tape", "no option of analyze"),
    ("-e sched:* -s --by comm t.tape", "-e names none"),
    ("--duration fast t.tape", "--duration"),
    // perf report, script, sched
    ("callgraph --no-children t.tape", "callgraph --help"),
    ("callgraph --sort comm t.tape", "--sort"),
    ("callgraph --tui t.tape", "callgraph --help"),
    ("callgraph --dsos libc.so t.tape", "callgraph --help"),
    ("callgraph -f t.tape", "--folded"),
    ("callgraph --vmlinux x t.tape", "--debug-dir"),
    ("-F comm,pid,time t.tape", "--format json"),
    ("--fields comm t.tape", "--format json"),
    ("--ns t.tape", "--format json"),
    ("--deltatime t.tape", "since the start"),
    ("--header t.tape", "analyze info"),
    ("--tasks t.tape", "exec --tree"),
    ("sched timehist -w t.tape", "sched_wakeup"),
    ("sched timehist -s t.tape", "sched latency"),
    ("sched timehist --summary t.tape", "sched latency"),
    ("sched timehist -MVI t.tape", "sched:*"),
    ("script t.tape", "analyze FILE"),
    ("trace t.tape", "analyze FILE"),
    ("timehist t.tape", "sched timehist"),
    ("latency t.tape", "sched latency"),
    ("record t.tape", "record -- COMMAND"),
    // bcc, bpftrace
    ("opens t.tape", "files --opens"),
    ("execs t.tape", "analyze exec"),
    ("biotop t.tape", "block --top"),
    ("sigsnoop t.tape", "kills --all"),
    ("bitesize t.tape", "block --sizes"),
    ("fileslower t.tape", "analyze files"),
    ("tcpconnect t.tape", "analyze net"),
    ("profile t.tape", "analyze callgraph"),
    ("tcpstates t.tape", "net --events"),
    ("udplife t.tape", "analyze net --udp"),
    ("-U t.tape", "--format json"),
    ("-L t.tape", "--max-events"),
    ("-l 10 t.tape", "--max-events"),
    ("-d 5 t.tape", "--time"),
    ("--ppid 1 t.tape", "exec --tree"),
    ("--cgroupmap /x t.tape", "-G PATH"),
    ("-e EPERM t.tape", "EPERM"),
    ("exec -x t.tape", "--failure"),
    ("block -D t.tape", "--hist"),
    ("tracepoint:syscalls:sys_enter_openat t.tape", "-e"),
    // sysdig
    ("-r t.tape", "without an option"),
    ("-c topprocs_cpu t.tape", "sched latency"),
    ("-c topfiles_bytes t.tape", "analyze files"),
    ("-c topscalls t.tape", "analyze -s"),
    ("-c topconns t.tape", "analyze net"),
    ("-M 5 t.tape", "analyze --help"),
    ("proc.name=cat t.tape", "--comm=NAME"),
    ("evt.type=open t.tape", "-e CALL"),
    ("t.tape proc.name=cat", "--comm=NAME"),
    // words
    ("help kils", "'kills'"),
    ("kils t.tape", "'kills'"),
    ("tar t.tape", "no report"),
    ("ps t.tape", "exec --tree"),
    ("ls t.tape", "analyze list"),
    ("kills --by comm t.tape", "--by"),
    ("check -p 9 t.tape", "-p"),
    ("--comm kills t.tape", "--comm=NAME"),
];

/// What `analyze` and `words` come to: all of what was settled, or why not, or help.
fn asked(words: &str) -> Result<String, String> {
    let words = std::iter::once("analyze").chain(words.split_whitespace());
    match parse(words.map(Into::into)) {
        Ok(asked) => {
            let config = asked.config().map_err(|error| format!("{error:#}"))?;
            // a summary is chosen by a word or a letter
            let typed: Vec<_> = asked.typed().into_iter().filter(|(id, _)| id != "summary" && id != "input").collect();
            Ok(format!("{} {typed:?} of {} {:?}", config.view.name, config.file.display(), config.second))
        }
        Err(Stop::Usage(text)) => Err(text),
        Err(Stop::Printed(text)) => Ok(text),
    }
}

#[test]
fn what_is_meant_is_done() {
    let mut wrong = Vec::new();
    for (typed, same) in MEANT {
        let expected = asked(same).unwrap_or_else(|why| panic!("{same}: {why}"));
        let got = asked(typed).unwrap_or_else(|why| panic!("{typed}: {why}"));
        if got != expected {
            wrong.push(format!("{typed} is not {same}:\n{got}\n{expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_not_is_refused_with_what_to_type() {
    for (typed, says) in REFUSED {
        let why = asked(typed).expect_err(typed);
        assert!(why.contains(says) && why.lines().count() == 1, "{typed}: '{says}' is not in: {why}");
        let useless = ["invalid digit", "to pass '", "unexpected argument"];
        assert!(!useless.iter().any(|text| why.contains(text)), "{typed}: {why}");
    }
}

#[test]
fn help_is_found_by_habit() {
    let kills = asked("kills --help");
    assert!(kills.as_ref().is_ok_and(|text| text.contains("--signal")), "{kills:?}");
    for same in ["help kills", "t.tape kills --help", "kills -h -f"] {
        assert_eq!(asked(same), kills, "{same}");
    }
}

#[test]
fn there_are_enough_of_them() {
    assert!(MEANT.len() + REFUSED.len() >= 180, "{}", MEANT.len() + REFUSED.len());
}

#[test]
fn words_that_are_no_text_change_nothing() {
    use std::os::unix::ffi::OsStringExt as _;
    let tape = std::ffi::OsString::from_vec(b"\xff.tape".to_vec());
    let asked = parse(["analyze".into(), "-f".into(), tape.clone()]).expect("a tape");
    assert_eq!(asked.args.words, [std::path::PathBuf::from(tape)]);
}
