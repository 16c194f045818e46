/* Calls through a trampoline made at run time as CPython makes them for profilers: without rules, without a frame pointer, and the
 * functions around it keep no frame pointer either. It lives on until it is told to end: its code is read while it runs. */
#include <string.h>
#include <sys/mman.h>

#include "chains.h"

typedef void through(int id, long turn, void *unused, void (*call)(int, long));

static NOIPA void leaf(int id, long turn)
{
	EVENT(id, turn);
}

static NOIPA void called_back(int id, long turn)
{
	leaf(id, turn);
	AFTER();
}

static NOIPA void calls_trampoline(through *trampoline, int id, long turn)
{
	trampoline(id, turn, NULL, called_back);
	AFTER();
}

static NOIPA void again(through *trampoline, int id, long turn)
{
	calls_trampoline(trampoline, id, turn);
	AFTER();
}

int main(void)
{
	/* sub $8,%rsp ; call *%rcx ; add $8,%rsp ; ret */
	static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3};
	unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char byte;

	memcpy(page + 64, code, sizeof(code));
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	for (long i = 0; i < TIMES; i++)
		again((through *)(page + 64), TRAMPOLINE, i);
	return read(STDIN_FILENO, &byte, 1) < 0;
}
