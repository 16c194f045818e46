// For SECONDS: opens, writes and fsyncs a file, connects to itself by TCP, forks a child that is killed, has two threads
// wait for each other, and computes a little, again and again. No call lasts long.
// steady SECONDS
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sem_t ping, pong;
static volatile unsigned long sum;

static void *partner(void *unused)
{
	(void)unused;
	for (;;) {
		sem_wait(&ping);
		sem_post(&pong);
	}
	return NULL;
}

__attribute__((noinline)) static void compute(void)
{
	for (int i = 0; i < 2000000; i++)
		sum += i ^ sum;
}

static void write_file(void)
{
	int fd = open("steady.data", O_CREAT | O_RDWR | O_TRUNC, 0600);

	if (fd < 0 || write(fd, "0123456789abcdef", 16) != 16)
		exit(3);
	fsync(fd);
	close(fd);
}

static void connect_to_self(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = socket(AF_INET, SOCK_STREAM, 0), other;
	char buf[64];

	if (bind(listener, (void *)&address, len) || getsockname(listener, (void *)&address, &len) || listen(listener, 1) ||
	    connect(one, (void *)&address, len))
		exit(4);
	other = accept(listener, NULL, NULL);
	if (write(one, "hello", 5) != 5 || read(other, buf, sizeof(buf)) != 5)
		exit(5);
	close(one);
	close(other);
	close(listener);
}

static void kill_a_child(void)
{
	pid_t child = fork();

	if (!child) {
		for (;;)
			pause();
	}
	kill(child, SIGTERM);
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	struct timespec now, nap = { 0, 4000000 };
	pthread_t thread;
	time_t end;

	if (argc != 2)
		return 2;
	sem_init(&ping, 0, 0);
	sem_init(&pong, 0, 0);
	pthread_create(&thread, NULL, partner, NULL);
	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec + atoi(argv[1]);
	while (now.tv_sec < end) {
		write_file();
		connect_to_self();
		kill_a_child();
		sem_post(&ping);
		sem_wait(&pong);
		compute();
		nanosleep(&nap, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
	return 0;
}
