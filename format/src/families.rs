//! The list of families, and of the tables that newer ones record into. A family's number, name and events are defined
//! here and nowhere else.

use crate::table::TableDef;
use crate::tables::MAX_TABLES;

macro_rules! families {
    ($($family:ident = $raw:literal, $name:literal;)*) => {
        /// Kinds of event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "the names say it")]
        pub enum Family {
            $($family = $raw,)*
        }

        impl Family {
            /// Every family.
            pub const ALL: &[Self] = &[$(Self::$family),*];

            /// Name of the family in both programs.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$family => $name,)*
                }
            }
        }
    };
}

families! {
    Unknown = 0, "unknown";
    Syscall = 1, "syscall";
    Process = 2, "process";
    State = 3, "state";
    Sched = 4, "sched";
    Block = 5, "block";
    Signal = 6, "signal";
    Net = 7, "net";
    Sample = 8, "sample";
    Stack = 9, "stack";
    IoUring = 10, "io_uring";
    Fault = 11, "fault";
    Tracepoint = 12, "tracepoint";
    Lock = 13, "lock";
    Look = 14, "look";
}

/// A table that a family of this version records into.
#[derive(Debug)]
pub struct Recorded {
    /// The family whose losses make its rows "at least".
    pub family: Family,
    /// Definition of the table. A column `cpu` is the event's CPU; the first column of type task is the thread of its line.
    pub def: &'static TableDef,
}

/// All of them.
pub const RECORDED: &[Recorded] = &[
    Recorded { family: Family::Fault, def: &PAGE_FAULT_USER },
    Recorded { family: Family::Lock, def: &LOCK_CONTENTION },
    Recorded { family: Family::Look, def: &LOOK_STAY },
];

crate::tables! {
    /// An operation of io_uring is over. Kernels before 5.19 do not say how operations ended: those of 5.16 to 5.18 have rows without file and result, older ones none.
    pub IO_URING_COMPLETE = "io_uring:complete" {
        ts: Time "when the program was told of it; of one whose end was not seen, when that was noticed"
        task: Task "who submitted it; of one that was submitted unseen, who was told"
        dur: Duration "since it was submitted; not known: that, or its end, was not seen"
        op: Str "what it does: READV, SEND, OPENAT; unknown: one of several results (a multishot operation)"
        fd: Int "the descriptor, or its number in the ring's own table; not known: it has none, or was submitted unseen"
        file: Str [Path] "what that is; of an open what was opened; unknown: it is none, or was submitted unseen"
        offset: Wide "where in the file; not known: where it stands, or it is no read or write"
        asked: Wide "bytes to read or write, of READV and WRITEV the number of vectors"
        result: Wide "what it returned, as a rule bytes; not known: it failed, or its end was not seen"
        error: Int "number of the error; 0: none; not known: its end was not seen"
        unread: Unread "which of the numbers are not known"
    }
    /// An operation of io_uring made a descriptor of a process, or closes one. A tape without this table does not have what such operations did.
    pub IO_URING_DESCRIPTOR = "io_uring:descriptor" {
        ts: Time "since when it is so; of a CLOSE when that was submitted"
        task: Task "who did it"
        fd: Int "the descriptor"
        op: Str "what did it: OPENAT (OPENAT2 too), ACCEPT, SOCKET, CLOSE; unknown: one of several results of an operation, FIXED_FD_INSTALL, a CLOSE that is over"
        open: Flag "it is open"
        file: Str [Path] "what it is; unknown: it is not open, or has no name"
        cloexec: Flag "exec closes it"
    }
    /// An operation of io_submit is over: the program was told by io_getevents. Who reads the ring of results itself is told unseen.
    pub AIO_COMPLETE = "aio:complete" {
        ts: Time "when the program was told of it, which may be long after its end; of one whose end was not seen, when that was noticed"
        task: Task "who submitted it; of one that was submitted unseen, who was told"
        dur: Duration "since it was submitted; not known: that, or its end, was not seen"
        op: Str "what it does: PREAD, PWRITE, PREADV, PWRITEV, FSYNC, FDSYNC, POLL; unknown: it was submitted unseen"
        fd: Int "the descriptor; not known: it has none, or was submitted unseen"
        file: Str [Path] "what that is; unknown: it is none, or was submitted unseen"
        offset: Wide "where in the file; not known: where it stands, or it is no read or write"
        asked: Wide "bytes to read or write, of PREADV and PWRITEV the number of vectors"
        result: Wide "what it returned, as a rule bytes; not known: it failed, or its end was not seen"
        error: Int "number of the error; 0: none; not known: its end was not seen"
        unread: Unread "which of the numbers are not known"
    }
}

