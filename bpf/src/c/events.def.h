/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All families, records, losses and programs, listed once for both sides. An
 * includer defines the macros of the lists it needs, and gets a row for each
 * entry; the others are empty. C turns the rows into enums and sections
 * (wire.h, programs.h), Rust into macros (rust.h). No guard: it is included
 * several times.
 *
 * A new family: a row in FAMILY, KIND and DROP and one for each program, its
 * record and programs in a file of their own (systape.bpf.c), and its
 * declaration in format/src/families.rs.
 */
#ifndef FAMILY
#define FAMILY(family, name, when)
#endif
#ifndef KIND
#define KIND(kind, record, type, time, shape, doc)
#endif
#ifndef DROP
#define DROP(drop, name, cause, family, doc)
#endif
#ifndef TRACEPOINT
#define TRACEPOINT(program, family, tracepoint, arguments, load, part)
#endif
#ifndef ITERATOR
#define ITERATOR(program, family, section, context, load, part)
#endif
#ifndef RUN
#define RUN(program, family, section, load, part)
#endif
#ifndef TIMER
#define TIMER(program, family, section, context, load, part)
#endif
#ifndef NAMED
#define NAMED(program, family, section, context, load, part)
#endif

/*
 * Families of --families: Family of the tape, its name, and when it is
 * recorded: Default = when no family is named, or all are; Named = only by
 * name.
 */
FAMILY(Syscall, "syscall", Default)
FAMILY(Process, "process", Default)
FAMILY(Sched, "sched", Default)
FAMILY(Block, "block", Default)
FAMILY(Signal, "signal", Default)
FAMILY(Net, "net", Default)
FAMILY(IoUring, "io_uring", Default)
FAMILY(Fault, "fault", Named)
FAMILY(Lock, "lock", Named)

/*
 * Records: WIRE_ name, name in Rust, struct, the time by which they are
 * ordered, and their shape: Fixed is the struct alone, Tail has data behind it,
 * Apart has data too and a ring of its own. The first is 1.
 */
KIND(SYSCALL, Syscall, wire_syscall, end, Tail, "A call that ended, with its captured bytes.")
KIND(CLOSING, Closing, wire_closing, ts, Fixed, "A call that closes fds was entered.")
KIND(TASK, Task, wire_task, ts, Fixed, "Who a task is: first seen, renamed, new uid.")
KIND(FORK, Fork, wire_fork, child.ts, Fixed, "A task was made.")
KIND(EXEC, Exec, wire_exec, task.ts, Tail, "A process became another program: the record, the path, the NUL-separated arguments.")
KIND(EXIT, Exit, wire_exit, ts, Fixed, "A task ended.")
KIND(USAGE, Usage, wire_usage, ts, Fixed, "What a process used that ends.")
KIND(CGROUP, Cgroup, wire_cgroup, ts, Tail, "A cgroup was made: the record, its path.")
KIND(SWITCH, Switch, wire_switch, ts, Fixed, "A CPU went from one task to another.")
KIND(WAKEUP, Wakeup, wire_wakeup, ts, Fixed, "A task was made runnable.")
KIND(BLOCK, Block, wire_block, complete, Fixed, "A block I/O completed.")
KIND(FILE, File, wire_file, ts, Tail, "A file that block I/Os hold has a name that was not sent.")
KIND(SIGNAL, Signal, wire_signal, ts, Tail, "A signal was sent or taken, or the OOM killer chose a victim.")
KIND(NET, Net, wire_net, ts, Fixed, "A socket changed its state.")
KIND(TCP, Tcp, wire_tcp, net.ts, Fixed, "A TCP connection was closed, or is open when the recording begins or ends: what it did.")
KIND(INCIDENT, Incident, wire_incident, net.ts, Fixed, "A socket sent a segment again, or got an error.")
KIND(SEGMENT, Segment, wire_segment, ts, Fixed, "A segment came to a TCP connection by which something begins or ends for its program.")
KIND(OPERATION, Operation, wire_operation, row.ts, Fixed, "An operation of io_uring or io_submit begins, or ended.")
KIND(FAULT, Fault, wire_fault, row.ts, Fixed, "A page fault of a program began, or a major one is over.")
KIND(TRACEPOINT, Tracepoint, wire_tracepoint, row.ts, Tail, "An event of a tracepoint that was asked for by name.")
KIND(PROBE, Probe, wire_probe, row.ts, Tail, "A function that was asked for was entered, or returned.")
KIND(STATIC, Static, wire_static, row.ts, Tail, "A place of a static probe was reached.")
KIND(ENVIRON, Environ, wire_environ, ts, Tail, "A part of the environment that a program was started with: the record, the bytes.")
KIND(LOCK, Lock, wire_lock, row.ts, Fixed, "A task began to wait for a lock of the kernel, or ended.")
KIND(STAY, Stay, wire_stay, row.ts, Tail, "Looks found a thread in one state: the record, the name of its file, the path of its call.")
KIND(ESCALATION, Escalation, wire_escalation, row.ts, Tail, "Looks found something wrong, and everything is recorded: the record, the condition, what it was, the name of the tape.")
KIND(LOOKS, LookSums, wire_looks, ts, Fixed, "Looks at all threads of some seconds.")
KIND(IDLE, IdleThreads, wire_idle, ts, Fixed, "Threads that looks found in a call that waits for work.")
KIND(STACK, Stack, wire_stack, ts, Apart, "A stack.")

