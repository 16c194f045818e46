/* hangmap FILE: mounts a FUSE file system on a file, from which it can be looked at and is never opened: the open waits until
 * the file system is unmounted or who waits is killed (a server that does not even hear of that keeps the dead for ever). Returns once it is mounted; goes on in the background. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static void answer(int fuse, unsigned long long unique, int error, const void *body, size_t len)
{
	char out[512];
	struct fuse_out_header header = { .len = sizeof(header) + len, .error = error, .unique = unique };

	memcpy(out, &header, sizeof(header));
	if (len)
		memcpy(out + sizeof(header), body, len);
	if (write(fuse, out, header.len) < 0)
		perror("answer");
}

static void serve(int fuse)
{
	static char in[1 << 18];
	ssize_t len;

	while ((len = read(fuse, in, sizeof(in))) > 0) {
		struct fuse_in_header *header = (void *)in;

		if (header->opcode == FUSE_INIT) {
			struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = 4096 };

			answer(fuse, header->unique, 0, &init, sizeof(init));
		} else if (header->opcode == FUSE_GETATTR) {
			struct fuse_attr_out attr = { .attr_valid = 3600, .attr = {
				.ino = 1, .size = 4096, .mode = 0100644, .nlink = 1, .blksize = 4096,
			} };

			answer(fuse, header->unique, 0, &attr, sizeof(attr));
		} else if (header->opcode == FUSE_INTERRUPT) {
			struct fuse_interrupt_in *interrupt = (void *)(header + 1);

			answer(fuse, interrupt->unique, -EINTR, NULL, 0);
		}
	}
}

int main(int argc, char **argv)
{
	char options[128];
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (argc != 2 || fuse < 0)
		return 1;
	snprintf(options, sizeof(options), "fd=%d,rootmode=100644,user_id=0,group_id=0", fuse);
	if (mount("hangmap", argv[1], "fuse.hangmap", 0, options)) {
		perror("mount");
		return 1;
	}
	if (fork())
		_exit(0);
	setsid();
	for (int fd = 0; fd < 3; fd++)
		close(fd); /* nobody waits for the end of its output */
	serve(fuse);
	return 0;
}
