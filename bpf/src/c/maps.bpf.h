/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options (fixed before load), switches (changed while running) and maps. */
#ifndef __SYSTAPE_MAPS_H
#define __SYSTAPE_MAPS_H

/* From the running kernel's BTF; the verifier removes the code they disable. */
const volatile bool has_task_storage = true; /* 5.11; tracing programs: 5.12 */
const volatile bool has_lock = true;	     /* bpf_spin_lock in tracing programs */

const volatile bool has_switch_state = true;   /* sched_switch has prev_state, 5.18 */
const volatile bool has_bio_queue_arg = false; /* block_bio_queue(q, bio), before 5.11 */
const volatile bool has_rq_queue_arg = false;  /* block_rq_insert(q, rq) and others, before 5.11 */
const volatile bool has_io_start = true;       /* block_io_start, 6.5 */
const volatile bool has_uring_opcode = false;  /* io_uring_submit_sqe(ctx, opcode, ...), before 5.16 */

/*
 * From the command line. A call is selected when it matches every filter. Calls
 * that change fds are tracked for every task that shares the machine (with
 * marked targets: a process) with selected ones, because a table of fds that
 * misses a close is wrong, not incomplete.
 */
const volatile bool target_marked = false; /* pids, tids, a command: marked, then inherited */
const volatile bool filter_uid = false;
const volatile u32 target_uid = 0;
const volatile bool filter_comm = false;
const volatile char target_comm[COMM_LEN] = {};
const volatile bool filter_cgroup = false;
/* The v1 hierarchy whose cgroups tasks have that are in none of v2, and its controller; 0 = none */
const volatile u32 v1_hierarchy = 0;
const volatile u8 v1_controller = 0;
const volatile u64 target_cgroup = 0; /* id; those below it too */
const volatile bool filter_cpu = false;
const volatile bool inherit = true;
const volatile bool no_thread_usage = false; /* what threads used is not recorded, only what processes did */
const volatile bool is_sparse = false; /* beside looks: no everyday signals, no names that come of an exec */
const volatile bool with_self = false; /* the recorder's own threads too, by families other than syscalls */
const volatile bool watch_outside = false; /* in a pid namespace, and tasks outside of it may be recorded */
const volatile u32 string_limit = 4096; /* bytes kept of a string, without its NUL */
const volatile u32 argv_limit = 16383; /* bytes kept of what a program is executed with */
const volatile u32 page_bytes = 4096; /* of the machine */
const volatile u32 ring_mask = 0; /* bulk rings - 1 */

/* Code through which interrupts enter, by /proc/kallsyms; 0 = not known. */
const volatile u64 irq_entries_from = 0;
const volatile u64 irq_entries_to = 0;
const volatile bool runs_fred = false; /* one entry for all that comes from user code */

/*
 * For finding user registers (registers.bpf.h): bytes above them, for kernels
 * without bpf_task_pt_regs; for tests.
 */
const volatile u32 regs_padding = 0;
const volatile bool regs_by_hand = false;
const volatile u32 regs_shift = 0;

/*
 * For net softirqs that run on their sender's stack (softirq.bpf.h). Code by
 * /proc/kallsyms, from and to in turn; per-CPU variables by BTF, as distances
 * from the CPU's run queue. All 0 = one of them is not known.
 */
#define SOFTIRQ_CODES 4
const volatile u64 do_softirq_codes[2 * SOFTIRQ_CODES] = {};
const volatile u64 backlog_from = 0;
const volatile u64 backlog_to = 0;
const volatile s64 preempt_count_distance = 0;
const volatile s64 irq_stack_distance = 0;
const volatile bool records_net = false; /* family "net" */
const volatile u32 host_namespace = 0; /* network namespace of process 1: names of sockets in others have their number; 0 = none has */
const volatile bool has_rdonly_cast = false; /* kfunc bpf_rdonly_cast, 6.2 */

