/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies of user memory: strings and socket addresses of a call's arguments.
 * Read at enter, because the memory may be gone or changed at exit; a page
 * that is not resident then is read at exit, when the kernel has touched it.
 */
#ifndef __SYSTAPE_CAPTURE_H
#define __SYSTAPE_CAPTURE_H

#define SOCKADDR_MAX 128
#define PAGE_STEP 4096 /* of user memory, read page by page: the next one may not exist */

/* Place of a call's captured bytes: the task's state, or a slot if they are long. */
static __always_inline struct slot *state_slot(struct task_state *st)
{
	u32 index = st->slot - 1;

	if (!st->slot)
		return NULL;
	return bpf_map_lookup_elem(&slots, &index);
}

/* Moves what was captured so far into a slot. */
static __always_inline struct slot *into_slot(struct task_state *st)
{
	struct slot *s = state_slot(st);
	u32 index;

	if (s)
		return s;
	s = slot_get(&index);
	if (!s)
		return NULL;
	st->slot = index + 1;
	/* rather than a copy in place, which takes some two hundred instructions on each path */
	bpf_probe_read_kernel(s->data, at_most(st->data_len, sizeof(st->data)), st->data);
	return s;
}

static __always_inline void set_capture(struct task_state *st, u32 n, u8 arg, u8 status, u16 len, u32 full)
{
	struct wire_capture *c;

	if (n >= MAX_CAPTURES)
		return;
	/* old verifiers lose the bound when the value goes through the stack */
	barrier_var(n);
	c = &st->rec.cap[n & (MAX_CAPTURES - 1)];
	c->arg = arg;
	c->status = status;
	c->len = len;
	c->full = full;
	st->rec.captures = n + 1;
	st->data_len += len;
}

/* One string; a long one moves the call's bytes into a slot. */
static __noinline int capture_string(struct task_state *st, u8 arg, u64 addr, bool late)
{
	u32 n = st->rec.captures, off = st->data_len, limit = string_limit;
	struct slot *s;
	long len;

	if (!addr) /* a null pointer is a value, not a string */
		return 0;
	if (limit > STRING_MAX)
		limit = STRING_MAX;
	if (!st->slot && off <= sizeof(st->data) - INLINE_MAX) {
		len = bpf_probe_read_user_str(&st->data[off], INLINE_MAX, (void *)addr);
		if (len < 0) {
			set_capture(st, n, arg, BYTES_NOT_RESIDENT, 0, 0);
			return 0;
		}
		if (len < INLINE_MAX && len - 1 <= limit) {
			set_capture(st, n, arg, late ? BYTES_LATE : BYTES_WHOLE, len ? len - 1 : 0, len ? len - 1 : 0);
			return 0;
		}
	}
	s = into_slot(st);
	if (!s) {
		set_capture(st, n, arg, BYTES_NO_BUFFER, 0, 0);
		return 0;
	}
	off &= SLOT_DATA_MASK;
	/* one byte beyond the limit distinguishes "exactly as long" from "longer" */
	len = bpf_probe_read_user_str(&s->data[off], limit + 2, (void *)addr);
	if (len < 0) {
		set_capture(st, n, arg, BYTES_NOT_RESIDENT, 0, 0);
		return 0;
	}
	if (len > limit + 1)
		set_capture(st, n, arg, late ? BYTES_LATE_TRUNCATED : BYTES_TRUNCATED, limit, 0);
	else
		set_capture(st, n, arg, late ? BYTES_LATE : BYTES_WHOLE, len ? len - 1 : 0, len ? len - 1 : 0);
	return 0;
}

/* `len` bytes at addr, at most SOCKADDR_MAX. */
static __noinline int capture_bytes(struct task_state *st, u8 arg, u64 addr, u64 want, bool late)
{
	u32 n = st->rec.captures, off = st->data_len;
	u32 len = want > SOCKADDR_MAX ? SOCKADDR_MAX : want;
	u8 whole = late ? BYTES_LATE : BYTES_WHOLE;
	u8 part = late ? BYTES_LATE_TRUNCATED : BYTES_TRUNCATED;
	struct slot *s;
	long err;

	if (!addr || !len)
		return 0;
	if (!st->slot && off <= sizeof(st->data) - INLINE_MAX) {
		err = bpf_probe_read_user(&st->data[off], len, (void *)addr);
	} else {
		s = into_slot(st);
		if (!s) {
			set_capture(st, n, arg, BYTES_NO_BUFFER, 0, 0);
			return 0;
		}
		off &= SLOT_DATA_MASK;
		err = bpf_probe_read_user(&s->data[off], len, (void *)addr);
	}
	if (err)
		set_capture(st, n, arg, BYTES_NOT_RESIDENT, 0, want);
	else
		set_capture(st, n, arg, len < want ? part : whole, len, want);
	return 0;
}

/* Reads a small integer argument's target: socklen_t. */
static __always_inline u32 user_u32(u64 addr)
{
	u32 v = 0;

	if (addr)
		bpf_probe_read_user(&v, sizeof(v), (void *)addr);
	return v;
}

