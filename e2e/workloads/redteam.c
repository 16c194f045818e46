// redteam COUNT DIR [KIND]: COUNT processes of a user without rights, each of which is a burden to a recorder of its own kind, until the
// parent is killed. DIR is a directory that anybody may write, with `watched/` and a `libc.so.6` in it. Names would act on a terminal.
// redteam maps FILE: maps it as code, and waits.   redteam threads COUNT: has so many, and says so.   redteam polite COUNT: makes so many calls, one every millisecond.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ACTS "\x1b]0;owned\x07\r\nrecord: fake\xe2\x80\xae"

static const char *dir;
static int number;

static char *in_dir(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void nap(void)
{
	usleep(1000);
}

// Calls, as fast as they go.
static void floods(void)
{
	for (;;)
		syscall(SYS_getppid);
}

// Processes that end at once: numbers are used again.
static void forks(void)
{
	for (;;) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
		else
			nap();
	}
}

// Programs with long arguments, of a name that acts.
static void execs(void)
{
	static char word[4096];
	char path[] = "/proc/self/exe", one[8];

	memset(word, 'y', sizeof(word) - 1);
	memcpy(word, ACTS, sizeof(ACTS) - 1);
	snprintf(one, sizeof(one), "%d", number);
	for (;;) {
		pid_t pid = fork();

		if (!pid) {
			execl(path, ACTS, "ends", one, word, word, NULL);
			_exit(1);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
}

// Programs with as many bytes of arguments and environment as there may be (a quarter of the stack's limit, 2 MiB).
static void huge_words(void)
{
	enum { LEN = 100 << 10, WORDS = 9 };
	char *word = malloc(LEN), path[] = "/proc/self/exe";
	char *argv[WORDS + 4] = { ACTS, "ends", "0" }, *envp[WORDS + 1] = { 0 };

	memset(word, 'z', LEN);
	word[LEN - 1] = 0;
	for (int i = 0; i < WORDS; i++)
		argv[3 + i] = envp[i] = word;
	for (;;) {
		pid_t pid = fork();

		if (!pid) {
			execve(path, argv, envp);
			_exit(1);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
}

// Thousands of places with code, and more every while.
static void maps(void)
{
	int file = open("/proc/self/exe", O_RDONLY);

	for (int all = 0; all < 20000; all++)
		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, all % 2 ? 0 : 4096) == MAP_FAILED)
			break;
	for (;;) {
		munmap(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0), 4096);
		nap();
	}
}

// Open files with long names.
static void files(void)
{
	char name[256];
	struct rlimit most;

	getrlimit(RLIMIT_NOFILE, &most);
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "f%d-%d-%0220d" ACTS, number, i, 0);
		if (open(in_dir(name), O_RDWR | O_CREAT, 0600) < 0)
			break;
		unlink(in_dir(name));
	}
	for (;;)
		nap();
}

// A process whose tracer stops it again and again.
static void traces(void)
{
	pid_t pid = fork();

	if (!pid)
		floods();
	if (ptrace(PTRACE_SEIZE, pid, 0, 0))
		_exit(1);
	for (;;) {
		ptrace(PTRACE_INTERRUPT, pid, 0, 0);
		waitpid(pid, NULL, __WALL);
		nap();
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
		waitpid(pid, NULL, __WALL);
		nap();
		ptrace(PTRACE_CONT, pid, 0, 0);
	}
}

// Files that come and go where a trigger waits for one.
static void files_of_a_trigger(void)
{
	char name[64];

	for (unsigned i = 0;; i++) {
		snprintf(name, sizeof(name), "watched/%d-%u", number, i % 16);
		close(open(in_dir(name), O_RDWR | O_CREAT, 0600));
		unlink(in_dir(name));
	}
}

static __attribute__((noinline)) long deeper(int depth, unsigned way)
{
	volatile long here = depth;

	if (!depth)
		return syscall(SYS_getppid) + here;
	return (way & 1 ? deeper(depth - 1, way >> 1) + 1 : deeper(depth - 1, way >> 1) ^ here) + here;
}

// Stacks that are all different.
static void stacks(void)
{
	for (unsigned way = number;; way = way * 1664525 + 1013904223)
		deeper(120, way);
}

