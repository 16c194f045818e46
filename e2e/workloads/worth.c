/*
 * Calls and events of different worth, until the file `stop` is there or for MS milliseconds:
 *
 *   worth MS
 *
 * One thread makes getppid calls, as fast as it can if PAUSE is not set in the environment, else with a pause after each
 * hundred. Another naps 2 ms at a time, and after each nap makes a read that fails with EBADF; every twentieth time it
 * sends itself SIGUSR1, which it handles, and runs /bin/true. At the end it prints "CALLS NAPS CHILDREN".
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EACH 20

static volatile int stop;
static long calls;

static void nap(long us)
{
	struct timespec time = { .tv_nsec = us * 1000 };

	syscall(SYS_nanosleep, &time, NULL);
}

static void *floods(void *unused)
{
	int pauses = getenv("PAUSE") != NULL;

	while (!stop) {
		for (int i = 0; i < 100; i++, calls++)
			syscall(SYS_getppid);
		if (pauses)
			usleep(500);
	}
	return unused;
}

static void handle(int signal)
{
	(void)signal;
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	long end = argc > 1 ? now_ms() + atol(argv[1]) : 0, naps = 0, children = 0;
	struct sigaction action = { .sa_handler = handle };
	pthread_t thread;
	char byte;

	if (!end || sigaction(SIGUSR1, &action, NULL) || pthread_create(&thread, NULL, floods, NULL))
		return 2;
	while (now_ms() < end && access("stop", F_OK)) {
		nap(2000);
		syscall(SYS_read, -1, &byte, 1);
		if (++naps % EACH)
			continue;
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
		pid_t child = vfork();
		if (!child) {
			execl("/bin/true", "true", NULL);
			_exit(127);
		}
		waitpid(child, NULL, 0);
		children++;
	}
	stop = 1;
	pthread_join(thread, NULL);
	printf("%ld %ld %ld\n", calls, naps, children);
	return 0;
}
