// kills CASE...: makes processes die (or not) in every way there is, one case after another, and prints what it did and
// saw; see kills.h. "kills send HOW SIGNAL PID TID" is a sender: waits to be let on, sends, exits.
// "kills execveat FILE ARG..." becomes FILE by a descriptor of it.
//
// Environment: CGROUP, a directory of cgroup v2; MEMORY, a memory cgroup with a limit of 32 MiB; N, for `many`.
#include "kills.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <termios.h>

static sigset_t only(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return set;
}

static void block(int how, int sig)
{
	sigset_t set = only(sig);

	need(!sigprocmask(how, &set, NULL), "sigprocmask");
}

// ---- one process sends, another dies

static int pidfd_send(pid_t pid, int sig)
{
	int fd = syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
}

static int queue(pid_t pid, pid_t tid, int sig)
{
	siginfo_t info = { .si_signo = sig, .si_code = SI_QUEUE };

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_int = 42;
	return tid ? syscall(SYS_rt_tgsigqueueinfo, pid, tid, sig, &info) :
		     syscall(SYS_rt_sigqueueinfo, pid, sig, &info);
}

static int send_i386(pid_t pid, int sig)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(37), "b"((long)pid), "c"((long)sig)
			 : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

static int write_to(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int n = fd < 0 ? -1 : write(fd, text, strlen(text));
	close(fd);
	return n == (int)strlen(text) ? 0 : -1;
}

static int send_by(const char *how, int sig, pid_t pid, pid_t tid)
{
	if (!strcmp(how, "kill"))
		return kill(pid, sig);
	if (!strcmp(how, "tkill"))
		return syscall(SYS_tkill, tid, sig);
	if (!strcmp(how, "tgkill"))
		return syscall(SYS_tgkill, pid, tid, sig);
	if (!strcmp(how, "pidfd_send_signal"))
		return pidfd_send(pid, sig);
	if (!strcmp(how, "rt_sigqueueinfo"))
		return queue(pid, 0, sig);
	if (!strcmp(how, "rt_tgsigqueueinfo"))
		return queue(pid, tid, sig);
	if (!strcmp(how, "i386"))
		return send_i386(pid, sig);
	if (!strcmp(how, "cgroup.kill"))
		return write_to(getenv("CGROUP"), "cgroup.kill", "1");
	return -1;
}

// What the sender is, once exec'd.
static int send_main(char **argv)
{
	say_fd = SAY;
	go_fd = GO;
	ready_to_go();
	return send_by(argv[2], atoi(argv[3]), atoi(argv[4]), atoi(argv[5])) ? 1 : 0;
}

static const char *code_of(const char *how)
{
	if (strstr(how, "queue"))
		return "\"code_name\":\"SI_QUEUE\",\"code\":-1,";
	return strstr(how, "tkill") || strstr(how, "tgkill") ? "\"code_name\":\"SI_TKILL\",\"code\":-6," : USER;
}

static void by(const char *how, int sig, uid_t from, uid_t to)
{
	struct child victim = target_as(to);
	struct child killer = sender_as(from, how, sig, victim.pid, victim.pid);
	about(victim.pid);
	about(killer.pid);
	sent(sig, killer.pid, victim.pid, "\"via\":\"%s\",%s" FATAL, strcmp(how, "i386") ? how : "kill", code_of(how));
	send_and_exit(&killer);
	ended(victim.pid);
	forget(&victim);
}

static void kill_case(void)
{
	by("kill", SIGTERM, 0, 0);
	by("kill", SIGKILL, 0, 0);
	by("kill", SIGUSR1, 0, 0);
	by("kill", SIGHUP, 0, 0);
}

static void other_users(void)
{
	by("kill", SIGTERM, NOBODY, NOBODY);
	by("kill", SIGKILL, 0, NOBODY);
	by("tgkill", SIGINT, NOBODY, NOBODY);
}

static void tkill_case(void)
{
	by("tkill", SIGKILL, 0, 0);
}

static void tgkill_case(void)
{
	by("tgkill", SIGTERM, 0, 0);
}

static void pidfd(void)
{
	by("pidfd_send_signal", SIGKILL, 0, 0);
}

static void sigqueue_case(void)
{
	by("rt_sigqueueinfo", SIGTERM, 0, 0);
}

static void tgsigqueue(void)
{
	by("rt_tgsigqueueinfo", SIGKILL, 0, 0);
}

static void i386(void)
{
	by("i386", SIGTERM, 0, 0);
}

// Its own executioner.
static void itself(void)
{
	struct child child = begin("suicide");

	if (!child.pid) {
		ready_to_go();
		kill(getpid(), SIGKILL);
		_exit(99);
	}
	await(&child);
	about(child.pid);
	sent(SIGKILL, child.pid, child.pid, "\"via\":\"kill\"," USER FATAL);
	let(&child);
	ended(child.pid);
}

static void abort_case(void)
{
	struct child child = begin("aborter");

	if (!child.pid) {
		ready_to_go();
		abort();
	}
	await(&child);
	about(child.pid);
	sent(SIGABRT, child.pid, child.pid, "\"via\":\"tgkill\"," FATAL);
	let(&child);
	ended(child.pid);
}

// ---- many at once

#define GROUP 5

// Children in one process group, that of the first.
static void group_of(struct child *child, int n)
{
	for (int i = 0; i < n; i++) {
		child[i] = begin("member");
		if (!child[i].pid) {
			need(!setpgid(0, i ? child[0].pid : 0), "setpgid");
			rest();
		}
		await(&child[i]);
		about(child[i].pid);
	}
}

static void group(void)
{
	struct child child[GROUP];

	group_of(child, GROUP);
	struct child killer = sender("kill", SIGTERM, -child[0].pid, 0);
	about(killer.pid);
	for (int i = 0; i < GROUP; i++)
		sent(SIGTERM, killer.pid, child[i].pid, "\"via\":\"kill\",\"act\":\"one\"," USER FATAL);
	send_and_exit(&killer);
	for (int i = 0; i < GROUP; i++)
		ended(child[i].pid);
}

// kill(0): the sender is one of them.
static void own_group(void)
{
	struct child child[GROUP], killer;

	group_of(child, GROUP);
	killer = begin("sender");
	if (!killer.pid) {
		need(!setpgid(0, child[0].pid), "setpgid");
		become("send", "kill", number(SIGTERM), "0", "0", NULL);
	}
	await(&killer);
	about(killer.pid);
	for (int i = 0; i < GROUP; i++)
		sent(SIGTERM, killer.pid, child[i].pid, "\"via\":\"kill\",\"act\":\"one\"," USER FATAL);
	sent(SIGTERM, killer.pid, killer.pid, "\"via\":\"kill\",\"act\":\"one\"," USER FATAL);
	let(&killer);
	for (int i = 0; i < GROUP; i++)
		ended(child[i].pid);
	ended(killer.pid);
}

