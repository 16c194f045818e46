/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Family "process": fork, exec, exit, new names. */
#ifndef __SYSTAPE_PROCESS_H
#define __SYSTAPE_PROCESS_H

#define ARGV_MAX 16383 /* a mask */

int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	struct task_state *st, *cst;
	struct wire_fork f = {};
	u8 matched = MATCHED;
	u16 flags = 0;
	bool thread;

	if (window == WINDOW_DRAINING)
		return 0;
	if (window == WINDOW_CLOSED) {
		/* marked, but not begun yet: the child's first call identifies it */
		st = current_state(parent, false);
		if (st ? !st->armed && st->matched && (inherit || st->matched == STATE_ONLY) :
			 target_marked && inherit && lacks_state(parent)) {
			if (!state_of(child, true))
				note_stateless(child, false);
		}
		return 0;
	}
	st = recorded_current(parent, true);
	if (!st) {
		/* a child of the recorder is recorded no more than the recorder */
		st = current_state(parent, false);
		cst = st && st->matched == NOT_MATCHED ? state_of(child, true) : NULL;
		if (cst) {
			init_state(cst, child);
			cst->matched = NOT_MATCHED;
		}
		if (st || !lacks_state(parent))
			return 0;
	}
	if (st && st->armed)
		return 0;
	thread = BPF_CORE_READ(parent, tgid) == BPF_CORE_READ(child, tgid);
	/* a process made by a thread beside a recorded one is recorded no more than that thread */
	if (st)
		matched = st->matched;
	if (matched == STATE_ONLY && !thread)
		return 0;
	if (thread)
		flags |= FORK_THREAD;
	if (BPF_CORE_READ(parent, files) == BPF_CORE_READ(child, files))
		flags |= FORK_SHARES_FILES;
	if (BPF_CORE_READ(parent, fs) == BPF_CORE_READ(child, fs))
		flags |= FORK_SHARES_FS;
	if (!target_marked || thread || (inherit && matched == MATCHED)) {
		cst = state_of(child, true);
		if (cst) {
			init_state(cst, child);
			cst->matched = matched;
			cst->fresh = 1;
			note_outsider(cst, child);
		} else if (matched == MATCHED) {
			note_stateless(child, false);
		} else {
			/* its own calls are not recorded, but their effect on its process's files is tracked */
			lose_state(BPF_CORE_READ(child, tgid));
		}
	}
	fill_task(&f.child, child, WIRE_FORK, flags | target_flags(child, NULL));
	if (st)
		f.parent = st->rec.id;
	else
		fill_ident(&f.parent, parent);
	send_process(&f, sizeof(f));
	return 0;
}

/* A thread that execs without a state: its entry moves to its new id. */
static __always_inline bool takes_stateless_along(struct task_struct *task, u32 old_tid)
{
	struct stateless *s;

	if (!any_stateless)
		return false;
	s = target_marked ? bpf_map_lookup_elem(&stateless_tasks, &old_tid) : NULL;
	if (s && (u32)FIELD(task, pid) != old_tid) {
		note_stateless(task, s->armed);
		bpf_map_delete_elem(&stateless_tasks, &old_tid);
	}
	return lacks_state(task);
}

/* A thread that execs gets its leader's ids and start. */
static __always_inline void become(struct task_state *st, struct task_struct *task)
{
	if (st->rec.id.tid != (u32)BPF_CORE_READ(task, pid))
		release_plain(&st->rec.id);
	fill_ident(&st->rec.id, task);
}

