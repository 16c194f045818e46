/*
 * Chains through libraries: linked ones, called through the PLT, and ones that come and go, each where the other was.
 *
 * plugs library | come-and-go FIRST.so SECOND.so | resolve RESOLVED.so
 */
#define _GNU_SOURCE
#include "chains.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void linked_outer(long turn);

static NOIPA void calls_library(long turn)
{
	linked_outer(turn);
	AFTER();
}

typedef void entry(long turn);

/* gives where the library was */
static NOIPA void *calls_plug(const char *path, const char *name, long turn)
{
	void *plug = dlopen(path, RTLD_LAZY), *base = NULL;
	entry *function = plug ? (entry *)dlsym(plug, name) : NULL;
	Dl_info info;

	if (!function) {
		fprintf(stderr, "%s\n", dlerror());
		_exit(1);
	}
	if (dladdr((void *)function, &info))
		base = info.dli_fbase;
	function(turn);
	dlclose(plug);
	return base;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "library")) {
		for (long i = 0; i < TIMES; i++)
			calls_library(i);
	} else if (!strcmp(what, "come-and-go") && argc == 4) {
		int same = 0;

		for (long i = 0; i < TIMES; i++)
			same += calls_plug(argv[2], "first_outer", i) == calls_plug(argv[3], "second_outer", i);
		printf("%d\n", same);
	} else if (!strcmp(what, "resolve") && argc == 3) {
		for (long i = 0; i < TIMES; i++)
			calls_plug(argv[2], "resolved_calls_resolved", i);
	} else {
		return 2;
	}
	return 0;
}
