// rare SCENARIO SIDE: descriptors that change in ways few programs use, most of which are no call of the one they happen
// to; see fds.h. Exits with 77 when the kernel does not let it.
#include "fds.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static char **arguments;

static int file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT, 0600);

	need(fd >= 0, name);
	return fd;
}

static pthread_barrier_t turns;

static void *own_table(void *arg)
{
	int a = *(int *)arg;

	need(!unshare(CLONE_FILES), "unshare");
	must(a);
	close(a);
	need(file("the thread's") == a, "number");
	must(a);
	pthread_barrier_wait(&turns);
	pthread_barrier_wait(&turns);
	must(a);
	return NULL;
}

// a thread that leaves its process's table: descriptors of a process are no longer one table
static void thread_table(void)
{
	pthread_t thread;
	int a = file("a"), b = file("b");

	pthread_barrier_init(&turns, NULL, 2);
	pthread_create(&thread, NULL, own_table, &a);
	pthread_barrier_wait(&turns);
	must(a), must(b);
	close(b);
	need(file("the leader's") == b, "number");
	must(b);
	pthread_barrier_wait(&turns);
	pthread_join(thread, NULL);
	must(a), must(b);
}

// exec by a process that shares a table: it gets its own, and closes in that
static void shared_exec(void)
{
	int a = open("cloexec", O_RDWR | O_CREAT | O_CLOEXEC, 0600), b = file("b");

	pid_t pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		execl("/proc/self/exe", arguments[0], "after", "-", NULL);
		need(0, "exec");
	}
	waitpid(pid, NULL, 0);
	must(a), must(b);
}

static void after(void)
{
	must(3), must(4);
	close(4);
	must(4);
}

// A supervisor puts a file of its own at a number its child has open (SECCOMP_IOCTL_NOTIF_ADDFD).
static void addfd(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(rules) / sizeof(*rules), rules };
	struct seccomp_notif request = { 0 };
	int target = file("target"), mine = file("put there");

	must(target);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	int notify = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (notify < 0)
		_exit(77);
	if (fork() == 0) {
		must(target);
		syscall(SYS_getppid);
		may(target); // no call says whose descriptor it became: unknown until tables are read again
		usleep(300000);
		must(target);
		_exit(0);
	}
	need(!ioctl(notify, SECCOMP_IOCTL_NOTIF_RECV, &request), "NOTIF_RECV");
	struct seccomp_notif_addfd add = { .id = request.id, .flags = SECCOMP_ADDFD_FLAG_SETFD, .srcfd = mine, .newfd = target };
	need(ioctl(notify, SECCOMP_IOCTL_NOTIF_ADDFD, &add) == target, "NOTIF_ADDFD");
	struct seccomp_notif_resp answer = { .id = request.id, .val = 1 };
	need(!ioctl(notify, SECCOMP_IOCTL_NOTIF_SEND, &answer), "NOTIF_SEND");
	may(target);
	wait(NULL);
	must(target);
}

static long int80(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

static void no_int80(int signal)
{
	(void)signal;
	_exit(77);
}

// i386 calls of a 64-bit program: their numbers mean other calls
static void compat(void)
{
	char *name = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int a = file("a"), b = file("b");

	signal(SIGSEGV, no_int80);
	strcpy(name, "by i386");
	int c = int80(5 /* open */, (long)name, O_RDWR | O_CREAT, 0600);
	need(c == b + 1, "i386 open");
	must(a), must(b), must(c);
	need(int80(63 /* dup2 */, c, b, 0) == b, "i386 dup2");
	must(b);
	need(int80(6 /* close */, a, 0, 0) == 0, "i386 close");
	must(a);
	need(int80(3 /* read: 64-bit close */, b, (long)name, 0) == 0, "i386 read");
	must(b);
	need(int80(41 /* dup: 64-bit socket */, b, 0, 0) == a, "i386 dup");
	must(a);
	name[1000] = 0;
	((unsigned *)(name + 64))[0] = 1, ((unsigned *)(name + 64))[1] = 1, ((unsigned *)(name + 64))[2] = 0;
	int s = int80(102 /* socketcall */, 1 /* socket */, (long)(name + 64), 0);
	need(s > c, "i386 socket");
	must(s);
	need(file("after all") > s, "number");
	must(s + 1);
}

// a file that gets another name while it is open: either is right, one it never had is not
static void renamed(void)
{
	int a = file("first");

	must(a);
	rename("first", "second");
	file("first");
	probe("was=first", a), must(a + 1);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} scenarios[] = { { "thread_table", thread_table }, { "shared_exec", shared_exec }, { "after", after },
			  { "addfd", addfd }, { "compat", compat }, { "renamed", renamed } };

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
