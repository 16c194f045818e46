/*
 * Chains of C functions: chains CASE..., see run_case. Compiled in several ways; whatever the way, the chains are
 * those in tests/stacks.rs. A CASE exec makes a new program of the rest.
 */
#define _GNU_SOURCE
#include "chains.h"

#include <alloca.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

static NOIPA void leaf(int id, long turn)
{
	EVENT(id, turn);
	AFTER();
}

static NOIPA void middle(int id, long turn)
{
	leaf(id, turn);
	AFTER();
}

static NOIPA void outer(int id, long turn)
{
	middle(id, turn);
	AFTER();
}

static INLINED void inlined_inner(int id, long turn)
{
	EVENT(id, turn);
}

static INLINED void inlined_outer(int id, long turn)
{
	AFTER();
	inlined_inner(id, turn);
	AFTER();
}

static NOIPA void holder(int id, long turn)
{
	inlined_outer(id, turn);
	AFTER();
}

static NOIPA void recurse(int id, long turn, int depth)
{
	if (depth > 1)
		recurse(id, turn, depth - 1);
	else
		leaf(id, turn);
	AFTER();
}

/* each frame is more than 1 KB */
static NOIPA void recurse_wide(int id, long turn, int depth)
{
	volatile char wide[1024];

	wide[depth & 1023] = 1;
	if (depth > 1)
		recurse_wide(id, turn, depth - 1);
	else
		leaf(id, turn);
	wide[0] = wide[depth & 1023];
}

static volatile sig_atomic_t handled;
static int handled_id;

static NOIPA void on_signal(int sig)
{
	(void)sig;
	if (handled == TIMES)
		return; /* the timer went off once more */
	outer(handled_id, handled);
	handled = handled + 1;
}

static void handle(int sig, int id, int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	handled = 0;
	handled_id = id;
	sigaction(sig, &action, NULL);
}

static NOIPA void interrupted(void)
{
	__asm__ volatile("int3");
	AFTER();
}

/* many places to be interrupted at: before, between and after pushes and pops */
static NOIPA long callee(long a, long b)
{
	volatile long kept[3] = { a, b, a ^ b };
	long sum = 0;

	for (int i = 0; i < 3; i++)
		sum += kept[i] * b;
	return sum;
}

static NOIPA long spinning(void)
{
	volatile long sum = 0;

	while (handled < TIMES)
		sum += callee(sum, 3) + callee(4, sum);
	return sum;
}

static NOIPA void asking_the_time(void)
{
	struct timespec now;

	while (handled < TIMES)
		clock_gettime(CLOCK_MONOTONIC, &now);
	AFTER();
}

static void tick(long us)
{
	struct itimerval timer = { { 0, us }, { 0, us } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

static NOIPA void realigned(int id, long turn, size_t bytes)
{
	_Alignas(64) volatile char box[128];
	volatile char *more = alloca(bytes);

	more[bytes - 1] = box[turn & 127] = 1;
	outer(id, turn);
	AFTER();
	more[0] = box[0];
}

static NOIPA void in_child(int id, long turn)
{
	leaf(id, turn);
	AFTER();
}

static NOIPA void vforks(int id, long turn)
{
	int status;
	pid_t pid = vfork();

	if (pid == 0) {
		in_child(id, turn);
		_exit(0);
	}
	waitpid(pid, &status, 0);
}

static NOIPA void forks(int id, long turn)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		in_child(id, turn);
		_exit(0);
	}
	waitpid(pid, &status, 0);
}

static void *thread_body(void *unused)
{
	for (long i = 0; i < TIMES; i++)
		outer(THREAD, i);
	return unused;
}

static int clone_body(void *unused)
{
	(void)unused;
	for (long i = 0; i < TIMES; i++)
		outer(CLONE, i);
	return 0;
}

/* as deep as the turn says, on each of two threads at once */
static void *varied_body(void *recursion)
{
	void (*function)(int, long, int) = recursion ? recurse : recurse_wide;

	for (long i = 0; i < 4001; i++)
		function(recursion ? VARIED : FLOOD, i, 1 + i % 41);
	return NULL;
}

static ucontext_t here, there;

static void coroutine_body(void)
{
	for (long i = 0; i < TIMES; i++) {
		outer(COROUTINE, i);
		swapcontext(&there, &here);
	}
}

static void coroutine(void)
{
	static char stack[64 << 10];

	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	makecontext(&there, coroutine_body, 0);
	for (long i = 0; i < TIMES; i++)
		swapcontext(&here, &there);
}

static NOIPA void called_back(int id, long turn)
{
	leaf(id, turn);
	AFTER();
}

typedef void made_at_run_time(int id, long turn, void (*call)(int, long));