int BPF_PROG(sched_process_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	unsigned long arg_start, arg_end;
	struct task_state *st;
	struct slot *s;
	u32 index, len, off;
	long n;

	if (window != WINDOW_OPEN) {
		st = window == WINDOW_CLOSED ? current_state(task, false) : NULL;
		if (st)
			fill_ident(&st->rec.id, task);
		return 0;
	}
	st = recorded_current(task, true);
	if (!st && !has_task_storage && BPF_CORE_READ(task, pid) != old_pid)
		st = state_by_tid(old_pid, false);
	if (st ? st->matched == NOT_MATCHED : current_state(task, false) || !takes_stateless_along(task, old_pid))
		return 0;
	/* without recorded calls, this is the first event of the command */
	if (st)
		st->armed = 0;
	s = slot_get(&index);
	if (!s) {
		/* without argv rather than not at all */
		if (st)
			become(st, task);
		send_task(task, TASK_RENAME);
		return 0;
	}
	/*
	 * a thread that execs gets the leader's ids and start; the record of
	 * the call in progress keeps the old ones
	 */
	__builtin_memset(&s->exec, 0, sizeof(s->exec));
	fill_task(&s->exec.task, task, WIRE_EXEC, target_flags(task, NULL));
	s->exec.old_tid = old_pid;
	s->exec.interpreted = BPF_CORE_READ(bprm, interp) != BPF_CORE_READ(bprm, filename);
	if (!s->exec.interpreted)
		fill_inode(&s->exec.file, BPF_CORE_READ(bprm, file, f_inode));
	n = bpf_probe_read_kernel_str(s->data, STRING_MAX, BPF_CORE_READ(bprm, filename));
	off = n > 0 ? n - 1 : 0;
	off &= STRING_MAX - 1;
	s->exec.path_len = off;
	arg_start = BPF_CORE_READ(task, mm, arg_start);
	arg_end = BPF_CORE_READ(task, mm, arg_end);
	s->exec.argv_full = arg_end - arg_start;
	len = s->exec.argv_full > argv_limit ? argv_limit : s->exec.argv_full;
	len &= ARGV_MAX;
	if (len && bpf_probe_read_user(&s->data[off], len, (void *)arg_start)) {
		len = 0;
		s->exec.argv_status = BYTES_NOT_RESIDENT;
	} else {
		s->exec.argv_status = len < s->exec.argv_full ? BYTES_TRUNCATED : BYTES_WHOLE;
	}
	s->exec.argv_len = len;
	send_process(s, sizeof(struct wire_exec) + ((off + len) & SLOT_DATA_MASK));
	slot_put(index);
	if (!st)
		return 0;
	become(st, task);
	if (st->rec.id.tid != old_pid) {
		forget_outsider(old_pid);
		note_outsider(st, task);
	}
	return 0;
}

#define ENVIRON_PARTS 8

/*
 * The environment of a program that begins, in parts: with --env. It comes behind
 * the record of the exec, because the program above is attached before this one.
 */
int BPF_PROG(exec_environ, struct task_struct *task)
{
	unsigned long start, end;
	struct slot *s;
	u32 index, len;

	if (window != WINDOW_OPEN || !life_is_recorded(task, state_of(task, false)))
		return 0;
	s = slot_get(&index);
	if (!s)
		return 0;
	start = BPF_CORE_READ(task, mm, env_start);
	end = BPF_CORE_READ(task, mm, env_end);
	__builtin_memset(&s->environ, 0, sizeof(s->environ));
	s->environ.hdr.kind = WIRE_ENVIRON;
	s->environ.hdr.cpu = bpf_get_smp_processor_id();
	fill_ident(&s->environ.id, task);
	s->environ.full = end - start;
	for (u32 i = 0; i < ENVIRON_PARTS; i++) {
		u64 left = end - start - (u64)i * ARGV_MAX;

		len = left > ARGV_MAX ? ARGV_MAX : left;
		s->environ.last = left <= ARGV_MAX || i == ENVIRON_PARTS - 1;
		s->environ.offset = i * ARGV_MAX;
		s->environ.ts = bpf_ktime_get_ns();
		/* old verifiers lose the bound when the value goes through the stack */
		barrier_var(len);
		len &= ARGV_MAX;
		if (len && bpf_probe_read_user(s->data, len, (void *)start + i * ARGV_MAX))
			break;
		barrier_var(len);
		len &= ARGV_MAX;
		s->environ.len = len;
		send_process(s, sizeof(struct wire_environ) + len);
		if (s->environ.last)
			break;
	}
	slot_put(index);
	return 0;
}

