/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registers with which a task entered the kernel. They lie at the top of its
 * stack, at the same distance from the base for every task of a kernel. The
 * distance depends on the kernel's build: on x86 with CONFIG_X86_FRED there are
 * 16 bytes above them (TOP_OF_KERNEL_STACK_PADDING), on any CPU. The recorder
 * checks its own registers before it uses any (recorder/src/kernel/registers/).
 */
#ifndef __SYSTAPE_REGISTERS_H
#define __SYSTAPE_REGISTERS_H

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

#if defined(__TARGET_ARCH_x86)
#include "x86.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "arm64.bpf.h"
#endif

#endif
