//: what A loop waits for a timer (timerfd) of 20 ms before each of 30 pieces of work.
//: cause syscall=read object*=timerfd
//: cause-budget syscall=read object*=timerfd
#include "shared.h"
#include <sys/timerfd.h>

int main(int argc, char **argv)
{
	struct itimerspec every = { { 0, 20 * MS }, { 0, 20 * MS } };
	int on = is_on(argc, argv);

	for (int i = 0; i < 30; i++) {
		long n;
		int fd = timerfd_create(CLOCK_MONOTONIC, 0);

		timerfd_settime(fd, 0, &every, NULL);
		if (on && read(fd, &n, sizeof(n)) != sizeof(n))
			return 1;
		close(fd);
		spin(10 * MS);
	}
	return 0;
}