crate::tables! {
    /// A program touched memory without a page, or without one for that access.
    pub PAGE_FAULT_USER = "exceptions:page_fault_user" {
        ts: Time "when"
        task: Task "whose"
        cpu: Int "where"
        address: Hex "what was touched"
        error_code: Hex "the CPU's reason, of x86 bits: 0x1 the page was there and protected, 0x2 a write, 0x4 by user code, 0x10 an instruction fetch"
        memory: Str [Path] "what is mapped there: a file, by its path, or [heap], [stack] of the first thread, [special] (vdso, vvar), other [anon], [none] (the stack grows to it, or a signal follows); unknown: the mappings were locked, or a kernel before 5.17"
        offset: Wide "which byte of the file; not known without a file"
        unread: Unread "which of the numbers are not known"
        stack: Stack "the functions that touched it"
    }
    /// A page fault that waited for storage is over: the page is there. Also of the kernel when it read or wrote the program's memory in a call.
    pub FAULT_MAJOR = "fault:major" {
        ts: Time "the end"
        task: Task "whose"
        cpu: Int "where it ended"
        dur: Duration "since it began, with the wait for storage; not known: the beginning was not seen"
        address: Hex "what was touched"
        access: Str "read, write or exec; unknown: the beginning was not seen"
        by: Str "program: it touched the memory itself; kernel: in a call"
        memory: Str [Path] "what is mapped there, as in exceptions:page_fault_user"
        offset: Wide "which byte of the file; not known without a file"
        unread: Unread "which of the numbers are not known"
        stack: Stack "the functions that touched it, the kernel's first"
    }
}

crate::tables! {
    /// A wait for a lock of the kernel is over. Locks that were free at once have none.
    pub LOCK_CONTENTION = "lock:contention" {
        ts: Time "the end: the lock was taken, or the wait given up"
        task: Task "who waited; an interrupt's wait is that of the task it came to"
        cpu: Int "where it ended"
        dur: Duration "how long it waited"
        kind: Str "spinlock, rwlock, rwsem, mutex, rtmutex, percpu-rwsem; :R for reading, :W for writing"
        lock: Hex "the lock's address"
        name: Str "the kernel's variable that it is, or is in; [mmap_lock], [siglock]: of the task's own process; unknown: another"
        error: Int "0: it was taken; else the number of the error: 4 (EINTR) a signal came"
        unread: Unread "which of the numbers are not known"
        stack: Stack "the kernel's functions that waited"
    }
    /// Of a wait for a lock only one end was seen: it began before the recording or ended after it, or a record was lost.
    pub LOCK_UNPAIRED = "lock:unpaired" {
        ts: Time "when this was noticed: of an end, the end itself"
        task: Task "who waited"
        cpu: Int "where that end was seen"
        seen: Str "begin or end"
        ago: Duration "time since that"
        kind: Str "as in lock:contention; unknown: its beginning was not seen"
        lock: Hex "the lock's address"
        name: Str "as in lock:contention"
    }
}

