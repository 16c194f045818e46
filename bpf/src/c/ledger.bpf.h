/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ledger counts calls that could not be stored, or were left out by
 * request, so that sums stay exact. Entries are locked rather than written by
 * atomic operations, because five fields must agree and a program may be
 * preempted. The most frequent keys of a CPU have entries of its own, which
 * need no lock. On 5.10, without locks for tracing programs, tracepoints run
 * with preemption off, and the CPU in the key gives each entry one writer.
 */
#ifndef __SYSTAPE_LEDGER_H
#define __SYSTAPE_LEDGER_H

#define MAX_ERRNO 4095

/*
 * floor(log2), 0 of 0: the ones in the value with every bit below its highest
 * set. Without branches, each of which would double what the verifier goes
 * through (and without __builtin_clzll, which clang 14 crashes on).
 */
static __always_inline u32 size_of_dur(u64 dur)
{
	u64 ones = dur;

	ones |= ones >> 1;
	ones |= ones >> 2;
	ones |= ones >> 4;
	ones |= ones >> 8;
	ones |= ones >> 16;
	ones |= ones >> 32;
	ones >>= 1;
	ones -= ones >> 1 & 0x5555555555555555;
	ones = (ones & 0x3333333333333333) + (ones >> 2 & 0x3333333333333333);
	ones = (ones + (ones >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return ones * 0x0101010101010101 >> 56;
}

/* A call that returned has a value; the value of other calls is meaningless. */
static __always_inline bool call_returned(u8 state)
{
	return state == CALL_COMPLETE || state >= CALL_BEGAN_BEFORE;
}

static __always_inline void add_to(struct ledger_counts *n, u64 dur, u64 end)
{
	if (!n->count) {
		n->min = dur;
		n->first = end;
	}
	if (dur < n->min)
		n->min = dur;
	if (dur > n->max)
		n->max = dur;
	if (end < n->first)
		n->first = end;
	if (end > n->last)
		n->last = end;
	n->sum += dur;
	n->count += 1;
}

static __always_inline void add_to_word(u32 word)
{
	u64 *value = bpf_map_lookup_elem(&ledger_words, &word);

	if (value)
		__sync_fetch_and_add(value, 1);
}

static __always_inline struct ledger_sum *ledger_entry(void *table, const struct ledger_key *key, u32 epoch)
{
	struct ledger_sum *s = bpf_map_lookup_elem(table, key);
	u32 zero = 0;
	void *init;

	if (s)
		return s;
	init = bpf_map_lookup_elem(&zero_ledger, &zero);
	if (!init)
		return NULL;
	if (!bpf_map_update_elem(table, key, init, BPF_NOEXIST))
		add_to_word(LEDGER_USED + epoch);
	return bpf_map_lookup_elem(table, key);
}

static __always_inline void add_coarse(u32 epoch, const struct wire_syscall *rec, const struct ledger_key *key, u64 dur)
{
	u32 outcome = key->state != CALL_COMPLETE ? COARSE_INCOMPLETE : COARSE_OK, index;
	u32 nr = rec->nr & ~X32_BIT;
	u64 end = rec->end;
	struct coarse_sum *s;

	if (nr >= SC_MAX)
		nr = SC_MAX - 1;
	/* restarts are no errors */
	if (outcome == COARSE_OK && key->err && (key->err < 512 || key->err == 515 || key->err > 516))
		outcome = COARSE_ERROR;
	index = ((key->cpu & coarse_mask) * 2 + (key->reason == LEDGER_FILTERED)) * 2 + (key->abi == ABI_I386);
	index = (index * COARSE_OUTCOMES + outcome) * SC_MAX + nr;
	s = epoch ? bpf_map_lookup_elem(&coarse_b, &index) : bpf_map_lookup_elem(&coarse_a, &index);
	if (!s) {
		count_drop(DROP_UNCOUNTED);
		return;
	}
	if (has_lock)
		bpf_spin_lock(&s->lock);
	add_to(&s->n, dur, end);
	if (has_lock)
		bpf_spin_unlock(&s->lock);
	add_to_word(LEDGER_COARSE + epoch);
}

static __always_inline bool same_key(const struct ledger_key *a, const struct ledger_key *b)
{
	const u64 *x = (const u64 *)a, *y = (const u64 *)b;
	u64 differs = 0;

#pragma unroll
	for (u32 i = 0; i < sizeof(*a) / sizeof(*x); i++)
		differs |= x[i] ^ y[i];
	return !differs;
}

static __always_inline u32 busy_slot(u32 pid, u32 nr, u32 err, u32 reason)
{
	return (pid ^ nr << 16 ^ err << 8 ^ reason) * 0x9e3779b1 >> 27;
}
_Static_assert(BUSY_SUMS == 1 << (32 - 27), "the hash has as many bits");

/*
 * Makes room in one of this CPU's own entries: its sums go to the table. 0 when
 * that is full. Not static, so that the verifier walks it once.
 */
__noinline int move_busy(u32 index)
{
	struct busy_sum *from = bpf_map_lookup_elem(&ledger_busy, &index);
	struct ledger_sum *to;

	if (!from)
		return 0;
	to = index < BUSY_SUMS ? ledger_entry(&ledger_a, &from->key, 0) : ledger_entry(&ledger_b, &from->key, 1);
	if (!to)
		return 0;
	if (has_lock)
		bpf_spin_lock(&to->lock);
	if (!to->n.count || from->n.min < to->n.min)
		to->n.min = from->n.min;
	if (from->n.max > to->n.max)
		to->n.max = from->n.max;
	if (!to->n.count || from->n.first < to->n.first)
		to->n.first = from->n.first;
	if (from->n.last > to->n.last)
		to->n.last = from->n.last;
	to->n.sum += from->n.sum;
	to->n.count += from->n.count;
	for (u32 i = 0; i < LEDGER_SIZES; i++)
		to->sizes[i] += from->sizes[i];
	if (has_lock)
		bpf_spin_unlock(&to->lock);
	__builtin_memset(&from->n, 0, sizeof(from->n));
	for (u32 i = 0; i < LEDGER_SIZES; i++)
		from->sizes[i] = 0;
	from->missed = 0;
	return 1;
}

/*
 * Counts a call in this CPU's own entries. False when another key has its
 * entry: the first one there, until others have missed it a few times. Only
 * sys_exit uses them (maps.bpf.h): another program counts calls that do not
 * return.
 */
#define BUSY_MISSES 8
static __always_inline bool count_busy(u32 epoch, const struct ledger_key *key, u32 size, u64 dur, u64 end)
{
	u32 index = epoch * BUSY_SUMS + busy_slot(key->pid, key->nr, key->err, key->reason);
	struct busy_sum *s = bpf_map_lookup_elem(&ledger_busy, &index);

	if (!s || key->state == CALL_NO_RETURN)
		return false;
	if (s->n.count && !same_key(&s->key, key)) {
		s->missed += 1;
		if (s->missed < BUSY_MISSES || !move_busy(index))
			return false;
	}
	if (!s->n.count) {
		s->key = *key;
		add_to_word(LEDGER_BUSY + epoch);
	}
	add_to(&s->n, dur, end);
	s->sizes[size] += 1;
	return true;
}

/*
 * Counts a call that was left out by request and returned, where this CPU has
 * its key already: most calls, so nothing is looked up or called for it.
 */
static __always_inline bool count_again(struct plain_call *p)
{
	u64 dur = p->rec.end > p->rec.start ? p->rec.end - p->rec.start : 0;
	u32 word = LEDGER_EPOCH, err = 0, cpu, index, size;
	u64 *epoch, differs;
	struct busy_sum *s;

	epoch = bpf_map_lookup_elem(&ledger_words, &word);
	if (ledger_check || !epoch || !p->has_key || p->rec.state != CALL_COMPLETE)
		return false;
	if (p->rec.ret < 0 && p->rec.ret >= -MAX_ERRNO)
		err = -p->rec.ret;
	index = (*epoch & 1) * BUSY_SUMS + busy_slot(p->rec.id.pid, p->rec.nr, err, LEDGER_FILTERED);
	s = bpf_map_lookup_elem(&ledger_busy, &index);
	if (!s || !s->n.count)
		return false;
	cpu = bpf_get_smp_processor_id();
	differs = s->key.leader_start ^ p->rec.id.leader_start;
	differs |= (s->key.pid ^ p->rec.id.pid) | (s->key.execs ^ p->execs) | (s->key.uid ^ p->uid);
	differs |= (s->key.cpu ^ cpu) | (s->key.nr ^ p->rec.nr) | (s->key.err ^ err) | (s->key.abi ^ p->rec.abi);
	differs |= (s->key.reason ^ LEDGER_FILTERED) | (s->key.state ^ CALL_COMPLETE);
	if (differs)
		return false;
	add_to(&s->n, dur, p->rec.end);
	size = size_of_dur(dur);
	/* it is; but an old verifier has lost that bound */
	barrier_var(size);
	s->sizes[size & (LEDGER_SIZES - 1)] += 1;
	return true;
}

/* A load rather than a probe read, where the kernel allows it. */
static __always_inline u32 execs_of(struct task_struct *current)
{
	return has_task_storage ? current->self_exec_id : BPF_CORE_READ(current, self_exec_id);
}

/* `alone`: the program is the one that writes this CPU's own entries. */
static __noinline int count_call(const struct wire_syscall *rec, struct task_struct *current, u32 uid, u8 reason, bool alone)
{
	u64 dur = rec->end > rec->start ? rec->end - rec->start : 0, end = rec->end;
	u32 epoch = LEDGER_EPOCH, size = size_of_dur(dur);
	u64 *which = bpf_map_lookup_elem(&ledger_words, &epoch);
	struct ledger_key key = {};
	struct ledger_sum *s;

	/* the child's return from a fork is not a call */
	if (rec->state == CALL_CLONE_CHILD || !which)
		return 0;
	epoch = *which & 1;
	key.leader_start = rec->id.leader_start;
	key.pid = rec->id.pid;
	key.execs = execs_of(current);
	key.uid = uid;
	key.cpu = bpf_get_smp_processor_id();
	key.nr = rec->nr;
	key.abi = rec->abi;
	key.reason = reason;
	key.state = rec->state;
	if (call_returned(rec->state) && rec->ret < 0 && rec->ret >= -MAX_ERRNO)
		key.err = -rec->ret;
	/* it is; but an old verifier has lost that bound */
	barrier_var(size);
	size &= LEDGER_SIZES - 1;
	if (alone && count_busy(epoch, &key, size, dur, end))
		goto counted;
	s = epoch ? ledger_entry(&ledger_b, &key, 1) : ledger_entry(&ledger_a, &key, 0);
	if (!s) {
		add_coarse(epoch, rec, &key, dur);
	} else {
		if (has_lock)
			bpf_spin_lock(&s->lock);
		add_to(&s->n, dur, end);
		s->sizes[size] += 1;
		if (has_lock)
			bpf_spin_unlock(&s->lock);
	}
counted:
	if (ledger_check) {
		__sync_fetch_and_add(&checked_calls, 1);
		__sync_fetch_and_add(&checked_sum, dur);
		__sync_fetch_and_add(&checked_sizes[size], 1);
	}
	return 0;
}

#endif
