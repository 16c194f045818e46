//: what A pool of four threads on a condition; who takes a job signals the next (libuv, Java pools).
//: healthy
#include "shared.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t there = PTHREAD_COND_INITIALIZER;
static int jobs, done;

static void *work(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		while (!jobs && !done)
			pthread_cond_wait(&there, &lock);
		if (!jobs && done) {
			pthread_mutex_unlock(&lock);
			return NULL;
		}
		if (--jobs)
			pthread_cond_signal(&there);
		pthread_mutex_unlock(&lock);
		nap(MS);
	}
}

int main(void)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		t[i] = thread(work, NULL);
	for (int i = 0; i < 12; i++) {
		nap(100 * MS);
		pthread_mutex_lock(&lock);
		jobs += 4;
		pthread_cond_signal(&there);
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	done = 1;
	pthread_cond_broadcast(&there);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
