/*
 * COUNT times: a timer of 1000 + i seconds and every i seconds from then on, and a packet of i bytes to nobody on the loopback device. Every
 * tenth time a child too, of a thread called worker-i. Prints its id first.
 *
 * usage: filters COUNT
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	long count = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	static char bytes[4096];

	printf("%d\n", (int)getpid());
	fflush(stdout);
	for (long i = 0; i < count; i++) {
		struct itimerval timer = { .it_value.tv_sec = 1000 + i, .it_interval.tv_sec = i };
		char name[32];
		pid_t child;

		setitimer(ITIMER_REAL, &timer, NULL);
		/* an error is that of the packet before, for which there was no port */
		sendto(fd, bytes, i % sizeof(bytes), 0, (void *)&to, sizeof(to));
		if (i % 10)
			continue;
		snprintf(name, sizeof(name), "worker-%ld", i);
		prctl(PR_SET_NAME, name);
		child = fork();
		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
	return 0;
}
