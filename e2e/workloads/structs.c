// Makes calls whose arguments are structures, with values that do not change from run to run but for times that pass, ids and
// addresses. A call access("/case/", 0) stands before the first and behind the last.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int p[2];
static sigset_t some;

static void nothing(int signo)
{
	(void)signo;
}

static void times(void)
{
	struct timespec t = { 0, 1000000 }, left, *cold;
	struct timeval tv[2] = { { 1, 2 }, { 3, 4 } };
	struct timespec file[2] = { { 1000000000, 5 }, { 0, UTIME_NOW } };
	int word = 5;

	syscall(SYS_nanosleep, &t, &left);
	t.tv_nsec = 2000000000;
	syscall(SYS_nanosleep, &t, NULL);
	syscall(SYS_nanosleep, NULL, NULL);
	t.tv_nsec = 1;
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, &left);
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 5, &t, NULL, 0);
	syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 5, &t, NULL, -1);
	syscall(SYS_futex, &word, FUTEX_WAIT, 4, NULL, NULL, 0);
	// a number where others have their timeout
	syscall(SYS_futex, &word, FUTEX_REQUEUE, 1, 2, &word, 0);
	syscall(SYS_clock_getres, CLOCK_MONOTONIC, &t);
	syscall(SYS_clock_gettime, 99, &t);
	syscall(SYS_rt_sigtimedwait, &some, NULL, &t, 8);
	close(open("made", O_CREAT | O_WRONLY, 0600));
	syscall(SYS_utimensat, AT_FDCWD, "made", file, 0);
	file[1].tv_nsec = UTIME_OMIT;
	syscall(SYS_utimensat, AT_FDCWD, "made", file, 0);
	syscall(SYS_utimensat, AT_FDCWD, "made", NULL, 0);
	syscall(SYS_utimes, "made", tv);
	// on a page that this process has not touched: read when the call returns
	int fd = open("cold", O_RDWR | O_CREAT, 0600);
	pwrite(fd, &t, sizeof(t), 4096);
	cold = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
	madvise(cold, 8192, MADV_RANDOM);
	syscall(SYS_nanosleep, (char *)cold + 4096, NULL);
	munmap(cold, 8192);
	// nothing there
	syscall(SYS_nanosleep, cold, NULL);
	close(fd);
}

static void polls(void)
{
	struct pollfd fds[3] = { { p[0], POLLIN | POLLPRI, 7 }, { -1, POLLIN, 0 }, { p[1], POLLOUT | 0x4000, 0 } };
	struct pollfd none = { 99, POLLIN, 0 }, idle = { p[1], 0, 0 }, many[40];
	struct timespec ten = { 10, 0 }, soon = { 0, 1000 };

	syscall(SYS_poll, fds, 3, 0);
	syscall(SYS_poll, fds, 2, 0);
	syscall(SYS_poll, &none, 1, 0);
	syscall(SYS_poll, &idle, 1, 0);
	syscall(SYS_poll, NULL, 0, 0);
	for (int i = 0; i < 40; i++)
		many[i] = (struct pollfd){ p[0], POLLIN, 0 };
	syscall(SYS_poll, many, 32, 0);
	syscall(SYS_poll, many, 40, 0);
	syscall(SYS_ppoll, fds, 1, &ten, &some, 8);
	syscall(SYS_ppoll, &idle, 1, &soon, NULL, 8);
}

static void selects(void)
{
	fd_set in, out, except;
	struct timeval ten = { 10, 0 }, soon = { 0, 10 };
	struct timespec ten_ns = { 10, 0 }, soon_ns = { 0, 1000 };

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&except);
	FD_SET(p[0], &in);
	FD_SET(p[1], &out);
	syscall(SYS_select, p[1] + 1, &in, &out, &except, &ten);
	FD_ZERO(&in);
	FD_SET(p[1], &in);
	syscall(SYS_select, p[1] + 1, &in, NULL, NULL, &soon);
	syscall(SYS_select, 0, NULL, NULL, NULL, &soon);
	FD_SET(60, &in);
	syscall(SYS_select, 70, &in, NULL, NULL, &soon);
	FD_ZERO(&in);
	FD_SET(p[0], &in);
	syscall(SYS_pselect6, p[1] + 1, &in, NULL, NULL, &ten_ns, NULL);
	syscall(SYS_pselect6, 0, NULL, NULL, NULL, &soon_ns, NULL);
}

static void epolls(void)
{
	int e = epoll_create1(0);
	struct epoll_event event = { EPOLLIN | EPOLLET, { .u64 = 0x123456789abcdef } }, got[64];
	struct timespec two = { 2, 0 };

	syscall(SYS_epoll_wait, e, got, 64, 0);
	syscall(SYS_epoll_ctl, e, EPOLL_CTL_ADD, p[0], &event);
	event.data.u64 = 3;
	syscall(SYS_epoll_ctl, e, EPOLL_CTL_MOD, p[0], &event);
	syscall(SYS_epoll_wait, e, got, 64, -1);
	event.events = EPOLLOUT | EPOLLONESHOT;
	syscall(SYS_epoll_ctl, e, EPOLL_CTL_ADD, p[1], &event);
	syscall(SYS_epoll_pwait, e, got, 64, 5, &some, 8);
	syscall(SYS_epoll_ctl, e, EPOLL_CTL_DEL, p[0], &event);
	for (int i = 0; i < 40; i++) {
		event.events = EPOLLIN;
		event.data.u32 = i;
		syscall(SYS_epoll_ctl, e, EPOLL_CTL_ADD, dup(p[0]), &event);
	}
	syscall(SYS_epoll_pwait2, e, got, 64, &two, NULL, 8);
	syscall(SYS_epoll_wait, e, got, 32, -1);
	syscall(SYS_epoll_ctl, e, EPOLL_CTL_DEL, p[1], NULL);
	syscall(SYS_epoll_ctl, e, EPOLL_CTL_ADD, p[0], NULL);
}

