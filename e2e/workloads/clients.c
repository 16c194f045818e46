/*
 * A server and 50 clients, one after the other, over every kind of connection.
 * Nobody looks at a socket while another process changes what it is called:
 * pipes, which are no sockets, say whose turn it is.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int to_client[2], to_server[2];
static char byte = 'x';

#define OK(call) ({ long r_ = (call); if (r_ < 0) err(1, "%s", #call); r_; })

static void turn(int pipe[2])
{
	OK(write(pipe[1], &byte, 1));
}

static void await(int pipe[2])
{
	OK(read(pipe[0], &byte, 1));
}

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
	struct sockaddr_un un;
	struct sockaddr_nl nl;
};

static socklen_t ip(union address *a, int family, int port)
{
	memset(a, 0, sizeof(*a));
	a->any.sa_family = family;
	if (family == AF_INET) {
		a->four.sin_port = htons(port);
		a->four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(a->four);
	}
	a->six.sin6_port = htons(port);
	a->six.sin6_addr = in6addr_loopback;
	return sizeof(a->six);
}

static socklen_t local(union address *a, const char *name, int abstract)
{
	memset(a, 0, sizeof(*a));
	a->un.sun_family = AF_UNIX;
	memcpy(a->un.sun_path + abstract, name, strlen(name));
	return offsetof(struct sockaddr_un, sun_path) + abstract + strlen(name) + !abstract;
}

static int port_of(int fd)
{
	union address a;
	socklen_t len = sizeof(a);

	OK(getsockname(fd, &a.any, &len));
	return ntohs(a.any.sa_family == AF_INET ? a.four.sin_port : a.six.sin6_port);
}

/* Both ends, as the kernel has them. */
static void look(int fd)
{
	union address a;
	socklen_t len = sizeof(a);

	OK(getsockname(fd, &a.any, &len));
	len = sizeof(a);
	getpeername(fd, &a.any, &len);
}

static int listener(union address *a, socklen_t len, int type, int shared)
{
	int on = 1, fd = OK(socket(a->any.sa_family, type, 0));

	if (shared)
		OK(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)));
	OK(bind(fd, &a->any, len));
	if (type != SOCK_DGRAM)
		OK(listen(fd, 8));
	return fd;
}

/* Calls of several kinds, which the other end answers. */
static void talk(int fd)
{
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	int size;
	socklen_t len = sizeof(size);

	look(fd);
	OK(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &len));
	OK(send(fd, &byte, 1, 0));
	OK(recv(fd, &byte, 1, 0));
	OK(write(fd, &byte, 1));
	OK(read(fd, &byte, 1));
	OK(sendmsg(fd, &m, 0));
	OK(recvmsg(fd, &m, 0));
	OK(fcntl(fd, F_GETFL));
}

static void answer(int fd)
{
	for (int i = 0; i < 3; i++) {
		OK(recv(fd, &byte, 1, 0));
		OK(send(fd, &byte, 1, 0));
	}
}

/* Which listener a client goes to. */
enum to { FOUR, SIX, PATHED, ABSTRACT, PACKETS, UDP4, UDP6, LISTENERS };
static int ports[LISTENERS], fds[LISTENERS], twin;
static union address where[LISTENERS];
static socklen_t lens[LISTENERS];

static void client(int n, enum to to, const char *self)
{
	int type = to <= ABSTRACT ? SOCK_STREAM : to == PACKETS ? SOCK_SEQPACKET : SOCK_DGRAM, fd, copy;
	union address a = where[to], own;
	socklen_t len = lens[to];

	if (to == SIX && n % 3 == 0) {
		/* by IPv4, to a listener of both */
		len = ip(&a, AF_INET, ports[SIX]);
	}
	fd = OK(socket(a.any.sa_family, type | (n % 6 == 4 ? SOCK_NONBLOCK : 0), 0));
	if (to == PATHED && n % 20 == 9) {
		char name[32];

		snprintf(name, sizeof(name), "client %d\"\\\n1.socket", n);
		socklen_t own_len = local(&own, name, n > 20);
		OK(bind(fd, &own.any, own_len));
	}
	if (to == UDP4 && n % 3 == 1) {
		/* nobody bound it: the first thing sent does */
		OK(sendto(fd, &byte, 1, 0, &a.any, len));
		look(fd);
		OK(recv(fd, &byte, 1, 0));
		close(fd);
		return;
	}
	if (to == UDP4 && n % 3 == 2) {
		socklen_t own_len = ip(&own, AF_INET, 0);
		OK(bind(fd, &own.any, own_len));
		look(fd);
	}
	if (connect(fd, &a.any, len) < 0 && errno != EINPROGRESS)
		err(1, "connect %d", n);
	turn(to_server);
	await(to_client);
	if (n % 6 == 4) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		int error;
		socklen_t size = sizeof(error);

		OK(poll(&p, 1, -1));
		OK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size));
		OK(fcntl(fd, F_SETFL, 0));
	}
	if (n % 7 == 4) {
		copy = OK(dup(fd));
		OK(dup2(copy, 40));
		OK(fcntl(40, F_DUPFD_CLOEXEC, 50));
		close(fd);
		look(50);
		fd = copy;
	}
	if (n % 7 == 5) {
		/* inherited by another program, which talks */
		char text[16];

		snprintf(text, sizeof(text), "%d", fd);
		if (!OK(fork())) {
			execl(self, self, "talk", text, NULL);
			err(1, "exec");
		}
		OK(wait(NULL));
	} else {
		talk(fd);
	}
	if (type != SOCK_DGRAM)
		OK(shutdown(fd, SHUT_WR));
	close(fd);
}

