/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Looks at all threads (record --sample). look_walk notes the threads that wait
 * for something. It holds RCU, so that it may neither sleep nor take long: it
 * walks a piece of the threads a run. look_copy then fetches what a noted
 * thread waits for. It may sleep, and shows by the switches of the thread
 * whether all of it was of one stay.
 *
 * Both are run by the recorder (recorder/src/looks). The iterator in the program
 * costs a third of a read of iter/task: there is no file, and no reference a
 * thread. It is of 6.7.
 */
#ifndef __SYSTAPE_LOOKS_H
#define __SYSTAPE_LOOKS_H

#define LOOK_UNKNOWN (~0ULL)
#define LOOK_STACK_BYTES (64 * 8)
#define LOOK_TEXT 256
#define LOOK_ASK_MS 30000

#define NR_FUTEX_32 240
#define NR_FUTEX_TIME64_32 422
/* include/uapi/linux/futex.h */
#define FUTEX_WAIT 0
#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI2 13
#define FUTEX_CMD_MASK 0x7f
/* Of a lock with waiters, in glibc, musl, Rust and Go; a condition variable of glibc has the number of its signals. */
#define FUTEX_CONTENDED 2

/* include/uapi/linux/sched.h: those of the fair class */
#define SCHED_NORMAL 0
#define SCHED_BATCH 3
#define SCHED_IDLE 5
#define MAX_RT_PRIO 100

/* A thread that waits. */
struct look_note {
	struct wire_who who;
	u64 switches; /* how often it has left a CPU: unchanged, it is the same stay */
	u64 since;    /* ns that it has been so; LOOK_UNKNOWN */
	u64 args[MAX_ARGS];
	u32 nr; /* SNAP_NO_CALL = in none */
	u32 here_tid;
	u8 abi;
	u8 state; /* letter of ps(1); R: it waits for a CPU; T: its process is stopped */
	u8 throttled; /* R: for the quota of its group */
	u8 pad[5];
};

/* What a look found. */
struct look_room {
	u64 threads;   /* walked */
	u64 running;   /* on a CPU: that comes from samples */
	u64 displaced; /* ready to run, and off the CPU that the walk has */
	u64 stopped;   /* stopped, traced, frozen */
	u64 over;      /* to be noted, and without room */
	u64 arrival;   /* when this piece's walk got its CPU, of the scheduler's clock */
	u64 from;      /* where the next piece begins: start of the last process walked, */
	u32 from_tid;  /* of a large one the last thread; 0 = none */
	u32 more;      /* there is another piece */
	u32 piece;     /* threads of this piece */
	u32 noted;
	u32 idle[SC_MAX]; /* threads in calls that wait for work, by number; futexes that are no locks too */
	struct look_note notes[LOOK_NOTES];
};

/* What a noted thread waits for. */
struct look_detail {
	u64 mode; /* of the descriptor's file; 0 = not read */
	u32 stack_bytes;
	u32 same; /* it is the stay that was asked for, before and after */
	u32 has_futex;
	u32 futex[4]; /* the word, and what follows: glibc has the owner there */
	u32 text_bytes; /* readable ones */
	u32 made; /* the descriptor is a TCP socket: STAY_CONNECTED, STAY_BOUND; 0 = not known */
	u32 pad;
	u64 stack[LOOK_STACK_BYTES / 8];
	u8 text[2 * LOOK_TEXT]; /* the verifier takes the two parts for one after the other */
	struct wire_socket socket;
};

/* What look_copy is asked for. */
struct look_ask {
	u64 tid;
	u64 start;
	u64 switches;
	u64 fd;	   /* LOOK_UNKNOWN = none; likewise below */
	u64 futex; /* address */
	u64 text;  /* address of a path */
};

/* A thread was in one state, in one call, without a switch. The names of its file and path follow. */
struct wire_stay {
	struct wire_row row; /* hdr.flags: enum stay_flags */
	u64 look;	     /* number of the first look of this row */
	u64 looks;
	u64 interval;
	u64 seen;
	u64 ago;
	u64 since;
	u64 args[MAX_ARGS];
	u64 lock;
	u32 owner;
	u32 nr;
	u8 abi;
	u8 state;
	u16 file_len;
	u16 path_len;
	u8 pad[2];
};

/* Something was wrong, and everything is recorded. The condition, what it was and the name of the tape follow. */
struct wire_escalation {
	struct wire_row row;
	u64 value;
	u16 condition_len;
	u16 what_len;
	u16 tape_len;
	u8 pad[2];
};

