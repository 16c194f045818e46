/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What families whose events are rows of a table have in common. A program
 * fills a struct that begins with a wire_row:
 *
 *	struct wire_x x = {};
 *
 *	if (!begin_row(&x.row, WIRE_X, 0))
 *		return 0;
 *	x.size = ...;
 *	send_row(ctx, &x.row, sizeof(x), DROP_X);
 */
#ifndef __SYSTAPE_ROWS_H
#define __SYSTAPE_ROWS_H

/* Rows are dropped before calls: they get only free room. */
#define FILLED_FOR_ROWS 6

/* An event of the current task; false when it is not recorded. */
static __always_inline bool begin_row(struct wire_row *r, u16 kind, u16 flags)
{
	struct task_struct *current = current_task();

	if (window != WINDOW_OPEN || !cpu_is_recorded() || !is_recorded(current))
		return false;
	r->hdr.kind = kind;
	r->hdr.flags = flags;
	r->hdr.cpu = bpf_get_smp_processor_id();
	r->ts = bpf_ktime_get_ns();
	fill_who(&r->who, current);
	return true;
}

/* Sends `len` bytes from `r` on, and the task's stack; `cause` counts losses. */
static __always_inline void send_row(void *ctx, struct wire_row *r, u64 len, u32 cause)
{
	void *ring = bulk_ring(r->hdr.cpu);

	if (!ring || is_filled(ring, bulk_ring_bytes, FILLED_FOR_ROWS)) {
		count_drop(cause);
		return;
	}
	if (wants_stack(STACK_ROW))
		take_stack(ctx, STACK_ROW, r->ts, r->ts, 0);
	if (bpf_ringbuf_output(ring, r, len, BPF_RB_NO_WAKEUP))
		count_drop(cause);
}

#endif