crate::tables! {
    /// A socket got an address or another end, or had one when the recording began: then its name is without its number.
    pub SOCKET_NAME = "socket:name" {
        ts: Time "since when: the end of the call that did it, or the beginning of the recording"
        task: Task "whose call; none: it had the name at the beginning"
        inode: Int "number of the socket, as in socket:[17]: its own while it exists"
        socket: Wide "its number in sock:inet_sock_set_state; 0: no change of it is on the tape"
        protocol: Str "first word of the name: TCP of TCP:[local->remote]"
        local: Str [Address] "address and port it is bound to; of netlink its protocol and port"
        remote: Str [Address] "address and port it is connected to; unknown: none"
        namespace: Int "number of its network namespace, as in net:[17] of /proc/PID/ns; 0: that of process 1, or not known. Then the name ends with it: TCP:[local->remote]@namespace"
    }
}

crate::tables! {
    /// A file that block I/Os read or write, once in each part of the tape that has such I/Os.
    pub BLOCK_FILE = "block:file" {
        ts: Time "end of the first of them"
        file: Int "its number in block I/Os; a file that is renamed gets another"
        device: Int "its file system's number, major << 20 | minor"
        inode: Int "its inode there"
        path: Str [Path] "its name, with the place where the recorder sees the file system; without such a place the device's numbers are in front: 8:16:/a; unknown: it has no name any more"
        links: Count "names it has; with more than one, another may be meant; 0: not known"
    }
}

crate::tables! {
    /// Which file a name stands for: of what calls opened or had open, of directories that processes went to, of programs that were executed. At least once in each part of the tape with such a name.
    pub FILE_IDENTITY = "file:identity" {
        ts: Time "when this was stored"
        ago: Duration "time since the file was seen under the name"
        device: Int "its file system's number, major << 20 | minor: as block I/Os and page cache have it, which on btrfs is not what stat(2) says"
        inode: Int "its inode there"
        generation: Int "changes when the inode's number is used for another file; 0: the file system has none"
        path: Str [Path] "the name, as in the call; of a program what exec was given"
        fstype: Str "name of the file system's type: ext4"
        device_backed: Flag "the file system is on a block device"
        mode: Int "its type and rights, as st_mode"
        links: Count "names it has"
    }
}

crate::tables! {
    /// A block device that came during the recording, soon after its first I/O: a row for each device that is right below it, or one without. Once in each part of the tape that has its I/Os.
    pub BLOCK_DEVICE = "block:device" {
        ts: Time "when this was stored"
        device: Int "its number, major << 20 | minor"
        name: Str "its name, as in /sys/block"
        disk: Int "of a partition the disk; 0: it is none"
        first_sector: Wide "of a partition its place on the disk"
        below: Int "a device that it is made of, or that holds the file of a loop device; 0: none"
        known: Flag "whether all that is below it is known: it was still there when it was read"
    }
}

crate::tables! {
    /// A block I/O wrote what a task had dirtied under another name than it had when the I/O ended.
    pub BLOCK_DIRTIER = "block:dirtier" {
        ts: Time "end of the I/O"
        task: Task "who dirtied the file: the owner of the I/O"
        device: Int "the device of the I/O, major << 20 | minor"
        sector: Wide "its first sector"
        comm: Str [Comm] "the name of that thread when it dirtied the file"
    }
}

