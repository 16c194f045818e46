/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Family "sched": switches and wake-ups. */
#ifndef __SYSTAPE_SCHED_H
#define __SYSTAPE_SCHED_H

/* `vouched`: the kernel guarantees the pointer (FIELD), unlike one kept in a map. */
static __always_inline u32 task_run_state(struct task_struct *task, bool vouched)
{
	if (bpf_core_field_exists(task->__state))
		return vouched ? FIELD(task, __state) : BPF_CORE_READ(task, __state);
	return BPF_CORE_READ((struct task_struct___old *)task, state);
}

/*
 * `state` with TASK_FROZEN if the freezer of a cgroup holds the task: version 2
 * has it sleep interruptibly, and version 1 uninterruptibly with a flag before
 * the kernel (6.1) in which maple trees and the state came.
 */
static __always_inline u32 freezer_state(struct task_struct *task, u32 state)
{
	if ((state & TASK_INTERRUPTIBLE) && bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD_PROBED(task, frozen))
		return state | TASK_FROZEN;
	if ((state & TASK_UNINTERRUPTIBLE) && !bpf_core_field_exists(task->mm->mm_mt) && (BPF_CORE_READ(task, flags) & PF_FROZEN))
		return state | TASK_FROZEN;
	return state;
}

static __always_inline u32 task_cpu(struct task_struct *task, bool vouched)
{
	struct task_struct___info *info = (void *)task;

	if (bpf_core_field_exists(info->thread_info.cpu))
		return vouched ? FIELD(info, thread_info.cpu) : BPF_CORE_READ(info, thread_info.cpu);
	if (bpf_core_field_exists(task->cpu))
		return vouched ? FIELD(task, cpu) : BPF_CORE_READ(task, cpu);
	return 0;
}

/* When a task last got a CPU, CLOCK_MONOTONIC; 0 = not known. */
static __always_inline u64 last_run(struct task_struct *task)
{
	u64 arrival = 0;

	if (bpf_core_field_exists(task->sched_info.last_arrival))
		arrival = BPF_CORE_READ(task, sched_info.last_arrival);
	return arrival && sched_clock_offset ? arrival + sched_clock_offset : 0;
}

/*
 * sched_info uses the scheduler's clock, which no program can read. The kernel
 * sets it when a task gets a CPU, at the same moment as our own note `got`.
 */
static __always_inline void learn_sched_clock(struct task_struct *prev, struct arrival *got)
{
	u64 arrival;

	if (sched_clock_offset || !bpf_core_field_exists(prev->sched_info.last_arrival))
		return;
	/* the idle task has no such times */
	if (got->task != (u64)prev || !prev->pid)
		return;
	arrival = BPF_CORE_READ(prev, sched_info.last_arrival);
	if (arrival)
		sched_clock_offset = got->ts - arrival;
}

/*
 * When a task that leaves its CPU now got it, by the scheduler's own times: its
 * clock was just read, so that both clocks agree by less than a microsecond,
 * unless the CPU looked for other work first. 0 = not known.
 */
static __always_inline u64 kernel_arrival(struct task_struct *prev, u64 now)
{
	u64 arrival, clock;

	if (!bpf_core_field_exists(prev->sched_info.last_arrival) || !bpf_core_field_exists(prev->se.cfs_rq))
		return 0;
	/* the idle task has no such times */
	if (!prev->pid)
		return 0;
	arrival = BPF_CORE_READ(prev, sched_info.last_arrival);
	clock = BPF_CORE_READ(prev, se.cfs_rq, rq, clock);
	return arrival && arrival <= clock && clock - arrival < now ? now - (clock - arrival) : 0;
}

/*
 * Each switch of a CPU leaves the task that the one before brought. If not, some
 * were not seen: a kernel was met that runs no program while certain tasks are
 * current, and whoever takes over from one of them comes unseen. Fills in when
 * `prev` came; 1: a recorded task left unseen.
 */
static __always_inline int see_unseen(struct wire_switch *w, struct task_struct *prev, struct arrival *got)
{
	if (!got->ts || got->task == (u64)prev)
		return 0;
	w->hdr.flags |= SWITCH_UNSEEN;
	w->came = kernel_arrival(prev, w->ts);
	if (w->came < got->ts) {
		w->hdr.flags |= SWITCH_SINCE;
		w->came = got->ts;
	}
	return got->recorded;
}

/*
 * Whether a runnable task that leaves its CPU waits for the quota of a cgroup.
 * Before 6.18 the kernel takes whole groups off a CPU at once, and a task that
 * is in one of them cannot run, wherever it is in the kernel. Read by helpers:
 * in some variants of sched_switch the verifier has forgotten what `prev` is.
 */
static __always_inline bool is_throttled(struct task_struct *task)
{
	if (bpf_core_field_exists(task->throttled))
		return BPF_CORE_READ(task, throttled);
	if (bpf_core_field_exists(task->se.cfs_rq) && bpf_core_field_exists(task->se.cfs_rq->throttle_count))
		return BPF_CORE_READ(task, se.cfs_rq, throttle_count) > 0;
	return false;
}

