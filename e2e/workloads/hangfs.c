// A file system with three copies of a program. Once the file HANG exists, reads of /read and /libc.so.6 and closes of /flush are not answered.
// hangfs MOUNTPOINT PROGRAM HANG stays in the foreground until it is unmounted or killed.
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *hang;
static struct stat source;
static int file;

static int is(const char *path, const char *name)
{
	return !strcmp(path, name);
}

static void answer_never(void)
{
	if (!access(hang, F_OK))
		for (;;)
			pause();
}

static int hang_getattr(const char *path, struct stat *st, struct fuse_file_info *info)
{
	(void)info;
	memset(st, 0, sizeof(*st));
	st->st_nlink = 1;
	st->st_mode = S_IFREG | 0755;
	st->st_size = source.st_size;
	if (is(path, "/"))
		st->st_mode = S_IFDIR | 0755;
	else if (!is(path, "/read") && !is(path, "/flush") && !is(path, "/libc.so.6"))
		return -ENOENT;
	return 0;
}

static int hang_open(const char *path, struct fuse_file_info *info)
{
	(void)path;
	info->direct_io = 1; // nothing is read ahead
	return 0;
}

static int hang_read(const char *path, char *buf, size_t size, off_t at, struct fuse_file_info *info)
{
	(void)info;
	if (!is(path, "/flush"))
		answer_never();
	ssize_t read = pread(file, buf, size, at);
	return read < 0 ? -errno : (int)read;
}

static int hang_flush(const char *path, struct fuse_file_info *info)
{
	(void)info;
	if (is(path, "/flush"))
		answer_never();
	return 0;
}

static const struct fuse_operations OPERATIONS = { .getattr = hang_getattr, .open = hang_open, .read = hang_read,
						    .flush = hang_flush };

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	hang = argv[3];
	file = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (file < 0 || fstat(file, &source)) {
		perror(argv[2]);
		return 1;
	}
	char *args[] = { argv[0], "-f", argv[1], NULL };
	return fuse_main(3, args, &OPERATIONS, NULL);
}
