/* Calls through code made at run time, without rules and without a frame pointer; its shape is the first argument. Then a breakpoint. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NOINLINE __attribute__((noinline, noclone))

typedef long made(long a, long b, void *stale, long (*call)(long, long));

volatile long sink;

NOINLINE long inner(long a, long b)
{
	__asm__ volatile("int3");
	return sink + a * b;
}

NOINLINE long middle(made *through, long a)
{
	return through(a, 2, __builtin_return_address(0), inner) + sink * 3;
}

NOINLINE long outer(made *through, long a)
{
	return middle(through, a) * 2 + sink;
}

/* CPython's: sub $8,%rsp ; call *%rcx ; add $8,%rsp ; ret */
static const unsigned char trampoline[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3};
/* Keeps a return address of another frame in its own, just above the stack pointer: sub $40,%rsp ; mov %rdx,8(%rsp) ; call *%rcx ; ... */
#define KEEPS 0x48, 0x83, 0xec, 0x28, 0x48, 0x89, 0x54, 0x24, 0x08, 0xff, 0xd1
static const unsigned char keeps[] = {KEEPS, 0x48, 0x83, 0xc4, 0x28, 0xc3};
/* and does something else before it ends: cltq */
static const unsigned char goes_on[] = {KEEPS, 0x48, 0x98, 0x48, 0x83, 0xc4, 0x28, 0xc3};

int main(int argc, char **argv)
{
	const char *shape = argc > 1 ? argv[1] : "";
	unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!strcmp(shape, "trampoline"))
		memcpy(page + 64, trampoline, sizeof(trampoline));
	else if (!strcmp(shape, "keeps"))
		memcpy(page + 64, keeps, sizeof(keeps));
	else
		memcpy(page + 64, goes_on, sizeof(goes_on));
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	return outer((made *)(page + 64), argc) == 12345;
}
