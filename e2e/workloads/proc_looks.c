/*
 * proc_looks HZ: looks at all threads by /proc, as xcapture of 0xtools does: `stat` of each, `syscall` and `wchan` of those that run
 * or wait for a disk. For `make bench-always`.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char bytes[4096];
static volatile unsigned long sum;

static long read_file(const char *pid, const char *tid, const char *name)
{
	char path[128];
	long size;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/task/%s/%s", pid, tid, name);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -1;
	size = read(fd, bytes, sizeof(bytes) - 1);
	close(fd);
	if (size >= 0)
		bytes[size] = 0;
	return size;
}

static void look_at(const char *pid, const char *tid)
{
	const char *end;

	if (read_file(pid, tid, "stat") <= 0)
		return;
	end = strrchr(bytes, ')');
	if (!end || strlen(end) < 3)
		return;
	sum += end[2];
	if (end[2] == 'R' || end[2] == 'D') {
		read_file(pid, tid, "syscall");
		read_file(pid, tid, "wchan");
	}
}

static void look(void)
{
	DIR *processes = opendir("/proc");
	struct dirent *process, *thread;

	while (processes && (process = readdir(processes))) {
		char path[64];
		DIR *threads;

		if (!isdigit(process->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/task", process->d_name);
		threads = opendir(path);
		while (threads && (thread = readdir(threads)))
			if (isdigit(thread->d_name[0]))
				look_at(process->d_name, thread->d_name);
		if (threads)
			closedir(threads);
	}
	if (processes)
		closedir(processes);
}

int main(int argc, char **argv)
{
	long hz = argc > 1 ? atol(argv[1]) : 20;
	struct timespec pause = { 0, 1000000000L / (hz > 1 ? hz : 2) };

	for (;;) {
		look();
		nanosleep(&pause, NULL);
	}
}
