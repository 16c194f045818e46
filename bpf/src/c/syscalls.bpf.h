/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Family "syscall": enter keeps start and arguments, exit sends one record. */
#ifndef __SYSTAPE_SYSCALLS_H
#define __SYSTAPE_SYSCALLS_H

#define SIGNAL_GROUP_EXIT 4	  /* include/linux/sched/signal.h */
#define SIGKILL_BIT (1UL << (9 - 1))
#define ERESTARTSYS 512
#define ERESTART_RESTARTBLOCK 516
#define ENOIOCTLCMD 515
#define EINTR 4
#define ENOENT 2
#define ENOEXEC 8
#define ENOTDIR 20
#define ENOSYS 38
#define NR_NONE 0xffffffff

static __always_inline void begin_call(struct task_state *st, struct pt_regs *regs, u8 abi, u32 nr)
{
	st->rec.nr = nr;
	st->rec.abi = abi;
	st->rec.captures = 0;
	st->data_len = 0;
	st->absent = 0;
	read_args(st->rec.args, regs, abi);
}

/* Whether a call that may have structures has none, so that its arguments are enough. */
static __always_inline bool lacks_structs(const struct sc_desc *d, struct pt_regs *regs, u8 abi)
{
	return !has_structs(d, call_arg1(regs, abi));
}

static __always_inline void begin_plain(struct plain_call *p, struct pt_regs *regs, u8 abi, u32 nr)
{
	p->rec.hdr.flags = 0;
	p->rec.nr = nr;
	p->rec.abi = abi;
	read_args(p->rec.args, regs, abi);
	note_enter(p, regs);
	p->rec.start = bpf_ktime_get_ns();
	/* last: a walk on another CPU reads the call in progress at any time */
	order_memory(&p->users);
	p->in_call = 1;
}

/* include/uapi/asm-generic/ioctls.h, linux/net.h */
#define FIONCLEX 0x5450
#define FIOCLEX 0x5451
#define SYS_SOCKET 1
#define SYS_ACCEPT 5
#define SYS_ACCEPT4 18

/* For a call whose flags apply to some arguments only: whether it is kept for fd tracking. */
static __always_inline bool keeps_state(const struct sc_desc *d, u32 arg0, u32 arg1)
{
	if (!(d->flags & SC_STATE))
		return false;
	if (d->only_if == IF_CLOEXEC_IOCTL)
		return arg1 == FIOCLEX || arg1 == FIONCLEX;
	if (d->only_if == IF_DUP_FCNTL)
		return arg1 == F_DUPFD || arg1 == F_DUPFD_CLOEXEC || arg1 == F_SETFD;
	return true;
}

static __always_inline bool makes_fd(const struct sc_desc *d, u32 arg0, u32 arg1)
{
	if (!(d->flags & (SC_NEW_FD | SC_FD_PAIR | SC_CWD)))
		return false;
	if (d->only_if == IF_DUP_FCNTL)
		return arg1 == F_DUPFD || arg1 == F_DUPFD_CLOEXEC;
	if (d->only_if == IF_SOCKET_CALL)
		return arg0 == SYS_SOCKET || arg0 == SYS_ACCEPT || arg0 == SYS_ACCEPT4;
	return true;
}

/* The same of the call in progress. */
static __always_inline bool changes_state(const struct task_state *st, const struct sc_desc *d)
{
	return st->binds || keeps_state(d, st->rec.args[0], st->rec.args[1]);
}

/* Whether the call in progress is recorded, and selected by the user. */
static __always_inline bool choose(struct task_state *st, const struct sc_desc *d, struct task_struct *current)
{
	bool selected = d->flags & SC_SELECTED && is_selected(st, current);

	st->rec.hdr.flags = selected ? 0 : WIRE_UNSELECTED;
	return selected || changes_state(st, d);
}

static __always_inline void send_closing(struct task_state *st)
{
	struct wire_closing c = {};

	begin_closing(&c, st->rec.nr, st->rec.abi);
	c.id = st->rec.id;
	c.args[0] = st->rec.args[0];
	c.args[1] = st->rec.args[1];
	c.args[2] = st->rec.args[2];
	send_state(&c, sizeof(c), sizeof(c), c.id.pid);
}

#define SECCOMP_IOCTL_NOTIF_ADDFD 0x40182103 /* include/uapi/linux/seccomp.h */

