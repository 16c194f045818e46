/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Family "io_uring": operations that a program submits, and is told of later:
 * those of io_uring, and those of io_submit ("aio"). Of each two records, which
 * user space pairs by the kernel's address of the request, or the program's of
 * its iocb.
 */
#ifndef __SYSTAPE_OPERATIONS_H
#define __SYSTAPE_OPERATIONS_H

/* Most iocbs and events of one call that are looked at, and those of a round: the verifier walks a round once. */
#define IOCBS_MOST 1024
#define IOCBS_ROUND 32

/* IORING_OP_*, IORING_CQE_F_* (include/uapi/linux/io_uring.h) */
#define URING_READV 1
#define URING_WRITEV 2
#define URING_READ_FIXED 4
#define URING_WRITE_FIXED 5
#define URING_READ 22
#define URING_WRITE 23
#define CQE_NOTIFIES 8

#define BIT(n) (1ULL << (n))
#define BITS(from, to) (BIT((to) + 1) - BIT(from))
/*
 * Operations that are done on no file (needs_file in io_uring/opdef.c): what is
 * there of a descriptor is another request's. POLL_REMOVE; TIMEOUT and its
 * removal; ASYNC_CANCEL, LINK_TIMEOUT; OPENAT to STATX; MADVISE; OPENAT2,
 * EPOLL_CTL; buffers; RENAMEAT to LINKAT; SETXATTR, GETXATTR, SOCKET; WAITID and
 * futexes; PIPE. Of a NOP it is seldom one. Of a number above 62 it is not known.
 */
#define URING_WITHOUT_FILE                                                                                             \
	(BIT(0) | BIT(7) | BITS(11, 12) | BITS(14, 15) | BITS(18, 21) | BIT(25) | BITS(28, 29) | BITS(31, 32) |        \
	 BITS(35, 39) | BIT(42) | BITS(44, 45) | BITS(50, 53) | BIT(62))

/* include/uapi/linux/aio_abi.h, what is read of struct iocb and struct io_event: 5.10 counts the stack of all calls together */
#define IOCB_OPCODE 16
#define IOCB_FD 20
#define IOCB_BYTES 32
#define IOCB_OFFSET 40
#define EVENT_IOCB 8
#define EVENT_RES 16
#define EVENT_SIZE 32

static __always_inline void name_operand(struct wire_operation *w, struct file *file)
{
	struct dentry *dentry = file ? BPF_CORE_READ(file, f_path.dentry) : NULL;

	if (!dentry)
		return;
	w->file = (u64)dentry;
	w->file_tag = name_path(BPF_CORE_READ(file, f_path.mnt), dentry, w->row.ts);
}

static __always_inline bool is_read_or_write(u8 opcode)
{
	switch (opcode) {
	case URING_READV:
	case URING_WRITEV:
	case URING_READ_FIXED:
	case URING_WRITE_FIXED:
	case URING_READ:
	case URING_WRITE:
		return true;
	}
	return false;
}

static __always_inline int submitted(struct io_kiocb *req, u8 opcode)
{
	struct io_close *close = req && opcode == URING_CLOSE ? OPERANDS(io_close, req) : NULL;
	struct wire_operation w = {};
	u32 slot = close ? BPF_CORE_READ(close, file_slot) : 0;

	if (!begin_row(&w.row, WIRE_OPERATION, 0))
		goto closing;
	w.address = (u64)req;
	w.opcode = opcode;
	w.fd = -1;
	if (slot) {
		w.row.hdr.flags |= OPERATION_FIXED;
		w.fd = slot - 1;
	} else if (close) {
		w.fd = BPF_CORE_READ(close, fd);
	} else if (req && bpf_core_field_exists(req->cqe.fd) && opcode < 63 && !(URING_WITHOUT_FILE & BIT(opcode))) {
		w.fd = BPF_CORE_READ(req, cqe.fd);
	}
	if (req && is_read_or_write(opcode) && bpf_core_field_exists(req->cmd) && bpf_core_type_exists(struct io_rw)) {
		struct io_rw *rw = (void *)req + bpf_core_field_offset(req->cmd);

		w.row.hdr.flags |= OPERATION_SIZED;
		w.offset = BPF_CORE_READ(rw, kiocb.ki_pos);
		w.asked = BPF_CORE_READ(rw, len);
	}
	send_event(&w, sizeof(w), DROP_URING);
closing:
	/* behind the operation, which is done on what the descriptor was */
	if (close && !slot)
		tell_ring_closing(BPF_CORE_READ(close, fd));
	return 0;
}

