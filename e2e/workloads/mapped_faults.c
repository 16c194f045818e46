/*
 * Touches known bytes of a file and of anonymous memory. Pages of the file are
 * first thrown out of the page cache, so that each touch is a major fault; one
 * is then read by the kernel, in write(2). Prints, in the order in which they
 * happen, a line a touch: "ADDRESS MEMORY OFFSET ACCESS BY", and at the end
 * "faults MAJOR", how many major faults the kernel has counted for the touches
 * by the program, from getrusage(2).
 *
 * usage: mapped_faults FILE: it is made, on a file system with storage
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE 4096UL
#define PAGES 64UL
#define SKIP 2UL /* pages in front of the mapping */

static const unsigned long touched[] = { 3, 17, 40, 9, 60, 25 };
#define TOUCHED (sizeof(touched) / sizeof(*touched))
#define BY_KERNEL 50UL

static long major_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_majflt;
}

static void check(int failed, const char *what)
{
	if (failed) {
		perror(what);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int fd = open(argv[argc - 1], O_CREAT | O_RDWR | O_TRUNC, 0600), sink = open("/dev/null", O_WRONLY), pipes[2];
	unsigned char *file, *private, *anon, page[PAGE];
	unsigned long at[TOUCHED];
	volatile unsigned char *touch;
	unsigned sum = 0;
	long before, after;

	check(fd < 0 || sink < 0 || pipe(pipes), "open");
	memset(page, 7, sizeof(page));
	for (unsigned long i = 0; i < PAGES + SKIP; i++)
		check(write(fd, page, PAGE) != (long)PAGE, "write");
	check(fsync(fd), "fsync");
	file = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, SKIP * PAGE);
	private = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, PAGE);
	anon = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(file == MAP_FAILED || private == MAP_FAILED || anon == MAP_FAILED, "mmap");
	/* one page a fault: neither read ahead nor mapped around */
	check(madvise(file, PAGES * PAGE, MADV_RANDOM) || madvise(private, PAGE, MADV_RANDOM), "madvise");
	check(madvise(anon, 2 * PAGE, MADV_NOHUGEPAGE) && 0, "madvise");
	check(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0, "fadvise");

	before = major_faults();
	for (unsigned long i = 0; i < TOUCHED; i++) {
		touch = file + touched[i] * PAGE + i;
		if (i % 2)
			*touch = i;
		else
			sum += *touch;
		at[i] = (unsigned long)touch;
	}
	after = major_faults();
	/* into a pipe, which copies */
	check(write(pipes[1], file + BY_KERNEL * PAGE + 5, 10) != 10, "write to a pipe");
	touch = private + 77;
	*touch = 1;
	touch = anon + 99;
	*touch = 1;
	touch = (unsigned char *)sbrk(4 * PAGE) + 2 * PAGE;
	*touch = 1;

	for (unsigned long i = 0; i < TOUCHED; i++)
		printf("0x%lx file %lu %s program\n", at[i], at[i] - (unsigned long)file + SKIP * PAGE, i % 2 ? "write" : "read");
	printf("0x%lx file %lu read kernel\n", (unsigned long)file + BY_KERNEL * PAGE + 5, (SKIP + BY_KERNEL) * PAGE + 5);
	printf("0x%lx file %lu write program\n", (unsigned long)private + 77, PAGE + 77);
	printf("0x%lx [anon] - write program\n", (unsigned long)anon + 99);
	printf("0x%lx [heap] - write program\n", (unsigned long)touch);
	printf("faults %ld\n", after - before);
	return sum == 1;
}
