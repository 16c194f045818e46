/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* x86-64: calls and user code in registers, and how an interrupt is known. */
#ifndef __SYSTAPE_X86_BPF_H
#define __SYSTAPE_X86_BPF_H

#define TS_COMPAT 2 /* arch/x86/include/asm/thread_info.h */

/* struct fred_ss.type, arch/x86/include/asm/fred.h */
#define FRED_EXTERNAL_INTERRUPT 0
#define FRED_NMI 2

static __always_inline u8 abi_from(u32 status, long id)
{
	if (status & TS_COMPAT)
		return ABI_I386;
	/* -1: a tracer took the number away, or the program called none */
	if (id >= 0 && id & X32_BIT)
		return ABI_X32;
	return ABI_X86_64;
}

/* Of a task's call with these registers. */
static __always_inline u8 abi_of(struct task_struct *task, const struct pt_regs *regs, long id)
{
	return abi_from(BPF_CORE_READ(task, thread_info.status), id);
}

/* Of the current task: on the path of every call, so without a probe read where the kernel allows it. */
static __always_inline u8 current_abi(struct task_struct *current, const struct pt_regs *regs, long id)
{
	if (has_task_storage)
		return abi_from(current->thread_info.status, id);
	return abi_of(current, regs, id);
}

static __always_inline u64 call_arg0(const struct pt_regs *regs, u8 abi)
{
	return abi == ABI_I386 ? regs->bx : regs->di;
}

static __always_inline u64 call_arg1(const struct pt_regs *regs, u8 abi)
{
	return abi == ABI_I386 ? regs->cx : regs->si;
}

static __always_inline void read_args(u64 *args, const struct pt_regs *regs, u8 abi)
{
	if (abi == ABI_I386) {
		args[0] = (u32)regs->bx;
		args[1] = (u32)regs->cx;
		args[2] = (u32)regs->dx;
		args[3] = (u32)regs->si;
		args[4] = (u32)regs->di;
		args[5] = (u32)regs->bp;
		return;
	}
	args[0] = regs->di;
	args[1] = regs->si;
	args[2] = regs->dx;
	args[3] = regs->r10;
	args[4] = regs->r8;
	args[5] = regs->r9;
}

/* At the end of a call the registers of arguments have them still. */
static __always_inline void restore_args(u64 *args, const struct pt_regs *regs)
{
}

/* The number of the call that a task is in, whose registers are at `at`; false = in none. */
static __always_inline bool call_at(struct task_struct *task, u64 at, long *id, u8 *abi)
{
	const struct pt_regs *regs = (void *)at;

	if (bpf_core_read(id, sizeof(*id), &regs->orig_ax) || *id < 0)
		return false;
	*abi = current_abi(task, regs, *id);
	return true;
}

/* Its arguments, while it lasts. */
static __always_inline void args_at(u64 at, u64 *args, u8 abi)
{
	struct pt_regs regs = {};

	bpf_probe_read_kernel(&regs, sizeof(regs), (void *)at);
	read_args(args, &regs, abi);
}

static __always_inline u64 ip_at(u64 at)
{
	return BPF_CORE_READ((const struct pt_regs *)at, ip);
}

static __always_inline void user_registers(struct wire_stack *rec, const u64 *r)
{
	/* pt_regs (arch/x86/include/asm/ptrace.h) to the DWARF numbers of x86-64 */
	rec->regs[0] = r[10];	 /* rax */
	rec->regs[1] = r[12];	 /* rdx */
	rec->regs[2] = r[11];	 /* rcx */
	rec->regs[3] = r[5];	 /* rbx */
	rec->regs[4] = r[13];	 /* rsi */
	rec->regs[5] = r[14];	 /* rdi */
	rec->regs[6] = r[4];	 /* rbp */
	rec->regs[7] = r[19];	 /* rsp */
	rec->regs[8] = r[9];	 /* r8 */
	rec->regs[9] = r[8];
	rec->regs[10] = r[7];
	rec->regs[11] = r[6];
	rec->regs[12] = r[3];	 /* r12 */
	rec->regs[13] = r[2];
	rec->regs[14] = r[1];
	rec->regs[15] = r[0];
	rec->regs[16] = r[16]; /* rip */
}

/* A thread's control block, at the top of its stack (glibc, musl); 0 = not known. */
static __always_inline u64 thread_block(struct task_struct *task)
{
	return bpf_core_field_exists(task->thread.fsbase) ? BPF_CORE_READ(task, thread.fsbase) : 0;
}

static __always_inline bool on_another_stack(void *ctx, struct task_struct *current)
{
	u64 sp = 0;

	bpf_probe_read_kernel(&sp, sizeof(sp), &ctx);
	return sp - (u64)FIELD(current, stack) >= (regs_at ?: THREAD_SIZE);
}

/*
 * On a CPU with FRED all user code enters through one entry: the event pushed
 * with the registers says what it was.
 */
static __always_inline bool is_interrupt_event(u64 regs)
{
	struct pt_regs___fred *fred = (void *)regs;
	u64 type;

	if (!bpf_core_field_exists(fred->fred_ss))
		return false;
	type = BPF_CORE_READ_BITFIELD_PROBED(fred, fred_ss.type);
	return type == FRED_EXTERNAL_INTERRUPT || type == FRED_NMI;
}

/*
 * Whether the program runs in an interrupt, where current is only the
 * interrupted task. Then it is on another stack than the task's: the context of
 * a raw tracepoint lies on the stack in use. An interrupt of user code stays on
 * the task's stack (call_on_irqstack_cond), where the first return address
 * shows the entry into the kernel. Work of the task itself on its way back from
 * an interrupt (task work) counts as the interrupt's.
 */
static __always_inline bool in_interrupt(void *ctx, struct task_struct *current)
{
	u64 entry = 0, regs = user_regs_of(current);

	if (on_another_stack(ctx, current))
		return true;
	if (!regs)
		return false;
	if (runs_fred)
		return is_interrupt_event(regs);
	bpf_probe_read_kernel(&entry, sizeof(entry), (void *)(regs - sizeof(entry)));
	return entry > irq_entries_from && entry < irq_entries_to;
}

/* The same without what a task does itself on its way back from an interrupt. */
static __always_inline bool in_interrupt_alone(void *ctx, struct task_struct *current)
{
	return on_another_stack(ctx, current);
}

#endif
