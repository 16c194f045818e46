/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Identity of a task, whether it is recorded, and the state it carries from enter to exit. */
#ifndef __SYSTAPE_TASK_H
#define __SYSTAPE_TASK_H

#define X32_BIT 0x40000000 /* __X32_SYSCALL_BIT */

#define PF_EXITING 0x00000004
#define PF_IO_WORKER 0x00000010
#define PF_KTHREAD 0x00200000
#define PF_WQ_WORKER 0x00000020

/*
 * Argument n of a raw tracepoint. From two such loads in two branches the
 * compiler would make one with a computed address, which 5.10 refuses for a
 * context.
 */
#define CTX_ARG(ctx, n)                                                                           \
	({                                                                                        \
		u64 __value;                                                                      \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(__value) : "r"(ctx), "i"((n) * 8)); \
		__value;                                                                          \
	})

#define TASK_RUNNING 0 /* include/linux/sched.h */
#define TASK_INTERRUPTIBLE 1
#define TASK_UNINTERRUPTIBLE 2
#define TASK_FROZEN 0x8000 /* since 6.1 */
#define PF_FROZEN 0x10000  /* before 6.1 */

/*
 * A field of an object that the kernel guarantees (a tracepoint's argument, the
 * current task, and what they point to): a plain load if that is allowed for
 * all of them, rather than a helper call.
 */
#define FIELD(ptr, field)                                       \
	({                                                      \
		typeof(ptr) __from = (ptr);                     \
		typeof(__from->field) __field;                  \
		if (has_task_storage)                           \
			__field = __from->field;                \
		else                                            \
			__field = BPF_CORE_READ(__from, field); \
		__field;                                        \
	})

extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym __weak;

/* A field of a kernel's struct: a plain load where the kernel allows it. */
#define LOADED(type, p, field)                                                                         \
	(has_rdonly_cast ? ((type *)bpf_rdonly_cast((p), bpf_core_type_id_kernel(type)))->field :      \
			   BPF_CORE_READ((type *)(p), field))

/*
 * A tracepoint's argument, or the current task, that nothing is known of: from one
 * that the verifier trusts it looks up by name, among all types of the kernel, how
 * far each pointer in it is to be trusted (0.7 ms for each load).
 */
#define UNTRUSTED(type, p) (has_rdonly_cast ? (type *)bpf_rdonly_cast((p), bpf_core_type_id_kernel(type)) : (p))

/* An address as a number, which is what functions that are not static take: the verifier lets no pointer be one. */
static __always_inline u64 number_of(const void *pointer)
{
	u64 number = 0;

	bpf_probe_read_kernel(&number, sizeof(number), &pointer);
	return number;
}

/* A helper call, expensive where the kernel guards its returns: once per program. */
static __always_inline struct task_struct *current_task(void)
{
	/* 5.10 has no bpf_get_current_task_btf; a plain pointer does for probe reads. */
	if (has_task_storage)
		return bpf_get_current_task_btf();
	return (struct task_struct *)bpf_get_current_task();
}

static __always_inline struct task_state *state_by_tid(u32 tid, bool create)
{
	struct task_state *st = bpf_map_lookup_elem(&task_states_by_tid, &tid);
	u32 zero = 0;
	void *init;

	if (st || !create)
		return st;
	init = bpf_map_lookup_elem(&zero_state, &zero);
	if (!init)
		return NULL;
	bpf_map_update_elem(&task_states_by_tid, &tid, init, BPF_NOEXIST);
	return bpf_map_lookup_elem(&task_states_by_tid, &tid);
}

