// Opens big_file and hang in DIR, makes the file `ready`, then waits: SIGUSR1 has it fsync the first, SIGUSR2 read the
// second; after that read it makes the file `returned`. SIGTERM ends it.
// slowcalls DIR
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void make(const char *name)
{
	FILE *file = fopen(name, "w");

	if (!file || fputs("yes\n", file) < 0 || fclose(file))
		exit(3);
}

static int open_in(const char *dir, const char *name)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		exit(4);
	return fd;
}

int main(int argc, char **argv)
{
	sigset_t set;
	int signal, slow, hang;
	char byte;

	if (argc != 2)
		return 2;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	slow = open_in(argv[1], "big_file");
	hang = open_in(argv[1], "hang");
	make("ready");
	while (!sigwait(&set, &signal)) {
		if (signal == SIGUSR1) {
			fsync(slow);
		} else {
			if (pread(hang, &byte, 1, 0) != 1)
				return 5;
			make("returned");
		}
	}
	return 1;
}
