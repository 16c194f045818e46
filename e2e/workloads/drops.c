// Packets that the kernel drops, and whose they were: `drops [GO]`.
//
// drop-taker has a UDP socket with little room and a TCP connection whose filter takes nothing; drop-maker, its parent,
// fills the one, writes to the other, and sends to ports where nobody listens. With GO the sockets are made first, and
// all waits until that file is there. The end of standard output: what was made and seen, as `name=value` lines.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENT 61
#define NOBODYS 7

static int bound(int type, struct sockaddr_in *at)
{
	socklen_t len = sizeof(*at);
	int fd = socket(AF_INET, type, 0);

	memset(at, 0, sizeof(*at));
	at->sin_family = AF_INET;
	at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (void *)at, sizeof(*at)) || getsockname(fd, (void *)at, &len))
		exit(1);
	return fd;
}

int main(int argc, char **argv)
{
	struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = { 1, &none };
	struct sockaddr_in udp_at, tcp_at, nobody_at, end_at;
	int to_taker[2], to_maker[2], little = 2304;
	char buffer[2000] = "", word = 0;
	socklen_t len = sizeof(end_at);
	int maker, client, gone;
	pid_t taker;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pipe(to_taker) || pipe(to_maker))
		return 1;
	taker = fork();
	if (!taker) {
		int udp = bound(SOCK_DGRAM, &udp_at), listener = bound(SOCK_STREAM, &tcp_at), accepted, received = 0;

		prctl(PR_SET_NAME, "drop-taker");
		setsockopt(udp, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
		listen(listener, 5);
		if (write(to_maker[1], &udp_at, sizeof(udp_at)) < 0 || write(to_maker[1], &tcp_at, sizeof(tcp_at)) < 0)
			return 1;
		accepted = accept(listener, NULL, NULL);
		setsockopt(accepted, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
		if (write(to_maker[1], &word, 1) < 0 || read(to_taker[0], &word, 1) < 0)
			return 1;
		while (recv(udp, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
			received++;
		printf("received=%d\n", received);
		return 0;
	}
	prctl(PR_SET_NAME, "drop-maker");
	if (read(to_maker[0], &udp_at, sizeof(udp_at)) < 0 || read(to_maker[0], &tcp_at, sizeof(tcp_at)) < 0)
		return 1;
	client = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	if (connect(client, (void *)&tcp_at, sizeof(tcp_at)) || read(to_maker[0], &word, 1) < 0)
		return 1;
	getsockname(client, (void *)&end_at, &len);
	maker = bound(SOCK_DGRAM, &nobody_at);
	gone = bound(SOCK_DGRAM, &nobody_at);
	close(gone);
	while (argc > 1 && access(argv[1], F_OK))
		usleep(10000);
	for (int i = 0; i < SENT; i++)
		sendto(maker, buffer, 1000, 0, (void *)&udp_at, sizeof(udp_at));
	for (int i = 0; i < NOBODYS; i++)
		sendto(maker, buffer, 10, 0, (void *)&nobody_at, sizeof(nobody_at));
	if (send(client, "hello", 5, 0) != 5 || write(to_taker[1], &word, 1) < 0)
		return 1;
	waitpid(taker, NULL, 0);
	printf("maker=%d\ntaker=%d\nudp=%d\nserver=%d\nclient=%d\n", getpid(), taker, ntohs(udp_at.sin_port),
	       ntohs(tcp_at.sin_port), ntohs(end_at.sin_port));
	return 0;
}
