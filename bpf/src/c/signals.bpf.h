/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Family "signal": sending, taking, and victims of the OOM killer. */
#ifndef __SYSTAPE_SIGNALS_H
#define __SYSTAPE_SIGNALS_H

/* include/linux/sched/signal.h: pointers that are none */
#define SEND_SIG_NOINFO ((void *)0)
#define SEND_SIG_PRIV ((void *)1)

#define SI_USER 0
#define SIGKILL 9
#define SIGALRM 14
#define SIGCHLD 17
#define SIGCONT 18
#define SIGURG 23
#define SIGVTALRM 26
#define SIGPROF 27
#define SIGWINCH 28
#define SIGIO 29
#define SIG_IGN 1
#define SIGRTMIN 32

#define MM_FILEPAGES 0
#define MM_ANONPAGES 1
#define MM_SHMEMPAGES 3

static __always_inline bool is_common(u32 sig)
{
	return sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH;
}

/*
 * Frequent signals that end no process unless a user sends them: a flood may
 * displace them, but not the others. `spared`: the target does not take the
 * default action, which for most of these is to die.
 */
static __always_inline bool is_everyday(u32 sig, s32 code, bool said, bool spared)
{
	if (is_common(sig))
		return true;
	if (!spared)
		return false;
	if (sig == SIGALRM || sig == SIGVTALRM || sig == SIGPROF)
		return !said || code > SI_USER || code < -1;
	return sig >= SIGRTMIN || sig == SIGIO;
}

/* Whether a signal is not recorded: beside looks only those that end, stop or continue somebody are. */
static __always_inline bool is_left_out(u32 sig, bool everyday)
{
	return is_sparse && everyday && sig != SIGCONT;
}

/*
 * Whether a thread is told to end, since its process ends without a signal (exit_group(),
 * an exec by another thread): get_signal() of kernel/signal.c then says SIGKILL of nobody.
 */
static __always_inline bool ends_with_others(struct task_struct *task, u32 sig, struct kernel_siginfo *info)
{
	return sig == SIGKILL && info == SEND_SIG_NOINFO && !(BPF_CORE_READ(task, signal, group_exit_code) & 0x7f);
}

/*
 * An interrupt's signal, unless it is for the interrupted task: a task checks
 * limits of CPU time itself on its way back from an interrupt.
 */
static __always_inline bool by_interrupt(void *ctx, struct task_struct *current, struct task_struct *target)
{
	if (BPF_CORE_READ(current, tgid) == BPF_CORE_READ(target, tgid))
		return in_interrupt_alone(ctx, current);
	return in_interrupt(ctx, current);
}

static __always_inline void send_signal(struct signal_slot *s, u64 len, bool everyday)
{
	if (len > sizeof(*s))
		len = sizeof(*s);
	if (!everyday && !bpf_ringbuf_output(&process_ring, s, len, BPF_RB_NO_WAKEUP))
		return;
	send_event(s, len, everyday ? DROP_EVERYDAY : DROP_SIGNAL);
}

static __always_inline struct signal_slot *begin_signal(u32 *index, u8 kind, struct task_struct *target)
{
	struct signal_slot *s = (struct signal_slot *)slot_get(index);

	if (!s)
		return NULL;
	__builtin_memset(&s->rec, 0, sizeof(s->rec));
	s->rec.kind = kind;
	s->rec.nr = SNAP_NO_CALL;
	fill_task(&s->rec.target, target, WIRE_TASK, TASK_SEEN | target_flags(target, NULL));
	s->rec.hdr.kind = WIRE_SIGNAL;
	s->rec.hdr.cpu = s->rec.target.hdr.cpu;
	s->rec.ts = s->rec.target.ts;
	return s;
}

/*
 * The parent of a task, into a place among the data of a slot; returns it, 0 = there
 * is none. Not static, with numbers as arguments, so that the verifier walks it once.
 */
