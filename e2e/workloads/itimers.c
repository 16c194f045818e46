/*
 * Sets its timer of real time COUNT times, the i-th time to 1000 + i seconds and every i seconds from then on, and
 * prints its id first.
 *
 * usage: itimers COUNT [FILE]: not before there is a FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long count = argc > 1 ? strtol(argv[1], NULL, 10) : 0;

	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (argc > 2 && access(argv[2], F_OK))
		usleep(1000);
	for (long i = 0; i < count; i++) {
		struct itimerval timer = { .it_value.tv_sec = 1000 + i, .it_interval.tv_sec = i };

		setitimer(ITIMER_REAL, &timer, NULL);
	}
	return 0;
}
