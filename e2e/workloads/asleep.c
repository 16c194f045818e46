// Threads that sleep in known functions before anybody looks.
//
//   asleep COUNT   COUNT threads of each kind, and one that waits for a byte in the FIFO ./go and then sleeps elsewhere.
//                  Writes ./ready when all are made, ./moved when that one went on.

#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// a frame of its own: neither inlined nor left by a jump
#define KEEP __attribute__((noinline, noclone, noipa))
#define STAY __asm__ volatile("" ::: "memory")

static int nobody_writes[2];
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void touch(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT, 0600);

	if (fd < 0 || write(fd, "x", 1) != 1)
		abort();
	close(fd);
}

KEEP static void waits_in_pipe(void)
{
	char byte;

	if (read(nobody_writes[0], &byte, 1))
		abort();
	STAY;
}

KEEP static void waits_for_lock(void)
{
	pthread_mutex_lock(&held);
	STAY;
}

KEEP static void waits_in_poll(void)
{
	struct pollfd wanted = {nobody_writes[0], POLLIN, 0};

	if (poll(&wanted, 1, -1))
		abort();
	STAY;
}

KEEP static void waits_for_time(void)
{
	struct timespec day = {86400, 0};

	if (nanosleep(&day, &day))
		abort();
	STAY;
}

KEEP static void went_on(void)
{
	touch("moved");
	waits_for_time();
	STAY;
}

KEEP static void waits_to_go(void)
{
	char byte;
	int fd = open("go", O_RDWR);

	if (fd < 0 || read(fd, &byte, 1) != 1)
		abort();
	STAY;
}

KEEP static void moves(void)
{
	waits_to_go();
	went_on();
	STAY;
}

static void (*const kinds[])(void) = {waits_in_pipe, waits_for_lock, waits_in_poll, waits_for_time, moves};

static void *thread_body(void *kind)
{
	kinds[(long)kind]();
	return NULL;
}

static void make(pthread_attr_t *small, long kind)
{
	pthread_t thread;

	if (pthread_create(&thread, small, thread_body, (void *)kind))
		abort();
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	pthread_attr_t small;

	if (pipe(nobody_writes) || mkfifo("go", 0600))
		abort();
	pthread_mutex_lock(&held);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (long kind = 0; kind < 4; kind++)
		for (int i = 0; i < count; i++)
			make(&small, kind);
	make(&small, 4);
	touch("ready");
	pause();
}
