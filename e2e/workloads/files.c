// files: opens, reads and writes files a known number of times, by every way to name them, and prints of each open
// what the kernel says of it: PID RESULT DIRECTORY NAME, the directory and the name in hex; a directory "-" is not to be
// known. `files loop` goes back and forth between two directories until a file "stop" is there.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void need(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static char *hex(char *to, const char *text)
{
	for (; *text; text++)
		to += sprintf(to, "%02x", (unsigned char)*text);
	*to = 0;
	return to;
}

static int known = 1;

static int opened(int dir, const char *name, int flags)
{
	char base[PATH_MAX] = "", path[64], line[4 * PATH_MAX + 64], *end = line;
	int fd = openat(dir, name, flags, 0600), got = fd < 0 ? -errno : fd;

	if (dir == AT_FDCWD) {
		if (!getcwd(base, sizeof(base)))
			strcpy(base, "");
	} else {
		sprintf(path, "/proc/self/fd/%d", dir);
		need(readlink(path, base, sizeof(base) - 1) > 0, "readlink");
	}
	end += sprintf(end, "%d %d ", getpid(), got);
	end = known && base[0] ? hex(end, base) : stpcpy(end, "-");
	*end++ = ' ';
	end = hex(end, name);
	*end++ = '\n';
	need(write(1, line, end - line) == end - line, "log");
	return fd;
}

static void moved(const char *to)
{
	need(chdir(to) == 0, to);
}

static void *thread(void *top)
{
	moved(top);
	return NULL;
}

static void child(void (*does)(void))
{
	pid_t pid = fork();
	int status;

	need(pid >= 0, "fork");
	if (pid == 0) {
		does();
		_exit(0);
	}
	need(waitpid(pid, &status, 0) == pid && status == 0, "child");
}

static void goes_down(void)
{
	close(opened(AT_FDCWD, "one", O_RDONLY));
	moved("e");
	close(opened(AT_FDCWD, "two", O_RDONLY));
}

static void stays(void)
{
	close(opened(AT_FDCWD, "two", O_RDONLY));
}

static void again(void)
{
	execl("/proc/self/exe", "files", "again", NULL);
	need(0, "exec");
}

static void other_root(void)
{
	need(chroot(".") == 0, "chroot");
	known = 0;
	close(opened(AT_FDCWD, "top", O_RDONLY));
	known = 1;
	moved("/d");
	close(opened(AT_FDCWD, "one", O_RDONLY));
}

static void loop(void)
{
	mkdir("d", 0700);
	close(open("d/one", O_CREAT | O_RDWR, 0600));
	close(open("top", O_CREAT | O_RDWR, 0600));
	close(open("ready", O_CREAT | O_RDWR, 0600));
	while (access("stop", F_OK) != 0) {
		moved("d");
		close(open("one", O_RDONLY));
		usleep(100);
		moved("..");
		close(open("top", O_RDONLY));
		usleep(100);
	}
}

int main(int argc, char **argv)
{
	char top[PATH_MAX], path[PATH_MAX + 8], data[1000] = "";
	pthread_t id;
	int fd, dir, i;

	if (argc > 1 && strcmp(argv[1], "loop") == 0) {
		loop();
		return 0;
	}
	if (argc > 1) {
		close(opened(AT_FDCWD, "top", O_RDONLY));
		return 0;
	}
	need(getcwd(top, sizeof(top)) != NULL, "getcwd");
	need(mkdir("d", 0700) == 0 && mkdir("d/e", 0700) == 0 && mkdir("d/e/new\nline", 0700) == 0, "mkdir");
	fd = opened(AT_FDCWD, "top", O_CREAT | O_RDWR | O_CLOEXEC);
	for (i = 0; i < 3; i++)
		need(write(fd, data, 100) == 100, "write");
	for (i = 0; i < 2; i++)
		need(pread(fd, data, 50, i) == 50, "read");
	close(fd);

	moved("d");
	fd = opened(AT_FDCWD, "one", O_CREAT | O_WRONLY);
	for (i = 0; i < 4; i++)
		need(write(fd, data, 10) == 10, "write");
	close(fd);
	moved("e");
	fd = opened(AT_FDCWD, "./two", O_CREAT | O_WRONLY);
	need(write(fd, data, 1000) == 1000, "write");
	close(fd);
	moved("..");
	fd = opened(AT_FDCWD, "one", O_RDONLY);
	for (i = 0; i < 4; i++)
		need(read(fd, data, 10) == 10, "read");
	need(read(fd, data, 10) == 0, "end");
	close(fd);
	moved("e/new\nline");
	close(opened(AT_FDCWD, "file", O_CREAT | O_WRONLY));

	sprintf(path, "%s/d", top);
	dir = open(path, O_RDONLY | O_DIRECTORY);
	need(dir >= 0, "directory");
	close(opened(dir, "one", O_RDONLY));
	close(opened(dir, "e/two", O_RDONLY));
	opened(dir, "absent", O_RDONLY);
	opened(AT_FDCWD, "absent", O_RDONLY);
	need(fchdir(dir) == 0, "fchdir");
	close(opened(AT_FDCWD, "one", O_RDONLY));

	child(goes_down);
	close(opened(AT_FDCWD, "one", O_RDONLY));
	moved("e");
	child(stays);
	moved("..");

	need(pthread_create(&id, NULL, thread, top) == 0, "thread");
	pthread_join(id, NULL);
	close(opened(AT_FDCWD, "top", O_RDONLY));
	need(chdir("nowhere") < 0, "chdir");
	close(opened(AT_FDCWD, "top", O_RDONLY));
	child(again);
	child(other_root);

	need(mkdir("gone", 0700) == 0, "mkdir");
	moved("gone");
	need(rmdir("../gone") == 0, "rmdir");
	fd = open("/proc/self/cwd", O_RDONLY | O_DIRECTORY);
	need(fd >= 0 && fchdir(fd) == 0, "fchdir");
	opened(AT_FDCWD, "x", O_RDONLY);
	moved(top);
	close(opened(AT_FDCWD, "top", O_RDONLY));
	return 0;
}
