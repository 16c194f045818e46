//: what The late one of four threads at a barrier sleeps 27 ms, but another needs 24 ms without it.
//: costless
//: cause by=late
//: cause comm=late syscall=clock_nanosleep|nanosleep
#include "shared.h"

static pthread_barrier_t barrier;
static int on;

static void *work(void *arg)
{
	long i = (long)arg;

	name(i == 2 ? "late" : i == 3 ? "steady" : "punctual");
	for (int round = 0; round < 15; round++) {
		nap(i == 2 ? (on ? 27 * MS : 2 * MS) : i == 3 ? 24 * MS : 5 * MS);
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
