//! What a line of the listing holds, as calls, other events and losses have it.

systape_format::tables! {
    /// One row a call. In CSV other events are rows too: `syscall` has the event's name, and what calls alone have is empty.
    pub CALLS = "calls" {
        ts_ns: Time key "when it began; the latest it can have been when `incomplete` is `began-before` or `lost-enter`"
        time: Word "the same as RFC 3339, UTC; null: the tape has no clock sample"
        time_uncertain_ns: Duration "how far apart the two times are that `time` may be; null: it is known"
        dur_ns ? AtLeast: Duration "how long it took; null: it has none (denied, exit), or its start was lost"
        cpu: Int "where it returned; null: not recorded"
        pid: Int "process"
        tid: Int key "thread"
        upid: Int "the process, unique in the tape: the kernel gives pids out again"
        utid: Int "the thread, unique in the tape"
        comm: Str [Comm] "name of the thread"
        uid: Int "real user; null: not known"
        cgroup: Str [Path] "path of its cgroup; null: not known"
        abi: Word "`x86_64`, `i386`, `x32`, `aarch64`, `unknown`"
        host: Str [Host] "name of the recorded machine; null: not known"
        syscall: Word key "its name; `sys_451` without one"
        args: Nested [String] "its arguments by name, see below; null: not recorded; CSV: as text with full names"
        ret: Int "return value, -1 with an errno; null: there was none, or the caller never saw it. A string for calls that return addresses (`mmap`, `brk`: hex) or offsets (`lseek`: decimal)"
        errno: Word "name of the error; null: none. Restarts (`ERESTARTSYS`, 512 …) have one with `ret` null: no error the program saw"
        errno_code: Int "its number; null: none"
        incomplete: Word "what of it was not seen: `in-flight`, `killed`, `no-return`, `began-before`, `lost-enter`, `clone-child` (only with `--clone-child`); null: nothing"
    }
    /// One row for each event that is no call (`-e sched:*`), in JSON.
    pub EVENTS = "events" {
        event: Word key "its name: `sched:sched_switch`"
        ts_ns: Time key "when it happened"
        time: Word "the same as RFC 3339, UTC; null: the tape has no clock sample"
        time_uncertain_ns: Duration "how far apart the two times are that `time` may be; null: it is known"
        cpu: Int "where it happened; null: not recorded"
        pid: Int "process of the task whose line it is; null with the next five: an interrupt"
        tid: Int key "the task"
        upid: Int "its process, unique in the tape"
        utid: Int "the task, unique in the tape"
        comm: Str [Comm] "its name"
        uid: Int "real user; null: not known"
        cgroup: Str [Path] "path of its cgroup; null: not known"
        host: Str [Host] "name of the recorded machine; null: not known"
        args: Nested [String] "fields of the event by name, see below; of tables of the tape their columns"
    }
    /// One row a loss, where it happened, in JSON.
    pub LOSSES = "losses" {
        lost: Count "events that are missing; of `unreadable` the most it can be; null: not known"
        family: Word "kind of event"
        cause: Word "`ring-full over-share state-failed skipped queue-full disk-error bad-record not-understood other-abi crowded unexplained hidden everyday damaged detail-damaged unreadable unknown` ([what they mean](../reading/losses.md#causes))"
        cpu: Int "where they were lost; null: on any"
        pid: Int "process whose events they were; null: of any"
        segment: Int "the damaged part of the tape; null: none is"
        why: Word "what is wrong with it; null: nothing"
        ts_ns: Time "since when; null: not known"
        until_ns: Time "until when; null: not known"
        ledger: Flag "a summary counts these calls"
    }
}