/* Looks of some seconds. */
struct wire_looks {
	struct wire_hdr hdr;
	u64 ts;
	u64 look; /* number of the first */
	u64 looks;
	u64 interval;
	u64 span;
	u64 skipped;
	u64 threads;
	u64 noted;
	u64 displaced;
	u64 stopped;
	u64 over;
	u64 uncopied;
	u64 cost;
};

/* Threads in a call that waits for work, in the looks of some seconds. */
struct wire_idle {
	struct wire_hdr hdr;
	u64 ts;
	u64 threads;
	u64 looks;
	u64 interval;
	u32 nr;
	u8 abi;
	u8 pad[3];
};

/* Calls that wait for work, a bit each; of 64 bits, and of 32. */
const volatile u64 look_idle[SC_MAX / 64] = {};
const volatile u64 look_idle_32[SC_MAX / 64] = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct look_room);
} look_rooms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct look_detail);
} look_details SEC(".maps");

/*
 * A thread that was found resting in a call. Until it leaves a CPU again it is in
 * that call, and its registers, which no cache has, need not be read.
 */
struct look_rest {
	u64 start;
	u32 switches;
	u16 nr;
	u16 pid; /* the bits that the place in the map does not have */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LOOK_RESTS);
	__type(key, u32);
	__type(value, struct look_rest);
} look_rests SEC(".maps");

struct bpf_iter_task {
	u64 opaque[3];
};

#define BPF_TASK_ITER_ALL_PROCS 0
#define BPF_TASK_ITER_PROC_THREADS 2

extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task, unsigned int flags) __ksym __weak;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym __weak;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym __weak;
extern struct task_struct *bpf_task_acquire(struct task_struct *task) __ksym __weak;
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *task) __ksym __weak;
extern void bpf_rcu_read_lock(void) __ksym __weak;
extern void bpf_rcu_read_unlock(void) __ksym __weak;

static __always_inline bool look_is_fair(struct task_struct *task)
{
	u32 policy = BPF_CORE_READ(task, policy);

	/* a boosted one is not in its class */
	return BPF_CORE_READ(task, prio) >= MAX_RT_PRIO &&
	       (policy == SCHED_NORMAL || policy == SCHED_BATCH || policy == SCHED_IDLE);
}

/*
 * The scheduler's clock of the task's CPU now. A CPU that rests does not bring
 * it up to date: the clock of this CPU, which does not rest, says by how much it
 * is behind.
 */
static __always_inline u64 look_behind(struct task_struct *task)
{
	u64 clock = BPF_CORE_READ(task, se.cfs_rq, rq, clock);
	u64 here = BPF_CORE_READ(current_task(), se.cfs_rq, rq, clock);

	return clock && here > clock ? here - clock : 0;
}

/* exec_start is brought up to date when a task leaves its CPU. */
static __always_inline u64 look_off_cpu(struct task_struct *task)
{
	u64 left, now;

	if (!bpf_core_field_exists(task->se.cfs_rq) || !look_is_fair(task))
		return LOOK_UNKNOWN;
	left = BPF_CORE_READ(task, se.exec_start);
	now = BPF_CORE_READ(task, se.cfs_rq, rq, clock_task);
	if (!left || !now)
		return LOOK_UNKNOWN;
	now += look_behind(task);
	return now > left ? now - left : 0;
}

static __always_inline u64 look_queued(struct task_struct *task, u64 queued)
{
	u64 now;

	if (!queued || !bpf_core_field_exists(task->se.cfs_rq))
		return LOOK_UNKNOWN;
	now = BPF_CORE_READ(task, se.cfs_rq, rq, clock) + look_behind(task);
	return now > queued ? now - queued : 0;
}

/* Whether a call is one for a futex, whose words say whether it is a lock. */
static __always_inline bool look_is_futex(u32 abi, u32 nr)
{
	return abi == ABI_I386 ? nr == NR_FUTEX_32 || nr == NR_FUTEX_TIME64_32 : (nr & ~X32_BIT) == NR_FUTEX;
}

/* Whether a futex is no contended lock: then it is waited on for work, as far as its words say. */
static __always_inline bool look_futex_waits(const u64 *args)
{
	u32 op = args[1] & FUTEX_CMD_MASK;

	if (op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2)
		return false;
	return (op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET) || (u32)args[2] != FUTEX_CONTENDED;
}

/* Whether a call waits for work whatever its arguments are, so that it is counted only. */
static __always_inline bool look_waits(u32 abi, u32 nr)
{
	u32 at = nr & ~X32_BIT, word;

	if (at >= SC_MAX)
		return false;
	word = at >> 6;
	/* the compiler would leave the mask out, which the verifier needs; so it would below */
	barrier_var(word);
	word &= SC_MAX / 64 - 1;
	return (abi == ABI_I386 ? look_idle_32[word] : look_idle[word]) >> (at & 63) & 1;
}

