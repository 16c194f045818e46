/*
 * slowfs DIR LOOKUP_MS READ_MS: a file system in user space with one file, `big` (64 MiB). Looking a name up takes LOOKUP_MS, a read
 * READ_MS. It stays in the foreground and prints a line when it is mounted.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int lookup_ms, read_ms;

static int get(const char *path, struct stat *s, struct fuse_file_info *f)
{
	memset(s, 0, sizeof(*s));
	s->st_nlink = 1;
	if (!strcmp(path, "/")) {
		s->st_mode = 040755;
		return 0;
	}
	usleep(1000 * lookup_ms);
	if (strcmp(path, "/big"))
		return -ENOENT;
	s->st_mode = 0100444;
	s->st_size = 64 << 20;
	return 0;
}

static int opened(const char *path, struct fuse_file_info *f)
{
	/* /big may be mapped */
	return strcmp(path, "/big") ? -ENOENT : 0;
}

static int bytes(const char *path, char *b, size_t n, off_t o, struct fuse_file_info *f)
{
	usleep(1000 * read_ms);
	memset(b, 'x', n);
	return n;
}

static void *mounted(struct fuse_conn_info *c, struct fuse_config *conf)
{
	conf->entry_timeout = conf->attr_timeout = conf->negative_timeout = 0;
	puts("ready");
	fflush(stdout);
	return NULL;
}

static const struct fuse_operations operations = { .getattr = get, .open = opened, .read = bytes, .init = mounted };

int main(int argc, char **argv)
{
	char *words[] = { argv[0], "-f", argv[1], NULL };

	prctl(PR_SET_NAME, "slowfs");
	lookup_ms = atoi(argv[2]);
	read_ms = atoi(argv[3]);
	return fuse_main(3, words, &operations, NULL);
}