/* Stacks: bit i stands for enum stack_of i. */
const volatile u32 stacks_on = 0;
const volatile u32 stacks_kernel = 0;
const volatile u8 stacks_user = 0; /* enum stack_user */
const volatile u32 stack_copy_limit = 0;
const volatile u64 stacks_min_dur = 0; /* of calls, ns */

const volatile bool has_short_way = false; /* for calls of which only the arguments are kept (plain.bpf.h) */
const volatile u32 plain_mask = 0; /* entries of plain_calls - 1 */
const volatile u32 call_buffer_mask = 0;  /* records of a CPU's buffer of calls - 1 */
const volatile u32 sched_buffer_mask = 0; /* and of each of its two of the scheduler's events */

/* Filters for stored calls; the others are counted. */
const volatile bool filter_calls = false;
const volatile bool only_failures = false;
const volatile bool filter_errnos = false;
const volatile bool any_filter = false; /* a call that passes one of them is stored; else it must pass all */
const volatile u64 wanted_errnos[64] = {}; /* a bit each */
const volatile u32 coarse_mask = 0;	   /* lanes - 1 */
const volatile u32 unseen_ios = 0;	   /* not 0: the end of every so-manyth I/O is not noticed */
const volatile bool ledger_check = false;  /* stored calls are counted as well */
const volatile bool preemptible = false; /* programs run with preemption on, 7.0: sys_enter_again and sys_exit_again are loaded */
const volatile u32 skip_first = 0;	 /* for tests: every so-manyth run of sys_enter and sys_exit does nothing */
const volatile bool no_task_states = false; /* for tests: as if there were no memory for any */

const volatile u32 tracepoint_ring = 0; /* index in bulk_rings of that of tracepoints */

/* Bytes of a bulk ring, and the quota of one process between two polls; 0 = all. */
const volatile u64 bulk_ring_bytes = 0;
const volatile u64 bulk_share = 0;
const volatile u64 state_ring_bytes = 0;
const volatile u64 state_share = 0;

/*
 * The recorder: its pid on the machine, its pid namespace and the depth of that
 * (0 = the machine's first). Only the kernel knows these; walk_tasks notes them
 * (WALK_SELF).
 */
u32 own_tgid = 0;
/* The recorded command's process, in the recorder's pid namespace: its other children read files for it. */
u32 own_command = 0;
u32 own_level = 0;
u64 own_namespace = 0;
struct path own_root = {};

/*
 * Distance of a task's user registers from the base of its stack; 0 = not
 * known. The recorder's own, from its walk (WALK_SELF).
 */
u32 regs_at = 0;
u64 own_regs[REGS_WORDS] = {};
_Static_assert(sizeof(struct pt_regs) == sizeof(own_regs), "all words of the registers");

s32 target_level = -1; /* of target_cgroup below the root, once a task was met in it */

u32 window = WINDOW_CLOSED; /* enum window */
u64 window_open_ts = 0;
u32 drop_epoch = 0; /* 0 or 1: the half of drops that is written */
u64 new_drops = 0; /* entries of drops that something was counted in first, but for the recorder's own calls: user space looks when it grew */
u64 harmless_skips = 0; /* of sys_enter_again and sys_exit_again: the first had run */
u64 looks = 0; /* of the recorder at the rings */
u64 ended_ios = 0; /* with unseen_ios */
u64 checked_calls = 0; /* with ledger_check: what the ledger must come to */
u64 checked_sum = 0;
u64 checked_sizes[LEDGER_SIZES] = {};

#define STRING_MAX 4096
#define INLINE_MAX 256
#define CAPTURES_AT_ENTER 3

/*
 * One per task of the target. The record of the call in progress is built in
 * place, followed directly by its strings, so it is sent in one piece.
 */
