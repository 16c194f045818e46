/*
 * Waits for futexes as often as it says. Its own locks, by the algorithm with
 * three values (0 free, 1 taken, 2 taken and others wait), count each call that
 * slept, that found another value, and that woke somebody. Two phases: threads
 * that fight for one lock, and one thread that waits for a time to be up.
 *
 * Prints "lock ADDRESS WAITS AGAIN WOKEN THREADS" of the lock, and
 * "time ADDRESS WAITS TIMEOUTS" of the other futex.
 *
 * usage: futexes THREADS ROUNDS
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic unsigned lock, timer;
static _Atomic long waits, again, woken, waited_threads;
static long rounds;

static long futex(_Atomic unsigned *at, int op, unsigned value, const struct timespec *timeout)
{
	return syscall(SYS_futex, at, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

static int take(void)
{
	unsigned seen = 0;
	int slept = 0;

	if (atomic_compare_exchange_strong(&lock, &seen, 1))
		return 0;
	while (atomic_exchange(&lock, 2)) {
		if (futex(&lock, FUTEX_WAIT, 2, NULL) && errno == EAGAIN) {
			again++;
		} else {
			waits++;
			slept = 1;
		}
	}
	return slept;
}

static void give(void)
{
	if (atomic_exchange(&lock, 0) == 2)
		woken += futex(&lock, FUTEX_WAKE, 1, NULL);
}

static void *fight(void *unused)
{
	const struct timespec held = { 0, 200000 };
	int slept = 0;

	for (long i = 0; i < rounds; i++) {
		slept |= take();
		nanosleep(&held, NULL);
		give();
	}
	waited_threads += slept;
	return unused;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 4, waits_for_time = 0, timeouts = 0;
	const struct timespec short_time = { 0, 1000000 };
	pthread_t *ids = calloc(threads, sizeof(*ids));

	rounds = argc > 2 ? atol(argv[2]) : 20;
	for (long i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, fight, NULL))
			return 1;
	for (long i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	for (int i = 0; i < 7; i++) {
		waits_for_time++;
		timeouts += futex(&timer, FUTEX_WAIT, 0, &short_time) && errno == ETIMEDOUT;
	}
	printf("lock %p %ld %ld %ld %ld\n", (void *)&lock, waits, again, woken, waited_threads);
	printf("time %p %ld %ld\n", (void *)&timer, waits_for_time, timeouts);
	return 0;
}
