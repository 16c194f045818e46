/*
 * Processes that talk by UDP and log what they sent and received, a line for each own end and peer:
 * "PID PROTOCOL LOCAL PEER SENT BYTES RECEIVED BYTES ERRORS REFUSED"; `~` before a number: nobody but the program can know
 * how many it was; peer `?`: likewise.
 *
 * udp LOG   a server with four clients, of which two are connected, which looks at each message first; two ends of IPv6;
 *           a port where nobody listens; several messages a call; receives without a place for the address.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENTS 4

static int out;
static char buffer[2048];

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

union end {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct row {
	union end local, peer;
	int has_peer;
	int sent, sent_bytes, received, received_bytes, errors, refused;
	/* what the tape cannot know */
	int tilde_sent, tilde_sent_bytes, tilde_received, tilde_received_bytes;
};

static const char *text(const union end *e, char *to)
{
	char address[INET6_ADDRSTRLEN];

	if (e->any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &e->v6.sin6_addr, address, sizeof(address));
		sprintf(to, "[%s]:%d", address, ntohs(e->v6.sin6_port));
	} else {
		inet_ntop(AF_INET, &e->v4.sin_addr, address, sizeof(address));
		sprintf(to, "%s:%d", address, ntohs(e->v4.sin_port));
	}
	return to;
}

static const char *number(int n, int tilde, char *to)
{
	sprintf(to, "%s%d", tilde ? "~" : "", n);
	return to;
}

static void say(const struct row *r)
{
	char local[64], peer[64] = "?", a[16], b[16], c[16], d[16], line[256];
	const char *protocol = r->local.any.sa_family == AF_INET6 ? "UDPv6" : "UDP";
	int n;

	if (r->has_peer)
		text(&r->peer, peer);
	n = sprintf(line, "%d %s %s %s %s %s %s %s %d %d\n", getpid(), protocol, text(&r->local, local), peer,
		    number(r->sent, r->tilde_sent, a), number(r->sent_bytes, r->tilde_sent_bytes, b),
		    number(r->received, r->tilde_received, c), number(r->received_bytes, r->tilde_received_bytes, d),
		    r->errors, r->refused);
	check(write(out, line, n) == n, "log");
}

static union end own(int fd)
{
	union end e;
	socklen_t len = sizeof(e);

	check(!getsockname(fd, &e.any, &len), "getsockname");
	return e;
}

/* A socket that is bound to a port of the kernel's choice. */
static int bound(int family)
{
	union end e;
	int fd = socket(family, SOCK_DGRAM, 0);

	memset(&e, 0, sizeof(e));
	e.any.sa_family = family;
	if (family == AF_INET6)
		e.v6.sin6_addr = in6addr_loopback;
	else
		e.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	check(fd >= 0 && !bind(fd, &e.any, sizeof(e)), "bind");
	return fd;
}

static void join(int fd, union end peer)
{
	check(!connect(fd, &peer.any, peer.any.sa_family == AF_INET6 ? sizeof(peer.v6) : sizeof(peer.v4)), "connect");
}

/* Talks i + 3 times with the server. */
static void client(int i, union end server)
{
	struct row r = { .peer = server, .has_peer = 1 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), connected = i % 2;
	union end from;

	if (connected)
		join(fd, server);
	for (int n = 0; n < i + 3; n++) {
		socklen_t len = sizeof(from);
		int size = 10 * i + n + 1;

		if (connected) {
			check(send(fd, buffer, size, 0) == size, "send");
			r.received_bytes += recv(fd, buffer, sizeof(buffer), 0);
		} else {
			check(sendto(fd, buffer, size, 0, &server.any, sizeof(server.v4)) == size, "sendto");
			r.received_bytes += recvfrom(fd, buffer, sizeof(buffer), 0, &from.any, &len);
		}
		r.sent++;
		r.sent_bytes += size;
		r.received++;
	}
	r.local = own(fd);
	say(&r);
	exit(0);
}

