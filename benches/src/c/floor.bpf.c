// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The floor: what the least a tracer of syscalls can do costs. Two programs
 * that do nothing, attached where systape's are.
 */
#define SEC(name) __attribute__((section(name), used))

SEC("tp_btf/sys_enter")
int floor_enter(void *ctx)
{
	return 0;
}

SEC("tp_btf/sys_exit")
int floor_exit(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
