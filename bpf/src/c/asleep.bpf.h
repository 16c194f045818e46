/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks of tasks that sleep when the recording begins. They have no event, so
 * two iterators fetch them. walk_sleepers takes what needs no lock (the
 * kernel's stack), so it never waits. copy_sleepers also copies the user's
 * stack. That takes the mmap lock and may read pages, so it may wait for long.
 */
#ifndef __SYSTAPE_ASLEEP_H
#define __SYSTAPE_ASLEEP_H

#define ROOM_WALK 0
#define ROOM_COPY 1

/* Bits of rw_semaphore.count (kernel/locking/rwsem.c) */
#define RWSEM_WRITER_LOCKED 1
#define RWSEM_FLAG_WAITERS 2

/* How often a task has left its CPU: if unchanged, it slept all the time. */
static __always_inline u64 times_left(struct task_struct *task)
{
	return (u64)BPF_CORE_READ(task, nvcsw) + BPF_CORE_READ(task, nivcsw);
}

static __always_inline bool has_user_part(struct task_struct *task, struct mm_struct *mm)
{
	return mm && !(BPF_CORE_READ(task, flags) & (PF_KTHREAD | PF_IO_WORKER)) && !is_replaced(task, mm);
}

/*
 * Whether a reader of this memory would have to wait, because a task changes
 * the mappings or waits to. That may still begin right after this check.
 */
static __always_inline bool is_locked(struct mm_struct *mm)
{
	/* PREEMPT_RT: not known, and a wait may never end */
	if (!bpf_core_field_exists(mm->mmap_lock.count))
		return true;
	return BPF_CORE_READ(mm, mmap_lock.count.counter) & (RWSEM_WRITER_LOCKED | RWSEM_FLAG_WAITERS);
}

/* The record of a sleeping task with its kernel stack; NULL: not to be sent. */
static __always_inline struct sleeper *begin_sleeper(struct task_struct *task, u32 room, bool rcu)
{
	struct sleeper *s;
	long n;

	if (!sleeps(task) || (u32)BPF_CORE_READ(task, tgid) == own_tgid || !is_recorded_in(task, rcu))
		return NULL;
	s = bpf_map_lookup_elem(&sleepers, &room);
	if (!s)
		return NULL;
	__builtin_memset(&s->rec, 0, sizeof(s->rec));
	s->rec.hdr.kind = WIRE_STACK;
	s->rec.hdr.cpu = task_cpu(task, true);
	s->rec.ts = bpf_ktime_get_ns();
	s->rec.key = s->rec.ts;
	s->rec.of = STACK_ASLEEP;
	s->rec.state = state_letter(run_state(task));
	fill_who(&s->rec.who, task);
	s->rec.here_pid = process_here(task);
	n = bpf_get_task_stack(task, s->data, STACK_KERNEL_BYTES, 0);
	if (n > 0)
		s->rec.kernel_bytes = n & STACK_KERNEL_MASK;
	return s;
}

static __always_inline void send_sleeper(struct bpf_iter__task *ctx, struct sleeper *s)
{
	u64 len = sizeof(s->rec) + s->rec.kernel_bytes + s->rec.user_bytes;

	barrier_var(len);
	if (len > sizeof(s->rec) + sizeof(s->data))
		len = sizeof(s->rec) + sizeof(s->data);
	bpf_seq_write(ctx->meta->seq, s, len);
}

int walk_sleepers(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sleeper *s;

	if (!task)
		return 0;
	s = begin_sleeper(task, ROOM_WALK, true);
	if (!s)
		return 0;
	if (stacks_user && has_user_part(task, BPF_CORE_READ(task, mm)))
		s->rec.hdr.flags |= STACK_UNREAD;
	send_sleeper(ctx, s);
	return 0;
}

/* Like copy_stack, for a task that is not running. */
static __always_inline u32 copy_sleeper(struct sleeper *s, struct task_struct *task, copied_t at, u64 sp, u64 top)
{
	copied_t total = 0, step = PAGE_STEP - (sp & (PAGE_STEP - 1));
	u64 want = top ? top - sp : SLEEPER_COPY;

	if (!top || want > SLEEPER_COPY) {
		want = SLEEPER_COPY;
		s->rec.hdr.flags |= STACK_CUT;
	}
	at &= STACK_KERNEL_MASK;
	for (int i = 0; i < SLEEPER_PAGES; i++) {
		copied_t to = total;
		long err;

		if (total >= want)
			break;
		barrier_var(to);
		to &= SLEEPER_PAGES * PAGE_STEP - 1;
		barrier_var(step);
		step = ((step - 1) & (PAGE_STEP - 1)) + 1;
		/* all or nothing, so page by page */
		err = bpf_copy_from_user_task(&s->data[at + to], step, (void *)(sp + total), task, 0);
		s->rec.absent |= (u64)err >> 63 << i;
		total += step;
		step = PAGE_STEP;
	}
	return total < want ? total : want;
}

static __always_inline void user_part(struct sleeper *s, struct task_struct *task, struct mm_struct *mm)
{
	u64 sp;

	if (is_locked(mm)) {
		s->rec.hdr.flags |= STACK_LOCKED;
		return;
	}
	if (!read_regs(s->regs, sizeof(s->regs), task)) {
		s->rec.hdr.flags |= STACK_UNREAD;
		return;
	}
	sp = WORDS_SP(s->regs);
	if (WORDS_CALL(s->regs) >= 0)
		s->rec.hdr.flags |= STACK_IN_CALL;
	user_registers(&s->rec, s->regs);
	if (!WORDS_ARE_NATIVE(s->regs)) {
		s->rec.user = STACK_ADDRESSES;
		s->rec.hdr.flags |= STACK_COMPAT | STACK_FAILED;
		return;
	}
	s->rec.user = STACK_COPY;
	s->rec.entry = BPF_CORE_READ(mm, start_stack);
	s->rec.user_bytes = copy_sleeper(s, task, s->rec.kernel_bytes, sp, stack_top(task, s->rec.entry, sp));
}

/* 5.18 */
int copy_sleepers(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct mm_struct *mm;
	struct sleeper *s;
	u64 left;

	if (!task)
		return 0;
	left = times_left(task);
	s = begin_sleeper(task, ROOM_COPY, false);
	if (!s)
		return 0;
	mm = BPF_CORE_READ(task, mm);
	if (has_user_part(task, mm))
		user_part(s, task, mm);
	/* a task that ran meanwhile is no sleeper, and its copy mixes two moments */
	if (sleeps(task) && times_left(task) == left)
		send_sleeper(ctx, s);
	return 0;
}

#endif
