/*
 * Programs to be recorded, whose calls can be counted from outside. The first argument says which:
 *
 *   spin N              N getppid calls
 *   threads HOW N...    a thread for each N, which says "TID N", reads a byte from a pipe, and makes N getppid calls;
 *                       HOW: now, or usr1: the bytes are written once SIGUSR1 arrives
 *   numbered FILE N US  lseek(-1, i) for i = 1...N, US microseconds apart; before each, its CLOCK_MONOTONIC time goes to
 *                       word i of FILE, which grows as it is needed, and i to word 0
 *   rename N0 NAME N1 … N0 getppid calls, then calls itself NAME, N1 more, and so on
 *   int80 N             N calls of i386 getppid (nr 64), which by x86-64 numbers is semget
 *   polite N            N times: opens file-I in the directory made-by-polite, makes 3 calls lseek(fd, I), closes it
 *   open BYTES          opens a file of that name, which is not there
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int go[2];

static void spin(long n)
{
	while (n--)
		syscall(SYS_getppid);
}

static void *one_thread(void *n)
{
	char byte, line[64];
	int len = snprintf(line, sizeof(line), "%ld %ld\n", syscall(SYS_gettid), (long)n);

	if (write(1, line, len) == len && read(go[0], &byte, 1) == 1)
		spin((long)n);
	return NULL;
}

static int threads(int usr1, char **counts)
{
	pthread_t thread[16];
	sigset_t set;
	int n = 0, sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (pipe(go))
		return 1;
	for (; counts[n] && n < 16; n++)
		pthread_create(&thread[n], NULL, one_thread, (void *)atol(counts[n]));
	if (usr1)
		sigwait(&set, &sig);
	if (write(go[1], "0123456789abcdef", n) != n)
		return 1;
	while (n--)
		pthread_join(thread[n], NULL);
	return 0;
}

/* Words of the file that are mapped at a time. */
#define STEP (1L << 20)

static volatile long *step(int fd, long from)
{
	if (ftruncate(fd, (from + STEP) * sizeof(long)))
		return NULL;
	void *words = mmap(NULL, STEP * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
			   from * sizeof(long));
	return words == MAP_FAILED ? NULL : words;
}

static int numbered(const char *file, long n, long us)
{
	int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
	volatile long *words = step(fd, 0), *count = words;
	struct timespec now;

	for (long i = 1; words && i <= n; i++) {
		if (i % STEP == 0) {
			if (words != count)
				munmap((void *)words, STEP * sizeof(long));
			words = step(fd, i);
			if (!words)
				return 1;
		}
		clock_gettime(CLOCK_MONOTONIC, &now); /* vDSO: no call */
		words[i % STEP] = now.tv_sec * 1000000000L + now.tv_nsec;
		*count = i;
		syscall(SYS_lseek, -1, i, SEEK_SET);
		if (us)
			usleep(us);
	}
	return words ? 0 : 1;
}

static int polite(long n)
{
	char name[64];

	mkdir("made-by-polite", 0700);
	for (long i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "made-by-polite/file-%ld", i);
		int fd = open(name, O_RDWR | O_CREAT, 0600);
		for (int k = 0; k < 3; k++)
			if (lseek(fd, i, SEEK_SET) != i)
				return 1;
		if (close(fd))
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (!strcmp(what, "spin")) {
		spin(atol(argv[2]));
	} else if (!strcmp(what, "threads")) {
		return threads(!strcmp(argv[2], "usr1"), argv + 3);
	} else if (!strcmp(what, "numbered") && argc == 5) {
		return numbered(argv[2], atol(argv[3]), atol(argv[4]));
	} else if (!strcmp(what, "rename")) {
		spin(atol(argv[2]));
		for (int i = 3; i + 1 < argc; i += 2) {
			prctl(PR_SET_NAME, argv[i]);
			spin(atol(argv[i + 1]));
		}
	} else if (!strcmp(what, "int80")) {
		for (long n = atol(argv[2]), ret; n--;)
			__asm__ volatile("int $0x80" : "=a"(ret) : "a"(64) : "memory", "r8", "r9", "r10", "r11");
	} else if (!strcmp(what, "polite")) {
		return polite(atol(argv[2]));
	} else if (!strcmp(what, "open")) {
		return open(argv[2], O_RDONLY) != -1;
	} else {
		return 2;
	}
	return 0;
}
