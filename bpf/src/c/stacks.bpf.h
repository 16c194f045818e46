/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks of events, in a ring of their own. A stack refers to its event by
 * kind, thread and a time (`key`): start of a call, queueing of an I/O, else
 * the time of the event.
 */
#ifndef __SYSTAPE_STACKS_H
#define __SYSTAPE_STACKS_H

#define BPF_F_USER_STACK 256

static __always_inline struct stack_slot *stack_slot_get(u32 *index)
{
	if (bpf_map_pop_elem(&free_stack_slots, index))
		return NULL;
	return bpf_map_lookup_elem(&stack_slots, index);
}

static __always_inline void stack_slot_put(u32 index)
{
	bpf_map_push_elem(&free_stack_slots, &index, BPF_ANY);
}

/*
 * Beginning (highest address) of the stack that sp points into, 0 = not known.
 * The kernel notes the first thread's. Other threads' stacks hold the thread's
 * control block at their top.
 */
static __always_inline u64 stack_top(struct task_struct *task, u64 start, u64 sp)
{
	u64 block = thread_block(task), top = 0;

	if (start > sp && start - sp <= STACK_COPY_MAX * 64ULL)
		top = start;
	if (block > sp && block - sp <= STACK_COPY_MAX * 64ULL && (!top || block < top))
		top = block;
	return top;
}

/*
 * Copies from sp upwards, to the end of the page with the stack's beginning or
 * the limit. Unreadable pages are marked without a branch: the verifier would
 * follow both ways of each.
 */
static __always_inline u32 copy_stack(struct stack_slot *s, copied_t at, u64 sp, u64 top)
{
	copied_t limit = stack_copy_limit, total = 0, step = PAGE_STEP - (sp & (PAGE_STEP - 1));
	u64 want = top ? top - sp : limit;

	if (want > limit) {
		want = limit;
		s->rec.hdr.flags |= STACK_CUT;
	}
	at &= STACK_KERNEL_MASK;
	for (int i = 0; i < STACK_PAGES; i++) {
		copied_t to = total;
		long err;

		if (total >= want)
			break;
		barrier_var(to);
		to &= STACK_COPY_MAX - 1;
		barrier_var(step);
		step = ((step - 1) & (PAGE_STEP - 1)) + 1;
		err = bpf_probe_read_user(&s->data[at + to], step, (void *)(sp + total));
		s->rec.absent |= (u64)err >> 63 << i;
		total += step;
		step = PAGE_STEP;
	}
	return total < want ? total : want;
}

/*
 * Whether the task is in the middle of an exec: it has the old program's
 * registers and the new one's memory.
 */
static __always_inline bool is_replaced(struct task_struct *task, struct mm_struct *mm)
{
	if (!bpf_core_field_exists(task->in_execve) || !BPF_CORE_READ_BITFIELD_PROBED(task, in_execve))
		return false;
	return !BPF_CORE_READ(mm, start_code);
}

static __always_inline bool wants_stack(u32 of)
{
	return stacks_on >> of & 1;
}

/*
 * Sends the stack of the current task. `ts` is the time of the event, so both
 * come in the same order. Flags are the record's.
 */