crate::tables! {
    /// A process ended: what it used until then, as `time -v` shows it, without its children if not said otherwise. What the kernel does not count has no column.
    pub PROCESS_USAGE = "process:usage" {
        ts: Time "end of its last thread"
        task: Task "that thread"
        maxrss: Bytes "most memory that it had at once, of this program or one before exec; shared pages too"
        minor_faults: Count "page faults without I/O"
        major_faults: Count "page faults that read from storage"
        user_ns: Duration "CPU time of its own code: the run time, divided by the kernel's ticks. Lacks up to a tick (1 to 10 ms)"
        system_ns: Duration "CPU time of the kernel for it; with user_ns the run time until this event"
        voluntary_switches: Count "how often its threads gave up a CPU to wait; without the last of all"
        involuntary_switches: Count "how often they were preempted, without those while its memory was freed"
        rchar: Wide "bytes that read and its kin returned, of files, pipes, sockets; this and the next six, as in /proc/PID/io, with children that it waited for"
        wchar: Wide "bytes that write and its kin took"
        read_calls: Count "such reads"
        write_calls: Count "such writes"
        read_bytes: Wide "bytes that storage read for it"
        write_bytes: Wide "bytes that storage wrote for it, or shall: of pages that it dirtied"
        cancelled_bytes: Wide "of these, bytes that were truncated before they were written"
        in_blocks: Wide "units of 512 bytes read, as ru_inblock: each thread's rounded down"
        out_blocks: Wide "units of 512 bytes written, as ru_oublock"
        uncounted: Count "threads that ended at the same moment and are missing in the sums; 0: the sums are whole"
    }
    /// A thread of a process that has or had several ended: what it used itself. What the kernel does not count has no column.
    pub PROCESS_THREAD = "process:thread" {
        ts: Time "its end"
        task: Task "which"
        minor_faults: Count "page faults without I/O"
        major_faults: Count "page faults that read from storage"
        user_ns: Duration "CPU time of its own code: the run time, divided by the kernel's ticks. Lacks up to a tick (1 to 10 ms)"
        system_ns: Duration "CPU time of the kernel for it; with user_ns the run time until this event"
        voluntary_switches: Count "how often it gave up a CPU to wait; without the last of all"
        involuntary_switches: Count "how often it was preempted until then"
        rchar: Wide "bytes that read and its kin returned, of files, pipes, sockets; this and the next six, as in /proc/PID/task/TID/io"
        wchar: Wide "bytes that write and its kin took"
        read_calls: Count "such reads"
        write_calls: Count "such writes"
        read_bytes: Wide "bytes that storage read for it"
        write_bytes: Wide "bytes that storage wrote for it, or shall: of pages that it dirtied"
        cancelled_bytes: Wide "of these, bytes that were truncated before they were written"
    }
    /// What a living process has in memory: one row each when the recording begins, at each checkpoint and at the end.
    pub PROCESS_MEMORY = "process:memory" {
        ts: Time "when it was looked at"
        task: Task "a thread of the process, the first if that lives"
        rss: Bytes "resident: the sum of the next three. Since Linux 6.2 each may be off by as many pages as a batch (32, or twice the CPUs) on each CPU"
        anonymous: Bytes "of no file: heap, stacks"
        file: Bytes "of files"
        shared: Bytes "shared memory and tmpfs"
        swapped: Bytes "swapped out"
    }
}

crate::tables! {
    /// An exec failed as it does without an interpreter: what the program asked for when its file was read, soon after. Without a row the file was not there itself, or could not be read.
    pub EXEC_INTERPRETER = "exec:interpreter" {
        ts: Time "when this was stored"
        task: Task "who called exec"
        ago: Duration "time since the call's end"
        read: Duration "from the call's end until the file was read"
        kind: Str "what asks: script (it begins with #!), elf (a program of this machine), other-elf, other"
        file: Str [Path] "the file that asks: the program, as the call had it, or the interpreter of a script"
        interpreter: Str [Path] "what it asks for: the name behind #!, or the loader of an ELF file; unknown: nothing"
        error: Int "why that could not be opened when it was tried: 2 (ENOENT), 20 (ENOTDIR), 40 (ELOOP); 0: it could be, or nothing is asked for"
    }
}

crate::tables! {
    /// A limit of a cgroup, or what came of it: read when the recording begins, when a process comes into the cgroup, at each checkpoint and at the end. Of cgroups that have one.
    pub CGROUP_LIMIT = "cgroup:limit" {
        ts: Time "when it was read"
        controller: Str "what is limited: cpu, memory, io"
        cgroup: Str [Path] "its path from the top of its hierarchy"
        name: Str "which limit, or count of what came of it: see docs/reference/tape-format.md"
        device: Wide "number of the device that a limit of I/O is about, major << 20 | minor; 0: none"
        value: Wide "its value. Counts are since the cgroup was made"
    }
    /// The cgroup of v1 that limits a process: of those with a limit when the recording begins, at each checkpoint, when the process began, and when it was moved. The cgroup of v2 is known of each task.
    pub CGROUP_MEMBER = "cgroup:member" {
        ts: Time "since when, or when it was looked at"
        task: Task "a thread of the process, as a rule the first"
        controller: Str "what is limited: cpu, memory, io"
        cgroup: Str [Path] "its path from the top of its hierarchy"
    }
}