struct task_state {
	u8 matched; /* 0 not decided yet, or one of below */
	u8 in_call;
	u8 armed; /* the command before its execve */
	u8 fresh; /* made by fork, has not returned from it yet */
	u8 began_before; /* the iterator saw it in a call when the recording began */
	u8 entered; /* it is in a call whose enter was seen, recorded or not */
	u8 seen; /* something of it was seen since the recording began */
	u8 stack_due; /* sys_exit_stack is to take the stack of the call that just ended */
	u8 missed; /* enum ledger_reason of the call that just ended, or MISSED_STATE */
	u8 enter_seen; /* the first of the two programs ran, see first_ran() */
	u8 exit_seen;
	u8 binds; /* it sends on a socket that had no address of its own when the call was entered */
	u32 slot; /* scratch slot + 1 that holds long strings of the call, 0 = none */
	u32 data_len;
	u32 uid_before; /* of a call that may change it */
	u32 probed; /* records of probes that were made of it, sent or not */
	u8 absent; /* bit i: the value before the call of its structure i could not be read yet */
	u8 pad[7];
	struct wire_syscall rec;
	u8 data[CAPTURES_AT_ENTER * INLINE_MAX];
};
#define MISSED_STATE 9 /* the state ring was full */
#define MATCHED 1
#define NOT_MATCHED 2
#define STATE_ONLY 3 /* a thread beside a recorded one: only what changes their fds */

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} task_states SEC(".maps");

/* For kernels without task storage; otherwise user space sets its size to 0. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct task_state);
} task_states_by_tid SEC(".maps");

/*
 * Tasks to record without a state, by tid: there was no memory for it, or the
 * table was full. Each of their calls counts as lost; other families record
 * them as usual. Made before the start, so it needs no memory then.
 */
struct stateless {
	u64 start; /* of the task */
	u8 armed;
	u8 pad[7];
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct stateless);
} stateless_tasks SEC(".maps");
u32 any_stateless = 0; /* 1 once a task got no state; until then programs skip the lookup */

/* A zeroed state to insert: too big for the stack. Never written. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct task_state);
} zero_state SEC(".maps");

/* What a call needed: bits that say nothing of whether, or how, it is recorded. */
#define WIRE_NEEDS (WIRE_FETCHED | WIRE_SLEPT)

/* By the low bits of a tid: the call in progress of the task that owns the entry (plain.bpf.h). */
struct plain_call {
	u32 users; /* the owner, and briefly those that want it */
	u8 in_call;
	u8 in_other; /* the owner is in a call that is in its task_state, or not recorded */
	u8 enter_seen; /* as in task_state */
	u8 exit_seen;
	u64 regs;      /* of the last call: the place of its registers, at the top of the owner's stack */
	u8 has_key;    /* the next two are known; a call that may change them goes the long way */
	u8 pad[3];
	u32 execs;     /* as in ledger_key */
	u32 uid;
	struct wire_syscall rec; /* id: the owner; without captures */
};
/* User space sets their number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct plain_call);
} plain_calls SEC(".maps");

/*
 * Each CPU's last enter the short way. A call that does not wait finds its entry
 * by it at the exit, without asking for the current task, which is a call of a
 * helper. Tasks may have moved on: the entry says whether it is theirs.
 */
struct last_enter {
	u64 regs;
	u32 index; /* in plain_calls */
	u32 pad;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct last_enter);
} last_enters SEC(".maps");

/*
 * Per-CPU buffers for most records: calls that take the short way, switches,
 * and wake-ups. Without helper and lock they cost half as much as a ring. Each
 * is written by one program alone, of which at most one run is on a CPU. Before 6.13 a tracepoint's programs run with preemption off. Since 6.2
 * the kernel skips, and counts, a run of a program on top of another of its own
 * (__bpf_trace_run). Before 6.2 an interrupt may bring such a run, but not in a
 * call's exit, and the scheduler's tracepoints run with interrupts off, except
 * the wake-up of the current task. sys_exit_again does not use them. x86 keeps
 * the order of stores, so all records before the head are complete. A record
 * that does not fit goes into the CPU's ring. The maps are also mapped into
 * user space.
 */
