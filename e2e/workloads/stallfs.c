// Shows the directory BACKING. While the file STALL is there, writes wait.
// stallfs MOUNTPOINT BACKING STALL stays in the foreground until it is unmounted.
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int backing;
static const char *stall;

static int done(int result)
{
	return result < 0 ? -errno : 0;
}

/* "/" is the directory itself */
static const char *at(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static int fs_getattr(const char *path, struct stat *st, struct fuse_file_info *info)
{
	(void)info;
	return done(fstatat(backing, at(path), st, AT_SYMLINK_NOFOLLOW));
}

static int fs_create(const char *path, mode_t mode, struct fuse_file_info *info)
{
	int fd = openat(backing, at(path), info->flags | O_CREAT, mode);

	info->fh = fd;
	return done(fd);
}

static int fs_open(const char *path, struct fuse_file_info *info)
{
	int fd = openat(backing, at(path), info->flags);

	info->fh = fd;
	return done(fd);
}

static int fs_read(const char *path, char *buf, size_t size, off_t offset, struct fuse_file_info *info)
{
	ssize_t n = pread(info->fh, buf, size, offset);

	(void)path;
	return n < 0 ? -errno : n;
}

static int fs_write(const char *path, const char *buf, size_t size, off_t offset, struct fuse_file_info *info)
{
	ssize_t n;

	(void)path;
	while (!access(stall, F_OK))
		usleep(5000);
	n = pwrite(info->fh, buf, size, offset);
	return n < 0 ? -errno : n;
}

static int fs_fsync(const char *path, int data, struct fuse_file_info *info)
{
	(void)path, (void)data;
	return done(fsync(info->fh));
}

static int fs_unlink(const char *path)
{
	return done(unlinkat(backing, at(path), 0));
}

static int fs_release(const char *path, struct fuse_file_info *info)
{
	(void)path;
	return done(close(info->fh));
}

static const struct fuse_operations OPERATIONS = {
	.getattr = fs_getattr,
	.create = fs_create,
	.open = fs_open,
	.read = fs_read,
	.write = fs_write,
	.fsync = fs_fsync,
	.unlink = fs_unlink,
	.release = fs_release,
};

int main(int argc, char **argv)
{
	char *arguments[] = { argv[0], "-f", argv[1], NULL };

	if (argc != 4)
		return 2;
	stall = argv[3];
	backing = open(argv[2], O_PATH | O_DIRECTORY);
	return backing < 0 ? 1 : fuse_main(3, arguments, &OPERATIONS, NULL);
}
