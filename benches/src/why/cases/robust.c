//: what Two processes share a robust mutex in memory; the other holds it 20 of every 26 ms.
//: cause syscall=futex by=neighbor
#include "shared.h"
#include <sys/mman.h>

int main(int argc, char **argv)
{
	pthread_mutex_t *lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t a;
	int on = is_on(argc, argv);
	pid_t pid;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(lock, &a);
	pid = fork();
	if (!pid) {
		name("neighbor");
		for (;;) {
			if (on)
				pthread_mutex_lock(lock);
			nap(20 * MS);
			if (on)
				pthread_mutex_unlock(lock);
			nap(6 * MS);
		}
	}
	nap(2 * MS);
	for (int i = 0; i < 30; i++) {
		pthread_mutex_lock(lock);
		spin(2 * MS);
		pthread_mutex_unlock(lock);
		nap(8 * MS);
	}
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	return 0;
}
