/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sending records, and counting those that could not be sent. */
#ifndef __SYSTAPE_EMIT_H
#define __SYSTAPE_EMIT_H

static __always_inline void count_drop(u32 cause)
{
	u32 key = (drop_epoch & 1) * DROP_CAUSES + cause;
	struct drop_count *d = bpf_map_lookup_elem(&drops, &key);
	u64 now;

	if (!d)
		return;
	now = bpf_ktime_get_ns();
	/* One CPU's entry, but a program may be preempted by another: atomic. */
	if (!d->count)
		d->first = now;
	d->last = now;
	__sync_fetch_and_add(&d->count, 1);
}

/* User space looks at the rings every few ms: waking it for a record costs more than the record. */
static __always_inline long send_bulk(void *rec, u64 len)
{
	u32 index = bpf_get_smp_processor_id() & ring_mask;
	void *ring = bpf_map_lookup_elem(&bulk_rings, &index);

	if (!ring)
		return -1;
	return bpf_ringbuf_output(ring, rec, len, BPF_RB_NO_WAKEUP);
}

/* The bulk of all records: nothing captured. Reserved and filled in place, which is cheaper than output's copy. */
static __always_inline void send_plain(const struct wire_syscall *rec)
{
	u32 index = rec->hdr.cpu & ring_mask;
	void *ring = bpf_map_lookup_elem(&bulk_rings, &index);
	void *to = ring ? bpf_ringbuf_reserve(ring, WIRE_PLAIN_SYSCALL, 0) : NULL;

	if (!to) {
		count_drop(DROP_BULK);
		return;
	}
	__builtin_memcpy(to, rec, WIRE_PLAIN_SYSCALL);
	bpf_ringbuf_submit(to, BPF_RB_NO_WAKEUP);
}

static __always_inline void send_call(void *rec, u64 len)
{
	if (send_bulk(rec, len))
		count_drop(DROP_BULK);
}

/* Of the other families; `cause` counts what does not fit. */
static __always_inline void send_event(void *rec, u64 len, u32 cause)
{
	if (send_bulk(rec, len))
		count_drop(cause);
}

/* Records that fd tracking needs have a ring of their own, so that no flood of reads can push them out. */
static __always_inline void send_state(void *rec, u64 len, u32 pid)
{
	u64 now;

	if (!bpf_ringbuf_output(&state_ring, rec, len, BPF_RB_NO_WAKEUP))
		return;
	count_drop(DROP_STATE);
	now = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&lost_state_pids, &pid, &now, BPF_NOEXIST) && !bpf_map_lookup_elem(&lost_state_pids, &pid))
		lost_state_unknown = now;
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

#endif
