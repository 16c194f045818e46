/* A second thread with a chain of its own. */
#include <pthread.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile long sink;

NOINLINE long third(long a) { __asm__ volatile("int3"); return a + sink; }
NOINLINE long second(long a) { return third(a + 1) + sink; }

static void *thread(void *arg) { sink = second((long)arg); return arg; }

int main(void)
{
	pthread_t it;
	if (pthread_create(&it, 0, thread, (void *)1))
		return 1;
	return pthread_join(it, 0);
}