static __noinline int take_stack(void *ctx, u32 of, u64 key, u64 ts, u16 flags)
{
	struct task_struct *task = current_task();
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct stack_slot *s;
	u32 index, at = 0;
	u64 sp, len; /* 64 bits wide: before 6.12 the verifier forgets what is known of the lower half alone */
	long n;

	if ((u32)BPF_CORE_READ(task, tgid) == own_tgid)
		return 0;
	s = stack_slot_get(&index);
	if (!s) {
		count_drop(of == STACK_SAMPLE ? DROP_SAMPLE : DROP_STACK);
		return 0;
	}
	__builtin_memset(&s->rec, 0, sizeof(s->rec));
	s->rec.hdr.kind = WIRE_STACK;
	s->rec.hdr.flags = flags;
	s->rec.hdr.cpu = bpf_get_smp_processor_id();
	s->rec.ts = ts;
	s->rec.key = key;
	s->rec.of = of;
	fill_who(&s->rec.who, task);
	s->rec.here_pid = process_here(task);
	if (stacks_kernel >> of & 1) {
		n = bpf_get_stack(ctx, s->data, STACK_KERNEL_BYTES, 0);
		if (n > 0)
			at = n & STACK_KERNEL_MASK;
		s->rec.kernel_bytes = at;
	}
	len = at;
	if (stacks_user && mm && !(BPF_CORE_READ(task, flags) & (PF_KTHREAD | PF_IO_WORKER)) &&
	    !is_replaced(task, mm)) {
		bool known = read_regs(s->regs, sizeof(s->regs), task);

		sp = WORDS_SP(s->regs);
		if (known && !WORDS_ARE_NATIVE(s->regs))
			s->rec.hdr.flags |= STACK_COMPAT;
		if (known && WORDS_CALL(s->regs) >= 0)
			s->rec.hdr.flags |= STACK_IN_CALL;
		user_registers(&s->rec, s->regs);
		if (!known) {
			/* nor is it known which code it is */
			s->rec.user = STACK_ADDRESSES;
			s->rec.hdr.flags |= STACK_FAILED;
		} else if (stacks_user == STACK_COPY && !(s->rec.hdr.flags & STACK_COMPAT)) {
			s->rec.user = STACK_COPY;
			s->rec.entry = BPF_CORE_READ(mm, start_stack);
			s->rec.user_bytes = copy_stack(s, at, sp, stack_top(task, s->rec.entry, sp));
			len += s->rec.user_bytes;
		} else {
			s->rec.user = STACK_ADDRESSES;
			n = bpf_get_stack(ctx, &s->data[at & STACK_KERNEL_MASK], STACK_KERNEL_BYTES, BPF_F_USER_STACK);
			if (n > 0) {
				s->rec.user_bytes = n & STACK_KERNEL_MASK;
				len += s->rec.user_bytes;
			} else {
				s->rec.hdr.flags |= STACK_FAILED;
			}
		}
	}
	len += sizeof(s->rec);
	barrier_var(len);
	if (len > sizeof(s->rec) + sizeof(s->data))
		len = sizeof(s->rec) + sizeof(s->data);
	if (bpf_ringbuf_output(&stack_ring, s, len, BPF_RB_NO_WAKEUP))
		count_drop(of == STACK_SAMPLE ? DROP_SAMPLE : DROP_STACK);
	stack_slot_put(index);
	return 0;
}

#define NR_EXIT_32 1
#define NR_EXIT_GROUP_32 252

/* A call that does not return to its caller's program: its stack is gone at the end. */
static __always_inline bool leaves_program(const struct task_state *st, const struct sc_desc *d)
{
	if (d->flags & SC_EXEC)
		return true;
	if (st->rec.abi == ABI_I386)
		return st->rec.nr == NR_EXIT_32 || st->rec.nr == NR_EXIT_GROUP_32;
	return (st->rec.nr & ~X32_BIT) == NR_EXIT || (st->rec.nr & ~X32_BIT) == NR_EXIT_GROUP;
}

/* At the enter of a call whose start was just noted. */
static __always_inline void stack_at_enter(void *ctx, const struct task_state *st, const struct sc_desc *d)
{
	/* whether it is stored is decided at its end */
	if (wants_stack(STACK_SYSCALL) && !filter_calls && !st->rec.hdr.flags && leaves_program(st, d))
		take_stack(ctx, STACK_SYSCALL, st->rec.start, st->rec.start, 0);
}

/* At the exit of a call, before its record is sent. */
static __always_inline void stack_at_exit(struct task_state *st, const struct sc_desc *d)
{
	if (!wants_stack(STACK_SYSCALL) || st->rec.hdr.flags & ~WIRE_NEEDS || leaves_program(st, d))
		return;
	if (st->rec.state != CALL_CLONE_CHILD && st->rec.end - st->rec.start >= stacks_min_dur)
		st->stack_due = 1;
}

/* What a perf event program is given (include/uapi/linux/bpf_perf_event.h). */
struct sample_context {
	u64 regs[SAMPLE_WORDS];
	u64 sample_period;
	u64 addr;
};

int cpu_sample(struct sample_context *ctx)
{
	struct task_struct *current = current_task();
	u64 now;

	if (window != WINDOW_OPEN || !(u32)bpf_get_current_pid_tgid())
		return 0;
	if (!cpu_is_recorded() || !is_recorded(current) || is_helper(current))
		return 0;
	now = bpf_ktime_get_ns();
	take_stack(ctx, STACK_SAMPLE, now, now, WORDS_OF_USER(ctx->regs) ? 0 : STACK_IN_KERNEL);
	return 0;
}

#endif