crate::tables! {
    /// A segment came to a TCP connection by which something begins or ends for the program that has it; others have no row.
    pub SOCKET_SEGMENT = "socket:segment" {
        ts: Time "when the kernel gave it to the socket: while a call holds that, when the call lets it go"
        socket: Wide "the connection's number in sock:inet_sock_set_state"
        begins: Flag "its bytes are the next, all before them were read, and nothing has come since something was sent"
        acks: Flag "it acknowledges all that was written"
        frees: Flag "it acknowledges a part, and what is left to send, one segment at most, was held back until now"
    }
}

crate::tables! {
    /// What the kernel has counted of a TCP connection, as ss -i prints it: since it began, also if that was before the recording. A kernel without one of these counts has no rows.
    pub SOCKET_TCP = "socket:tcp" {
        ts: Time "when it was read"
        task: Task "who had it open then, the first of several; none: it was closed"
        at: Str "close: it was closed; start, stop: it was open when the recording began, ended"
        socket: Wide "its number in sock:inet_sock_set_state"
        inode: Int "number of the socket, as in socket:[17]; 0: not known, or no program ever had it open"
        state: Str "its state then; of a closed one the last before"
        local: Str [Address] "address and port of this end; unknown: it had none any more"
        remote: Str [Address] "address and port of the other end; unknown: likewise"
        bytes_sent: Bytes "data sent, with what was sent again"
        bytes_retrans: Bytes "of these, what was sent again"
        bytes_acked: Bytes "what the other end has confirmed; SYN and FIN of this end count as one each"
        bytes_received: Bytes "data received; the other end's FIN counts as one"
        segs_out: Count "segments sent"
        segs_in: Count "segments received"
        data_segs_out: Count "of those sent, the ones with data"
        data_segs_in: Count "of those received, the ones with data"
        retrans: Count "segments sent again"
        srtt: Duration "smoothed round-trip time; 0: none was measured"
        rttvar: Duration "how much it varies"
        min_rtt: Duration "the shortest of late; 0: none was measured"
        cwnd: Count "congestion window, segments"
        mss: Bytes "data in a full segment"
        fin: Flag "the other end's FIN came"
    }
    /// A segment of a connection was sent again.
    pub SOCKET_RETRANSMIT = "socket:retransmit" {
        ts: Time "when"
        task: Task "who ran then, hardly ever the socket's owner; none: an interrupt"
        cpu: Int "where"
        socket: Wide "its number in sock:inet_sock_set_state; 0: no change of it is on the tape"
        inode: Int "number of the socket, as in socket:[17]; 0: no program has it open"
        state: Str "its state"
        local: Str [Address] "address and port of this end"
        remote: Str [Address] "address and port of the other end"
    }
    /// A socket got an error that a program is told of by its next call.
    pub SOCKET_ERROR = "socket:error" {
        ts: Time "when"
        task: Task "who ran then, hardly ever the socket's owner; none: an interrupt"
        cpu: Int "where"
        socket: Wide "its number in sock:inet_sock_set_state; 0: no change of it is on the tape"
        inode: Int "number of the socket, as in socket:[17]; 0: no program has it open"
        state: Str "its state"
        local: Str [Address] "address and port of this end; unknown: none any more"
        remote: Str [Address] "address and port of the other end; unknown: none, or none any more"
        protocol: Int "of IP: 6 TCP, 17 UDP"
        error: Int "number of the error; 0: it was fetched already"
    }
}