struct cpu_buffer {
	u64 head; /* records written since the beginning */
	u64 pad[7];
	u64 tail; /* those of them that user space has read */
	u64 pad2[7];
};
/* CPU * BUFFER_KINDS + kind. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_buffer);
} cpu_buffers SEC(".maps");

struct buffered_call {
	u64 words[WIRE_PLAIN_SYSCALL / 8];
};
/* CPU * records of a buffer + index in it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct buffered_call);
} buffered_calls SEC(".maps");

struct buffered_sched {
	u64 words[sizeof(struct wire_switch) / 8];
};
_Static_assert(sizeof(struct wire_switch) == sizeof(struct wire_wakeup), "one map has room for both");
/* (CPU * 2 + whether it is a wake-up) * records of a buffer + index in it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct buffered_sched);
} buffered_sched SEC(".maps");

/* Where the walk of a path is (path.bpf.h). */
struct path_walk {
	u64 dentry;
	u64 mount;
	u64 root; /* of that mount */
	u32 begin; /* bytes of the slot */
	u32 end;
	u8 kind; /* enum name_kind, if it comes to its end */
	u8 in_mounts; /* it goes on above the root of the file system */
	u8 pad[6];
};

/* Room for a record with long strings, argv or a walked path. */
#define SLOT_DATA_MASK 0x7fff
#define SLOT_DATA (SLOT_DATA_MASK + 1)
struct slot {
	union {
		struct wire_syscall rec;
		struct wire_exec exec;
		struct wire_cgroup cgroup;
		struct wire_environ environ;
	};
	u8 data[SLOT_DATA + STRING_MAX + 8];
	struct path_walk walk; /* not sent */
};

/* Where in a slot of a kind byte `at` of its data is. */
#define SLOT_BYTE(kind, at) (__builtin_offsetof(struct kind, data) + (at))

/* A slot used for a signal. */
struct signal_slot {
	struct wire_signal rec;
	u8 data[SLOT_DATA];
};
_Static_assert(sizeof(struct signal_slot) <= sizeof(struct slot), "a signal fits a slot");

/* One used for a probe. */
struct probe_slot {
	struct wire_probe rec;
	u8 data[PROBE_ARGS * PROBE_STRING + PROBE_STRING];
};
_Static_assert(sizeof(struct probe_slot) <= sizeof(struct slot), "a probe fits a slot");

/* One used for a static probe. */
struct static_slot {
	struct wire_static rec;
	u8 data[STATIC_ARGS * PROBE_STRING + PROBE_STRING];
	u64 regs[OPERAND_NO_REGISTER + 1]; /* not sent; the last is 0 */
};
_Static_assert(sizeof(struct static_slot) <= sizeof(struct slot), "a static probe fits a slot");
_Static_assert(sizeof(struct pt_regs) <= sizeof(u64[OPERAND_NO_REGISTER]), "registers fit");

/* One used for a file. */
struct file_slot {
	struct wire_file rec;
	u8 data[SLOT_DATA];
};
_Static_assert(sizeof(struct file_slot) <= sizeof(struct slot), "a file fits a slot");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, struct slot);
} slots SEC(".maps");

/* Indices of free slots. Programs may be preempted, so no slot belongs to a CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, SLOTS);
	__type(value, u32);
} free_slots SEC(".maps");

/* Room for a stack. Like slots, none belongs to a CPU. */
struct stack_slot {
	struct wire_stack rec;
	u8 data[STACK_KERNEL_MASK + 1 + STACK_COPY_MAX + 4096];
	u64 regs[REGS_WORDS]; /* not sent */
};

/* User space sets their number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_slot);
} stack_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__type(value, u32);
} free_stack_slots SEC(".maps");

/*
 * Most bytes copied of a sleeper's stack, and most pages. With the rest of the
 * record they fit the iterator's buffer of 32 KiB.
 */
