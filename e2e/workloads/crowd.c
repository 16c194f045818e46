/*
 * crowd N: makes N children one after the other, each of which executes this program again, to make a number of calls
 * that follows from its own number I, and waits for it. Without libc, so that nothing but this is called.
 *   parent: execve, N fork, N wait4, 1 write of N pids (4 bytes each) to descriptor 1, exit_group
 *   child I: execve, I % 17 + 1 getppid, I % 5 close of descriptor -1 (EBADF); then either, when I % 3 is 0, getpid
 *   and kill of itself by SIGUSR1, or exit_group
 */
#include "bare.h"

static int pids[4096];

static void child(long i)
{
	for (long n = 0; n <= i % 17; n++)
		call(110, 0, 0, 0, 0);
	for (long n = 0; n < i % 5; n++)
		call(3, -1, 0, 0, 0);
	if (i % 3 == 0)
		call(62, call(39, 0, 0, 0, 0), 10, 0, 0);
	call(231, 0, 0, 0, 0);
}

static void begin(long *stack)
{
	char **argv = (char **)(stack + 1), digits[8] = {}, *word = digits + 7;
	char *again[] = {argv[0], "child", 0, 0};
	long n = number(argv[1]);

	if (stack[0] == 3)
		child(number(argv[2]));
	for (long i = 0; i < n && i < 4096; i++) {
		word = digits + 7;
		for (long rest = i; word == digits + 7 || rest; rest /= 10)
			*--word = '0' + rest % 10;
		again[2] = word;
		pids[i] = call(57, 0, 0, 0, 0);
		if (!pids[i])
			call(59, (long)argv[0], (long)again, 0, 0);
		call(61, pids[i], 0, 0, 0);
	}
	call(1, 1, (long)pids, n * 4, 0);
	call(231, 0, 0, 0, 0);
}