crate::tables! {
    /// A trigger of `record --on`, or a request, fired while this tape was written or before it was begun for it.
    pub RECORD_TRIGGER = "record:trigger" {
        ts: Time "when the event happened"
        task: Task "whose event; none: nobody's, or not known"
        trigger: Str [Command] "the trigger as --on has it; request: by signal or by `record trigger`"
        what: Str "what happened, in words and with its values"
        name: Str [Command] "name that `record trigger` gave; unknown: none"
        value: Wide "the measured value: ns of a time, a number of events, of a signal, an exit status"
        began: Flag "the tape was begun for it"
        events: Count "events that this row stands for: above 1 in the last row of a trigger that fired too often to be listed"
        suppressed: Count "of them those that fired between tapes, during the cooldown: they are in no tape's time"
    }
}

crate::tables! {
    /// Looks (record --sample) found a thread in one state, in one call, and it left no CPU in between: a stay, or a part of a long one. What no look fell into has no row.
    pub LOOK_STAY = "look:stay" {
        ts: Time "when it was stored: at the look that found it over, or while it goes on, some seconds after the row before"
        task: Task "which thread"
        state: Str "letter of ps: D, S in a call that is not known to wait for work, R when it waits for a CPU"
        call: Str "the call that it was in; unknown: in none (a page fault, a thread of the kernel), or not read (state R)"
        abi: Str "of that call: x86_64, i386, x32, aarch64; unknown: likewise"
        first: Flag "the first row of this stay: else it goes on from a row before"
        looks: Count "looks that found it so, without those of rows before"
        interval: Duration "time between two looks then: looks times interval estimates the time"
        seen: Duration "from the first of these looks to the last: all that time it was so"
        ago: Duration "from the last of them until ts"
        since: Duration "how long it had been so at the first of them, rounded down by at most 0.8 %; not known: another class of the scheduler than the fair one"
        look: Wide "number of the first of these looks, counted from the start of the recording"
        file: Str [Path] "what the call's descriptor stands for; unknown: it has none, or it could not be read before the stay was over"
        path: Str [Path] "the path that the call was given; unknown: likewise"
        lock: Hex "address of the futex that it waits for; not known: it waits for none"
        owner: Int "thread that holds it, as glibc notes it there, in the thread's pid namespace; not known: it is not noted"
        arg0: Hex "arguments of the call, as the registers had them; not known without a call"
        arg1: Hex "the second"
        arg2: Hex "the third"
        arg3: Hex "the fourth"
        arg4: Hex "the fifth"
        arg5: Hex "the sixth"
        read: Flag "what it waits for was read during this stay; else file, path, owner and stack are unknown"
        connected: Flag "of a TCP socket: it connected itself, so that who reads it waits for an answer; else it was accepted (or bound before). Not known: no TCP"
        unread: Unread "which of the numbers are not known"
        stack: Stack "functions of the kernel that it waits in"
    }
    /// Looks of some seconds, ten as a rule.
    pub LOOK_SECOND = "look:second" {
        ts: Time "the last of them"
        look: Wide "number of the first"
        looks: Count "how many"
        interval: Duration "time between two, as long as record means to keep it: it grows with their cost"
        span: Duration "from the beginning of the first one's interval to the end of the last one's"
        skipped: Count "intervals without a look: record had no CPU in time"
        threads: Count "threads walked, of all looks together; likewise below"
        noted: Count "threads found in a state that is stored"
        displaced: Count "threads found ready to run on the CPU that the look itself had: not stored, they would have run"
        stopped: Count "threads found stopped, traced or frozen"
        over: Count "threads that would have been stored, and had no room in the look"
        uncopied: Count "stays of which it could not be read what they wait for, as they were over"
        cost: Duration "CPU time that record spent on these looks"
    }
    /// Threads that looks of some seconds found in a call that waits for work (poll, epoll_wait, nanosleep, a futex that is no contended lock): they have no stay.
    pub LOOK_IDLE = "look:idle" {
        ts: Time "the last of these looks"
        call: Str "which call"
        threads: Count "threads in it, of all looks together"
        looks: Count "how many looks"
        interval: Duration "time between two"
    }
}

