// zombies COUNT: makes COUNT children that end at once and are waited for at SIGUSR1 only, and a process whose first thread has ended
// while another sleeps. Prints "zombies PID...", then "threaded PID", then waits.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *sleeper(void *arg)
{
	for (;;)
		sleep(1);
	return arg;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1, signal;
	sigset_t set;
	pid_t threaded;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	threaded = fork();
	if (!threaded) {
		pthread_t thread;

		pthread_create(&thread, NULL, sleeper, NULL);
		pthread_exit(NULL);
	}
	printf("zombies");
	for (int i = 0; i < count; i++) {
		pid_t child = fork();
		siginfo_t info;

		if (!child)
			_exit(0);
		// it is a zombie by then, and stays one
		waitid(P_PID, child, &info, WEXITED | WNOWAIT);
		printf(" %d", child);
	}
	printf("\nthreaded %d\n", threaded);
	fflush(stdout);
	sigwait(&set, &signal);
	kill(threaded, SIGKILL);
	while (wait(NULL) > 0)
		;
	return 0;
}
