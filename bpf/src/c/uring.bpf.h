/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors that operations of io_uring make and close. User space gets the
 * same records as of calls, of every task whose calls it would get them of: the
 * filters choose events, not changes of descriptors. Unseen are those of
 * operations that were asked for no result and succeeded, apart from the
 * submission of a CLOSE: they make descriptors, and close none.
 */
#ifndef __SYSTAPE_URING_H
#define __SYSTAPE_URING_H

/* IORING_OP_* (include/uapi/linux/io_uring.h) */
#define URING_ACCEPT 13
#define URING_OPENAT 18
#define URING_CLOSE 19
#define URING_OPENAT2 28
#define URING_SOCKET 45
#define URING_FIXED_FD_INSTALL 54

static __always_inline bool follows_files(struct task_struct *task)
{
	return window == WINDOW_OPEN && !is_nobody(task) && is_marked(task);
}

static __always_inline u16 ring_flags(struct task_struct *task)
{
	return cpu_is_recorded() && is_recorded(task) ? WIRE_OF_RING : WIRE_OF_RING | WIRE_UNSELECTED;
}

/* A record is lost: the analyzer is told, as no call stands for it. */
static __always_inline void lose_change(void)
{
	lose_state(FIELD(current_task(), tgid));
	count_drop(DROP_URING);
}

/*
 * A CLOSE of this descriptor was submitted. It may wait for other operations;
 * when it is over, tell_descriptor() says what came of it.
 */
__noinline int tell_ring_closing(s32 fd)
{
	struct task_struct *task = current_task();
	struct wire_closing c = {};

	if (!follows_files(task))
		return 0;
	begin_closing(&c, NR_CLOSE, NATIVE_ABI);
	c.hdr.flags = ring_flags(task);
	fill_ident(&c.id, task);
	c.args[0] = (u32)fd;
	if (send_state(&c, sizeof(c), sizeof(c), c.id.pid))
		count_drop(DROP_URING);
	return 0;
}

static __always_inline bool is_close_on_exec(struct task_struct *task, u32 fd)
{
	unsigned long *bits = BPF_CORE_READ(task, files, fdt, close_on_exec), word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), bits + fd / 64);
	return word >> (fd % 64) & 1;
}

/*
 * What a descriptor of the current task is now, as if the call `nr` had made it:
 * read from its table, so true whatever happened since the operation did its
 * work. A record without a name: it is not open.
 */
__noinline int tell_descriptor(u32 nr, s32 fd)
{
	struct task_struct *task = current_task();
	struct dentry *dentry = NULL;
	struct inode *inode;
	struct file *file;
	struct slot *s;
	u32 index, len;
	u64 size = 0;
	bool cloexec;

	if (fd < 0 || !follows_files(task))
		return 0;
	s = slot_get(&index);
	if (!s) {
		lose_change();
		return 0;
	}
	__builtin_memset(&s->rec, 0, sizeof(s->rec));
	s->rec.hdr.kind = WIRE_SYSCALL;
	s->rec.hdr.flags = ring_flags(task);
	s->rec.hdr.cpu = bpf_get_smp_processor_id();
	fill_ident(&s->rec.id, task);
	s->rec.end = bpf_ktime_get_ns();
	s->rec.start = s->rec.end;
	s->rec.nr = nr;
	s->rec.abi = NATIVE_ABI;
	s->rec.state = CALL_COMPLETE;
	s->rec.ret = fd;
	file = file_of(fd);
	if (file)
		dentry = BPF_CORE_READ(file, f_path.dentry);
	if (dentry) {
		cloexec = is_close_on_exec(task, fd);
		if (nr == NR_FCNTL)
			s->rec.args[1] = cloexec ? F_DUPFD_CLOEXEC : F_DUPFD;
		else
			s->rec.args[nr == NR_OPENAT ? 2 : nr == NR_ACCEPT4 ? 3 : 1] = cloexec ? O_CLOEXEC : 0;
		len = walk_path(index, SLOT_BYTE(slot, 0), (u64)BPF_CORE_READ(file, f_path.mnt), (u64)dentry);
		size = at_most(len, SLOT_DATA);
		s->rec.cap[0].arg = CAPTURE_NAME0;
		s->rec.cap[0].status = BYTES_WHOLE;
		s->rec.cap[0].len = size;
		s->rec.cap[0].full = size;
		s->rec.captures = 1;
		inode = BPF_CORE_READ(dentry, d_inode);
		if (inode && (s->data[0] == NAME_PATH || s->data[0] == NAME_DELETED)) {
			fill_inode((void *)&s->data[size & SLOT_DATA_MASK], inode);
			s->rec.cap[1].arg = CAPTURE_INODE;
			s->rec.cap[1].status = BYTES_WHOLE;
			s->rec.cap[1].len = sizeof(struct wire_inode);
			s->rec.captures = 2;
			size += sizeof(struct wire_inode);
		}
	} else if (nr == NR_FCNTL) {
		s->rec.args[1] = F_DUPFD;
	}
	if (send_state(&s->rec, sizeof(s->rec) + size, sizeof(s->rec) + SLOT_DATA, s->rec.id.pid))
		count_drop(DROP_URING);
	slot_put(index);
	return 0;
}

