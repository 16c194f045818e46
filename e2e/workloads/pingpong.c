/*
 * pingpong COUNT [DEVICE]: two processes that wake each other up to COUNT times, once at least, through each of several
 * means, one after the other: "MEANS ONE OTHER" a line, their ids. Then one process that sleeps ("timer ID 0"), and one
 * that reads DEVICE past the page cache ("device ID 0").
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What each side sends to and takes from. */
static int out[2], in[2];
static uint32_t *turn;

static void check(long result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
}

static struct sockaddr_in bound(int fd)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);

	check(bind(fd, (struct sockaddr *)&a, len), "bind");
	check(getsockname(fd, (struct sockaddr *)&a, &len), "getsockname");
	return a;
}

static void both(int a, int b)
{
	out[0] = in[0] = a;
	out[1] = in[1] = b;
}

static void tcp(void)
{
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = bound(l);

	check(listen(l, 1), "listen");
	check(connect(c, (struct sockaddr *)&a, sizeof(a)), "connect");
	both(accept(l, NULL, NULL), c);
}

static void udp(void)
{
	int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in to_a = bound(a), to_b = bound(b);

	check(connect(a, (struct sockaddr *)&to_b, sizeof(to_b)), "connect");
	check(connect(b, (struct sockaddr *)&to_a, sizeof(to_a)), "connect");
	both(a, b);
}

static void local(void)
{
	int fds[2];

	check(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), "socketpair");
	both(fds[0], fds[1]);
}

static void pipes(void)
{
	int there[2], back[2];

	check(pipe(there), "pipe");
	check(pipe(back), "pipe");
	out[0] = there[1], in[1] = there[0];
	out[1] = back[1], in[0] = back[0];
}

static void eventfds(void)
{
	out[0] = in[1] = eventfd(0, 0);
	out[1] = in[0] = eventfd(0, 0);
}

static void futexes(void)
{
	turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* The other side's turn, and wait for one's own. */
static void play(int me, int count)
{
	struct timespec t = { .tv_nsec = 2000000 };
	uint64_t ball = 1;

	/* the other one waits by now: two that are as fast as each other may never sleep */
	if (!me)
		nanosleep(&t, NULL);
	for (int i = 0; i < count; i++) {
		if (turn) {
			while (__atomic_load_n(turn, __ATOMIC_SEQ_CST) != (uint32_t)me)
				syscall(SYS_futex, turn, FUTEX_WAIT, !me, NULL, NULL, 0);
			__atomic_store_n(turn, !me, __ATOMIC_SEQ_CST);
			syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0);
			continue;
		}
		if (me || i)
			check(read(in[me], &ball, sizeof(ball)), "read");
		check(write(out[me], &ball, sizeof(ball)), "write");
	}
}

static void pair(const char *means, void (*prepare)(void), int count)
{
	pid_t one, other;

	turn = NULL;
	prepare();
	one = fork();
	if (!one) {
		play(0, count);
		_exit(0);
	}
	other = fork();
	if (!other) {
		play(1, count);
		_exit(0);
	}
	waitpid(one, NULL, 0);
	waitpid(other, NULL, 0);
	printf("%s %d %d\n", means, one, other);
}

static void alone(const char *means, const char *device)
{
	pid_t pid = fork();

	if (pid) {
		waitpid(pid, NULL, 0);
		printf("%s %d 0\n", means, pid);
		return;
	}
	if (device) {
		void *page = aligned_alloc(4096, 4096);
		int fd = open(device, O_RDONLY | O_DIRECT);

		check(fd, device);
		for (int i = 0; i < 50; i++)
			check(pread(fd, page, 4096, i * 4096), "pread");
	} else {
		struct timespec t = { .tv_nsec = 1000000 };

		for (int i = 0; i < 50; i++)
			nanosleep(&t, NULL);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	pair("tcp", tcp, count);
	pair("udp", udp, count);
	pair("unix", local, count);
	pair("pipe", pipes, count);
	pair("futex", futexes, count);
	pair("eventfd", eventfds, count);
	alone("timer", NULL);
	if (argc > 2)
		alone("device", argv[2]);
	return 0;
}