__noinline u64 note_parent(u32 index, u32 at, u64 address)
{
	struct task_struct *task = (void *)address, *parent = BPF_CORE_READ(task, real_parent, group_leader);
	struct signal_slot *s = (void *)bpf_map_lookup_elem(&slots, &index);
	u32 off = at * sizeof(struct wire_ancestor) & SLOT_DATA_MASK;
	struct wire_ancestor a = {};

	if (!s || !parent || parent == task)
		return 0;
	a.start = BPF_CORE_READ(parent, start_time);
	a.pid = BPF_CORE_READ(parent, pid);
	if (!a.pid) /* the idle task is everybody's ancestor */
		return 0;
	bpf_core_read(&a.comm, sizeof(a.comm), &parent->comm);
	bpf_probe_read_kernel(&s->data[off], sizeof(a), &a);
	return (u64)parent;
}

/* The parents of a task, the nearest first, as many as fit; returns how many. */
static __always_inline u32 ancestors(u32 index, u32 at, struct task_struct *task)
{
	u64 address = number_of(task);
	u32 n = 0;

	for (; n < MAX_ANCESTORS && address; n++) {
		address = note_parent(index, at + n, address);
		if (!address)
			break;
	}
	return n;
}

/* The call of a task, whose registers are at `at`: the sender's shows what kind of act this is. */
static __always_inline void in_call(struct wire_signal *rec, u64 at, struct task_struct *task)
{
	u64 args[MAX_ARGS] = {};
	long id = -1;

	if (!call_at(task, at, &id, &rec->abi))
		return;
	rec->nr = id;
	args_at(at, args, rec->abi);
	rec->call_args[0] = args[0];
	rec->call_args[1] = args[1];
	rec->call_args[2] = args[2];
	rec->call_args[3] = args[3];
}

/* write, pwrite64, writev: a write to cgroup.kill kills */
static __always_inline bool is_write(const struct wire_signal *rec)
{
	if (rec->abi == ABI_I386)
		return rec->nr == 4 || rec->nr == 181 || rec->nr == 146;
	return (rec->nr & ~X32_BIT) == NR_WRITE || (rec->nr & ~X32_BIT) == NR_PWRITE64 || (rec->nr & ~X32_BIT) == NR_WRITEV;
}

static __always_inline u32 sender_argv(struct signal_slot *s, struct task_struct *task, u32 off)
{
	u64 start = BPF_CORE_READ(task, mm, arg_start), end = BPF_CORE_READ(task, mm, arg_end);
	u32 len;

	s->rec.argv_at = start;
	s->rec.argv_full = end - start;
	len = s->rec.argv_full > SIGNAL_ARGV_MAX ? SIGNAL_ARGV_MAX : s->rec.argv_full;
	len &= SIGNAL_ARGV_MAX;
	off &= SLOT_DATA_MASK;
	if (!len)
		return 0;
	if (bpf_probe_read_user(&s->data[off], len, (void *)start)) {
		s->rec.argv_status = BYTES_NOT_RESIDENT;
		return 0;
	}
	s->rec.argv_status = len < s->rec.argv_full ? BYTES_TRUNCATED : BYTES_WHOLE;
	s->rec.argv_len = len;
	return len;
}

static __always_inline void disposition(struct wire_signal *rec, struct task_struct *target, u32 sig)
{
	u64 bit = 1UL << ((sig - 1) & 63);
	struct sighand_struct *sighand = BPF_CORE_READ(target, sighand);
	void *handler = NULL;

	if (BPF_CORE_READ(target, blocked.sig[0]) & bit)
		rec->hdr.flags |= SIG_BLOCKED;
	if (BPF_CORE_READ(target, pdeath_signal) == sig)
		rec->hdr.flags |= SIG_PDEATHSIG;
	if (!sighand)
		return;
	/* the compiler would step by the element's size in kernel.h, which is only its first member */
	bpf_probe_read_kernel(&handler, sizeof(handler),
			      (char *)sighand + bpf_core_field_offset(struct sighand_struct, action) +
				      ((sig - 1) & 63) * bpf_core_type_size(struct k_sigaction) +
				      bpf_core_field_offset(struct k_sigaction, sa.sa_handler));
	if (handler == (void *)SIG_IGN)
		rec->hdr.flags |= SIG_IGNORED;
	else if (handler)
		rec->hdr.flags |= SIG_HANDLED;
}

