/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions of programs and libraries, and of the kernel: one program for all
 * entries, one for all returns. The cookie has the probe's number, and which arguments (bits 16 to
 * 21) or whether the result (22) are strings, whether the return is seen (23), and whether that is at a
 * return instruction (24) rather than behind it, and an argument that points to a result; of a function of the kernel
 * also which of the strings are in the process's memory. Entry and return are paired in
 * user space by thread, function and stack pointer. A thread's records are
 * numbered, so that a lost one leads to no wrong pair. With the kernel's own code
 * in place of a return address the stack pointer at the return is RETURN_POPS above that
 * at the entry, in the kernel too (arch/x86/kernel/rethook.c, before 5.18
 * kprobes/core.c): records have that at the entry.
 *
 * Unlike those of tracepoints these programs may be preempted, so no buffer
 * belongs to a CPU.
 */
#ifndef __SYSTAPE_PROBES_H
#define __SYSTAPE_PROBES_H

#define PROBE_STRING_ARG 16
#define PROBE_STRING_RESULT 22
#define PROBE_RETURNS 23
#define PROBE_AT_RETURN 24
#define PROBE_OUT 25 /* 3 bits: 1 + the argument that points to a number to read at the return, 0 = none */
#define PROBE_OUT_WIDE 28 /* it has 8 bytes rather than 4 */
#define PROBE_OUT_IF_TRUE 29 /* it is there only if the result is */
#define PROBE_KERNEL 30 /* a function of the kernel: pointers are to its memory */
#define PROBE_USER_STRING 32 /* 6 bits, and one for the result: but these to the process's */

/* Calls that are inside, with such an argument. */
struct out_key {
	u64 sp; /* at the entry */
	u32 tid;
	u32 number; /* of the probe */
};

/* Where it points to. Those of calls left by longjmp stay until others need their room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct out_key);
	__type(value, u64);
} probe_outs SEC(".maps");

/* More than all strings before the last; the slot has room for a string behind it. */
#define PROBE_STRINGS_MASK 2047
_Static_assert(PROBE_ARGS * PROBE_STRING <= PROBE_STRINGS_MASK, "the mask cuts no offset");
_Static_assert(sizeof(struct wire_probe) + PROBE_STRINGS_MASK + PROBE_STRING <= sizeof(struct slot),
	       "what the verifier takes for an offset is in the slot");

/*
 * Appends the string of value i; returns the end of the strings. With a comparison
 * alone the verifier of 6.1 forgets the bound of an offset that is spilled: the mask
 * stands where the address is made.
 */
static __always_inline u64 probe_string(struct probe_slot *s, u32 i, u64 at, bool in_kernel)
{
	void *from = (void *)s->rec.values[i], *to;
	u64 len, off = at;
	long n;

	if (at > PROBE_ARGS * PROBE_STRING)
		return at;
	asm volatile("%[off] &= 2047" : [off] "+r"(off));
	to = &s->data[off];
	if (in_kernel)
		n = bpf_probe_read_kernel_str(to, PROBE_STRING, from);
	else
		n = bpf_probe_read_user_str(to, PROBE_STRING, from);
	if (n <= 0)
		return at;
	len = n - 1;
	barrier_var(len);
	if (len >= PROBE_STRING)
		return at;
	s->rec.lens[i] = len;
	return at + len;
}

static __always_inline bool probe_is_recorded(struct task_struct *current)
{
	return window == WINDOW_OPEN && cpu_is_recorded() && is_recorded(current);
}

static __always_inline void send_probe(const void *rec, u64 len)
{
	u32 index = tracepoint_ring;
	void *ring = bpf_map_lookup_elem(&bulk_rings, &index);

	if (!ring || bpf_ringbuf_output(ring, (void *)rec, len, BPF_RB_NO_WAKEUP))
		count_drop(DROP_TRACEPOINT);
}

/* The record of this thread's next event; NULL = it is not recorded, or has no room: that is counted. */
static __always_inline struct probe_slot *begin_probe(struct pt_regs *ctx, u64 cookie, u32 *index)
{
	struct task_struct *current = current_task();
	struct task_state *st;
	struct probe_slot *s;

	if (!probe_is_recorded(current))
		return NULL;
	st = state_of(current, true);
	if (!st || bpf_map_pop_elem(&free_slots, index)) {
		if (st)
			st->probed++;
		count_drop(DROP_TRACEPOINT);
		return NULL;
	}
	s = bpf_map_lookup_elem(&slots, index);
	if (!s)
		return NULL;
	__builtin_memset(&s->rec, 0, sizeof(s->rec));
	__builtin_memset(s->rec.lens, 0xff, sizeof(s->rec.lens));
	s->rec.row.hdr.kind = WIRE_PROBE;
	s->rec.row.hdr.flags = cookie;
	s->rec.row.hdr.cpu = bpf_get_smp_processor_id();
	s->rec.row.ts = bpf_ktime_get_ns();
	fill_who(&s->rec.row.who, current);
	s->rec.number = ++st->probed;
	s->rec.sp = ctx->sp;
	return s;
}

