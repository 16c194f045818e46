//: what A program maps 64 MiB anew for each of 14 passes, so that each page is filled again; without the cause it keeps them.
//: cause text*='page fault'
//: cause-budget state*=fault
#include "shared.h"
#include <sys/mman.h>

#define SIZE (64L << 20)

static char *pages(void)
{
	char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(p, SIZE, MADV_NOHUGEPAGE);
	return p;
}

int main(int argc, char **argv)
{
	int on = is_on(argc, argv);
	char *p = pages();

	spin(200 * MS);
	for (int i = 0; i < 14; i++) {
		if (on) {
			munmap(p, SIZE);
			p = pages();
		}
		for (long at = 0; at < SIZE; at += 4096)
			p[at] = i;
	}
	return 0;
}
