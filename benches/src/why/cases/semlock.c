//: what A semaphore serves as a lock; the other thread keeps it 18 of every 22 ms.
//: cause syscall=futex by=keeper
//: cause syscall=futex object*={lock}
#include "shared.h"
#include <semaphore.h>

static sem_t lock;
static volatile int done;
static int on;

static void *keeper(void *arg)
{
	name("keeper");
	while (!done) {
		if (on)
			sem_wait(&lock);
		nap(18 * MS);
		if (on)
			sem_post(&lock);
		nap(4 * MS);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;

	on = is_on(argc, argv);
	sem_init(&lock, 0, 1);
	truth("lock", &lock);
	t = thread(keeper, NULL);
	nap(2 * MS);
	for (int i = 0; i < 35; i++) {
		sem_wait(&lock);
		spin(2 * MS);
		sem_post(&lock);
		nap(6 * MS);
	}
	done = 1;
	pthread_join(t, NULL);
	return 0;
}
