//! How each report is asked for.

/// Ways to ask for each report of the registry; TAPE is the tape, OUT a file that does not exist, SOUND another tape.
pub const COMMANDS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "TAPE",
            "-y TAPE",
            "--sort end --clone-child TAPE",
            "-e all,sched:*,signal:*,block:*,sock:*,io_uring:*,process:* TAPE",
            "-e all,sched:*,signal:*,block:*,sock:*,io_uring:*,process:* --call-graph TAPE",
        ],
    ),
    (
        "--summary",
        &[
            "-s TAPE",
            "-s --cpu --errno-summary --summary-mode process TAPE",
            "-s --errno-summary --summary-mode cgroup TAPE",
            "-s --cpu --summary-mode total TAPE",
            "-s --by comm,file,errno,cpu TAPE",
            "-s --cpu --by uid,tid,cgroup TAPE",
        ],
    ),
    (
        "top",
        &[
            "top TAPE",
            "top --by dir,ext,peer,port --metric count --hist TAPE",
            "top --by pid --metric p99 TAPE",
            "top --by file,errno --top 3 TAPE",
        ],
    ),
    ("--summary -e FAMILY:EVENT", &["-s -e exceptions:* TAPE"]),
    ("why", &["why TAPE", "why --floor 0 TAPE"]),
    ("block", &["block TAPE"]),
    ("block --top", &["block --top TAPE", "block --top --by comm,tid,uid,cgroup,unit,cause,task TAPE"]),
    ("block --hist", &["block --hist TAPE", "block --hist --by op,comm TAPE"]),
    (
        "files",
        &[
            "files TAPE",
            "files --sockets --top 0 --by errno,file,tid,comm,uid,cgroup,syscall,cpu TAPE",
            "files --by pid TAPE",
        ],
    ),
    ("files --opens", &["files --opens TAPE", "files --slower 0ns --sockets TAPE"]),
    ("opensnoop", &["opensnoop TAPE"]),
    ("statsnoop", &["statsnoop TAPE"]),
    ("execsnoop", &["execsnoop TAPE", "execsnoop --fails TAPE"]),
    ("rate", &["rate TAPE", "rate --by file,errno --slices 7 TAPE"]),
    ("locks", &["locks TAPE", "locks --metric waits TAPE"]),
    ("path", &["path TAPE", "path -p 100 TAPE", "path -t 101 TAPE"]),
    ("path --sums", &["path --sums TAPE", "path --sums -p 200 TAPE"]),
    ("net", &["net TAPE"]),
    ("net --events", &["net --events TAPE"]),
    ("net --udp", &["net --udp TAPE"]),
    ("kills", &["kills --all TAPE"]),
    ("exec", &["exec TAPE"]),
    ("exec --tree", &["exec --tree --all TAPE"]),
    ("sched timehist", &["sched timehist TAPE"]),
    ("sched latency", &["sched latency TAPE", "sched latency --by process TAPE"]),
    ("runqlat", &["runqlat TAPE", "runqlat --by task TAPE", "runqlat --by cpu TAPE", "runqlat --by unit TAPE"]),
    ("offcpu", &["offcpu TAPE", "offcpu --by file,task,comm,unit,process,syscall,state TAPE"]),
    ("offcpu --wakers", &["offcpu --wakers 100 TAPE"]),
    ("states", &["states TAPE", "states --by cgroup,container,pod,job,user,process TAPE"]),
    ("states --at", &["states --at 0.0012 TAPE", "states --at 100% TAPE"]),
    ("states --at --call-graph", &["states --at 90% --call-graph TAPE"]),
    (
        "callgraph",
        &["callgraph TAPE", "callgraph --of syscall --metric bytes TAPE", "callgraph --of offcpu --callee TAPE"],
    ),
    ("diff", &["diff SOUND TAPE", "diff --by comm,file,errno SOUND TAPE"]),
    ("info", &["info TAPE"]),
    ("list", &["list TAPE"]),
    ("tables", &["tables -i TAPE"]),
    ("tables TABLE", &["tables calls -i TAPE", "tables --of exec -i TAPE"]),
    ("a file", &["check TAPE", "repair TAPE OUT", "redact TAPE OUT"]),
];

/// The words that begin the name of a report that is about a file.
pub const OF_FILES: [&str; 3] = ["check", "repair", "redact"];
