// A file system that takes what is written to a file of it, and does to the writer what a bad disk does. The bytes it has
// taken are in a file outside. writefs MOUNTPOINT BACKING HOW N stays in the foreground until it is unmounted. HOW:
//   eio     the first N bytes are taken, then write(2) fails with EIO, once and for all
//   slow    each write takes N milliseconds
//   fsync   fsync(2) fails with EIO
//   close   close(2) fails with EIO
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int backing = -1, exists;
static const char *how;
static long n;

static int is(const char *what)
{
	return !strcmp(how, what);
}

static int tape_getattr(const char *path, struct stat *st, struct fuse_file_info *info)
{
	struct stat below;

	(void)info;
	memset(st, 0, sizeof(*st));
	st->st_nlink = 1;
	st->st_mode = S_IFDIR | 0755;
	if (!strcmp(path, "/"))
		return 0;
	if (!exists || strcmp(path, "/t.tape"))
		return -ENOENT;
	st->st_mode = S_IFREG | 0600;
	if (!fstat(backing, &below))
		st->st_size = below.st_size;
	return 0;
}

static int tape_create(const char *path, mode_t mode, struct fuse_file_info *info)
{
	(void)mode, (void)info;
	if (strcmp(path, "/t.tape"))
		return -EACCES;
	exists = 1;
	return 0;
}

static int tape_write(const char *path, const char *buf, size_t size, off_t at, struct fuse_file_info *info)
{
	struct timespec delay = { n / 1000, n % 1000 * 1000000L };

	(void)path, (void)info;
	if (is("slow"))
		nanosleep(&delay, NULL);
	if (is("eio")) {
		if (at >= n)
			return -EIO;
		if (at + (off_t)size > n)
			size = n - at;
	}
	return pwrite(backing, buf, size, at);
}

static int tape_fsync(const char *path, int data, struct fuse_file_info *info)
{
	(void)path, (void)data, (void)info;
	return is("fsync") ? -EIO : 0;
}

static int tape_flush(const char *path, struct fuse_file_info *info)
{
	(void)path, (void)info;
	return is("close") ? -EIO : 0;
}

static const struct fuse_operations OPERATIONS = {
	.getattr = tape_getattr,
	.create = tape_create,
	.write = tape_write,
	.fsync = tape_fsync,
	.flush = tape_flush,
};

int main(int argc, char **argv)
{
	char *arguments[] = { argv[0], "-f", "-s", "-o", "auto_unmount", argv[1], NULL };

	if (argc != 5)
		return 2;
	how = argv[3];
	n = atol(argv[4]);
	backing = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
	return backing < 0 ? 1 : fuse_main(6, arguments, &OPERATIONS, NULL);
}
