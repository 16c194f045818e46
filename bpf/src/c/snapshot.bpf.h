/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks all tasks: at the start to mark those to record and to find the calls
 * they are in, at checkpoints and at the end to read the open calls.
 */
#ifndef __SYSTAPE_SNAPSHOT_H
#define __SYSTAPE_SNAPSHOT_H


/*
 * WALK_MARK, before the window opens: makes the states of tasks to record.
 * WALK_CALLS, after it: finds tasks in a call that began before. WALK_READ:
 * changes nothing. WALK_SELF, before everything: notes the recorder's ids.
 * WALK_FILES, before the window opens: notes the tables of open files for
 * walk_files. The kernel shows the tasks of the walker's pid namespace.
 */
u32 walk_mode = WALK_READ;

/* Letters of ps(1), fs/proc/array.c; F: frozen, for which it has none */
static __always_inline u8 state_letter(u32 state)
{
	if (state == TASK_RUNNING)
		return 'R';
	if (state & TASK_FROZEN)
		return 'F';
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
	if (state & 0x20) /* EXIT_ZOMBIE */
		return 'Z';
	if (state & (0x10 | 0x80)) /* EXIT_DEAD, TASK_DEAD */
		return 'X';
	if (state & 0x40)
		return 'P';
	if (state & 0x1000) /* TASK_RTLOCK_WAIT: shown as D */
		return 'D';
	if (state & 0x200) /* TASK_WAKING: it waits for a CPU */
		return 'R';
	return 0;
}

static __always_inline u8 mark(struct task_struct *task, const struct wire_snap *snap)
{
	u32 pid = snap->task.here_pid, tid = snap->task.here_tid;
	struct task_state *st;
	u32 *by_pid, *by_tid;
	bool armed = false, state_only = false;

	if (snap->kthread || snap->task.id.pid == own_tgid)
		return SNAP_NO;
	if (target_marked) {
		by_pid = bpf_map_lookup_elem(&targets, &pid);
		by_tid = bpf_map_lookup_elem(&targets, &tid);
		if (!(by_pid && *by_pid & TARGET_PID) && !(by_tid && *by_tid & TARGET_TID)) {
			if (!(by_pid && *by_pid & TARGET_STATE))
				return SNAP_NO;
			state_only = true;
		}
		armed = by_pid && *by_pid & TARGET_ARMED;
	}
	st = state_of(task, walk_mode == WALK_MARK);
	if (!st) {
		if (walk_mode == WALK_MARK && !state_only)
			note_stateless(task, armed);
		/* its calls are counted, and none of them can be shown */
		return lacks_state(task) ? SNAP_IDLE : SNAP_NO;
	}
	if (!st->matched && walk_mode == WALK_MARK) {
		init_state(st, task);
		if (state_only)
			st->matched = STATE_ONLY;
		st->armed = armed;
	}
	/* a task already recorded is in a call whose enter was seen, or in one that is not selected */
	if (!st->seen && snap->nr != SNAP_NO_CALL && !st->armed)
		st->began_before = 1;
	return state_only || st->armed ? SNAP_IDLE : SNAP_ASK;
}

static __always_inline u8 call_match(const struct task_state *st, const struct plain_call *p)
{
	if (!st || st->matched != MATCHED || st->armed)
		return SNAP_NO;
	if (p && p->in_call)
		return SNAP_YES;
	if (st->in_call)
		return st->rec.hdr.flags & WIRE_UNSELECTED ? SNAP_NO : SNAP_YES;
	return st->began_before ? SNAP_ASK : SNAP_NO;
}

static __always_inline u32 run_state(struct task_struct *task)
{
	return (u32)BPF_CORE_READ(task, exit_state) ?: freezer_state(task, task_run_state(task, false));
}

static __always_inline bool sleeps(struct task_struct *task)
{
	return !BPF_CORE_READ(task, exit_state) && run_state(task) != TASK_RUNNING;
}

static __always_inline void fill_call(struct wire_snap *snap, const struct wire_syscall *rec)
{
	snap->call_start = rec->start;
	snap->nr = rec->nr;
	snap->abi = rec->abi;
	__builtin_memcpy(snap->args, rec->args, sizeof(snap->args));
}

/* All but the call. */
static __always_inline void fill_snap(struct wire_snap *snap, struct task_struct *task)
{
	fill_task(&snap->task, task, WIRE_TASK, TASK_SEEN);
	snap->state = state_letter(run_state(task));
	snap->kthread = !!(BPF_CORE_READ(task, flags) & PF_KTHREAD);
	snap->exiting = !!(BPF_CORE_READ(task, flags) & PF_EXITING);
	snap->on_cpu = BPF_CORE_READ(task, on_cpu);
	snap->cpu = task_cpu(task, false);
	snap->last_run = last_run(task);
	snap->nr = SNAP_NO_CALL;
	snap->files = (u64)BPF_CORE_READ(task, files);
	snap->fs = (u64)BPF_CORE_READ(task, fs);
	fill_rss(snap, task);
}

