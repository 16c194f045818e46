// Programs that are slow, or break, for one reason each: causes REASON [FILE]. Each does its work, not a number of seconds. What is slow takes some hundred milliseconds.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *file;

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(3);
	}
}

static void milliseconds(long ms)
{
	struct timespec delay = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&delay, &delay) < 0 && errno == EINTR)
		;
}

// 400,000 calls of stat on one file.
static void stat_storm(void)
{
	struct stat st;

	for (int i = 0; i < 400000; i++)
		check(!stat(file, &st), file);
}

// 300,000 failed opens of one file.
static void open_storm(void)
{
	for (int i = 0; i < 300000; i++)
		check(open(file, O_RDONLY) < 0 && errno == ENOENT, file);
}

// 300,000 writes of a byte.
static void tiny_writes(void)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	for (int i = 0; i < 300000; i++)
		check(write(fd, "x", 1) == 1, "write");
}

// A log that is made durable after each line; says how many us that took.
static void durable_log(void)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	struct timespec before, after;
	long ns = 0;

	for (int i = 0; i < 1000; i++) {
		check(write(fd, "a line of a log that must not be lost\n", 38) == 38, "write");
		clock_gettime(CLOCK_MONOTONIC, &before);
		check(!fsync(fd), "fsync");
		clock_gettime(CLOCK_MONOTONIC, &after);
		ns += (after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec;
	}
	// rounded up: a part of each would be a thousand parts
	printf("%ld\n", (ns + 999) / 1000);
}

// 150 programs, one after the other.
static void programs(void)
{
	for (int i = 0; i < 150; i++) {
		pid_t pid = fork();

		if (!pid) {
			execl("/bin/true", "true", NULL);
			_exit(9);
		}
		check(waitpid(pid, NULL, 0) == pid, "waitpid");
	}
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *holds(void *unused)
{
	for (int i = 0; i < 40; i++) {
		pthread_mutex_lock(&mutex);
		milliseconds(5);
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

// Four threads that work one at a time, because each sleeps with the lock held.
static void contended(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		check(!pthread_create(&threads[i], NULL, holds, NULL), "pthread_create");
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

// A process that waits for a lock of a file that its child holds.
static void file_lock(void)
{
	int ends[2], fd = open(file, O_RDWR | O_CREAT, 0600);
	char byte;

	check(fd >= 0 && !pipe(ends), "pipe");
	if (!fork()) {
		int own = open(file, O_RDWR);

		check(!flock(own, LOCK_EX) && write(ends[1], "x", 1) == 1, "flock");
		milliseconds(700);
		_exit(0);
	}
	check(read(ends[0], &byte, 1) == 1 && !flock(fd, LOCK_EX), "flock");
	wait(NULL);
}

static int listens(struct sockaddr_in *address)
{
	socklen_t length = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	address->sin_family = AF_INET;
	address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	// below the ports that the kernel gives to clients
	for (int port = 20000 + getpid() % 9000;; port++) {
		address->sin_port = htons(port);
		if (!bind(fd, (struct sockaddr *)address, length))
			break;
		check(errno == EADDRINUSE, "bind");
	}
	check(!listen(fd, 8), "listen");
	return fd;
}

// A server that takes 30 ms for each of 20 answers.
static void slow_peer(void)
{
	struct sockaddr_in address = { 0 };
	int server = listens(&address);
	char byte;

	if (!fork()) {
		int fd = accept(server, NULL, NULL);

		while (read(fd, &byte, 1) == 1) {
			milliseconds(30);
			check(write(fd, &byte, 1) == 1, "write");
		}
		_exit(0);
	}
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	check(!connect(fd, (struct sockaddr *)&address, sizeof(address)), "connect");
	for (int i = 0; i < 20; i++)
		check(write(fd, "?", 1) == 1 && read(fd, &byte, 1) == 1, "read");
	close(fd);
	wait(NULL);
}

// A few reads of a file that takes its time for each.
static void read_file(void)
{
	static char data[4096];
	int fd = open(file, O_RDONLY);

	check(fd >= 0, file);
	for (int i = 0; i < 4; i++)
		check(read(fd, data, sizeof(data)) > 0, "read");
}

// A child that is killed by a process that is not its parent.
static void killed(int sig)
{
	pid_t victim = fork();

	if (!victim) {
		for (;;)
			pause();
	}
	if (!fork())
		_exit(kill(victim, sig) ? 3 : 0);
	wait(NULL);
	wait(NULL);
}

static void crashes(void)
{
	pid_t pid = fork();

	if (!pid) {
		*(volatile int *)8 = 1;
		_exit(0);
	}
	check(waitpid(pid, NULL, 0) == pid, "waitpid");
}

// 600 MiB that are never given back.
static void leak(void)
{
	size_t size = (size_t)600 << 20;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(memory != MAP_FAILED, "mmap");
	for (size_t at = 0; at < size; at += 4096)
		memory[at] = 1;
}

// Four processes that compute on one CPU.
static void crowded(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : cpu, &set);
	check(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
	for (int i = 0; i < 4; i++) {
		if (!fork()) {
			struct timespec used;
			do {
				for (volatile int n = 0; n < 100000; n++)
					;
				clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
			} while (used.tv_sec == 0 && used.tv_nsec < 250000000);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
}

static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static int over;

static void *worker(void *unused)
{
	pthread_mutex_lock(&mutex);
	while (!over)
		pthread_cond_wait(&work, &mutex);
	pthread_mutex_unlock(&mutex);
	return unused;
}

// A daemon with nothing to do: threads that wait for work, a loop of poll, a pipe that nobody writes to.
static void quiet(void)
{
	pthread_t threads[3];
	int ends[2];

	check(!pipe(ends), "pipe");
	struct pollfd fds = { .fd = ends[0], .events = POLLIN };

	for (int i = 0; i < 3; i++)
		check(!pthread_create(&threads[i], NULL, worker, NULL), "pthread_create");
	for (int i = 0; i < 12; i++) {
		check(!poll(&fds, 1, 50), "poll");
		milliseconds(5);
	}
	pthread_mutex_lock(&mutex);
	over = 1;
	pthread_cond_broadcast(&work);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	const char *reason = argc > 1 ? argv[1] : "";

	file = argc > 2 ? argv[2] : "";
	if (!strcmp(reason, "stat-storm"))
		stat_storm();
	else if (!strcmp(reason, "open-storm"))
		open_storm();
	else if (!strcmp(reason, "tiny-writes"))
		tiny_writes();
	else if (!strcmp(reason, "durable-log"))
		durable_log();
	else if (!strcmp(reason, "programs"))
		programs();
	else if (!strcmp(reason, "contended"))
		contended();
	else if (!strcmp(reason, "file-lock"))
		file_lock();
	else if (!strcmp(reason, "slow-peer"))
		slow_peer();
	else if (!strcmp(reason, "read-file"))
		read_file();
	else if (!strcmp(reason, "kill"))
		killed(SIGKILL);
	else if (!strcmp(reason, "terminate"))
		killed(SIGTERM);
	else if (!strcmp(reason, "crash"))
		crashes();
	else if (!strcmp(reason, "leak"))
		leak();
	else if (!strcmp(reason, "crowded"))
		crowded();
	else if (!strcmp(reason, "quiet"))
		quiet();
	else
		return 2;
	return 0;
}
