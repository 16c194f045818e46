/*
 * filtered: four children, each of which calls getpgid(12345) under a seccomp filter that answers it: kills the process, kills the
 * thread, raises SIGSYS without a handler, and with one. Prints what the last was given as the result.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void nothing(int signal)
{
	(void)signal;
}

static void child(unsigned int action, int handled)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	if (handled)
		signal(SIGSYS, nothing);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	printf("%ld\n", syscall(SYS_getpgid, 12345));
	fflush(stdout);
	_exit(0);
}

int main(void)
{
	static const unsigned int actions[] = { SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP,
						SECCOMP_RET_TRAP };

	for (int i = 0; i < 4; i++) {
		if (!fork())
			child(actions[i], i == 3);
		wait(NULL);
	}
	return 0;
}