/*
 * A seccomp supervisor may put a file at any fd of the task it supervises, and
 * neither call names that task: user space then reads all tables again.
 */
static __noinline int send_injection(struct pt_regs *regs)
{
	struct wire_closing c = {};

	begin_closing(&c, NR_IOCTL, NATIVE_ABI);
	fill_ident(&c.id, current_task());
	c.args[0] = CALL_ARG0(regs);
	c.args[1] = CALL_ARG1(regs);
	send_state(&c, sizeof(c), sizeof(c), 0);
	return 0;
}

/*
 * A call of a task without a state. If only memory for it was missing, the call
 * is lost: counted at its enter, because a call that does not return counts
 * too.
 */
static __noinline int count_lacking(struct task_struct *task, const struct sc_desc *d, u64 arg0, u64 arg1)
{
	struct stateless *s = target_marked ? stateless_of(task) : NULL;

	/* the recorder and its children have a state that says so */
	if (!d || current_state(task, false))
		return 0;
	if (s && s->armed && d->flags & SC_EXEC) {
		s->armed = 0;
		send_current(TASK_SEEN);
	}
	if (!lacks_state(task))
		return 0;
	if (keeps_state(d, arg0, arg1))
		lose_state(FIELD(task, tgid));
	if (d->flags & SC_SELECTED && passes_filters(task, NULL) && cpu_is_recorded())
		count_drop(DROP_NO_TASK);
	return 0;
}

/*
 * If programs may be preempted (7.0), a task may stay in one for a whole time
 * slice, and the kernel skips that program for all other tasks that reach it on
 * this CPU: a tenth of all calls when three programs that only make calls share
 * two CPUs. So calls have two programs each that do the same; the second does
 * nothing if the first ran for this event. The first leaves a mark for it in
 * the task, which it removes. A task with neither a mark nor a state is not
 * recorded; otherwise the first would have made one.
 */
static __always_inline bool first_ran(struct task_struct *task, bool exit)
{
	struct plain_call *p = plain_call_of(task);
	struct task_state *st;
	u8 *seen;

	if (p) {
		seen = exit ? &p->exit_seen : &p->enter_seen;
		if (*seen) {
			*seen = 0;
			return true;
		}
	}
	st = current_state(task, false);
	if (!st)
		return target_marked || any_stateless;
	seen = exit ? &st->exit_seen : &st->enter_seen;
	if (*seen) {
		*seen = 0;
		return true;
	}
	return st->matched == NOT_MATCHED;
}

/*
 * A mark of the event before: its second program was skipped, without loss.
 * Enters and exits of a task alternate.
 */
static __always_inline void forget_mark(u8 *seen)
{
	if (!*seen)
		return;
	*seen = 0;
	__sync_fetch_and_add(&harmless_skips, 1);
}

/* For tests: as if the kernel skipped the program. */
static __always_inline bool is_skipped(void)
{
	return skip_first && bpf_get_prandom_u32() % skip_first == 0;
}

/* The enter of a call the long way. */
static __noinline int begin_other(u64 *ctx, struct task_struct *task, const struct sc_desc *d, bool has_entry, bool again)
{
	struct pt_regs *regs = (void *)ctx[0];
	struct task_state *st;
	long id = ctx[1];
	u8 abi;

	abi = current_abi(task, regs, id);
	st = recorded_current(task, true);
	if (!st) {
		if (any_stateless)
			count_lacking(task, d, call_arg0(regs, abi), call_arg1(regs, abi));
		return 0;
	}
	if (st->armed) {
		if (!(d->flags & SC_EXEC))
			return 0;
		st->armed = 0;
		send_current(TASK_SEEN);
	}
	if (!has_entry)
		claim_plain(st);
	if (preemptible) {
		forget_mark(&st->exit_seen);
		st->enter_seen = !again;
	}
	st->fresh = 0;
	st->stack_due = 0;
	st->began_before = 0;
	st->entered = 1;
	st->seen = 1;
	if (!(d->flags & (SC_SELECTED | SC_STATE)) && d->socket != SOCKET_SENDS)
		return 0;
	begin_call(st, regs, abi, id);
	st->binds = d->socket == SOCKET_SENDS && st->rec.args[4] && is_unbound(st->rec.args[0]);
	if (!choose(st, d, task))
		return 0;
	if (d->cap_kind[0])
		capture_in(st, d, false);
	if (d->structs & STRUCT_ENTER && has_structs(d, st->rec.args[1]))
		capture_structs(0);
	if (d->flags & SC_CLOSING)
		send_closing(st);
	if (d->flags & SC_CRED)
		st->uid_before = current_uid(task);
	st->rec.start = bpf_ktime_get_ns();
	order_memory(&st->probed);
	st->in_call = 1;
	stack_at_enter(ctx, st, d);
	return 0;
}

