//: what main joins three threads; one of them waits 0.5 s longer than the others.
//: cause by=straggler
//: cause comm=straggler syscall=clock_nanosleep|nanosleep
//: innocent sprinter
#include "shared.h"

static int on;

static void *work(void *arg)
{
	long slow = (long)arg;

	name(slow ? "straggler" : "sprinter");
	for (int i = 0; i < 10; i++)
		nap(20 * MS);
	if (slow && on)
		for (int i = 0; i < 10; i++)
			nap(50 * MS);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[3];

	on = is_on(argc, argv);
	spin(200 * MS);
	for (long i = 0; i < 3; i++)
		t[i] = thread(work, (void *)(i == 1));
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return 0;
}
