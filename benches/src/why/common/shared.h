/* What the cases in C share. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000L

/* Whether the cause is on. */
static inline int is_on(int argc, char **argv)
{
	return argc > 1 && !strcmp(argv[1], "on");
}

/* Names the calling thread. */
static inline void name(const char *comm)
{
	prctl(PR_SET_NAME, comm);
}

/* Sleeps for so many nanoseconds. */
static inline void nap(long ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&t, NULL);
}

/* Uses so much CPU time of the calling thread, nanoseconds. */
static inline void spin(long ns)
{
	struct timespec t;
	long end;
	volatile unsigned long x = 0;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	end = t.tv_sec * 1000000000 + t.tv_nsec + ns;
	do {
		/* half a millisecond: the clock is a call each time */
		for (int i = 0; i < 250000; i++)
			x++;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while (t.tv_sec * 1000000000 + t.tv_nsec < end);
}

/* Starts a thread. */
static inline pthread_t thread(void *(*work)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, work, arg))
		abort();
	return t;
}

/* Tells the bench an address that a pattern means by {key}. */
static inline void truth(const char *key, const void *address)
{
	FILE *file = fopen("truth", "a");

	fprintf(file, "%s 0x%lx\n", key, (unsigned long)address);
	fclose(file);
}
