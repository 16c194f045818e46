/*
 * Touches pages whose addresses and kind of access it prints: one line a fault,
 * "ADDRESS ERROR_CODE FUNCTION", in the order in which they happen. Page faults
 * of anything else are not on the list: they are not in the printed region,
 * "region FROM TO".
 *
 * usage: page_faults PAGES [FILE]: not before there is a FILE
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL

/* bits of x86's error code */
#define PRESENT 1
#define WRITE 2
#define USER 4

__attribute__((noinline)) static unsigned read_pages(volatile unsigned char *at, unsigned long pages)
{
	unsigned sum = 0;

	for (unsigned long i = 0; i < pages; i++)
		sum += at[i * PAGE + i % PAGE];
	return sum;
}

__attribute__((noinline)) static void write_pages(volatile unsigned char *at, unsigned long pages)
{
	for (unsigned long i = 0; i < pages; i++)
		at[i * PAGE + i % PAGE] = 1;
}

/* A loop of its own, so that it is not taken for write_pages. */
__attribute__((noinline)) static void write_read_pages(volatile unsigned char *at, unsigned long pages)
{
	for (unsigned long i = pages; i-- > 0;)
		at[i * PAGE + i % PAGE] = 2;
}

static void tell(unsigned char *at, unsigned long i, int error, const char *function)
{
	printf("%p 0x%x %s\n", (void *)(at + i * PAGE + i % PAGE), error, function);
}

int main(int argc, char **argv)
{
	unsigned long pages = argc > 1 ? strtoul(argv[1], NULL, 0) : 8;
	unsigned char *at = mmap(NULL, 2 * pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *written = at + pages * PAGE;
	unsigned sum;

	while (argc > 2 && access(argv[2], F_OK))
		usleep(1000);
	/* one page a fault */
	if (at == MAP_FAILED || madvise(at, 2 * pages * PAGE, MADV_NOHUGEPAGE))
		return 1;
	sum = read_pages(at, pages);
	write_pages(written, pages);
	/* what was only read shares the page of zeros, which is protected */
	write_read_pages(at, pages);

	printf("region %p %p\n", (void *)at, (void *)(at + 2 * pages * PAGE));
	for (unsigned long i = 0; i < pages; i++)
		tell(at, i, USER, "read_pages");
	for (unsigned long i = 0; i < pages; i++)
		tell(written, i, USER | WRITE, "write_pages");
	for (unsigned long i = pages; i-- > 0;)
		tell(at, i, USER | WRITE | PRESENT, "write_read_pages");
	return sum != 0;
}
