/*
 * Children of different behaviour, one after the other, and what wait4 says of
 * each: "PID minflt majflt maxrss_kib inblock oublock nvcsw nivcsw user_us
 * system_us". Every eighth has threads, which end together with it.
 *
 * usage: usage CHILDREN FILE
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL

static void touch(unsigned long more)
{
	unsigned long pages = more + 1;
	char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		_exit(2);
	for (unsigned long i = 0; i < pages; i++)
		at[i * PAGE] = 1;
}

static void spin(long ms)
{
	struct timespec now;
	long until;

	clock_gettime(CLOCK_MONOTONIC, &now);
	until = now.tv_sec * 1000 + now.tv_nsec / 1000000 + ms;
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < until);
}

static void write_pages(const char *path, unsigned long pages)
{
	static char page[PAGE];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0)
		_exit(3);
	for (unsigned long i = 0; i < pages; i++)
		if (write(fd, page, PAGE) != (ssize_t)PAGE)
			_exit(4);
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	fd = open(path, O_RDONLY);
	while (read(fd, page, PAGE) > 0)
		;
	close(fd);
}

static void *thread(void *arg)
{
	unsigned long n = (unsigned long)arg;

	touch(n % 19);
	for (unsigned long i = 0; i < n % 5; i++)
		usleep(100);
	if (n % 3)
		return NULL;
	for (;;)
		pause();
}

static void child(unsigned long n, const char *path)
{
	pthread_t threads[7];

	switch (n % 5) {
	case 0:
		touch(n);
		break;
	case 1:
		spin(n % 12);
		break;
	case 2:
		write_pages(path, n % 37);
		break;
	case 3:
		for (unsigned long i = 0; i < n % 9; i++)
			usleep(100);
		break;
	default:
		touch(3 * n);
		spin(1);
	}
	if (n % 8 == 0)
		for (unsigned long i = 0; i < 7; i++)
			pthread_create(&threads[i], NULL, thread, (void *)(n + i));
	_exit(0);
}

int main(int argc, char **argv)
{
	unsigned long children = argc > 1 ? strtoul(argv[1], NULL, 0) : 100;
	struct rusage use;
	int status;
	pid_t pid;

	for (unsigned long n = 0; n < children; n++) {
		pid = fork();
		if (!pid)
			child(n, argc > 2 ? argv[2] : "usage.data");
		if (pid < 0 || wait4(pid, &status, 0, &use) != pid || status)
			return 1;
		printf("%d %ld %ld %ld %ld %ld %ld %ld %ld %ld\n", pid, use.ru_minflt, use.ru_majflt, use.ru_maxrss,
		       use.ru_inblock, use.ru_oublock, use.ru_nvcsw, use.ru_nivcsw,
		       use.ru_utime.tv_sec * 1000000 + use.ru_utime.tv_usec,
		       use.ru_stime.tv_sec * 1000000 + use.ru_stime.tv_usec);
	}
	return 0;
}
