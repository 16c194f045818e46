//: what A thread holds a mutex with priority inheritance 15 of every 20 ms.
//: cause syscall=futex by=owner
//: cause syscall=futex object*={lock}
#include "shared.h"

static pthread_mutex_t lock;
static volatile int done;
static int on;

static void *owner(void *arg)
{
	name("owner");
	while (!done) {
		if (on)
			pthread_mutex_lock(&lock);
		nap(15 * MS);
		if (on)
			pthread_mutex_unlock(&lock);
		nap(4 * MS);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t a;
	pthread_t t;

	on = is_on(argc, argv);
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock, &a);
	truth("lock", &lock);
	t = thread(owner, NULL);
	nap(2 * MS);
	for (int i = 0; i < 40; i++) {
		pthread_mutex_lock(&lock);
		spin(2 * MS);
		pthread_mutex_unlock(&lock);
		nap(6 * MS);
	}
	done = 1;
	pthread_join(t, NULL);
	return 0;
}
