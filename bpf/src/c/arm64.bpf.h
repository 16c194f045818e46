/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* arm64: calls and user code in registers, and how an interrupt is known. */
#ifndef __SYSTAPE_ARM64_BPF_H
#define __SYSTAPE_ARM64_BPF_H

/*
 * Of a task's call with these registers. A 32-bit program has numbers of its
 * own, which no table here is for: ABI_NONE.
 */
static __always_inline u8 abi_of(struct task_struct *task, const struct pt_regs *regs, long id)
{
	return regs->pstate & PSR_MODE32_BIT ? ABI_NONE : ABI_AARCH64;
}

static __always_inline u8 current_abi(struct task_struct *current, const struct pt_regs *regs, long id)
{
	return abi_of(current, regs, id);
}

static __always_inline u64 call_arg0(const struct pt_regs *regs, u8 abi)
{
	return regs->regs[0];
}

static __always_inline u64 call_arg1(const struct pt_regs *regs, u8 abi)
{
	return regs->regs[1];
}

static __always_inline void read_args(u64 *args, const struct pt_regs *regs, u8 abi)
{
	args[0] = regs->regs[0];
	args[1] = regs->regs[1];
	args[2] = regs->regs[2];
	args[3] = regs->regs[3];
	args[4] = regs->regs[4];
	args[5] = regs->regs[5];
}

/* Arguments that were read at the end of a call: x0 has its result then. */
static __always_inline void restore_args(u64 *args, const struct pt_regs *regs)
{
	args[0] = regs->orig_x0;
}

/* The number of the call that a task is in, whose registers are at `at`; false = in none, or in one of a 32-bit program. */
static __always_inline bool call_at(struct task_struct *task, u64 at, long *id, u8 *abi)
{
	const struct pt_regs *regs = (void *)at;
	s32 number = -1;
	u64 pstate = 0;

	if (bpf_core_read(&number, sizeof(number), &regs->syscallno) || number < 0 ||
	    bpf_core_read(&pstate, sizeof(pstate), &regs->pstate) || pstate & PSR_MODE32_BIT)
		return false;
	*id = number;
	*abi = ABI_AARCH64;
	return true;
}

/* Its arguments, while it lasts: the first six registers. */
static __always_inline void args_at(u64 at, u64 *args, u8 abi)
{
	const struct pt_regs *regs = (void *)at;

	bpf_core_read(args, MAX_ARGS * sizeof(*args), &regs->regs);
}

static __always_inline u64 ip_at(u64 at)
{
	return BPF_CORE_READ((const struct pt_regs *)at, pc);
}

static __always_inline void user_registers(struct wire_stack *rec, const u64 *r)
{
	/* x0 to x30, sp, pc: as in struct user_pt_regs, so in DWARF, where pc has no number */
	for (int i = 0; i < STACK_REGS; i++)
		rec->regs[i] = r[i];
}

/*
 * What the thread pointer points to: glibc and musl put it at the top of a
 * thread's stack, with the thread's own data below it. Of the current task this
 * is the value at its last switch, or that with which it was made.
 */
static __always_inline u64 thread_block(struct task_struct *task)
{
	return bpf_core_field_exists(task->thread.uw.tp_value) ? BPF_CORE_READ(task, thread.uw.tp_value) : 0;
}

/* NMI_MASK, HARDIRQ_MASK and SOFTIRQ_OFFSET of preempt_count (include/linux/preempt.h) */
#define IN_AN_INTERRUPT 0xff0100

/*
 * Whether the program runs in an interrupt, where current is only the
 * interrupted task: in its handler, or in a softirq behind it. The stack would
 * not do: before 6.1 softirqs run on the task's. Work of the task itself on its way back
 * from an interrupt is the task's.
 */
static __always_inline bool in_interrupt(void *ctx, struct task_struct *current)
{
	return FIELD(current, thread_info.preempt_count) & IN_AN_INTERRUPT;
}

static __always_inline bool in_interrupt_alone(void *ctx, struct task_struct *current)
{
	return in_interrupt(ctx, current);
}

#endif
