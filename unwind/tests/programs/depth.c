/* As deep as the first argument says, through functions of different shape, then a breakpoint. */
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile long sink;

NOINLINE long even(long depth);

NOINLINE long odd(long depth)
{
	volatile char room[200];
	room[0] = 1;
	return even(depth - 1) + room[0];
}

NOINLINE long even(long depth)
{
	if (depth <= 0) {
		__asm__ volatile("int3");
		return sink;
	}
	long a = sink, b = a * 3, c = b + a, d = c * a;
	return (odd(depth - 1) + a) * b + c * d;
}

int main(int argc, char **argv)
{
	return (int)even(argc > 1 ? atol(argv[1]) : 0) == 12345;
}
