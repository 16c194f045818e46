//: what Four threads meet at a barrier 12 times; one of them sleeps 25 ms before it.
//: cause by=late
//: cause comm=late syscall=clock_nanosleep|nanosleep
#include "shared.h"

static pthread_barrier_t barrier;
static int on;

static void *work(void *arg)
{
	long i = (long)arg;

	name(i == 2 ? "late" : "punctual");
	for (int round = 0; round < 12; round++) {
		nap(8 * MS);
		if (i == 2 && on)
			nap(25 * MS);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[4];

	on = is_on(argc, argv);
	pthread_barrier_init(&barrier, NULL, 4);
	spin(200 * MS);
	for (long i = 0; i < 4; i++)
		t[i] = thread(work, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