static void cgroup(void)
{
	struct child child[GROUP];
	char path[PATH_MAX];

	for (int i = 0; i < GROUP; i++) {
		child[i] = begin("member");
		if (!child[i].pid) {
			need(!write_to(getenv("CGROUP"), "cgroup.procs", "0"), "cgroup.procs");
			rest();
		}
		await(&child[i]);
		about(child[i].pid);
	}
	struct child killer = sender("cgroup.kill", SIGKILL, 0, 0);
	about(killer.pid);
	snprintf(path, sizeof(path), "%s/cgroup.kill", getenv("CGROUP"));
	for (int i = 0; i < GROUP; i++)
		sent(SIGKILL, killer.pid, child[i].pid, "\"via\":\"cgroup.kill\",\"act\":\"one\",\"call_path\":\"%s\"," FATAL,
		     path);
	send_and_exit(&killer);
	for (int i = 0; i < GROUP; i++)
		ended(child[i].pid);
}

// ---- time

static void timer(void)
{
	struct child child = begin("timer");

	if (!child.pid) {
		struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
		struct itimerspec soon = { .it_value.tv_nsec = 20000000 };
		timer_t id;

		ready_to_go();
		need(!timer_create(CLOCK_MONOTONIC, &event, &id) && !timer_settime(id, 0, &soon, NULL), "timer");
		for (;;)
			pause();
	}
	await(&child);
	about(child.pid);
	sent(SIGUSR2, 0, child.pid, "\"via\":\"timer\",\"code_name\":\"SI_TIMER\"," FATAL);
	let(&child);
	ended(child.pid);
}

static void alarm_case(void)
{
	struct child child = begin("alarm");

	if (!child.pid) {
		ready_to_go();
		alarm(1);
		for (;;)
			pause();
	}
	await(&child);
	about(child.pid);
	sent(SIGALRM, 0, child.pid, "\"via\":\"alarm\"," FATAL);
	let(&child);
	ended(child.pid);
}

static void itimer(int which, int sig, int spin)
{
	struct child child = begin("itimer");

	if (!child.pid) {
		struct itimerval soon = { .it_value.tv_usec = 20000 };

		ready_to_go();
		need(!setitimer(which, &soon, NULL), "setitimer");
		for (;;)
			if (!spin)
				pause();
	}
	await(&child);
	about(child.pid);
	sent(sig, 0, child.pid, "\"via\":\"alarm\"," FATAL);
	let(&child);
	ended(child.pid);
}

static void itimers(void)
{
	itimer(ITIMER_REAL, SIGALRM, 0);
	itimer(ITIMER_VIRTUAL, SIGVTALRM, 1);
	itimer(ITIMER_PROF, SIGPROF, 1);
}

// ---- the death of another

static void pdeathsig(void)
{
	struct child parent = begin("parent");
	int pids[2], how;
	pid_t child;

	if (!parent.pid) {
		need(!pipe(pids), "pipe");
		child = fork();
		if (!child) {
			prctl(PR_SET_NAME, "orphan");
			prctl(PR_SET_PDEATHSIG, SIGTERM);
			need(write(pids[1], "", 1) == 1, "write");
			for (;;)
				pause();
		}
		char byte;
		need(read(pids[0], &byte, 1) == 1, "read");
		ready_to_go();
		_exit(3);
	}
	await(&parent);
	child = child_inside(parent.pid, 0);
	about(parent.pid);
	about(child);
	sent(SIGTERM, parent.pid, child, "\"via\":\"pdeathsig\",\"adopted\":true," FATAL);
	let(&parent);
	need(waitpid(parent.pid, &how, 0) == parent.pid, "wait");
	ended(child);
}

// A clone that says its end by another signal than SIGCHLD.
static void clone_signal(void)
{
	struct child parent = begin("parent");
	pid_t child;

	if (!parent.pid) {
		child = syscall(SYS_clone, SIGUSR1, 0, 0, 0, 0);
		if (!child) {
			prctl(PR_SET_NAME, "clone");
			ready_to_go();
			_exit(0);
		}
		for (;;)
			pause();
	}
	await(&parent);
	child = child_inside(parent.pid, 0);
	about(parent.pid);
	about(child);
	sent(SIGUSR1, child, parent.pid, "\"via\":\"child\",\"code\":1," FATAL);
	let(&parent);
	ended(parent.pid);
	need(waitpid(child, NULL, __WALL) == child, "wait");
}

static void exitkill(void)
{
	struct child victim = target(), tracer = begin("tracer");
	int how;

	if (!tracer.pid) {
		need(!ptrace(PTRACE_SEIZE, victim.pid, 0, PTRACE_O_EXITKILL), "ptrace");
		ready_to_go();
		_exit(0);
	}
	await(&tracer);
	about(victim.pid);
	about(tracer.pid);
	sent(SIGKILL, tracer.pid, victim.pid, "\"via\":\"ptrace\"," FATAL);
	let(&tracer);
	need(waitpid(tracer.pid, &how, 0) == tracer.pid && !how, "tracer");
	ended(victim.pid);
}

static void ptrace_kill(void)
{
	struct child victim = target(), tracer = begin("tracer");
	int how;

	if (!tracer.pid) {
		need(!ptrace(PTRACE_SEIZE, victim.pid, 0, 0), "ptrace");
		ready_to_go();
		need(!ptrace(PTRACE_INTERRUPT, victim.pid, 0, 0), "interrupt");
		need(waitpid(victim.pid, &how, __WALL) == victim.pid && WIFSTOPPED(how), "stop");
		need(!ptrace(PTRACE_KILL, victim.pid, 0, 0), "kill");
		waitpid(victim.pid, &how, __WALL);
		_exit(0);
	}
	await(&tracer);
	about(victim.pid);
	about(tracer.pid);
	sent(SIGKILL, tracer.pid, victim.pid, "\"via\":\"ptrace\"," FATAL);
	let(&tracer);
	need(waitpid(tracer.pid, &how, 0) == tracer.pid && !how, "tracer");
	ended(victim.pid);
}

// ---- memory

static void join_memory(void)
{
	need(!write_to(getenv("MEMORY"), "cgroup.procs", "0"), "memory cgroup");
}

