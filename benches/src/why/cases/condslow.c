//: what main waits on a condition for each item; the thread that makes them sleeps 25 ms for one.
//: cause by=producer
//: cause comm=producer syscall=clock_nanosleep|nanosleep
#include "shared.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t there = PTHREAD_COND_INITIALIZER;
static int items, on;

static void *producer(void *arg)
{
	name("producer");
	for (int i = 0; i < 25; i++) {
		nap(on ? 25 * MS : 2 * MS);
		pthread_mutex_lock(&lock);
		items++;
		pthread_cond_signal(&there);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;

	on = is_on(argc, argv);
	spin(300 * MS);
	t = thread(producer, NULL);
	for (int i = 0; i < 25; i++) {
		pthread_mutex_lock(&lock);
		while (!items)
			pthread_cond_wait(&there, &lock);
		items--;
		pthread_mutex_unlock(&lock);
		spin(4 * MS);
	}
	pthread_join(t, NULL);
	return 0;
}
