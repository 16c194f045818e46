/*
 * Threads of which each does one thing only, until the file `stop` is there:
 *
 *   who NAME DIR MARKER
 *
 * Main sleeps; "burn" computes and makes no call, "nap" sleeps 10 ms at a time, "call" makes calls and lets others run. All
 * threads are called NAME. Each writes "WHAT TID" to DIR/NAME.tids. Every 50 ms main starts `/bin/true MARKER`, and opens
 * DIR/MARKER.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int stop;
static const char *name;
static int tids;

static void say(const char *what)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "%s %ld\n", what, syscall(SYS_gettid));

	prctl(PR_SET_NAME, name);
	if (write(tids, line, len) != len)
		exit(1);
}

static void nap(long ms)
{
	struct timespec time = { .tv_nsec = ms * 1000000 };

	nanosleep(&time, NULL);
}

static void *burns(void *unused)
{
	say("burn");
	while (!stop)
		;
	return unused;
}

static void *naps(void *unused)
{
	say("nap");
	while (!stop)
		nap(10);
	return unused;
}

static void *calls(void *unused)
{
	say("call");
	while (!stop) {
		for (int i = 0; i < 100; i++)
			syscall(SYS_getppid);
		sched_yield();
		nap(1);
	}
	return unused;
}

int main(int argc, char **argv)
{
	void *(*what[])(void *) = { burns, naps, calls };
	char path[4096], marked[4096];
	pthread_t thread[3];
	int fd;

	if (argc != 4)
		return 2;
	name = argv[1];
	snprintf(path, sizeof(path), "%s/%s.tids", argv[2], name);
	tids = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (tids < 0)
		return 1;
	say("main");
	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread[i], NULL, what[i], NULL))
			return 1;
	snprintf(path, sizeof(path), "%s/stop", argv[2]);
	snprintf(marked, sizeof(marked), "%s/%s", argv[2], argv[3]);
	while (access(path, F_OK)) {
		pid_t child = vfork();

		if (!child) {
			execl("/bin/true", "true", argv[3], NULL);
			_exit(127);
		}
		waitpid(child, NULL, 0);
		fd = open(marked, O_RDONLY);
		if (fd >= 0)
			close(fd);
		nap(50);
	}
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
