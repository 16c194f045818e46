/*
 * flood K N: makes K children, each of which makes N getppid calls as fast as it can. Without libc, so that nothing but
 * this is called: execve, K fork, K wait4, exit_group; in each child N getppid and exit_group.
 */
#include "bare.h"

static void begin(long *stack)
{
	char **argv = (char **)(stack + 1);
	long k = stack[0] == 3 ? number(argv[1]) : 0, n = k ? number(argv[2]) : 0;

	for (long i = 0; i < k; i++) {
		if (call(57, 0, 0, 0, 0) == 0) {
			while (n--)
				call(110, 0, 0, 0, 0);
			call(231, 0, 0, 0, 0);
		}
	}
	for (long i = 0; i < k; i++)
		call(61, -1, 0, 0, 0);
	call(231, 0, 0, 0, 0);
}
