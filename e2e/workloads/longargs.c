/* longargs MIB: points its own argument area at a mapping of so many MiB (prctl(2) PR_SET_MM_MAP, which needs no right), as
 * nobody where it may, prints its pid and sleeps. /proc/PID/cmdline is that long then, and takes next to no memory of its own. */
#define _GNU_SOURCE
#include <linux/prctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	size_t len = (size_t)(argc > 1 ? atoi(argv[1]) : 16) << 20;
	struct prctl_mm_map map = { .exe_fd = -1 };
	unsigned long long fields[53] = { 0 };
	char line[4096] = "", *rest, *area;
	FILE *stat = fopen("/proc/self/stat", "r");

	if (!stat || !fgets(line, sizeof(line), stat))
		return 1;
	fclose(stat);
	rest = strrchr(line, ')') + 2;
	/* numbered as in proc(5): the state, after the name, is 3 */
	for (int n = 3; n < 53 && (rest = n == 3 ? strtok(rest, " ") : strtok(NULL, " ")); n++)
		fields[n] = strtoull(rest, NULL, 10);
	area = mmap(NULL, len + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area == MAP_FAILED)
		return 1;
	memset(area, 'A', 100);
	if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
		return 1;
	map.start_code = fields[26];
	map.end_code = fields[27];
	map.start_stack = fields[28];
	map.start_data = fields[45];
	map.end_data = fields[46];
	map.start_brk = fields[47];
	map.brk = (uintptr_t)sbrk(0);
	map.arg_start = (uintptr_t)area;
	map.arg_end = map.env_start = map.env_end = (uintptr_t)area + len;
	if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0)) {
		perror("prctl");
		return 1;
	}
	printf("%d\n", getpid());
	fflush(stdout);
	for (;;)
		usleep(10000);
}
