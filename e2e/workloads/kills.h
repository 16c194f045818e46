// What the cases of kills.c share: children that wait to be let on, and facts about them, one JSON object a line:
//
//   {"is":"process","case":C,"pid":P,"tid":T,...}    who P is, as /proc says
//   {"is":"sent","case":C,"signal":S,"sender":[P,T] or null,"target":[P,T],"expect":{...}}
//                                                    the report must have it; keys of expect are paths into the record
//   {"is":"time","case":C,"from":T,"to":T,"ns":N}    when all of that happened, CLOCK_REALTIME
//   {"is":"end","case":C,"pid":P,"status":W}         what wait() said of P
//   {"is":"silent","case":C,"pid":P,"signal":S}      no such signal was sent to P
//
// Ids are those of the driver's pid namespace.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// where an exec'd child finds its two pipes
#define SAY 300
#define GO 301

static const char *the_case = "none", *self_path;

static inline void need(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "kills: %s: %s: %s\n", the_case, what, strerror(errno));
		_exit(1);
	}
}

// ---- facts

static char line[1 << 16];
static size_t filled;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	filled += vsnprintf(line + filled, sizeof(line) - filled, format, args);
	va_end(args);
	need(filled < sizeof(line), "a fact too long");
}

// One write a line: a child's copy of a buffer must not be printed twice.
static void print(void)
{
	add("\n");
	need(write(1, line, filled) == (ssize_t)filled, "write");
	filled = 0;
}

static void begin_fact(const char *is)
{
	add("{\"is\":\"%s\",\"case\":\"%s\"", is, the_case);
}

// As a JSON string.
static void add_text(const char *text, size_t len)
{
	add("\"");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = text[i];

		if (c == '"' || c == '\\' || c < 0x20)
			add("\\u%04x", c);
		else
			add("%c", c);
	}
	add("\"");
}

// Reads /proc/PID/NAME; 0: it is not there.
static size_t proc(pid_t pid, const char *name, char *to, size_t size)
{
	char path[128];
	size_t len = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while ((n = read(fd, to + len, size - 1 - len)) > 0)
		len += n;
	close(fd);
	to[len] = 0;
	return len;
}

// The value of a line of /proc/PID/status.
static char *status(pid_t pid, const char *key)
{
	static char text[16384];
	char want[64];

	proc(pid, "status", text, sizeof(text));
	snprintf(want, sizeof(want), "\n%s:\t", key);
	char *at = strstr(text, want);
	if (!at)
		return NULL;
	at += strlen(want);
	at[strcspn(at, "\n")] = 0;
	return at;
}

static pid_t parent_of(pid_t pid)
{
	char *ppid = status(pid, "PPid");

	return ppid ? atoi(ppid) : 0;
}

// The pid in the innermost namespace it is in.
static pid_t pid_inside(pid_t pid)
{
	char *ids = status(pid, "NSpid");
	char *last = ids ? strrchr(ids, '\t') : NULL;

	return ids ? atoi(last ? last + 1 : ids) : 0;
}

static void add_comm(pid_t pid, pid_t tid)
{
	char name[64], text[64];

	snprintf(name, sizeof(name), "task/%d/comm", tid);
	size_t len = proc(pid, name, text, sizeof(text));
	add_text(text, len ? len - 1 : 0);
}

// Prints who a thread is.
static void about_thread(pid_t pid, pid_t tid)
{
	char path[64], text[8192];

	begin_fact("process");
	add(",\"pid\":%d,\"tid\":%d,\"ns_pid\":%d", pid, tid, pid_inside(pid));
	char *uid = status(pid, "Uid");
	need(uid != NULL, "a process that is there");
	add(",\"uid\":%d,\"comm\":", atoi(uid));
	add_comm(pid, tid);
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	ssize_t n = readlink(path, text, sizeof(text));
	add(",\"exe\":");
	add_text(text, n < 0 ? 0 : n);
	add(",\"cmdline\":[");
	size_t len = proc(pid, "cmdline", text, sizeof(text));
	for (size_t at = 0; at < len; at += strlen(text + at) + 1) {
		add(at ? "," : "");
		add_text(text + at, strlen(text + at));
	}
	add("],\"ancestors\":[");
	int first = 1;
	for (pid_t up = parent_of(pid); up > 0; up = parent_of(up), first = 0) {
		add(first ? "[%d," : ",[%d,", up);
		add_comm(up, up);
		add("]");
	}
	add("]}");
	print();
}

static void about(pid_t pid)
{
	about_thread(pid, pid);
}

// `expect`: members of a JSON object. Without a sender (0): nobody sent it.
__attribute__((format(printf, 6, 7))) static void sent_to(int sig, pid_t from, pid_t from_tid, pid_t to, pid_t to_tid,
							   const char *expect, ...)
{
	va_list args;

	begin_fact("sent");
	add(",\"signal\":%d,\"sender\":", sig);
	add(from ? "[%d,%d]" : "null", from, from_tid);
	add(",\"target\":[%d,%d],\"expect\":{", to, to_tid);
	va_start(args, expect);
	filled += vsnprintf(line + filled, sizeof(line) - filled, expect, args);
	va_end(args);
	add("}}");
	print();
}

#define sent(sig, from, to, ...) sent_to(sig, from, from, to, to, __VA_ARGS__)

