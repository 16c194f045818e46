/* idle_threads N: N threads that wait, a third each in poll, nanosleep and pause. For `make bench-always`. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *rest(void *number)
{
	for (;;) {
		switch ((long)number % 3) {
		case 0:
			poll(NULL, 0, -1);
			break;
		case 1:
			sleep(3600);
			break;
		default:
			pause();
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1;
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (long i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, &attr, rest, (void *)i)) {
			perror("pthread_create");
			return 1;
		}
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
