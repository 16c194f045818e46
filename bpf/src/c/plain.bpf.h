/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The short way for most calls: those of which only the arguments are kept,
 * without filters to test for each. Task storage costs a helper call at enter
 * and at exit, an index into an array only a few loads. So a task owns an entry
 * here for its life, which holds such a call while it is in progress. Other
 * calls, and tasks whose entry is taken, go the long way.
 */
#ifndef __SYSTAPE_PLAIN_H
#define __SYSTAPE_PLAIN_H

static __always_inline struct plain_call *plain_entry(u32 tid)
{
	u32 index = tid & plain_mask;

	return bpf_map_lookup_elem(&plain_calls, &index);
}

static __always_inline struct last_enter *last_enter(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&last_enters, &zero);
}

/* For the exit of the call that has these registers. */
static __always_inline void note_enter(struct plain_call *p, struct pt_regs *regs)
{
	struct last_enter *last = last_enter();

	p->regs = (u64)regs;
	if (!last)
		return;
	last->regs = (u64)regs;
	last->index = p->rec.id.tid & plain_mask;
}

/*
 * The call in progress that has these registers, if it was the last that this
 * CPU saw being entered. They are at the top of a stack, which no two living
 * tasks share. The number is for a task that inherited the stack of one whose
 * end was not seen: its first exit is that of a fork, which goes the long way.
 */
static __always_inline struct plain_call *last_call(struct pt_regs *regs)
{
	struct last_enter *last = has_short_way ? last_enter() : NULL;
	struct plain_call *p;
	u32 index;

	if (!last || last->regs != (u64)regs)
		return NULL;
	index = last->index;
	p = bpf_map_lookup_elem(&plain_calls, &index);
	return p && p->in_call && p->regs == (u64)regs && p->rec.nr == (u32)CALL_NUMBER(regs) ? p : NULL;
}

/* A task's own entry, if it has one. */
static __always_inline struct plain_call *plain_call_of(struct task_struct *task)
{
	struct plain_call *p;
	u64 start;
	u32 tid;

	if (!has_short_way)
		return NULL;
	if (has_task_storage) {
		tid = task->pid;
		start = task->start_time;
	} else {
		tid = BPF_CORE_READ(task, pid);
		start = BPF_CORE_READ(task, start_time);
	}
	p = plain_entry(tid);
	return p && p->rec.id.tid == tid && p->rec.id.start == start ? p : NULL;
}

/*
 * Takes the entry for the current task, in a call that goes the long way. Each
 * task that wants it adds itself to the users before it reads them, so at most
 * one finds itself alone. Of two at once both may fail, and try again at their
 * next call.
 */
static __always_inline void claim_plain(const struct task_state *st)
{
	struct plain_call *p;

	if (!has_short_way || st->matched != MATCHED)
		return;
	p = plain_entry(st->rec.id.tid);
	if (!p || *(volatile u32 *)&p->users)
		return;
	__sync_fetch_and_add(&p->users, 1);
	if (*(volatile u32 *)&p->users != 1) {
		__sync_fetch_and_add(&p->users, -1);
		return;
	}
	p->in_call = 0;
	p->in_other = 1;
	p->enter_seen = 0;
	p->exit_seen = 0;
	p->has_key = 0;
	p->rec.hdr.kind = WIRE_SYSCALL;
	p->rec.id = st->rec.id;
}

/* For a task that ends or gets another id; `id` is the one with which it took the entry. */
static __always_inline void release_plain(const struct wire_ident *id)
{
	struct plain_call *p = has_short_way ? plain_entry(id->tid) : NULL;

	if (!p || p->rec.id.tid != id->tid || p->rec.id.start != id->start)
		return;
	p->in_call = 0;
	p->rec.id.tid = 0;
	p->rec.id.start = 0;
	__sync_fetch_and_add(&p->users, -1);
}

/*
 * Of the call in progress of the current task: what it needed besides the CPU
 * (WIRE_FETCHED, WIRE_SLEPT). Only its own thread reads and writes these bits.
 */
static __always_inline void note_need(struct task_struct *current, u16 need)
{
	struct plain_call *p = plain_call_of(current);
	struct task_state *st;

	if (p && p->in_call) {
		p->rec.hdr.flags |= need;
		return;
	}
	st = current_state(current, false);
	if (st && st->in_call)
		st->rec.hdr.flags |= need;
}

#endif