/*
 * Causes of loss, in the order of the drops map: DROP_ name, name in Rust, and
 * its tape form: GapCause and Family. Own is not in tapes.
 */
DROP(BULK, Bulk, RingFull, Syscall, "Bulk ring full: calls.")
DROP(STATE, State, RingFull, State, "State ring full: calls; an enter or a record that only fd tracking needs is none.")
DROP(PROC, Process, RingFull, Process, "Process ring and bulk ring full.")
DROP(NO_TASK, NoTask, StateFailed, Syscall, "Per-task state could not be made.")
DROP(NO_SCRATCH, NoScratch, ScratchExhausted, Syscall, "Scratch pool empty: strings missing.")
DROP(STRING_FAULT, StringFault, StringFault, Syscall, "User memory absent at enter and exit.")
DROP(OWN, Own, Own, Syscall, "Calls of the recorder itself.")
DROP(SCHED, Sched, RingFull, Sched, "Bulk ring full: scheduler events.")
DROP(BLOCK, Block, RingFull, Block, "Bulk ring full: block I/Os.")
DROP(BLOCK_STATE, BlockState, StateFailed, Block, "Table of I/Os in progress full.")
DROP(SIGNAL, Signal, RingFull, Signal, "Ring full, or no buffer: signals.")
DROP(EVERYDAY, Everyday, Everyday, Signal, "Bulk ring full: signals that come by the thousand and end nobody.")
DROP(NET, Net, RingFull, Net, "Bulk ring full: states of sockets.")
DROP(URING, Uring, RingFull, IoUring, "Bulk ring full: beginnings and ends of operations; state ring full: what they did to descriptors.")
DROP(FAULT, Fault, RingFull, Fault, "Bulk ring more than three quarters full: page faults.")
DROP(LOCK, Lock, RingFull, Lock, "Buffer of locks full: beginnings and ends of waits.")
DROP(LOCK_BUSY, LockBusy, Skipped, Lock, "The same, in the midst of another: what was interrupted has the buffer.")
DROP(TRACEPOINT, Tracepoint, RingFull, Tracepoint, "Ring of tracepoints full.")
DROP(STACK, Stack, RingFull, Stack, "Ring of stacks full, or no buffer for one.")
DROP(SAMPLE, Sample, RingFull, Sample, "The same, of a CPU sample.")
DROP(SHARE, Share, OverShare, Syscall, "Bulk ring: the process had filled its share. Counted in the ledger.")
DROP(UNCOUNTED, Uncounted, RingFull, Syscall, "A call that is not in the ledger either.")
DROP(BLOCK_UNSEEN, BlockUnseen, Hidden, Block, "An I/O ended, and no program was run.")
DROP(OTHER_ABI, OtherAbi, OtherAbi, Syscall, "A call of a 32-bit program on arm64: nothing here knows its number.")
DROP(NET_STATE, NetState, StateFailed, Net, "Table of the targets' sockets full.")