/* Answers the clients; looks at each message before it takes it. */
static void serve(void)
{
	struct row rows[CLIENTS];
	union end from;
	int fd = bound(AF_INET), known = 0, messages = 0;
	union end server = own(fd);

	check(recvfrom(fd, buffer, sizeof(buffer), MSG_DONTWAIT, NULL, NULL) < 0 && errno == EAGAIN, "nothing yet");
	for (int i = 0; i < CLIENTS; i++) {
		messages += i + 3;
		if (!fork())
			client(i, server);
	}
	memset(rows, 0, sizeof(rows));
	for (; messages; messages--) {
		socklen_t len = sizeof(from);
		struct row *r;
		int size, at;

		check(recvfrom(fd, buffer, sizeof(buffer), MSG_PEEK, &from.any, &len) > 0, "peek");
		len = sizeof(from);
		size = recvfrom(fd, buffer, sizeof(buffer), 0, &from.any, &len);
		check(size > 0, "recvfrom");
		for (at = 0; at < known && rows[at].peer.v4.sin_port != from.v4.sin_port; at++)
			;
		check(at < CLIENTS, "another client");
		r = &rows[at];
		if (at == known)
			known++;
		r->local = server;
		r->peer = from;
		r->has_peer = 1;
		r->received++;
		r->received_bytes += size;
		check(sendto(fd, buffer, size + 7, 0, &from.any, len) == size + 7, "reply");
		r->sent++;
		r->sent_bytes += size + 7;
	}
	for (int i = 0; i < known; i++)
		say(&rows[i]);
	while (wait(NULL) > 0)
		;
	close(fd);
}

/* Two connected sockets of this process. */
static void pair(int family, int fds[2], struct row rows[2])
{
	memset(rows, 0, 2 * sizeof(rows[0]));
	for (int i = 0; i < 2; i++) {
		fds[i] = bound(family);
		rows[i].local = own(fds[i]);
	}
	for (int i = 0; i < 2; i++) {
		rows[i].peer = rows[1 - i].local;
		rows[i].has_peer = 1;
		join(fds[i], rows[i].peer);
	}
}

static void six(void)
{
	struct row rows[2];
	int fds[2];

	pair(AF_INET6, fds, rows);
	for (int n = 1; n <= 5; n++) {
		check(write(fds[0], buffer, 100 * n) == 100 * n, "write");
		check(read(fds[1], buffer, sizeof(buffer)) == 100 * n, "read");
		rows[0].sent = rows[1].received = n;
		rows[0].sent_bytes = rows[1].received_bytes += 100 * n;
	}
	say(&rows[0]);
	say(&rows[1]);
}

static void refused(void)
{
	struct row r = { .has_peer = 1 };
	int fd = bound(AF_INET), gone = bound(AF_INET);

	r.peer = own(gone);
	close(gone);
	join(fd, r.peer);
	r.local = own(fd);
	check(send(fd, buffer, 9, 0) == 9, "send");
	check(recv(fd, buffer, sizeof(buffer), 0) < 0 && errno == ECONNREFUSED, "refused");
	r.sent = r.errors = r.refused = 1;
	r.sent_bytes = 9;
	say(&r);
}

static void several(void)
{
	struct mmsghdr messages[5];
	struct iovec parts[5];
	struct row rows[2];
	int fds[2];

	pair(AF_INET, fds, rows);
	memset(messages, 0, sizeof(messages));
	for (int i = 0; i < 5; i++) {
		parts[i] = (struct iovec){ buffer, 50 };
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	check(sendmmsg(fds[0], messages, 5, 0) == 5, "sendmmsg");
	check(send(fds[0], buffer, 11, 0) == 11, "send");
	check(recvmmsg(fds[1], messages, 5, 0, NULL) == 5, "recvmmsg");
	check(recv(fds[1], buffer, sizeof(buffer), 0) == 11, "recv");
	rows[0].sent = rows[1].received = 6;
	rows[0].sent_bytes = rows[1].received_bytes = 261;
	rows[0].tilde_sent_bytes = rows[1].tilde_received_bytes = 1;
	say(&rows[0]);
	say(&rows[1]);
}

/* One of two messages is received without its sender. */
static void nameless(void)
{
	struct iovec part = { buffer, sizeof(buffer) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	struct row from = { .has_peer = 1 }, to = { .has_peer = 1 }, unknown = { 0 };
	union end sender;
	socklen_t len = sizeof(sender);
	int fd = bound(AF_INET), client = bound(AF_INET);

	from.local = own(client);
	to.local = unknown.local = from.peer = own(fd);
	to.peer = from.local;
	join(client, from.peer);
	check(send(client, buffer, 21, 0) == 21 && send(client, buffer, 22, 0) == 22, "send");
	check(recvmsg(fd, &header, 0) == 21, "recvmsg");
	check(recvfrom(fd, buffer, sizeof(buffer), 0, &sender.any, &len) == 22, "recvfrom");
	from.sent = 2;
	from.sent_bytes = 43;
	to.received = unknown.received = 1;
	to.received_bytes = 22;
	unknown.received_bytes = 21;
	/* as far as others know it was one more */
	to.tilde_received = to.tilde_received_bytes = 1;
	say(&from);
	say(&to);
	say(&unknown);
}

int main(int argc, char **argv)
{
	check(argc == 2, "udp LOG");
	out = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	check(out >= 0, argv[1]);
	/* a message that is lost is waited for no longer */
	alarm(60);
	serve();
	six();
	refused();
	several();
	nameless();
	return 0;
}