/// Tables that the recorder makes of what it knows, with the family whose losses rows may be missing by.
pub const OWN: &[Recorded] = &[
    Recorded { family: Family::Syscall, def: &SOCKET_NAME },
    Recorded { family: Family::Syscall, def: &FILE_IDENTITY },
    Recorded { family: Family::Block, def: &BLOCK_FILE },
    Recorded { family: Family::Block, def: &BLOCK_DEVICE },
    Recorded { family: Family::Block, def: &BLOCK_DIRTIER },
    Recorded { family: Family::Process, def: &PROCESS_USAGE },
    Recorded { family: Family::Process, def: &PROCESS_THREAD },
    Recorded { family: Family::Process, def: &PROCESS_MEMORY },
    Recorded { family: Family::Syscall, def: &EXEC_INTERPRETER },
    Recorded { family: Family::Process, def: &CGROUP_LIMIT },
    Recorded { family: Family::Process, def: &CGROUP_MEMBER },
    Recorded { family: Family::Process, def: &RECORD_TRIGGER },
    Recorded { family: Family::Net, def: &SOCKET_TCP },
    Recorded { family: Family::Net, def: &SOCKET_SEGMENT },
    Recorded { family: Family::Net, def: &SOCKET_RETRANSMIT },
    Recorded { family: Family::Net, def: &SOCKET_ERROR },
    Recorded { family: Family::Fault, def: &FAULT_MAJOR },
    Recorded { family: Family::Lock, def: &LOCK_UNPAIRED },
    Recorded { family: Family::Look, def: &LOOK_SECOND },
    Recorded { family: Family::Look, def: &LOOK_IDLE },
    Recorded { family: Family::IoUring, def: &IO_URING_COMPLETE },
    Recorded { family: Family::IoUring, def: &AIO_COMPLETE },
    Recorded { family: Family::IoUring, def: &IO_URING_DESCRIPTOR },
];

/// Most tables of tracepoints and functions in a tape: the rest is for this version's own and for some to come.
pub const MAX_ASKED_FOR: usize = MAX_TABLES - 32;

impl Family {
    /// The family of a number; None for one unknown to this version.
    pub fn from_raw(raw: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|family| *family as u16 == raw)
    }

    /// Whether all its events are rows of tables.
    pub fn is_tables(self) -> bool {
        self == Self::Tracepoint || RECORDED.iter().any(|table| table.family == self)
    }

    /// Whether some of its events are, or all.
    pub fn has_tables(self) -> bool {
        self.is_tables() || OWN.iter().any(|table| table.family == self)
    }

    /// The family that records into the table called `name`: one that this version does not declare is a tracepoint's,
    /// whose fields the recorder learnt from the kernel.
    pub fn of_table(name: &str) -> Self {
        let mut declared = RECORDED.iter().chain(OWN);
        declared.find(|table| table.def.name == name).map_or(Self::Tracepoint, |table| table.family)
    }
}

impl Recorded {
    /// Other name of the event: the family's name in front of the event's, `fault:page_fault_user`.
    pub fn alias(&self) -> String {
        format!("{}:{}", self.family.name(), self.def.name.rsplit(':').next().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::fault;

    #[test]
    fn numbers_have_no_hole() {
        for (number, family) in Family::ALL.iter().enumerate() {
            assert_eq!(Family::from_raw(number as u16), Some(*family));
        }
        assert_eq!(Family::from_raw(Family::ALL.len() as u16), None);
    }

    #[test]
    fn tables_can_be_written_and_have_names_of_their_own() {
        let all: Vec<&Recorded> = RECORDED.iter().chain(OWN).collect();
        assert!(all.len() < MAX_TABLES - MAX_ASKED_FOR);
        for (at, Recorded { def, family }) in all.iter().enumerate() {
            assert_eq!(fault(def), None, "{family:?}");
            assert_eq!(def.name.split(':').count(), 2, "{}", def.name);
            assert!(all[..at].iter().all(|before| before.def.name != def.name), "{} twice", def.name);
        }
    }
}
