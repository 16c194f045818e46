// A file system of two files. Reads of big_file take between 20 and 800 ms: the n-th takes DELAYS[n % 10]. Reads of hang
// take 12 s. fsync of either takes 800 ms.
// slowfs MOUNTPOINT stays in the foreground until it is unmounted.
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define SIZE (1L << 40)

static const int DELAYS[] = { 20, 350, 35, 120, 800, 25, 60, 250, 40, 90 };
static atomic_uint reads;

static int slow_getattr(const char *path, struct stat *st, struct fuse_file_info *info)
{
	(void)info;
	memset(st, 0, sizeof(*st));
	st->st_nlink = 1;
	st->st_mode = S_IFREG | 0444;
	st->st_size = SIZE;
	if (!strcmp(path, "/"))
		st->st_mode = S_IFDIR | 0755;
	else if (strcmp(path, "/big_file") && strcmp(path, "/hang"))
		return -ENOENT;
	return 0;
}

static int slow_open(const char *path, struct fuse_file_info *info)
{
	info->direct_io = 1; // every read of the program is one read here
	return strcmp(path, "/big_file") && strcmp(path, "/hang") ? -ENOENT : 0;
}

static int slow_fsync(const char *path, int datasync, struct fuse_file_info *info)
{
	struct timespec delay = { 0, 800 * 1000000L };

	(void)path, (void)datasync, (void)info;
	nanosleep(&delay, NULL);
	return 0;
}

static int slow_read(const char *path, char *buf, size_t size, off_t at, struct fuse_file_info *info)
{
	int ms = strcmp(path, "/hang") ? DELAYS[atomic_fetch_add(&reads, 1) % 10] : 12000;
	struct timespec delay = { ms / 1000, ms % 1000 * 1000000L };

	(void)path, (void)at, (void)info;
	nanosleep(&delay, NULL);
	memset(buf, 'x', size);
	return size;
}

static const struct fuse_operations OPERATIONS = { .getattr = slow_getattr, .open = slow_open, .read = slow_read,
						    .fsync = slow_fsync };

int main(int argc, char **argv)
{
	char *arguments[] = { argv[0], "-f", "-o", "auto_unmount,allow_other", argv[1], NULL };

	return argc == 2 ? fuse_main(5, arguments, &OPERATIONS, NULL) : 2;
}
