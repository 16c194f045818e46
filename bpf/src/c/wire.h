/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Wire records: what crosses a ring (or an iterator) to the recorder. Not the
 * tape's format. Fixed-width fields, padding spelled out, every byte written:
 * records are files in the end, and stale kernel memory in a file is a leak.
 * Rust gets these types from the skeleton; lib.rs asserts their sizes.
 */
#ifndef __SYSTAPE_WIRE_H
#define __SYSTAPE_WIRE_H

#define COMM_LEN 16
#define MAX_ARGS 6
#define MAX_CAPTURES 4

enum wire_kind {
	WIRE_SYSCALL = 1,
	WIRE_CLOSING = 2, /* a call that closes fds was entered */
	WIRE_TASK = 3,	  /* identity of a task: first seen, renamed, new uid */
	WIRE_FORK = 4,
	WIRE_EXEC = 5,
	WIRE_EXIT = 6,
	WIRE_SWITCH = 7,
	WIRE_WAKEUP = 8,
	WIRE_BLOCK = 9,
	WIRE_SIGNAL = 10,
	WIRE_NET = 11,
	WIRE_URING = 12,
	WIRE_STACK = 13,
};

/* = CallState of the tape */
enum call_state {
	CALL_COMPLETE = 1,
	CALL_IN_FLIGHT = 2,
	CALL_KILLED = 3,
	CALL_NO_RETURN = 4,
	CALL_BEGAN_BEFORE = 5,
	CALL_CLONE_CHILD = 6,
	CALL_DENIED = 7,
	CALL_LOST_ENTER = 8,
};

/* = ByteStatus of the tape */
enum byte_status {
	BYTES_WHOLE = 1,
	BYTES_TRUNCATED = 2,
	BYTES_NOT_RESIDENT = 3,
	BYTES_LATE = 4,
	BYTES_LATE_TRUNCATED = 5,
	BYTES_NO_BUFFER = 6,
};

enum wire_abi { ABI_X86_64 = 1, ABI_I386 = 2, ABI_X32 = 3 };

/* `arg` of a capture that is not an argument but a name the kernel gave */
#define CAPTURE_NAME0 8 /* of the returned fd, the first of a pair, or the cwd */
#define CAPTURE_NAME1 9 /* the second of a pair */

/* First byte of a captured name */
enum name_kind {
	NAME_PATH = 'P', /* components from the leaf up, each ending in NUL */
	NAME_DELETED = 'D',
	NAME_PIPE = 'p', /* then 8 bytes of inode number */
	NAME_SOCKET = 's',
	NAME_ANON = 'a', /* then the name with NUL */
	NAME_UNKNOWN = '?',
};

struct wire_hdr {
	u16 kind;
	u16 flags;
	u32 cpu;
};

/* Thread and process; ids get reused, start times tell the uses apart. */
struct wire_ident {
	u64 start; /* CLOCK_MONOTONIC ns */
	u64 leader_start;
	u32 tid;
	u32 pid;
};

struct wire_capture {
	u8 arg;
	u8 status;
	u16 len; /* bytes in the record's data, one after the other */
	u32 full; /* bytes the value had, 0 = not known */
};

struct wire_syscall {
	struct wire_hdr hdr; /* flags: WIRE_UNSELECTED */
	struct wire_ident id;
	u64 start;
	u64 end;
	s64 ret;
	u64 args[MAX_ARGS];
	u32 nr;
	u8 abi;
	u8 state;
	u8 captures;
	u8 pad;
	struct wire_capture cap[MAX_CAPTURES]; /* left out when captures is 0 */
	/* data follows */
};
#define WIRE_PLAIN_SYSCALL __builtin_offsetof(struct wire_syscall, cap)

#define WIRE_UNSELECTED 1
#define WIRE_IN_LEDGER 2 /* kept for fd tracking only, counted already */
#define WIRE_FILTERED 4	 /* ended after the window: to be counted by user space, which knows whether it was in flight */