static void take(size_t mebibytes)
{
	size_t len = mebibytes << 20;
	char *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(memory != MAP_FAILED, "mmap");
	for (size_t i = 0; i < len; i += 4096)
		memory[i] = 1;
}

static void oom(void)
{
	struct child child = begin("glutton");

	if (!child.pid) {
		join_memory();
		ready_to_go();
		take(200);
		_exit(99);
	}
	await(&child);
	about(child.pid);
	sent(SIGKILL, child.pid, child.pid, "\"via\":\"oom\",\"oom.victim_pid\":%d,\"oom.anon\":\"16M..64M\"," FATAL, child.pid);
	let(&child);
	ended(child.pid);
}

// Another process runs out of memory than the one that has it.
static void oom_other(void)
{
	struct child hog = begin("hog"), little;

	if (!hog.pid) {
		join_memory();
		take(24);
		rest();
	}
	await(&hog);
	little = begin("little");
	if (!little.pid) {
		join_memory();
		ready_to_go();
		take(16);
		_exit(0);
	}
	await(&little);
	about(hog.pid);
	about(little.pid);
	sent(SIGKILL, little.pid, hog.pid, "\"via\":\"oom\",\"oom.victim_pid\":%d,\"oom.anon\":\"23M..64M\"," FATAL, hog.pid);
	let(&little);
	ended(hog.pid);
	need(waitpid(little.pid, NULL, 0) == little.pid, "little"); // which may have been the next
}

static int sharer(void *nothing)
{
	(void)nothing;
	for (;;)
		pause();
	return 0;
}

// Two processes with one memory: one is chosen, the other goes with it.
static void oom_shared(void)
{
	struct child hog = begin("hog"), little;
	pid_t other;

	if (!hog.pid) {
		static char stack[65536];

		join_memory();
		take(24);
		need(clone(sharer, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL) > 0, "clone");
		rest();
	}
	await(&hog);
	other = child_inside(hog.pid, 0);
	little = begin("little");
	if (!little.pid) {
		join_memory();
		ready_to_go();
		take(16);
		_exit(0);
	}
	await(&little);
	about(hog.pid);
	about(other);
	about(little.pid);
	sent(SIGKILL, little.pid, hog.pid, "\"via\":[\"oom\",\"oom-shared-mm\"]," FATAL);
	sent(SIGKILL, little.pid, other, "\"via\":[\"oom\",\"oom-shared-mm\"]," FATAL);
	let(&little);
	ended(hog.pid);
	ended(other);
	need(waitpid(little.pid, NULL, 0) == little.pid, "little"); // which may have been the next
}

// ---- faults

static char *bad; // where the fault is to be
extern char at_null[], at_readonly[], at_noncanonical[], at_bus[], at_div[], at_ud2[], at_int3[];

static void fault_null(void)
{
	__asm__ volatile(".globl at_null\nat_null: movb $1, (%0)" : : "r"((char *)0x10) : "memory");
}

static void fault_readonly(void)
{
	__asm__ volatile(".globl at_readonly\nat_readonly: movb $1, (%0)" : : "r"(bad) : "memory");
}

static void fault_noncanonical(void)
{
	__asm__ volatile(".globl at_noncanonical\nat_noncanonical: movb $1, (%0)" : : "r"(1UL << 62) : "memory");
}

static void fault_bus(void)
{
	__asm__ volatile(".globl at_bus\nat_bus: movb (%0), %%al" : : "r"(bad) : "memory", "rax");
}

static void fault_div(void)
{
	__asm__ volatile("xor %%edx, %%edx\nmov $1, %%eax\nxor %%ecx, %%ecx\n.globl at_div\nat_div: div %%ecx"
			 :
			 :
			 : "rax", "rcx", "rdx");
}

static void fault_ud2(void)
{
	__asm__ volatile(".globl at_ud2\nat_ud2: ud2");
}

static void fault_int3(void)
{
	__asm__ volatile("int3\n.globl at_int3\nat_int3: nop");
}

static void fault(int sig, void (*run)(void), const char *code, void *address, void *ip)
{
	struct child child = begin("faulty");
	char text[32];

	if (!child.pid) {
		ready_to_go();
		run();
		_exit(99);
	}
	await(&child);
	about(child.pid);
	// with SI_KERNEL nobody told an address
	snprintf(text, sizeof(text), strcmp(code, "SI_KERNEL") ? "\"0x%lx\"" : "null", (long)address);
	sent(sig, child.pid, child.pid, "\"via\":\"fault\",\"code_name\":\"%s\",\"address\":%s,\"ip\":\"0x%lx\"," FATAL,
	     code, text, (long)ip);
	let(&child);
	ended(child.pid);
}

static void segv(void)
{
	fault(SIGSEGV, fault_null, "SEGV_MAPERR", (void *)0x10, at_null);
	bad = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fault(SIGSEGV, fault_readonly, "SEGV_ACCERR", bad, at_readonly);
	fault(SIGSEGV, fault_noncanonical, "SI_KERNEL", NULL, at_noncanonical);
}

static void bus(void)
{
	int fd = open("truncated", O_RDWR | O_CREAT | O_TRUNC, 0600);

	need(fd >= 0 && !ftruncate(fd, 8192), "truncate");
	bad = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
	need(bad != MAP_FAILED && !ftruncate(fd, 0), "mmap");
	bad += 4096 + 5;
	fault(SIGBUS, fault_bus, "BUS_ADRERR", bad, at_bus);
	close(fd);
}

static void fpe(void)
{
	fault(SIGFPE, fault_div, "FPE_INTDIV", at_div, at_div);
}

static void ill(void)
{
	fault(SIGILL, fault_ud2, "ILL_ILLOPN", at_ud2, at_ud2);
}

static void trap(void)
{
	fault(SIGTRAP, fault_int3, "SI_KERNEL", NULL, at_int3);
}

static void ignored_then_null(void)
{
	signal(SIGSEGV, SIG_IGN);
	block(SIG_BLOCK, SIGSEGV);
	fault_null();
}

// A fault is not to be ignored.
static void segv_ignored(void)
{
	fault(SIGSEGV, ignored_then_null, "SEGV_MAPERR", (void *)0x10, at_null);
}

static void catch(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	_exit(info->si_addr == (void *)0x10 ? 7 : 99);
}