int io_uring_submit_req(u64 *ctx)
{
	struct io_kiocb *req = (void *)ctx[0];

	return submitted(req, BPF_CORE_READ(req, opcode));
}

/* before 6.3 */
int io_uring_submit_sqe(u64 *ctx)
{
	struct io_kiocb *req;

	if (has_uring_opcode)
		return submitted(NULL, CTX_ARG(ctx, 1));
	req = (void *)CTX_ARG(ctx, 0);
	return submitted(req, BPF_CORE_READ(req, opcode));
}

/* Of a request without an address of its own (of several results, all but the last) nothing is known but the result. */
static __always_inline int uring_ended(struct io_kiocb *req, s32 ret, u32 flags)
{
	u8 opcode = req ? BPF_CORE_READ(req, opcode) : 0;
	struct wire_operation w = {};

	/* the buffer of a send is free; its result came before */
	if (flags & CQE_NOTIFIES)
		return 0;
	if (req)
		tell_change(req, opcode, ret);
	else
		tell_accepted(ret);
	if (!begin_row(&w.row, WIRE_OPERATION, OPERATION_ENDED))
		return 0;
	w.address = (u64)req;
	w.ret = ret;
	w.fd = -1;
	if (req) {
		w.opcode = opcode;
		if (w.opcode != URING_OPENAT && w.opcode != URING_OPENAT2)
			name_operand(&w, BPF_CORE_READ(req, file));
		else if (ret >= 0 && !is_fixed(req, w.opcode))
			name_operand(&w, file_of(ret));
	} else {
		w.row.hdr.flags |= OPERATION_NAMELESS;
	}
	send_event(&w, sizeof(w), DROP_URING);
	return 0;
}

/* 6.13: (ring, request, entry of the queue) */
int io_uring_complete(u64 *ctx)
{
	struct io_uring_cqe *cqe = (void *)CTX_ARG(ctx, 2);

	return uring_ended((void *)CTX_ARG(ctx, 1), BPF_CORE_READ(cqe, res), BPF_CORE_READ(cqe, flags));
}

/* 5.19 to 6.12: (ring, request, user's word, result, flags, ...) */
int io_uring_complete_res(u64 *ctx)
{
	return uring_ended((void *)CTX_ARG(ctx, 1), CTX_ARG(ctx, 3), CTX_ARG(ctx, 4));
}

/* An operation that is about to be submitted; not static, as those below, so that the verifier walks it once. */
__noinline int tell_iocb(u64 address)
{
	struct wire_operation w = {};
	u16 flags = OPERATION_AIO | OPERATION_SIZED;

	if (!begin_row(&w.row, WIRE_OPERATION, flags))
		return 0;
	w.address = address;
	/* the opcode has 16 bits there, and all that there are fit into 8 */
	if (bpf_probe_read_user(&w.opcode, sizeof(w.opcode), (void *)address + IOCB_OPCODE) ||
	    bpf_probe_read_user(&w.fd, sizeof(w.fd), (void *)address + IOCB_FD) ||
	    bpf_probe_read_user(&w.asked, sizeof(w.asked), (void *)address + IOCB_BYTES) ||
	    bpf_probe_read_user(&w.offset, sizeof(w.offset), (void *)address + IOCB_OFFSET)) {
		w.row.hdr.flags = OPERATION_AIO | OPERATION_NAMELESS;
		w.fd = -1;
	} else {
		name_operand(&w, file_of(w.fd));
	}
	send_event(&w, sizeof(w), DROP_URING);
	return 0;
}

static __always_inline void aio_ended(u64 address, s64 ret, u16 flags)
{
	struct wire_operation w = {};

	if (!begin_row(&w.row, WIRE_OPERATION, OPERATION_AIO | OPERATION_ENDED | flags))
		return;
	w.address = address;
	w.ret = ret;
	w.fd = -1;
	send_event(&w, sizeof(w), DROP_URING);
}

