/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Constants of both sides: an enum in C (wire.h), a module in Rust (rust.h).
 * GROUP: name, type in Rust. VALUE: prefix in C, name, value. No guard: an
 * includer defines the three macros.
 */

GROUP(limit, u32, "Sizes of maps and tables.")
VALUE(, SC_MAX, 512, "Slots of the per-ABI tables of calls; numbers from here on share the last one.")
VALUE(, MAX_RINGS, 64, "Most bulk rings the programs can address; a power of two.")
VALUE(, SLOTS, 256, "Scratch slots for long strings.")
VALUE(, BIO_ENDS, 64, "Most functions of the kernel that end bios, of those known.")
VALUE(, NET_ERROR_AFTER, 1000000, "ns after a change to CLOSE in which an error is of the socket that was closed.")
VALUE(, CALL_STRUCTS, 4, "Most structures of a call that are captured.")
VALUE(, STRUCT_MAX, 384, "Most bytes of one, or of an array of them.")
VALUE(, MAX_CPUS, 4096, "Highest CPU number of `-C`, and one.")
VALUE(, MAX_ANCESTORS, 32, "Ancestors a signal's record has room for, of its sender and of its target each.")
VALUE(, RSS_KINDS, 4, "Counters of a process's memory: of files, anonymous, swapped out, shared (MM_FILEPAGES in the kernel).")
VALUE(, STACK_PAGES, 64, "Pages that the mask of a copied stack has bits for.")
VALUE(, TRACEPOINT_DATA, 4096, "Most bytes of a tracepoint's record.")
VALUE(, LEDGER_SIZES, 64, "Buckets of a ledger entry's sizes, by the power of two below the duration.")
VALUE(, BUSY_SUMS, 32, "Entries of an epoch and a CPU in ledger_busy; a power of two.")
VALUE(, COARSE_OUTCOMES, 4, "Outcomes a coarse sum tells apart: ok, error, incomplete, and one that does not occur.")
VALUE(, LOOK_NOTES, 256, "Most threads that a look notes; a power of two.")
VALUE(, LOOK_RESTS, 32768, "Resting threads that looks remember; a power of two, at least 64.")
VALUE(, LOOK_SOFT, 192, "Room of them for threads that sleep in a call, where a signal would wake them.")
VALUE(, LOOK_PIECE, 2000, "Most threads that are walked without a pause.")
VALUE(, COARSE_PER_LANE, 2 * 2 * COARSE_OUTCOMES * SC_MAX, "Coarse sums of a lane.")
END

GROUP(buffer, u32, "The buffers that each CPU has (maps.bpf.h).")
VALUE(BUFFER_, CALLS, 0, "Of calls that went the short way.")
VALUE(BUFFER_, SWITCHES, 1, "Of switches.")
VALUE(BUFFER_, WAKEUPS, 2, "Of wake-ups; one map holds the records of these and of switches.")
VALUE(BUFFER_, KINDS, 3, "How many there are.")
END

GROUP(ledger_word, u32, "Indices into ledger_words (maps.bpf.h); those of table 1 follow those of table 0.")
VALUE(LEDGER_, EPOCH, 0, "Which table is written.")
VALUE(LEDGER_, USED, 1, "Entries in use.")
VALUE(LEDGER_, COARSE, 3, "Calls in the coarse sums.")
VALUE(LEDGER_, BUSY, 5, "Keys in the entries of CPUs.")
END

GROUP(window, u32, "What the programs record.")
VALUE(WINDOW_, CLOSED, 0, "Nothing yet.")
VALUE(WINDOW_, OPEN, 1, "Everything.")
VALUE(WINDOW_, DRAINING, 2, "No new calls; open ones are still recorded.")
END

GROUP(walk, u32, "What the task iterator is run for.")
VALUE(WALK_, READ, 0, "It changes nothing.")
VALUE(WALK_, MARK, 1, "Before the window opens: states of tasks to record are made.")
VALUE(WALK_, CALLS, 2, "After it: who is in a call that began before.")
VALUE(WALK_, SELF, 3, "Before everything: who the recorder is.")
VALUE(WALK_, FILES, 4, "Before the window opens: whose open files walk_files looks at.")
END