/* A call of a 32-bit program on arm64: counted, and what it does to descriptors is unknown. */
static __noinline int lose_other(struct task_struct *task)
{
	if (!is_recorded(task) || !cpu_is_recorded())
		return 0;
	lose_state(FIELD(task, tgid));
	count_drop(DROP_OTHER_ABI);
	return 0;
}

static __always_inline int on_enter(void *ctx, struct pt_regs *regs, long id, bool again)
{
	const struct sc_desc *d;
	struct task_struct *task;
	struct plain_call *p;
	u8 abi;

	if (window != WINDOW_OPEN)
		return 0;
	if (id == NR_IOCTL && (u32)CALL_ARG1(regs) == SECCOMP_IOCTL_NOTIF_ADDFD)
		send_injection(regs);
	task = current_task();
	abi = current_abi(task, regs, id);
	if (abi == ABI_NONE) /* never so on x86 */
		return lose_other(task);
	d = desc_of(abi, id);
	if (!d)
		return 0;
	p = plain_call_of(task);
	if (p) {
		if (preemptible)
			forget_mark(&p->exit_seen);
		/* if the exit of another call was missed, its data is in the state and must go */
		if (d->plain && !p->in_other && (d->plain == PLAIN_ALWAYS || lacks_structs(d, regs, abi))) {
			begin_plain(p, regs, abi, id);
			if (preemptible)
				p->enter_seen = !again;
			return 0;
		}
		p->in_call = 0;
		p->in_other = 1;
		p->has_key = 0;
	}
	begin_other(ctx, task, d, p, again);
	/* from here, as 5.10 adds the stacks of all calls in each other up */
	if (d->also == ALSO_SUBMITS)
		aio_at_enter(task);
	return 0;
}

int BPF_PROG(sys_enter, struct pt_regs *regs, long id)
{
	return is_skipped() ? 0 : on_enter(ctx, regs, id, false);
}

/* After sys_enter: programs run in the order in which they stand here. */
int BPF_PROG(sys_enter_again, struct pt_regs *regs, long id)
{
	if (window != WINDOW_OPEN)
		return 0;
	if (first_ran(current_task(), false)) {
		/* nothing need be recorded of a task that does this; a second run does no harm */
		if (id == NR_IOCTL && (u32)CALL_ARG1(regs) == SECCOMP_IOCTL_NOTIF_ADDFD)
			send_injection(regs);
		return 0;
	}
	return on_enter(ctx, regs, id, true);
}

/*
 * The file that a call in progress is about to remove, by its name in the file
 * system: of another mount's directory, or behind a symbolic link, the call does
 * not know it. ext4 alone has such a tracepoint with a directory entry.
 */
int BPF_PROG(ext4_unlink_enter, struct inode *parent, struct dentry *dentry)
{
	struct task_state *st = current_state(current_task(), false);
	const struct sc_desc *d;
	struct slot *s;
	u32 len, at;

	if (!st || !st->in_call || st->matched != MATCHED)
		return 0;
	d = desc_of(st->rec.abi, st->rec.nr);
	if (!d || d->also != ALSO_REMOVES)
		return 0;
	s = into_slot(st);
	if (!s)
		return 0;
	at = st->data_len;
	len = walk_path(st->slot - 1, SLOT_BYTE(slot, at), 0, number_of(dentry));
	if (!len)
		return 0;
	set_capture(st, st->rec.captures, CAPTURE_NAME0, BYTES_WHOLE, len, len);
	add_inode(st, s, dentry, at);
	return 0;
}

/* Killed while it slept in the call: the value in ret is never used. */
static __always_inline bool being_killed(struct task_struct *task)
{
	return BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_EXIT ||
	       BPF_CORE_READ(task, pending.signal.sig[0]) & SIGKILL_BIT;
}

/*
 * Killed by a seccomp filter (RET_KILL, or RET_TRAP without a handler): the
 * kernel puts the call's number back into the register of its value, and the
 * task dies before it sees that.
 */
