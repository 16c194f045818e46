// rings SCENARIO SIDE: descriptors come and go by operations of io_uring and by calls, with the same numbers in turns, in the
// current directory; what the kernel says each of them is goes to SIDE; see fds.h. Behind it all it writes its whole table to
// SIDE.table, one line a descriptor, FD CLOEXEC TARGET, and calls access("the table"). Exits with 77 when the kernel has no io_uring.
#include "fds.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

static char **arguments;

static int file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT, 0600);

	need(fd >= 0, name);
	return fd;
}

static struct {
	int fd;
	char *sq, *cq;
	struct io_uring_sqe *entries;
	struct io_uring_params params;
	unsigned added; // not yet submitted
} ring;

static void ring_open(unsigned flags)
{
	ring.params.flags = flags;
	ring.params.sq_thread_idle = 1000;
	ring.fd = syscall(SYS_io_uring_setup, 8, &ring.params);
	if (ring.fd < 0)
		_exit(77);
	ring.sq = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
	ring.cq = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_CQ_RING);
	ring.entries = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES);
	need(ring.sq != MAP_FAILED && ring.cq != MAP_FAILED && ring.entries != MAP_FAILED, "io_uring");
}

// What ring_submit() submits next. The kernel's thread sees all of it at once: of a chain alone its first would be done by itself.
static void ring_add(struct io_uring_sqe entry)
{
	unsigned *tail = (unsigned *)(ring.sq + ring.params.sq_off.tail);
	unsigned *array = (unsigned *)(ring.sq + ring.params.sq_off.array);
	unsigned slot = (*tail + ring.added++) & (ring.params.sq_entries - 1);

	ring.entries[slot] = entry;
	array[slot] = slot;
}

static void ring_submit(unsigned count)
{
	unsigned *tail = (unsigned *)(ring.sq + ring.params.sq_off.tail);

	need(ring.added == count, "entries");
	ring.added = 0;
	__atomic_store_n(tail, *tail + count, __ATOMIC_SEQ_CST);
	unsigned flags = ring.params.flags & IORING_SETUP_SQPOLL ? IORING_ENTER_SQ_WAKEUP : 0;

	need(syscall(SYS_io_uring_enter, ring.fd, count, 0, flags, NULL, 0) >= 0, "io_uring_enter");
}

// The next result.
static int ring_result(void)
{
	unsigned *head = (unsigned *)(ring.cq + ring.params.cq_off.head);
	unsigned *tail = (unsigned *)(ring.cq + ring.params.cq_off.tail);
	struct io_uring_cqe *done = (struct io_uring_cqe *)(ring.cq + ring.params.cq_off.cqes);

	while (__atomic_load_n(tail, __ATOMIC_ACQUIRE) == *head)
		syscall(SYS_io_uring_enter, ring.fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	int result = done[*head & (ring.params.cq_entries - 1)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return result;
}

static int ring_do(struct io_uring_sqe entry)
{
	ring_add(entry);
	ring_submit(1);
	return ring_result();
}

static struct io_uring_sqe opening(const char *name, unsigned flags)
{
	struct io_uring_sqe entry = { .opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (unsigned long)name, .len = 0600 };

	entry.open_flags = O_RDWR | O_CREAT | flags;
	return entry;
}

static int ring_file(const char *name, unsigned flags)
{
	int fd = ring_do(opening(name, flags));

	need(fd >= 0, name);
	return fd;
}

static struct io_uring_sqe closing(int fd)
{
	return (struct io_uring_sqe){ .opcode = IORING_OP_CLOSE, .fd = fd };
}

static void ring_close(int fd)
{
	need(ring_do(closing(fd)) == 0, "ring close");
}

// Makes fd another file without a call.
static void ring_replace(int fd, const char *name)
{
	ring_close(fd);
	need(ring_file(name, 0) == fd, "ring open");
}

static void table(void)
{
	char name[PATH_MAX], path[PATH_MAX];
	FILE *to;
	DIR *dir;

	sprintf(name, "%s.table", arguments[2]);
	to = fopen(name, "w");
	dir = opendir("/proc/self/fd");
	need(to && dir, name);
	for (struct dirent *e; (e = readdir(dir));) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] == '.' || fd == dirfd(dir) || fd == fileno(to))
			continue;
		ssize_t n = readlinkat(dirfd(dir), e->d_name, path, sizeof(path) - 1);
		need(n > 0, "readlinkat");
		fprintf(to, "%d %d %.*s\n", fd, fcntl(fd, F_GETFD, 0) & FD_CLOEXEC, (int)n, path);
	}
	fclose(to);
	closedir(dir);
	access("the table", F_OK);
}

static void replaces(void)
{
	int a = file("a"), b = file("b");

	must(a), must(b);
	ring_open(0);
	must(a), must(ring.fd);
	ring_replace(a, "replaced");
	must(a), must(b);
	if (fork() == 0) {
		ring_replace(b, "by the child");
		must(b);
		_exit(0);
	}
	wait(NULL);
	must(b);
	must(file("by open"));
	table();
}

// The ring is there, and has been used, before the recording begins: once SIDE.go exists it goes on.
static void before(void)
{
	char go[PATH_MAX];
	int a = file("a"), b = file("b");

	ring_open(0);
	ring_replace(a, "before");
	sprintf(go, "%s.go", arguments[2]);
	close(file("ready"));
	while (access(go, F_OK))
		usleep(5000);
	must(a), must(b);
	ring_replace(b, "while");
	must(a), must(b);
	table();
}

