// slowread FILE LOG: opens FILE, then reads 8 KiB of it at a time, forever, and notes when; two more threads keep
// waking each other by futex. LOG is mapped: u64 number of reads, then u64 start, u64 end (CLOCK_MONOTONIC ns) of each.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_uint turn;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t); // the vDSO: no syscall
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void *player(void *arg)
{
	unsigned me = (uintptr_t)arg;

	for (;;) {
		// busy, and still no race against the recorder's rings
		for (uint64_t until = now() + 20000; now() < until;)
			;
		while (atomic_load(&turn) != me)
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, 1 - me, NULL, NULL, 0);
		atomic_store(&turn, 1 - me);
		syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static char buf[8192];
	pthread_t thread;
	int fd = argc == 3 ? open(argv[1], O_RDONLY) : -1;
	int log = argc == 3 ? open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;

	if (fd != 3 || ftruncate(log, 1 << 20)) {
		perror("slowread");
		return 1;
	}
	uint64_t *times = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, log, 0);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&thread, NULL, player, (void *)i);
	for (uint64_t n = 0; n < 60000; n++) {
		uint64_t start = now();

		if (read(fd, buf, sizeof(buf)) != sizeof(buf))
			return 1;
		times[1 + 2 * n] = start;
		times[2 + 2 * n] = now();
		times[0] = n + 1;
	}
	return 0;
}