#ifdef NR_POLL
/*
 * Whether a thread polls one descriptor, and for some seconds at most: so wait
 * those who asked somebody, as a resolver does. Others have all the time, or a
 * list.
 */
__noinline int look_asks(u64 at)
{
	u64 count = 0, ms = 0;

	bpf_probe_read_kernel(&count, sizeof(count), (void *)(at + bpf_core_field_offset(struct pt_regs, si)));
	bpf_probe_read_kernel(&ms, sizeof(ms), (void *)(at + bpf_core_field_offset(struct pt_regs, dx)));
	return count == 1 && ms - 1 < LOOK_ASK_MS;
}

#define LOOK_ASKS(abi, nr, at) ((abi) == NATIVE_ABI && (nr) == NR_POLL && look_asks(at))
#else
/* There is ppoll alone, whose time is in memory of the program. */
#define LOOK_ASKS(abi, nr, at) false
#endif

/* Whether a thread that is ready to run waits for the quota of its group. */
__noinline int look_is_throttled(u64 address)
{
	struct task_struct *task = (void *)address;

	if (bpf_core_field_exists(task->throttled))
		return BPF_CORE_READ(task, throttled);
	if (bpf_core_field_exists(task->se.cfs_rq) && bpf_core_field_exists(task->se.cfs_rq->throttle_count))
		return BPF_CORE_READ(task, se.cfs_rq, throttle_count) > 0;
	return false;
}

/* Whether it is of a process that works for the recorder. */
__noinline int look_is_helper(u64 address)
{
	return is_helper((void *)address);
}

/* The place of a thread among those that rest. */
static __always_inline struct look_rest *look_rest_of(struct task_struct *task)
{
	u32 index = task->pid & (LOOK_RESTS - 1);

	return bpf_map_lookup_elem(&look_rests, &index);
}

/*
 * Whether a thread that sleeps, and has left its CPU so often, still rests where the
 * last look found it: then it is counted. One on a CPU may be about to sleep in
 * another call.
 */
static __always_inline bool look_still_rests(struct look_room *room, struct task_struct *task, u32 switches)
{
	struct look_rest *rest = look_rest_of(task);

	if (!rest || task->on_cpu || rest->start != task->start_time || rest->switches != switches ||
	    rest->pid != (u32)task->pid / LOOK_RESTS)
		return false;
	room->idle[rest->nr & (SC_MAX - 1)]++;
	return true;
}

/* One more in a call that is only counted; its switches were read before its registers, so that these are no older. */
static __always_inline void look_count(struct look_room *room, struct task_struct *task, u32 abi, u32 nr, u32 switches)
{
	struct look_rest *rest = look_rest_of(task);

	if (abi == ABI_I386)
		return;
	nr &= SC_MAX - 1;
	room->idle[nr]++;
	if (!rest)
		return;
	rest->start = task->start_time;
	rest->switches = switches;
	rest->nr = nr;
	rest->pid = (u32)task->pid / LOOK_RESTS;
}

/*
 * One thread. Of thousands nearly all rest in a call: for them it takes a few
 * loads of the task, and one word of its registers.
 */
