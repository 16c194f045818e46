/*
 * Loads libraries whose unwind or debug information is broken, and makes calls from them and from here.
 *
 * hostile PLUG...    of a path with "fifo" or "zero" in it, once it is loaded, a pipe or a link to /dev/zero takes the place
 */
#include "chains.h"
#include "sound.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef void entry(long turn);

static NOIPA void calls_plug(entry *plug, long turn)
{
	plug(turn);
	AFTER();
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		void *plug = dlopen(argv[i], RTLD_NOW);
		entry *function = plug ? (entry *)dlsym(plug, "plug_outer") : NULL;

		if (!function) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		if (strstr(argv[i], "fifo"))
			unlink(argv[i]), mkfifo(argv[i], 0600);
		if (strstr(argv[i], "zero") && (unlink(argv[i]) || symlink("/dev/zero", argv[i])))
			return 1;
		for (long turn = 0; turn < 13; turn++) {
			calls_plug(function, i * 1000 + turn);
			sound_outer(i * 1000 + turn);
		}
	}
	return 0;
}
