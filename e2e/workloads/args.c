// Makes one call of each of many syscalls, with arguments its test knows. A call access("/case/NAME", 0) stands before
// each case, so that the test finds it between the calls of libc. argv[1]: a directory of its own, which it enters.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CASE(name) access("/case/" name, F_OK)
#define ADDR(a) ((struct sockaddr *)&(a))

static void need(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

// A path of n bytes: ./././…/x
static char *long_path(size_t n)
{
	char *path = malloc(n + 1);

	for (size_t i = 0; i < n; i++)
		path[i] = (i + (n & 1)) % 2 ? '/' : '.';
	path[n - 1] = 'x';
	if (n & 1)
		path[0] = '/';
	path[n] = 0;
	return path;
}

static void files(void)
{
	int fd;

	CASE("openat");
	fd = openat(AT_FDCWD, "made", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0640);
	need(fd >= 0, "made");
	CASE("enoent");
	openat(AT_FDCWD, "no/such", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	CASE("lseek");
	syscall(SYS_lseek, fd, 5000000000L, SEEK_SET);
	syscall(SYS_lseek, fd, -7L, SEEK_CUR);
	syscall(SYS_lseek, fd, 3L, SEEK_END);
	CASE("pwrite");
	pwrite(fd, "hello", 5, 23);
	CASE("fcntl");
	fcntl(fd, F_GETFD);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, O_NONBLOCK | O_APPEND);
	fcntl(fd, F_DUPFD_CLOEXEC, 100);
	CASE("access");
	access("made", R_OK | W_OK);
	CASE("rename");
	syscall(SYS_rename, "made", "old name");
	syscall(SYS_renameat2, AT_FDCWD, "old name", AT_FDCWD, "new name", 1 /* RENAME_NOREPLACE */);
	CASE("symlink");
	syscall(SYS_symlink, "the target", "soft");
	syscall(SYS_symlinkat, "other target", AT_FDCWD, "soft2");
	CASE("link");
	syscall(SYS_link, "new name", "hard");
	syscall(SYS_linkat, AT_FDCWD, "soft", AT_FDCWD, "hard2", 0);
	CASE("mknod");
	syscall(SYS_mknod, "fifo", S_IFIFO | 0620, 0);
	syscall(SYS_mkdir, "dir", 0751);
	CASE("setxattr");
	setxattr("new name", "user.systape", "value", 5, XATTR_CREATE);
	CASE("memfd");
	memfd_create("a memfd", MFD_CLOEXEC);
	CASE("unlink");
	syscall(SYS_unlink, "hard");
	syscall(SYS_unlinkat, AT_FDCWD, "dir", AT_REMOVEDIR);
	CASE("umask");
	umask(027);
	CASE("truncate");
	truncate("new name", 4100);
	ftruncate(fd, 11);
	CASE("chmod");
	syscall(SYS_chmod, "new name", 04755);
	syscall(SYS_fchmod, fd, 0600);
}

static void memory(void)
{
	long page = 4096;
	char *mem;

	CASE("mmap");
	mem = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	need(mem != MAP_FAILED, "mmap");
	mprotect(mem, page, PROT_READ | PROT_EXEC);
	madvise(mem + page, page, MADV_DONTNEED);
	munmap(mem + 2 * page, page);
	// a string at memory that is gone: the pointer, never ""
	CASE("efault");
	syscall(SYS_openat, AT_FDCWD, mem + 2 * page, O_RDONLY);
	CASE("null");
	syscall(SYS_openat, AT_FDCWD, NULL, O_RDONLY);
	CASE("empty");
	syscall(SYS_openat, AT_FDCWD, "", O_RDONLY);
	CASE("zero");
	syscall(SYS_openat, AT_FDCWD, "0", O_RDONLY);
	CASE("bytes");
	syscall(SYS_openat, AT_FDCWD, "caf\xe9\n\x1b[31m", O_RDONLY);
	// a string on a file's page that this process has not touched
	int fd = open("cold", O_RDWR | O_CREAT, 0600);
	need(fd >= 0 && pwrite(fd, "cold/page", 10, page) == 10, "cold");
	char *cold = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fd, 0);
	need(cold != MAP_FAILED, "mmap");
	madvise(cold, 2 * page, MADV_RANDOM); // no fault-around
	CASE("cold");
	syscall(SYS_openat, AT_FDCWD, cold + page, O_RDONLY);
	// a string that ends with its page, the next one being gone
	char *edge = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(edge + page, page);
	strcpy(edge + page - 9, "/at/edge");
	CASE("edge");
	syscall(SYS_openat, AT_FDCWD, edge + page - 9, O_RDONLY);
	static const size_t lengths[] = { 255, 256, 257, 4000, 4095, 4096, 5000 };
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		char *path = long_path(lengths[i]);

		CASE("long");
		syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
		free(path);
	}
}