static __always_inline struct task_state *current_state(struct task_struct *current, bool create)
{
	if (no_task_states)
		return NULL;
	if (has_task_storage)
		return bpf_task_storage_get(&task_states, current, NULL,
					    create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	return state_by_tid((u32)bpf_get_current_pid_tgid(), create);
}

/* For a task from a tracepoint or the iterator (a trusted pointer). */
static __always_inline struct task_state *state_of(struct task_struct *task, bool create)
{
	if (no_task_states)
		return NULL;
	if (has_task_storage)
		return bpf_task_storage_get(&task_states, task, NULL,
					    create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	return state_by_tid(BPF_CORE_READ(task, pid), create);
}

/*
 * The entry of a task to record without a state; NULL = it has one, or is not
 * recorded. Such entries exist for marked targets only.
 */
static __always_inline struct stateless *stateless_of(struct task_struct *task)
{
	struct stateless *s;
	u32 tid;

	if (!any_stateless)
		return NULL;
	tid = FIELD(task, pid);
	s = bpf_map_lookup_elem(&stateless_tasks, &tid);
	return s && s->start == FIELD(task, start_time) ? s : NULL;
}

/* A task to record got no state. Without marks every task is recorded, and no entry is needed. */
static __always_inline void note_stateless(struct task_struct *task, bool armed)
{
	struct stateless s = {};
	u32 tid = FIELD(task, pid);

	any_stateless = 1;
	if (!target_marked)
		return;
	s.start = FIELD(task, start_time);
	s.armed = armed;
	if (bpf_map_update_elem(&stateless_tasks, &tid, &s, BPF_ANY))
		count_drop(DROP_NO_TASK);
}

/* Whether a task without a state would be recorded if it had one. */
static __always_inline bool lacks_state(struct task_struct *task)
{
	struct stateless *s;

	if (!any_stateless)
		return false;
	if (target_marked) {
		s = stateless_of(task);
		return s && !s->armed;
	}
	return (u32)FIELD(task, tgid) != own_tgid && !(FIELD(task, flags) & PF_KTHREAD);
}

/* Whether process life of a task is recorded; `st`: its state, or NULL. */
static __always_inline bool life_is_recorded(struct task_struct *task, const struct task_state *st)
{
	return st ? st->matched != NOT_MATCHED && !st->armed : lacks_state(task);
}

static __always_inline void fill_ident(struct wire_ident *id, struct task_struct *task)
{
	id->tid = BPF_CORE_READ(task, pid);
	id->pid = BPF_CORE_READ(task, tgid);
	id->start = BPF_CORE_READ(task, start_time);
	id->leader_start = BPF_CORE_READ(task, group_leader, start_time);
}

/* A task's id in the recorder's pid namespace; 0 = none. */
static __always_inline u32 number_here(struct pid *pid)
{
	struct upid up = {};
	u32 level = own_level;

	if (!pid || BPF_CORE_READ(pid, level) < level)
		return 0;
	bpf_core_read(&up, sizeof(up), &pid->numbers[level]);
	return (u64)up.ns == own_namespace ? up.nr : 0;
}

/* A process's id. In the first namespace every task has the machine's id, also a dead one. */
static __always_inline u32 process_here(struct task_struct *task)
{
	if (!own_level)
		return BPF_CORE_READ(task, tgid);
	return number_here(BPF_CORE_READ(task, group_leader, thread_pid));
}

static __always_inline u32 thread_here(struct task_struct *task)
{
	if (!own_level)
		return BPF_CORE_READ(task, pid);
	return number_here(BPF_CORE_READ(task, thread_pid));
}

/* A cgroup's id on the tape: of v1 with its hierarchy's number. */
static __always_inline u64 cgroup_number(struct cgroup *cgrp)
{
	return BPF_CORE_READ(cgrp, kn, id) | (u64)(u8)BPF_CORE_READ(cgrp, root, hierarchy_id) << V1_SHIFT;
}

/* The cgroup of v1 that a task is in; NULL = the top, or there is no such hierarchy. */
static __always_inline struct cgroup *v1_cgroup(struct css_set *set)
{
	struct cgroup_subsys_state *css = NULL;
	struct cgroup *cgrp;
	u32 at = 0;

	if (v1_controller == V1_MEMORY && bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		at = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
	else if (v1_controller == V1_PIDS && bpf_core_enum_value_exists(enum cgroup_subsys_id, pids_cgrp_id))
		at = bpf_core_enum_value(enum cgroup_subsys_id, pids_cgrp_id);
	else if (v1_controller == V1_CPU && bpf_core_enum_value_exists(enum cgroup_subsys_id, cpu_cgrp_id))
		at = bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id);
	else
		return NULL;
	bpf_probe_read_kernel(&css, sizeof(css),
			      (char *)set + bpf_core_field_offset(struct css_set, subsys) + at * sizeof(css));
	cgrp = BPF_CORE_READ(css, cgroup);
	return cgrp && BPF_CORE_READ(cgrp, level) ? cgrp : NULL;
}

/*
 * v2 first; tasks in no cgroup of it may be in one of v1. A function of its own,
 * with a number as argument, so that the verifier walks it once.
 */
__noinline u64 cgroup_of_set(u64 address)
{
	struct css_set *set = (void *)address;
	struct cgroup *cgrp = BPF_CORE_READ(set, dfl_cgrp), *v1;

	if (!v1_hierarchy || BPF_CORE_READ(cgrp, level))
		return BPF_CORE_READ(cgrp, kn, id);
	v1 = v1_cgroup(set);
	return v1 ? cgroup_number(v1) : BPF_CORE_READ(cgrp, kn, id);
}

static __always_inline void fill_task(struct wire_task *t, struct task_struct *task, u16 kind, u16 flags)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct upid up = {};
	u32 level;

	t->hdr.kind = kind;
	t->hdr.flags = flags;
	t->hdr.cpu = bpf_get_smp_processor_id();
	fill_ident(&t->id, task);
	t->ts = bpf_ktime_get_ns();
	t->cgroup_id = cgroup_of_set((u64)BPF_CORE_READ(task, cgroups));
	t->ppid = BPF_CORE_READ(task, real_parent, tgid);
	t->uid = BPF_CORE_READ(task, real_cred, uid.val);
	BPF_CORE_READ_STR_INTO(&t->comm, task, comm);
	t->here_tid = thread_here(task);
	t->here_pid = process_here(task);
	t->ns_tid = 0;
	t->ns_pid = 0;
	if (pid) {
		level = BPF_CORE_READ(pid, level);
		bpf_core_read(&up, sizeof(up), &pid->numbers[level]);
		t->ns_tid = up.nr;
	}
	pid = BPF_CORE_READ(task, group_leader, thread_pid);
	if (pid) {
		level = BPF_CORE_READ(pid, level);
		bpf_core_read(&up, sizeof(up), &pid->numbers[level]);
		t->ns_pid = up.nr;
	}
}

static __always_inline bool comm_is_target(const char *comm)
{
	for (int i = 0; i < COMM_LEN; i++) {
		if (comm[i] != target_comm[i])
			return false;
		if (!comm[i])
			break;
	}
	return true;
}

static __always_inline bool cpu_is_recorded(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	u8 *on;

	if (!filter_cpu)
		return true;
	on = bpf_map_lookup_elem(&target_cpus, &cpu);
	return on && *on;
}

/* The user of the current task, without a helper call if the kernel allows it. */
static __always_inline u32 current_uid(struct task_struct *current)
{
	if (has_task_storage)
		return UNTRUSTED(struct task_struct, current)->cred->uid.val;
	return bpf_get_current_uid_gid();
}

/* For the current task, or one from a tracepoint. */
static __always_inline void fill_who(struct wire_who *who, struct task_struct *task)
{
	u64 *comm = (u64 *)who->comm;

	who->start = FIELD(task, start_time);
	who->tid = FIELD(task, pid);
	who->pid = FIELD(task, tgid);
	if (has_task_storage) {
		comm[0] = ((u64 *)task->comm)[0];
		comm[1] = ((u64 *)task->comm)[1];
	} else {
		bpf_core_read(comm, sizeof(who->comm), &task->comm);
	}
}

/* The same task under the same name. */
static __always_inline bool is_same_who(const struct wire_who *a, const struct wire_who *b)
{
	const u64 *one = (const u64 *)a->comm, *other = (const u64 *)b->comm;

	return a->start == b->start && a->tid == b->tid && one[0] == other[0] && one[1] == other[1];
}

/* The whole machine, unfiltered. */
static __always_inline bool records_everything(void)
{
	return !target_marked && !filter_uid && !filter_comm && !filter_cgroup;
}

/* The id of the cgroup `level` levels below the root on the way to `cgrp`, which is at least that deep. */
static __always_inline u64 ancestor_id(struct cgroup *cgrp, u32 level)
{
	struct cgroup___ids *old = (void *)cgrp;
	struct cgroup *ancestor = NULL;
	u64 id = 0;

	if (!bpf_core_field_exists(cgrp->ancestors)) {
		bpf_probe_read_kernel(&id, sizeof(id), (char *)old + bpf_core_field_offset(struct cgroup___ids, ancestor_ids) + level * sizeof(id));
		return id;
	}
	bpf_probe_read_kernel(&ancestor, sizeof(ancestor),
			      (char *)cgrp + bpf_core_field_offset(struct cgroup, ancestors) + level * sizeof(ancestor));
	return BPF_CORE_READ(ancestor, kn, id);
}

/*
 * Whether a cgroup is the one of -G or below it. Only a cgroup in it shows its
 * depth. A function of its own, with a number as argument, so that the verifier
 * walks it once.
 */
#define MAX_LEVELS 64
__noinline int is_in_target(u64 address)
{
	struct cgroup *cgrp = (void *)address;
	s32 level = BPF_CORE_READ(cgrp, level), known = target_level;

	if (known >= 0)
		return known <= level && ancestor_id(cgrp, known) == target_cgroup;
	for (s32 i = 0; i < MAX_LEVELS && i <= level; i++) {
		if (ancestor_id(cgrp, i) == target_cgroup) {
			target_level = i;
			return 1;
		}
	}
	return 0;
}

static __always_inline bool in_target_cgroup(struct task_struct *task)
{
	return !filter_cgroup || is_in_target((u64)BPF_CORE_READ(task, cgroups, dfl_cgrp));
}

/*
 * Filters whose result may change while a task lives: user, name, cgroup.
 * `comm`: its next name; NULL: the current one.
 */
static __always_inline bool passes_filters(struct task_struct *task, const char *comm)
{
	if (filter_uid && BPF_CORE_READ(task, real_cred, uid.val) != target_uid)
		return false;
	if (filter_comm) {
		char name[COMM_LEN] = {};

		if (comm)
			bpf_probe_read_kernel_str(&name, sizeof(name), comm);
		else
			bpf_core_read(&name, sizeof(name), &task->comm);
		if (!comm_is_target(name))
			return false;
	}
	return in_target_cgroup(task);
}

/* `rcu`: the program runs in one RCU read-side section, in which the pointer to the leader is good. */
static __always_inline bool is_marked_in(struct task_struct *task, bool rcu)
{
	struct task_state *st;

	if (!target_marked)
		return true;
	st = state_of(task, false);
	/* a thread that the kernel makes for io_uring is made without a fork: it is marked as its process is */
	if (rcu && !st && FIELD(task, flags) & PF_IO_WORKER)
		st = state_of(FIELD(task, group_leader), false);
	return st ? st->matched == MATCHED && !st->armed : lacks_state(task);
}

static __always_inline bool is_marked(struct task_struct *task)
{
	return is_marked_in(task, true);
}

/* Idle tasks belong to no process, and the recorder is not recorded. */
static __always_inline bool is_nobody(struct task_struct *task)
{
	return !FIELD(task, pid) || (!with_self && (u32)FIELD(task, tgid) == own_tgid);
}

/* Whether the leader of a process is a child of the recorder, and not the command. */
static __always_inline bool is_own_child(struct task_struct *leader)
{
	return (u32)BPF_CORE_READ(leader, real_parent, tgid) == own_tgid && process_here(leader) != own_command;
}

/* Whether it is of a process that works for the recorder: of its child, or of a child of that. */
static __always_inline bool is_helper(struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	return !with_self && (is_own_child(leader) || is_own_child(BPF_CORE_READ(leader, real_parent, group_leader)));
}

/*
 * Whether families other than syscalls record the events of this task, which
 * comes from a tracepoint or the iterator. Makes no state, because it is called
 * under the scheduler's locks.
 */
static __always_inline bool is_recorded_in(struct task_struct *task, bool rcu)
{
	if (is_nobody(task))
		return false;
	return records_everything() || (passes_filters(task, NULL) && is_marked_in(task, rcu));
}

static __always_inline bool is_recorded(struct task_struct *task)
{
	return is_recorded_in(task, true);
}

/* The part of a task's record about its being a target. */
static __always_inline u16 target_flags(struct task_struct *task, const char *comm)
{
	u16 flags = (is_marked(task) ? TASK_IS_MARKED : 0) | (in_target_cgroup(task) ? TASK_IS_IN_CGROUP : 0);

	if (!is_nobody(task) && flags & TASK_IS_MARKED && passes_filters(task, comm))
		flags |= TASK_IS_TARGET;
	return flags;
}

static __always_inline void send_task(struct task_struct *task, u16 reason)
{
	struct wire_task t = {};

	fill_task(&t, task, WIRE_TASK, reason | target_flags(task, NULL));
	send_process(&t, sizeof(t));
}

/* The current task. Not static, so that the verifier walks it once. */
__noinline int send_current(u32 reason)
{
	send_task(current_task(), reason);
	return 0;
}

static __always_inline void init_state(struct task_state *st, struct task_struct *task)
{
	fill_ident(&st->rec.id, task);
	st->rec.hdr.kind = WIRE_SYSCALL;
	st->matched = st->rec.id.pid == own_tgid ? NOT_MATCHED : MATCHED;
}

static __always_inline void forget_outsider(u32 tid)
{
	if (watch_outside)
		bpf_map_delete_elem(&outsiders, &tid);
}

/* A task gets a state: noted if no walk will show the task. */
static __always_inline void note_outsider(struct task_state *st, struct task_struct *task)
{
	struct outsider o = {};
	u32 tid = st->rec.id.tid;

	if (!watch_outside || process_here(task))
		return;
	/* read rather than assigned: a pointer may not be stored as such (5.10) */
	bpf_probe_read_kernel(&o.task, sizeof(o.task), &task);
	bpf_probe_read_kernel(&o.state, sizeof(o.state), &st);
	if (bpf_map_update_elem(&outsiders, &tid, &o, BPF_ANY))
		count_drop(DROP_NO_TASK);
}

/* Whether the current task's calls pass the user's filters. */
static __always_inline bool is_selected(struct task_state *st, struct task_struct *current)
{
	return st->matched == MATCHED && passes_filters(current, NULL) && cpu_is_recorded();
}

/*
 * The current task's state if it is recorded. With marked targets only marked
 * tasks have one; else every task gets one at its first call, with `create`.
 */
static __always_inline struct task_state *recorded_current(struct task_struct *current, bool create)
{
	struct task_state *st = current_state(current, create && !target_marked);

	if (!st) {
		if (create && !target_marked)
			any_stateless = 1;
		return NULL;
	}
	if (!st->matched) {
		init_state(st, current);
		if (st->matched != NOT_MATCHED) {
			send_current(TASK_SEEN);
			note_outsider(st, current);
		}
	}
	if (st->matched == NOT_MATCHED) {
		count_drop(DROP_OWN);
		return NULL;
	}
	return st;
}

#endif