static __always_inline void origin(struct wire_signal *rec, struct kernel_siginfo *info)
{
	if (info == SEND_SIG_NOINFO || info == SEND_SIG_PRIV) {
		rec->info = info == SEND_SIG_PRIV ? INFO_PRIV : INFO_NOINFO;
		return;
	}
	rec->info = INFO_SIGINFO;
	rec->code = BPF_CORE_READ(info, si_code);
	rec->err = BPF_CORE_READ(info, si_errno);
	if (rec->code > 0 && rec->sig != SIGCHLD) {
		rec->addr = (u64)BPF_CORE_READ(info, _sifields._sigfault._addr);
		return;
	}
	rec->si_pid = BPF_CORE_READ(info, _sifields._kill._pid);
	rec->si_uid = BPF_CORE_READ(info, _sifields._kill._uid);
}

int signal_generate(u64 *ctx)
{
	u32 sig = ctx[0], index, len = 0;
	struct kernel_siginfo *info = (void *)ctx[1];
	struct task_struct *target = (void *)ctx[2], *current = current_task();
	int group = ctx[3], result = ctx[4];
	struct signal_slot *s;
	bool everyday;
	u64 now = 0;
	u32 flags;

	if (window != WINDOW_OPEN)
		return 0;
	if (is_left_out(sig, is_common(sig)))
		return 0;
	if (!is_recorded(target) && !is_recorded(current))
		return 0;
	if (wants_stack(STACK_SIGNAL) && !is_common(sig) && !by_interrupt(ctx, current, target)) {
		now = bpf_ktime_get_ns();
		take_stack(ctx, STACK_SIGNAL, now, now, 0);
	}
	s = begin_signal(&index, SIGNAL_GENERATE, target);
	if (!s) {
		count_drop(DROP_SIGNAL);
		return 0;
	}
	if (now)
		s->rec.ts = now; /* by which its stack is joined to it */
	s->rec.sig = sig;
	s->rec.result = result;
	s->rec.hdr.flags = group ? SIG_GROUP : 0;
	origin(&s->rec, info);
	disposition(&s->rec, target, sig);
	everyday = is_everyday(sig, s->rec.code, s->rec.info == INFO_SIGINFO,
			       s->rec.hdr.flags & (SIG_BLOCKED | SIG_IGNORED | SIG_HANDLED));
	if (is_left_out(sig, everyday)) {
		slot_put(index);
		return 0;
	}
	fill_task(&s->rec.sender, current, WIRE_TASK, TASK_SEEN | target_flags(current, NULL));
	flags = BPF_CORE_READ(current, flags);
	if (flags & PF_EXITING)
		s->rec.hdr.flags |= SIG_SENDER_EXITING;
	if (flags & PF_KTHREAD)
		s->rec.hdr.flags |= SIG_SENDER_KTHREAD;
	if (by_interrupt(ctx, current, target)) {
		s->rec.hdr.flags |= SIG_INTERRUPT;
	} else if (!(flags & (PF_KTHREAD | PF_IO_WORKER))) {
		u64 at = user_regs_of(current);

		if (at) {
			in_call(&s->rec, at, current);
			if (s->rec.code > 0)
				s->rec.ip = ip_at(at);
		}
	}
	if (!everyday) {
		len = SIGNAL_CHAINS;
		/* fills the rest of shorter chains: a failed read zeroes more of them than stores could */
		bpf_probe_read_kernel(s->data, SIGNAL_CHAINS, NULL);
		if (!(s->rec.hdr.flags & (SIG_INTERRUPT | SIG_SENDER_KTHREAD))) {
			s->rec.sender_ancestors = ancestors(index, 0, current);
			len += sender_argv(s, current, len);
			if (s->rec.nr != SNAP_NO_CALL && is_write(&s->rec)) {
				struct file *file = file_of(s->rec.call_args[0]);
				struct vfsmount *mnt = BPF_CORE_READ(file, f_path.mnt);
				struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
				u32 n = dentry ? walk_path(index, SLOT_BYTE(signal_slot, len), (u64)mnt, (u64)dentry) : 0;

				n &= STRING_MAX - 1;
				s->rec.path_len = n;
				len += n;
			}
		}
		s->rec.target_ancestors = ancestors(index, MAX_ANCESTORS, target);
	}
	send_signal(s, sizeof(s->rec) + (len & SLOT_DATA_MASK), everyday);
	slot_put(index);
	return 0;
}