GROUP(call_flags, u8, "What the programs do with a call: bits of `sc_desc.flags`.")
VALUE(SC_, SELECTED, 1, "The user asked for it.")
VALUE(SC_, STATE, 2, "It changes fds, cwd or identity: kept whatever was selected.")
VALUE(SC_, CLOSING, 4, "It closes fds: a record at enter as well.")
VALUE(SC_, NEW_FD, 8, "It returns a new fd.")
VALUE(SC_, FD_PAIR, 16, "It fills an int[2] with new fds.")
VALUE(SC_, CWD, 32, "It changes the working directory.")
VALUE(SC_, CRED, 64, "It changes the task's uid.")
VALUE(SC_, EXEC, 128, "It becomes another program.")
END

GROUP(capture_kind, u8, "What to copy for an argument: `sc_desc.cap_kind`.")
VALUE(CAP_, NONE, 0, "Nothing.")
VALUE(CAP_, STRING, 1, "A NUL-terminated string.")
VALUE(CAP_, SOCKADDR_IN, 2, "A socket address, its length in another argument.")
VALUE(CAP_, SOCKADDR_OUT, 3, "A socket address filled at exit, its length behind another argument.")
VALUE(CAP_, PAIR, 4, "int[2], filled at exit.")
VALUE(CAP_, ARGV, 5, "Pointers to strings.")
END

GROUP(plain, u8, "Whether a call goes the short way: `sc_desc.plain`.")
VALUE(PLAIN_, NEVER, 0, "No.")
VALUE(PLAIN_, ALWAYS, 1, "Yes.")
VALUE(PLAIN_, WITHOUT_STRUCT, 2, "If it has no structure, as `sc_desc.struct_ops` says.")
END

GROUP(struct_when, u8, "When a structure is copied: `struct_rule.when`. At both times: a value before and one after.")
VALUE(STRUCT_, ENTER, 1, "When the call is entered.")
VALUE(STRUCT_, EXIT, 2, "When it returns, if it succeeded.")
VALUE(STRUCT_, IF_POSITIVE, 4, "With STRUCT_EXIT: if it returns more than 0.")
VALUE(STRUCT_, KEPT, 16, "With both: the call leaves the part before as it was.")
VALUE(STRUCT_, IF_INTERRUPTED, 8, "With STRUCT_EXIT: if a signal interrupted it and it is continued or fails.")
VALUE(STRUCT_, BESIDE, 32, "It is not the argument's value, which is the address itself: CAPTURE_FUTEX.")
END

GROUP(struct_count, u8, "Numbers of elements that are not in an argument: `struct_rule.count`.")
VALUE(STRUCT_, ONE, 6, "One.")
VALUE(STRUCT_, RETURNED, 7, "The return value.")
VALUE(STRUCT_, BITS, 8, "Words with so many bits as the first argument says.")
VALUE(STRUCT_, TO_PAGE, 9, "As many as can be kept and lie in one page.")
END

GROUP(socket_call, u8, "Whether a call may change what the socket of its first argument is called: `sc_desc.socket`.")
VALUE(SOCKET_, UNTOUCHED, 0, "No.")
VALUE(SOCKET_, NAMED, 1, "Yes: the socket is named at the end.")
VALUE(SOCKET_, SENDS, 2, "If it binds the socket: it has an address, and the socket none.")
VALUE(SOCKET_, CALL, 3, "i386 socketcall: the calls that do so.")
END

GROUP(also, u8, "What a call does that is looked at besides: `sc_desc.also`.")
VALUE(ALSO_, NOTHING, 0, "Nothing.")
VALUE(ALSO_, SUBMITS, 1, "io_submit: the operations in the list of its third argument, as long as the second says.")
VALUE(ALSO_, REAPS, 2, "io_getevents and its kin: tells of as many operations in its fourth argument as it returns.")
VALUE(ALSO_, REMOVES, 3, "It takes away the name of a file.")
END

GROUP(condition, u8, "For which values of an argument the fd flags of a call hold: `sc_desc.only_if`.")
VALUE(IF_, ALWAYS, 0, "For all.")
VALUE(IF_, CLOEXEC_IOCTL, 1, "ioctl: FIOCLEX and FIONCLEX.")
VALUE(IF_, DUP_FCNTL, 2, "fcntl: F_DUPFD, F_DUPFD_CLOEXEC; F_SETFD changes state without a new fd.")
VALUE(IF_, SOCKET_CALL, 3, "i386 socketcall: the calls that return a socket.")
END

