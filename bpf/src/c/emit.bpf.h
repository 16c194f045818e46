/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sending records, and counting those that could not be sent. */
#ifndef __SYSTAPE_EMIT_H
#define __SYSTAPE_EMIT_H

/* `from`: the loss may have happened at any time since; 0 = now. */
static __always_inline void count_drop_since(u32 cause, u64 from)
{
	u32 key = (drop_epoch & 1) * DROP_CAUSES + cause;
	struct drop_count *d = bpf_map_lookup_elem(&drops, &key);
	u64 now;

	if (!d)
		return;
	now = bpf_ktime_get_ns();
	/* One CPU's entry, but a program may be preempted by another: atomic. */
	if (!d->count) {
		d->first = from ?: now;
		if (cause != DROP_OWN)
			__sync_fetch_and_add(&new_drops, 1);
	} else if (from && from < d->first) {
		d->first = from;
	}
	d->last = now;
	__sync_fetch_and_add(&d->count, 1);
}

static __always_inline void count_drop(u32 cause)
{
	count_drop_since(cause, 0);
}

static __always_inline void *bulk_ring(u32 cpu)
{
	u32 index = cpu & ring_mask;

	return bpf_map_lookup_elem(&bulk_rings, &index);
}

/* Whether more than `eighths` of the ring's `bytes` are taken: then low-priority records are dropped. */
static __always_inline bool is_filled(void *ring, u64 bytes, u32 eighths)
{
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > bytes / 8 * eighths;
}
#define FILLED_FOR_A_PROCESS 4
#define FILLED_FOR_FAST_CALLS 6
#define FILLED_FOR_SCHED 7
#define FILLED_FOR_SLOW_CALLS 7 /* of a process over its quota */

/* User space polls the rings every few ms, because a wake-up costs more than a record. */
static __always_inline long send_bulk(void *rec, u64 len)
{
	void *ring = bulk_ring(bpf_get_smp_processor_id());

	if (!ring)
		return -1;
	return bpf_ringbuf_output(ring, rec, len, BPF_RB_NO_WAKEUP);
}

/* Of the other families; `cause` counts what does not fit. */
static __always_inline void send_event(void *rec, u64 len, u32 cause)
{
	if (send_bulk(rec, len))
		count_drop(cause);
}

/* This CPU's buffer of a kind (maps.bpf.h), and its number of records written; NULL when it is full. */
static __always_inline struct cpu_buffer *buffer_with_room(u32 cpu, u32 kind, u32 mask, u64 *head)
{
	u32 key = cpu * BUFFER_KINDS + kind;
	struct cpu_buffer *b = bpf_map_lookup_elem(&cpu_buffers, &key);

	if (!b)
		return NULL;
	*head = b->head;
	return *head - *(volatile u64 *)&b->tail > mask ? NULL : b;
}

/* The record at `head` is complete. */
static __always_inline void buffer_has_more(struct cpu_buffer *b, u64 head)
{
	store_release(&b->head, head + 1);
}

/* Into the ring. */
static __always_inline void send_sched_bulk(void *rec, u64 len)
{
	void *ring = bulk_ring(bpf_get_smp_processor_id());

	if (!ring || is_filled(ring, bulk_ring_bytes, FILLED_FOR_SCHED) ||
	    bpf_ringbuf_output(ring, rec, len, BPF_RB_NO_WAKEUP))
		count_drop(DROP_SCHED);
}

/* A switch or a wake-up; only from the one program that writes the buffer of this kind. */
static __always_inline void send_sched(const void *rec, u32 cpu, u32 kind)
{
	u64 head = 0;
	struct cpu_buffer *b = buffer_with_room(cpu, kind, sched_buffer_mask, &head);
	struct buffered_sched *to = NULL;
	u32 at;

	if (b) {
		at = (cpu * 2 + (kind == BUFFER_WAKEUPS)) * (sched_buffer_mask + 1) + (head & sched_buffer_mask);
		to = bpf_map_lookup_elem(&buffered_sched, &at);
	}
	if (b && to) {
		__builtin_memcpy(to, rec, sizeof(*to));
		buffer_has_more(b, head);
	} else {
		send_sched_bulk((void *)rec, sizeof(*to));
	}
}

/*
 * Whether a process is over its quota: it has put so much into a ring since the
 * last poll that, with so many `eighths` of the ring taken, the rest is left to
 * others. `use` distinguishes the rings.
 */
static __always_inline bool over_share(void *ring, u32 use, u32 pid, u32 len, u64 share, u64 bytes, u32 eighths)
{
	u32 key = use * RING_USES + (pid & (RING_USES - 1));
	struct ring_use *u = bpf_map_lookup_elem(&ring_uses, &key);

	if (!u)
		return false;
	if (u->pid != pid || u->look != looks) {
		u->pid = pid;
		u->look = looks;
		u->bytes = 0;
	}
	u->bytes += len + 8;
	return u->bytes > share && is_filled(ring, bytes, eighths);
}
#define USE_BULK 0
#define USE_STATE 1

/*
 * A length for the next helper. Old verifiers lose earlier bounds when the
 * value goes through the stack.
 */
static __always_inline u64 at_most(u64 len, u64 most)
{
	barrier_var(len);
	return len > most ? most : len;
}

/* Descriptors of a process changed, without a record of the change. */
static __always_inline void lose_state(u32 pid)
{
	u64 now = bpf_ktime_get_ns();

	if (!bpf_map_update_elem(&lost_state_pids, &pid, &now, BPF_NOEXIST)) {
		__sync_fetch_and_add(&new_drops, 1);
	} else if (!bpf_map_lookup_elem(&lost_state_pids, &pid) && !lost_state_unknown) {
		lost_state_unknown = now;
		__sync_fetch_and_add(&new_drops, 1);
	}
}

/*
 * Records for fd tracking have a ring of their own, so that no flood of reads
 * displaces them. True: the record was lost. Then the names of the process's
 * fds are unknown. The caller knows whether a call is missing too, and counts
 * it.
 */
static __always_inline bool send_state(void *rec, u64 len, u64 most, u32 pid)
{
	if (!over_share(&state_ring, USE_STATE, pid, len, state_share, state_ring_bytes, FILLED_FOR_A_PROCESS) &&
	    !bpf_ringbuf_output(&state_ring, rec, at_most(len, most), BPF_RB_NO_WAKEUP))
		return false;
	lose_state(pid);
	return true;
}

static __always_inline void send_process(void *rec, u64 len)
{
	if (!bpf_ringbuf_output(&process_ring, rec, len, BPF_RB_NO_WAKEUP))
		return;
	if (send_bulk(rec, len))
		count_drop(DROP_PROC);
}

/* ---- scratch slots */

static __always_inline struct slot *slot_get(u32 *index)
{
	struct slot *s;

	if (bpf_map_pop_elem(&free_slots, index)) {
		count_drop(DROP_NO_SCRATCH);
		return NULL;
	}
	s = bpf_map_lookup_elem(&slots, index);
	return s;
}

static __always_inline void slot_put(u32 index)
{
	bpf_map_push_elem(&free_slots, &index, BPF_ANY);
}

/* A descriptor may be closed from now on by the call `nr`; whose call, and its arguments, are the caller's. */
static __always_inline void begin_closing(struct wire_closing *c, u32 nr, u8 abi)
{
	c->hdr.kind = WIRE_CLOSING;
	c->hdr.cpu = bpf_get_smp_processor_id();
	c->ts = bpf_ktime_get_ns();
	c->nr = nr;
	c->abi = abi;
}

#endif
