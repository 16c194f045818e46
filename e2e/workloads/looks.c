/*
 * Threads in known states for known times, by their own clocks. looks SECONDS: prints a line for each kind, its name and the ns that its
 * threads were in it, and one `span` with the ns that all of it took.
 *
 * vfork    in D: a parent of vfork until its child exits
 * mutex    for a mutex that another thread holds
 * pipe     reads an empty pipe
 * spin     on a CPU, or waiting for one: the sum of both, and of /proc/self/task/TID/schedstat what of it was which
 * sleep    in clock_nanosleep
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int done;
static long long span;

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void rest(long long ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

struct kind {
	const char *name;
	void (*once)(struct kind *kind);
	long long length; /* of one stay, and of the rest after it */
	long long pause;
	long long sum;
	long long run, queued;
	int fds[2];
	pthread_mutex_t mutex;
	pthread_barrier_t held;
};

static void vforks(struct kind *kind)
{
	long long length = kind->length;

	if (!vfork()) {
		/* no library call that changes what is the parent's too */
		struct timespec t = { length / 1000000000, length % 1000000000 };

		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
		_exit(0);
	}
}

static void *holds(void *arg)
{
	struct kind *kind = arg;

	for (;;) {
		pthread_mutex_lock(&kind->mutex);
		pthread_barrier_wait(&kind->held);
		if (done)
			return NULL;
		rest(kind->length);
		pthread_mutex_unlock(&kind->mutex);
		pthread_barrier_wait(&kind->held);
	}
}

static void *writes(void *arg)
{
	struct kind *kind = arg;
	char byte = 0;

	while (!done) {
		pthread_barrier_wait(&kind->held);
		rest(kind->length);
		if (write(kind->fds[1], &byte, 1) != 1)
			abort();
	}
	return NULL;
}

static void spins(struct kind *kind)
{
	long long until = now() + kind->length;

	while (now() < until)
		;
}

static void sleeps(struct kind *kind)
{
	rest(kind->length);
}

static void schedstat(struct kind *kind)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
	file = fopen(path, "r");
	if (!file || fscanf(file, "%lld %lld", &kind->run, &kind->queued) != 2)
		abort();
	fclose(file);
}

static void *runs(void *arg)
{
	struct kind *kind = arg;
	long long before;
	char byte;

	pthread_setname_np(pthread_self(), kind->name);
	while (!done) {
		if (!strcmp(kind->name, "mutex")) {
			pthread_barrier_wait(&kind->held);
			before = now();
			pthread_mutex_lock(&kind->mutex);
			kind->sum += now() - before;
			pthread_mutex_unlock(&kind->mutex);
			pthread_barrier_wait(&kind->held);
		} else if (!strcmp(kind->name, "pipe")) {
			pthread_barrier_wait(&kind->held);
			before = now();
			if (read(kind->fds[0], &byte, 1) != 1)
				abort();
			kind->sum += now() - before;
		} else {
			before = now();
			kind->once(kind);
			kind->sum += now() - before;
		}
		if (kind->pause)
			rest(kind->pause);
	}
	schedstat(kind);
	return NULL;
}

int main(int argc, char **argv)
{
	struct kind kinds[] = {
		{ .name = "vfork", .once = vforks, .length = 70000000, .pause = 30000000 },
		{ .name = "mutex", .length = 40000000, .pause = 20000000 },
		{ .name = "pipe", .length = 110000000, .pause = 10000000 },
		{ .name = "sleep", .once = sleeps, .length = 50000000 },
		{ .name = "spin", .once = spins, .length = 10000000 },
	};
	int count = sizeof(kinds) / sizeof(kinds[0]);
	pthread_t threads[8], helpers[8];
	double seconds = argc > 1 ? atof(argv[1]) : 5;

	span = now();
	for (int i = 0; i < count; i++) {
		pthread_mutex_init(&kinds[i].mutex, NULL);
		pthread_barrier_init(&kinds[i].held, NULL, 2);
		if (pipe(kinds[i].fds))
			abort();
		if (!strcmp(kinds[i].name, "mutex"))
			pthread_create(&helpers[i], NULL, holds, &kinds[i]);
		if (!strcmp(kinds[i].name, "pipe"))
			pthread_create(&helpers[i], NULL, writes, &kinds[i]);
		pthread_create(&threads[i], NULL, runs, &kinds[i]);
	}
	rest((long long)(seconds * 1e9));
	done = 1;
	span = now() - span;
	for (int i = 0; i < count; i++) {
		/* who waits for a partner that has ended is let be */
		if (!strcmp(kinds[i].name, "mutex") || !strcmp(kinds[i].name, "pipe"))
			continue;
		pthread_join(threads[i], NULL);
	}
	rest(300000000);
	for (int i = 0; i < count; i++)
		printf("%s %lld %lld %lld\n", kinds[i].name, kinds[i].sum, kinds[i].run, kinds[i].queued);
	printf("span %lld\n", span);
	fflush(stdout);
	_exit(0);
}
