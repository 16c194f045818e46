// Two threads whose descriptor 9 is another file, since before anybody looks; and ways to write a file without write().
//
//   apart DIR GO    main has DIR/shared at 9, a thread with a table of its own (unshare) DIR/own. Writes DIR/ready, waits for GO,
//                   then main reads 7 times and the thread 11 times.
//   apart DIR       writes 5 pages of DIR/mapped through a mapping, and 3 pages of DIR/sent with sendfile, and has both stored.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define PAGE 4096

static const char *go;
static int made;

static int at_nine(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT, 0644);

	return fd < 0 || dup2(fd, 9) != 9 || close(fd);
}

static void reads(int times)
{
	char byte;

	while (access(go, F_OK))
		usleep(10000);
	for (int i = 0; i < times; i++)
		if (pread(9, &byte, 1, 0) < 0)
			perror("pread");
}

static void *own(void *name)
{
	if (unshare(CLONE_FILES) || at_nine(name))
		perror("own");
	__atomic_store_n(&made, 1, __ATOMIC_RELEASE);
	reads(11);
	return NULL;
}

static int stores(void)
{
	int mapped = open("mapped", O_RDWR | O_CREAT, 0644), sent = open("sent", O_RDWR | O_CREAT, 0644);
	char *memory;

	if (ftruncate(mapped, 5 * PAGE))
		return 1;
	memory = mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, mapped, 0);
	if (memory == MAP_FAILED)
		return 1;
	memset(memory, 'm', 5 * PAGE);
	if (msync(memory, 5 * PAGE, MS_SYNC) || lseek(mapped, 0, SEEK_SET))
		return 1;
	if (sendfile(sent, mapped, NULL, 3 * PAGE) != 3 * PAGE)
		return 1;
	return fsync(mapped) || fsync(sent);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char name[256];

	if (argc < 2 || chdir(argv[1]))
		return 1;
	if (argc < 3)
		return stores();
	go = argv[2];
	if (at_nine("shared"))
		return 1;
	pthread_create(&thread, NULL, own, "own");
	while (!__atomic_load_n(&made, __ATOMIC_ACQUIRE))
		usleep(10000);
	snprintf(name, sizeof(name), "%s/ready", argv[1]);
	close(open(name, O_CREAT | O_WRONLY, 0644));
	reads(7);
	pthread_join(thread, NULL);
	return 0;
}
