//: what A program maps a file of a slow file system and touches 30 of its pages, 12 ms each.
//: needs /usr/include/fuse3/fuse.h fusermount3
//: helper /bin/sh -c 'mkdir -p mapped; r=0; [ {mode} = on ] && r=12; exec {slowfs} {dir}/mapped 0 $r'
//: cause by=slowfs
#include "shared.h"
#include <sys/mman.h>

int main(int argc, char **argv)
{
	int fd = open("mapped/big", O_RDONLY);
	volatile char *p = mmap(NULL, 64 << 20, PROT_READ, MAP_PRIVATE, fd, 0);
	long sum = 0;

	if (fd < 0 || p == MAP_FAILED)
		return 1;
	madvise((void *)p, 64 << 20, MADV_RANDOM);
	for (int i = 0; i < 30; i++) {
		sum += p[(long)i << 20];
		spin(10 * MS);
	}
	return sum == 1;
}
