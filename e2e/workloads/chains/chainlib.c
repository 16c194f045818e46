/*
 * A shared library with a chain, its functions called PREFIX_leaf, PREFIX_middle, PREFIX_outer, and their case ID. With RESOLVED
 * also PREFIX_resolved, whose address is found out at its first call by a function that makes the call.
 */
#include "chains.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(function) JOIN(PREFIX, function)

static NOIPA void NAME(leaf)(long turn)
{
	EVENT(ID, turn);
	AFTER();
}

static NOIPA void NAME(middle)(long turn)
{
	NAME(leaf)(turn);
	AFTER();
}

NOIPA void NAME(outer)(long turn)
{
	NAME(middle)(turn);
	AFTER();
}

#ifdef RESOLVED
static void NAME(nothing)(void)
{
	AFTER();
}

static void (*NAME(resolve)(void))(void)
{
	EVENT(RESOLVER, 0);
	return NAME(nothing);
}

void NAME(resolved)(void) __attribute__((ifunc(RESOLVED)));

/* the first call after each dlopen goes through the dynamic linker's lazy binding to NAME(resolve) */
NOIPA void NAME(calls_resolved)(void)
{
	NAME(resolved)();
	AFTER();
}
#endif
