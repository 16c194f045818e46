//: what A thread that waits on a condition with a time-out, which always runs out; a progress line.
//: healthy
#include "shared.h"

int main(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t there = PTHREAD_COND_INITIALIZER;

	for (int i = 0; i < 6; i++) {
		struct timespec t;

		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += 200 * MS;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		pthread_mutex_lock(&lock);
		pthread_cond_timedwait(&there, &lock, &t);
		pthread_mutex_unlock(&lock);
		pthread_cond_signal(&there);
	}
	return 0;
}