/*
 * Programs: the family whose events are missing when a run of it is, where it is
 * attached, and
 * - arguments: how many the tracepoint must pass; 0 = any number;
 * - load: Always with its family; IfThere = when the kernel has the tracepoint,
 *   with as many arguments; OneOf = the same, and without any of these there is
 *   nothing of the family; IfAsked = an option or another program's lack decides;
 * - part: what is left out when the kernel refuses it. Essential = nothing can be
 *   recorded then; Family; Stacks(of what); Alone(what the recording then lacks).
 */
TRACEPOINT(sys_enter, Syscall, sys_enter, 0, Always, Essential)
TRACEPOINT(sys_exit, Syscall, sys_exit, 0, Always, Essential)
TRACEPOINT(sys_enter_again, Syscall, sys_enter, 0, IfAsked, Alone("calls are lost where a task is preempted in a program"))
TRACEPOINT(sys_exit_again, Syscall, sys_exit, 0, IfAsked, Alone("calls are lost where a task is preempted in a program"))
ITERATOR(walk_opens, Syscall, "iter/task_file", struct bpf_iter__task_file, Always,
	 Alone("files open since before the start are known by name only, sockets from before the start are known by number only, and what open connections did is not known"))
TRACEPOINT(ext4_unlink_enter, Syscall, ext4_unlink_enter, 2, IfThere, Alone("which file a call removed is known by the path that it gave only"))
TRACEPOINT(sys_exit_stack, Stack, sys_exit, 0, IfAsked, Stacks(Syscall))

TRACEPOINT(sched_process_fork, Process, sched_process_fork, 0, Always, Essential)
TRACEPOINT(sched_process_exec, Process, sched_process_exec, 0, Always, Essential)
TRACEPOINT(exec_environ, Process, sched_process_exec, 0, IfAsked,
	   Alone("environment variables of programs that start are not known"))
TRACEPOINT(sched_process_exit, Process, sched_process_exit, 0, Always, Essential)
TRACEPOINT(cgroup_attach_task, Process, cgroup_attach_task, 0, Always, Essential)
TRACEPOINT(cgroup_mkdir, Process, cgroup_mkdir, 0, IfThere, Alone("cgroups made during the recording have numbers instead of names"))
TRACEPOINT(task_rename, Process, task_rename, 0, Always, Essential)
ITERATOR(walk_tasks, Process, "iter/task", struct bpf_iter__task, Always, Essential)
RUN(read_outsider, Process, "raw_tp", IfAsked,
    Alone("calls that processes outside this pid namespace are in at the end are not known"))

TRACEPOINT(sched_switch, Sched, sched_switch, 0, Always, Family)
TRACEPOINT(sched_waking, Sched, sched_waking, 0, Always, Family)
TRACEPOINT(sched_wakeup_new, Sched, sched_wakeup_new, 0, Always, Family)

TRACEPOINT(signal_generate, Signal, signal_generate, 0, Always, Family)
TRACEPOINT(signal_deliver, Signal, signal_deliver, 0, Always, Family)
TRACEPOINT(mark_victim, Signal, mark_victim, 2, IfThere,
	   Alone("kills for lack of memory are not told from others of the kernel"))
TRACEPOINT(mark_victim_pid, Signal, mark_victim, 1, IfThere,
	   Alone("kills for lack of memory are not told from others of the kernel"))

TRACEPOINT(block_io_start, Block, block_io_start, 0, IfThere, Family)
TRACEPOINT(block_rq_merge, Block, block_rq_merge, 0, IfThere, Family)
TRACEPOINT(block_rq_insert, Block, block_rq_insert, 0, IfThere, Family)
TRACEPOINT(block_rq_issue, Block, block_rq_issue, 0, IfThere, Family)
TRACEPOINT(block_rq_requeue, Block, block_rq_requeue, 0, IfThere, Family)
TRACEPOINT(block_rq_complete, Block, block_rq_complete, 0, OneOf, Family)
TRACEPOINT(block_bio_queue, Block, block_bio_queue, 0, IfThere, Family)
TRACEPOINT(block_bio_complete, Block, block_bio_complete, 2, IfThere, Family)
TRACEPOINT(writeback_dirty_folio, Block, writeback_dirty_folio, 0, IfThere,
	   Alone("who wrote what is written back is not known"))
