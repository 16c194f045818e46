/*
 * Thirty threads in known kinds of waits, with periods from 1 ms to 10 s: cells SECONDS. Each has a name of its own, w00 to w29. Those
 * that are in step begin at multiples of their period, which divides or is divided by the 50 ms between looks; the others drift.
 *
 * pipe, sock   reads what a partner writes after a while
 * mutex, flock waits for a lock that a partner holds, and in between for the partner's word (a pipe)
 * vfork        in D until its child exits
 * spin         on a CPU, or waiting for one
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum kind { PIPE, SOCK, MUTEX, FLOCK, VFORK, SPIN };

struct work {
	enum kind kind;
	double on_ms; /* how long a stay is */
	double off_ms;
	int step; /* 1: begins at multiples of its period */
	int number;
	int go[2];  /* the partner's word that it holds the lock */
	int ends[2]; /* what is read, and written */
	int file[2]; /* two descriptors of one file */
	pthread_mutex_t mutex;
};

static struct work works[] = {
	{ PIPE, 0.5, 0.5, 0 },	 { PIPE, 2, 3, 0 },	{ PIPE, 10, 40, 1 },	{ PIPE, 25, 25, 1 },	{ PIPE, 50, 50, 1 },
	{ PIPE, 100, 150, 0 },	 { PIPE, 1000, 1000, 1 }, { PIPE, 5000, 5000, 1 },
	{ MUTEX, 0.5, 1, 0 },	 { MUTEX, 5, 5, 0 },	{ MUTEX, 20, 30, 1 },	{ MUTEX, 40, 60, 1 },	{ MUTEX, 500, 700, 0 },
	{ MUTEX, 3000, 7000, 1 },
	{ FLOCK, 3, 3, 0 },	 { FLOCK, 25, 75, 1 },	{ FLOCK, 250, 250, 1 }, { FLOCK, 2000, 1000, 0 },
	{ SOCK, 1, 1, 0 },	 { SOCK, 15, 35, 1 },	{ SOCK, 120, 80, 1 },	{ SOCK, 6000, 4000, 1 },
	{ VFORK, 1, 4, 0 },	 { VFORK, 10, 15, 1 },	{ VFORK, 30, 20, 1 },	{ VFORK, 60, 40, 1 },	{ VFORK, 700, 300, 0 },
	{ VFORK, 4000, 6000, 1 },
	{ SPIN, 1, 9, 0 },	 { SPIN, 5, 45, 1 },
};
#define COUNT ((int)(sizeof(works) / sizeof(works[0])))

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct timespec at(long long ns)
{
	return (struct timespec){ ns / 1000000000, ns % 1000000000 };
}

static void until(long long ns)
{
	struct timespec t = at(ns);

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void check(int is)
{
	if (!is)
		abort();
}

static long long on(const struct work *work)
{
	return work->on_ms * 1e6;
}

/* When the next stay begins; one that drifts is up to a tenth of its period off. */
static long long next(const struct work *work, long long before)
{
	long long period = on(work) + (long long)(work->off_ms * 1e6), time = now();

	if (!work->step)
		return time + (long long)(work->off_ms * 1e6 * (0.9 + 0.2 * (random() / (double)RAND_MAX)));
	before += period;
	/* what was missed is left out */
	return before > time ? before : time - time % period + period;
}

static void vforks(long long length)
{
	struct timespec t = at(length);

	if (!vfork()) {
		/* no library call that changes what is the parent's too */
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
		_exit(0);
	}
}

/* Holds what the worker waits for, or writes what it reads. */
static void *partner(void *arg)
{
	struct work *work = arg;
	long long begin = now();
	char byte = 0;

	pthread_setname_np(pthread_self(), "partner");
	for (;;) {
		begin = next(work, begin);
		until(begin);
		switch (work->kind) {
		case PIPE:
		case SOCK:
			check(write(work->go[1], &byte, 1) == 1);
			until(begin + on(work));
			check(write(work->ends[1], &byte, 1) == 1);
			break;
		case MUTEX:
			pthread_mutex_lock(&work->mutex);
			check(write(work->go[1], &byte, 1) == 1);
			until(begin + on(work));
			pthread_mutex_unlock(&work->mutex);
			break;
		default:
			check(!flock(work->file[1], LOCK_EX));
			check(write(work->go[1], &byte, 1) == 1);
			until(begin + on(work));
			check(!flock(work->file[1], LOCK_UN));
		}
	}
	return NULL;
}

static void *worker(void *arg)
{
	struct work *work = arg;
	long long begin = now();
	char name[16], byte;

	snprintf(name, sizeof(name), "w%02d", work->number);
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		if (work->kind == VFORK || work->kind == SPIN) {
			begin = next(work, begin);
			until(begin);
		} else {
			check(read(work->go[0], &byte, 1) == 1);
		}
		switch (work->kind) {
		case PIPE:
		case SOCK:
			check(read(work->ends[0], &byte, 1) == 1);
			break;
		case MUTEX:
			pthread_mutex_lock(&work->mutex);
			pthread_mutex_unlock(&work->mutex);
			break;
		case FLOCK:
			check(!flock(work->file[0], LOCK_EX));
			check(!flock(work->file[0], LOCK_UN));
			break;
		case VFORK:
			vforks(on(work));
			break;
		case SPIN:
			while (now() < begin + on(work))
				;
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char path[64];

	for (int i = 0; i < COUNT; i++) {
		struct work *work = &works[i];

		work->number = i;
		pthread_mutex_init(&work->mutex, NULL);
		check(!pipe(work->go));
		if (work->kind == SOCK)
			check(!socketpair(AF_UNIX, SOCK_STREAM, 0, work->ends));
		else
			check(!pipe(work->ends));
		if (work->kind == FLOCK) {
			snprintf(path, sizeof(path), "cells.%d.lock", i);
			work->file[0] = open(path, O_CREAT | O_RDWR, 0600);
			work->file[1] = open(path, O_RDWR);
			check(work->file[0] >= 0 && work->file[1] >= 0);
		}
		if (work->kind != VFORK && work->kind != SPIN)
			check(!pthread_create(&thread, NULL, partner, work));
		check(!pthread_create(&thread, NULL, worker, work));
	}
	until(now() + (long long)((argc > 1 ? atof(argv[1]) : 10) * 1e9));
	_exit(0);
}