GROUP(target_bits, u32, "Bits of an entry of the targets map.")
VALUE(TARGET_, PID, 1, "Every thread of this process.")
VALUE(TARGET_, TID, 2, "This thread.")
VALUE(TARGET_, ARMED, 4, "Recorded from its next execve on.")
VALUE(TARGET_, STATE, 8, "A process with recorded threads: what the others do to its fds.")
END

GROUP(stack_user, u8, "How user stacks are taken, and what follows a stack's record of the user's part.")
VALUE(STACK_, NO_USER, 0, "Not at all.")
VALUE(STACK_, ADDRESSES, 1, "Addresses by frame pointers.")
VALUE(STACK_, COPY, 2, "A copy of the stack, from the stack pointer on.")
END

GROUP(abi, u8, "`Syscall::abi`: the tape's Abi.")
VALUE(ABI_, NONE, 0, "Of a 32-bit program on arm64: its calls are not recorded.")
VALUE(ABI_, X86_64, 1, "Of 64 bits.")
VALUE(ABI_, I386, 2, "Of 32 bits.")
VALUE(ABI_, X32, 3, "Of 64 bits, with pointers of 32.")
VALUE(ABI_, AARCH64, 4, "Of 64 bits on arm64.")
END

GROUP(call_state, u8, "`Syscall::state`: the tape's CallState.")
VALUE(CALL_, COMPLETE, 1, "Enter and exit were seen.")
VALUE(CALL_, IN_FLIGHT, 2, "It had not ended.")
VALUE(CALL_, KILLED, 3, "Its task ended in it.")
VALUE(CALL_, NO_RETURN, 4, "It does not come back.")
VALUE(CALL_, BEGAN_BEFORE, 5, "It began before the recording.")
VALUE(CALL_, CLONE_CHILD, 6, "The child's return from the call that made it.")
VALUE(CALL_, DENIED, 7, "seccomp did not let it begin.")
VALUE(CALL_, LOST_ENTER, 8, "Its enter was not seen.")
END

GROUP(byte_status, u8, "What became of captured bytes: the tape's ByteStatus.")
VALUE(BYTES_, WHOLE, 1, "All are there.")
VALUE(BYTES_, TRUNCATED, 2, "The first of them.")
VALUE(BYTES_, NOT_RESIDENT, 3, "The memory was not there.")
VALUE(BYTES_, LATE, 4, "Read at the exit.")
VALUE(BYTES_, LATE_TRUNCATED, 5, "The first of them, read at the exit.")
VALUE(BYTES_, NO_BUFFER, 6, "There was no room to copy them to.")
END

GROUP(capture_arg, u8, "`Capture::arg` of what is not the value of an argument at the enter.")
VALUE(, CAPTURE_FUTEX, 6, "What is at the futex that the call waits for.")
VALUE(, CAPTURE_NAME0, 8, "Of the returned fd, the first of a pair, or the cwd; or of what was removed, in its file system.")
VALUE(, CAPTURE_NAME1, 9, "Of the second fd of a pair.")
VALUE(, CAPTURE_INODE, 10, "Behind the name of a file: a wire_inode, whose file it is.")
VALUE(, CAPTURE_AFTER, 16, "Plus an argument: its value when the call returned, beside the one before.")
END

GROUP(name_kind, u8, "First byte of a captured name (path.bpf.h).")
VALUE(NAME_, PATH, 'P', "Components from the leaf up, each ending in NUL.")
VALUE(NAME_, DELETED, 'D', "The same, of a file that was unlinked.")
VALUE(NAME_, PIPE, 'p', "8 bytes of inode number.")
VALUE(NAME_, SOCKET, 's', "The beginning of a wire_socket, to the end of its path.")
VALUE(NAME_, ANON, 'a', "The name with NUL.")
VALUE(NAME_, UNKNOWN, '?', "Nothing: the kernel side could not tell.")
END

