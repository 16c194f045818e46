// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the least a tracer that tells durations can do costs: at a call's enter
 * and exit it reads the clock, and keeps what it read.
 */
#define SEC(name) __attribute__((section(name), used))
#define ENTER 0
#define EXIT 1

static void *(*lookup)(const void *map, const void *key) = (void *)1;
static unsigned long long (*ktime)(void) = (void *)5;

/* BPF_MAP_TYPE_PERCPU_ARRAY */
struct {
	int (*type)[6];
	int (*max_entries)[2];
	unsigned int *key;
	unsigned long long *value;
} times SEC(".maps");

static int keep(unsigned int which)
{
	unsigned long long *time = lookup(&times, &which);

	if (time)
		*time = ktime();
	return 0;
}

SEC("tp_btf/sys_enter")
int clock_enter(void *ctx)
{
	return keep(ENTER);
}

SEC("tp_btf/sys_exit")
int clock_exit(void *ctx)
{
	return keep(EXIT);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
