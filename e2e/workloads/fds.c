// fds SCENARIO SIDE: makes descriptors come and go in every way the test knows, in the current directory, and writes
// what the kernel says each of them is to SIDE; see fds.h.
#include "fds.h"
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

static char **arguments;

static int file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT, 0600);

	need(fd >= 0, name);
	return fd;
}

// Runs this program again, as SCENARIO.
static void again(const char *scenario)
{
	execl("/proc/self/exe", arguments[0], scenario, "-", NULL);
	need(0, "exec");
}

static pthread_barrier_t barrier;
static int linger_fd;

static void *opener(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&barrier);
	usleep(100000); // the close is now inside its linger, the number is free
	int fd = file("taken");
	need(fd == linger_fd, "the number was not free: no lingering close");
	must(fd);
	usleep(200000);
	must(fd);
	return NULL;
}

// close() of a socket with unsent data lasts a second; the number is another file's meanwhile
static void linger(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct linger on = { 1, 1 };
	socklen_t len = sizeof(in);
	static char data[1 << 20];
	pthread_t thread;
	int small = 4096;

	int listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	need(!bind(listener, (void *)&in, len) && !listen(listener, 1), "listen");
	getsockname(listener, (void *)&in, &len);
	linger_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int peer_ok = connect(linger_fd, (void *)&in, len) == 0 || errno == EINPROGRESS;
	need(peer_ok && accept(listener, NULL, NULL) >= 0, "connect");
	must(linger_fd);
	while (write(linger_fd, data, sizeof(data)) > 0)
		;
	fcntl(linger_fd, F_SETFL, 0);
	setsockopt(linger_fd, SOL_SOCKET, SO_LINGER, &on, sizeof(on));
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, opener, NULL);
	pthread_barrier_wait(&barrier);
	close(linger_fd);
	must(linger_fd); // the file: this close must not take it
	pthread_join(thread, NULL);
}

static void dups(void)
{
	int a = file("a"), b = file("b"), c = file("c");

	must(a), must(b);
	need(dup2(a, b) == b, "dup2");
	must(b);
	dup2(c, c), must(c);
	dup2(777, c), must(c); // fails: c stays
	dup3(b, c, O_CLOEXEC), must(c);
	int d = dup(c), e = fcntl(a, F_DUPFD, 50), f = fcntl(a, F_DUPFD_CLOEXEC, 60);
	must(d), must(e), must(f);
	close(a), must(a), must(e);
	close(777);
	int again = file("again");
	need(again == a, "number");
	must(again);
	close(-1), must(b);
	// onto itself, after it was replaced: what it is now
	dup2(again, 30), dup2(b, 30);
	dup2(30, 30), must(30);
	need(dup3(30, 30, O_CLOEXEC) < 0 && errno == EINVAL, "dup3"), must(30);
	need(dup2(31, 31) < 0 && errno == EBADF, "dup2 of what is not open"), must(31), must(30);
}

// A file whose path has `length` bytes, in directories with names of `part` bytes; the kernel shows no more than 4,095.
static void deep(size_t length, size_t part)
{
	char name[NAME_MAX + 1];
	size_t len;
	int here = open(".", O_PATH | O_DIRECTORY);

	memset(name, 'd', sizeof(name));
	for (len = strlen(getcwd((char[PATH_MAX]){}, PATH_MAX)); length - len > NAME_MAX; len += part + 1) {
		name[part] = 0;
		need(!mkdir(name, 0700) || errno == EEXIST, "mkdir");
		need(!chdir(name), "chdir");
	}
	memset(name, 'f', sizeof(name));
	name[length - len - 1] = 0;
	must(file(name));
	need(!fchdir(here), "fchdir");
	close(here);
}

static void long_paths(void)
{
	deep(3843, 250);
	deep(4041, 250);
	deep(4042, 250);
	deep(4094, 200);
	deep(4095, 250);
	deep(4095, 100);
	deep(4095, 50);
	deep(4096, 250);
	deep(4300, 250);
}

