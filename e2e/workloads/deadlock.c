/* Two threads take two mutexes crosswise and wait for each other for ever. argv[1]: ms before the second; prints who has which. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t locks[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static int ms;

static void *takes(void *which)
{
	long mine = (long)which;

	pthread_mutex_lock(&locks[mine]);
	printf("%ld %p\n", syscall(SYS_gettid), (void *)&locks[mine]);
	fflush(stdout);
	usleep(ms * 1000);
	pthread_mutex_lock(&locks[!mine]);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	ms = argc > 1 ? atoi(argv[1]) : 100;
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, takes, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