GROUP(syscall_flags, u16, "`hdr.flags` of a syscall.")
VALUE(WIRE_, UNSELECTED, 1, "The user did not select it.")
VALUE(WIRE_, IN_LEDGER, 2, "It is kept for fd tracking, and counted in the ledger.")
VALUE(WIRE_, FILTERED, 4, "It ended after the window and is to be counted, unless it was counted as in flight.")
VALUE(WIRE_, OUR_ROOT, 8, "An exec that failed: its process has the recorder's root directory.")
VALUE(WIRE_, FETCHED, 16, "In its time its thread had something read from a block device.")
VALUE(WIRE_, SLEPT, 32, "In its time its thread slept.")
VALUE(WIRE_, OF_RING, 64, "No call: an operation of io_uring did the same to descriptors. With UNSELECTED its task's operations are not recorded. Of a wire_closing too.")
END

GROUP(task_reason, u16, "Why a task's record was sent: `hdr.flags`, below TASK_REASON.")
VALUE(, TASK_SEEN, 1, "It was seen first, became a target, or no longer is one.")
VALUE(, TASK_RENAME, 2, "Its comm changed.")
VALUE(, TASK_CRED, 3, "Its uid changed.")
VALUE(, TASK_CGROUP, 4, "It moved to another cgroup.")
VALUE(, TASK_CGROUP_ALL, 5, "Every thread of its process moved to its cgroup.")
END

GROUP(task_flags, u16, "The other bits of `hdr.flags`. A task is a target when all of them hold, its user and its name.")
VALUE(, TASK_IS_TARGET, 0x8000, "It is a target.")
VALUE(, TASK_IS_MARKED, 0x4000, "It, or its process, was asked for by number or command, or nobody need be.")
VALUE(, TASK_IS_IN_CGROUP, 0x2000, "It is in the cgroup that was asked for, or nobody need be.")
VALUE(, TASK_REASON, 0x00ff, "What is left: why the record was sent, or how a fork was made.")
END

GROUP(v1_controller, u8, "Controllers whose v1 hierarchy is followed, the first that has one.")
VALUE(V1_, MEMORY, 1, "memory")
VALUE(V1_, PIDS, 2, "pids")
VALUE(V1_, CPU, 3, "cpu")
VALUE(V1_, SHIFT, 56, "Where the number of a v1 hierarchy is in the id of a cgroup.")
END

GROUP(usage_flags, u16, "`hdr.flags` of what a process or thread used: which, and what the kernel does not count.")
VALUE(USAGE_, NO_CALLS, 1, "Bytes and calls of read and write: CONFIG_TASK_XACCT is off.")
VALUE(USAGE_, NO_STORAGE, 2, "Bytes of storage: CONFIG_TASK_IO_ACCOUNTING is off.")
VALUE(USAGE_, THREAD, 4, "Of a thread alone.")
END

GROUP(fork_flags, u16, "`hdr.flags` of a fork, below TASK_REASON: flags of the tape.")
VALUE(FORK_, THREAD, 1, "A thread of the same process.")
VALUE(FORK_, SHARES_FILES, 2, "It shares the table of fds.")
VALUE(FORK_, SHARES_FS, 4, "It shares the working directory.")
END

GROUP(switch_flags, u16, "`hdr.flags` of a switch.")
VALUE(, SWITCH_PREEMPTED, 1, "The task before was preempted.")
VALUE(, SWITCH_THROTTLED, 2, "The task before waits for its cgroup's quota of CPU time.")
VALUE(, SWITCH_UNSEEN, 4, "No program saw the task before get the CPU: `came` has when.")
VALUE(, SWITCH_SINCE, 8, "With SWITCH_UNSEEN: the kernel does not say when, and `came` is the last switch of the CPU that was seen.")
END

GROUP(cgroup_flags, u16, "`hdr.flags` of a cgroup.")
VALUE(, CGROUP_JOINED, 1, "`task` came into it; without it the cgroup was made.")
END

GROUP(wakeup_flags, u16, "`hdr.flags` of a wake-up.")
VALUE(, WAKEUP_NEW, 1, "Of a new task.")
VALUE(, WAKEUP_IRQ, 2, "By an interrupt: the waker is who was interrupted.")
VALUE(, WAKEUP_SOFTIRQ, 4, "With WAKEUP_IRQ: by a network softirq at the end of the waker's own send.")
VALUE(, WAKEUP_THROTTLED, 8, "The wakee must wait for its cgroup's quota of CPU time.")
END