static void ranges(void)
{
	int first = file("r0");

	for (int i = 1; i < 9; i++) {
		char name[8];

		sprintf(name, "r%d", i);
		file(name);
	}
	syscall(SYS_close_range, first + 2, first + 3, 0);
	syscall(SYS_close_range, first + 5, first + 6, 4 /* CLOSE_RANGE_CLOEXEC */);
	syscall(SYS_close_range, 5, 4, 0); // EINVAL
	for (int i = 0; i < 9; i++)
		must(first + i);
	again("after");
}

static void after(void)
{
	for (int fd = 3; fd < 20; fd++)
		must(fd);
}

static void *exec_thread(void *arg)
{
	(void)arg;
	again("after");
	return NULL;
}

static void thread_exec(void)
{
	pthread_t thread;

	file("keeps");
	need(open("goes", O_RDWR | O_CREAT | O_CLOEXEC, 0600) >= 0, "goes");
	fcntl(file("set"), F_SETFD, FD_CLOEXEC);
	int unset = open("unset", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	fcntl(unset, F_SETFD, 0);
	ioctl(file("ioctl"), FIOCLEX);
	file("last");
	for (int fd = 3; fd < 10; fd++)
		must(fd);
	pthread_create(&thread, NULL, exec_thread, NULL);
	pause();
}

static void forks(void)
{
	int a = file("a"), b = file("b");

	// a copied table
	if (fork() == 0) {
		must(a), must(b);
		close(a);
		need(file("child") == a, "number");
		must(a), must(b);
		_exit(0);
	}
	wait(NULL);
	must(a), must(b);
	// a shared one, of another process
	pid_t pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		close(a);
		need(file("shared") == a, "number");
		must(a), must(b);
		syscall(SYS_exit, 0);
	}
	waitpid(pid, NULL, 0);
	must(a), must(b);
	// shared first, then its own
	pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		must(a);
		need(!unshare(CLONE_FILES), "unshare");
		close(a);
		need(file("unshared") == a, "number");
		must(a);
		syscall(SYS_exit, 0);
	}
	waitpid(pid, NULL, 0);
	must(a), must(b);
	// a vfork child that execs: the parent keeps its table
	pid = vfork();
	if (pid == 0)
		execl("/bin/true", "true", NULL);
	waitpid(pid, NULL, 0);
	must(a), must(b);
}

static void denied(void)
{
	int a = file("a"), b = file("b");
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_dup2, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_chdir, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = { sizeof(rules) / sizeof(*rules), rules };

	must(a), must(b);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	need(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
	for (int i = 0; i < 7; i++)
		close(a);
	for (int i = 0; i < 5; i++)
		syscall(SYS_dup2, a, b);
	for (int i = 0; i < 3; i++)
		syscall(SYS_openat, AT_FDCWD, "denied", O_RDONLY);
	must(a), must(b), must(b + 1);
}

static void kinds(void)
{
	int fds[32], n = 0;
	sigset_t none;

	sigemptyset(&none);
	need(!pipe(fds + n), "pipe"), n += 2;
	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds + n), "socketpair"), n += 2;
	fds[n++] = eventfd(0, 0);
	fds[n++] = epoll_create1(0);
	fds[n++] = timerfd_create(CLOCK_MONOTONIC, 0);
	fds[n++] = signalfd(-1, &none, 0);
	fds[n++] = inotify_init();
	fds[n++] = open(".", O_RDWR | O_TMPFILE, 0600);
	fds[n++] = open(".", O_RDONLY | O_DIRECTORY);
	fds[n++] = open("/", O_PATH);
	fds[n++] = open("/proc/self/maps", O_RDONLY);
	fds[n++] = open("/dev/null", O_RDWR);
	need(!symlink("target", "link"), "symlink");
	file("target");
	fds[n++] = open("link", O_RDONLY);
	fds[n++] = open("/proc/self/exe", O_RDONLY);
	fds[n++] = creat("created", 0600);
	fds[n++] = socket(AF_INET6, SOCK_DGRAM, 0);
	for (int i = 0; i < n; i++) {
		need(fds[i] >= 0, "a kind of descriptor");
		must(fds[i]);
	}
	may(memfd_create("a memfd", 0));
	may(syscall(SYS_pidfd_open, getpid(), 0));
	int gone = file("gone");
	must(gone);
	unlink("gone");
	must(gone);
}

