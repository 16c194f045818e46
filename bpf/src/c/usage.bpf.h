/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What processes and threads use: all of it when they end; the memory of processes when a walk sees them. */
#ifndef __SYSTAPE_USAGE_H
#define __SYSTAPE_USAGE_H

/* Threads of a process that end together: more are not counted. */
#define LAST_THREADS 64

/* The counters of kernel.h have one member each: the kernel has their size. */
static __always_inline u64 pages(struct mm_struct *mm, u32 which)
{
	struct mm_struct___counts *old = (void *)mm;
	s64 n = 0;

	if (bpf_core_field_exists(old->rss_stat.count))
		n = BPF_CORE_READ(old, rss_stat.count[which].counter);
	else
		bpf_probe_read_kernel(&n, sizeof(n),
				      (char *)mm + bpf_core_field_offset(struct mm_struct, rss_stat) +
					      which * bpf_core_type_size(struct percpu_counter) +
					      bpf_core_field_offset(struct percpu_counter, count));
	return n > 0 ? (u64)n * page_bytes : 0;
}

/* A function of its own, so that no relocation is moved in front of the condition that it exists (the compiler does in a loop). */
static __noinline u64 kind_of_rss(u64 address, u32 which)
{
	return pages((void *)address, which);
}

static __always_inline void fill_rss(struct wire_snap *snap, struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	/* a process may live on without its first thread */
	if (!mm || (BPF_CORE_READ(task, group_leader) != task && BPF_CORE_READ(task, group_leader, mm)))
		return;
	snap->has_rss = 1;
	for (int i = 0; i < RSS_KINDS; i++)
		snap->rss[i] = kind_of_rss((u64)mm, i);
}

/* Adds what `from`, a task or the signal struct with its dead threads, has of `field`. */
#define ADD(to, from, field) ((to) += BPF_CORE_READ(from, field))

#define ADD_COUNTS(u, from)                                                     \
	({                                                                      \
		ADD((u)->min_flt, from, min_flt);                               \
		ADD((u)->maj_flt, from, maj_flt);                               \
		ADD((u)->utime, from, utime);                                   \
		ADD((u)->stime, from, stime);                                   \
		ADD((u)->nvcsw, from, nvcsw);                                   \
		ADD((u)->nivcsw, from, nivcsw);                                 \
		if (bpf_core_field_exists((from)->ioac.rchar)) {                \
			ADD((u)->rchar, from, ioac.rchar);                      \
			ADD((u)->wchar, from, ioac.wchar);                      \
			ADD((u)->syscr, from, ioac.syscr);                      \
			ADD((u)->syscw, from, ioac.syscw);                      \
		}                                                               \
		if (bpf_core_field_exists((from)->ioac.read_bytes)) {           \
			ADD((u)->read_bytes, from, ioac.read_bytes);            \
			ADD((u)->write_bytes, from, ioac.write_bytes);          \
			ADD((u)->cancelled_write_bytes, from, ioac.cancelled_write_bytes); \
		}                                                               \
	})

/*
 * Adds what a thread has to the sums in a slot; returns the entry of the next one in
 * the list of its process. Not static, with numbers as arguments, so that the
 * verifier walks it once.
 */
__noinline u64 add_thread(u32 index, u64 at)
{
	struct task_struct *task = (void *)(at - bpf_core_field_offset(struct task_struct, thread_node));
	struct wire_usage *u = (void *)bpf_map_lookup_elem(&slots, &index);
	u64 read, written;

	if (!u)
		return 0;
	read = u->read_bytes;
	written = u->write_bytes;
	ADD_COUNTS(u, task);
	ADD(u->runtime, task, se.sum_exec_runtime);
	u->inblock += (u->read_bytes - read) >> 9;
	u->oublock += (u->write_bytes - written) >> 9;
	return (u64)BPF_CORE_READ(task, thread_node.next);
}

/* The sums of a process at one moment, in the slot of this index; false when a thread was released meanwhile. */
static __always_inline bool sum_usage(struct wire_usage *u, u32 index, struct signal_struct *sig)
{
	u32 before = BPF_CORE_READ(sig, stats_lock.seqcount.seqcount.sequence);
	u64 end = (u64)sig + bpf_core_field_offset(struct signal_struct, thread_head);
	u64 at = (u64)BPF_CORE_READ(sig, thread_head.next);
	int left = BPF_CORE_READ(sig, nr_threads);

	__builtin_memset(u, 0, sizeof(*u));
	ADD_COUNTS(u, sig);
	ADD(u->inblock, sig, inblock);
	ADD(u->oublock, sig, oublock);
	ADD(u->runtime, sig, sum_sched_runtime);
	u->maxrss = BPF_CORE_READ(sig, maxrss) * page_bytes;
	for (int i = 0; i < LAST_THREADS && at && at != end; i++, left--)
		at = add_thread(index, at);
	u->uncounted = left > 0 ? left : 0;
	return !(before & 1) && before == BPF_CORE_READ(sig, stats_lock.seqcount.seqcount.sequence);
}

/* The process of `task` has, or had, other threads: what one that was released used is in the signal struct. */
static __always_inline bool has_threads(struct task_struct *task)
{
	return BPF_CORE_READ(task, signal, nr_threads) > 1 || BPF_CORE_READ(task, signal, sum_sched_runtime);
}

/*
 * `task`, a thread that ends at `e`, or with `whole` its process, of which it is the last. In a slot, because the
 * stack has no room.
 */
static __noinline int send_usage(const struct wire_exit *e, struct task_struct *task, bool whole)
{
	struct signal_struct *sig = BPF_CORE_READ(task, signal);
	struct wire_usage *u;
	u32 index;

	if (!whole && no_thread_usage)
		return 0;
	u = (void *)slot_get(&index);
	if (!u)
		return 0;
	if (!whole) {
		__builtin_memset(u, 0, sizeof(*u));
		ADD_COUNTS(u, task);
		ADD(u->runtime, task, se.sum_exec_runtime);
		u->hdr.flags = USAGE_THREAD;
	} else if (!sum_usage(u, index, sig) && !sum_usage(u, index, sig) && !u->uncounted) {
		/* twice if a thread was being released; no loop: 5.10 refuses one that begins behind a call */
		u->uncounted = 1;
	}
	u->hdr.kind = WIRE_USAGE;
	u->hdr.cpu = e->hdr.cpu;
	u->id = e->id;
	u->ts = e->ts;
	if (!bpf_core_field_exists(task->ioac.rchar))
		u->hdr.flags |= USAGE_NO_CALLS;
	if (!bpf_core_field_exists(task->ioac.read_bytes))
		u->hdr.flags |= USAGE_NO_STORAGE;
	send_process(u, sizeof(*u));
	slot_put(index);
	return 0;
}

#endif