static __noinline int look_at(struct look_room *room, struct task_struct *task)
{
	u32 state = task->__state, flags, index, nr = SNAP_NO_CALL, most = LOOK_NOTES, switches;
	u64 args[MAX_ARGS] = {}, at, queued = 0;
	struct look_note *note;
	u8 letter, abi = 0;
	bool asks = false;
	u64 address = 0;
	long call = -1;

	room->threads++;
	room->piece++;
	if (task->exit_state)
		return 0;
	letter = state_letter(freezer_state(task, state));
	flags = task->flags;
	if (letter == 'R') {
		if (state || task->on_cpu || !task->on_rq) {
			room->running++;
			return 0;
		}
		if (bpf_core_field_exists(task->sched_info.last_queued))
			queued = task->sched_info.last_queued;
		/*
		 * The look is of the moment at which the walk got its CPU. Who waits since
		 * then would have that CPU without the walk, or had to move from it and
		 * waits for another.
		 */
		if (queued >= room->arrival) {
			room->displaced++;
			return 0;
		}
	} else if (letter == 'S') {
		if (flags & PF_KTHREAD)
			return 0;
	} else if (letter == 'I') {
		return 0;
	} else if (letter != 'D') {
		room->stopped++;
		/* a process is stopped as a whole: its first thread stands for it */
		if (letter != 'T' || task->pid != task->tgid)
			return 0;
		most = LOOK_SOFT;
	}
	if (!is_recorded(task))
		return 0;
	switches = task->nvcsw + task->nivcsw;
	if (letter == 'S' && look_still_rests(room, task, switches))
		return 0;
	at = letter != 'R' && !(flags & PF_KTHREAD) ? user_regs_of(task) : 0;
	if (at && call_at(task, at, &call, &abi))
		nr = call;
	if (letter == 'S') {
		if (nr == SNAP_NO_CALL)
			return 0;
		asks = LOOK_ASKS(abi, nr, at);
		if (!asks && look_waits(abi, nr)) {
			look_count(room, task, abi, nr, switches);
			return 0;
		}
		/* most of them rest: they may not take the room of the others */
		most = LOOK_SOFT;
	}
	if (nr != SNAP_NO_CALL) {
		args_at(at, args, abi);
		if (letter == 'S' && look_is_futex(abi, nr)) {
			if (look_futex_waits(args)) {
				look_count(room, task, abi, nr, switches);
				return 0;
			}
			most = LOOK_NOTES;
		}
	}
	/* read rather than assigned: a function of its own takes a number */
	bpf_probe_read_kernel(&address, sizeof(address), &task);
	if (look_is_helper(address))
		return 0;
	index = room->noted;
	if (index >= most) {
		room->over++;
		return 0;
	}
	room->noted = index + 1;
	barrier_var(index);
	note = &room->notes[index & (LOOK_NOTES - 1)];
	note->who.start = BPF_CORE_READ(task, start_time);
	note->who.tid = BPF_CORE_READ(task, pid);
	note->who.pid = BPF_CORE_READ(task, tgid);
	bpf_core_read(&note->who.comm, sizeof(note->who.comm), &task->comm);
	note->switches = times_left(task);
	note->since = letter == 'R' ? look_queued(task, queued) : look_off_cpu(task);
	__builtin_memcpy(note->args, args, sizeof(args));
	note->nr = nr;
	note->here_tid = thread_here(task);
	note->abi = abi;
	note->state = letter;
	note->throttled = letter == 'R' && look_is_throttled(address);
	return 0;
}

/* The threads of a process from `from` on, or behind it, to the end of the piece. */
static __always_inline void look_at_threads(struct look_room *room, struct task_struct *from, bool behind)
{
	struct bpf_iter_task threads;
	struct task_struct *task;

	bpf_iter_task_new(&threads, from, BPF_TASK_ITER_PROC_THREADS);
	while ((task = bpf_iter_task_next(&threads))) {
		if (behind) {
			behind = false;
			continue;
		}
		look_at(room, task);
		if (room->piece >= LOOK_PIECE) {
			room->from_tid = BPF_CORE_READ(task, pid);
			room->more = 1;
			break;
		}
	}
	bpf_iter_task_destroy(&threads);
}

/* The rest of a process of which a piece was walked. */
static __always_inline void look_on(struct look_room *room)
{
	struct task_struct *from = bpf_task_from_pid(room->from_tid);

	room->from_tid = 0;
	/* it has ended: the others of its process are for the next look */
	if (!from)
		return;
	look_at_threads(room, from, true);
	bpf_task_release(from);
}

/* The processes behind the last one that was walked. */
static __always_inline void look_at_processes(struct look_room *room)
{
	struct bpf_iter_task processes;
	struct task_struct *leader;
	u64 start;

	bpf_iter_task_new(&processes, NULL, BPF_TASK_ITER_ALL_PROCS);
	while ((leader = bpf_iter_task_next(&processes))) {
		start = BPF_CORE_READ(leader, start_time);
		if (!BPF_CORE_READ(leader, pid) || (room->from && start <= room->from))
			continue;
		if (room->piece >= LOOK_PIECE)
			room->more = 1;
		if (room->more)
			break;
		leader = bpf_task_acquire(leader);
		if (!leader)
			continue;
		look_at_threads(room, leader, false);
		room->from = start;
		bpf_task_release(leader);
	}
	bpf_iter_task_destroy(&processes);
}

/*
 * Walks a piece. The list of processes is in the order of their start, so the
 * last one's start says where the next piece begins. The recorder lets others run
 * in between: each piece is a look of its own moment.
 */
int look_walk(u64 *ctx)
{
	struct look_room *room;
	u32 zero = 0;

	room = bpf_map_lookup_elem(&look_rooms, &zero);
	if (!room)
		return 0;
	room->piece = 0;
	room->more = 0;
	room->arrival = BPF_CORE_READ(current_task(), sched_info.last_arrival);
	bpf_rcu_read_lock();
	if (room->from_tid)
		look_on(room);
	look_at_processes(room);
	bpf_rcu_read_unlock();
	return 0;
}