static void directories(void)
{
	char here[PATH_MAX];

	need(getcwd(here, sizeof(here)) && !mkdir("one", 0700) && !mkdir("one/two", 0700), "mkdir");
	must(file("relative"));
	need(!chdir("one"), "chdir");
	must(file("relative"));
	int two = open("two", O_PATH | O_DIRECTORY);
	must(two);
	must(openat(two, "../odd name", O_RDWR | O_CREAT, 0600));
	must(openat(two, "./deep", O_RDWR | O_CREAT, 0600));
	need(!fchdir(two), "fchdir");
	must(file("by fchdir"));
	must(file("../../up"));
	need(chdir("no such") < 0, "chdir"); // fails: we stay
	must(file("still"));
	if (fork() == 0) {
		need(!chdir("/"), "chdir");
		must(open("etc/passwd", O_RDONLY));
		_exit(0);
	}
	wait(NULL);
	must(file("after fork"));
}

static void rooted(void)
{
	mkdir("root", 0700), mkdir("root/in", 0700);
	must(file("root/in/outside"));
	need(!chroot("root") && !chdir("/in"), "chroot");
	probe("root", file("/in/absolute"));
	probe("root", file("relative"));
}

static void passed(void)
{
	int pair[2], old = file("old"), sent = file("sent"), other = file("other");
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec byte = { "x", 1 };
	struct msghdr message = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };

	must(old);
	need(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), "socketpair");
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	*header = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(header), &sent, sizeof(int));
	need(sendmsg(pair[0], &message, 0) == 1, "sendmsg");
	close(old);
	char in;
	byte.iov_base = &in;
	need(recvmsg(pair[1], &message, 0) == 1, "recvmsg");
	may(old); // it is `sent` now, and `old` no more
	close(old);
	int self = syscall(SYS_pidfd_open, getpid(), 0);
	need(self == old, "number");
	int got = syscall(SYS_pidfd_getfd, self, other, 0);
	need(got >= 0, "pidfd_getfd");
	may(got);
	close(got);
	need(file("new") == got, "number");
	must(got);
}

static void *churn(void *arg)
{
	char name[32];

	for (int i = 0; i < 499; i++) {
		sprintf(name, "%s%d", (char *)arg, i % 7);
		int fd = file(name);
		must(fd);
		if (i % 3 == 0)
			must(dup2(fd, fd + 40));
		close(fd);
		if (i % 3 == 0)
			close(fd + 40);
	}
	return NULL;
}

// two threads that keep getting each other's numbers
static void race(void)
{
	pthread_t threads[2];

	proc_fd();
	pthread_create(threads, NULL, churn, "x");
	pthread_create(threads + 1, NULL, churn, "y");
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} scenarios[] = { { "linger", linger }, { "dups", dups },     { "ranges", ranges },	{ "after", after },
			  { "forks", forks },	{ "denied", denied }, { "kinds", kinds },	{ "passed", passed },
			  { "rooted", rooted }, { "race", race },     { "thread_exec", thread_exec },
			  { "directories", directories }, { "long_paths", long_paths } };

	need(argc == 3, "usage");
	arguments = argv;
	if (strcmp(argv[2], "-")) {
		int side = open(argv[2], O_WRONLY | O_CREAT | O_APPEND, 0600);
		need(side >= 0 && dup2(side, SIDE) == SIDE, argv[2]);
		close(side);
	}
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++) {
		if (!strcmp(argv[1], scenarios[i].name)) {
			scenarios[i].run();
			return 0;
		}
	}
	return 2;
}