/* For how long a task's group was out of quota on this CPU until now, in units of 1024 ns, modulo 2^32. */
static __always_inline u32 throttle_clock(struct task_struct *task, bool is_out)
{
	struct cfs_rq *group = NULL;
	u64 sum, since;

	if (!bpf_core_field_exists(task->se.cfs_rq) || !bpf_core_field_exists(group->throttled_clock_self_time))
		return 0;
	group = BPF_CORE_READ(task, se.cfs_rq);
	sum = BPF_CORE_READ(group, throttled_clock_self_time);
	since = is_out ? BPF_CORE_READ(group, throttled_clock_self) : 0;
	if (since)
		sum += BPF_CORE_READ(group, rq, clock) - since;
	return sum >> 10;
}

int sched_switch(u64 *ctx)
{
	bool preempt = ctx[0];
	struct task_struct *prev = (void *)ctx[1];
	struct task_struct *next = (void *)ctx[2];
	struct wire_switch w = {};
	u64 now = bpf_ktime_get_ns();
	u32 zero = 0;
	struct arrival *got = bpf_map_lookup_elem(&arrivals, &zero);
	bool comes = window == WINDOW_OPEN && is_recorded(next);
	bool left = false;

	if (!got)
		return 0;
	learn_sched_clock(prev, got);
	w.ts = now;
	if (window == WINDOW_OPEN)
		left = see_unseen(&w, prev, got);
	got->ts = now;
	got->task = (u64)next;
	got->recorded = comes;
	if (window != WINDOW_OPEN)
		return 0;
	if (!left && !comes && !is_recorded(prev))
		return 0;
	if (has_switch_state)
		w.prev_state = CTX_ARG(ctx, 3);
	else
		w.prev_state = task_run_state(prev, true);
	/* wherever it goes on */
	if (!preempt && w.prev_state != TASK_RUNNING)
		note_need(current_task(), WIRE_SLEPT);
	if (!cpu_is_recorded())
		return 0;
	w.hdr.kind = WIRE_SWITCH;
	w.hdr.flags |= preempt ? SWITCH_PREEMPTED : 0;
	w.hdr.cpu = bpf_get_smp_processor_id();
	fill_who(&w.prev, prev);
	fill_who(&w.next, next);
	w.prev_state = freezer_state(prev, w.prev_state);
	if ((preempt || w.prev_state == TASK_RUNNING) && is_throttled(prev)) {
		w.hdr.flags |= SWITCH_THROTTLED;
		w.prev_throttle = throttle_clock(prev, true);
	}
	w.next_throttle = throttle_clock(next, false);
	if (wants_stack(STACK_SWITCH) && w.prev.tid && is_recorded(prev))
		take_stack(ctx, STACK_SWITCH, now, now, 0);
	send_sched(&w, w.hdr.cpu, BUFFER_SWITCHES);
	return 0;
}

static __always_inline int wakeup(void *ctx, struct task_struct *wakee, u16 flags)
{
	struct task_struct *current = current_task();
	struct wire_wakeup w = {};

	if (window != WINDOW_OPEN)
		return 0;
	if (!cpu_is_recorded())
		return 0;
	if (in_interrupt(ctx, current))
		flags |= is_own_softirq(ctx, current) ? WAKEUP_IRQ | WAKEUP_SOFTIRQ : WAKEUP_IRQ;
	/* an interrupted task has nothing to do with it */
	if (!is_recorded(wakee) && ((flags & (WAKEUP_IRQ | WAKEUP_SOFTIRQ)) == WAKEUP_IRQ || !is_recorded(current)))
		return 0;
	w.hdr.kind = WIRE_WAKEUP;
	w.hdr.flags = flags;
	w.hdr.cpu = bpf_get_smp_processor_id();
	w.ts = bpf_ktime_get_ns();
	fill_who(&w.waker, current);
	fill_who(&w.wakee, wakee);
	/* since 6.18 it runs until it has left the kernel, and its switch says it */
	if (!bpf_core_field_exists(wakee->throttled) && is_throttled(wakee))
		w.hdr.flags |= WAKEUP_THROTTLED;
	w.target_cpu = task_cpu(wakee, true);
	if (wants_stack(STACK_WAKEUP) && w.waker.tid && (!(flags & WAKEUP_IRQ) || flags & WAKEUP_SOFTIRQ))
		take_stack(ctx, STACK_WAKEUP, w.ts, w.ts, 0);
	/* of the current task: interrupts may be on, and bring another (maps.bpf.h) */
	if ((flags & WAKEUP_NEW) || wakee == current)
		send_sched_bulk(&w, sizeof(w));
	else
		send_sched(&w, w.hdr.cpu, BUFFER_WAKEUPS);
	return 0;
}

int sched_waking(u64 *ctx)
{
	return wakeup(ctx, (void *)ctx[0], 0);
}

int sched_wakeup_new(u64 *ctx)
{
	return wakeup(ctx, (void *)ctx[0], WAKEUP_NEW);
}

#endif