int BPF_PROG(sched_process_exit, struct task_struct *task)
{
	const struct sc_desc *d;
	struct task_state *st;
	struct plain_call *p;
	struct wire_exit e = {};

	if (window == WINDOW_CLOSED)
		return 0;
	st = current_state(task, false);
	if (!life_is_recorded(task, st))
		goto out;
	if (!st) {
		fill_ident(&e.id, task);
		goto send;
	}
	p = plain_call_of(task);
	if (p && p->in_call) {
		__builtin_memcpy(&st->rec, &p->rec, WIRE_PLAIN_SYSCALL);
		st->in_call = 1;
		st->binds = 0;
	}
	release_plain(&st->rec.id);
	if (st->in_call) {
		/* exit, exit_group, or a call from which the task never returned */
		st->in_call = 0;
		st->rec.state = CALL_NO_RETURN;
		st->rec.end = bpf_ktime_get_ns();
		st->rec.ret = 0;
		d = desc_of(st->rec.abi, st->rec.nr);
		if (d) {
			if (!leave_out(st, d))
				send_record(st, d);
			count_if_missed(st, d, task, false);
		}
	} else if (st->slot) {
		slot_put(st->slot - 1);
		st->slot = 0;
	}
	e.id = st->rec.id;
send:
	e.hdr.kind = WIRE_EXIT;
	if (bpf_core_field_exists(task->seccomp.mode))
		e.hdr.flags = BPF_CORE_READ(task, seccomp.mode);
	e.hdr.cpu = bpf_get_smp_processor_id();
	e.ts = bpf_ktime_get_ns();
	e.exit_code = BPF_CORE_READ(task, exit_code);
	e.group_dead = BPF_CORE_READ(task, signal, live.counter) == 0;
	if (has_threads(task))
		send_usage(&e, task, false);
	if (e.group_dead)
		send_usage(&e, task, true);
	send_process(&e, sizeof(e));
out:
	forget_outsider(bpf_get_current_pid_tgid());
	if (any_stateless && target_marked) {
		u32 tid = (u32)bpf_get_current_pid_tgid();

		bpf_map_delete_elem(&stateless_tasks, &tid);
	}
	if (!has_task_storage) {
		u32 tid = (u32)bpf_get_current_pid_tgid();

		bpf_map_delete_elem(&task_states_by_tid, &tid);
	}
	return 0;
}

/* A cgroup's number and path; `task` came into it, NULL = it was made. */
static __always_inline void send_cgroup(struct cgroup *cgrp, const char *path, struct task_struct *task, u16 flags)
{
	u32 index, len;
	struct slot *s;
	long n;

	s = slot_get(&index);
	if (!s)
		return;
	__builtin_memset(&s->cgroup, 0, sizeof(s->cgroup));
	s->cgroup.hdr.kind = WIRE_CGROUP;
	s->cgroup.hdr.flags = flags;
	s->cgroup.hdr.cpu = bpf_get_smp_processor_id();
	s->cgroup.ts = bpf_ktime_get_ns();
	s->cgroup.id = cgroup_number(cgrp);
	if (task)
		fill_ident(&s->cgroup.task, task);
	n = bpf_probe_read_kernel_str(s->data, STRING_MAX, path);
	len = n > 0 ? n - 1 : 0;
	len &= STRING_MAX - 1;
	s->cgroup.path_len = len;
	send_process(s, sizeof(struct wire_cgroup) + len);
	slot_put(index);
}

int BPF_PROG(cgroup_attach_task, struct cgroup *dst, const char *path, struct task_struct *task, bool threadgroup)
{
	struct task_state *st;

	if (window != WINDOW_OPEN)
		return 0;
	st = state_of(task, false);
	if (life_is_recorded(task, st)) {
		send_task(task, threadgroup ? TASK_CGROUP_ALL : TASK_CGROUP);
		send_cgroup(dst, path, task, CGROUP_JOINED);
	}
	return 0;
}

/* Of v1 in one hierarchy: each of the others has such a cgroup of its own. */
int BPF_PROG(cgroup_mkdir, struct cgroup *cgrp, const char *path)
{
	u32 hierarchy = BPF_CORE_READ(cgrp, root, hierarchy_id);

	if (window == WINDOW_OPEN && (!hierarchy || hierarchy == v1_hierarchy))
		send_cgroup(cgrp, path, NULL, 0);
	return 0;
}

int BPF_PROG(task_rename, struct task_struct *task, const char *comm)
{
	struct wire_task t = {};
	struct task_state *st;

	if (window != WINDOW_OPEN)
		return 0;
	/* the record of the exec has the name, too */
	if (is_sparse && bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD_PROBED(task, in_execve))
		return 0;
	st = state_of(task, false);
	if (!life_is_recorded(task, st))
		return 0;
	fill_task(&t, task, WIRE_TASK, TASK_RENAME | target_flags(task, comm));
	/* the task still has its old name here */
	__builtin_memset(t.comm, 0, sizeof(t.comm));
	bpf_probe_read_kernel_str(t.comm, sizeof(t.comm), comm);
	send_process(&t, sizeof(t));
	return 0;
}

#endif
