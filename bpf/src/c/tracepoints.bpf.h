/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any tracepoint, by one program that is attached to each. The kernel gives it
 * the record that perf and ftrace would have, as the tracepoint's format file in
 * tracefs describes it; only the first eight bytes, common to all, are a pointer
 * (perf_trace_##call in include/trace/perf.h). The recorder, which has read that
 * file, passes in the cookie: the number of the table, whether there is a filter,
 * the size of the fixed part, and the places of up to four fields __data_loc, each
 * a word with place (low half) and size of what lies behind the fixed part.
 *
 * Programs of this type are not run inside one another on a CPU
 * (bpf_prog_active), so one buffer a CPU is enough, and a tracepoint that this
 * program comes through itself (of locks, of memory) leads to no second run.
 */
#ifndef __SYSTAPE_TRACEPOINTS_H
#define __SYSTAPE_TRACEPOINTS_H

#define TRACEPOINT_FILTERED 0x8000 /* in the cookie, above the number */

struct tracepoint_buffer {
	struct wire_tracepoint rec;
	u8 data[TRACEPOINT_DATA];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tracepoint_buffer);
} tracepoint_buffers SEC(".maps");

/* Filters, by the numbers of their tables. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tracepoint_filter);
} tracepoint_filters SEC(".maps");

/* Whether a filter lets the record in the buffer through. */
static __always_inline bool passes_filter(const u8 *data, u32 number)
{
	const struct tracepoint_filter *f = bpf_map_lookup_elem(&tracepoint_filters, &number);
	const struct filter_step *s;
	u32 next;
	u64 at;

	if (!f)
		return true;
	next = f->first;
	for (u32 i = 0; i < FILTER_STEPS; i++) {
		barrier_var(next);
		if (next >= FILTER_STEPS)
			break;
		s = &f->steps[next];
		at = at_most(s->at, TRACEPOINT_DATA - sizeof(u64));
		next = (((*(const u64 *)&data[at] & s->mask) - s->low) & s->wide) <= s->span ? s->yes : s->no;
	}
	return next == FILTER_PASS;
}

/* The end of the record, if the i-th field __data_loc ends it; else `end`. */
static __always_inline u32 tracepoint_end(void *ctx, u64 cookie, u32 i, u32 end)
{
	u32 at = (cookie >> (32 + 8 * i) & 0xff) * 4, loc = 0;

	if (!at || bpf_probe_read_kernel(&loc, sizeof(loc), ctx + at))
		return end;
	loc = (loc & 0xffff) + (loc >> 16);
	return loc > end ? loc : end;
}

/* Idle tasks too, when everything is recorded: interrupts come while they run. */
static __always_inline bool tracepoint_is_recorded(struct task_struct *current)
{
	if (window != WINDOW_OPEN || !cpu_is_recorded())
		return false;
	return (records_everything() && !FIELD(current, pid)) || is_recorded(current);
}

int any_tracepoint(void *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx), len;
	struct task_struct *current = current_task();
	u32 zero = 0, ring_index = tracepoint_ring;
	struct tracepoint_buffer *b;
	void *ring;

	/* 1 leaves the event to perf's users; 0 would take it from them */
	if (!tracepoint_is_recorded(current))
		return 1;
	b = bpf_map_lookup_elem(&tracepoint_buffers, &zero);
	ring = bpf_map_lookup_elem(&bulk_rings, &ring_index);
	if (!b || !ring) {
		count_drop(DROP_TRACEPOINT);
		return 1;
	}
	len = cookie >> 16 & 0xffff;
	len = tracepoint_end(ctx, cookie, 0, len);
	len = tracepoint_end(ctx, cookie, 1, len);
	len = tracepoint_end(ctx, cookie, 2, len);
	len = tracepoint_end(ctx, cookie, 3, len);
	len = at_most(len, TRACEPOINT_DATA);
	if (bpf_probe_read_kernel(b->data, len, ctx)) {
		count_drop(DROP_TRACEPOINT);
		return 1;
	}
	/* in place of a pointer of the kernel's, and where format files have common_pid */
	*(u32 *)&b->data[0] = bpf_get_smp_processor_id();
	*(u32 *)&b->data[4] = FIELD(current, pid);
	if (cookie & TRACEPOINT_FILTERED && !passes_filter(b->data, cookie & (TRACEPOINT_FILTERED - 1)))
		return 1;
	b->rec.row.hdr.kind = WIRE_TRACEPOINT;
	b->rec.row.hdr.flags = cookie & (TRACEPOINT_FILTERED - 1);
	b->rec.row.hdr.cpu = bpf_get_smp_processor_id();
	b->rec.row.ts = bpf_ktime_get_ns();
	fill_who(&b->rec.row.who, current);
	if (wants_stack(STACK_ROW))
		take_stack(ctx, STACK_ROW, b->rec.row.ts, b->rec.row.ts, 0);
	if (bpf_ringbuf_output(ring, b, at_most(sizeof(b->rec) + len, sizeof(*b)), BPF_RB_NO_WAKEUP))
		count_drop(DROP_TRACEPOINT);
	return 1;
}

#endif