static void limits(void)
{
	struct itimerval timer = { { 0, 0 }, { 500, 6 } }, old;
	struct itimerspec spec = { { 5, 6 }, { 7, 8 } }, old_spec;
	struct rlimit limit;
	timer_t id;
	int fd;

	syscall(SYS_setitimer, ITIMER_VIRTUAL, &timer, &old);
	timer.it_value.tv_sec = timer.it_value.tv_usec = 0;
	syscall(SYS_setitimer, ITIMER_VIRTUAL, &timer, NULL);
	syscall(SYS_getitimer, ITIMER_VIRTUAL, &old);
	timer_create(CLOCK_MONOTONIC, NULL, &id);
	syscall(SYS_timer_settime, id, 0, &spec, &old_spec);
	fd = timerfd_create(CLOCK_MONOTONIC, 0);
	syscall(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, &spec, &old_spec);
	close(fd);
	syscall(SYS_getrlimit, RLIMIT_NOFILE, &limit);
	limit = (struct rlimit){ 4096, 8192 };
	syscall(SYS_setrlimit, RLIMIT_CORE, &limit);
	limit.rlim_cur = 1025;
	syscall(SYS_prlimit64, 0, RLIMIT_CORE, &limit, NULL);
	// one structure for both
	limit.rlim_cur = 1024;
	syscall(SYS_prlimit64, 0, RLIMIT_CORE, &limit, &limit);
	syscall(SYS_prlimit64, 0, RLIMIT_SIGPENDING, NULL, &limit);
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = nothing, .sa_flags = SA_RESTART }, old;
	struct itimerval soon = { { 0, 0 }, { 0, 30000 } };
	struct timespec ten = { 10, 0 }, left;
	unsigned long masks[] = { 0, 0x3ffffffff, ~0UL, ~0x800UL };
	sigset_t mask;

	for (size_t i = 0; i < sizeof(masks) / sizeof(*masks); i++)
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &masks[i], &mask, 8);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &masks[0], NULL, 8);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
	syscall(SYS_rt_sigpending, &mask, 8);
	sigaction(SIGUSR1, &action, &old);
	sigaddset(&action.sa_mask, SIGHUP);
	action.sa_handler = SIG_IGN;
	action.sa_flags = SA_NODEFER;
	sigaction(SIGUSR1, &action, &old);
	sigaction(SIGUSR1, NULL, &old);
	action.sa_handler = nothing;
	action.sa_flags = 0;
	sigaction(SIGALRM, &action, NULL);
	// interrupted: with the time left, and in one structure with the time asked for
	setitimer(ITIMER_REAL, &soon, NULL);
	syscall(SYS_nanosleep, &ten, &left);
	setitimer(ITIMER_REAL, &soon, NULL);
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ten, &ten);
	setitimer(ITIMER_REAL, &soon, NULL);
	ten = (struct timespec){ 4000000000, 0 };
	syscall(SYS_clock_nanosleep, CLOCK_REALTIME, TIMER_ABSTIME, &ten, &left);
}

static pid_t child(int how)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (how > 0)
		_exit(how);
	if (how < 0)
		kill(getpid(), -how);
	_exit(0);
}

static void children(void)
{
	int status;
	siginfo_t info;
	pid_t pid = child(3);

	syscall(SYS_wait4, pid, &status, 0, NULL);
	syscall(SYS_wait4, child(-SIGKILL), &status, 0, NULL);
	pid = child(-SIGSTOP);
	syscall(SYS_wait4, pid, &status, WUNTRACED, NULL);
	syscall(SYS_wait4, pid, &status, WNOHANG, NULL);
	kill(pid, SIGKILL);
	syscall(SYS_wait4, pid, &status, 0, NULL);
	syscall(SYS_wait4, -1, &status, 0, NULL);
	syscall(SYS_waitid, P_PID, child(7), &info, WEXITED, NULL);
	pid = child(-SIGSTOP);
	syscall(SYS_waitid, P_PID, pid, &info, WSTOPPED, NULL);
	syscall(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG, NULL);
	kill(pid, SIGKILL);
	syscall(SYS_waitid, P_PID, pid, &info, WEXITED, NULL);
}

static void files(void)
{
	struct stat st;
	char sx[256];
	int fd = open("made", O_RDWR | O_CREAT, 0640);

	ftruncate(fd, 5000000011);
	syscall(SYS_fstat, fd, &st);
	syscall(SYS_stat, "/dev/null", &st);
	syscall(SYS_lstat, "/proc/self", &st);
	syscall(SYS_newfstatat, AT_FDCWD, "/tmp", &st, 0);
	syscall(SYS_newfstatat, p[0], "", &st, AT_EMPTY_PATH);
	syscall(SYS_stat, "/no such", &st);
	syscall(SYS_statx, AT_FDCWD, "made", 0, 0x7ff, sx);
	syscall(SYS_statx, AT_FDCWD, "/dev/null", 0, 3, sx);
	syscall(SYS_statx, AT_FDCWD, "/no such", 0, 3, sx);
}

int main(int argc, char **argv)
{
	if (argc < 2 || chdir(argv[1]) || pipe(p) || write(p[1], "x", 1) != 1)
		return 1;
	sigemptyset(&some);
	sigaddset(&some, SIGUSR1);
	sigaddset(&some, 37);
	access("/case/", F_OK);
	times();
	polls();
	selects();
	epolls();
	limits();
	signals();
	children();
	files();
	access("/case/", F_OK);
	return 0;
}