/*
 * How a socket came to its port. connect() marks one that it chose (-1 in
 * __inet_hash_connect() of net/ipv4/inet_hashtables.c). A socket that was accepted
 * has the port of the one that listens, which was bound. So has a client that was
 * bound before, as few are.
 */
static __always_inline u32 look_made(struct inode *inode)
{
	struct inet_bind_bucket *bound = NULL;
	struct sock *sk = sock_of(inode);
	u16 family;

	if (!sk || !bpf_core_field_exists(bound->fastreuse))
		return 0;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if ((family != AF_INET && family != AF_INET6) || BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return 0;
	bound = BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_bind_hash);
	if (!bound)
		return 0;
	return BPF_CORE_READ(bound, fastreuse) < 0 ? STAY_CONNECTED : STAY_BOUND;
}

static __always_inline void look_at_file(struct look_detail *detail, struct task_struct *task, u64 fd)
{
	struct file **table, *file = NULL;
	struct inode *inode;

	if (fd >= BPF_CORE_READ(task, files, fdt, max_fds))
		return;
	table = BPF_CORE_READ(task, files, fdt, fd);
	bpf_probe_read_kernel(&file, sizeof(file), table + fd);
	inode = file ? BPF_CORE_READ(file, f_inode) : NULL;
	if (!inode)
		return;
	detail->mode = BPF_CORE_READ(inode, i_mode);
	if ((detail->mode & S_IFMT) != S_IFSOCK)
		return;
	fill_socket(&detail->socket, inode);
	detail->made = look_made(inode);
}

static __always_inline void look_at_memory(struct look_detail *detail, struct task_struct *task, const struct look_ask *ask)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	u32 first;

	if (!mm || is_locked(mm))
		return;
	if (ask->futex != LOOK_UNKNOWN)
		detail->has_futex = !bpf_copy_from_user_task(detail->futex, sizeof(detail->futex), (void *)ask->futex, task, 0);
	if (ask->text == LOOK_UNKNOWN)
		return;
	/* the end of its page first: the next one need not be there */
	first = PAGE_STEP - (ask->text & (PAGE_STEP - 1));
	if (first >= LOOK_TEXT) {
		if (!bpf_copy_from_user_task(detail->text, LOOK_TEXT, (void *)ask->text, task, 0))
			detail->text_bytes = LOOK_TEXT;
		return;
	}
	if (bpf_copy_from_user_task(detail->text, first & (LOOK_TEXT - 1), (void *)ask->text, task, 0))
		return;
	detail->text_bytes = first;
	if (!bpf_copy_from_user_task(&detail->text[first & (LOOK_TEXT - 1)], (LOOK_TEXT - first) & (LOOK_TEXT - 1),
				     (void *)(ask->text + first), task, 0))
		detail->text_bytes = LOOK_TEXT;
}

static __always_inline bool look_is_same(struct task_struct *task, const struct look_ask *ask)
{
	return BPF_CORE_READ(task, start_time) == ask->start && times_left(task) == ask->switches;
}

/* The details of the thread of `struct look_ask`, into look_details. */
int look_copy(u64 *ctx)
{
	struct look_ask ask;
	struct look_detail *detail;
	struct task_struct *task;
	u32 zero = 0;
	long n;

	ask.tid = ctx[0];
	ask.start = ctx[1];
	ask.switches = ctx[2];
	ask.fd = ctx[3];
	ask.futex = ctx[4];
	ask.text = ctx[5];
	detail = bpf_map_lookup_elem(&look_details, &zero);
	if (!detail)
		return 0;
	detail->mode = 0;
	detail->stack_bytes = 0;
	detail->same = 0;
	detail->has_futex = 0;
	detail->text_bytes = 0;
	detail->made = 0;
	task = bpf_task_from_pid(ask.tid);
	if (!task)
		return 0;
	if (look_is_same(task, &ask)) {
		n = bpf_get_task_stack(task, detail->stack, LOOK_STACK_BYTES, 0);
		if (n > 0)
			detail->stack_bytes = n;
		if (ask.fd != LOOK_UNKNOWN)
			look_at_file(detail, task, ask.fd);
		if (ask.futex != LOOK_UNKNOWN || ask.text != LOOK_UNKNOWN)
			look_at_memory(detail, task, &ask);
		/* of a thread that ran meanwhile the parts are of several moments */
		detail->same = look_is_same(task, &ask);
	}
	bpf_task_release(task);
	return 0;
}

#endif
