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
 * One of a packet has a program that tells its socket as well. There two fields
 * __data_loc are followed, and above them in the cookie are the places, in words, of
 * the pointers to the packet and, 0 = the record has none, to the socket.
 *
 * Programs of this type are not run inside one another on a CPU
 * (bpf_prog_active), so one buffer a CPU is enough, and a tracepoint that this
 * program comes through itself (of locks, of memory) leads to no second run.
 */
#ifndef __SYSTAPE_TRACEPOINTS_H
#define __SYSTAPE_TRACEPOINTS_H

#define TRACEPOINT_FILTERED 0x8000 /* in the cookie, above the number */

/* States of what stands for a connection and is no struct sock: a closed one's rest, and one that is being made. */
#define TCP_TIME_WAIT 6
#define TCP_NEW_SYN_RECV 12

struct tracepoint_buffer {
	struct wire_tracepoint rec;
	u8 data[TRACEPOINT_DATA];
};

struct packet_buffer {
	struct wire_tracepoint rec;
	struct wire_socket socket;
	u8 data[TRACEPOINT_DATA];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tracepoint_buffer);
} tracepoint_buffers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct packet_buffer);
} packet_buffers SEC(".maps");

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

/*
 * The record of an event: what was copied to data, whose end this returns, and
 * when and whose; 0 = it is not recorded.
 */
static __always_inline u64 take_tracepoint(void *ctx, u64 cookie, struct wire_row *row, u8 *data, u32 located)
{
	struct task_struct *current = current_task();
	u64 len = cookie >> 16 & 0xffff;

	for (u32 i = 0; i < 4; i++)
		if (i < located)
			len = tracepoint_end(ctx, cookie, i, len);
	len = at_most(len, TRACEPOINT_DATA);
	if (bpf_probe_read_kernel(data, len, ctx)) {
		count_drop(DROP_TRACEPOINT);
		return 0;
	}
	/* in place of a pointer of the kernel's, and where format files have common_pid */
	*(u32 *)&data[0] = bpf_get_smp_processor_id();
	*(u32 *)&data[4] = FIELD(current, pid);
	if (cookie & TRACEPOINT_FILTERED && !passes_filter(data, cookie & (TRACEPOINT_FILTERED - 1)))
		return 0;
	row->hdr.kind = WIRE_TRACEPOINT;
	row->hdr.flags = cookie & (TRACEPOINT_FILTERED - 1);
	row->hdr.cpu = bpf_get_smp_processor_id();
	row->ts = bpf_ktime_get_ns();
	fill_who(&row->who, current);
	if (wants_stack(STACK_ROW))
		take_stack(ctx, STACK_ROW, row->ts, row->ts, 0);
	return len;
}

static __always_inline void send_tracepoint(void *rec, u64 len)
{
	u32 index = tracepoint_ring;
	void *ring = bpf_map_lookup_elem(&bulk_rings, &index);

	if (!ring || bpf_ringbuf_output(ring, rec, len, BPF_RB_NO_WAKEUP))
		count_drop(DROP_TRACEPOINT);
}

int any_tracepoint(void *ctx)
{
	struct tracepoint_buffer *b;
	u32 zero = 0;
	u64 len;

	/* 1 leaves the event to perf's users; 0 would take it from them */
	if (!tracepoint_is_recorded(current_task()))
		return 1;
	b = bpf_map_lookup_elem(&tracepoint_buffers, &zero);
	if (!b) {
		count_drop(DROP_TRACEPOINT);
		return 1;
	}
	len = take_tracepoint(ctx, bpf_get_attach_cookie(ctx), &b->rec.row, b->data, 4);
	if (len)
		send_tracepoint(b, at_most(sizeof(b->rec) + len, sizeof(*b)));
	return 1;
}

/* The kernel pointer in a word of the record; 0 = there is none. */
static __always_inline u64 pointer_at(void *ctx, u32 word)
{
	u64 pointer = 0;

	if (word)
		bpf_probe_read_kernel(&pointer, sizeof(pointer), ctx + word * 4);
	/* where a packet has its socket, a fragment had an offset before 6.11 */
	return pointer >> 32 ? pointer : 0;
}

/* The socket that a packet is for, or from. Not inlined: one state for the verifier. */
static __noinline int fill_packet(struct wire_socket *w, struct sk_buff *skb, struct sock *sk)
{
	u8 state;

	__builtin_memset(w, 0, sizeof(*w));
	if (!sk && skb)
		sk = BPF_CORE_READ(skb, sk);
	if (!((u64)sk >> 32))
		return 0;
	state = BPF_CORE_READ(sk, __sk_common.skc_state);
	fill_sock(w, sk);
	if (state == TCP_TIME_WAIT || state == TCP_NEW_SYN_RECV)
		w->protocol = 0;
	else
		w->inode = socket_inode(sk);
	return 0;
}

int packet_tracepoint(void *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx), len;
	struct packet_buffer *b;
	u32 zero = 0;

	if (!tracepoint_is_recorded(current_task()))
		return 1;
	b = bpf_map_lookup_elem(&packet_buffers, &zero);
	if (!b) {
		count_drop(DROP_TRACEPOINT);
		return 1;
	}
	len = take_tracepoint(ctx, cookie, &b->rec.row, b->data, 2);
	if (!len)
		return 1;
	fill_packet(&b->socket, (void *)pointer_at(ctx, cookie >> 48 & 0xff), (void *)pointer_at(ctx, cookie >> 56));
	b->rec.row.hdr.flags |= TRACEPOINT_PACKET;
	send_tracepoint(b, at_most(sizeof(b->rec) + sizeof(b->socket) + len, sizeof(*b)));
	return 1;
}

#endif