// A fault with a handler, which exits.
static void segv_handled(void)
{
	struct child child = begin("faulty");

	if (!child.pid) {
		struct sigaction action = { .sa_sigaction = catch, .sa_flags = SA_SIGINFO };

		sigaction(SIGSEGV, &action, NULL);
		ready_to_go();
		fault_null();
	}
	await(&child);
	about(child.pid);
	sent(SIGSEGV, child.pid, child.pid,
	     "\"via\":\"fault\",\"address\":\"0x10\",\"ip\":\"0x%lx\",\"result\":\"delivered\",\"disposition\":\"handler\","
	     "\"outcome.handler\":\"0x%lx\"," ALIVE,
	     (long)at_null, (long)catch);
	let(&child);
	ended(child.pid);
}

static void core(void)
{
	struct child child = begin("dumper");
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	if (!child.pid) {
		need(!setrlimit(RLIMIT_CORE, &all), "RLIMIT_CORE");
		ready_to_go();
		fault_null();
	}
	await(&child);
	about(child.pid);
	sent(SIGSEGV, child.pid, child.pid, "\"via\":\"fault\"," FATAL);
	let(&child);
	ended(child.pid);
}

// ---- pipes and limits

static void sigpipe(void)
{
	struct child child = begin("writer");

	if (!child.pid) {
		int fds[2];

		need(!pipe(fds) && !close(fds[0]), "pipe");
		ready_to_go();
		need(write(fds[1], "x", 1) == 1, "write");
		_exit(99);
	}
	await(&child);
	about(child.pid);
	sent(SIGPIPE, child.pid, child.pid, "\"via\":\"sigpipe\"," FATAL);
	let(&child);
	ended(child.pid);
}

static void sigio(void)
{
	int fds[2];
	struct child victim, writer;

	need(!pipe(fds), "pipe");
	victim = begin("owner");
	if (!victim.pid) {
		need(!fcntl(fds[0], F_SETOWN, getpid()) && !fcntl(fds[0], F_SETFL, O_ASYNC), "fcntl");
		rest();
	}
	await(&victim);
	writer = begin("writer");
	if (!writer.pid) {
		ready_to_go();
		need(write(fds[1], "x", 1) == 1, "write");
		_exit(0);
	}
	await(&writer);
	about(victim.pid);
	about(writer.pid);
	sent(SIGIO, writer.pid, victim.pid, "\"via\":\"sigio\"," FATAL);
	let(&writer);
	ended(victim.pid);
	need(waitpid(writer.pid, NULL, 0) == writer.pid, "wait");
	close(fds[0]);
	close(fds[1]);
}

static void limited(int which, rlim_t soft, rlim_t hard)
{
	struct rlimit limit = { soft, hard };

	need(!setrlimit(which, &limit), "setrlimit");
}

static void xfsz(void)
{
	struct child child = begin("writer");

	if (!child.pid) {
		int fd = open("limited", O_RDWR | O_CREAT | O_TRUNC, 0600);

		limited(RLIMIT_FSIZE, 10, 10);
		ready_to_go();
		need(write(fd, "0123456789", 10) == 10, "write");
		need(write(fd, "0123456789", 10) == 10, "write");
		_exit(99);
	}
	await(&child);
	about(child.pid);
	sent(SIGXFSZ, child.pid, child.pid, "\"via\":\"rlimit-fsize\"," FATAL);
	let(&child);
	ended(child.pid);
}

static struct child spinner(rlim_t soft, rlim_t hard, int ignore)
{
	struct child child = begin("spinner");

	if (!child.pid) {
		if (ignore)
			signal(SIGXCPU, SIG_IGN);
		limited(RLIMIT_CPU, soft, hard);
		ready_to_go();
		for (;;)
			;
	}
	await(&child);
	about(child.pid);
	return child;
}

// A second of CPU time each, at the same time.
static void xcpu(void)
{
	struct child soft = spinner(1, 5, 0), hard = spinner(1, 1, 0), both = spinner(1, 2, 1);

	sent(SIGXCPU, soft.pid, soft.pid, "\"via\":\"rlimit-cpu\"," FATAL);
	sent(SIGKILL, hard.pid, hard.pid, "\"via\":\"rlimit-cpu\"," FATAL);
	sent(SIGXCPU, both.pid, both.pid, "\"via\":\"rlimit-cpu\",\"result\":\"ignored\",\"disposition\":\"ignore\"," ALIVE);
	sent(SIGKILL, both.pid, both.pid, "\"via\":\"rlimit-cpu\"," FATAL);
	let(&soft);
	let(&hard);
	let(&both);
	ended(soft.pid);
	ended(hard.pid);
	ended(both.pid);
}

// Of a task with a real-time policy.
static void rttime(void)
{
	struct child child = begin("spinner");

	if (!child.pid) {
		struct sched_param param = { .sched_priority = 1 };

		limited(RLIMIT_RTTIME, 20000, RLIM_INFINITY);
		need(!sched_setscheduler(0, SCHED_FIFO, &param), "SCHED_FIFO");
		ready_to_go();
		for (;;)
			;
	}
	await(&child);
	about(child.pid);
	sent(SIGXCPU, child.pid, child.pid, "\"via\":\"rlimit-cpu\"," FATAL);
	let(&child);
	ended(child.pid);
}

// ---- seccomp

extern char after_call[];

static void filter(unsigned int action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

static __attribute__((noinline)) void forbidden(void)
{
	long nr = SYS_getppid;

	__asm__ volatile("syscall\n.globl after_call\nafter_call: nop" : "+a"(nr) : : "rcx", "r11", "memory");
}

static void filtered(unsigned int action)
{
	struct child child = begin("filtered");

	if (!child.pid) {
		filter(action);
		ready_to_go();
		forbidden();
		_exit(99);
	}
	await(&child);
	about(child.pid);
	sent(SIGSYS, child.pid, child.pid,
	     "\"via\":\"seccomp\",\"code_name\":\"SYS_SECCOMP\",\"address\":\"0x%lx\",\"ip\":\"0x%lx\"," FATAL, (long)after_call,
	     (long)after_call);
	let(&child);
	ended(child.pid);
}

static void seccomp(void)
{
	filtered(SECCOMP_RET_KILL_PROCESS);
	filtered(SECCOMP_RET_TRAP);
	filtered(SECCOMP_RET_KILL_THREAD); // the last thread, so the process
}

// No signal is sent: the task just exits as if by one.
static void seccomp_strict(void)
{
	struct child child = begin("strict");

	if (!child.pid) {
		ready_to_go();
		need(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), "seccomp");
		forbidden();
		_exit(99);
	}
	await(&child);
	about(child.pid);
	sent(SIGKILL, 0, child.pid, "\"via\":\"seccomp\",\"result\":null");
	let(&child);
	ended(child.pid);
}

