/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Wire records: sent through a ring (or an iterator) to the recorder. Not the
 * tape's format. Fixed-width fields, explicit padding, every byte written,
 * because records end up in files and stale kernel memory in a file is a leak.
 * Rust gets these types from the skeleton; wire.rs asserts their sizes.
 */
#ifndef __SYSTAPE_WIRE_H
#define __SYSTAPE_WIRE_H

#define COMM_LEN 16
#define MAX_ARGS 6
#define MAX_CAPTURES 8 /* a power of two */

enum wire_kind {
	WIRE_NONE,
#define KIND(kind, ...) WIRE_##kind,
#include "events.def.h"
};

/* Flags, states and sizes that Rust needs too: an enum for each group. */
#define GROUP(name, ...) enum name {
#define VALUE(prefix, name, value, ...) prefix##name = value,
#define END };
#include "values.def.h"
#undef GROUP
#undef VALUE
#undef END

struct wire_hdr {
	u16 kind;
	u16 flags;
	u32 cpu;
};

/* Thread and process; ids get reused, start times distinguish the uses. */
struct wire_ident {
	u64 start; /* CLOCK_MONOTONIC ns */
	u64 leader_start;
	u32 tid;
	u32 pid;
};

struct wire_capture {
	u8 arg; /* or enum capture_arg */
	u8 status;
	u16 len; /* bytes in the record's data, one after the other */
	u32 full; /* bytes the value had, 0 = not known */
};