static __always_inline void note_self(void)
{
	struct task_struct *self = current_task();
	struct pid *pid = BPF_CORE_READ(self, thread_pid);
	struct upid up = {};

	own_tgid = BPF_CORE_READ(self, tgid);
	own_level = BPF_CORE_READ(pid, level);
	bpf_core_read(&up, sizeof(up), &pid->numbers[own_level]);
	own_namespace = (u64)up.ns;
	own_root.mnt = BPF_CORE_READ(self, fs, root.mnt);
	own_root.dentry = BPF_CORE_READ(self, fs, root.dentry);
}

/*
 * Sockets belong to a table of open files, not to a thread: with -t they are
 * those of the thread's process. A command that waits for its start has those
 * it inherits.
 */
static __always_inline bool files_matter(struct task_struct *task)
{
	struct task_state *st;

	if (BPF_CORE_READ(task, flags) & PF_KTHREAD || (u32)BPF_CORE_READ(task, tgid) == own_tgid)
		return false;
	if (is_recorded(task))
		return true;
	st = target_marked ? state_of(task, false) : NULL;
	return st ? st->armed || st->matched == STATE_ONLY : stateless_of(task) != NULL;
}

static __always_inline void note_files(struct task_struct *task)
{
	u64 files;
	u8 one = 1;

	if (!files_matter(task))
		return;
	files = (u64)BPF_CORE_READ(task, files);
	if (files && bpf_map_update_elem(&target_files, &files, &one, BPF_ANY))
		count_drop(DROP_NET_STATE);
}

int walk_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct wire_snap snap = {};
	struct plain_call *p;
	struct task_state *st;

	if (!task)
		return 0;
	if (walk_mode == WALK_SELF) {
		note_self();
		if (BPF_CORE_READ(task, pid) == (u32)bpf_get_current_pid_tgid())
			note_own_regs(task);
		return 0;
	}
	if (walk_mode == WALK_FILES) {
		note_files(task);
		return 0;
	}
	fill_snap(&snap, task);
	st = state_of(task, false);
	p = plain_call_of(task);
	if (p && p->in_call) {
		order_memory(&p->users);
		fill_call(&snap, &p->rec);
	} else if (st && st->in_call) {
		order_memory(&st->probed);
		fill_call(&snap, &st->rec);
	} else if (!snap.kthread && sleeps(task)) {
		u64 at = user_regs_of(task);
		long id = -1;

		/* none: it went to sleep in an exception, not in a call */
		if (at && call_at(task, at, &id, &snap.abi)) {
			snap.nr = id;
			args_at(at, snap.args, snap.abi);
		}
	}
	if (walk_mode != WALK_READ)
		snap.matched = mark(task, &snap);
	else
		snap.matched = call_match(st, p);
	snap.task.hdr.flags |= target_flags(task, NULL);
	bpf_seq_write(ctx->meta->seq, &snap, sizeof(snap));
	return 0;
}

/*
 * For each key of outsiders: the call in progress of a task that walk_tasks
 * cannot see, in outsider_call, if it returns 1. Either may be freed: then the
 * ids do not agree.
 */
int read_outsider(u64 *ctx)
{
	u32 tid = ctx[0], zero = 0;
	struct outsider *o = bpf_map_lookup_elem(&outsiders, &tid);
	struct wire_syscall rec = {};
	struct wire_snap snap = {};
	struct task_struct *task;
	struct task_state *st;
	u8 matched = 0, in_call = 0;

	if (!o)
		return 0;
	task = (void *)o->task;
	st = (void *)o->state;
	bpf_probe_read_kernel(&matched, sizeof(matched), &st->matched);
	bpf_probe_read_kernel(&in_call, sizeof(in_call), &st->in_call);
	bpf_probe_read_kernel(&rec, WIRE_PLAIN_SYSCALL, &st->rec);
	if (matched != MATCHED || !in_call || rec.hdr.flags & WIRE_UNSELECTED)
		return 0;
	fill_snap(&snap, task);
	if (snap.task.id.tid != rec.id.tid || snap.task.id.start != rec.id.start)
		return 0;
	fill_call(&snap, &rec);
	snap.matched = SNAP_YES;
	return !bpf_map_update_elem(&outsider_call, &zero, &snap, BPF_ANY);
}

#endif