/* void made(int id, long turn, void (*call)(int, long)) { call(id, turn); } with a frame pointer */
static made_at_run_time *compile(void)
{
	static const unsigned char code[] = {
		0x55,             /* push %rbp */
		0x48, 0x89, 0xe5, /* mov %rsp,%rbp */
		0xff, 0xd2,       /* call *%rdx */
		0x5d,             /* pop %rbp */
		0xc3,             /* ret */
	};
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *odd = getenv("ODD_MAP");
	char name[64];
	FILE *map;

	memcpy((char *)page + 64, code, sizeof(code));
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
	if (odd && !strcmp(odd, "pipe"))
		mkfifo(name, 0600); /* nobody writes to it */
	else if (odd && *odd == '/' && symlink(odd, name))
		_exit(1);
	map = odd && strcmp(odd, "huge") && strcmp(odd, "planted") && strcmp(odd, "hangs") ? NULL : fopen(name, "w");
	if (map) {
		fprintf(map, "%lx %zx made_at_run_time\n", (unsigned long)page + 64, sizeof(code));
		if (odd && !strcmp(odd, "huge") && (fflush(map) || ftruncate(fileno(map), 1L << 40)))
			_exit(1);
		fclose(map);
		/* somebody else's */
		if (odd && !strcmp(odd, "planted") && chown(name, 65534, 65534))
			_exit(1);
		if (odd && !strcmp(odd, "hangs")) {
			char command[128];

			snprintf(command, sizeof(command), "./hangmap %s", name);
			if (system(command))
				_exit(1);
		}
	}
	return (made_at_run_time *)((char *)page + 64);
}

static NOIPA void calls_made_code(made_at_run_time *made, int id, long turn)
{
	made(id, turn, called_back);
	AFTER();
}

static NOIPA void delete_itself(void)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (len > 0) {
		path[len] = 0;
		unlink(path);
	}
}

static NOIPA void run_case(const char *name)
{
	if (!strcmp(name, "once")) {
		outer(PLAIN, 0);
	} else if (!strcmp(name, "plain")) {
		for (long i = 0; i < TIMES; i++)
			outer(PLAIN, i);
	} else if (!strcmp(name, "forever")) {
		for (long i = 0;; i++) {
			outer(PLAIN, i);
			usleep(500);
		}
	} else if (!strcmp(name, "rest")) {
		sleep(2);
	} else if (!strcmp(name, "inlines")) {
		for (long i = 0; i < TIMES; i++)
			holder(INLINES, i);
	} else if (!strcmp(name, "recursion")) {
		for (long i = 0; i < TIMES; i++)
			recurse(RECURSION, i, 200);
	} else if (!strcmp(name, "deep")) {
		for (long i = 0; i < 23; i++)
			recurse_wide(DEEP, i, 100);
	} else if (!strcmp(name, "trap")) {
		handle(SIGTRAP, TRAP, 0);
		while (handled < TIMES)
			interrupted();
	} else if (!strcmp(name, "alarm")) {
		handle(SIGALRM, ALARM, SA_RESTART);
		tick(300);
		spinning();
		tick(0);
	} else if (!strcmp(name, "vdso")) {
		handle(SIGALRM, VDSO, SA_RESTART);
		tick(300);
		asking_the_time();
		tick(0);
	} else if (!strcmp(name, "altstack")) {
		static char other[64 << 10];
		stack_t stack = { .ss_sp = other, .ss_size = sizeof(other) };

		sigaltstack(&stack, NULL);
		handle(SIGTRAP, ALTSTACK, SA_ONSTACK);
		while (handled < TIMES)
			interrupted();
	} else if (!strcmp(name, "realign")) {
		for (long i = 0; i < TIMES; i++)
			realigned(REALIGN, i, 100 + i * 7);
	} else if (!strcmp(name, "vfork")) {
		for (long i = 0; i < TIMES; i++)
			vforks(VFORK, i);
	} else if (!strcmp(name, "fork")) {
		for (long i = 0; i < TIMES; i++)
			forks(FORK, i);
	} else if (!strcmp(name, "thread")) {
		pthread_t thread;

		pthread_create(&thread, NULL, thread_body, NULL);
		pthread_join(thread, NULL);
	} else if (!strcmp(name, "varied") || !strcmp(name, "flood")) {
		void *narrow = !strcmp(name, "varied") ? &here : NULL;
		pthread_t threads[2];

		pthread_create(&threads[0], NULL, varied_body, narrow);
		pthread_create(&threads[1], NULL, varied_body, narrow);
		pthread_join(threads[0], NULL);
		pthread_join(threads[1], NULL);
	} else if (!strcmp(name, "clone")) {
		char *stack = malloc(64 << 10);
		int status;

		waitpid(clone(clone_body, stack + (64 << 10), CLONE_VM | SIGCHLD, NULL), &status, 0);
	} else if (!strcmp(name, "coroutine")) {
		coroutine();
	} else if (!strcmp(name, "jit")) {
		made_at_run_time *made = compile();

		for (long i = 0; i < TIMES; i++)
			calls_made_code(made, JIT, i);
	} else if (!strcmp(name, "delete")) {
		delete_itself();
	} else {
		_exit(2);
	}
	AFTER();
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "exec"))
			return execv(argv[i + 1], argv + i + 1);
		run_case(argv[i]);
	}
	return 0;
}