// What every signal that ends its target at once has in common.
#define FATAL "\"result\":\"delivered\",\"blocked\":false,\"disposition\":\"default\",\"outcome.cause\":true"
#define USER "\"code_name\":\"SI_USER\","
#define ALIVE "\"outcome.cause\":false"

static void silent(int sig, pid_t pid)
{
	begin_fact("silent");
	add(",\"pid\":%d,\"signal\":%d}", pid, sig);
	print();
}

static void end_fact(pid_t pid, int how)
{
	begin_fact("end");
	add(",\"pid\":%d,\"status\":%d}", pid, how);
	print();
}

// Waits for the end of a process and prints it.
static int ended(pid_t pid)
{
	int how;

	need(waitpid(pid, &how, __WALL) == pid, "wait");
	end_fact(pid, how);
	return how;
}

// ---- children

// A child of this program.
struct child {
	pid_t pid; // 0: this is the child
	int ready; // a byte comes when it is
	int go;    // a byte lets it on
};

static int say_fd, go_fd;

// To be called by a child: it is ready.
static void say(void)
{
	need(write(say_fd, "", 1) == 1, "say");
}

// To be called by a child: waits to be let on.
static void hold(void)
{
	char byte;
	ssize_t n;

	while ((n = read(go_fd, &byte, 1)) < 0 && errno == EINTR)
		;
	need(n == 1, "go");
}

static void ready_to_go(void)
{
	say();
	hold();
}

// To be called by a child: it is ready, and does nothing more.
static void rest(void)
{
	say();
	for (;;)
		pause();
}

static struct child begin(const char *comm)
{
	struct child child;
	int ready[2], go[2];

	need(!pipe(ready) && !pipe(go), "pipe");
	child.ready = ready[0];
	child.go = go[1];
	child.pid = fork();
	need(child.pid >= 0, "fork");
	if (child.pid) {
		close(ready[1]);
		close(go[0]);
		return child;
	}
	close(ready[0]);
	close(go[1]);
	say_fd = ready[1];
	go_fd = go[0];
	prctl(PR_SET_NAME, comm);
	return child;
}

// Waits until a child is ready.
static void await(const struct child *child)
{
	struct pollfd fd = { .fd = child->ready, .events = POLLIN };
	char byte;

	need(poll(&fd, 1, 30000) == 1, "a child that is ready in time");
	need(read(child->ready, &byte, 1) == 1, "a child that is ready");
}

static void let(const struct child *child)
{
	need(write(child->go, "", 1) == 1, "let");
}

static void forget(const struct child *child)
{
	close(child->ready);
	close(child->go);
}

// To be called by a child: becomes this program again, with these arguments; its pipes are SAY and GO.
__attribute__((sentinel)) static void become(const char *first, ...)
{
	const char *argv[16] = { self_path, first };
	va_list args;
	int n = 1;

	va_start(args, first);
	while (argv[n++] && n < 16)
		argv[n] = va_arg(args, const char *);
	va_end(args);
	need(dup2(say_fd, SAY) == SAY && dup2(go_fd, GO) == GO, "dup2");
	execv(self_path, (char **)argv);
	need(0, "exec");
}

static const char *number(long n)
{
	static char text[8][24];
	static int at;

	at = (at + 1) % 8;
	snprintf(text[at], sizeof(text[at]), "%ld", n);
	return text[at];
}

// To be called by a child: another user's from now on.
static void change_user(uid_t uid)
{
	need(!setresgid(uid, uid, uid) && !setresuid(uid, uid, uid), "setuid");
}

static const uid_t NOBODY = 65534;

// A process that waits to send: a program of its own, which exits as soon as it has sent.
static struct child sender_as(uid_t uid, const char *how, int sig, pid_t pid, pid_t tid)
{
	struct child child = begin("sender");

	if (!child.pid) {
		if (uid)
			change_user(uid);
		become("send", how, number(sig), number(pid), number(tid), NULL);
	}
	await(&child);
	return child;
}

static struct child sender(const char *how, int sig, pid_t pid, pid_t tid)
{
	return sender_as(0, how, sig, pid, tid);
}

// A process that does nothing.
static struct child target_as(uid_t uid)
{
	struct child child = begin("target");

	if (!child.pid) {
		if (uid)
			change_user(uid);
		rest();
	}
	await(&child);
	return child;
}

static struct child target(void)
{
	return target_as(0);
}

// The sender's part is done: it has sent and is gone.
static void send_and_exit(const struct child *sender)
{
	int how;

	let(sender);
	need(waitpid(sender->pid, &how, 0) == sender->pid && how == 0, "a sender that sends");
	forget(sender);
}

// The child of a process that has this pid in its own namespace; 0: any child.
static pid_t child_inside(pid_t parent, pid_t inside)
{
	for (int tries = 0; tries < 3000; tries++, usleep(1000)) {
		DIR *dir = opendir("/proc");
		struct dirent *entry;
		pid_t found = 0;

		while (!found && (entry = readdir(dir))) {
			pid_t pid = atoi(entry->d_name);

			if (pid > 0 && parent_of(pid) == parent && (!inside || pid_inside(pid) == inside))
				found = pid;
		}
		closedir(dir);
		if (found)
			return found;
	}
	need(0, "a child inside");
	return 0;
}

// Waits until a process that somebody else is to reap has died.
static void until_dead(pid_t pid)
{
	for (int tries = 0; tries < 30000; tries++, usleep(1000)) {
		char *state = status(pid, "State");

		if (!state || *state == 'Z')
			return;
	}
	need(0, "a death");
}
