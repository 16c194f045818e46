/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Static probes of programs and libraries (USDT): one program for all places. The
 * cookie has the probe's number (bits 0 to 14) and, from bit 16 on, the index of
 * what says where the arguments are at this place.
 */
#ifndef __SYSTAPE_STATIC_H
#define __SYSTAPE_STATIC_H

/* By index; user space sets their number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct operands);
} static_operands SEC(".maps");

/* The argument's bits; false = it could not be read. */
static __always_inline bool read_operand(const struct static_slot *s, const struct operand *o, u64 *value)
{
	u64 address = o->value;
	u32 size = o->size;

	switch (o->kind) {
	case OPERAND_CONSTANT:
		*value = o->value;
		return true;
	case OPERAND_REGISTER:
		*value = s->regs[o->base & OPERAND_NO_REGISTER];
		return true;
	case OPERAND_MEMORY:
		address += s->regs[o->base & OPERAND_NO_REGISTER];
		address += s->regs[o->index & OPERAND_NO_REGISTER] << (o->shift & 3);
		*value = 0;
		/* no more than it has: the next page may not be there */
		return size <= sizeof(*value) && !bpf_probe_read_user(value, size, (void *)address);
	default:
		return false;
	}
}

/* The low bytes that are its own, extended to a register's width. */
static __always_inline u64 extend_operand(const struct operand *o, u64 value)
{
	u32 unused = (64 - 8 * o->size) & 63;

	value <<= unused;
	return o->is_signed ? (u64)((s64)value >> unused) : value >> unused;
}

int static_probe(struct pt_regs *ctx)
{
	struct task_struct *current = current_task();
	u64 cookie = bpf_get_attach_cookie(ctx);
	u32 which = cookie >> 16, index, at = 0;
	const struct operands *operands;
	struct static_slot *s;

	if (!probe_is_recorded(current))
		return 0;
	operands = bpf_map_lookup_elem(&static_operands, &which);
	if (!operands)
		return 0;
	if (bpf_map_pop_elem(&free_slots, &index)) {
		count_drop(DROP_TRACEPOINT);
		return 0;
	}
	s = bpf_map_lookup_elem(&slots, &index);
	if (!s)
		return 0;
	__builtin_memset(&s->rec, 0, sizeof(s->rec));
	__builtin_memset(s->rec.lens, 0xff, sizeof(s->rec.lens));
	s->rec.row.hdr.kind = WIRE_STATIC;
	s->rec.row.hdr.flags = cookie & 0x7fff;
	s->rec.row.hdr.cpu = bpf_get_smp_processor_id();
	s->rec.row.ts = bpf_ktime_get_ns();
	fill_who(&s->rec.row.who, current);
	s->regs[OPERAND_NO_REGISTER] = 0;
	bpf_probe_read_kernel(s->regs, sizeof(*ctx), ctx);
	for (u32 i = 0; i < STATIC_ARGS; i++) {
		const struct operand *o = &operands->of[i];
		u64 value = 0;
		long n;

		if (!read_operand(s, o, &value)) {
			s->rec.unknown |= 1 << i;
			continue;
		}
		value = extend_operand(o, value);
		s->rec.values[i] = value;
		if (!o->is_string || at > STATIC_ARGS * PROBE_STRING)
			continue;
		n = bpf_probe_read_user_str(&s->data[at], PROBE_STRING, (void *)value);
		if (n > 0) {
			s->rec.lens[i] = n - 1;
			at += n - 1;
		}
	}
	if (wants_stack(STACK_ROW))
		take_stack(ctx, STACK_ROW, s->rec.row.ts, s->rec.row.ts, 0);
	send_probe(s, at_most(sizeof(s->rec) + at, sizeof(s->rec) + sizeof(s->data)));
	slot_put(index);
	return 0;
}

#endif
