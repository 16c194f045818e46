/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Order of memory for other CPUs. Those of x86 make stores visible in the order
 * in which they were made, and do not read ahead of an earlier read, so the
 * compiler alone must keep the order. Those of arm64 do neither.
 *
 * recorder/src/rings/cpu_buffers.rs has both sides of the buffers as a model.
 */
#ifndef __SYSTAPE_ORDER_H
#define __SYSTAPE_ORDER_H

/*
 * Stores a value for another CPU, behind all that was written before. On arm64 an
 * exchange orders all memory before and after it (the kernel makes it a swpal,
 * since 5.18). A store-release of BPF would do, but it needs Linux 6.15 and
 * clang 20.
 */
static __always_inline void store_release(u64 *to, u64 value)
{
#if defined(__TARGET_ARCH_arm64)
	u64 before = __sync_lock_test_and_set(to, value);

	barrier_var(before);
#else
	barrier();
	*(volatile u64 *)to = value;
#endif
}

/*
 * What stands before is read and written before what stands behind it; `any` is
 * a word that all may write, and which stays as it is.
 */
static __always_inline void order_memory(u32 *any)
{
#if defined(__TARGET_ARCH_arm64)
	/* an addition whose result is of use orders memory, another does not */
	u32 before = __sync_fetch_and_add(any, 0);

	barrier_var(before);
#else
	barrier();
#endif
}

#endif