#define SLEEPER_COPY (7 * 4096)
#define SLEEPER_PAGES 8
struct sleeper {
	struct wire_stack rec;
	u8 data[STACK_KERNEL_MASK + 1 + SLEEPER_PAGES * 4096 + 4096];
	u64 regs[REGS_WORDS]; /* not sent */
};
_Static_assert(sizeof(struct wire_stack) + STACK_KERNEL_BYTES + SLEEPER_COPY <= 32768, "a sleeper fits the buffer");

/* Room for walk_sleepers and for copy_sleepers; one thread at a time runs each. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sleeper);
} sleepers SEC(".maps");

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_RINGS + 1); /* and that of tracepoints */
	__type(key, u32);
	__array(values, struct ring);
} bulk_rings SEC(".maps");

struct ring state_ring SEC(".maps");
struct ring process_ring SEC(".maps");
struct ring stack_ring SEC(".maps");

/* By number; those of i386 follow those of 64 bits. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * SC_MAX);
	__type(key, u32);
	__type(value, struct sc_desc);
} calls SEC(".maps");

/* The structures of each; apart, because most calls have none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * SC_MAX);
	__type(key, u32);
	__type(value, struct call_structs);
} call_structs SEC(".maps");

/* [epoch][cause]; user space flips the epoch, waits, reads and zeroes the old half. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2 * DROP_CAUSES);
	__type(key, u32);
	__type(value, struct drop_count);
} drops SEC(".maps");

/*
 * The ledger, one map per epoch: user space switches to the other one, waits,
 * and reads and empties the first one.
 */
struct ledger_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct ledger_key);
	__type(value, struct ledger_sum);
};
struct ledger_table ledger_a SEC(".maps");
struct ledger_table ledger_b SEC(".maps");

struct coarse_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct coarse_sum);
};
struct coarse_table coarse_a SEC(".maps");
struct coarse_table coarse_b SEC(".maps");

/* Before the tables: no lock and no search. Key: epoch * BUSY_SUMS + a hash. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2 * BUSY_SUMS);
	__type(key, u32);
	__type(value, struct busy_sum);
} ledger_busy SEC(".maps");

/*
 * By enum ledger_word. A map rather than .bss, so that a thread of user space
 * without a mapping of .bss can write it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 7);
	__type(key, u32);
	__type(value, u64);
} ledger_words SEC(".maps");

/* To insert: too big for the stack, and of a type without a lock, which may not be read. Never written. */
struct zero_sum {
	u64 words[sizeof(struct ledger_sum) / 8];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct zero_sum);
} zero_ledger SEC(".maps");

/*
 * Bytes of a process in this CPU's ring, and in the state ring, since the last
 * poll. Processes whose pids collide share an entry.
 */
struct ring_use {
	u64 look;
	u32 pid;
	u32 bytes;
};
#define RING_USES 64
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2 * RING_USES);
	__type(key, u32);
	__type(value, struct ring_use);
} ring_uses SEC(".maps");

/* Processes that lost a state record: pid -> time of the first loss. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u64);
} lost_state_pids SEC(".maps");
u64 lost_state_unknown = 0; /* time of the first loss that did not fit there */

/*
 * Recorded tasks outside the recorder's pid namespace, by tid, which a walk
 * does not show. The task and its state; either may be freed by now.
 */
struct outsider {
	u64 task;
	u64 state;
};
#define MAX_OUTSIDERS 65536
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_OUTSIDERS);
	__type(key, u32);
	__type(value, struct outsider);
} outsiders SEC(".maps");
/* What read_outsider found last. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wire_snap);
} outsider_call SEC(".maps");

/* By the task's id in the recorder's pid namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32); /* TARGET_ bits */
} targets SEC(".maps");