struct wire_closing {
	struct wire_hdr hdr;
	struct wire_ident id;
	u64 ts;
	u64 args[3];
	u32 nr;
	u8 abi;
	u8 pad[3];
};

enum task_reason {
	TASK_SEEN = 1, /* or it became a target, or no longer is one */
	TASK_RENAME = 2,
	TASK_CRED = 3,
	TASK_CGROUP = 4, /* moved to another cgroup */
	TASK_CGROUP_ALL = 5, /* with all threads of its process */
};

struct wire_task {
	struct wire_hdr hdr; /* flags: enum task_reason or FORK_, and TASK_IS_ */
	struct wire_ident id;
	u64 ts;
	u64 cgroup_id;
	u32 ppid;
	u32 uid;
	u32 ns_tid; /* in its own pid namespace */
	u32 ns_pid;
	u32 here_tid; /* in the recorder's, as /proc has it; 0 = it is not in there */
	u32 here_pid;
	char comm[COMM_LEN];
};

/* Why a task is a target or is not: it is when all of them hold, its user and its name. */
#define TASK_IS_TARGET 0x8000
#define TASK_IS_MARKED 0x4000	 /* -p, -t, a command; or nobody need be */
#define TASK_IS_IN_CGROUP 0x2000 /* -G; or nobody need be */
#define TASK_REASON 0x00ff

#define FORK_THREAD 1
#define FORK_SHARES_FILES 2
#define FORK_SHARES_FS 4

struct wire_fork {
	struct wire_task child; /* hdr.kind = WIRE_FORK, hdr.flags = FORK_*, TASK_IS_* */
	struct wire_ident parent;
};

struct wire_exec {
	struct wire_task task; /* hdr.kind = WIRE_EXEC */
	u32 old_tid;
	u16 path_len; /* in data, first */
	u16 argv_len; /* in data, second */
	u32 argv_full;
	u8 argv_status;
	u8 interpreted; /* a script: argv is the interpreter's, not what exec was given */
	u8 pad[42]; /* as long as wire_syscall: both share a scratch slot, data follows */
};
_Static_assert(sizeof(struct wire_exec) == sizeof(struct wire_syscall), "data of both starts at one place");

struct wire_exit {
	struct wire_hdr hdr; /* flags: seccomp mode */
	struct wire_ident id;
	u64 ts;
	u32 exit_code;
	u32 group_dead;
};

/* A task that may not be recorded itself: its name comes along. */
struct wire_who {
	u64 start;
	u32 tid;
	u32 pid;
	char comm[COMM_LEN];
};

#define SWITCH_PREEMPTED 1

struct wire_switch {
	struct wire_hdr hdr;
	u64 ts;
	struct wire_who prev;
	struct wire_who next;
	u32 prev_state;
	u32 pad;
};

#define WAKEUP_NEW 1
#define WAKEUP_IRQ 2 /* waker is the interrupted task */
#define WAKEUP_SOFTIRQ 4 /* with WAKEUP_IRQ: a net softirq at the end of the waker's own send */

struct wire_wakeup {
	struct wire_hdr hdr;
	u64 ts;
	struct wire_who waker;
	struct wire_who wakee;
	u32 target_cpu;
	u32 pad;
};

#define BLOCK_LAYER_REQUEST 1
#define BLOCK_LAYER_BIO 2

/* = BlockCause of the tape */
enum block_cause {
	CAUSE_UNKNOWN = 0,
	CAUSE_DIRECT = 1,
	CAUSE_DIRTIER = 2,
	CAUSE_CGROUP = 3,
	CAUSE_KTHREAD = 4,
	CAUSE_FLUSH = 5,
};

