/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies of the structures that a call's arguments point to. A value that the
 * kernel overwrites is copied at enter and at exit.
 */
#ifndef __SYSTAPE_STRUCTS_H
#define __SYSTAPE_STRUCTS_H

#define RESTARTED_BY_BLOCK (-516) /* ERESTART_RESTARTBLOCK, include/linux/errno.h */
#define INTERRUPTED (-4)	  /* EINTR */

/* Index of a call in calls and call_structs. */
static __always_inline u32 call_index(u8 abi, u32 nr)
{
	u32 key = nr & ~X32_BIT;

	/* calls beyond the table are recorded, with six arguments and nothing captured: entry SC_MAX - 1 */
	if (key >= SC_MAX)
		key = SC_MAX - 1;
	/* one map: the verifier inlines a lookup only when the map is fixed */
	return abi == ABI_I386 ? key + SC_MAX : key;
}

static __always_inline const struct sc_desc *desc_of(u8 abi, u32 nr)
{
	u32 key = call_index(abi, nr);

	return bpf_map_lookup_elem(&calls, &key);
}

/* Whether the call has structures with this second argument. */
static __always_inline bool has_structs(const struct sc_desc *d, u64 op)
{
	/* FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME are flags beside the op */
	u32 bit = op & 0x7f;

	return !d->struct_ops || (bit < 16 && d->struct_ops >> bit & 1);
}

/* Elements of an array; of an fd_set its words. */
static __always_inline u64 elements(const struct task_state *st, const struct struct_rule *r)
{
	s32 bits = st->rec.args[0];
	u32 word = 8 * r->size;

	if (r->count == STRUCT_ONE)
		return 1;
	if (r->count == STRUCT_TO_PAGE && r->size) {
		/* the next page may not exist, and a read is all or nothing */
		u64 left = (PAGE_STEP - (arg_of(st, r->arg) & (PAGE_STEP - 1))) / r->size;

		return left < r->most ? left : r->most;
	}
	if (r->count == STRUCT_RETURNED)
		return st->rec.ret > 0 ? st->rec.ret : 0;
	if (r->count == STRUCT_BITS)
		return bits > 0 && word ? ((u64)bits + word - 1) / word : 0;
	return (u32)arg_of(st, r->count);
}

/* Copies one; `arg` as in wire_capture. True: it could not be read. */
static __noinline int capture_struct(struct task_state *st, const struct struct_rule *r, u8 arg, u8 late)
{
	u64 addr = arg_of(st, r->arg), want = elements(st, r) * r->size;
	u32 n = st->rec.captures, off = st->data_len, most = r->most * r->size;
	u32 len = want > most ? most : want;
	u8 status = len < want ? BYTES_TRUNCATED : BYTES_WHOLE;
	struct slot *s;

	if (!addr || !len)
		return 0;
	if (late)
		status = len < want ? BYTES_LATE_TRUNCATED : BYTES_LATE;
	if (!st->slot && off <= sizeof(st->data) - STRUCT_MAX) {
		if (bpf_probe_read_user(&st->data[off], at_most(len, STRUCT_MAX), (void *)addr))
			return 1;
	} else {
		s = into_slot(st);
		if (!s) {
			set_capture(st, n, arg, BYTES_NO_BUFFER, 0, want);
			return 0;
		}
		off &= SLOT_DATA_MASK;
		if (bpf_probe_read_user(&s->data[off], at_most(len, STRUCT_MAX), (void *)addr))
			return 1;
	}
	set_capture(st, n, arg, status, len, want);
	return 0;
}

static __always_inline bool is_filled_in(const struct task_state *st, const struct struct_rule *r)
{
	s64 ret = st->rec.ret;

	if (!(r->when & STRUCT_EXIT))
		return false;
	if (r->when & STRUCT_IF_INTERRUPTED)
		return ret == INTERRUPTED || ret == RESTARTED_BY_BLOCK;
	return r->when & STRUCT_IF_POSITIVE ? ret > 0 : ret >= 0;
}

/* Whether what structure i held before the call may be gone. */
static __noinline bool is_overwritten(const struct task_state *st, const struct call_structs *c, u32 i)
{
	u64 addr = arg_of(st, c->rules[i & (CALL_STRUCTS - 1)].arg);
	const u8 both = STRUCT_ENTER | STRUCT_EXIT;

	for (int k = 0; k < CALL_STRUCTS; k++) {
		const struct struct_rule *r = &c->rules[k];

		if (arg_of(st, r->arg) == addr && !(r->when & STRUCT_KEPT) &&
		    ((r->when & both) == both || is_filled_in(st, r)))
			return true;
	}
	return false;
}

static __always_inline void miss_struct(struct task_state *st, const struct struct_rule *r, u8 arg)
{
	set_capture(st, st->rec.captures, arg, BYTES_NOT_RESIDENT, 0, 0);
	count_drop(DROP_STRING_FAULT);
}

/*
 * Those of the current task's call, at its enter or its exit. Not static, so the
 * verifier walks it once, and not for every state that its callers may be in.
 */
__noinline int capture_structs(u32 at_exit)
{
	struct task_state *st = current_state(current_task(), false);
	const struct call_structs *c;
	u32 key;

	if (!st)
		return 0;
	key = call_index(st->rec.abi, st->rec.nr);
	c = bpf_map_lookup_elem(&call_structs, &key);
	if (!c)
		return 0;
	for (int i = 0; i < CALL_STRUCTS; i++) {
		const struct struct_rule *r = &c->rules[i];

		if (!(r->when & STRUCT_ENTER))
			continue;
		if (r->when & STRUCT_BESIDE) {
			/* what cannot be read is not known, and no value of the call is missing */
			if ((!at_exit || st->absent >> i & 1) && capture_struct(st, r, CAPTURE_FUTEX, at_exit))
				st->absent |= 1 << i;
			continue;
		}
		if (!at_exit) {
			if (capture_struct(st, r, r->arg, false))
				st->absent |= 1 << i;
		} else if (st->absent >> i & 1) {
			/* the memory is there once the kernel has read it */
			if (!is_overwritten(st, c, i) && capture_struct(st, r, r->arg, true))
				miss_struct(st, r, r->arg);
		}
	}
	if (!at_exit)
		return 0;
	for (int i = 0; i < CALL_STRUCTS; i++) {
		const struct struct_rule *r = &c->rules[i];
		u8 arg = r->when & STRUCT_ENTER ? r->arg | CAPTURE_AFTER : r->arg;

		if (is_filled_in(st, r) && capture_struct(st, r, arg, false))
			miss_struct(st, r, arg);
	}
	return 0;
}

#endif
