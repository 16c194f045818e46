/*
 * Makes calls while the stack pointer and the frame pointer are anything but that, and makes calls with a sound stack between
 * them. Says how many of each.
 */
#define _GNU_SOURCE
#include "chains.h"
#include "sound.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* nothing may interrupt it: there is no stack for a signal */
static NOIPA void odd_call(unsigned long sp, unsigned long fp, long turn)
{
	long ret;

	__asm__ volatile("mov %%rsp, %%r12\n\t"
			 "mov %%rbp, %%r13\n\t"
			 "mov %[sp], %%rsp\n\t"
			 "mov %[fp], %%rbp\n\t"
			 "syscall\n\t"
			 "mov %%r12, %%rsp\n\t"
			 "mov %%r13, %%rbp\n\t"
			 : "=a"(ret)
			 : "a"(8L), "D"((long)(-1000 - ODD)), "S"(turn), "d"(0L), [sp] "r"(sp), [fp] "r"(fp)
			 : "rcx", "r11", "r12", "r13", "memory");
}

int main(void)
{
	size_t len = 1 << 20;
	char *room = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long middle = (unsigned long)room + len / 2, *words = (unsigned long *)middle;
	unsigned long self = (unsigned long)odd_call + 20;
	unsigned long values[] = {
		0, 1, 8, 4096, -1UL, -8UL, -4096UL, 0x7fffffffffffUL, 0x7ffffffff000UL, 0x800000000000UL,
		0x8000000000000000UL, 0xffff888000000000UL, 0xffffffff81000000UL, 0xffffffffff600000UL,
		middle, middle + 1, (unsigned long)room, (unsigned long)room + len - 1, (unsigned long)room + len,
		(unsigned long)room + 65536, (unsigned long)room + 65536 - 8, (unsigned long)main, (unsigned long)&len,
	};
	long n = sizeof(values) / sizeof(values[0]), turn = 0;

	/* frames that are each other's callers, for ever, and code addresses as far as one can see */
	for (long i = 0; i < 4096; i += 2) {
		words[i] = i % 4 ? middle : middle + 16;
		words[i + 1] = self;
	}
	for (long i = -4096; i < 0; i++)
		words[i] = self;
	mprotect(room + 65536, 4096, PROT_NONE);
	for (long sp = 0; sp < n; sp++)
		for (long fp = 0; fp < n; fp++) {
			odd_call(values[sp], values[fp], turn);
			sound_outer(turn++);
		}
	printf("%ld\n", turn);
	return 0;
}