__noinline int tell_refused(u64 address)
{
	aio_ended(address, 0, OPERATION_REFUSED);
	return 0;
}

__noinline int tell_aio_event(u64 address)
{
	u64 iocb;
	s64 res;

	if (bpf_probe_read_user(&iocb, sizeof(iocb), (void *)address + EVENT_IOCB) ||
	    bpf_probe_read_user(&res, sizeof(res), (void *)address + EVENT_RES))
		count_drop(DROP_URING);
	else
		aio_ended(iocb, res, 0);
	return 0;
}

/* The address of an iocb, as the program's list has it; not static, as tell_iocb(). */
__noinline u64 iocb_at(u64 list, u32 i, u32 compat)
{
	u32 half = 0;
	u64 whole = 0;

	if (compat) {
		bpf_probe_read_user(&half, sizeof(half), (void *)(list + i * sizeof(half)));
		return half;
	}
	bpf_probe_read_user(&whole, sizeof(whole), (void *)(list + i * sizeof(whole)));
	return whole;
}

/* A round of iocbs before `count`; 1 = that were all. `refused` is known when this is compiled. */
static __always_inline int some_iocbs(u64 list, u32 from, u32 count, u32 compat, bool refused)
{
	for (u32 n = 0; n < IOCBS_ROUND; n++) {
		u32 i = from + n;
		u64 address;

		if (i >= count)
			return 1;
		address = iocb_at(list, i, compat);
		if (!address)
			return 1;
		if (refused)
			tell_refused(address);
		else
			tell_iocb(address);
	}
	return 0;
}

__noinline int tell_some_iocbs(u64 list, u32 from, u32 count, u32 compat)
{
	return some_iocbs(list, from, count, compat, false);
}

/* A function of its own: with the calls of the above an exit has not stack enough on 5.10. */
__noinline int tell_some_refusals(u64 list, u32 from, u32 count, u32 compat)
{
	return some_iocbs(list, from, count, compat, true);
}

__noinline int tell_some_events(u64 list, u32 from, u32 count)
{
	for (u32 n = 0; n < IOCBS_ROUND; n++) {
		u32 i = from + n;

		if (i >= count)
			return 1;
		tell_aio_event(list + i * EVENT_SIZE);
	}
	return 0;
}

/* Those that are submitted. */
__noinline int tell_iocbs(u64 list, u32 count, u32 compat)
{
	for (u32 n = 0; n < IOCBS_MOST; n += IOCBS_ROUND)
		if (tell_some_iocbs(list, n, count, compat))
			return 0;
	if (count > IOCBS_MOST)
		count_drop(DROP_URING);
	return 0;
}

/* Those that were not. */
__noinline int tell_refusals(u64 list, u32 from, u32 count, u32 compat)
{
	for (u32 n = 0; n < IOCBS_MOST; n += IOCBS_ROUND)
		if (tell_some_refusals(list, from + n, count, compat))
			return 0;
	if (count - from > IOCBS_MOST)
		count_drop(DROP_URING);
	return 0;
}

__noinline int tell_aio_events(u64 list, u32 count)
{
	for (u32 n = 0; n < IOCBS_MOST; n += IOCBS_ROUND)
		if (tell_some_events(list, n, count))
			return 0;
	if (count > IOCBS_MOST)
		count_drop(DROP_URING);
	return 0;
}

static __always_inline u32 clamped(s64 count)
{
	return count > ~0U ? ~0U : count;
}

/* io_submit was entered, and is recorded if it is the call in progress. */
static __always_inline void aio_at_enter(struct task_struct *task)
{
	struct task_state *st = current_state(task, false);

	if (st && st->in_call && (s64)st->rec.args[1] > 0)
		tell_iocbs(st->rec.args[2], clamped(st->rec.args[1]), st->rec.abi == ABI_I386);
}

static __always_inline void aio_at_exit(const struct task_state *st, const struct sc_desc *d)
{
	s64 ret = st->rec.ret, asked = st->rec.args[1];

	if (d->also == ALSO_REAPS && ret > 0)
		tell_aio_events(st->rec.args[3], ret);
	else if (d->also == ALSO_SUBMITS && ret < asked)
		tell_refusals(st->rec.args[2], ret > 0 ? ret : 0, clamped(asked), st->rec.abi == ABI_I386);
}

#endif
