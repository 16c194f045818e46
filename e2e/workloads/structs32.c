/* A 32-bit program without libc: calls with structures whose layouts differ from those of 64-bit code. */
static long call(long nr, long a, long b, long c, long d, long e)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e) : "memory");
	return ret;
}

#define P(x) ((long)(x))

void _start(void);
void _start(void)
{
	int pipe[2];
	int ts32[2] = { 0, 1000 }, tv[2] = { 0, 10 }, soon[2] = { 0, 10 };
	/* the upper half of the nanoseconds is not looked at */
	int ts64[4] = { 0, 0, 1000, 77 };
	int timer[4] = { 0, 0, 500, 6 }, spec[4] = { 5, 6, 7, 8 }, old[8];
	unsigned limit[2] = { 4096, ~0u };
	struct { int fd; short events, revents; } fds[2];
	struct { unsigned events; unsigned data[2]; } __attribute__((packed)) event = { 1, { 3, 0 } }, got[4];
	unsigned set[4] = { 0 };
	unsigned action[5] = { 1, 0x10000000, 0, 1, 0 };
	unsigned mask[2] = { 0x200, 0x10 };
	int status, info[32], st[32], word = 5;
	long e;

	call(42, P(pipe), 0, 0, 0, 0);
	call(4, pipe[1], P("x"), 1, 0, 0);
	call(162, P(ts32), 0, 0, 0, 0);			     /* nanosleep */
	call(407, 1, 0, P(ts64), 0, 0);			     /* clock_nanosleep_time64 */
	call(240, P(&word), 0, 5, P(ts32), 0);		     /* futex */
	call(422, P(&word), 0, 5, P(ts64), 0);		     /* futex_time64 */
	fds[0].fd = pipe[0], fds[0].events = 1;
	fds[1].fd = pipe[1], fds[1].events = 4;
	call(168, P(fds), 2, 0, 0, 0);			     /* poll */
	call(309, P(fds), 1, P(ts32), P(mask), 8);	     /* ppoll */
	set[0] = 1u << pipe[0];
	call(142, pipe[0] + 1, P(set), 0, 0, P(tv));	     /* _newselect */
	set[0] = 0;
	call(142, 0, 0, 0, 0, P(soon));
	e = call(329, 0, 0, 0, 0, 0);			     /* epoll_create1 */
	call(255, e, 1, pipe[0], P(&event), 0);		     /* epoll_ctl */
	call(256, e, P(got), 4, -1, 0);			     /* epoll_wait */
	call(104, 1, P(timer), P(old), 0, 0);		     /* setitimer */
	e = call(322, 1, 0, 0, 0, 0);			     /* timerfd_create */
	call(325, e, 1, P(spec), P(old), 0);		     /* timerfd_settime */
	call(75, 4, P(limit), 0, 0, 0);			     /* setrlimit */
	call(191, 4, P(old), 0, 0, 0);			     /* ugetrlimit */
	call(340, 0, 4, 0, P(old), 0);			     /* prlimit64 */
	call(174, 10, P(action), P(old), 8, 0);		     /* rt_sigaction */
	call(174, 10, 0, P(old), 8, 0);
	call(175, 0, P(mask), P(old), 8, 0);		     /* rt_sigprocmask */
	call(195, P("/dev/null"), P(st), 0, 0, 0);	     /* stat64 */
	call(197, pipe[0], P(st), 0, 0, 0);		     /* fstat64 */
	call(106, P("/dev/null"), P(st), 0, 0, 0);	     /* stat */
	call(383, -100, P("/dev/null"), 0, 3, P(st));	     /* statx */
	e = call(2, 0, 0, 0, 0, 0);			     /* fork */
	if (!e)
		call(252, 3, 0, 0, 0, 0);
	call(284, 1, e, P(info), 4 | 0x01000000, 0);	     /* waitid, WNOWAIT */
	call(7, e, P(&status), 0, 0, 0);		     /* waitpid */
	call(252, 0, 0, 0, 0, 0);
}
