//: what Six threads use one lock unevenly: one keeps it 6 ms of 20, the others 1; without the cause each has its own.
//: cause syscall=futex object*={lock}
#include "shared.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int on;

static void *work(void *arg)
{
	pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER, *mine = on ? &lock : &own;
	long i = (long)arg, hold = i ? 2 : 8;

	name(i ? "light" : "heavy");
	for (int n = 0; n < 40; n++) {
		nap(10 * MS);
		pthread_mutex_lock(mine);
		nap(hold * MS);
		pthread_mutex_unlock(mine);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[6];

	on = is_on(argc, argv);
	truth("lock", &lock);
	for (long i = 0; i < 6; i++)
		t[i] = thread(work, (void *)i);
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	return 0;
}
