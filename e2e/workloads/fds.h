// probe(): asks the kernel what a descriptor is, writes that to the side file, and makes a call the test finds in the
// tape: fcntl(fd, F_GETFD, PROBE). The lines of a thread and its probes in the tape are in the same order.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROBE 0x5157
#define SIDE 900

static inline void need(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		_exit(1);
	}
}

// The calling thread's directory of descriptors, opened before a chroot may hide it. Not /proc/self: a thread can have a
// table of its own. After a fork it is the child's.
static inline int proc_fd(void)
{
	static _Thread_local int dir = -1, owner;
	int me = syscall(SYS_gettid);

	if (dir < 0 || owner != me) {
		int fd = open("/proc/thread-self/fd", O_PATH | O_DIRECTORY);

		need(fd >= 0, "/proc/thread-self/fd");
		dir = fcntl(fd, F_DUPFD_CLOEXEC, SIDE + 1);
		owner = me;
		close(fd);
	}
	return dir;
}

// must: the tape has to know the path; may: it may be unknown, but not another; was=NAME: that of another file of the
// same directory is as good. "-": not open, so no path.
static inline void probe(const char *how, int fd)
{
	char name[16], path[PATH_MAX], line[PATH_MAX + 64];
	int dir = proc_fd();

	sprintf(name, "%d", fd);
	ssize_t n = readlinkat(dir, name, path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = 0;
	int len = sprintf(line, "%s %ld %d %s\n", how, syscall(SYS_gettid), fd, n < 0 ? "-" : path);
	need(write(SIDE, line, len) == len, "side file");
	syscall(SYS_fcntl, fd, F_GETFD, PROBE);
}

#define must(fd) probe("must", fd)
#define may(fd) probe("may", fd)
