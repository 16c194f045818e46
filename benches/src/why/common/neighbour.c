/* neighbour: keeps CPUs busy until it is ended: half of those there are, one at least. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	volatile unsigned long x = 0;
	struct stat s;

	puts("ready");
	fflush(stdout);
	for (long i = 1; i < cpus / 2; i++)
		if (!fork())
			break;
	for (;;)
		if (!(++x & 0xfffff))
			stat("/", &s);
}