struct wire_block {
	struct wire_hdr hdr;
	u64 complete;
	u64 queued; /* 0 = not known */
	u64 issued;
	u64 sector;
	u64 cgroup_id;
	u64 inode;
	u32 dev;
	u32 bytes;
	u32 op_flags;
	s32 error; /* < 0 an errno, > 0 a blk_status_t */
	u16 requeues;
	u16 merged;
	u8 layer;
	u8 cause;
	u8 has_origin;
	u8 has_owner;
	struct wire_who origin;
	struct wire_who owner;
};

enum signal_kind { SIGNAL_GENERATE = 1, SIGNAL_DELIVER = 2, SIGNAL_OOM_VICTIM = 3 };
enum signal_info { INFO_SIGINFO = 1, INFO_NOINFO = 2, INFO_PRIV = 3 };

/* = SIGNAL_ flags of the tape */
#define SIG_INTERRUPT 1
#define SIG_SENDER_EXITING 2
#define SIG_SENDER_KTHREAD 4
#define SIG_BLOCKED 8
#define SIG_IGNORED 16
#define SIG_HANDLED 32
#define SIG_PDEATHSIG 64
#define SIG_GROUP 128

struct wire_ancestor {
	u64 start;
	u32 pid;
	u32 pad;
	char comm[COMM_LEN];
};
#define MAX_ANCESTORS 32

struct wire_signal {
	struct wire_hdr hdr; /* flags: SIG_ */
	u64 ts;
	struct wire_task sender; /* hdr.kind 0: none */
	struct wire_task target;
	u64 addr;
	u64 ip;
	u64 call_args[4];
	u64 argv_full;
	u64 oom[4]; /* bytes: virtual, anonymous, file, shmem */
	u32 sig;
	s32 code;
	s32 err;
	u32 si_pid;
	u32 si_uid;
	u32 nr; /* SNAP_NO_CALL = none */
	u8 kind;
	u8 info;
	u8 result;
	u8 abi;
	u8 sender_ancestors;
	u8 target_ancestors;
	u8 argv_status;
	u8 pad;
	u16 argv_len;
	u16 path_len;
	u32 pad2;
	/* data follows: with ancestors of either MAX_ANCESTORS of the sender and as many of the target; argv; path */
};
#define SIGNAL_ARGV_MAX 2047 /* a mask */
#define SIGNAL_CHAINS (2 * MAX_ANCESTORS * sizeof(struct wire_ancestor))

#define NET_IRQ 1
#define NET_SOFTIRQ 2 /* with NET_IRQ: a net softirq at the end of who's own send */

struct wire_net {
	struct wire_hdr hdr;
	u64 ts;
	u64 socket; /* address: told apart by it, never stored */
	struct wire_who who;
	u16 family;
	u16 protocol;
	u16 sport;
	u16 dport;
	u8 old_state;
	u8 new_state;
	u8 pad[6];
	u8 saddr[16];
	u8 daddr[16];
};

struct wire_uring {
	struct wire_hdr hdr; /* flags: opcode */
	u64 ts;
	struct wire_who who;
};

/* = StackOf of the tape */
enum stack_of {
	STACK_SYSCALL = 1,
	STACK_SWITCH,
	STACK_WAKEUP,
	STACK_BLOCK,
	STACK_SIGNAL,
	STACK_SAMPLE,
	STACK_ASLEEP,
};

/* What follows of the user's part */
enum stack_user {
	STACK_NO_USER = 0,
	STACK_ADDRESSES = 1, /* by frame pointers */
	STACK_COPY = 2,	     /* memory from the stack pointer on */
};

#define STACK_CUT 1	/* the stack is longer than the copy */
#define STACK_COMPAT 2	/* 32-bit code */
#define STACK_FAILED 4	/* the kernel could not walk it */
#define STACK_IN_KERNEL 8 /* a sample found the kernel running */
#define STACK_IN_CALL 16  /* in a syscall: the instruction pointer is behind the instruction that made it */
#define STACK_LOCKED 32	  /* of a sleeper: its memory was left alone, because its address space is locked */
#define STACK_UNREAD 64	  /* of a sleeper: it has a user part that was not read */
#define STACK_LATE 128	  /* set by user space: that part was given up */