static void *forbidden_thread(void *nothing)
{
	forbidden();
	return nothing;
}

static void seccomp_thread(void)
{
	struct child child = begin("filtered");

	if (!child.pid) {
		pthread_t thread;

		filter(SECCOMP_RET_KILL_THREAD);
		ready_to_go();
		need(!pthread_create(&thread, NULL, forbidden_thread, NULL) && !pthread_join(thread, NULL), "thread");
		_exit(5);
	}
	await(&child);
	about(child.pid);
	silent(SIGSYS, child.pid);
	let(&child);
	ended(child.pid);
}

// ---- what does not die, or not at once

// Stopped, then killed while stopped.
static void stop(void)
{
	int signals[] = { SIGSTOP, SIGTSTP };

	for (int i = 0; i < 2; i++) {
		struct child victim = begin("target");
		int how;

		if (!victim.pid) {
			setpgid(0, 0); // with a parent in another group: not an orphan, so it may be stopped from a terminal
			rest();
		}
		await(&victim);
		struct child stopper = sender("kill", signals[i], victim.pid, 0);
		about(victim.pid);
		about(stopper.pid);
		sent(signals[i], stopper.pid, victim.pid,
		     "\"via\":\"kill\",\"result\":\"delivered\",\"disposition\":\"default\",\"outcome.stopped\":true," USER ALIVE);
		send_and_exit(&stopper);
		need(waitpid(victim.pid, &how, WUNTRACED) == victim.pid && WIFSTOPPED(how), "stopped");
		struct child killer = sender("kill", SIGKILL, victim.pid, 0);
		about(killer.pid);
		sent(SIGKILL, killer.pid, victim.pid, "\"via\":\"kill\",\"outcome.stopped\":false," USER FATAL);
		send_and_exit(&killer);
		ended(victim.pid);
	}
}

// SIGTERM is ignored, so SIGKILL follows.
static void ignored(void)
{
	struct child victim = begin("stubborn");

	if (!victim.pid) {
		signal(SIGTERM, SIG_IGN);
		rest();
	}
	await(&victim);
	about(victim.pid);
	struct child polite = sender("kill", SIGTERM, victim.pid, 0), killer;
	about(polite.pid);
	sent(SIGTERM, polite.pid, victim.pid, "\"via\":\"kill\",\"result\":\"ignored\",\"disposition\":\"ignore\"," ALIVE);
	send_and_exit(&polite);
	killer = sender("kill", SIGKILL, victim.pid, 0);
	about(killer.pid);
	sent(SIGKILL, killer.pid, victim.pid, "\"via\":\"kill\"," FATAL);
	send_and_exit(&killer);
	ended(victim.pid);
}

// Two SIGTERM while it is blocked, then it is unblocked: the first kills.
static void blocked(void)
{
	struct child victim = begin("blocker");

	if (!victim.pid) {
		block(SIG_BLOCK, SIGTERM);
		ready_to_go();
		block(SIG_UNBLOCK, SIGTERM);
		_exit(99);
	}
	await(&victim);
	about(victim.pid);
	for (int i = 0; i < 2; i++) {
		struct child killer = sender("kill", SIGTERM, victim.pid, 0);

		about(killer.pid);
		sent(SIGTERM, killer.pid, victim.pid,
		     "\"via\":\"kill\",\"blocked\":true,\"result\":\"%s\",\"disposition\":\"default\",\"outcome.cause\":%s",
		     i ? "already-pending" : "delivered", i ? "false" : "true");
		send_and_exit(&killer);
	}
	let(&victim);
	ended(victim.pid);
}

// Blocked and pending for ever: it exits by itself.
static void pending(void)
{
	struct child victim = begin("blocker");

	if (!victim.pid) {
		block(SIG_BLOCK, SIGTERM);
		ready_to_go();
		_exit(4);
	}
	await(&victim);
	about(victim.pid);
	struct child killer = sender("kill", SIGTERM, victim.pid, 0);
	about(killer.pid);
	sent(SIGTERM, killer.pid, victim.pid,
	     "\"via\":\"kill\",\"blocked\":true,\"result\":\"delivered\",\"outcome.handler\":null," ALIVE);
	send_and_exit(&killer);
	let(&victim);
	ended(victim.pid);
}

static void leave(int sig)
{
	_exit(sig == SIGTERM ? 7 : 99);
}

static void handled(void)
{
	struct child victim = begin("handler");

	if (!victim.pid) {
		signal(SIGTERM, leave);
		rest();
	}
	await(&victim);
	about(victim.pid);
	struct child killer = sender("kill", SIGTERM, victim.pid, 0);
	about(killer.pid);
	sent(SIGTERM, killer.pid, victim.pid,
	     "\"via\":\"kill\",\"result\":\"delivered\",\"disposition\":\"handler\",\"outcome.handler\":\"0x%lx\"," ALIVE,
	     (long)leave);
	send_and_exit(&killer);
	ended(victim.pid);
}

// ---- threads

static pid_t thread_id;

static void *resting_thread(void *nothing)
{
	prctl(PR_SET_NAME, "second-thread");
	thread_id = syscall(SYS_gettid);
	rest();
	return nothing;
}

static void *faulty_thread(void *nothing)
{
	prctl(PR_SET_NAME, "faulty-thread");
	ready_to_go();
	fault_null();
	return nothing;
}

static struct child threaded(void *(*run)(void *))
{
	struct child child = begin("threaded");

	if (!child.pid) {
		pthread_t thread;

		need(!pthread_create(&thread, NULL, run, NULL), "thread");
		for (;;)
			pause();
	}
	await(&child);
	return child;
}

// The id of a process's second thread.
static pid_t second_thread(pid_t pid)
{
	char path[64];
	struct dirent *entry;
	pid_t tid = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *dir = opendir(path);
	while ((entry = readdir(dir)))
		if (atoi(entry->d_name) > 0 && atoi(entry->d_name) != pid)
			tid = atoi(entry->d_name);
	closedir(dir);
	return tid;
}