GROUP(net_flags, u16, "`hdr.flags` of a change of a socket's state.")
VALUE(, NET_IRQ, 1, "In an interrupt.")
VALUE(, NET_SOFTIRQ, 2, "With NET_IRQ: in a network softirq at the end of a send of `who`.")
VALUE(, NET_FOUND, 4, "No change: `who` has it open when the recording begins, or with NET_STOP when it ends.")
VALUE(, NET_STOP, 8, "With NET_FOUND.")
VALUE(, NET_RETRANSMIT, 16, "No change: a segment was sent again.")
END

GROUP(segment_flags, u16, "`hdr.flags` of a segment.")
VALUE(, SEGMENT_BEGINS, 1, "The first bytes since all before were read, and something was sent.")
VALUE(, SEGMENT_ACKS, 2, "All that was written is acknowledged.")
VALUE(, SEGMENT_FREES, 4, "What was written and held back, one segment at most, may leave now.")
END

GROUP(block_layer, u8, "`Block::layer`.")
VALUE(, BLOCK_LAYER_REQUEST, 1, "A request.")
VALUE(, BLOCK_LAYER_BIO, 2, "A bio.")
END

GROUP(block_cause, u8, "`Block::cause`: the tape's BlockCause.")
VALUE(CAUSE_, UNKNOWN, 0, "It is not known.")
VALUE(CAUSE_, DIRECT, 1, "Who submitted it.")
VALUE(CAUSE_, DIRTIER, 2, "Who dirtied its pages.")
VALUE(CAUSE_, CGROUP, 3, "Its cgroup.")
VALUE(CAUSE_, KTHREAD, 4, "A kernel thread.")
VALUE(CAUSE_, FLUSH, 5, "A flush.")
END

GROUP(block_holds, u8, "What a block I/O reads or writes.")
VALUE(HOLDS_, UNKNOWN, 0, "Not known.")
VALUE(HOLDS_, FILE, 1, "A file.")
VALUE(HOLDS_, METADATA, 2, "The file system's own data.")
VALUE(HOLDS_, JOURNAL, 3, "Its journal.")
VALUE(HOLDS_, DEVICE, 4, "The device itself, which a program opened.")
VALUE(HOLDS_, SWAP, 5, "Memory of processes.")
VALUE(HOLDS_, SEVERAL, 6, "More than one of these, or more than one file: I/Os that were merged.")
END

GROUP(operation_flags, u16, "`hdr.flags` of an operation.")
VALUE(, OPERATION_AIO, 1, "Of io_submit; without it of io_uring.")
VALUE(, OPERATION_ENDED, 2, "It ended; without it it begins.")
VALUE(, OPERATION_REFUSED, 4, "With OPERATION_ENDED: it was not submitted.")
VALUE(, OPERATION_NAMELESS, 8, "What it is, is not known.")
VALUE(, OPERATION_SIZED, 16, "`offset` and `asked` are known.")
VALUE(, OPERATION_FIXED, 32, "`fd` is a number in the ring's own table.")
END

GROUP(fault_flags, u16, "`hdr.flags` of a page fault.")
VALUE(, FAULT_MAJOR, 1, "A major one is over; without it any by user code begins.")
VALUE(, FAULT_BEGAN, 2, "Its beginning was seen: `began` and `error_code` are known.")
VALUE(, FAULT_IN_KERNEL, 4, "The kernel touched the memory, in a call.")
END

GROUP(fault_memory, u8, "`Fault::memory`: what is mapped at the address.")
VALUE(, MEMORY_UNKNOWN, 0, "Not known: the mappings were locked, or the kernel has no bpf_find_vma.")
VALUE(, MEMORY_NONE, 1, "Nothing: the stack grows to it, or a signal follows.")
VALUE(, MEMORY_FILE, 2, "A file.")
VALUE(, MEMORY_HEAP, 3, "The heap (brk).")
VALUE(, MEMORY_STACK, 4, "The first thread's stack.")
VALUE(, MEMORY_SPECIAL, 5, "What the kernel maps into every process: vdso, vvar.")
VALUE(, MEMORY_ANON, 6, "Other memory of no file.")
END