/* Argument i of the call. The mask is for the verifier: 7 still lies inside the record. */
static __always_inline u64 arg_of(const struct task_state *st, u8 i)
{
	return *(const u64 *)((const void *)st->rec.args + (i & 7) * sizeof(u64));
}

#define ARGV_WORDS 32
#define ARGV_BYTES 0x3fff

/* What copy_argv_string() returns instead of the end of what it copied. */
#define ARGV_ENDED 0xffffffff
#define ARGV_NOT_RESIDENT 0xfffffffe

/*
 * One string of argv, whose pointer is at `address`, into the slot from `end` on;
 * returns the end of it. Not static, so that the verifier walks it once.
 */
__noinline u32 copy_argv_string(u32 index, u32 end, u64 address, u32 compat)
{
	struct slot *s = bpf_map_lookup_elem(&slots, &index);
	u32 half = 0;
	u64 whole = 0;
	long len;

	if (!s)
		return ARGV_NOT_RESIDENT;
	if (compat) {
		if (bpf_probe_read_user(&half, sizeof(half), (void *)address))
			return ARGV_NOT_RESIDENT;
		whole = half;
	} else if (bpf_probe_read_user(&whole, sizeof(whole), (void *)address)) {
		return ARGV_NOT_RESIDENT;
	}
	if (!whole)
		return ARGV_ENDED;
	end &= SLOT_DATA_MASK;
	len = bpf_probe_read_user_str(&s->data[end], STRING_MAX, (void *)whole);
	return len < 0 ? ARGV_NOT_RESIDENT : end + len;
}

/* argv as passed to exec by the caller, NUL-separated. For scripts the new program gets another argv. */
static __noinline int capture_argv(struct task_state *st, u8 arg, u64 addr, bool late)
{
	u32 n = st->rec.captures, off = st->data_len & SLOT_DATA_MASK, end = off;
	u32 compat = st->rec.abi == ABI_I386, word = compat ? 4 : 8;
	u8 status = late ? BYTES_LATE_TRUNCATED : BYTES_TRUNCATED;

	if (!addr)
		return 0;
	if (!into_slot(st)) {
		set_capture(st, n, arg, BYTES_NO_BUFFER, 0, 0);
		return 0;
	}
	for (int i = 0; i < ARGV_WORDS && end - off <= ARGV_BYTES - STRING_MAX; i++) {
		u32 next = copy_argv_string(st->slot - 1, end, addr + i * word, compat);

		if (next == ARGV_ENDED) {
			status = late ? BYTES_LATE : BYTES_WHOLE;
			break;
		}
		if (next == ARGV_NOT_RESIDENT) {
			status = BYTES_NOT_RESIDENT;
			break;
		}
		end = next;
	}
	if (status == BYTES_NOT_RESIDENT)
		end = off;
	/* the last NUL ends nothing */
	set_capture(st, n, arg, status, end > off ? end - off - 1 : 0, 0);
	return 0;
}

/*
 * The places that recorder/src/calls/tables.rs uses: strings anywhere, bytes in the first two, argv
 * in the second. Every tested place costs time in the verifier.
 */
static __always_inline void capture_in(struct task_state *st, const struct sc_desc *d, bool late)
{
	/* 5.10 does not take a loop that goes round right behind a call of a function */
#pragma unroll
	for (int i = 0; i < 3; i++) {
		u8 arg = d->cap_arg[i], kind = d->cap_kind[i];

		if (kind == CAP_STRING)
			capture_string(st, arg, arg_of(st, arg), late);
		else if (i < 2 && kind == CAP_SOCKADDR_IN)
			capture_bytes(st, arg, arg_of(st, arg), (u32)arg_of(st, d->cap_len_arg), late);
		else if (i == 1 && kind == CAP_ARGV)
			capture_argv(st, arg, arg_of(st, arg), late);
	}
}

/* True when something must be read again because its page was absent at enter. */
static __always_inline bool capture_missed(const struct task_state *st)
{
	for (int i = 0; i < CAPTURES_AT_ENTER; i++)
		if (i < st->rec.captures && st->rec.cap[i].status == BYTES_NOT_RESIDENT)
			return true;
	return false;
}

/* Reads everything again, at exit: data read at enter is in the same memory, and is marked late too. */
static __always_inline void capture_again(struct task_state *st, const struct sc_desc *d)
{
	st->rec.captures = 0;
	st->data_len = 0;
	st->absent = ~0;
	capture_in(st, d, true);
	if (capture_missed(st))
		count_drop(DROP_STRING_FAULT);
}

static __always_inline void capture_at_exit(struct task_state *st, const struct sc_desc *d)
{
#pragma unroll
	for (int i = 0; i < 2; i++) {
		u8 arg = d->cap_arg[i];

		if (d->cap_kind[i] == CAP_SOCKADDR_OUT)
			capture_bytes(st, arg, arg_of(st, arg), user_u32(arg_of(st, d->cap_len_arg)), false);
		else if (d->cap_kind[i] == CAP_PAIR)
			capture_bytes(st, arg, arg_of(st, arg), 8, false);
	}
}

#endif
