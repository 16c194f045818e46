//! The tables of calls, of what was counted or is missing, and of tasks and stacks. Those of other events are declared in the catalogue
//! ([`systape_answers::catalogue`]), those that reports make in the reports.

systape_format::tables! {
    /// One row a call that the tape stores, as the listing has it. `ledger` has the sums of those that were only counted, `gaps` says what is missing.
    pub SYSCALLS = "syscalls" {
        ts_ns: Time "when it began; the latest it can have been when `incomplete` is `began-before` or `lost-enter`; null: that part of the tape is damaged"
        dur_ns ? AtLeast: Duration "how long it took; null: it has none (denied, exit), or its start was lost"
        cpu: Int "where it returned; null: not recorded"
        pid: Int "process"
        tid: Int "thread"
        upid: Int "the process, unique in the tape: the kernel gives pids out again"
        utid: Int "the thread, unique in the tape"
        comm: Str [Comm] "name of the thread"
        exe: Str [Path] "executable of the process; null: not known"
        uid: Int "real user; null: not known"
        cgroup: Str [Path] "path of its cgroup; null: not known"
        abi: Word "`x86_64`, `i386`, `x32`, `aarch64`, `unknown`"
        syscall: Word "its name; `sys_451` without one"
        args: Nested [String] "its arguments by name, each as text: a string as it is, flags by name, a descriptor as its number, what has no short text as the JSON of the listing; null: not recorded. A NULL argument is a null pointer"
        file: Str [Path] "the file behind its first descriptor; null: it has none, or it is not known"
        file2: Str [Path] "the file behind its second descriptor; of a call that opens or removes one, that file as the kernel names it; null: likewise"
        ret: Int "return value, -1 with an errno; null: there was none, or the caller never saw it"
        errno: Word "name of the error; null: none. Restarts (`ERESTARTSYS`, 512 …) have one with `ret` null: no error the program saw"
        errno_code: Int "its number; null: none"
        failed: Flag "it returned an error to its caller"
        incomplete: Word "what of it was not seen: `in-flight`, `killed`, `no-return`, `began-before`, `lost-enter`; null: nothing"
    }
    /// One row for each sum of calls that were counted instead of stored: of one process, call, outcome and CPU in one second.
    pub LEDGER = "ledger" {
        ts_ns: Time "end of the earliest"
        until_ns: Time "end of the latest"
        reason: Word "`lost`, `over-share`, `behind`: no room; `filtered`: as an option of record asked; `checked`: they are stored too, never add these"
        calls: Count "how many; never 0"
        sum_ns: Duration "sum of their durations; null: they have none (denied, exit), or their start was lost"
        min_ns: Duration "the shortest; null: likewise"
        max_ns: Duration "the longest; null: likewise"
        exact: Flag "the durations are whole; false: they are lower bounds, or have no meaning"
        failed: Flag "they returned an error to their callers"
        cpu: Int "where they ended"
        pid: Int "process; null: not known"
        upid: Int "the process, unique in the tape; null: not known"
        comm: Str [Comm] "name of its first thread then; null: not known"
        uid: Int "real user; null: not known"
        cgroup: Str [Path] "path of its cgroup; null: not known"
        abi: Word "as in syscalls"
        syscall: Word "name of the call"
        errno: Word "name of the error; null: none, or any"
        errno_code: Int "its number; null: none, or any"
        incomplete: Word "as in syscalls"
    }
    /// One row for each loss, for each lot of events that were left out on purpose, and for each part of the tape that cannot be read.
    pub GAPS = "gaps" {
        ts_ns: Time "of the first event; null: not known"
        until_ns: Time "of the last event; null: not known"
        family: Word "kind of event: `syscall`, `sched`, …; `unknown`: may be any"
        cause: Word "why, in a word: `ring-full`, `filtered`, …; `unreadable`: damage; `cut`: the recording ended abnormally"
        about: Word "why, in a sentence"
        events: Count "how many; null: not known"
        is_loss: Flag "events are missing from the tables; false: nothing is missing, or it was left out by request"
        in_ledger: Flag "table ledger has the calls"
        cpu: Int "where; null: not tied to one"
        pid: Int "process; null: any"
    }
    /// One row for each frame of each distinct stack of a segment, the innermost first: `JOIN stacks ON stacks.stack = samples.stack`.
    pub STACKS = "stacks" {
        stack: Int "the stack, unique in the tape"
        depth: Int "0: the innermost frame, the kernel's before the program's"
        kernel: Flag "it is the kernel's"
        module: Str [Path] "file, kernel or module it is in; null: not known"
        build_id: Word "build id of that, in hexadecimal digits; null: none"
        offset: Hex "place in it, see docs/reference/tape-format.md"
        function: Str "function there, the innermost inlined one; null: the tape has no name"
        complete: Flag "the whole stack was recorded"
    }
    /// One row for each thread that an event or a checkpoint mentions, as it was last known.
    pub THREADS = "threads" {
        utid: Int "the thread, unique in the tape"
        upid: Int "its process, unique in the tape"
        pid: Int "process"
        tid: Int "thread"
        ns_pid: Int "the process in its own pid namespace; null: not known"
        ns_tid: Int "the thread in its own pid namespace; null: not known"
        ppid: Int "parent of the process; null: none, or not known"
        comm: Str [Comm] "its last name"
        exe: Str [Path] "last executable of the process; null: not known"
        uid: Int "last real user; null: not known"
        cgroup: Str [Path] "path of its last cgroup; null: not known"
        leader: Flag "it is the first thread of its process"
    }
    /// One row for each process that an event or a checkpoint mentions, as it was last known: by its first thread, or another if that is on no tape.
    pub PROCESSES = "processes" {
        upid: Int "the process, unique in the tape"
        pid: Int "process"
        ns_pid: Int "the process in its own pid namespace; null: not known"
        ppid: Int "its parent; null: none, or not known"
        comm: Str [Comm] "last name of its first thread"
        exe: Str [Path] "its last executable; null: not known"
        uid: Int "last real user; null: not known"
        cgroup: Str [Path] "path of its last cgroup; null: not known"
        threads: Count "threads of it that are in table threads"
    }
}