struct wire_stack {
	struct wire_hdr hdr; /* flags: STACK_ */
	u64 ts;
	u64 key;
	struct wire_who who;
	u64 regs[17]; /* DWARF numbers of x86-64; 0 without a user part */
	u64 absent;   /* bit i: page i of the copy could not be read */
	u64 entry;    /* where the stack pointer was when the program began */
	u32 kernel_bytes;
	u32 user_bytes;
	u8 of;
	u8 user;
	u8 state; /* of a sleeper: letter of ps(1) */
	u8 pad;
	u32 here_pid; /* as perf's side-band and /proc have it; 0 = it is not in the recorder's pid namespace */
	/* data follows: addresses in the kernel, then the user's part */
};
#define STACK_KERNEL_MASK 0x3ff
#define STACK_KERNEL_BYTES (127 * 8) /* kernel.perf_event_max_stack */
#define STACK_COPY_MAX (1 << 18)
#define STACK_PAGES 64 /* bits of absent */

/* What the task iterator writes for every task. */
struct wire_snap {
	struct wire_task task;
	u64 last_run; /* when it last came on a CPU; 0 = not known */
	u64 call_start;	    /* recorded call: its start; 0 = began before */
	u64 args[MAX_ARGS]; /* of that call */
	u32 nr;		    /* SNAP_NO_CALL = not in a syscall, or not known */
	u8 abi;
	u8 state; /* letter of ps(1) */
	u8 kthread;
	u8 matched; /* enum snap_match */
	u32 cpu;
	u8 on_cpu;
	u8 exiting; /* it ended, or is about to: of most its exit was told */
	u8 pad[6];
};

/* Is the call of the task one to report? */
enum snap_match {
	SNAP_NO = 0,
	SNAP_YES = 1,
	SNAP_IDLE = 3, /* its fds are, its call is not: a thread beside recorded ones, the command before its execve */
	SNAP_ASK = 2, /* if uid, comm and cgroup agree: it began before they could be asked */
};

#define SNAP_NO_CALL 0xffffffff

/* Why something is missing; index into the drops map. = GapCause where it has one. */
enum drop_cause {
	DROP_BULK = 0,	  /* bulk ring full: calls */
	DROP_STATE,	  /* state ring full: calls; an enter or a record that only fd tracking needs is none */
	DROP_PROC,	  /* process ring and bulk ring full */
	DROP_NO_TASK,	  /* per-task state could not be made */
	DROP_NO_SCRATCH,  /* scratch pool empty: strings missing */
	DROP_STRING_FAULT,/* user memory absent at enter and exit */
	DROP_OWN,	  /* calls of the recorder itself */
	DROP_SCHED,	  /* from here on: ring full, by family */
	DROP_BLOCK,
	DROP_BLOCK_STATE, /* table of I/Os in progress full */
	DROP_SIGNAL,
	DROP_EVERYDAY, /* of signals that end nobody */
	DROP_NET,
	DROP_URING,
	DROP_STACK,  /* ring of stacks full, or no buffer */
	DROP_SAMPLE, /* the same, of a CPU sample */
	DROP_SHARE,  /* bulk ring: the process has filled its share */
	DROP_UNCOUNTED, /* a call that is not in the ledger either */
	DROP_BLOCK_UNSEEN, /* an I/O ended, and no program was run */
	DROP_NET_STATE, /* table of the targets' sockets full */
	DROP_CAUSES,
};

struct drop_count {
	u64 count;
	u64 first;
	u64 last;
};

#define SC_MAX 512 /* numbers per abi in the table */

