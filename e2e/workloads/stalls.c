/*
 * One stall of a kind, for some seconds: stalls KIND SECONDS.
 *
 * disk     in D: the parent of vfork, until its child exits
 * lock     flock on a file that another process holds
 * mutex    a mutex that another thread holds
 * dns      polls a UDP socket that is connected to port 53 of this machine, where nobody answers
 * backend  reads a TCP connection that it made; the other end says nothing
 * stop     a process that is stopped, and goes on then
 * queue    many threads wait for one lock of a file
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void check(int is, const char *what)
{
	if (!is) {
		perror(what);
		exit(1);
	}
}

static struct timespec of(double seconds)
{
	return (struct timespec){ (time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9) };
}

static void rest(double seconds)
{
	struct timespec t = of(seconds);

	nanosleep(&t, NULL);
}

static void disk(double seconds)
{
	struct timespec t = of(seconds);

	if (!vfork()) {
		syscall(SYS_nanosleep, &t, NULL);
		_exit(0);
	}
	wait(NULL);
}

/* Holds the file's lock for so long, in a process of its own; returns when it has it. */
static void hold(double seconds)
{
	int ready[2], fd;
	char byte = 0;

	check(!pipe(ready), "pipe");
	if (!fork()) {
		fd = open("stalls.lock", O_CREAT | O_RDWR, 0600);
		check(fd >= 0 && !flock(fd, LOCK_EX), "flock");
		check(write(ready[1], &byte, 1) == 1, "write");
		rest(seconds);
		_exit(0);
	}
	check(read(ready[0], &byte, 1) == 1, "read");
}

static void *locks(void *arg)
{
	int fd = open("stalls.lock", O_CREAT | O_RDWR, 0600);

	(void)arg;
	check(fd >= 0 && !flock(fd, LOCK_EX), "flock");
	close(fd);
	return NULL;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *waits(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static struct sockaddr_in local(int port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static void dns(double seconds)
{
	struct sockaddr_in at = local(53);
	int server = socket(AF_INET, SOCK_DGRAM, 0), client = socket(AF_INET, SOCK_DGRAM, 0);
	struct pollfd poll_of = { .fd = client, .events = POLLIN };

	check(!bind(server, (void *)&at, sizeof(at)), "bind");
	check(!connect(client, (void *)&at, sizeof(at)), "connect");
	check(send(client, "?", 1, 0) == 1, "send");
	poll(&poll_of, 1, (int)(seconds * 1000));
}

static void backend(double seconds)
{
	struct sockaddr_in at = local(0);
	socklen_t len = sizeof(at);
	struct timeval patience = { (time_t)seconds, (suseconds_t)((seconds - (time_t)seconds) * 1e6) };
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	char byte;

	check(!bind(server, (void *)&at, sizeof(at)) && !listen(server, 1), "listen");
	check(!getsockname(server, (void *)&at, &len), "getsockname");
	check(!connect(client, (void *)&at, sizeof(at)), "connect");
	check(!setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), "setsockopt");
	check(read(client, &byte, 1) < 0, "read");
}

static void stop(double seconds)
{
	pid_t child = fork();

	if (!child)
		for (;;)
			pause();
	rest(0.1);
	kill(child, SIGSTOP);
	rest(seconds);
	kill(child, SIGCONT);
	kill(child, SIGKILL);
	wait(NULL);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	double seconds = argc > 2 ? atof(argv[2]) : 2;
	pthread_t thread[64];

	if (!strcmp(kind, "disk")) {
		disk(seconds);
	} else if (!strcmp(kind, "lock")) {
		hold(seconds);
		locks(NULL);
	} else if (!strcmp(kind, "mutex")) {
		pthread_mutex_lock(&mutex);
		check(!pthread_create(&thread[0], NULL, waits, NULL), "pthread_create");
		/* a word says that somebody waits only when somebody does */
		check(!pthread_create(&thread[1], NULL, waits, NULL), "pthread_create");
		rest(seconds);
		pthread_mutex_unlock(&mutex);
		pthread_join(thread[0], NULL);
		pthread_join(thread[1], NULL);
	} else if (!strcmp(kind, "dns")) {
		dns(seconds);
	} else if (!strcmp(kind, "backend")) {
		backend(seconds);
	} else if (!strcmp(kind, "stop")) {
		stop(seconds);
	} else if (!strcmp(kind, "queue")) {
		hold(seconds);
		for (int i = 0; i < 64; i++)
			check(!pthread_create(&thread[i], NULL, locks, NULL), "pthread_create");
		for (int i = 0; i < 64; i++)
			pthread_join(thread[i], NULL);
	} else {
		fprintf(stderr, "stalls disk|lock|mutex|dns|backend|stop|queue SECONDS\n");
		return 2;
	}
	return 0;
}