#define SIGSYS 31
static __always_inline bool dies_of_seccomp(struct task_struct *task, long id, long ret)
{
	if (ret != id || !(BPF_CORE_READ(task, pending.signal.sig[0]) & 1UL << (SIGSYS - 1)))
		return false;
	return !BPF_CORE_READ(task, sighand, action[SIGSYS - 1].sa.sa_handler);
}

static __always_inline bool interrupted(long ret)
{
	return (ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK) || ret == -EINTR;
}

/*
 * A call that ended after the window may be among those in flight; its record
 * shows which of the two to drop.
 */
static __always_inline void send_late(struct wire_syscall *rec)
{
	rec->captures = 0;
	if (bpf_ringbuf_output(&process_ring, rec, WIRE_PLAIN_SYSCALL, BPF_RB_NO_WAKEUP))
		count_drop(DROP_UNCOUNTED);
}

/* Simple calls, the most frequent ones. */
#define SLOW_NS 1000000
static __always_inline bool is_fast(const struct wire_syscall *rec)
{
	return rec->state == CALL_COMPLETE && rec->ret >= 0 && rec->end - rec->start < SLOW_NS;
}

/* Whether the ring has room for a call of this priority; else `missed` says why not. */
static __always_inline bool has_room(void *ring, const struct wire_syscall *rec, u32 len, u8 *missed)
{
	bool fast = is_fast(rec);

	*missed = LEDGER_OVER_SHARE;
	if (over_share(ring, USE_BULK, rec->id.pid, len, bulk_share, bulk_ring_bytes,
		       fast ? FILLED_FOR_A_PROCESS : FILLED_FOR_SLOW_CALLS))
		return false;
	*missed = LEDGER_LOST;
	return !fast || !is_filled(ring, bulk_ring_bytes, FILLED_FOR_FAST_CALLS);
}

