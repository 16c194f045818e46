/*
 * Reads and writes files by operations that it is told of later: with "aio" by
 * io_submit, with "uring" by io_uring, with "sqpoll" by a ring that the kernel
 * polls. Of each it prints a line in the order in which it was told, "OP FILE
 * RESULT", where a negative result is the error's number. Known numbers: files
 * DIR/a and DIR/b, 8 writes and 8 reads of 4096 bytes of a, 3 writes of 1000
 * bytes of b, one read of 4096 at the end of b, which gets 1000, and one read of
 * b by a descriptor that is open for writing only.
 *
 * usage: operations aio|uring|sqpoll DIR [wait]: "wait" first prints its pid
 * and waits for a line, with what it needs open already
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PIECE 4096UL

static char *memory;
static int file_a, file_b, write_only;
static char name_a[4096], name_b[4096];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- io_submit */

static aio_context_t context;

static void aio(int opcode, int fd, uint64_t bytes, int64_t offset)
{
	struct iocb iocb = { .aio_fildes = fd, .aio_lio_opcode = opcode, .aio_buf = (uintptr_t)memory,
			     .aio_nbytes = bytes, .aio_offset = offset };
	struct iocb *list[] = { &iocb };
	struct io_event event;

	if (syscall(SYS_io_submit, context, 1L, list) != 1) {
		/* refused, as an operation on a descriptor that may not do it is: there is none */
		return;
	}
	if (syscall(SYS_io_getevents, context, 1L, 1L, &event, NULL) != 1)
		die("io_getevents");
	printf("%s %s %lld\n", opcode == IOCB_CMD_PREAD ? "PREAD" : "PWRITE", fd == file_a ? name_a : name_b,
	       (long long)event.res);
}

/* Most of one call, with one that cannot be: record looks at so many. */
#define MANY 1024

/* Several at once, told of at once. */
static void aio_many(int opcode, int fd, unsigned count)
{
	static struct iocb iocbs[MANY], *list[MANY];
	static struct io_event events[MANY];

	for (unsigned i = 0; i < count; i++) {
		iocbs[i] = (struct iocb){ .aio_fildes = fd, .aio_lio_opcode = opcode,
					  .aio_buf = (uintptr_t)memory + i % 8 * PIECE, .aio_nbytes = PIECE, .aio_offset = i * PIECE };
		list[i] = &iocbs[i];
	}
	/* the last cannot be: what came before it is submitted */
	iocbs[count] = (struct iocb){ .aio_fildes = 9999, .aio_lio_opcode = opcode };
	list[count] = &iocbs[count];
	if (syscall(SYS_io_submit, context, count + 1L, list) != (long)count)
		die("io_submit");
	for (unsigned got = 0; got < count;) {
		long n = syscall(SYS_io_getevents, context, 1L, (long)count, events, NULL);

		if (n <= 0)
			die("io_getevents");
		for (long i = 0; i < n; i++)
			printf("%s %s %lld\n", opcode == IOCB_CMD_PREAD ? "PREAD" : "PWRITE", name_a, (long long)events[i].res);
		got += n;
	}
}

/* ---- io_uring */

static int ring;
static struct io_uring_params params;
static char *rings;
static struct io_uring_sqe *entries;