/* What the programs must know of a syscall; one per (abi, nr). */
enum sc_flags {
	SC_SELECTED = 1,
	SC_STATE = 2,	/* changes fds, cwd, identity: kept whatever was selected */
	SC_CLOSING = 4,	/* closes fds: send a record at enter as well */
	SC_NEW_FD = 8,	/* the return value is a new fd */
	SC_FD_PAIR = 16,/* argument pair_arg points to two new fds */
	SC_CWD = 32,	/* changes the working directory */
	SC_CRED = 64,
	SC_EXEC = 128,
};

enum capture_kind {
	CAP_NONE = 0,
	CAP_STRING,
	CAP_SOCKADDR_IN,
	CAP_SOCKADDR_OUT,
	CAP_PAIR,
	CAP_ARGV,
};

struct sc_desc {
	u8 flags;
	u8 cap_kind[3];
	u8 cap_arg[3];
	u8 cap_len_arg; /* of the sockaddr */
	u8 args;	/* how many the call has */
	u8 only_if;	/* enum sc_condition: when the fd flags hold */
	u8 plain;	/* it comes back, and nothing but its arguments is kept of it */
	u8 pad[5];
	u64 min_dur;	/* ns a call must take to be stored; LEDGER_ONLY: none is */
};
#define LEDGER_ONLY ((u64)-1)

/* = LedgerReason of the tape */
enum ledger_reason {
	LEDGER_LOST = 1,
	LEDGER_FILTERED = 2,
	LEDGER_OVER_SHARE = 3,
	LEDGER_CHECKED = 4,
};

/* Calls that are counted instead of stored. The CPU makes each entry one writer's. */
struct ledger_key {
	u64 leader_start;
	u32 pid;
	u32 execs; /* low bits of how often the process became another program */
	u32 uid;
	u32 cpu;
	u32 nr;
	u16 err; /* 0 = ok */
	u8 abi;
	u8 reason;
	u8 state; /* enum call_state */
	u8 pad[7];
};

struct ledger_counts {
	u64 count;
	u64 sum; /* ns */
	u64 min;
	u64 max;
	u64 first; /* ends */
	u64 last;
};

#define LEDGER_SIZES 64
struct ledger_sum {
	struct bpf_spin_lock lock;
	u32 pad;
	struct ledger_counts n;
	u32 sizes[LEDGER_SIZES]; /* by the power of two below the duration */
};

/* A sum of the few keys that a CPU counts most. */
struct busy_sum {
	struct ledger_key key;
	struct ledger_counts n;
	u32 sizes[LEDGER_SIZES];
};
#define BUSY_SUMS 32 /* of an epoch and a CPU; a power of two */

/* The same by (CPU, call) alone, when there is no room for another key. */
struct coarse_sum {
	struct bpf_spin_lock lock;
	u32 pad;
	struct ledger_counts n;
};

/* Index of a coarse sum: ((lane * 2 + filtered) * 2 + i386) * COARSE_OUTCOMES + outcome) * SC_MAX + nr */
enum coarse_outcome { COARSE_OK, COARSE_ERROR, COARSE_INCOMPLETE, COARSE_OUTCOMES = 4 };
#define COARSE_PER_LANE (2 * 2 * COARSE_OUTCOMES * SC_MAX)


/* Calls that change fds for some values of an argument only. */
enum sc_condition {
	IF_ALWAYS = 0,
	IF_CLOEXEC_IOCTL, /* ioctl: FIOCLEX, FIONCLEX */
	IF_DUP_FCNTL,	  /* fcntl: F_DUPFD, F_DUPFD_CLOEXEC; F_SETFD changes state without a new fd */
	IF_SOCKET_CALL,	  /* i386 socketcall: SYS_SOCKET, SYS_ACCEPT, SYS_ACCEPT4 */
};

/* bits of a target entry */
#define TARGET_PID 1
#define TARGET_TID 2
#define TARGET_ARMED 4 /* starts at its next execve */
#define TARGET_STATE 8 /* a process with recorded threads: the others' fd changes matter */

#endif