/* One connection or datagram, on whichever listener it came to. */
static void serve(int n, enum to to)
{
	union address a;
	socklen_t len = sizeof(a);
	int fd;

	if (to == UDP4 && n % 3 == 1) {
		OK(recvfrom(fds[to], &byte, 1, 0, &a.any, &len));
		OK(sendto(fds[to], &byte, 1, 0, &a.any, len));
		return;
	}
	await(to_server);
	if (to >= UDP4) {
		turn(to_client);
		for (int i = 0; i < 3; i++) {
			len = sizeof(a);
			OK(recvfrom(fds[to], &byte, 1, 0, &a.any, &len));
			OK(sendto(fds[to], &byte, 1, 0, &a.any, len));
		}
		return;
	}
	struct pollfd p[2] = { { .fd = fds[to], .events = POLLIN }, { .fd = twin, .events = POLLIN } };
	OK(poll(p, to == FOUR ? 2 : 1, -1));
	fd = p[0].revents ? fds[to] : twin;
	fd = n % 2 ? OK(accept(fd, NULL, NULL)) : OK(accept4(fd, &a.any, &len, SOCK_CLOEXEC));
	turn(to_client);
	look(fd);
	answer(fd);
	OK(recv(fd, &byte, 1, 0) ? 1 : 0);
	close(fd);
}

/* A connection is handed to another process, which has never seen it. */
static void handed_over(void)
{
	char room[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int pair[2], fd;

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	if (!OK(fork())) {
		OK(recvmsg(pair[1], &m, 0));
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		OK(send(fd, &byte, 1, 0));
		OK(recv(fd, &byte, 1, 0));
		close(fd);
		_exit(0);
	}
	fd = OK(socket(AF_INET, SOCK_STREAM, 0));
	OK(connect(fd, &where[FOUR].any, lens[FOUR]));
	*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fd)) };
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	OK(sendmsg(pair[0], &m, 0));
	turn(to_server);
	OK(wait(NULL));
	close(fd);
}

static void odd_ones(void)
{
	union address a;
	socklen_t len = sizeof(a);
	int fd = OK(socket(AF_INET, SOCK_STREAM, 0)), pair[2];

	ip(&a, AF_INET, 1);
	connect(fd, &a.any, sizeof(a.four)); /* refused */
	OK(getsockname(fd, &a.any, &len));
	close(fd);
	OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	OK(send(pair[0], &byte, 1, 0));
	OK(recv(pair[1], &byte, 1, 0));
	fd = OK(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	memset(&a, 0, sizeof(a));
	a.nl.nl_family = AF_NETLINK;
	OK(bind(fd, &a.any, sizeof(a.nl)));
	look(fd);
	fd = OK(socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC));
	look(fd);
	fd = OK(socket(AF_PACKET, SOCK_RAW, 0));
	look(fd);
}

int main(int argc, char **argv)
{
	static const enum to plan[] = { FOUR, SIX, PATHED, ABSTRACT, FOUR, UDP4, PACKETS, SIX, UDP6, PATHED };

	if (argc > 2) {
		talk(atoi(argv[2]));
		return 0;
	}
	OK(pipe(to_client));
	OK(pipe(to_server));
	for (enum to to = 0; to < LISTENERS; to++) {
		int type = to <= ABSTRACT ? SOCK_STREAM : to == PACKETS ? SOCK_SEQPACKET : SOCK_DGRAM;
		union address *a = &where[to];

		if (to == PATHED || to == PACKETS)
			lens[to] = local(a, to == PATHED ? "server.socket" : "packets", 0);
		else if (to == ABSTRACT)
			lens[to] = local(a, "a server]>,", 1);
		else
			lens[to] = ip(a, to == FOUR || to == UDP4 ? AF_INET : AF_INET6, 0);
		if (to == SIX)
			a->six.sin6_addr = in6addr_any;
		fds[to] = listener(a, lens[to], type, to == FOUR);
		if (a->any.sa_family == AF_UNIX)
			continue;
		ports[to] = port_of(fds[to]);
		lens[to] = ip(a, a->any.sa_family, ports[to]);
		if (to == FOUR)
			twin = listener(a, lens[to], type, 1);
	}
	for (int n = 0; n < 48; n++) {
		enum to to = plan[n % 10];

		if (!OK(fork())) {
			client(n, to, argv[0]);
			_exit(0);
		}
		serve(n, to);
		int status;

		OK(wait(&status));
		if (status)
			errx(1, "client %d: %x", n, status);
	}
	if (!OK(fork())) {
		handed_over();
		_exit(0);
	}
	await(to_server);
	struct pollfd p = { .fd = fds[FOUR], .events = POLLIN };
	int fd = OK(accept(OK(poll(&p, 1, 100)) ? fds[FOUR] : twin, NULL, NULL));

	OK(recv(fd, &byte, 1, 0));
	OK(send(fd, &byte, 1, 0));
	OK(recv(fd, &byte, 1, 0) ? 1 : 0);
	close(fd);
	OK(wait(NULL));
	if (!OK(fork())) {
		odd_ones();
		_exit(0);
	}
	OK(wait(NULL));
	return 0;
}