// By operations and by calls in turns: the numbers are the same all along.
static void turns(void)
{
	int kept = file("kept"), a = file("a"), copy = 40;

	for (int i = 0; i < 3; i++) {
		ring_close(a);
		may(a);
		need(file("by a call") == a, "open");
		must(a);
		close(a);
		need(ring_file("by the ring", O_CLOEXEC) == a, "ring open");
		must(a);
		need(dup2(kept, a) == a, "dup2");
		must(a);
		need(dup2(a, copy) == copy, "dup2");
		ring_close(copy);
		may(copy);
		ring_replace(a, "b");
		must(a);
	}
	must(kept);
	// refused, and of what is not open
	need(ring_do(closing(9999)) == -EBADF, "close of nothing");
	need(ring_do(opening("no such/file", 0)) == -ENOENT, "open of nothing");
	must(a);
}

// A CLOSE that waits for others: done, taken back, and with nothing told of its success.
static void chains(void)
{
	int a = file("a"), b = file("b"), c = file("c"), kept = file("kept"), pair[2];
	struct io_uring_sqe entry = { .opcode = IORING_OP_READ, .flags = IOSQE_IO_LINK, .len = 1 };
	char byte;

	need(!pipe(pair), "pipe");
	entry.addr = (unsigned long)&byte;
	entry.fd = pair[0];
	ring_add(entry);
	ring_add(closing(a));
	ring_submit(2);
	may(a);
	need(write(pair[1], "x", 1) == 1 && ring_result() == 1 && ring_result() == 0, "read, close");
	need(file("after") == a, "number");
	must(a);
	// what a waiting CLOSE closes is what is there then
	entry.fd = pair[0];
	ring_add(entry);
	ring_add(closing(a));
	ring_submit(2);
	need(dup2(kept, a) == a, "dup2");
	may(a);
	need(write(pair[1], "x", 1) == 1 && ring_result() == 1 && ring_result() == 0, "read, close");
	may(a);
	need(fcntl(a, F_GETFD, 0) < 0, "it is closed");
	// the first fails: the second is not done
	entry.fd = 9999;
	ring_add(entry);
	ring_add(closing(b));
	ring_submit(2);
	need(ring_result() == -EBADF && ring_result() == -ECANCELED, "canceled");
	must(b);
	struct io_uring_sqe quiet = closing(c);
	quiet.flags = IOSQE_CQE_SKIP_SUCCESS;
	ring_add(quiet);
	ring_add((struct io_uring_sqe){ .opcode = IORING_OP_NOP });
	ring_submit(2);
	need(ring_result() == 0, "nop");
	may(c);
	need(file("again") == a && file("again too") == c, "numbers");
	must(a), must(c), must(kept);
}

// The ring's own table has numbers of its own.
static void fixed(void)
{
	int a = file("a"), b = file("b"), none[64];
	struct io_uring_sqe entry = opening("fixed", 0), shut = closing(0);

	memset(none, -1, sizeof(none));
	need(a < 64 && !syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, none, 64), "register");
	entry.file_index = a + 1;
	need(ring_do(entry) == 0, "open into the ring's table");
	must(a), must(b);
	/* IORING_OP_FIXED_FD_INSTALL, of 6.8 */
	int out = ring_do((struct io_uring_sqe){ .opcode = 54, .fd = a, .flags = IOSQE_FIXED_FILE });
	need(out >= 0, "install");
	must(out);
	shut.file_index = a + 1;
	need(ring_do(shut) == 0, "close in the ring's table");
	must(a), must(b), must(out), must(0);
	ring_close(out);
	may(out);
}

static int client(int listener)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	need(fd >= 0 && !getsockname(listener, (struct sockaddr *)&in, &len) &&
		     !connect(fd, (struct sockaddr *)&in, len), "connect");
	return fd;
}

static void sockets(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct io_uring_sqe accepting = { .opcode = IORING_OP_ACCEPT }, canceling = { .opcode = IORING_OP_ASYNC_CANCEL };
	/* IORING_OP_SOCKET: domain, type, protocol */
	int listener = ring_do((struct io_uring_sqe){ .opcode = 45, .fd = AF_INET, .off = SOCK_STREAM });

	need(listener >= 0, "ring socket");
	must(listener);
	need(!bind(listener, (struct sockaddr *)&in, sizeof(in)) && !listen(listener, 8), "listen");
	accepting.fd = listener;
	accepting.accept_flags = SOCK_CLOEXEC;
	ring_add(accepting);
	ring_submit(1);
	int one = client(listener), other = ring_result();
	need(other >= 0, "accept");
	must(one), must(other);
	ring_close(other);
	may(other);
	// of several results
	accepting.ioprio = IORING_ACCEPT_MULTISHOT;
	accepting.accept_flags = 0;
	accepting.user_data = 7;
	ring_add(accepting);
	ring_submit(1);
	int first = client(listener), second = ring_result(), third = client(listener), fourth = ring_result();
	need(second >= 0 && fourth >= 0, "accept");
	must(first), must(second), must(third), must(fourth);
	ring_close(second);
	need(file("in its place") == second, "number");
	must(second);
	canceling.addr = 7;
	ring_add(canceling);
	ring_submit(1);
	ring_result(), ring_result();
}

static void all(void)
{
	ring_open(0);
	turns(), chains(), fixed(), sockets(), table();
}

static void polled(void)
{
	ring_open(IORING_SETUP_SQPOLL);
	turns(), chains(), fixed(), sockets(), table();
}

int main(int argc, char **argv)
{
	struct {
		const char *name;
		void (*run)(void);
	} scenarios[] = { { "replaces", replaces }, { "before", before }, { "all", all }, { "polled", polled } };

	need(argc == 3, "usage");
	arguments = argv;
	int side = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	need(side >= 0 && dup3(side, SIDE, O_CLOEXEC) == SIDE, argv[2]);
	close(side);
	for (unsigned i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++)
		if (!strcmp(argv[1], scenarios[i].name)) {
			scenarios[i].run();
			return 0;
		}
	return 2;
}