/* The task that got each CPU, by the last switch that was seen there. */
struct arrival {
	u64 ts; /* 0 = none was seen */
	u64 task; /* its address */
	u64 recorded;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct arrival);
} arrivals SEC(".maps");
s64 sched_clock_offset = 0; /* CLOCK_MONOTONIC - sched_info's clock; 0 = not known yet */

/* I/Os in progress, by address of the request or bio. */
struct io_state {
	u64 queued;
	u64 issued;
	u64 sector;
	u64 cgroup_id;
	u64 inode;
	u64 file; /* address of the inode */
	u64 file_tag;
	u64 unseen; /* that end was counted as unseen, 0 = none */
	u32 file_dev;
	u32 dev;
	u32 bytes;
	u32 op_flags;
	u16 requeues;
	u16 merged;
	u8 cause;
	u8 holds; /* enum block_holds */
	u8 has_origin;
	u8 has_owner;
	u8 post_flush; /* its FUA was removed at the issue: a flush will follow */
	u8 ended;      /* its record was sent, the flush after it is in progress */
	u8 pad[3];
	struct wire_who origin;
	struct wire_who owner;
};

#define MAX_IOS 16384
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_IOS);
	__type(key, u64);
	__type(value, struct io_state);
} ios SEC(".maps");

/* The last task that dirtied pages of an inode. */
struct inode_key {
	u64 ino;
	u32 dev;
	u32 pad;
};

struct dirtier {
	struct wire_who who;
	u8 matched;
	u8 kthread;
	u8 pad[6];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct inode_key);
	__type(value, struct dirtier);
} dirtiers SEC(".maps");

/* By address of an inode, or of the entry of a mapped file: the tag of the name that was sent. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u64);
} named_files SEC(".maps");

/* A mapping, as bpf_find_vma had it. */
struct mapping {
	u64 start, end; /* 0, 0: nothing is known */
	u64 offset;	/* of its start in the file */
	struct vfsmount *mnt;
	struct dentry *dentry;
	u32 what; /* enum fault_memory */
	u32 seq;  /* of the address space's changes, see changes_of() */
};

/* The page fault that a task is in, or was in last: user space sets the size, 1 without the family. */
struct fault_entry {
	u64 address;
	u64 ts;
	u64 error_code;
	u64 start; /* of the task */
	struct mm_struct *mm;
	struct mapping mapping; /* where the last of user code was */
};
struct fault_key {
	u32 tid;
	u32 in_kernel; /* one in the kernel may come within one of the program */
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct fault_key);
	__type(value, struct fault_entry);
} fault_entries SEC(".maps");

/* Functions of the kernel that end bios, by address: enum bio_end. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BIO_ENDS);
	__type(key, u64);
	__type(value, u8);
} bio_ends SEC(".maps");

/*
 * Sockets of targets, by address, from their first state to CLOSE (net.bpf.h).
 * User space sets the size; a recording of the whole machine needs none.
 */
#define MAX_SOCKETS 65536
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_SOCKETS);
	__type(key, u64);
	__type(value, u8);
} sockets SEC(".maps");

/* The socket of a target that was closed last on this CPU: the kernel reports the error that closed it right afterwards. */
struct closed_socket {
	u64 address;
	u64 ts;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct closed_socket);
} closed_sockets SEC(".maps");

/* Ports on which targets listen, for protocols whose new sockets do not lead to their listener. */
struct listen_key {
	u64 net; /* address of the network namespace */
	u16 port;
	u16 protocol;
	u32 pad;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct listen_key);
	__type(value, u8);
} listening SEC(".maps");

/* Tables of open files of targets, by address of the files_struct; while the recording begins. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, u8);
} target_files SEC(".maps");

/* The uppermost part of the CPU's interrupt stack, lowest address first. */
#define IRQ_STACK_WORDS 96
struct irq_stack_top {
	u64 words[IRQ_STACK_WORDS];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct irq_stack_top);
} irq_stack_tops SEC(".maps");

/* CPUs of -C, one byte each. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, u8);
} target_cpus SEC(".maps");

#endif
