/*
 * What programs without libc have in common: calls, numbers, and an entry that hands the stack at the start, argc first,
 * to begin().
 */
static long call(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return ret;
}

static long number(const char *text)
{
	long n = 0;

	while (*text)
		n = n * 10 + *text++ - '0';
	return n;
}

static void begin(long *stack) __attribute__((used));
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
