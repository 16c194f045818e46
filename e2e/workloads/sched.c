// Threads that sleep, wake each other and take the CPU from each other, each a known number of times; at its end each
// says what the kernel counted of it: "NAME TID ON_CPU_NS WAIT_NS TIMES" of /proc/thread-self/schedstat, one line each.
//
//   sched ROUNDS SPIN_MS    two threads play ping-pong through pipes, two sleep, two spin on one CPU
//   sched                   sleeps 1 and 100 ms, makes 33,000,007 random bytes and says how long that took on a CPU, ns
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int rounds, spin_ms, ping[2], pong[2];
static pthread_barrier_t start;

static void say(const char *name)
{
	char line[160], stat[100] = "";
	int fd = open("/proc/thread-self/schedstat", O_RDONLY);
	int n = read(fd, stat, sizeof(stat) - 1);

	close(fd);
	if (n <= 0)
		exit(9);
	n = snprintf(line, sizeof(line), "%s %ld %s", name, syscall(SYS_gettid), stat);
	if (write(1, line, n) != n)
		exit(9);
}

static void begin(const char *name)
{
	prctl(PR_SET_NAME, name);
	pthread_barrier_wait(&start);
}

static void *pinger(void *arg)
{
	char c = 'x';

	begin("pinger");
	for (int i = 0; i < rounds; i++)
		if (write(ping[1], &c, 1) != 1 || read(pong[0], &c, 1) != 1)
			exit(9);
	say("pinger");
	return arg;
}

static void *ponger(void *arg)
{
	char c;

	begin("ponger");
	for (int i = 0; i < rounds; i++)
		if (read(ping[0], &c, 1) != 1 || write(pong[1], &c, 1) != 1)
			exit(9);
	say("ponger");
	return arg;
}

static void *sleeper(void *arg)
{
	struct timespec ms = { .tv_nsec = 1000000 };

	begin(arg);
	for (int i = 0; i < rounds; i++)
		nanosleep(&ms, NULL);
	say(arg);
	return arg;
}

static long long cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *spinner(void *arg)
{
	cpu_set_t zero;

	CPU_ZERO(&zero);
	CPU_SET(0, &zero);
	sched_setaffinity(0, sizeof(zero), &zero);
	begin(arg);
	while (cpu_ns() < spin_ms * 1000000LL)
		;
	say(arg);
	return arg;
}

static int calls(void)
{
	static char bytes[33000007];
	struct timespec ms = { .tv_nsec = 1000000 }, more = { .tv_nsec = 100000000 };
	long long before;

	nanosleep(&ms, NULL);
	nanosleep(&more, NULL);
	before = cpu_ns();
	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return 9;
	printf("%lld\n", cpu_ns() - before);
	return 0;
}

int main(int argc, char **argv)
{
	void *(*what[])(void *) = { pinger, ponger, sleeper, sleeper, spinner, spinner };
	char *names[] = { "", "", "sleeper-a", "sleeper-b", "spinner-a", "spinner-b" };
	pthread_t threads[6];

	if (argc == 1)
		return calls();
	if (argc != 3)
		return 2;
	rounds = atoi(argv[1]);
	spin_ms = atoi(argv[2]);
	if (pipe(ping) || pipe(pong))
		return 9;
	pthread_barrier_init(&start, NULL, 6);
	for (int i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, what[i], names[i]);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