static void sockets(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_addr = in6addr_loopback };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr_storage peer;
	socklen_t len = sizeof(in);

	inet_pton(AF_INET, "127.0.0.1", &in.sin_addr);
	CASE("socket");
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int udp = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP);
	CASE("listen");
	need(!bind(listener, ADDR(in), sizeof(in)), "bind");
	need(!listen(listener, 17), "listen");
	need(!getsockname(listener, ADDR(in), &len), "getsockname");
	printf("port %d\n", ntohs(in.sin_port));
	CASE("connect");
	int client = socket(AF_INET, SOCK_STREAM, 0);
	need(!connect(client, ADDR(in), sizeof(in)), "connect");
	len = sizeof(in);
	getsockname(client, ADDR(peer), &len);
	printf("client %d\n", ntohs(((struct sockaddr_in *)&peer)->sin_port));
	CASE("accept");
	len = sizeof(peer);
	int server = accept4(listener, ADDR(peer), &len, SOCK_CLOEXEC);
	need(server >= 0, "accept");
	len = sizeof(peer);
	getpeername(server, ADDR(peer), &len);
	accept4(-1, NULL, NULL, 0);
	CASE("sendto");
	sendto(client, "ping", 4, MSG_NOSIGNAL, NULL, 0);
	sendto(udp, "x", 1, MSG_DONTWAIT, ADDR(in6), sizeof(in6));
	shutdown(client, SHUT_WR);
	CASE("unix");
	int local = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(un.sun_path, "a.socket");
	need(!bind(local, ADDR(un), sizeof(un)), "bind unix");
	int abstract = socket(AF_UNIX, SOCK_DGRAM, 0);
	memcpy(un.sun_path, "\0systape-abstract", 18);
	need(!bind(abstract, ADDR(un), offsetof(struct sockaddr_un, sun_path) + 17), "bind abstract");
	strcpy(un.sun_path, "nobody.socket");
	connect(local, ADDR(un), sizeof(un));
	CASE("pair");
	int pair[2];
	socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
	printf("pair %d %d\n", pair[0], pair[1]);
	syscall(SYS_pipe2, pair, O_NONBLOCK);
	printf("pipe %d %d\n", pair[0], pair[1]);
}

static void processes(void)
{
	struct timespec soon = { .tv_nsec = 3000000 };
	unsigned word = 5;
	int status;

	CASE("futex");
	syscall(SYS_futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 6, NULL, NULL, 0); // EAGAIN
	syscall(SYS_futex, &word, FUTEX_WAIT, 5, &soon, NULL, 0); // ETIMEDOUT
	syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
	CASE("kill");
	kill(getpid(), 0);
	signal(SIGUSR2, SIG_IGN);
	kill(getpid(), SIGUSR2);
	CASE("clone");
	pid_t child = syscall(SYS_clone, CLONE_VFORK | CLONE_VM | SIGCHLD, 0, 0, 0, 0);
	if (child == 0)
		syscall(SYS_exit_group, 23);
	printf("child %d\n", child);
	CASE("wait");
	waitpid(child, &status, __WALL);
	wait4(-1, NULL, WNOHANG, NULL); // ECHILD
	CASE("prctl");
	prctl(PR_SET_NAME, "new comm", 0, 0, 0);
	getpid();
	CASE("exec");
	char *argv[] = { "no program", "one", "", "tres", NULL };
	execve("/no/such/program", argv, environ);
}

int main(int argc, char **argv)
{
	(void)argc;
	// Whatever the suite was started with is open here too, and the numbers below are fixed.
	need(!syscall(SYS_close_range, 3, ~0U, 0), "close_range");
	need(!chdir(argv[1]), argv[1]);
	setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
	files();
	memory();
	sockets();
	processes();
	CASE("end");
	printf("pid %d\n", getpid());
	return 0;
}
