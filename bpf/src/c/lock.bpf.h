/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Family "lock": waits for locks of the kernel, by the tracepoints of their slow
 * paths (5.19).
 *
 * The end of a wait comes when this CPU holds the lock already
 * (queued_spin_lock_slowpath in kernel/locking/qspinlock.c), and the lock may be
 * one that BPF takes for us: of a ring, a queue of free slots, a bucket of a hash
 * table. To take it again would wait for ever. So these programs take no lock at
 * all: they write to perf's buffer of the CPU, whose head takes nesting without
 * one, and keep nothing of a wait. The recorder pairs beginnings with ends.
 *
 * A task's state, by which marked targets are known, is the exception. Its storage
 * has a guard of the kernel's: what comes inside it finds no state, and is not
 * recorded. Only waits for that storage's own locks are such.
 */
#ifndef __SYSTAPE_LOCK_H
#define __SYSTAPE_LOCK_H

/* A wait for a lock of the kernel begins or ends. */
struct wire_lock {
	struct wire_row row; /* hdr.flags: enum lock_flags */
	u64 address; /* of the lock */
	u32 value;   /* enum lock_kind of a beginning; of an end what the wait returned: 0, or a negative errno */
	u32 losses;  /* records of this task, or of others with the same number modulo LOCK_LOSSES, that were lost so far */
};

extern void bpf_preempt_disable(void) __ksym __weak; /* 6.10 */
extern void bpf_preempt_enable(void) __ksym __weak;

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, u32);
	__type(value, u32);
} lock_events SEC(".maps");

/* By tid; see wire_lock. */
#define LOCK_LOSSES 1024
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LOCK_LOSSES);
	__type(key, u32);
	__type(value, u32);
} lock_losses SEC(".maps");

struct lock_buffer {
	u64 busy; /* not sent: a program of this CPU writes the rest */
	struct wire_lock rec;
	struct wire_stack stack; /* with its frames behind it, if it is sent */
	u8 data[STACK_KERNEL_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lock_buffer);
} lock_buffers SEC(".maps");

#define ENOSPC 28 /* include/uapi/asm-generic/errno-base.h */

static __always_inline u32 losses_of(u32 tid, bool one_more)
{
	u32 key = tid & (LOCK_LOSSES - 1), *losses = bpf_map_lookup_elem(&lock_losses, &key);

	if (!losses)
		return 0;
	if (one_more)
		__sync_fetch_and_add(losses, 1);
	return *(volatile u32 *)losses;
}

/* The record that the next pair must not span is counted before anything else of the task. */
static __always_inline void lose_lock(u32 tid, enum drop_cause cause)
{
	losses_of(tid, true);
	count_drop(cause);
}

static __always_inline u16 whose_lock(struct task_struct *current, u64 address)
{
	u64 mm = (u64)FIELD(current, mm), sighand = (u64)FIELD(current, sighand);

	if (mm && address == mm + bpf_core_field_offset(struct mm_struct, mmap_lock))
		return LOCK_OF_MEMORY;
	if (sighand && address == sighand + bpf_core_field_offset(struct sighand_struct, siglock))
		return LOCK_OF_SIGNALS;
	return 0;
}

static __always_inline void send_lock(u64 *ctx, struct lock_buffer *b, struct task_struct *current, u16 flags)
{
	struct wire_lock *rec = &b->rec;
	u64 len = 0;
	long n;

	rec->row.hdr.kind = WIRE_LOCK;
	rec->row.hdr.flags = flags;
	rec->row.hdr.cpu = bpf_get_smp_processor_id();
	rec->row.ts = bpf_ktime_get_ns();
	fill_who(&rec->row.who, current);
	rec->address = CTX_ARG(ctx, 0);
	rec->value = CTX_ARG(ctx, 1);
	rec->losses = losses_of(rec->row.who.tid, false);
	if (!(flags & LOCK_ENDED)) {
		rec->row.hdr.flags |= whose_lock(current, rec->address);
		/* what waits is in the kernel: these frames are taken whenever stacks are */
		if (wants_stack(STACK_ROW)) {
			__builtin_memset(&b->stack, 0, sizeof(b->stack));
			b->stack.hdr.kind = WIRE_STACK;
			b->stack.hdr.cpu = rec->row.hdr.cpu;
			b->stack.ts = rec->row.ts;
			b->stack.key = rec->row.ts;
			b->stack.of = STACK_ROW;
			b->stack.who = rec->row.who;
			n = bpf_get_stack(ctx, b->data, sizeof(b->data), 0);
			if (n > 0)
				len = n & STACK_KERNEL_MASK;
			b->stack.kernel_bytes = len;
			len += sizeof(b->stack);
			rec->row.hdr.flags |= LOCK_HAS_STACK;
		}
	}
	len = at_most(len + sizeof(*rec), sizeof(*rec) + sizeof(b->stack) + sizeof(b->data));
	n = bpf_perf_event_output(ctx, &lock_events, BPF_F_CURRENT_CPU, rec, len);
	if (n)
		lose_lock(rec->row.who.tid, n == -ENOSPC ? DROP_LOCK : DROP_LOCK_BUSY);
}

static __always_inline int lock_event(u64 *ctx, u16 flags)
{
	struct task_struct *current = current_task();
	struct lock_buffer *b;
	u32 zero = 0;

	if (!tracepoint_is_recorded(current))
		return 0;
	/* an interrupt that comes in between waits for nothing that we hold, but finds the buffer in use */
	if (preemptible && bpf_preempt_disable)
		bpf_preempt_disable();
	b = bpf_map_lookup_elem(&lock_buffers, &zero);
	if (b && !b->busy) {
		b->busy = 1;
		barrier();
		send_lock(ctx, b, current, flags);
		barrier();
		b->busy = 0;
	} else {
		lose_lock(FIELD(current, pid), DROP_LOCK_BUSY);
	}
	if (preemptible && bpf_preempt_disable)
		bpf_preempt_enable();
	return 0;
}

int lock_begin(u64 *ctx)
{
	return lock_event(ctx, 0);
}

int lock_end(u64 *ctx)
{
	return lock_event(ctx, LOCK_ENDED);
}

#endif
