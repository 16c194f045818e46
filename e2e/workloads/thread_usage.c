/*
 * Threads of different behaviour, and what each saw of itself last: "TID minflt
 * majflt nvcsw nivcsw user_us+system_us rchar wchar syscr syscw read_bytes
 * write_bytes". Its read of /proc/thread-self/io is in the numbers.
 *
 * usage: thread_usage THREADS FILE
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define MOST 256

struct said {
	long tid, us, io[6];
	struct rusage used;
};

static const char *file;
static struct said said[MOST + 1];

static void look(struct said *s)
{
	char text[512] = "";
	int fd = open("/proc/thread-self/io", O_RDONLY);
	long n;

	s->tid = gettid();
	if (fd < 0)
		_exit(2);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (sscanf(text, "rchar: %ld wchar: %ld syscr: %ld syscw: %ld read_bytes: %ld write_bytes: %ld", &s->io[0],
		   &s->io[1], &s->io[2], &s->io[3], &s->io[4], &s->io[5]) != 6)
		_exit(3);
	s->io[0] += n;
	s->io[2]++;
	getrusage(RUSAGE_THREAD, &s->used);
	s->us = (s->used.ru_utime.tv_sec + s->used.ru_stime.tv_sec) * 1000000 + s->used.ru_utime.tv_usec +
		s->used.ru_stime.tv_usec;
}

static void *work(void *arg)
{
	long n = (struct said *)arg - said;
	char *pages = mmap(NULL, (n + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timespec nap = { 0, 1000000 };
	int fd = open(file, O_WRONLY);

	for (long i = 0; i <= n; i++)
		pages[i * PAGE] = 1;
	for (long i = 0; i < n % 5; i++)
		nanosleep(&nap, NULL);
	for (long i = 0; i < n; i++)
		if (pwrite(fd, pages, 100 + n, n * PAGE) != 100 + n)
			_exit(4);
	close(fd);
	look(arg);
	return NULL;
}

static void print(const struct said *s)
{
	printf("%ld %ld %ld %ld %ld %ld", s->tid, s->used.ru_minflt, s->used.ru_majflt, s->used.ru_nvcsw,
	       s->used.ru_nivcsw, s->us);
	for (int i = 0; i < 6; i++)
		printf(" %ld", s->io[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	pthread_t thread[MOST];
	int n;

	if (argc < 3)
		return 2;
	n = atoi(argv[1]);
	file = argv[2];
	close(open(file, O_WRONLY | O_CREAT, 0600));
	for (int i = 0; i < n && i < MOST; i++) {
		pthread_create(&thread[i], NULL, work, &said[i]);
		if (i % 3 == 0)
			pthread_join(thread[i], NULL);
	}
	for (int i = 0; i < n && i < MOST; i++)
		if (i % 3)
			pthread_join(thread[i], NULL);
	for (int i = 0; i < n && i < MOST; i++)
		print(&said[i]);
	return 0;
}