/*
 * One of several results of an operation, which may be a new descriptor (a
 * multishot ACCEPT) or a number of bytes: what is behind the number is told once
 * if it is a socket.
 */
__noinline int tell_accepted(s32 fd)
{
	struct task_struct *task = current_task();
	struct file *file = follows_files(task) ? file_of(fd) : NULL;
	struct dentry *dentry = file ? BPF_CORE_READ(file, f_path.dentry) : NULL;
	struct inode *inode = dentry ? BPF_CORE_READ(dentry, d_inode) : NULL;
	u64 address, tag;

	if (!inode || (LOADED(struct inode, inode, i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	/* beside what name_path() notes of the same entry */
	address = (u64)dentry + 1;
	tag = ((tag_of(inode, dentry) * 31 + (u32)fd) * 31 + (u64)BPF_CORE_READ(task, files)) | 1;
	if (was_named(address, tag))
		return 0;
	bpf_map_update_elem(&named_files, &address, &tag, BPF_ANY);
	return tell_descriptor(NR_FCNTL, fd);
}

/* Where a request keeps what its operation needs, if that is of type `type`; else NULL. */
#define OPERANDS(type, req)                                                                                            \
	(bpf_core_field_exists((req)->cmd) && bpf_core_field_exists(((struct type *)0)->file_slot) ?                   \
		 (struct type *)((void *)(req) + bpf_core_field_offset((req)->cmd)) :                                  \
		 NULL)

/* Whether the operation's new file goes into the ring's own table, as far as known. */
static __always_inline bool is_fixed(struct io_kiocb *req, u8 opcode)
{
	struct io_accept *accept = OPERANDS(io_accept, req);
	struct io_socket *socket = OPERANDS(io_socket, req);
	struct io_open *open = OPERANDS(io_open, req);

	if (opcode == URING_ACCEPT)
		return !accept || BPF_CORE_READ(accept, file_slot);
	if (opcode == URING_SOCKET)
		return !socket || BPF_CORE_READ(socket, file_slot);
	return !open || BPF_CORE_READ(open, file_slot);
}

/* What an operation that is over made of a descriptor. */
static __always_inline void tell_change(struct io_kiocb *req, u8 opcode, s32 ret)
{
	struct io_close *close = OPERANDS(io_close, req);

	switch (opcode) {
	case URING_CLOSE:
		if (close && !BPF_CORE_READ(close, file_slot))
			tell_descriptor(NR_FCNTL, BPF_CORE_READ(close, fd));
		return;
	case URING_FIXED_FD_INSTALL:
		tell_descriptor(NR_FCNTL, ret);
		return;
	case URING_OPENAT:
	case URING_OPENAT2:
	case URING_ACCEPT:
	case URING_SOCKET:
		if (ret >= 0 && !is_fixed(req, opcode))
			tell_descriptor(opcode == URING_ACCEPT ? NR_ACCEPT4 :
					opcode == URING_SOCKET ? NR_SOCKET :
								 NR_OPENAT,
					ret);
	}
}

#endif
