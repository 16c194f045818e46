//: what One thread holds a mutex while it sleeps 15 of every 20 ms; main needs it for a moment thirty times.
//: cause syscall=futex by=hoarder
//: innocent reader
#include "shared.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int done;
static int on;

static void *hoarder(void *arg)
{
	name("hoarder");
	while (!done) {
		if (on)
			pthread_mutex_lock(&lock);
		nap(15 * MS);
		if (on)
			pthread_mutex_unlock(&lock);
		nap(5 * MS);
	}
	return NULL;
}

static void *reader(void *arg)
{
	name("reader");
	while (!done)
		nap(7 * MS);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	on = is_on(argc, argv);
	threads[0] = thread(hoarder, NULL);
	threads[1] = thread(reader, NULL);
	nap(2 * MS);
	for (int i = 0; i < 30; i++) {
		pthread_mutex_lock(&lock);
		spin(5 * MS);
		pthread_mutex_unlock(&lock);
		nap(6 * MS);
	}
	done = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
