/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks all tasks: at the start to mark those to record and to see the calls
 * they are in, at checkpoints and at the end to read the calls still open.
 */
#ifndef __SYSTAPE_SNAPSHOT_H
#define __SYSTAPE_SNAPSHOT_H

#define PF_KTHREAD 0x00200000
#define TASK_RUNNING 0

bool snapshot_marks = false; /* set for the first walk */

static __always_inline u32 task_run_state(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return BPF_CORE_READ((struct task_struct___old *)task, state);
}

/* Letters of ps(1), fs/proc/array.c */
static __always_inline u8 state_letter(u32 state)
{
	if (state == TASK_RUNNING)
		return 'R';
	if ((state & 0x402) == 0x402) /* TASK_IDLE */
		return 'I';
	if (state & 1)
		return 'S';
	if (state & 2)
		return 'D';
	if (state & 4)
		return 'T';
	if (state & 8)
		return 't';
	if (state & 0x20)
		return 'Z';
	if (state & 0x10)
		return 'X';
	return 0;
}

/* User registers of a task that is not running, by hand: bpf_task_pt_regs is 5.15. */
static __always_inline void read_regs(struct pt_regs *regs, struct task_struct *task)
{
	void *stack = BPF_CORE_READ(task, stack);

	/* THREAD_SIZE 16 KiB on x86-64 without KASAN; pt_regs ends at its top */
	bpf_probe_read_kernel(regs, sizeof(*regs), stack + 16384 - sizeof(*regs));
}

static __always_inline bool mark(struct task_struct *task, const struct wire_snap *snap)
{
	u32 pid = snap->task.id.pid, tid = snap->task.id.tid;
	struct task_state *st;
	u32 *by_pid, *by_tid;
	bool armed = false;

	if (snap->kthread || pid == own_tgid)
		return false;
	if (target_marked) {
		by_pid = bpf_map_lookup_elem(&targets, &pid);
		by_tid = bpf_map_lookup_elem(&targets, &tid);
		if (!(by_pid && *by_pid & TARGET_PID) && !(by_tid && *by_tid & TARGET_TID))
			return false;
		armed = by_pid && *by_pid & TARGET_ARMED;
	}
	st = state_of(task, true);
	if (!st) {
		count_drop(DROP_NO_TASK);
		return false;
	}
	if (!st->matched) {
		init_state(st, task);
		st->armed = armed;
	}
	if (!st->in_call && snap->nr != SNAP_NO_CALL && !armed)
		st->began_before = 1;
	return true;
}

SEC("iter/task")
int walk_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct wire_snap snap = {};
	struct task_state *st;
	struct pt_regs regs;
	u32 state;

	if (!task)
		return 0;
	fill_task(&snap.task, task, WIRE_TASK, TASK_SEEN);
	state = task_run_state(task);
	snap.state = state_letter(state);
	snap.kthread = !!(BPF_CORE_READ(task, flags) & PF_KTHREAD);
	snap.nr = SNAP_NO_CALL;
	st = state_of(task, false);
	if (st && st->matched == MATCHED && st->in_call) {
		snap.call_start = st->rec.start;
		snap.nr = st->rec.nr;
		snap.abi = st->rec.abi;
		__builtin_memcpy(snap.args, st->rec.args, sizeof(snap.args));
	} else if (!snap.kthread && state != TASK_RUNNING) {
		read_regs(&regs, task);
		/* -1: it went to sleep in an exception, not in a call */
		if ((long)regs.orig_ax >= 0) {
			snap.nr = regs.orig_ax;
			snap.abi = abi_of(task, regs.orig_ax);
			read_args(snap.args, &regs, snap.abi);
		}
	}
	if (snapshot_marks)
		snap.matched = mark(task, &snap);
	else
		snap.matched = st && st->matched == MATCHED && (st->in_call || st->began_before);
	bpf_seq_write(ctx->meta->seq, &snap, sizeof(snap));
	return 0;
}

#endif
