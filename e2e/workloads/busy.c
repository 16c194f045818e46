/*
 * Programs whose time is spent in known functions:
 *
 *   contend N    the thread "holder" holds a lock for 5 ms N times in hold_the_lock; the thread "waiter" wants it all the time
 *                in contended_function
 *   hot MS       MS milliseconds of CPU time in hot_loop, then says how many microseconds of it the process used
 *   write FILE   101 blocks are written to FILE by write_block, each straight to the disk
 *   kill         a child is sent SIGTERM by send_it, and waited for
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOIPA __attribute__((noipa))
#define AFTER() __asm__ volatile("" ::: "memory")

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int done;

static NOIPA void hold_the_lock(void)
{
	pthread_mutex_lock(&lock);
	usleep(5000);
	pthread_mutex_unlock(&lock);
	AFTER();
}

static NOIPA void contended_function(void)
{
	pthread_mutex_lock(&lock);
	AFTER();
	pthread_mutex_unlock(&lock);
	AFTER();
}

static void *holder(void *n)
{
	pthread_setname_np(pthread_self(), "holder");
	for (long i = 0; i < (long)n; i++) {
		hold_the_lock();
		usleep(100);
	}
	done = 1;
	return NULL;
}

static void *want_the_lock(void *unused)
{
	pthread_setname_np(pthread_self(), "waiter");
	while (!done)
		contended_function();
	return unused;
}

static int contend(long n)
{
	pthread_t threads[2];

	pthread_create(&threads[0], NULL, holder, (void *)n);
	pthread_create(&threads[1], NULL, want_the_lock, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}

static long cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static NOIPA long hot_loop(long n)
{
	volatile long sum = 0;

	while (n--)
		sum += n * sum + 1;
	return sum;
}

static NOIPA void keep_hot(long us)
{
	while (cpu_us() < us)
		hot_loop(2000000);
	AFTER();
}

static NOIPA int write_block(int fd, const void *block, long i)
{
	ssize_t len = pwrite(fd, block, 4096, i * 4096);

	AFTER();
	return len != 4096;
}

static int write_blocks(const char *path)
{
	static _Alignas(4096) char block[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_DIRECT, 0600), failed = fd < 0;

	for (long i = 0; i < 101 && !failed; i++)
		failed = write_block(fd, block, i);
	return failed;
}

static NOIPA int send_it(pid_t pid)
{
	int failed = kill(pid, SIGTERM);

	AFTER();
	return failed;
}

static NOIPA int end_child(pid_t pid)
{
	int failed = send_it(pid);

	AFTER();
	return failed;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int status;
	pid_t pid;

	if (!strcmp(what, "contend") && argc == 3)
		return contend(atol(argv[2]));
	if (!strcmp(what, "hot") && argc == 3) {
		keep_hot(atol(argv[2]) * 1000);
		printf("%ld\n", cpu_us());
		return 0;
	}
	if (!strcmp(what, "write") && argc == 3)
		return write_blocks(argv[2]);
	if (!strcmp(what, "kill")) {
		pid = fork();
		if (pid == 0) {
			pause();
			_exit(1);
		}
		usleep(10000);
		return end_child(pid) || waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status);
	}
	return 2;
}
