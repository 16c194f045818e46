/*
 * What the programs with known call chains share. Each event is lseek(-1000 - CASE, TURN), which fails; seen from outside the
 * descriptor says which case it is, and the case which functions are on the stack.
 *
 * A function of a chain must be on the stack: it is not inlined, cloned or folded into its twin (noipa), and something is left to
 * do behind its call, so that this is no tail call.
 */
#ifndef CHAINS_H
#define CHAINS_H

#include <unistd.h>

/* events of a case; a prime */
#define TIMES 211

#define NOIPA __attribute__((noipa))
#define INLINED __attribute__((always_inline)) inline
#define AFTER() __asm__ volatile("" ::: "memory")

enum {
	PLAIN = 1, INLINES, RECURSION, DEEP, TRAP, ALARM, VDSO, ALTSTACK, REALIGN, VFORK, FORK, THREAD, CLONE, COROUTINE, JIT,
	VARIED, FLOOD, TRAMPOLINE,
	LIBRARY = 20, FIRST, SECOND, RESOLVER,
	TEMPLATE = 30, LAMBDA, DESTRUCTOR,
	HOSTILE = 40, ODD,
	GENERIC = 50, CLOSURE, DYNAMIC,
};

#ifdef RAW
/* the call is in the function itself: a C library's wrapper has no frame pointer, which hides its caller */
#define EVENT(id, turn) do { \
	long ret_; \
	__asm__ volatile("syscall" : "=a"(ret_) : "a"(8L), "D"((long)(-1000 - (id))), "S"((long)(turn)), "d"(0L) \
			 : "rcx", "r11", "memory"); \
} while (0)
#else
#define EVENT(id, turn) do { lseek(-1000 - (id), (turn), SEEK_SET); AFTER(); } while (0)
#endif

#endif