GROUP(lock_flags, u16, "`hdr.flags` of a wait for a lock.")
VALUE(, LOCK_ENDED, 1, "It ends; without it it begins.")
VALUE(, LOCK_OF_MEMORY, 2, "The lock is the mmap_lock of the task's own memory.")
VALUE(, LOCK_OF_SIGNALS, 4, "The lock is the siglock of the task's own process.")
VALUE(, LOCK_HAS_STACK, 8, "The stack was taken.")
END

GROUP(stay_flags, u16, "`hdr.flags` of a stay.")
VALUE(, STAY_BEGINS, 1, "The first row of it.")
VALUE(, STAY_UNREAD, 2, "What the thread waits for could not be read.")
VALUE(, STAY_HAS_STACK, 4, "The stack was taken.")
VALUE(, STAY_IN_CALL, 8, "The thread was in the call of the record.")
VALUE(, STAY_CONNECTED, 16, "What the call is on is a TCP socket that connected itself.")
VALUE(, STAY_BOUND, 32, "It is one whose port was bound: it was accepted, as a rule.")
END

GROUP(lock_kind, u32, "`Lock::value` of a beginning: LCB_F_* in include/trace/events/lock.h, the same since 5.19.")
VALUE(LOCK_IS_, SPIN, 1, "It spins: a spinlock or rwlock, or the first part of the wait for a mutex.")
VALUE(LOCK_IS_, READ, 2, "For reading.")
VALUE(LOCK_IS_, WRITE, 4, "For writing.")
VALUE(LOCK_IS_, RT, 8, "An rtmutex, or what PREEMPT_RT makes of another lock.")
VALUE(LOCK_IS_, PERCPU, 16, "A percpu-rwsem.")
VALUE(LOCK_IS_, MUTEX, 32, "A mutex.")
END

GROUP(file_flags, u16, "`hdr.flags` of a file's name.")
VALUE(, FILE_WHOLE, 1, "It is a path, as the process sees it, rather than a name in a file system.")
END

GROUP(bio_end, u8, "Whose bio it is, by the kernel's function for its end.")
VALUE(BIO_, PAGES, 0, "Any other's: its pages tell.")
VALUE(BIO_, IOMAP, 1, "Direct I/O of a file system by iomap.")
VALUE(BIO_, DIO, 2, "Direct I/O of one without it.")
VALUE(BIO_, DEVICE, 3, "Direct I/O of a device that a program opened.")
VALUE(BIO_, METADATA, 4, "Metadata of a file system that has buffers of its own for it.")
VALUE(BIO_, JOURNAL, 5, "The journal of one.")
VALUE(BIO_, SWAP, 6, "Swap.")
END

GROUP(signal_kind, u8, "`Signal::kind`.")
VALUE(, SIGNAL_GENERATE, 1, "Sent.")
VALUE(, SIGNAL_DELIVER, 2, "Taken.")
VALUE(, SIGNAL_OOM_VICTIM, 3, "The OOM killer chose a victim.")
END

GROUP(signal_info, u8, "`Signal::info`: the tape's SignalInfo.")
VALUE(INFO_, SIGINFO, 1, "As the siginfo says.")
VALUE(INFO_, NOINFO, 2, "Of a process, without siginfo.")
VALUE(INFO_, PRIV, 3, "Of the kernel.")
END

GROUP(signal_flags, u16, "`hdr.flags` of a signal: SIGNAL_ flags of the tape.")
VALUE(SIG_, INTERRUPT, 1, "In an interrupt.")
VALUE(SIG_, SENDER_EXITING, 2, "The sender ends.")
VALUE(SIG_, SENDER_KTHREAD, 4, "The sender is a kernel thread.")
VALUE(SIG_, BLOCKED, 8, "The target blocked it.")
VALUE(SIG_, IGNORED, 16, "The target ignores it.")
VALUE(SIG_, HANDLED, 32, "The target has a handler.")
VALUE(SIG_, PDEATHSIG, 64, "Because the parent ended.")
VALUE(SIG_, GROUP, 128, "To the whole process.")
END

