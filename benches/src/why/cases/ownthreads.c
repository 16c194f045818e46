//: what Eight threads of the program itself are busy on fewer CPUs while main computes for 0.3 s.
//: load
//: cause rule*=cpu text*='its own'
//: cause rule*=cpu by_pid={pid}
//: cause rule*=cpu by=helper-thread
//: innocent onlooker
#include "shared.h"

static volatile int done;
static int on;

static void *busy(void *arg)
{
	name("helper-thread");
	while (!done)
		if (on)
			spin(MS);
		else
			nap(10 * MS);
	return NULL;
}

static void *onlooker(void *arg)
{
	name("onlooker");
	while (!done)
		nap(10 * MS);
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = 3 * sysconf(_SC_NPROCESSORS_ONLN) + 2;
	pthread_t t;

	on = is_on(argc, argv);
	for (long i = 0; i < threads; i++)
		t = thread(busy, NULL);
	thread(onlooker, NULL);
	name("front");
	spin(300 * MS);
	done = 1;
	pthread_join(t, NULL);
	return 0;
}
