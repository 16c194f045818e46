/*
 * Contends for locks of the kernel: threads in one directory (inode's rwsem), that map and unmap (mmap_lock), at one
 * pipe (mutex), at one futex bucket (spinlock). Arguments: threads of each, rounds.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int rounds, ends[2], word;

static void *in_directory(void *at)
{
	char name[32], other[32];

	snprintf(name, sizeof(name), "dir/a%ld", (long)at);
	snprintf(other, sizeof(other), "dir/b%ld", (long)at);
	for (int i = 0; i < rounds; i++) {
		close(open(name, O_CREAT | O_WRONLY, 0600));
		rename(name, other);
		unlink(other);
	}
	return NULL;
}

static void *in_memory(void *at)
{
	(void)at;
	for (int i = 0; i < rounds; i++) {
		char *map = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED)
			exit(1);
		for (int page = 0; page < 16; page++)
			map[page * 4096] = 1;
		munmap(map, 16 * 4096);
	}
	return NULL;
}

/* As many bytes go in as come out: nobody waits for ever. */
static void *at_pipe(void *at)
{
	char bytes[512] = { 0 };

	(void)at;
	for (int i = 0; i < rounds; i++) {
		if (write(ends[1], bytes, sizeof(bytes)) != sizeof(bytes))
			exit(1);
		for (long left = sizeof(bytes); left > 0;)
			left -= read(ends[0], bytes, left);
	}
	return NULL;
}

static void *at_futex(void *at)
{
	(void)at;
	for (int i = 0; i < 10 * rounds; i++)
		syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	return NULL;
}

int main(int argc, char **argv)
{
	void *(*const of[])(void *) = { in_directory, in_memory, at_pipe, at_futex };
	int threads = argc > 1 ? atoi(argv[1]) : 4;
	pthread_t *all = calloc(4 * threads, sizeof(*all));

	rounds = argc > 2 ? atoi(argv[2]) : 1000;
	mkdir("dir", 0700);
	if (pipe(ends))
		return 1;
	for (long i = 0; i < 4 * threads; i++)
		if (pthread_create(&all[i], NULL, of[i % 4], (void *)(i / 4)))
			return 1;
	for (int i = 0; i < 4 * threads; i++)
		pthread_join(all[i], NULL);
	return 0;
}