GROUP(stack_of, u8, "`Stack::of`: the tape's StackOf.")
VALUE(STACK_, SYSCALL, 1, "The end of a call.")
VALUE(STACK_, SWITCH, 2, "A switch.")
VALUE(STACK_, WAKEUP, 3, "A wake-up.")
VALUE(STACK_, BLOCK, 4, "A block I/O.")
VALUE(STACK_, SIGNAL, 5, "A signal that was sent.")
VALUE(STACK_, SAMPLE, 6, "A sample.")
VALUE(STACK_, ASLEEP, 7, "A task that sleeps.")
VALUE(STACK_, ROW, 8, "A row of a table.")
END

GROUP(stack_flags, u16, "`hdr.flags` of a stack.")
VALUE(, STACK_CUT, 1, "It is longer than the copy.")
VALUE(, STACK_COMPAT, 2, "Of 32-bit code.")
VALUE(, STACK_FAILED, 4, "The kernel could not walk it.")
VALUE(, STACK_IN_KERNEL, 8, "A sample found the kernel running.")
VALUE(, STACK_IN_CALL, 16, "In a syscall, so the instruction pointer is behind the instruction that made it.")
VALUE(, STACK_LOCKED, 32, "Of a sleeper: its address space was locked, so its memory was left alone.")
VALUE(, STACK_UNREAD, 64, "Of a sleeper: it has a user part that was not read.")
VALUE(, STACK_LATE, 128, "Set by user space: that part was given up, because copying took too long.")
END

GROUP(snap_match, u8, "Whether the call of a task that was walked is one to report: `Snap::matched`.")
VALUE(SNAP_, NO, 0, "No.")
VALUE(SNAP_, YES, 1, "Yes.")
VALUE(, SNAP_ASK, 2, "If uid, comm and cgroup agree: it began before they could be asked.")
VALUE(, SNAP_IDLE, 3, "Its fds matter, its call does not: a thread beside recorded ones, the command before its execve.")
END

GROUP(snap_call, u32, "`Snap::nr`, and a signal's `nr`.")
VALUE(, SNAP_NO_CALL, 0xffffffff, "In no call, or in one that is not known.")
END

GROUP(ledger_reason, u8, "Why a call was counted instead of stored: the tape's LedgerReason.")
VALUE(LEDGER_, LOST, 1, "There was no room for it.")
VALUE(LEDGER_, FILTERED, 2, "It was not asked for.")
VALUE(LEDGER_, OVER_SHARE, 3, "Its process had filled its share.")
VALUE(LEDGER_, CHECKED, 4, "It was stored too: with --force ledger-check.")
END

/* sc_desc.min_dur of a call that is counted and never stored; more than an enum has room for. */
#define LEDGER_ONLY 0xffffffffffffffff

GROUP(filter, u8, "Steps of a tracepoint's filter (wire.h).")
VALUE(, FILTER_STEPS, 16, "Most of them.")
VALUE(, FILTER_PASS, 0xfe, "In place of the next step: the event is recorded.")
VALUE(, FILTER_DROP, 0xff, "It is not.")
END

GROUP(tracepoint, u16, "Records of tracepoints.")
VALUE(TRACEPOINT_, PACKET, 0x8000, "`hdr.flags`: of a packet, with its socket.")
END

GROUP(probe, u16, "Records of functions.")
VALUE(PROBE_, RETURNED, 0x8000, "`hdr.flags`: it returned.")
VALUE(PROBE_, NO_STRING, 0xffff, "`lens`: no string, or one that could not be read.")
VALUE(PROBE_, STRING, 256, "Most bytes of a string, with its NUL.")
END

GROUP(operand_kind, u8, "Where an argument of a static probe is (wire.h).")
VALUE(OPERAND_, UNKNOWN, 0, "It is not read, or there is none.")
VALUE(OPERAND_, CONSTANT, 1, "`value` is it.")
VALUE(OPERAND_, REGISTER, 2, "In register `base`.")
VALUE(OPERAND_, MEMORY, 3, "At `value` + `base` + `index` << `shift`.")
VALUE(OPERAND_, NO_REGISTER, 63, "In place of `base` or `index`: it counts as 0.")
END
