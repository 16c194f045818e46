/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registers with which a task entered the kernel, and the way of entry. They
 * lie at the top of its stack, at the same distance from the base for every
 * task of a kernel. The distance depends on the kernel's build: with
 * CONFIG_X86_FRED there are 16 bytes above them (TOP_OF_KERNEL_STACK_PADDING),
 * on any CPU. The recorder checks its own registers before it uses any
 * (recorder/src/kernel/registers.rs).
 */
#ifndef __SYSTAPE_REGISTERS_H
#define __SYSTAPE_REGISTERS_H

/* struct fred_ss.type, arch/x86/include/asm/fred.h */
#define FRED_EXTERNAL_INTERRUPT 0
#define FRED_NMI 2

/* Kernels that can run FRED have bpf_task_pt_regs, which finds them: 5.15. */
static __always_inline u32 find_regs(struct task_struct *task)
{
	if (!regs_by_hand && bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) {
		void *regs = (void *)bpf_task_pt_regs(task);
		u64 at = 0;

		/* read rather than assigned: no number may be made of a pointer */
		bpf_probe_read_kernel(&at, sizeof(at), &regs);
		return at - (u64)BPF_CORE_READ(task, stack);
	}
	return THREAD_SIZE - regs_padding - bpf_core_type_size(struct pt_regs);
}

/* Their place; 0 = not known. */
static __always_inline u64 user_regs_of(struct task_struct *task)
{
	u64 base = (u64)FIELD(task, stack);

	return regs_at && base ? base + regs_at : 0;
}

/* False: not known. */
static __always_inline bool read_regs(void *regs, u32 size, struct task_struct *task)
{
	u64 from = user_regs_of(task);

	return from && !bpf_probe_read_kernel(regs, size, (void *)from);
}

/* For the recorder, which is in a call with known registers. */
static __always_inline void note_own_regs(struct task_struct *self)
{
	regs_at = find_regs(self) + regs_shift;
	read_regs(own_regs, sizeof(own_regs), self);
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

#endif
