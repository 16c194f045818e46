//: what A writer holds a read-write lock 25 of every 30 ms while it sleeps; three readers and main want to read.
//: cause syscall=futex by=writer
//: cause syscall=futex object*={phase}
//: cause syscall=futex object*={writers}
#include "shared.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static volatile int done;
static int on;

static void *writer(void *arg)
{
	name("writer");
	while (!done) {
		if (on)
			pthread_rwlock_wrlock(&lock);
		nap(25 * MS);
		if (on)
			pthread_rwlock_unlock(&lock);
		nap(5 * MS);
	}
	return NULL;
}

static void *reader(void *arg)
{
	if (arg)
		name("reader");
	for (int i = 0; i < 20; i++) {
		pthread_rwlock_rdlock(&lock);
		spin(2 * MS);
		pthread_rwlock_unlock(&lock);
		nap(8 * MS);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t w, r[3];

	on = is_on(argc, argv);
	/* glibc sleeps on two words of the lock */
	truth("phase", (char *)&lock + 8);
	truth("writers", (char *)&lock + 12);
	w = thread(writer, NULL);
	nap(2 * MS);
	for (int i = 0; i < 3; i++)
		r[i] = thread(reader, "");
	reader(NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(r[i], NULL);
	done = 1;
	pthread_join(w, NULL);
	return 0;
}