/* Keeps the address for the return. */
static __always_inline void keep_out(const struct probe_slot *s, u64 cookie)
{
	u64 which = cookie >> PROBE_OUT & 7, at = which - 1;
	struct out_key key = {};
	u64 address;

	if (!which || which > PROBE_ARGS)
		return;
	/* for the verifier of 6.1, which forgets the comparison; eight words are in the slot */
	asm volatile("%[at] &= 7" : [at] "+r"(at));
	key.sp = s->rec.sp;
	key.tid = bpf_get_current_pid_tgid();
	key.number = cookie & 0x7fff;
	address = s->rec.values[at];
	bpf_map_update_elem(&probe_outs, &key, &address, BPF_ANY);
}

/* The number that the call left there: the value behind the result, whose len is its size, if it could be read. */
static __always_inline void read_out(struct probe_slot *s, u64 cookie)
{
	struct out_key key = {};
	u64 *address, number = 0;
	u32 size = cookie >> PROBE_OUT_WIDE & 1 ? 8 : 4;
	long err;

	if (!(cookie >> PROBE_OUT & 7))
		return;
	key.sp = s->rec.sp;
	key.tid = bpf_get_current_pid_tgid();
	key.number = cookie & 0x7fff;
	address = bpf_map_lookup_elem(&probe_outs, &key);
	if (!address)
		return;
	if (!(cookie >> PROBE_OUT_IF_TRUE & 1) || (u8)s->rec.values[0]) {
		if (cookie >> PROBE_KERNEL & 1)
			err = bpf_probe_read_kernel(&number, size, (void *)*address);
		else
			err = bpf_probe_read_user(&number, size, (void *)*address);
		if (!err) {
			s->rec.values[1] = number;
			s->rec.lens[1] = size;
		}
	}
	bpf_map_delete_elem(&probe_outs, &key);
}

/* Whether the string of value i is in the kernel's memory; the result is 6. */
static __always_inline bool is_kernel_string(u64 cookie, u32 i)
{
	return (cookie >> PROBE_KERNEL & 1) && !(cookie >> (PROBE_USER_STRING + i) & 1);
}

int probe_entry(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct probe_slot *s;
	u32 index;
	u64 at = 0;

	s = begin_probe(ctx, cookie & 0x7fff, &index);
	if (!s)
		return 0;
	s->rec.values[0] = FUNCTION_ARG0(ctx);
	s->rec.values[1] = FUNCTION_ARG1(ctx);
	s->rec.values[2] = FUNCTION_ARG2(ctx);
	s->rec.values[3] = FUNCTION_ARG3(ctx);
	s->rec.values[4] = FUNCTION_ARG4(ctx);
	s->rec.values[5] = FUNCTION_ARG5(ctx);
	keep_out(s, cookie);
	for (u32 i = 0; i < PROBE_ARGS; i++)
		if (cookie >> (PROBE_STRING_ARG + i) & 1)
			at = probe_string(s, i, at, is_kernel_string(cookie, i));
	/* a call is a row when it returns */
	if (wants_stack(STACK_ROW) && !(cookie >> PROBE_RETURNS & 1))
		take_stack(ctx, STACK_ROW, s->rec.row.ts, s->rec.row.ts, 0);
	send_probe(s, at_most(sizeof(s->rec) + at, sizeof(*s)));
	slot_put(index);
	return 0;
}

int probe_return(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct probe_slot *s;
	u32 index;
	u64 at = 0;

	s = begin_probe(ctx, (cookie & 0x7fff) | PROBE_RETURNED, &index);
	if (!s)
		return 0;
	s->rec.values[0] = FUNCTION_RESULT(ctx);
	/* as at the entry: behind a return its address is off the stack */
	if (!(cookie >> PROBE_AT_RETURN & 1))
		s->rec.sp -= RETURN_POPS;
	read_out(s, cookie);
	if (cookie >> PROBE_STRING_RESULT & 1)
		at = probe_string(s, 0, at, is_kernel_string(cookie, PROBE_ARGS));
	if (wants_stack(STACK_ROW))
		take_stack(ctx, STACK_ROW, s->rec.row.ts, s->rec.row.ts, 0);
	send_probe(s, at_most(sizeof(s->rec) + at, sizeof(*s)));
	slot_put(index);
	return 0;
}

#endif
