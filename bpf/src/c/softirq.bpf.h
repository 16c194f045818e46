/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sender of the packets that a network softirq delivers.
 *
 * A packet to this machine (loopback, veth) goes into the CPU's backlog. The
 * softirq that takes it out runs at the end of the send, when the sender
 * enables softirqs again: on the CPU's interrupt stack, but for the sender. The
 * same stack serves hardware interrupts, whose softirqs act for other tasks.
 */
#ifndef __SYSTAPE_SOFTIRQ_H
#define __SYSTAPE_SOFTIRQ_H

#define IRQ_STACK_SIZE 16384 /* x86-64 without KASAN */
#define IN_HARD_INTERRUPT 0xff0000 /* HARDIRQ_MASK | NMI_MASK of preempt_count */

/*
 * A word of the kernel's memory: a plain load if all of it may be loaded. The
 * type is one that begins with a plain number.
 */
static __always_inline u64 kernel_word(u64 address)
{
	u64 word = 0;

	if (has_rdonly_cast) {
		struct pt_regs *at = bpf_rdonly_cast((void *)address, bpf_core_type_id_kernel(struct pt_regs));

		return *(u64 *)at;
	}
	bpf_probe_read_kernel(&word, sizeof(word), (void *)address);
	return word;
}

/* Code that switches to the interrupt stack to run softirqs at once, rather than at the end of an interrupt. */
static __always_inline bool is_do_softirq(u64 address)
{
	for (int i = 0; i < SOFTIRQ_CODES; i++) {
		if (address > do_softirq_codes[2 * i] && address < do_softirq_codes[2 * i + 1])
			return true;
	}
	return false;
}

static __always_inline bool is_backlog(u64 address)
{
	return address > backlog_from && address < backlog_to;
}

/* Distance from the top at which delivers_backlog last found the address: on one kernel it is constant. */
u64 backlog_depth = 0;

/*
 * Whether the backlog is being delivered, whose packets come from this CPU's
 * own sends: a return address into its function lies in the used part of the
 * stack. A function of its driver polls a network card.
 */
static __always_inline bool delivers_backlog(u64 top, u64 sp)
{
	u64 from = top - sizeof(struct irq_stack_top), depth = backlog_depth;
	struct irq_stack_top *stack;
	u32 zero = 0;

	if (depth && top - depth >= sp && is_backlog(kernel_word(top - depth)))
		return true;
	stack = bpf_map_lookup_elem(&irq_stack_tops, &zero);
	if (!stack || bpf_probe_read_kernel(stack, sizeof(*stack), (void *)from))
		return false;
	/* what lies below is left from earlier */
	for (int i = IRQ_STACK_WORDS - 1; i >= 0; i--) {
		if (from + 8 * i < sp)
			break;
		if (is_backlog(stack->words[i])) {
			backlog_depth = top - from - 8 * i;
			return true;
		}
	}
	return false;
}

/*
 * Whether an interrupt (in_interrupt) is a softirq that delivers packets just
 * sent by the current task on this machine. The required facts may be missing:
 * /proc/kallsyms, group scheduling, a BTF with per-CPU variables. Before 5.12
 * the return address is that of an assembler routine, and with PREEMPT_RT
 * softirqs have no stack of their own: then it counts as an interrupt without a
 * sender.
 */
static __always_inline bool is_own_softirq(void *ctx, struct task_struct *current)
{
	struct cfs_rq *queue;
	u64 cpu, top, sp = 0;

	if (!backlog_from || !bpf_core_field_exists(current->se.cfs_rq) || !FIELD(current, pid))
		return false;
	/* the current task's run queue is this CPU's */
	queue = FIELD(UNTRUSTED(struct task_struct, current), se.cfs_rq);
	if (!queue)
		return false;
	cpu = kernel_word((u64)&queue->rq);
	if (!cpu || (u32)kernel_word(cpu + preempt_count_distance) & IN_HARD_INTERRUPT)
		return false;
	top = kernel_word(cpu + irq_stack_distance);
	bpf_probe_read_kernel(&sp, sizeof(sp), &ctx);
	if (top - sp >= IRQ_STACK_SIZE)
		return false;
	/* the first thing on it: pushed by the call that switched to it */
	if (!is_do_softirq(kernel_word(top - sizeof(u64))))
		return false;
	return delivers_backlog(top, sp);
}

#endif