// One thread is sent it, or faults, and the process dies.
static void threads(void)
{
	const char *ways[] = { "tgkill", "tkill", "rt_tgsigqueueinfo" };

	for (int i = 0; i < 3; i++) {
		struct child victim = threaded(resting_thread);
		pid_t tid = second_thread(victim.pid);
		struct child killer = sender(ways[i], i ? SIGTERM : SIGKILL, victim.pid, tid);

		about(victim.pid);
		about_thread(victim.pid, tid);
		about(killer.pid);
		sent_to(i ? SIGTERM : SIGKILL, killer.pid, killer.pid, victim.pid, tid, "\"via\":\"%s\",%s" FATAL, ways[i],
			code_of(ways[i]));
		send_and_exit(&killer);
		ended(victim.pid);
	}
	struct child victim = threaded(resting_thread), killer = sender("kill", SIGTERM, victim.pid, 0);
	about(victim.pid);
	about(killer.pid);
	sent(SIGTERM, killer.pid, victim.pid, "\"via\":\"kill\"," FATAL);
	send_and_exit(&killer);
	ended(victim.pid);

	struct child faulty = threaded(faulty_thread);
	pid_t tid = second_thread(faulty.pid);
	about(faulty.pid);
	about_thread(faulty.pid, tid);
	sent_to(SIGSEGV, faulty.pid, tid, faulty.pid, tid, "\"via\":\"fault\",\"address\":\"0x10\"," FATAL);
	let(&faulty);
	ended(faulty.pid);
}

static pid_t sending_target;

static void *sending_thread(void *nothing)
{
	prctl(PR_SET_NAME, "sending-thread");
	ready_to_go();
	need(!kill(sending_target, SIGKILL), "kill");
	return nothing;
}

// A thread sends, not the leader.
static void thread_sends(void)
{
	struct child victim = target();

	sending_target = victim.pid;
	struct child killer = threaded(sending_thread);
	pid_t tid = second_thread(killer.pid);
	about(victim.pid);
	about(killer.pid);
	about_thread(killer.pid, tid);
	sent_to(SIGKILL, killer.pid, tid, victim.pid, victim.pid, "\"via\":\"kill\"," FATAL);
	let(&killer);
	ended(victim.pid);
	struct child last = sender("kill", SIGKILL, killer.pid, 0);
	send_and_exit(&last);
	need(waitpid(killer.pid, NULL, 0) == killer.pid, "wait");
}

// ---- programs change

// What a target is, once exec'd: "kills later HOW".
static int later_main(char **argv)
{
	say_fd = SAY;
	go_fd = GO;
	if (!strcmp(argv[2], "unblock")) {
		ready_to_go();
		block(SIG_UNBLOCK, SIGTERM);
		return 99;
	}
	rest();
	return 99;
}

static void *exec_thread(void *nothing)
{
	become("later", "rest", "by", "thread", NULL);
	return nothing;
}

static void exec_case(void)
{
	// it was another program before
	struct child victim = begin("before");
	if (!victim.pid) {
		ready_to_go();
		become("later", "rest", "an argument with spaces", "", "\"quoted\"", NULL);
	}
	await(&victim);
	let(&victim);
	await(&victim);
	struct child killer = sender("kill", SIGTERM, victim.pid, 0);
	about(victim.pid);
	about(killer.pid);
	sent(SIGTERM, killer.pid, victim.pid, "\"via\":\"kill\"," FATAL);
	send_and_exit(&killer);
	ended(victim.pid);

	// it becomes another program between the signal and its death
	victim = begin("before");
	if (!victim.pid) {
		block(SIG_BLOCK, SIGTERM);
		ready_to_go();
		become("later", "unblock", NULL);
	}
	await(&victim);
	killer = sender("kill", SIGTERM, victim.pid, 0);
	about(victim.pid);
	about(killer.pid);
	sent(SIGTERM, killer.pid, victim.pid, "\"via\":\"kill\",\"blocked\":true,\"outcome.cause\":true");
	send_and_exit(&killer);
	let(&victim);
	await(&victim);
	let(&victim);
	ended(victim.pid);

	// another thread than the leader calls exec, and becomes the leader
	victim = begin("before");
	if (!victim.pid) {
		pthread_t thread;

		need(!pthread_create(&thread, NULL, exec_thread, NULL), "thread");
		for (;;)
			pause();
	}
	await(&victim);
	killer = sender("kill", SIGTERM, victim.pid, 0);
	about(victim.pid);
	about(killer.pid);
	sent(SIGTERM, killer.pid, victim.pid, "\"via\":\"kill\"," FATAL);
	send_and_exit(&killer);
	ended(victim.pid);
}

// ---- pid namespaces

// A process in a new pid namespace: its init is the child's child.
static struct child with_namespace(void (*init)(void))
{
	struct child child = begin("unsharer");

	if (!child.pid) {
		int how;

		need(!unshare(CLONE_NEWPID), "unshare");
		pid_t pid = fork();
		if (!pid) {
			prctl(PR_SET_NAME, "init-inside");
			init();
			_exit(98);
		}
		need(waitpid(pid, &how, 0) == pid, "wait for init");
		_exit(WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how));
	}
	await(&child);
	return child;
}

static int statuses[2]; // init says what it waited for: pid inside, status

static void reap(int n)
{
	while (n--) {
		int said[2];

		said[0] = wait(&said[1]);
		need(said[0] > 0 && write(statuses[1], said, sizeof(said)) == sizeof(said), "reap");
	}
}

static void reaped(pid_t init, int n, const pid_t *pids)
{
	(void)init;
	while (n--) {
		int said[2];

		need(read(statuses[0], said, sizeof(said)) == sizeof(said), "reaped");
		end_fact(pids[said[0]], said[1]);
	}
}

static void fork_resting(const char *comm)
{
	pid_t pid = fork();

	need(pid >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_NAME, comm);
		rest();
	}
}

static void init_of_target(void)
{
	fork_resting("inside");
	reap(1);
	_exit(0);
}

// From outside into a namespace.
static void into_namespace(void)
{
	pid_t pids[8];

	need(!pipe(statuses), "pipe");
	struct child child = with_namespace(init_of_target);
	pid_t init = child_inside(child.pid, 1);
	pids[2] = child_inside(init, 2);
	struct child killer = sender("kill", SIGTERM, pids[2], 0);
	about(pids[2]);
	about(killer.pid);
	sent(SIGTERM, killer.pid, pids[2], "\"via\":\"kill\",\"target.ns_pid\":2," USER FATAL);
	send_and_exit(&killer);
	reaped(init, 1, pids);
	need(waitpid(child.pid, NULL, 0) == child.pid, "wait");
}

static void init_of_both(void)
{
	fork_resting("inside");
	pid_t pid = fork();
	if (!pid)
		become("send", "kill", number(SIGKILL), "2", "0", NULL);
	reap(2);
	_exit(0);
}