TRACEPOINT(writeback_dirty_page, Block, writeback_dirty_page, 0, IfThere,
	   Alone("who wrote what is written back is not known"))
RUN(check_io, Block, "raw_tp", Always,
    Alone("block I/Os whose end no program sees are not counted"))

TRACEPOINT(inet_sock_set_state, Net, inet_sock_set_state, 0, OneOf, Family)
TRACEPOINT(tcp_retransmit_skb, Net, tcp_retransmit_skb, 0, IfThere, Alone("segments sent again are not listed"))
TRACEPOINT(tcp_probe, Net, tcp_probe, 2, IfThere, Alone("when bytes came to connections, and when they had arrived, is not known"))
TRACEPOINT(inet_sk_error_report, Net, inet_sk_error_report, 0, IfThere, Alone("errors of sockets are not listed"))
ITERATOR(walk_files, Net, "iter/task_file", struct bpf_iter__task_file, IfAsked, Family) /* which sockets are the targets' */

TRACEPOINT(io_uring_submit_req, IoUring, io_uring_submit_req, 0, OneOf, Family)
TRACEPOINT(io_uring_submit_sqe, IoUring, io_uring_submit_sqe, 0, OneOf, Family)
TRACEPOINT(io_uring_complete, IoUring, io_uring_complete, 3, IfThere, Alone("what operations of io_uring returned is not known"))
TRACEPOINT(io_uring_complete_res, IoUring, io_uring_complete, 7, IfThere, Alone("what operations of io_uring returned is not known"))

TRACEPOINT(page_fault_user, Fault, page_fault_user, 0, OneOf, Family)
TRACEPOINT(page_fault_plain, Fault, page_fault_user, 0, IfAsked, Family) /* for kernels without bpf_find_vma */
TRACEPOINT(page_fault_kernel, Fault, page_fault_kernel, 0, IfThere,
	   Alone("how long major page faults in the kernel take is not known"))
TIMER(fault_major, Fault, "perf_event", struct sample_context, IfAsked, Alone("major page faults are not listed"))
TIMER(fault_major_plain, Fault, "perf_event", struct sample_context, IfAsked, Alone("major page faults are not listed"))

TRACEPOINT(lock_begin, Lock, contention_begin, 2, OneOf, Family)
TRACEPOINT(lock_end, Lock, contention_end, 2, OneOf, Family)

NAMED(any_tracepoint, Tracepoint, "tp", void, IfAsked, Family) /* attached to those that -e names */
NAMED(packet_tracepoint, Tracepoint, "tp", void, IfAsked, Family) /* to those of packets */
NAMED(probe_entry, Tracepoint, "uprobe", struct pt_regs, IfAsked, Family) /* to functions that --uprobe names */
NAMED(probe_return, Tracepoint, "uretprobe", struct pt_regs, IfAsked, Family)
NAMED(static_probe, Tracepoint, "uprobe", struct pt_regs, IfAsked, Family) /* to places that --usdt names */

TIMER(cpu_sample, Sample, "perf_event", struct sample_context, IfAsked, Stacks(Sample))
ITERATOR(walk_sleepers, Stack, "iter/task", struct bpf_iter__task, IfAsked, Stacks(Asleep))
ITERATOR(copy_sleepers, Stack, "iter.s/task", struct bpf_iter__task, IfAsked,
	 Alone("threads asleep since before the start have kernel frames only"))

RUN(look_walk, Look, "syscall", IfAsked, Family) /* --sample */
RUN(look_copy, Look, "syscall", IfAsked, Alone("what threads wait for at a look is known by their registers only"))

#undef FAMILY
#undef KIND
#undef DROP
#undef TRACEPOINT
#undef ITERATOR
#undef RUN
#undef TIMER
#undef NAMED
