//! The tables whose rows are events as the tape has them, and what is known of them. Tables that reports make are
//! declared in the reports.

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
    /// One row for each switch of a CPU from one thread to another (sched:sched_switch).
    pub SCHED = "sched" {
        ts_ns: Time "when"
        cpu: Int "where"
        prev.pid: Int "process of the thread that ran until then; 0: idle"
        prev.tid: Int "that thread"
        prev.upid: Int "its process, unique in the tape; null: not known"
        prev.utid: Int "the thread, unique in the tape; null: not known"
        prev.comm: Str [Comm] "its name"
        prev_state: Word "its state from here on, as ps(1) writes it: R (it still wants to run), S, D, T, t, X, Z, P, I; F if the freezer of its cgroup holds it"
        preempted: Flag "it had to make room for another"
        next.pid: Int "process of the thread that runs from then on; 0: idle"
        next.tid: Int "that thread"
        next.upid: Int "its process, unique in the tape; null: not known"
        next.utid: Int "the thread, unique in the tape; null: not known"
        next.comm: Str [Comm] "its name"
    }
    /// One row for each time a thread was made runnable (sched:sched_waking, sched:sched_wakeup_new).
    pub WAKEUPS = "wakeups" {
        ts_ns: Time "when"
        cpu: Int "where the waker ran"
        waker.pid: Int "process of the waker; null with the next four: an interrupt"
        waker.tid: Int "the waker"
        waker.upid: Int "its process, unique in the tape"
        waker.utid: Int "the waker, unique in the tape"
        waker.comm: Str [Comm] "its name"
        wakee.pid: Int "process of the thread that was woken"
        wakee.tid: Int "that thread"
        wakee.upid: Int "its process, unique in the tape; null: not known"
        wakee.utid: Int "the thread, unique in the tape; null: not known"
        wakee.comm: Str [Comm] "its name"
        target_cpu: Int "the CPU it ran on last; of a new thread where it is queued"
        new: Flag "a new thread's first"
        softirq: Flag "the kernel delivered a packet that the waker had just sent on this machine"
    }
    /// One row for each signal that was sent or taken, and each victim of the OOM killer, as the kernel says it. `kills` has what came of those that matter.
    pub SIGNALS = "signals" {
        ts_ns: Time "when"
        event: Word "`generate`, `deliver`, `oom-victim`"
        signal: Int "its number; null: of an OOM victim"
        signal_name: Word "its name; null: likewise"
        code: Int "the kernel's si_code"
        result: Int "of generate: 0 delivered, 1 ignored, 2 already pending, 3 and 4 lost in part; null: of others"
        to_group: Flag "sent to the process, not to a thread"
        sender.pid: Int "process that ran; null with the next four: not known, or of deliver"
        sender.tid: Int "the thread that ran"
        sender.upid: Int "its process, unique in the tape"
        sender.utid: Int "the thread, unique in the tape"
        sender.comm: Str [Comm] "its name"
        target.pid: Int "process of the target"
        target.tid: Int "the target"
        target.upid: Int "its process, unique in the tape; null: not known"
        target.utid: Int "the thread, unique in the tape; null: not known"
        target.comm: Str [Comm] "its name"
    }
    /// One row for each event of process life: fork, exec, exit, a new name, user or cgroup.
    pub LIFE = "process_events" {
        ts_ns: Time "when"
        event: Word "`fork`, `exec`, `exit`, `rename`, `cred`, `cgroup`, `target` (record took it as a target, or ceased to)"
        pid: Int "process; of fork the new one"
        tid: Int "thread; of fork the new one"
        upid: Int "the process, unique in the tape; null: not known"
        utid: Int "the thread, unique in the tape; null: not known"
        comm: Str [Comm] "name of the thread"
        uid: Int "real user; null: not known"
        parent.pid: Int "of fork: process that forked; null: of others"
        parent.tid: Int "of fork: thread that forked; null: of others"
        thread: Flag "of fork: a thread of the same process; null: of others"
        exit_code: Int "of exit: exit status; null: a signal ended it, or of others"
        exit_signal: Int "of exit: the signal that ended it; null: none, or of others"
        group_dead: Flag "of exit: the last thread of its process; null: of others"
        path: Str [Path] "of exec: path of the program; null: of others"
    }
    /// One row for each change of a TCP socket's state (sock:inet_sock_set_state).
    pub SOCKETS = "socket_states" {
        ts_ns: Time "when"
        socket: Int "the socket, unique in the tape"
        old_state: Word "its state before"
        new_state: Word "its state after"
        protocol: Word "`TCP` …"
        local: Str [Address] "address of this end; null: none yet"
        local_port: Int "port of this end; null: none yet"
        remote: Str [Address] "address of the other end; null: none yet"
        remote_port: Int "port of the other end"
        pid: Int "process that ran; null with the next four: an interrupt"
        tid: Int "thread that ran"
        upid: Int "its process, unique in the tape"
        utid: Int "the thread, unique in the tape"
        comm: Str [Comm] "its name"
    }
    /// One row for each operation that was submitted to io_uring: I/O that is no call.
    pub URING = "io_uring" {
        ts_ns: Time "when"
        op: Word "the operation: `READ`"
        pid: Int "process that submitted it"
        tid: Int "thread"
        upid: Int "the process, unique in the tape; null: not known"
        utid: Int "the thread, unique in the tape; null: not known"
        comm: Str [Comm] "its name"
    }
    /// One row for each CPU sample.
    pub SAMPLES = "samples" {
        ts_ns: Time "when"
        cpu: Int "where"
        pid: Int "process that ran; 0: idle"
        tid: Int "thread that ran"
        upid: Int "its process, unique in the tape; null: not known"
        utid: Int "the thread, unique in the tape; null: not known"
        comm: Str [Comm] "its name"
        mode: Word "`kernel`, `user`"
        stack: Int "its stack in table stacks; null: none was stored"
    }
    /// One row for each frame of each distinct stack of a segment, the innermost first: `JOIN stacks ON stacks.stack = samples.stack`.
    pub STACKS = "stacks" {
        stack: Int "the stack, unique in the tape"
        depth: Int "0: the innermost frame, the kernel's before the program's"
        kernel: Flag "it is the kernel's"
        module: Str [Path] "file, kernel or module it is in; null: not known"
        build_id: Word "build id of that, in hexadecimal digits; null: none"
        offset: Hex "place in it, see docs/tape-format.md"
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