// Both are inside, and pids are those inside.
static void inside_namespace(void)
{
	pid_t pids[8];

	need(!pipe(statuses), "pipe");
	struct child child = with_namespace(init_of_both);
	await(&child); // both say that they are ready
	pid_t init = child_inside(child.pid, 1);
	pids[2] = child_inside(init, 2);
	pids[3] = child_inside(init, 3);
	about(pids[2]);
	about(pids[3]);
	sent(SIGKILL, pids[3], pids[2], "\"via\":\"kill\",\"target.ns_pid\":2,\"sender.ns_pid\":3," USER FATAL);
	let(&child);
	reaped(init, 2, pids);
	need(waitpid(child.pid, NULL, 0) == child.pid, "wait");
}

static void init_of_all(void)
{
	for (int i = 0; i < 3; i++)
		fork_resting("inside");
	hold();
	need(!kill(-1, SIGTERM), "kill");
	reap(3);
	_exit(0);
}

// kill(-1): everyone but init.
static void everyone(void)
{
	pid_t pids[8];

	need(!pipe(statuses), "pipe");
	struct child child = with_namespace(init_of_all);
	await(&child);
	await(&child);
	pid_t init = child_inside(child.pid, 1);
	about(init);
	for (int i = 2; i < 5; i++) {
		pids[i] = child_inside(init, i);
		about(pids[i]);
		sent(SIGTERM, init, pids[i], "\"via\":\"kill\",\"act\":\"one\",\"sender.ns_pid\":1,\"target.ns_pid\":%d," USER FATAL,
		     i);
	}
	let(&child);
	reaped(init, 3, pids);
	need(waitpid(child.pid, NULL, 0) == child.pid, "wait");
}

static void init_that_exits(void)
{
	for (int i = 0; i < 3; i++)
		fork_resting("inside");
	hold();
	_exit(6);
}

// The end of a namespace's init is everyone's.
static void end_of_namespace(void)
{
	pid_t pids[8];
	int how;

	struct child child = with_namespace(init_that_exits);
	await(&child);
	await(&child);
	pid_t init = child_inside(child.pid, 1);
	about(init);
	for (int i = 2; i < 5; i++) {
		pids[i] = child_inside(init, i);
		about(pids[i]);
		sent(SIGKILL, init, pids[i],
		     "\"via\":\"pid-namespace\",\"act\":\"one\",\"sender.ns_pid\":1,\"target.ns_pid\":%d," FATAL, i);
	}
	let(&child);
	need(waitpid(child.pid, &how, 0) == child.pid && how == 6 << 8, "wait");
	for (int i = 2; i < 5; i++)
		end_fact(pids[i], SIGKILL); // the kernel reaps them for the dead init
}

// ---- terminals

static int master;

// A session with a terminal; the leader and two of its children are in the foreground.
static struct child session(void)
{
	struct child child;

	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	need(master >= 0 && !grantpt(master) && !unlockpt(master), "pty");
	child = begin("leader");
	if (!child.pid) {
		char *name = ptsname(master);

		need(setsid() > 0, "setsid");
		int tty = open(name, O_RDWR);
		need(tty >= 0 && !ioctl(tty, TIOCSCTTY, 0), "controlling terminal");
		close(master);
		for (int i = 0; i < 2; i++)
			fork_resting("member");
		rest();
	}
	for (int i = 0; i < 3; i++)
		await(&child);
	return child;
}

// Pids of all children, at most two.
static void children_of(pid_t parent, pid_t *pids)
{
	char text[256];
	char name[64];

	snprintf(name, sizeof(name), "task/%d/children", parent);
	need(proc(parent, name, text, sizeof(text)), "children");
	need(sscanf(text, "%d %d", &pids[0], &pids[1]) == 2, "children");
}

// Two processes in the foreground, not the leader: its death would tell them SIGHUP, which may come first.
static void key(const char *byte, int sig)
{
	struct child shell;
	pid_t pids[2];

	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	need(master >= 0 && !grantpt(master) && !unlockpt(master), "pty");
	shell = begin("shell");
	if (!shell.pid) {
		pid_t first = 0;

		need(setsid() > 0, "setsid");
		int tty = open(ptsname(master), O_RDWR);
		need(tty >= 0 && !ioctl(tty, TIOCSCTTY, 0), "controlling terminal");
		close(master);
		for (int i = 0; i < 2; i++) {
			pid_t pid = fork();

			need(pid >= 0, "fork");
			if (!pid) {
				prctl(PR_SET_NAME, "job");
				hold();
				rest();
			}
			first = first ? first : pid;
			need(!setpgid(pid, first), "setpgid");
		}
		need(!tcsetpgrp(tty, first), "tcsetpgrp");
		rest();
	}
	await(&shell);
	let(&shell);
	let(&shell);
	await(&shell);
	await(&shell);
	children_of(shell.pid, pids);
	for (int i = 0; i < 2; i++) {
		about(pids[i]);
		sent(sig, 0, pids[i], "\"via\":\"terminal\",\"act\":\"one\"," FATAL);
	}
	need(write(master, byte, 1) == 1, "key");
	until_dead(pids[0]);
	until_dead(pids[1]);
	need(!kill(shell.pid, SIGKILL) && waitpid(shell.pid, NULL, 0) == shell.pid, "shell");
	ended(pids[0]);
	ended(pids[1]);
	close(master);
}

static void keys(void)
{
	key("\003", SIGINT);
	key("\034", SIGQUIT);
}

// The terminal goes away: its leader hears of it, and when the leader dies the others do.
static void hangup(void)
{
	struct child leader = session();
	pid_t pids[2];

	children_of(leader.pid, pids);
	about(getpid());
	about(leader.pid);
	sent(SIGHUP, getpid(), leader.pid, "\"via\":\"terminal\"," FATAL);
	for (int i = 0; i < 2; i++) {
		about(pids[i]);
		sent(SIGHUP, leader.pid, pids[i], "\"via\":\"terminal\",\"act\":\"one\",\"adopted\":true," FATAL);
	}
	// its group is told, and it is one of it, although dead
	sent(SIGHUP, leader.pid, leader.pid, "\"via\":\"terminal\",\"act\":\"one\",\"result\":\"ignored\"," ALIVE);
	close(master);
	ended(leader.pid);
	ended(pids[0]);
	ended(pids[1]);
}