// Calls from code that nobody knows, each from another place, with a list of names that is long.
static void makes_code(void)
{
	static const unsigned char CODE[] = { 0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0xc3 }; // getppid
	size_t len = 16 << 20;
	unsigned char *made = mmap(NULL, len, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	FILE *names = fopen(path, "w");
	for (size_t at = 0; names && at + 64 <= len; at += 64)
		if (fprintf(names, "%lx 40 %060lx" "\x1b[31m\n", (unsigned long)made + at, at) < 0)
			break;
	if (names)
		fclose(names);
	for (size_t at = 0;; at = (at + 64) % len) {
		memcpy(made + at, CODE, sizeof(CODE));
		((void (*)(void))(made + at))();
	}
}

// A disk that others fill.
static void fills(void)
{
	static char much[1 << 20];
	char name[64];

	for (int i = 0;; i++) {
		snprintf(name, sizeof(name), "full-%d", number);
		int file = open(in_dir(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
		while (write(file, much, sizeof(much)) > 0)
			;
		usleep(100000);
		close(file);
	}
}

// A command line without an end.
static void long_words(void)
{
	size_t len = 64 << 20;
	char *words = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(words, 'x', len);
	prctl(PR_SET_MM, PR_SET_MM_ARG_START, (long)words, 0, 0);
	prctl(PR_SET_MM, PR_SET_MM_ARG_END, (long)words + len, 0, 0);
	for (;;)
		nap();
}

static void *waits(void *unused)
{
	usleep(20000);
	return unused;
}

// Threads that come and go, hundreds at once.
static void threads(void)
{
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
	for (;;) {
		pthread_t one;

		if (pthread_create(&one, &small, waits, NULL))
			nap();
	}
}

static void *stays(void *unused)
{
	for (;;)
		pause();
	return unused;
}

// COUNT threads that stay; says how many there are.
static void many_threads(int count)
{
	pthread_attr_t small;
	pthread_t one;
	int made = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	while (made < count && !pthread_create(&one, &small, stays, NULL))
		made++;
	printf("%d\n", made);
	fflush(stdout);
	for (;;)
		nap();
}

// Signals to itself, and names that change.
static void signals(void)
{
	char name[16];

	signal(SIGUSR1, SIG_IGN);
	for (unsigned i = 0;; i++) {
		snprintf(name, sizeof(name), "\x1b[%um\r\xe2\x80\xae", i);
		prctl(PR_SET_NAME, name);
		kill(getpid(), SIGUSR1);
	}
}

static void put(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	if (file >= 0 && write(file, text, strlen(text)) < 0)
		errno = 0;
	close(file);
}

// Another user's root: a machine of any name, with a C library of its own in the place of the right one.
static void namespaces(void)
{
	char text[64], evil[4096];
	unsigned uid = getuid(), gid = getgid();

	strcpy(evil, in_dir("libc.so.6"));
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWPID | CLONE_NEWCGROUP | CLONE_NEWIPC))
		_exit(1);
	put("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "0 %u 1", uid);
	put("/proc/self/uid_map", text);
	snprintf(text, sizeof(text), "0 %u 1", gid);
	put("/proc/self/gid_map", text);
	if (sethostname("../" ACTS, sizeof(ACTS) + 2))
		_exit(1);
	mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	if (mount(evil, "/lib/x86_64-linux-gnu/libc.so.6", NULL, MS_BIND, NULL))
		_exit(1);
	int file = open("/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY);
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
		_exit(1);
	forks();
}

static void (*const KINDS[])(void) = { floods, forks, execs, maps, files, traces, files_of_a_trigger, stacks, makes_code, fills,
				       long_words, threads, signals, namespaces, huge_words };
#define ALL (int)(sizeof(KINDS) / sizeof(*KINDS))

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "ends"))
		return 0;
	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "maps")) {
		int file = open(argv[2], O_RDONLY);

		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
			return 1;
		for (;;)
			pause();
	}
	if (!strcmp(argv[1], "threads"))
		many_threads(atoi(argv[2]));
	if (!strcmp(argv[1], "polite")) {
		prctl(PR_SET_NAME, "polite");
		for (int left = atoi(argv[2]); left; left--) {
			syscall(SYS_getppid);
			nap();
		}
		return 0;
	}
	dir = argv[2];
	int count = atoi(argv[1]);
	pid_t parent = getpid();
	for (number = 0; number < count; number++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (!pid) {
			// as many as there are share two CPUs with what else runs: none needs all of one
			setpriority(PRIO_PROCESS, 0, 5);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(0);
			KINDS[argc > 3 ? atoi(argv[3]) : number % ALL]();
			_exit(1);
		}
	}
	puts("begun");
	fflush(stdout);
	for (;;)
		pause();
}