int signal_deliver(u64 *ctx)
{
	u32 sig = ctx[0], index;
	struct kernel_siginfo *info = (void *)ctx[1];
	struct k_sigaction *ka = (void *)ctx[2];
	struct task_struct *current = current_task();
	struct signal_slot *s;
	bool everyday;

	if (is_left_out(sig, is_common(sig) || ends_with_others(current, sig, info)))
		return 0;
	if (window != WINDOW_OPEN || !is_recorded(current))
		return 0;
	s = begin_signal(&index, SIGNAL_DELIVER, current);
	if (!s) {
		count_drop(DROP_SIGNAL);
		return 0;
	}
	s->rec.sig = sig;
	origin(&s->rec, info);
	s->rec.ip = (u64)BPF_CORE_READ(ka, sa.sa_handler);
	everyday = is_everyday(sig, s->rec.code, s->rec.info == INFO_SIGINFO, s->rec.ip);
	if (!is_left_out(sig, everyday))
		send_signal(s, sizeof(s->rec), everyday);
	slot_put(index);
	return 0;
}

static __always_inline void send_victim(struct signal_slot *s, u32 index, struct task_struct *current)
{
	fill_task(&s->rec.sender, current, WIRE_TASK, TASK_SEEN | target_flags(current, NULL));
	send_signal(s, sizeof(s->rec), false);
	slot_put(index);
}

int mark_victim(u64 *ctx)
{
	struct task_struct *victim = (void *)ctx[0], *current = current_task();
	struct signal_slot *s;
	struct mm_struct *mm;
	u32 index;

	if (window != WINDOW_OPEN || (!is_recorded(victim) && !is_recorded(current)))
		return 0;
	s = begin_signal(&index, SIGNAL_OOM_VICTIM, victim);
	if (!s) {
		count_drop(DROP_SIGNAL);
		return 0;
	}
	mm = BPF_CORE_READ(victim, mm);
	if (mm) {
		s->rec.oom[0] = BPF_CORE_READ(mm, total_vm) * page_bytes;
		s->rec.oom[1] = pages(mm, MM_ANONPAGES);
		s->rec.oom[2] = pages(mm, MM_FILEPAGES);
		s->rec.oom[3] = pages(mm, MM_SHMEMPAGES);
	}
	send_victim(s, index, current);
	return 0;
}

/* Before 6.1 the tracepoint has a pid only. */
int mark_victim_pid(u64 *ctx)
{
	struct task_struct *current = current_task();
	struct signal_slot *s;
	u32 index, pid = ctx[0];

	if (window != WINDOW_OPEN || target_marked)
		return 0;
	s = begin_signal(&index, SIGNAL_OOM_VICTIM, current);
	if (!s) {
		count_drop(DROP_SIGNAL);
		return 0;
	}
	__builtin_memset(&s->rec.target, 0, sizeof(s->rec.target));
	s->rec.target.id.pid = pid;
	s->rec.target.id.tid = pid;
	send_victim(s, index, current);
	return 0;
}

#endif