struct wire_syscall {
	struct wire_hdr hdr; /* flags: enum syscall_flags */
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

struct wire_closing {
	struct wire_hdr hdr; /* flags: enum syscall_flags */
	struct wire_ident id;
	u64 ts;
	u64 args[3];
	u32 nr;
	u8 abi;
	u8 pad[3];
};

struct wire_task {
	struct wire_hdr hdr; /* flags: enum task_reason or fork_flags, and task_flags */
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

struct wire_cgroup {
	struct wire_hdr hdr; /* flags: enum cgroup_flags */
	u64 ts;
	u64 id; /* as in wire_task, of any hierarchy */
	u32 path_len;
	u32 pad;
	struct wire_ident task; /* with CGROUP_JOINED */
	u8 pad2[120]; /* as long as wire_syscall */
	/* the path follows */
};
_Static_assert(sizeof(struct wire_cgroup) == sizeof(struct wire_syscall), "data of both starts at one place");

struct wire_fork {
	struct wire_task child; /* hdr.kind = WIRE_FORK, hdr.flags: enum fork_flags, task_flags */
	struct wire_ident parent;
};

/*
 * Which file it is, whatever it is called. Not sent by itself: it is what a call
 * captured (CAPTURE_INODE), and a part of other records.
 */
struct wire_inode {
	u64 inode; /* 0 = not known */
	u32 dev; /* of its file system */
	u32 generation; /* changes when the number is used again; 0 where the file system has none */
	u32 links; /* names it has */
	u16 mode;
	u8 on_device; /* the file system is on a block device */
	u8 pad;
	char fs[16]; /* name of the file system's type */
};

struct wire_exec {
	struct wire_task task; /* hdr.kind = WIRE_EXEC */
	u32 old_tid;
	u16 path_len; /* in data, first */
	u16 argv_len; /* in data, second */
	u32 argv_full;
	u8 argv_status;
	u8 interpreted; /* a script: argv is the interpreter's, not what exec was given */
	u8 pad[2];
	struct wire_inode file; /* that the path was; not of a script */
	u8 pad2[32]; /* as long as wire_syscall: both share a scratch slot, data follows */
};
_Static_assert(sizeof(struct wire_exec) == sizeof(struct wire_syscall), "data of both starts at one place");

/* A part of the environment that a program was started with. */
struct wire_environ {
	struct wire_hdr hdr;
	struct wire_ident id;
	u64 ts;
	u32 offset; /* of this part */
	u32 full; /* all of it */
	u16 len; /* of this part, behind the record */
	u8 last; /* no more is sent */
	u8 pad[125]; /* as long as wire_syscall */
};
_Static_assert(sizeof(struct wire_environ) == sizeof(struct wire_syscall), "data of both starts at one place");

struct wire_exit {
	struct wire_hdr hdr; /* flags: seccomp mode */
	struct wire_ident id;
	u64 ts;
	u32 exit_code;
	u32 group_dead;
};

/* What a process used, when its last thread ends; or a thread of several, without what only processes have. */
struct wire_usage {
	struct wire_hdr hdr; /* flags: enum usage_flags */
	struct wire_ident id; /* the thread */
	u64 ts;
	u64 maxrss; /* bytes */
	u64 min_flt;
	u64 maj_flt;
	u64 utime; /* as ticks found it, ns */
	u64 stime;
	u64 runtime; /* as measured, ns; less by up to a tick */
	u64 nvcsw;
	u64 nivcsw;
	u64 inblock;
	u64 oublock;
	u64 rchar;
	u64 wchar;
	u64 syscr;
	u64 syscw;
	u64 read_bytes;
	u64 write_bytes;
	u64 cancelled_write_bytes;
	u64 uncounted; /* threads that were being released */
};

/* A task that may not be recorded itself: its name is included. */
struct wire_who {
	u64 start;
	u32 tid;
	u32 pid;
	char comm[COMM_LEN];
};

#define SWITCH_PREEMPTED 1

struct wire_switch {
	struct wire_hdr hdr; /* flags: enum switch_flags */
	u64 ts;
	u64 came; /* with SWITCH_UNSEEN, else 0 */
	struct wire_who prev;
	struct wire_who next;
	u32 prev_state;
	u32 prev_throttle; /* with SWITCH_THROTTLED: of throttle_clock */
	u32 next_throttle; /* the same of next's group when next runs; 0 = not known */
	u32 pad;
};

struct wire_wakeup {
	struct wire_hdr hdr; /* flags: enum wakeup_flags */
	u64 ts;
	struct wire_who waker;
	struct wire_who wakee;
	u32 target_cpu;
	u8 pad[20]; /* as long as wire_switch: they share a map */
};

struct wire_block {
	struct wire_hdr hdr;
	u64 complete;
	u64 queued; /* 0 = not known */
	u64 issued;
	u64 sector;
	u64 cgroup_id;
	u64 inode;
	u64 file;	/* address of the inode, by which its wire_file is found; 0 = none */
	u64 file_tag;	/* that of the file's name now */
	u32 file_dev;	/* of its file system */
	u32 dev;
	u32 bytes;
	u32 op_flags;
	s32 error; /* < 0 an errno, > 0 a blk_status_t */
	u16 requeues;
	u16 merged;
	u8 layer; /* enum block_layer */
	u8 cause; /* enum block_cause */
	u8 holds; /* enum block_holds */
	u8 has_origin;
	u8 has_owner;
	u8 pad[7];
	struct wire_who origin;
	struct wire_who owner;
};

/*
 * The name of a file that block I/Os hold, or that is mapped where a page fault
 * was: behind it a captured name (enum name_kind). Of a mapped file it is the
 * whole path (FILE_WHOLE), else it begins at the file system's root.
 */
struct wire_file {
	struct wire_hdr hdr; /* flags: FILE_WHOLE */
	u64 ts;
	u64 address;
	u64 tag; /* changes with its name, and with the file at this address */
	u64 inode;
	u32 dev;
	u32 links; /* names it has */
};

struct wire_ancestor {
	u64 start;
	u32 pid;
	u32 pad;
	char comm[COMM_LEN];
};
#define MAX_ANCESTORS 32

struct wire_signal {
	struct wire_hdr hdr; /* flags: enum signal_flags */
	u64 ts;
	struct wire_task sender; /* hdr.kind 0: none */
	struct wire_task target;
	u64 addr;
	u64 ip;
	u64 call_args[4];
	u64 argv_full;
	u64 argv_at; /* where the sender has them: another program has them elsewhere; 0 = not known */
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

struct wire_net {
	struct wire_hdr hdr; /* flags: enum net_flags */
	u64 ts;
	u64 socket; /* address: told apart by it, never stored */
	struct wire_who who;
	u16 family;
	u16 protocol;
	u16 sport;
	u16 dport;
	u8 old_state;
	u8 new_state;
	u8 pad[2];
	u32 error; /* of an error: its number */
	u8 saddr[16];
	u8 daddr[16];
};

/* What the kernel counts of a TCP connection, as ss -i prints it. */
struct wire_tcp {
	struct wire_net net; /* hdr.kind = WIRE_TCP; of a walk `who` has it open */
	u64 inode;	     /* 0 = it has no file (any more) */
	u64 bytes_sent;
	u64 bytes_retrans;
	u64 bytes_acked;    /* its SYN and FIN are one each */
	u64 bytes_received; /* the other end's FIN is one */
	u32 segs_out;
	u32 segs_in;
	u32 data_segs_out;
	u32 data_segs_in;
	u32 retransmits;
	u32 srtt_us;	/* 8 times as much; 0 = none was measured */
	u32 rttvar_us;	/* 4 times as much */
	u32 min_rtt_us; /* ~0 = none was measured */
	u32 cwnd;
	u32 mss;
	u8 has_fin; /* the other end's FIN came */
	u8 pad[7];
};

/* Something happened to a socket that is no change of its state. */
struct wire_incident {
	struct wire_net net; /* hdr.kind = WIRE_INCIDENT; both states are its state */
	u64 inode;
};

/* Not sent by itself: it is the rest of a captured name (NAME_SOCKET), and what walk_opens gives. */
#define SOCKET_PATH_MAX 108
struct wire_socket {
	u64 inode;
	u64 peer;	 /* AF_UNIX: inode of the other end; 0 = none, or it was not accepted yet */
	u64 address;	 /* as wire_net has it; never stored */
	char proto[16];	 /* the kernel's name of the protocol: "TCPv6", "UNIX-STREAM" */
	u16 family;
	u16 protocol;
	u16 sport;	 /* 0 = not bound */
	u16 dport;	 /* 0 = not connected */
	u32 portid;	 /* AF_NETLINK: 0 = not bound */
	u32 namespace;	 /* network namespace of the addresses; 0 = that of process 1, or not known */
	u16 path_len;
	u16 pad;
	u8 saddr[16];
	u8 daddr[16];
	u8 path[SOCKET_PATH_MAX]; /* AF_UNIX: an abstract one begins with NUL */
};
#define WIRE_PATHLESS_SOCKET __builtin_offsetof(struct wire_socket, path)

/* What walk_opens gives of an open file. Of a socket a wire_socket follows. */
struct wire_open {
	u32 pid;
	s32 fd;
	struct wire_inode inode;
};

/*
 * A row of a table. A word follows for each column that is not filled from here
 * (time, task, cpu, stack), in the order of the table's declaration: the value,
 * or a string's length. The strings' bytes follow the words.
 */
struct wire_row {
	struct wire_hdr hdr; /* flags: enum table */
	u64 ts;
	struct wire_who who;
};

/* A program submits an operation that it is told of later, or is told. */
struct wire_operation {
	struct wire_row row; /* hdr.flags: enum operation_flags */
	u64 address;  /* of the kernel's request, or of the program's iocb */
	u64 file;     /* as in wire_fault (fault.bpf.h) */
	u64 file_tag;
	u64 offset;   /* with OPERATION_SIZED: where in the file; -1 = where it stands */
	u64 asked;    /* with OPERATION_SIZED: bytes, or vectors of bytes */
	s64 ret;      /* of an end */
	s32 fd;	      /* of a beginning; -1 = not known */
	u8 opcode;    /* IORING_OP_*, or with OPERATION_AIO IOCB_CMD_* */
	u8 pad[3];
};

/*
 * An event of any tracepoint: its record as tracefs describes it, from the first byte on, follows. With
 * TRACEPOINT_PACKET a wire_socket is before that; family 0 = the packet has no socket.
 */
struct wire_tracepoint {
	struct wire_row row; /* hdr.kind = WIRE_TRACEPOINT, hdr.flags: number of the tracepoint, from 1 on */
};

/* A function was entered or returned. Strings of arguments, or of the result, follow. */
#define PROBE_ARGS 6
struct wire_probe {
	struct wire_row row; /* hdr.flags: number of the probe, from 1 on, and PROBE_RETURNED */
	u64 sp;		     /* when it is entered the return address is there, when it has returned 8 above that */
	/* the arguments in registers; of a return the result, and the number that an argument points to */
	u64 values[PROBE_ARGS];
	u16 lens[PROBE_ARGS]; /* of the strings, without NUL, and of that number; PROBE_NO_STRING: it could not be read, or is no string */
	u32 number;	     /* of the thread's records of probes: a gap says that some were lost */
};

/* A place of a static probe was reached. Strings of its arguments follow. */
#define STATIC_ARGS 12 /* sys/sdt.h has macros for as many */
struct wire_static {
	struct wire_row row; /* hdr.flags: number of the probe, from 1 on */
	u64 values[STATIC_ARGS]; /* as wide as a register, extended by sign if the argument has one */
	u16 lens[STATIC_ARGS]; /* of the strings, without NUL; PROBE_NO_STRING */
	u16 unknown; /* a bit for each argument that could not be read */
	u16 pad[3];
};

/* Where arguments of a static probe are. */
struct operand {
	s64 value;
	u8 kind; /* OPERAND_ */
	u8 size; /* bytes: 1, 2, 4, 8 */
	u8 is_signed;
	u8 is_string; /* it is the address of one that is wanted */
	u8 base; /* number of the register in struct pt_regs, or OPERAND_NO_REGISTER */
	u8 index;
	u8 shift;
	u8 pad;
};
struct operands {
	struct operand of[STATIC_ARGS];
};

struct wire_stack {
	struct wire_hdr hdr; /* flags: enum stack_flags */
	u64 ts;
	u64 key;
	struct wire_who who;
	u64 regs[STACK_REGS]; /* by the DWARF numbers of the machine; 0 without a user part */
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

/* The task iterator's record of each task. */
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
	u8 exiting; /* it ended, or is about to: its exit was mostly recorded */
	u8 has_rss;
	u8 pad[5];
	u64 rss[RSS_KINDS]; /* bytes of its process */
	u64 files; /* addresses of its table of files and its directory, to tell who shares them; 0 = it has ended */
	u64 fs;
};

/* Causes of loss; index into the drops map. */
enum drop_cause {
#define DROP(drop, ...) DROP_##drop,
#include "events.def.h"
	DROP_CAUSES,
};

struct drop_count {
	u64 count;
	u64 first;
	u64 last;
};

/* Facts about a syscall for the programs; one per (abi, nr). */
struct sc_desc {
	u8 flags;
	u8 cap_kind[3];
	u8 cap_arg[3];
	u8 cap_len_arg; /* of the sockaddr */
	u8 args;	/* how many the call has */
	u8 only_if;	/* enum condition: when the fd flags hold */
	u8 plain;	/* enum plain: whether it returns and only its arguments are kept */
	u8 socket;	/* enum socket_call */
	u8 structs;	/* enum struct_when of all its structures; 0 = none is captured */
	u8 also;	/* enum also */
	u16 struct_ops;	/* bit i: it has them when its second argument is i (without flags from 0x80 on); 0 = for any */
	u64 min_dur;	/* ns a call must take to be stored; LEDGER_ONLY: none is */
};

/* A structure, or an array of them, that an argument points to. */
struct struct_rule {
	u8 arg;
	u8 when;  /* enum struct_when; 0 = there is no rule */
	u8 count; /* the argument with the number of elements, or enum struct_count */
	u8 most;  /* elements that are kept */
	u16 size; /* bytes of an element */
	u16 pad;
};
struct call_structs {
	struct struct_rule rules[CALL_STRUCTS];
};
/*
 * A step of a tracepoint's filter: whether ((w & mask) - low) & wide <= span,
 * where w is the word at `at` of the record. So a range of numbers is compared,
 * with a sign or without, or bytes of a text.
 */
struct filter_step {
	u64 mask;
	u64 low;
	u64 wide;
	u64 span;
	u16 at;
	u8 yes; /* the next step, a later one, or FILTER_PASS, FILTER_DROP */
	u8 no;
	u32 pad;
};

struct tracepoint_filter {
	u32 first;
	u32 pad;
	struct filter_step steps[FILTER_STEPS];
};

/* Calls that are counted instead of stored. The CPU gives each entry one writer. */
struct ledger_key {
	u64 leader_start;
	u32 pid;
	u32 execs; /* low bits of the task's number of execs */
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

struct ledger_sum {
	struct bpf_spin_lock lock;
	u32 pad;
	struct ledger_counts n;
	u32 sizes[LEDGER_SIZES]; /* by the power of two below the duration */
};

/* Sums of the most frequent keys of a CPU. */
struct busy_sum {
	struct ledger_key key;
	struct ledger_counts n;
	u32 missed; /* calls with another key that found it here */
	u32 pad;
	u32 sizes[LEDGER_SIZES];
};

/* The same by (CPU, call) alone, when no key is left. */
struct coarse_sum {
	struct bpf_spin_lock lock;
	u32 pad;
	struct ledger_counts n;
};

/* Index of a coarse sum: ((lane * 2 + filtered) * 2 + i386) * COARSE_OUTCOMES + outcome) * SC_MAX + nr */
enum coarse_outcome { COARSE_OK, COARSE_ERROR, COARSE_INCOMPLETE };

#endif
