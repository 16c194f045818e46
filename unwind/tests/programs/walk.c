/* Shapes of functions, called one after another between two breakpoints; the test steps through every instruction. */
#define _GNU_SOURCE
#include <alloca.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define STOP() __asm__ volatile("int3" ::: "memory")

volatile long sink;
volatile int two = 2;

NOINLINE long leaf(long a) { return a * 3 + sink; }

/* Saves every callee-saved register. */
NOINLINE long busy(long a, long b, long c, long d, long e, long f, long g, long h)
{
	long v[6] = { leaf(a), leaf(b), leaf(c), leaf(d), leaf(e), leaf(f) };
	for (int i = 0; i < 2; i++)
		v[i] += leaf(v[5 - i]) + leaf(g) * v[2] + leaf(h) * v[3] + v[4] * a * b * c * d * e * f;
	return v[0] + v[1] + v[2] + v[3] + v[4] + v[5];
}

/* Shrink wrapping: several ways out. */
NOINLINE long exits(long a)
{
	if (a == 0)
		return 1;
	long x = leaf(a);
	if (a == 1)
		return x + leaf(x);
	return leaf(x) + leaf(x + 1);
}

NOINLINE long realigned(long a)
{
	volatile long box[8] __attribute__((aligned(64)));
	box[a & 7] = a;
	return leaf(box[a & 7]);
}

NOINLINE long realigned_alloca(long a)
{
	volatile long box[8] __attribute__((aligned(64)));
	volatile char *more = alloca(a * 16 + 1);
	more[0] = 1;
	box[a & 7] = leaf(more[0]);
	return leaf(box[a & 7]) + realigned(a) + more[0];
}

NOINLINE long vla(int n)
{
	volatile long v[n];
	for (int i = 0; i < n; i++)
		v[i] = leaf(i);
	return v[n - 1];
}

NOINLINE long tail(long a) { return busy(a, 1, 2, 3, 4, 5, 6, 7); }

NOINLINE long recursive(int n) { return n ? recursive(n - 1) * 3 + leaf(n) : leaf(0); }

static int compare(const void *a, const void *b) { return (int)leaf(*(const int *)a) - (int)leaf(*(const int *)b); }

NOINLINE long sorts(void)
{
	int v[] = { 3, 1, two };
	qsort(v, 3, sizeof v[0], compare);
	return v[0];
}

NOINLINE long library(void)
{
	char text[64];
	snprintf(text, sizeof text, "%d %s", two, "x");
	char *copy = strdup(text);
	long length = strlen(copy);
	free(copy);
	return length + getppid();
}

NOINLINE long clocks(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + time(NULL);
}

NOINLINE long vforks(void)
{
	pid_t child = vfork();
	if (child == 0)
		_exit(0);
	return child;
}

NOINLINE long jumps(void)
{
	jmp_buf there;
	if (setjmp(there) == 0)
		return leaf(1);
	return leaf(2);
}

NOINLINE long large(void)
{
	volatile char room[20000];
	room[sink & 1] = 1;
	return leaf(room[0]);
}

NOINLINE long shapes(void)
{
	long x = leaf(1) + busy(1, 2, 3, 4, 5, 6, 7, 8) + exits(0) + exits(1) + exits(2);
	x += realigned(two) + realigned_alloca(two) + vla(two) + tail(two) + recursive(20) + sorts();
	x += library() + clocks() + vforks() + jumps() + large();
	return x;
}

int main(void)
{
	STOP();
	sink = shapes();
	STOP();
	return 0;
}