/* Most records: nothing captured. Reserved and filled in place, which is cheaper than output's copy. */
static __always_inline u8 send_plain(const struct wire_syscall *rec)
{
	void *ring = bulk_ring(rec->hdr.cpu);
	struct wire_syscall *to; /* not void: what is not known to be aligned is copied by bytes */
	u8 missed;

	if (!ring)
		return LEDGER_LOST;
	if (!has_room(ring, rec, WIRE_PLAIN_SYSCALL, &missed))
		return missed;
	to = bpf_ringbuf_reserve(ring, WIRE_PLAIN_SYSCALL, 0);
	if (!to)
		return LEDGER_LOST;
	__builtin_memcpy(to, rec, WIRE_PLAIN_SYSCALL);
	bpf_ringbuf_submit(to, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Into this CPU's buffer; false when it is full. Only from sys_exit (maps.bpf.h). */
static __always_inline bool send_buffered(const struct wire_syscall *rec)
{
	u32 cpu = rec->hdr.cpu, at;
	u64 head = 0;
	struct cpu_buffer *b = buffer_with_room(cpu, BUFFER_CALLS, call_buffer_mask, &head);
	struct buffered_call *to;

	if (!b)
		return false;
	at = cpu * (call_buffer_mask + 1) + (head & call_buffer_mask);
	to = bpf_map_lookup_elem(&buffered_calls, &at);
	if (!to)
		return false;
	__builtin_memcpy(to, rec, WIRE_PLAIN_SYSCALL);
	buffer_has_more(b, head);
	return true;
}

/* With captures. */
static __always_inline u8 send_call(struct wire_syscall *rec, u64 len, u64 most)
{
	void *ring = bulk_ring(rec->hdr.cpu);
	u8 missed;

	if (!ring)
		return LEDGER_LOST;
	if (!has_room(ring, rec, len, &missed))
		return missed;
	return bpf_ringbuf_output(ring, rec, at_most(len, most), BPF_RB_NO_WAKEUP) ? LEDGER_LOST : 0;
}

/* Of a call that changes fds. */
static __always_inline u8 send_change(struct wire_syscall *rec, u64 len, u64 most)
{
	return send_state(rec, len, most, rec->id.pid) ? MISSED_STATE : 0;
}

/* Whether it passes the user's filters. */
static __always_inline bool is_wanted(const struct wire_syscall *rec, const struct sc_desc *d)
{
	bool failed = call_returned(rec->state) && rec->ret < 0 && rec->ret >= -MAX_ERRNO;
	u32 err = failed ? -rec->ret : 0;
	bool restarts = err >= ERESTARTSYS && err <= ERESTART_RESTARTBLOCK && err != ENOIOCTLCMD;
	bool is_failure = err && !restarts;
	/* it may have been longer than known */
	bool is_long = rec->state == CALL_BEGAN_BEFORE || rec->state == CALL_LOST_ENTER || !d->min_dur ||
		       rec->end - rec->start > d->min_dur;
	bool has_errno;
	u32 word = err >> 6;

	/* the compiler knows more of the number than verifiers before 6.18, and would leave the mask out */
	barrier_var(word);
	has_errno = filter_errnos && wanted_errnos[word & 63] >> (err & 63) & 1;
	if (any_filter)
		return is_long || (only_failures && is_failure) || has_errno;
	return is_long && (!only_failures || is_failure) && (!filter_errnos || has_errno);
}

/* Whether it is counted rather than stored. */
static __always_inline bool is_filtered(struct wire_syscall *rec, const struct sc_desc *d)
{
	if (!filter_calls || rec->hdr.flags & ~WIRE_NEEDS || is_wanted(rec, d))
		return false;
	if (window == WINDOW_OPEN)
		return true;
	rec->hdr.flags |= WIRE_FILTERED;
	return false;
}

/* Counts a call that is not to be stored; true when that was all. */
static __always_inline bool leave_out(struct task_state *st, const struct sc_desc *d)
{
	if (!is_filtered(&st->rec, d))
		return false;
	st->missed = LEDGER_FILTERED;
	if (changes_state(st, d)) {
		st->rec.hdr.flags = WIRE_UNSELECTED | WIRE_IN_LEDGER;
		return false;
	}
	if (st->slot) {
		slot_put(st->slot - 1);
		st->slot = 0;
	}
	return true;
}

static __always_inline void send_record(struct task_state *st, const struct sc_desc *d)
{
	u64 len = sizeof(st->rec) + st->data_len, most;
	bool state = changes_state(st, d);
	struct slot *s = state_slot(st);
	u8 missed;

	st->rec.hdr.cpu = bpf_get_smp_processor_id();
	if (!s && !st->rec.captures && !state) {
		missed = send_plain(&st->rec);
	} else if (s) {
		s->rec = st->rec;
		most = sizeof(s->rec) + SLOT_DATA;
		missed = state ? send_change(&s->rec, len, most) : send_call(&s->rec, len, most);
		slot_put(st->slot - 1);
		st->slot = 0;
	} else {
		most = sizeof(st->rec) + sizeof(st->data);
		missed = state ? send_change(&st->rec, len, most) : send_call(&st->rec, len, most);
	}
	if (missed && !(st->rec.hdr.flags & WIRE_UNSELECTED))
		st->missed = missed;
}

/* Counts the call without a record; `missed` says why, 0 = it has one. */
static __always_inline void count_missed(struct wire_syscall *rec, u8 missed, u32 uid, struct task_struct *current, bool alone)
{
	if (missed && window != WINDOW_OPEN) {
		send_late(rec);
		return;
	}
	/* exactly those in the ledger: the child's return from a fork is not a call */
	if (missed && missed != LEDGER_FILTERED && rec->state != CALL_CLONE_CHILD)
		count_drop(missed == LEDGER_LOST ? DROP_BULK : missed == MISSED_STATE ? DROP_STATE : DROP_SHARE);
	count_call(rec, current, uid, !missed ? LEDGER_CHECKED : missed == MISSED_STATE ? LEDGER_LOST : missed, alone);
}

static __always_inline bool is_counted(const struct wire_syscall *rec, u8 missed)
{
	return missed || (ledger_check && !(rec->hdr.flags & ~(WIRE_OUR_ROOT | WIRE_NEEDS)));
}

/* At one place at the end of a program: the verifier walks it for every state it can be reached in. */
static __always_inline void count_if_missed(struct task_state *st, const struct sc_desc *d, struct task_struct *current, bool alone)
{
	u8 missed = st->missed;
	u32 uid;

	if (!is_counted(&st->rec, missed))
		return;
	st->missed = 0;
	uid = d->flags & SC_CRED && st->rec.state == CALL_COMPLETE ? st->uid_before : current_uid(current);
	count_missed(&st->rec, missed, uid, current, alone);
}

/* The calls for which the kernel skips the enter tracepoint. */
static __always_inline bool may_be_denied(struct task_struct *task)
{
	if (bpf_core_field_exists(task->seccomp.mode) && BPF_CORE_READ(task, seccomp.mode))
		return true;
	return BPF_CORE_READ(task, ptrace);
}

/* An exit without a seen enter. */
static __always_inline bool begin_without_enter(struct task_state *st, struct pt_regs *regs, struct task_struct *task,
						u64 end)
{
	long id = CALL_NUMBER(regs);
	u8 abi;

	if (id < 0) /* ptrace or seccomp removed the number: there is no name */
		return false;
	abi = abi_of(task, regs, id);
	if (abi == ABI_NONE)
		return false;
	st->rec.start = end;
	if (st->fresh) {
		st->rec.state = CALL_CLONE_CHILD;
	} else if (st->began_before || (!st->seen && !may_be_denied(task))) {
		st->rec.state = CALL_BEGAN_BEFORE;
		st->rec.start = window_open_ts;
	} else if (st->seen && may_be_denied(task)) {
		st->rec.state = CALL_DENIED;
	} else {
		st->rec.state = CALL_LOST_ENTER;
	}
	st->fresh = 0;
	st->began_before = 0;
	st->seen = 1;
	st->binds = 0;
	begin_call(st, regs, abi, id);
	restore_args(st->rec.args, regs);
	st->absent = ~0;
	return true;
}

/* Counts a call the short way that has no record; `missed` says why, 0 = it has one. */
static __noinline int count_plain(struct plain_call *p, u8 missed, bool alone)
{
	struct task_struct *task = current_task();

	p->execs = execs_of(task);
	p->uid = current_uid(task);
	p->has_key = 1;
	count_missed(&p->rec, missed, p->uid, task, alone);
	return 0;
}

static __always_inline void end_plain(struct plain_call *p, u64 end, long ret, bool again)
{
	const struct sc_desc *d = filter_calls ? desc_of(p->rec.abi, p->rec.nr) : NULL;
	u8 missed;

	p->in_call = 0;
	p->rec.end = end;
	p->rec.ret = ret;
	p->rec.state = interrupted(ret) && being_killed(current_task()) ? CALL_KILLED : CALL_COMPLETE;
	if (d && is_filtered(&p->rec, d)) {
		missed = LEDGER_FILTERED;
		if (!again && count_again(p))
			return;
	} else {
		p->rec.hdr.cpu = bpf_get_smp_processor_id();
		/* one program alone writes the buffer */
		missed = !again && send_buffered(&p->rec) ? 0 : send_plain(&p->rec);
	}
	if (is_counted(&p->rec, missed))
		count_plain(p, missed, !again);
}

/*
 * An exec failed, perhaps for want of its interpreter, which the recorder reads
 * in the file: whether a path leads both to the same one. A mount belongs to one
 * mount namespace.
 */
static __always_inline void note_root(struct wire_syscall *rec, struct task_struct *task)
{
	if (rec->ret != -ENOENT && rec->ret != -ENOEXEC && rec->ret != -ENOTDIR)
		return;
	if (BPF_CORE_READ(task, fs, root.mnt) == own_root.mnt && BPF_CORE_READ(task, fs, root.dentry) == own_root.dentry)
		rec->hdr.flags |= WIRE_OUR_ROOT;
}

/*
 * What a call that ended has besides its arguments and its value. Not static, so
 * that the verifier walks it once.
 */
__noinline int add_at_exit(u32 without_enter)
{
	struct task_state *st = current_state(current_task(), false);
	const struct sc_desc *d;
	s64 ret;

	if (!st)
		return 0;
	d = desc_of(st->rec.abi, st->rec.nr);
	if (!d)
		return 0;
	ret = st->rec.ret;
	if (d->flags & SC_EXEC)
		note_root(&st->rec, current_task());
	if (d->cap_kind[0]) {
		/* after a successful exec the addresses are those of another program */
		if (!(d->flags & SC_EXEC && ret >= 0) && (capture_missed(st) || without_enter))
			capture_again(st, d);
		if (ret >= 0)
			capture_at_exit(st, d);
	}
	if ((d->structs & STRUCT_EXIT || (d->structs && st->absent)) && has_structs(d, st->rec.args[1]))
		capture_structs(1);
	if (ret >= 0 && makes_fd(d, st->rec.args[0], st->rec.args[1]))
		add_names(st, d);
	else
		add_socket(st, d);
	return 0;
}

/*
 * The exit of a call the long way. A function, as the enter is, so that the
 * short way has few registers to save, and no stack of its own to find (6.13).
 */
static __noinline int end_other(u64 *ctx, struct task_struct *task, u64 end, long ret, bool again)
{
	struct pt_regs *regs = (void *)ctx[0];
	const struct sc_desc *d;
	struct task_state *st;
	bool without_enter;

	/* once memory is short, no state is made for a call whose enter was counted as lost */
	st = window == WINDOW_OPEN ? recorded_current(task, !any_stateless) : current_state(task, false);
	if (!st || st->armed || st->matched == NOT_MATCHED)
		return 0;
	if (preemptible) {
		forget_mark(&st->enter_seen);
		st->exit_seen = !again;
	}
	without_enter = !st->in_call;
	if (st->in_call) {
		st->in_call = 0;
		st->entered = 0;
		st->rec.state = CALL_COMPLETE;
	} else if (st->entered) {
		/* the filters excluded it when it was entered */
		st->entered = 0;
		return 0;
	} else {
		if (window != WINDOW_OPEN || !begin_without_enter(st, regs, task, end)) {
			st->fresh = 0;
			return 0;
		}
		/* the filters were not tested yet */
		d = desc_of(st->rec.abi, st->rec.nr);
		if (!d || !choose(st, d, task))
			return 0;
	}
	d = desc_of(st->rec.abi, st->rec.nr);
	if (!d)
		return 0;
	st->rec.end = end;
	st->rec.ret = ret;
	/*
	 * Killed while its tracer held it at the enter (syscall_trace_enter()
	 * ends before the tracepoint): the call is skipped, and the ENOSYS is
	 * the register's initial value.
	 */
	if ((interrupted(ret) || (without_enter && ret == -ENOSYS)) && being_killed(task))
		st->rec.state = CALL_KILLED;
	else if (without_enter && dies_of_seccomp(task, CALL_NUMBER(regs), ret))
		st->rec.state = CALL_KILLED;
	if (d->also)
		aio_at_exit(st, d);
	if (leave_out(st, d))
		goto count;
	if (d->cap_kind[0] || d->structs || d->socket || d->flags & (SC_NEW_FD | SC_FD_PAIR | SC_CWD))
		add_at_exit(without_enter);
	stack_at_exit(st, d);
	send_record(st, d);
	if (d->flags & SC_CRED && !ret)
		send_current(TASK_CRED);
count:
	count_if_missed(st, d, task, !again);
	return 0;
}

static __always_inline int on_exit(void *ctx, struct pt_regs *regs, long ret, bool again)
{
	u64 end = bpf_ktime_get_ns();
	struct task_struct *task;
	struct plain_call *p;

	if (window == WINDOW_CLOSED)
		return 0;
	p = last_call(regs);
	if (!p) {
		task = current_task();
		p = plain_call_of(task);
		if (!p || !p->in_call) {
			if (p) {
				p->in_other = 0;
				p->has_key = 0;
			}
			return end_other(ctx, task, end, ret, again);
		}
	}
	if (preemptible) {
		forget_mark(&p->enter_seen);
		p->exit_seen = !again;
	}
	end_plain(p, end, ret, again);
	return 0;
}

int BPF_PROG(sys_exit, struct pt_regs *regs, long ret)
{
	return is_skipped() ? 0 : on_exit(ctx, regs, ret, false);
}

/* After sys_exit, if that was skipped. */
int BPF_PROG(sys_exit_again, struct pt_regs *regs, long ret)
{
	if (window == WINDOW_CLOSED || first_ran(current_task(), true))
		return 0;
	return on_exit(ctx, regs, ret, true);
}

/*
 * After sys_exit, on the same tracepoint: programs run in the order in which
 * they stand here. A program of its own, because the verifier would walk
 * take_stack() for every state in which sys_exit may be by then.
 */
int sys_exit_stack(u64 *ctx)
{
	struct task_state *st = current_state(current_task(), false);

	if (!st || !st->stack_due)
		return 0;
	st->stack_due = 0;
	take_stack(ctx, STACK_SYSCALL, st->rec.start, st->rec.end, 0);
	return 0;
}

#endif
