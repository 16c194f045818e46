/*
 * A server and clients of others, which log what they did: "WHAT PORT NS", the client's port and how long it had the connection.
 *
 * sockets server [thread]  listens on a port of its choice (127.0.0.1), says "port PORT" and "tid TID"; accepts once the
 *                          file `go` is there, until `stop` is. A connection that says 'c' is closed after 10 ms, others
 *                          are never looked at again. Its name is "netserver".
 * sockets early PORT       connects, says so; resets when the file `recording` is there.
 * sockets client PORT      four connections it resets after 20 ms, four that the server closes, three to a port where
 *                          nobody listens; then a listener of its own on 127.0.0.2:PORT with a connection, and one that
 *                          listens without a name.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int listener;

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void ms(long n)
{
	usleep(n * 1000);
}

static void await(const char *file)
{
	while (access(file, F_OK))
		ms(2);
}

static struct sockaddr_in at(const char *address, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, address, &a.sin_addr);
	return a;
}

static int port_of(int fd)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);

	getsockname(fd, (struct sockaddr *)&a, &len);
	return ntohs(a.sin_port);
}

static int opened(const char *address, int port)
{
	struct sockaddr_in a = at(address, port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) && port != 1) {
		perror("connect");
		exit(1);
	}
	return fd;
}

static int listening(const char *address, int port)
{
	struct sockaddr_in a = at(address, port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if ((port >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a))) || listen(fd, 64)) {
		perror("listen");
		exit(1);
	}
	return fd;
}

static void reset(int fd)
{
	struct linger hard = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
}

static void *serve(void *unused)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };

	printf("tid %ld\n", syscall(SYS_gettid));
	fflush(stdout);
	await("go");
	while (access("stop", F_OK)) {
		char said;
		int fd;

		if (poll(&p, 1, 20) <= 0)
			continue;
		fd = accept(listener, NULL, NULL);
		if (fd >= 0 && recv(fd, &said, 1, 0) == 1 && said == 'c') {
			ms(10);
			close(fd);
		}
	}
	return unused;
}

static int server(int threaded)
{
	pthread_t thread;

	prctl(PR_SET_NAME, "netserver");
	listener = listening("127.0.0.1", 0);
	printf("port %d\n", port_of(listener));
	if (!threaded)
		serve(NULL);
	else if (pthread_create(&thread, NULL, serve, NULL) || pthread_join(thread, NULL))
		return 1;
	return 0;
}

static void early(int port)
{
	int fd = opened("127.0.0.1", port);

	printf("early %d 0\n", port_of(fd));
	fflush(stdout);
	await("recording");
	reset(fd);
}

static void client(int port)
{
	char byte;
	int fd, own, more;

	for (int i = 0; i < 4; i++) {
		long start = now();

		fd = opened("127.0.0.1", port);
		send(fd, "r", 1, 0);
		ms(20);
		printf("reset %d ", port_of(fd));
		reset(fd);
		printf("%ld\n", now() - start);
	}
	for (int i = 0; i < 4; i++) {
		long start = now();

		fd = opened("127.0.0.1", port);
		send(fd, "c", 1, 0);
		if (recv(fd, &byte, 1, 0) != 0)
			exit(1);
		printf("closed %d ", port_of(fd));
		close(fd);
		printf("%ld\n", now() - start);
	}
	for (int i = 0; i < 3; i++)
		close(opened("127.0.0.1", 1));
	own = listening("127.0.0.2", port);
	close(opened("127.0.0.2", port));
	more = listening("", -1);
	close(opened("127.0.0.1", port_of(more)));
	close(own);
	close(more);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	if (argc > 1 && !strcmp(argv[1], "server"))
		return server(argc > 2);
	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "early"))
		early(atoi(argv[2]));
	else
		client(atoi(argv[2]));
	return 0;
}
