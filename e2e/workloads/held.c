// held SIDE run|slow|wait: opens, copies, closes, forks and execs, and at some moments writes to SIDE what /proc says it holds: one line
// a descriptor, MOMENT PID FD CLOEXEC TARGET. Behind the lines of a moment comes access("moment-N"), which the test finds on the tape.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

static int side = -1;
static int pause_us;

static void need(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		_exit(1);
	}
}

// Writes what is open now. The directory that is read is closed again before the moment.
static void moment(const char *name)
{
	char lines[1 << 16], path[PATH_MAX], marker[64];
	int len = 0;
	DIR *dir = opendir("/proc/thread-self/fd");

	need(dir != NULL, "/proc/thread-self/fd");
	for (struct dirent *e; (e = readdir(dir));) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] == '.' || fd == dirfd(dir))
			continue;
		ssize_t n = readlinkat(dirfd(dir), e->d_name, path, sizeof(path) - 1);
		need(n > 0, "readlinkat");
		path[n] = 0;
		len += sprintf(lines + len, "%s %d %d %d %s\n", name, getpid(), fd,
			       fcntl(fd, F_GETFD) & FD_CLOEXEC, path);
	}
	closedir(dir);
	need(write(side, lines, len) == len, "side file");
	sprintf(marker, "moment-%s", name);
	access(marker, F_OK);
	usleep(pause_us);
}

static int file(const char *name, int flags)
{
	int fd = open(name, O_RDWR | O_CREAT | flags, 0600);

	need(fd >= 0, name);
	return fd;
}

static void use(int fd)
{
	fcntl(fd, F_GETFL);
}

static void *thread(void *arg)
{
	use(file("by a thread", 0));
	return arg;
}

int main(int argc, char **argv)
{
	int pair[2], ends[2];
	pthread_t other;
	sigset_t none;

	need(argc == 3, "usage");
	side = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
	need(side >= 0, argv[1]);
	pause_us = strcmp(argv[2], "slow") ? 0 : 600000;
	if (!strcmp(argv[2], "after")) {
		moment("exec");
		return 0;
	}
	if (!strcmp(argv[2], "wait")) {
		use(file("before", 0)), file("unused", O_CLOEXEC);
		need(!pipe(ends), "pipe");
		// until the recording has begun
		need(!access("ready", F_OK) || creat("waits", 0600) >= 0, "waits");
		while (access("ready", F_OK))
			usleep(10000);
	}
	moment("begin");
	int a = file("a", 0), b = file("b", O_CLOEXEC);
	use(a), use(b);
	file("never used", 0);
	need(!pipe(pair) && !socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "pairs");
	use(pair[0]), use(pair[1]), use(ends[0]), use(ends[1]);
	sigemptyset(&none);
	use(eventfd(0, EFD_CLOEXEC)), use(epoll_create1(0)), use(timerfd_create(CLOCK_MONOTONIC, 0));
	use(signalfd(-1, &none, 0)), use(memfd_create("a memfd", 0)), use(open(".", O_RDONLY | O_DIRECTORY));
	moment("opened");
	need(dup2(a, b) == b && dup3(a, 50, O_CLOEXEC) == 50 && fcntl(pair[0], F_DUPFD, 60) == 60, "dup");
	need(dup2(777, 50) < 0 && close(778) < 0, "failing calls");
	close(pair[0]);
	ioctl(ends[0], FIOCLEX), fcntl(50, F_SETFD, 0);
	moment("copied");
	pthread_create(&other, NULL, thread, NULL);
	pthread_join(other, NULL);
	int ring[9];
	for (int i = 0; i < 9; i++)
		use(ring[i] = file("many", 0));
	syscall(SYS_close_range, ring[2], ring[4], 0);
	syscall(SYS_close_range, ring[6], ring[7], 4 /* CLOSE_RANGE_CLOEXEC */);
	moment("ranges");
	if (fork() == 0) {
		close(a);
		use(file("of the child", 0));
		moment("child");
		_exit(0);
	}
	wait(NULL);
	moment("forked");
	pid_t pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		use(file("shared", 0));
		close(a);
		syscall(SYS_exit, 0);
	}
	waitpid(pid, NULL, 0);
	moment("shared");
	// many segments and chunks
	for (int i = 0; i < 200000; i++)
		syscall(SYS_getppid);
	moment("later");
	execl("/proc/self/exe", argv[0], argv[1], "after", NULL);
	need(0, "exec");
}
