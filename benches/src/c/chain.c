/* chain N: N calls of getppid, ten functions deep. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINK(name, next) \
	__attribute__((noipa)) static long name(long n) \
	{ \
		long got = next(n); \
\
		__asm__ volatile("" ::: "memory"); /* not a tail call */ \
		return got + 1; \
	}

__attribute__((noipa)) static long ask(long n)
{
	return syscall(SYS_getppid) + n;
}

LINK(first, ask)
LINK(second, first)
LINK(third, second)
LINK(fourth, third)
LINK(fifth, fourth)
LINK(sixth, fifth)
LINK(seventh, sixth)
LINK(eighth, seventh)

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1, sum = 0;

	while (n--)
		sum += eighth(n);
	return sum == 0;
}
