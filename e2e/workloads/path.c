/*
 * Takes long for known reasons, one after the other, each in a child of its
 * own. Prints "CASE TID CULPRIT FROM TO CPU": the thread that took long, the
 * one that is to blame, the time by CLOCK_MONOTONIC in ns, and how much of it
 * the thread itself was on a CPU, ns.
 *
 * usage: path MS
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long ms;
static volatile int *shared;

static long now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static long from, cpu;

static void begin(void)
{
	cpu = now(CLOCK_THREAD_CPUTIME_ID);
	from = now(CLOCK_MONOTONIC);
}

static void end(const char *name, int culprit)
{
	long to = now(CLOCK_MONOTONIC);

	printf("%s %ld %d %ld %ld %ld\n", name, syscall(SYS_gettid), culprit, from, to,
	       now(CLOCK_THREAD_CPUTIME_ID) - cpu);
	fflush(stdout);
}

static void burn(void)
{
	long until = now(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000;

	while (now(CLOCK_THREAD_CPUTIME_ID) < until)
		;
}

static void nap(void)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* A computes, then writes to B, which writes to C, which waits. */
static void chain(void)
{
	int ab[2], bc[2], done[2], a, b;
	char c = 'x';

	if (pipe(ab) || pipe(bc) || pipe(done))
		exit(1);
	a = fork();
	if (!a) {
		read(ab[0], &c, 1);
		burn();
		write(bc[1], &c, 1);
		pause();
	}
	b = fork();
	if (!b) {
		read(bc[0], &c, 1);
		write(done[1], &c, 1);
		pause();
	}
	usleep(20000);
	begin();
	write(ab[1], &c, 1);
	read(done[0], &c, 1);
	end("chain", a);
	kill(a, 9);
	kill(b, 9);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int holder;
static int burns;

static void *hold(void *unused)
{
	holder = syscall(SYS_gettid);
	pthread_mutex_lock(&lock);
	*shared = 1;
	if (burns)
		burn();
	else
		nap();
	pthread_mutex_unlock(&lock);
	usleep(20000);
	return unused;
}

static void locked(const char *name, int busy)
{
	pthread_t thread;

	*shared = 0;
	burns = busy;
	pthread_create(&thread, NULL, hold, NULL);
	while (!*shared)
		usleep(100);
	begin();
	pthread_mutex_lock(&lock);
	end(name, holder);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
}

static void futex_sleeps(void)
{
	locked("futex-sleep", 0);
}

static void futex_burns(void)
{
	locked("futex-burn", 1);
}

/* Two that compute on one CPU. */
static void crowded(void)
{
	cpu_set_t set;
	int other, last = 0;

	sched_getaffinity(0, sizeof(set), &set);
	for (int at = 0; at < CPU_SETSIZE; at++)
		if (CPU_ISSET(at, &set))
			last = at;
	CPU_ZERO(&set);
	CPU_SET(last, &set);
	sched_setaffinity(0, sizeof(set), &set);
	other = fork();
	if (!other)
		for (;;)
			;
	usleep(20000);
	begin();
	burn();
	end("crowded", other);
	kill(other, 9);
}

/* A server that computes before it answers. */
static void served(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), server, to;
	char c = 'x';

	bind(listener, (void *)&at, sizeof(at));
	listen(listener, 1);
	getsockname(listener, (void *)&at, &len);
	server = fork();
	if (!server) {
		int from_client = accept(listener, NULL, NULL);
		read(from_client, &c, 1);
		burn();
		write(from_client, &c, 1);
		pause();
	}
	to = socket(AF_INET, SOCK_STREAM, 0);
	connect(to, (void *)&at, sizeof(at));
	usleep(20000);
	begin();
	write(to, &c, 1);
	read(to, &c, 1);
	end("served", server);
	kill(server, 9);
}

static int holds[2];

/* Of the server below: takes the lock when it is told to, and sleeps with it. */
static void *hold_when_told(void *unused)
{
	char c;

	read(holds[0], &c, 1);
	pthread_mutex_lock(&lock);
	*shared = 1;
	nap();
	pthread_mutex_unlock(&lock);
	pause();
	return unused;
}

static int listen_on(struct sockaddr_in *at)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(*at);

	*at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	bind(listener, (void *)at, sizeof(*at));
	listen(listener, 1);
	getsockname(listener, (void *)at, &len);
	return listener;
}

static int connect_to(struct sockaddr_in *at)
{
	int to = socket(AF_INET, SOCK_STREAM, 0);

	connect(to, (void *)at, sizeof(*at));
	return to;
}

/*
 * A client, a proxy that only hands on, and a server that computes, sleeps, and
 * waits for a lock with which another thread of it sleeps: a third of the time
 * each.
 */
static void tiers(void)
{
	struct sockaddr_in front, back;
	int at_proxy = listen_on(&front), at_server = listen_on(&back), server, proxy, to;
	char c = 'x';

	server = fork();
	if (!server) {
		pthread_t thread;
		int from_proxy;

		*shared = 0;
		pipe(holds);
		pthread_create(&thread, NULL, hold_when_told, NULL);
		from_proxy = accept(at_server, NULL, NULL);
		read(from_proxy, &c, 1);
		burn();
		nap();
		write(holds[1], &c, 1);
		while (!*shared)
			sched_yield();
		pthread_mutex_lock(&lock);
		write(from_proxy, &c, 1);
		pause();
	}
	proxy = fork();
	if (!proxy) {
		int from_client = accept(at_proxy, NULL, NULL), to_server = connect_to(&back);

		read(from_client, &c, 1);
		write(to_server, &c, 1);
		read(to_server, &c, 1);
		write(from_client, &c, 1);
		pause();
	}
	to = connect_to(&front);
	usleep(50000);
	begin();
	write(to, &c, 1);
	read(to, &c, 1);
	end("tiers", server);
	kill(server, 9);
	kill(proxy, 9);
}

static void waited(void)
{
	int child;

	begin();
	child = fork();
	if (!child) {
		burn();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	end("waited", child);
}

static void slept(void)
{
	begin();
	nap();
	end("slept", syscall(SYS_gettid));
}

static void timed_out(void)
{
	struct pollfd none;
	int ends[2];

	if (pipe(ends))
		exit(1);
	none = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	begin();
	poll(&none, 1, ms);
	end("timed-out", syscall(SYS_gettid));
}

int main(int argc, char **argv)
{
	void (*cases[])(void) = { chain,  futex_sleeps, futex_burns, crowded,  served,
				   tiers,  waited,	    slept,	 timed_out };

	ms = argc > 1 ? atol(argv[1]) : 100;
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (unsigned at = 0; at < sizeof(cases) / sizeof(*cases); at++) {
		int child = fork();

		if (!child) {
			cases[at]();
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	return 0;
}
