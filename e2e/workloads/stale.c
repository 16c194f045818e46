/*
 * Two children, one after the other. The first makes N calls with paths of some 4,000 bytes, all of a marker that stands
 * nowhere in this file as it is: records of them fit into no ring of a page. The second makes calls with short paths of
 * the letter b, of 1 to 900 bytes, slowly; with paths that are not in memory, and with socket addresses.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[4096], other[4096];

static void mark(char *to, int len)
{
	static const char reversed[] = "/:RETEMORP";

	for (int i = 0; i < len; i++)
		to[i] = reversed[sizeof(reversed) - 2 - i % (sizeof(reversed) - 1)];
	to[len] = 0;
}

static void secret(long n)
{
	prctl(PR_SET_NAME, "secret");
	for (long i = 0; i < n; i++) {
		mark(path, 4000 + i % 95);
		mark(other, 3800 + i % 250);
		syscall(SYS_access, path, 0);
		syscall(SYS_rename, path, other);
		syscall(SYS_setxattr, path, other, "x", 1, 0);
		syscall(SYS_symlink, other, path);
	}
	_exit(0);
}

static void plain(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	prctl(PR_SET_NAME, "plain");
	memset(to.sun_path, 'b', 20);
	for (int len = 1; len <= 900; len += 13) {
		memset(path, 'b', len);
		path[len] = 0;
		memset(other, 'b', 900 - len);
		other[900 - len] = 0;
		syscall(SYS_access, path, 0);
		usleep(8000);
		syscall(SYS_rename, path, other);
		usleep(8000);
		syscall(SYS_access, 8, 0);
		usleep(8000);
		connect(fd, (void *)&to, 2 + len % 100);
		usleep(8000);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	if (fork() == 0)
		secret(atol(argv[1]));
	wait(NULL);
	if (fork() == 0)
		plain();
	wait(NULL);
	return 0;
}
