// Passes a static probe and calls a function, both with the number of the pass, a known number of times.
//   passes N [NAME N ...]      N passes, then calls itself NAME, N more, and so on
//   passes threads N ...       a thread for each N; prints "TID N" of each, and waits for the file `go`
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noipa)) int hit(int i)
{
	/* a note as sys/sdt.h writes it */
	__asm__ volatile("990:\tnop\n"
			 "\t.pushsection .note.stapsdt,\"\",\"note\"\n"
			 "\t.balign 4\n"
			 "\t.4byte 992f-991f, 994f-993f, 3\n"
			 "991:\t.asciz \"stapsdt\"\n"
			 "992:\t.balign 4\n"
			 "993:\t.8byte 990b, 0, 0\n"
			 "\t.asciz \"passes\", \"hit\", \"-4@%0\"\n"
			 "994:\t.balign 4\n"
			 "\t.popsection\n" ::"r"(i));
	return i + 1;
}

static void hits(int n)
{
	for (int i = 0; i < n; i++)
		hit(i);
}

static void *thread(void *n)
{
	printf("%ld %ld\n", (long)syscall(SYS_gettid), (long)n);
	fflush(stdout);
	while (access("go", F_OK))
		usleep(10000);
	hits((int)(long)n);
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "threads")) {
		pthread_t threads[16];

		for (int i = 2; i < argc; i++)
			pthread_create(&threads[i - 2], NULL, thread, (void *)atol(argv[i]));
		for (int i = 2; i < argc; i++)
			pthread_join(threads[i - 2], NULL);
		return 0;
	}
	hits(argc > 1 ? atoi(argv[1]) : 0);
	for (int i = 2; i + 1 < argc; i += 2) {
		prctl(PR_SET_NAME, argv[i]);
		hits(atoi(argv[i + 1]));
	}
	return 0;
}