// ^Z stops a job of a shell.
static void job(void)
{
	struct child shell;
	int how;

	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	need(master >= 0 && !grantpt(master) && !unlockpt(master), "pty");
	shell = begin("shell");
	if (!shell.pid) {
		char *name = ptsname(master);

		need(setsid() > 0, "setsid");
		int tty = open(name, O_RDWR);
		need(tty >= 0 && !ioctl(tty, TIOCSCTTY, 0), "controlling terminal");
		close(master);
		signal(SIGTTOU, SIG_IGN);
		pid_t pid = fork();
		if (!pid) {
			prctl(PR_SET_NAME, "job");
			setpgid(0, 0);
			need(!tcsetpgrp(tty, getpid()), "tcsetpgrp");
			rest();
		}
		need(waitpid(pid, &how, WUNTRACED) == pid && WIFSTOPPED(how), "stopped");
		ready_to_go();
		kill(pid, SIGKILL);
		need(waitpid(pid, &how, 0) == pid && WIFSIGNALED(how), "killed");
		_exit(0);
	}
	await(&shell);
	pid_t pid = child_inside(shell.pid, 0);
	about(shell.pid);
	about(pid);
	sent(SIGTSTP, 0, pid, "\"via\":\"terminal\",\"outcome.stopped\":true," ALIVE);
	sent(SIGKILL, shell.pid, pid, "\"via\":\"kill\"," USER FATAL);
	need(write(master, "\032", 1) == 1, "key");
	await(&shell);
	let(&shell);
	need(waitpid(shell.pid, &how, 0) == shell.pid && !how, "shell");
	end_fact(pid, SIGKILL);
	close(master);
}

// ---- many, and senders that are gone

#define BATCH 10

static void many(void)
{
	static const char *ways[] = { "kill", "tkill", "tgkill", "pidfd_send_signal", "rt_sigqueueinfo" };
	static const int signals[] = { SIGTERM, SIGKILL, SIGINT, SIGQUIT };
	struct child victim[BATCH], killer[BATCH];
	int n = atoi(getenv("N"));

	for (int done = 0; done < n; done += BATCH) {
		for (int i = 0; i < BATCH; i++) {
			const char *how = ways[(done + i) % 5];
			int sig = signals[(done + i) / 5 % 4];

			uid_t uid = i % 3 ? 0 : NOBODY;

			victim[i] = target_as(uid);
			killer[i] = sender_as(uid, how, sig, victim[i].pid, victim[i].pid);
			about(victim[i].pid);
			about(killer[i].pid);
			sent(sig, killer[i].pid, victim[i].pid, "\"via\":\"%s\",%s" FATAL, how, code_of(how));
		}
		// all at the same time
		for (int i = 0; i < BATCH; i++)
			let(&killer[i]);
		for (int i = 0; i < BATCH; i++) {
			int how;

			need(waitpid(killer[i].pid, &how, 0) == killer[i].pid && !how, "a sender that sends");
			ended(victim[i].pid);
			forget(&killer[i]);
			forget(&victim[i]);
		}
	}
}

// ----

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "kill", kill_case },
	{ "other-users", other_users },
	{ "tkill", tkill_case },
	{ "tgkill", tgkill_case },
	{ "pidfd", pidfd },
	{ "sigqueue", sigqueue_case },
	{ "tgsigqueue", tgsigqueue },
	{ "i386", i386 },
	{ "itself", itself },
	{ "abort", abort_case },
	{ "group", group },
	{ "own-group", own_group },
	{ "cgroup", cgroup },
	{ "timer", timer },
	{ "alarm", alarm_case },
	{ "itimers", itimers },
	{ "pdeathsig", pdeathsig },
	{ "clone-signal", clone_signal },
	{ "exitkill", exitkill },
	{ "ptrace-kill", ptrace_kill },
	{ "oom", oom },
	{ "oom-other", oom_other },
	{ "oom-shared", oom_shared },
	{ "segv", segv },
	{ "bus", bus },
	{ "fpe", fpe },
	{ "ill", ill },
	{ "trap", trap },
	{ "segv-ignored", segv_ignored },
	{ "segv-handled", segv_handled },
	{ "core", core },
	{ "sigpipe", sigpipe },
	{ "sigio", sigio },
	{ "xfsz", xfsz },
	{ "xcpu", xcpu },
	{ "rttime", rttime },
	{ "seccomp", seccomp },
	{ "seccomp-strict", seccomp_strict },
	{ "seccomp-thread", seccomp_thread },
	{ "stop", stop },
	{ "ignored", ignored },
	{ "blocked", blocked },
	{ "pending", pending },
	{ "handled", handled },
	{ "threads", threads },
	{ "thread-sends", thread_sends },
	{ "exec", exec_case },
	{ "into-namespace", into_namespace },
	{ "inside-namespace", inside_namespace },
	{ "everyone", everyone },
	{ "end-of-namespace", end_of_namespace },
	{ "keys", keys },
	{ "hangup", hangup },
	{ "job", job },
	{ "many", many },
};

static void add_time(const char *name, const struct timespec *at)
{
	char text[64];
	struct tm tm;

	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime_r(&at->tv_sec, &tm));
	add(",\"%s\":\"%s.%09ldZ\"", name, text, at->tv_nsec);
}

int main(int argc, char **argv)
{
	struct rlimit none = { 0, RLIM_INFINITY };
	struct timespec from, to;
	char path[PATH_MAX];

	if (argc > 2 && !strcmp(argv[1], "execveat")) {
		syscall(SYS_execveat, open(argv[2], O_RDONLY | O_CLOEXEC), "", argv + 2, environ, AT_EMPTY_PATH);
		return 3;
	}
	need(argc > 1 && realpath("/proc/self/exe", path), "usage: kills CASE...");
	self_path = path;
	// a job that a script started in the background ignores them, and so would all that it starts
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	if (!strcmp(argv[1], "send") && argc == 6)
		return send_main(argv);
	if (!strcmp(argv[1], "later") && argc > 2)
		return later_main(argv);
	setpriority(PRIO_PROCESS, 0, -10); // a flood is beside it, and every step waits for another process
	// orphans become its children, and no core is dumped unless a case wants one
	need(!prctl(PR_SET_CHILD_SUBREAPER, 1) && !setrlimit(RLIMIT_CORE, &none), "prctl");
	for (int i = 1; i < argc; i++) {
		unsigned int which = 0;

		while (which < sizeof(cases) / sizeof(*cases) && strcmp(cases[which].name, argv[i]))
			which++;
		the_case = argv[i];
		need(which < sizeof(cases) / sizeof(*cases), "no such case");
		clock_gettime(CLOCK_REALTIME, &from);
		cases[which].run();
		clock_gettime(CLOCK_REALTIME, &to);
		begin_fact("time");
		add_time("from", &from);
		add_time("to", &to);
		add(",\"ns\":%ld}", (to.tv_sec - from.tv_sec) * 1000000000L + to.tv_nsec - from.tv_nsec);
		print();
	}
	return 0;
}