static void make_ring(unsigned flags)
{
	size_t sq, cq;

	params.flags = flags;
	params.sq_thread_idle = 1000;
	ring = syscall(SYS_io_uring_setup, 32, &params);
	if (ring < 0)
		die("io_uring_setup");
	sq = params.sq_off.array + params.sq_entries * sizeof(uint32_t);
	cq = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	rings = mmap(NULL, sq > cq ? sq : cq, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
	entries = mmap(NULL, params.sq_entries * sizeof(*entries), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
		       IORING_OFF_SQES);
	if (rings == MAP_FAILED || entries == MAP_FAILED)
		die("mmap of a ring");
}

static int32_t uring(struct io_uring_sqe sqe)
{
	uint32_t *tail = (uint32_t *)(rings + params.sq_off.tail), *array = (uint32_t *)(rings + params.sq_off.array);
	uint32_t *head = (uint32_t *)(rings + params.cq_off.head), *ready = (uint32_t *)(rings + params.cq_off.tail);
	struct io_uring_cqe *results = (struct io_uring_cqe *)(rings + params.cq_off.cqes);
	uint32_t at = *tail & (params.sq_entries - 1), flags = IORING_ENTER_GETEVENTS;
	int32_t result;

	entries[at] = sqe;
	array[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (params.flags & IORING_SETUP_SQPOLL)
		flags |= IORING_ENTER_SQ_WAKEUP;
	while (__atomic_load_n(ready, __ATOMIC_ACQUIRE) == *head)
		if (syscall(SYS_io_uring_enter, ring, 1, 1, flags, NULL, 0) < 0 && errno != EINTR)
			die("io_uring_enter");
	result = results[*head & (params.cq_entries - 1)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return result;
}

static void move(int opcode, const char *op, int fd, uint32_t bytes, uint64_t offset)
{
	struct iovec vector = { memory, bytes };
	struct io_uring_sqe sqe = { .opcode = opcode, .fd = fd, .addr = (uintptr_t)memory, .len = bytes, .off = offset };
	int32_t result;

	if (opcode == IORING_OP_READV || opcode == IORING_OP_WRITEV) {
		sqe.addr = (uintptr_t)&vector;
		sqe.len = 1;
	}
	result = uring(sqe);
	printf("%s %s %d\n", op, fd == file_a ? name_a : name_b, result);
}

int main(int argc, char **argv)
{
	int is_aio = !strcmp(argv[1], "aio");
	char line[8];

	snprintf(name_a, sizeof(name_a), "%s/a", argv[2]);
	snprintf(name_b, sizeof(name_b), "%s/b", argv[2]);
	memory = aligned_alloc(PIECE, 16 * PIECE);
	memset(memory, 'x', 16 * PIECE);
	file_a = open(name_a, O_RDWR | O_CREAT | O_TRUNC | (is_aio ? O_DIRECT : 0), 0600);
	file_b = open(name_b, O_RDWR | O_CREAT | O_TRUNC, 0600);
	write_only = open(name_b, O_WRONLY);
	if (file_a < 0 || file_b < 0 || write_only < 0)
		die("open");
	if (is_aio && syscall(SYS_io_setup, MANY, &context))
		die("io_setup");
	if (!is_aio)
		make_ring(strcmp(argv[1], "sqpoll") ? 0 : IORING_SETUP_SQPOLL);
	if (argc > 3) {
		printf("%d\n", getpid());
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			die("stdin");
	}
	if (is_aio) {
		aio_many(IOCB_CMD_PWRITE, file_a, 8);
		aio_many(IOCB_CMD_PREAD, file_a, 8);
		aio_many(IOCB_CMD_PREAD, file_a, 100);
		aio_many(IOCB_CMD_PREAD, file_a, MANY - 1);
		for (int i = 0; i < 3; i++)
			aio(IOCB_CMD_PWRITE, file_b, 1000, i * 1000);
		aio(IOCB_CMD_PREAD, file_b, PIECE, 2000);
		aio(IOCB_CMD_PREAD, write_only, PIECE, 0);
		return 0;
	}
	for (int i = 0; i < 8; i++)
		move(i & 1 ? IORING_OP_WRITEV : IORING_OP_WRITE, i & 1 ? "WRITEV" : "WRITE", file_a, PIECE, i * PIECE);
	for (int i = 0; i < 8; i++)
		move(i & 1 ? IORING_OP_READV : IORING_OP_READ, i & 1 ? "READV" : "READ", file_a, PIECE, i * PIECE);
	for (int i = 0; i < 3; i++)
		move(IORING_OP_WRITE, "WRITE", file_b, 1000, i * 1000);
	move(IORING_OP_READ, "READ", file_b, PIECE, 2000);
	move(IORING_OP_READ, "READ", write_only, PIECE, 0);
	/* by the number in the ring's own table; an open; a close */
	if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &file_a, 1))
		die("io_uring_register");
	printf("READ %s %d\n", name_a,
	       uring((struct io_uring_sqe){ .opcode = IORING_OP_READ, .fd = 0, .flags = IOSQE_FIXED_FILE,
					    .addr = (uintptr_t)memory, .len = 512 }));
	int opened = uring((struct io_uring_sqe){ .opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (uintptr_t)name_b,
						  .open_flags = O_RDONLY });
	printf("OPENAT %s %d\n", name_b, opened);
	printf("CLOSE %s %d\n", name_b, uring((struct io_uring_sqe){ .opcode = IORING_OP_CLOSE, .fd = opened }));
	return 0;
}
