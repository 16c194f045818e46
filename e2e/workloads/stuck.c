/* stuck FILE: writes "ready" to standard output, waits for a byte on standard input, and then hangs as soon as FILE's file system
 * is frozen: one thread writes to a shared page of FILE and waits in the page fault, with the mapping locked; another unmaps a part
 * of that mapping, takes the process's mmap lock and waits for the mapping. Whoever then wants to read the process's memory or mappings
 * waits for the mmap lock. With the file system thawed it ends; standard input closed ends it too, unless it hangs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 1 << 20, PAGE = 4096 };

static char *shared;

static void *writes(void *unused)
{
	shared[3 * PAGE] = 1;
	return unused;
}

static void *unmaps(void *unused)
{
	munmap(shared + SIZE / 2, PAGE);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t writer, unmapper;
	char byte = 0;
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;

	if (fd < 0)
		return 1;
	for (int at = 0; at < SIZE; at += PAGE)
		if (pwrite(fd, "x", 1, at) != 1)
			return 1;
	fsync(fd);
	shared = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return 1;
	for (int at = 0; at < SIZE; at += PAGE)
		byte |= *(volatile char *)(shared + at);
	puts("ready");
	fflush(stdout);
	if (read(0, &byte, 1) != 1)
		return 0;
	pthread_create(&writer, NULL, writes, NULL);
	sleep(1); /* it waits by then; nobody can tell that it does */
	pthread_create(&unmapper, NULL, unmaps, NULL);
	pthread_join(writer, NULL);
	pthread_join(unmapper, NULL);
	return 0;
}
