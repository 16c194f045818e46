// Calls of functions in every way they can end: a return, many at once, an exception, longjmp, exec, a thread's end.
// Prints how many calls of each returned, and how many did not.
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
__attribute__((noinline)) long recurse(int n)
{
	volatile long sum = n;

	if (n > 0)
		sum = sum + recurse(n - 1);
	return sum;
}

static jmp_buf out;

__attribute__((noinline)) int jumps(int n, const char *why)
{
	volatile int x = n;

	if (n % 3 == 0)
		longjmp(out, 1);
	return x + (int)strlen(why);
}

__attribute__((noinline)) int throws(int n)
{
	volatile int x = n;

	if (n % 4 == 0)
		throw n;
	return -x;
}

__attribute__((noinline)) int stays(const char *program)
{
	if (program && !*program)
		return 3;
	if (program)
		execl(program, program, (char *)0);
	pthread_exit(0);
}

__attribute__((noinline)) const char *says(int n, bool loud)
{
	static char text[32];

	snprintf(text, sizeof(text), loud ? "NUMBER %d" : "number %d", n);
	return n < 0 ? 0 : text;
}

__attribute__((noinline)) int forks(int n)
{
	volatile int x = n;

	if (fork() == 0)
		return 100;
	wait(0);
	return x;
}
}

static void *thread(void *)
{
	stays(0);
	return 0;
}

int main(int, char **argv)
{
	volatile int left = 0, caught = 0;

	for (int i = 0; i < 50; i++)
		recurse(20);
	for (int i = 0; i < 300; i++) {
		if (setjmp(out) == 0)
			jumps(i, "three");
		else
			left = left + 1;
	}
	for (int i = 0; i < 200; i++) {
		try {
			throws(i);
		} catch (int) {
			caught = caught + 1;
		}
	}
	for (int i = -1; i < 10; i++)
		says(i, i % 2);
	if (forks(7) == 100)
		_exit(0);
	pthread_t t;
	pthread_create(&t, 0, thread, 0);
	pthread_join(t, 0);
	printf("%d %d\n", left, caught);
	fflush(stdout);
	stays(argv[1]);
}
