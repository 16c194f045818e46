/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Family "block": one record per I/O, at its completion. A request is tracked
 * from its first tracepoint by its address, which is reused right after.
 */
#ifndef __SYSTAPE_BLOCK_H
#define __SYSTAPE_BLOCK_H

#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_FUA (1 << 17)
#define REQ_PREFLUSH (1 << 18)
#define MAX_WAITERS 8
/* So many times so many: a request of 1 MiB may consist of pieces of 1 KiB. */
#define BIO_ROUNDS 32
#define BIOS_A_ROUND 32

static __always_inline u32 dev_of(struct gendisk *disk)
{
	return (u32)FIELD(disk, major) << 20 | (u32)FIELD(disk, first_minor);
}

static __always_inline struct gendisk *disk_of_rq(struct request *rq)
{
	struct request___old *old = (void *)rq;
	struct request_queue *q = FIELD(rq, q);

	if (bpf_core_field_exists(old->rq_disk))
		return FIELD(old, rq_disk);
	if (bpf_core_field_exists(q->disk))
		return FIELD(q, disk);
	return NULL;
}

static __always_inline struct gendisk *disk_of_bio(struct bio *bio)
{
	struct bio___old *old = (void *)bio;

	if (bpf_core_field_exists(old->bi_disk))
		return FIELD(old, bi_disk);
	return FIELD(FIELD(bio, bi_bdev), bd_disk);
}

/* Only ids of the v2 hierarchy have paths in the tape. */
static __always_inline u64 cgroup_of(struct bio *bio)
{
	struct cgroup *cgroup;

	if (!bpf_core_field_exists(bio->bi_blkg))
		return 0;
	cgroup = FIELD(FIELD(FIELD(bio, bi_blkg), blkcg), css.cgroup);
	if (!cgroup || FIELD(FIELD(cgroup, root), hierarchy_id))
		return 0;
	return FIELD(FIELD(cgroup, kn), id);
}

#define ROOT_CGROUP 1

/* Finds the owner; false if it is not a recorded task. */
static __always_inline bool blame(void *ctx, struct io_state *io, struct bio *bio)
{
	struct task_struct *current = current_task();
	u32 flags = FIELD(current, flags);
	bool kthread = flags & PF_KTHREAD, recorded = false;
	bool reads = (io->op_flags & REQ_OP_MASK) == REQ_OP_READ;
	struct held held = {};

	if (!in_interrupt(ctx, current)) {
		io->has_origin = 1;
		fill_who(&io->origin, current);
		recorded = is_recorded(current);
	}
	if (bio) {
		io->cgroup_id = cgroup_of(bio);
		find_held(&held, bio);
		note_held(io, &held);
	}
	if (held.inode && held.cached) {
		struct inode_key key = {};
		struct dirtier *d = NULL;

		key.ino = io->inode;
		key.dev = io->file_dev;
		/* a read page was not dirtied for this I/O */
		if (!reads)
			d = bpf_map_lookup_elem(&dirtiers, &key);
		if (d && !d->kthread) {
			io->cause = CAUSE_DIRTIER;
			io->owner = d->who;
			io->has_owner = 1;
			return records_everything() || d->matched;
		}
	}
	/* a task that writes back others' pages (sync) did not cause it */
	if (io->has_origin && !kthread && (reads || !held.cached)) {
		io->cause = CAUSE_DIRECT;
		io->owner = io->origin;
		io->has_owner = 1;
	} else if (io->cgroup_id > ROOT_CGROUP) {
		io->cause = CAUSE_CGROUP;
	} else if (io->has_origin && kthread && !(flags & PF_WQ_WORKER)) {
		/* a journal, kswapd, ...; a worker acts for tasks that are not known */
		io->cause = CAUSE_KTHREAD;
		io->owner = io->origin;
		io->has_owner = 1;
	}
	return records_everything() || recorded;
}

/* The list of requests that wait for the flush being issued; NULL: rq is no such flush. */
static __always_inline struct list_head *flush_waiters(struct request *rq)
{
	struct blk_flush_queue *fq = BPF_CORE_READ(rq, mq_hctx, fq);

	if (!fq || BPF_CORE_READ(fq, flush_rq) != rq)
		return NULL;
	return (void *)fq + bpf_core_field_offset(struct blk_flush_queue, flush_queue) +
	       (BPF_CORE_READ_BITFIELD_PROBED(fq, flush_running_idx) ? bpf_core_type_size(struct list_head) : 0);
}

/*
 * The block layer issues flushes for all requests that wait for one
 * (blk_kick_flush()), from a worker or an interrupt. The owner is the first
 * recorded one of these requests; false if there is none.
 */
static __noinline int blame_waiter(struct io_state *io, struct request *rq)
{
	struct request___flush *old = (void *)rq;
	struct list_head *head = flush_waiters(rq), *at = head;
	struct io_state *waiter;
	u64 offset, key;

	if (!head)
		return 0;
	if (bpf_core_field_exists(old->flush.list))
		offset = bpf_core_field_offset(old->flush.list);
	else
		offset = bpf_core_field_offset(rq->queuelist);
	for (int i = 0; i < MAX_WAITERS; i++) {
		at = BPF_CORE_READ(at, next);
		if (!at || at == head)
			return 0;
		key = (u64)at - offset;
		waiter = bpf_map_lookup_elem(&ios, &key);
		if (!waiter)
			continue;
		io->cause = waiter->has_owner ? CAUSE_FLUSH : waiter->cause;
		io->cgroup_id = waiter->cgroup_id;
		io->has_origin = waiter->has_origin;
		io->origin = waiter->origin;
		io->has_owner = waiter->has_owner;
		io->owner = waiter->owner;
		return 1;
	}
	return 0;
}

/*
 * An I/O ended, and no program saw its end. This occurred on a kernel that runs
 * no BPF program while certain tasks are current: completions in interrupts on
 * top of them were in ftrace only, and recursion_misses did not count them.
 */
static __always_inline void count_unseen(struct io_state *io)
{
	if (io->ended || (io->issued && io->unseen == io->issued))
		return;
	count_drop_since(DROP_BLOCK_UNSEEN, io->issued ?: io->queued);
}

/* Another I/O begins at this address: the noted one has ended. */
static __always_inline void begin_anew(u64 key)
{
	struct io_state *known = bpf_map_lookup_elem(&ios, &key);

	if (!known)
		return;
	count_unseen(known);
	bpf_map_delete_elem(&ios, &key);
}

/*
 * Without a tracepoint for the start of a request, as for flushes: whether it
 * is another one than the noted one at its address.
 */
static __always_inline bool is_used_again(struct request *rq, struct io_state *known)
{
	if (has_io_start && (known->op_flags & REQ_OP_MASK) != REQ_OP_FLUSH)
		return false;
	return FIELD(rq, start_time_ns) > known->queued;
}

/*
 * A request begins; `known` at its address has ended. at_start: this is the
 * kernel's tracepoint for that. There is none before 6.5 and for flushes, and
 * none was heard of a request that began before the window opened.
 */
static __always_inline void begin_request(void *ctx, struct request *rq, u64 now, struct io_state *known,
					  bool at_start)
{
	u64 key = (u64)rq;
	struct io_state io = {};
	bool flush;

	rq = UNTRUSTED(struct request, rq);
	if (known)
		count_unseen(known);
	io.dev = dev_of(disk_of_rq(rq));
	io.op_flags = FIELD(rq, cmd_flags);
	io.queued = now;
	flush = (io.op_flags & REQ_OP_MASK) == REQ_OP_FLUSH;
	if (!at_start) {
		/* set after the tracepoint of the start: there it is still that of the request before */
		u64 start = FIELD(rq, start_time_ns);

		if (start && start < now)
			io.queued = start;
	}
	if (flush && blame_waiter(&io, rq))
		goto store;
	if (!blame(ctx, &io, FIELD(rq, bio))) {
		if (known)
			bpf_map_delete_elem(&ios, &key);
		return;
	}
store:
	if (bpf_map_update_elem(&ios, &key, &io, BPF_ANY))
		count_drop(DROP_BLOCK_STATE);
	/* the task that issues a flush is not its owner */
	if (wants_stack(STACK_BLOCK) && io.has_origin && !flush)
		take_stack(ctx, STACK_BLOCK, io.queued, now, 0);
}

/* The note of a request in progress; the request may begin here. */
static __always_inline struct io_state *known_request(void *ctx, struct request *rq, u64 now)
{
	u64 key = (u64)rq;
	struct io_state *known = bpf_map_lookup_elem(&ios, &key);

	if (known && !is_used_again(rq, known))
		return known;
	begin_request(ctx, rq, now, known, false);
	return bpf_map_lookup_elem(&ios, &key);
}

int block_io_start(u64 *ctx)
{
	struct request *rq = (void *)ctx[0];
	u64 key = (u64)rq;

	if (window == WINDOW_OPEN)
		begin_request(ctx, rq, bpf_ktime_get_ns(), bpf_map_lookup_elem(&ios, &key), true);
	return 0;
}

/* Two requests were merged: this one is gone and never completes. */
int block_rq_merge(u64 *ctx)
{
	u64 key;

	if (has_rq_queue_arg)
		key = CTX_ARG(ctx, 1);
	else
		key = CTX_ARG(ctx, 0);
	bpf_map_delete_elem(&ios, &key);
	return 0;
}

int block_rq_insert(u64 *ctx)
{
	struct request *rq;

	if (has_rq_queue_arg)
		rq = (void *)CTX_ARG(ctx, 1);
	else
		rq = (void *)CTX_ARG(ctx, 0);
	if (window == WINDOW_OPEN)
		known_request(ctx, rq, bpf_ktime_get_ns());
	return 0;
}

/*
 * What the bios of a request hold, from the one that has this number on; returns
 * the next, 0 = there is none. Not static, with numbers as arguments, so that the
 * verifier walks a round once.
 */
__noinline u64 note_bios(u64 key, u64 from, u32 number)
{
	struct io_state *io = bpf_map_lookup_elem(&ios, &key);
	struct bio *bio = (void *)from, *next;

	if (!io)
		return 0;
	for (int i = 0; i < BIOS_A_ROUND && bio; i++) {
		next = LOADED(struct bio, bio, bi_next);
		/* all of them: another may be the first since */
		if (number || next)
			compare_held(io, bio, number);
		io->merged = number;
		number++;
		bio = next;
	}
	return number_of(bio);
}

int block_rq_issue(u64 *ctx)
{
	u64 now = bpf_ktime_get_ns(), key, bio;
	struct io_state *io;
	struct request *rq;
	u32 flags;

	if (has_rq_queue_arg)
		rq = (void *)CTX_ARG(ctx, 1);
	else
		rq = (void *)CTX_ARG(ctx, 0);
	if (window != WINDOW_OPEN)
		return 0;
	io = known_request(ctx, rq, now);
	if (!io)
		return 0;
	io->issued = now;
	io->sector = FIELD(rq, __sector);
	io->bytes = FIELD(rq, __data_len);
	flags = FIELD(rq, cmd_flags);
	/* blk_insert_flush() does this if the device has no FUA */
	if (io->op_flags & REQ_FUA && !(flags & REQ_FUA))
		io->post_flush = 1;
	io->op_flags = flags;
	io->merged = 0;
	key = number_of(rq);
	bio = number_of(FIELD(rq, bio));
	for (int i = 0; i < BIO_ROUNDS && bio; i++)
		bio = note_bios(key, bio, i * BIOS_A_ROUND);
	return 0;
}

int block_rq_requeue(u64 *ctx)
{
	struct io_state *io;
	u64 key;

	if (has_rq_queue_arg)
		key = CTX_ARG(ctx, 1);
	else
		key = CTX_ARG(ctx, 0);
	io = bpf_map_lookup_elem(&ios, &key);
	if (!io)
		return 0;
	/* one CPU at a time has the request; until its next issue it is as idle as an ended one */
	io->requeues++;
	io->issued = 0;
	return 0;
}

static __always_inline void send_io(struct io_state *io, u8 layer, s32 error)
{
	struct wire_block w = {};

	w.hdr.kind = WIRE_BLOCK;
	w.hdr.cpu = bpf_get_smp_processor_id();
	w.complete = bpf_ktime_get_ns();
	w.queued = io->queued;
	w.issued = io->issued;
	w.sector = io->sector;
	w.cgroup_id = io->cgroup_id;
	w.inode = io->inode;
	w.file = io->file;
	w.file_tag = io->file_tag;
	w.file_dev = io->file_dev;
	w.holds = io->holds;
	w.dev = io->dev;
	w.bytes = io->bytes;
	w.op_flags = io->op_flags;
	w.error = error;
	w.requeues = io->requeues;
	w.merged = io->merged;
	w.layer = layer;
	w.cause = io->cause;
	w.has_origin = io->has_origin;
	w.has_owner = io->has_owner;
	w.origin = io->origin;
	w.owner = io->owner;
	send_event(&w, sizeof(w), DROP_BLOCK);
}

int block_rq_complete(u64 *ctx)
{
	struct request *rq = (void *)ctx[0];
	s32 error = ctx[1];
	u32 bytes = ctx[2];
	struct io_state *io;
	u64 key = (u64)rq;

	if (window == WINDOW_CLOSED)
		return 0;
	io = bpf_map_lookup_elem(&ios, &key);
	if (!io)
		return 0;
	/* its data was written before; now it was flushed too */
	if (io->ended) {
		bpf_map_delete_elem(&ios, &key);
		return 0;
	}
	/* a part of it: the rest completes later */
	if (bytes < FIELD(rq, __data_len))
		return 0;
	/*
	 * An empty write that asks for a flush is never issued: the flush is an
	 * I/O of its own, and this one only waited for it. If there was no
	 * flush because of an error, nothing else reports it.
	 */
	if (!io->issued && !io->requeues && !error && !bytes && (io->op_flags & REQ_OP_MASK) == REQ_OP_WRITE &&
	    io->op_flags & REQ_PREFLUSH) {
		bpf_map_delete_elem(&ios, &key);
		return 0;
	}
	if (unseen_ios && !(ended_ios++ % unseen_ios))
		return 0;
	send_io(io, BLOCK_LAYER_REQUEST, error);
	/* the flush has the same owner */
	if (io->post_flush)
		io->ended = 1;
	else
		bpf_map_delete_elem(&ios, &key);
	return 0;
}

/* A thread's call has something read, read-ahead included. */
static __always_inline void note_fetch(void *ctx)
{
	struct task_struct *current = current_task();

	if (!in_interrupt(ctx, current))
		note_need(current, WIRE_FETCHED);
}

/* Devices without a request queue: dm, md, zram. Their I/O is tracked by bio. */
int block_bio_queue(u64 *ctx)
{
	struct io_state io = {};
	struct gendisk *disk;
	struct bio *bio;
	u64 key;

	if (has_bio_queue_arg)
		bio = (void *)CTX_ARG(ctx, 1);
	else
		bio = (void *)CTX_ARG(ctx, 0);
	if (window != WINDOW_OPEN)
		return 0;
	bio = UNTRUSTED(struct bio, bio);
	if ((FIELD(bio, bi_opf) & REQ_OP_MASK) == REQ_OP_READ)
		note_fetch(ctx);
	disk = disk_of_bio(bio);
	if (!disk || FIELD(FIELD(disk, queue), mq_ops))
		return 0;
	io.queued = bpf_ktime_get_ns();
	io.dev = dev_of(disk);
	io.op_flags = FIELD(bio, bi_opf);
	io.sector = FIELD(bio, bi_iter.bi_sector);
	io.bytes = FIELD(bio, bi_iter.bi_size);
	key = (u64)bio;
	begin_anew(key);
	if (!blame(ctx, &io, bio))
		return 0;
	if (bpf_map_update_elem(&ios, &key, &io, BPF_ANY))
		count_drop(DROP_BLOCK_STATE);
	if (wants_stack(STACK_BLOCK) && io.has_origin)
		take_stack(ctx, STACK_BLOCK, io.queued, io.queued, 0);
	return 0;
}

int block_bio_complete(u64 *ctx)
{
	struct bio *bio = (void *)ctx[1];
	struct io_state *io;
	u64 key = (u64)bio;

	if (window == WINDOW_CLOSED)
		return 0;
	io = bpf_map_lookup_elem(&ios, &key);
	if (!io)
		return 0;
	send_io(io, BLOCK_LAYER_BIO, FIELD(bio, bi_status));
	bpf_map_delete_elem(&ios, &key);
	return 0;
}

/*
 * Now and then, for each key of ios: a request that was issued and is idle has
 * ended. One still in progress is no event. Written down is which issue was
 * counted: by now the element may be another request's.
 */
int check_io(u64 *ctx)
{
	struct io_state *io;
	u64 key = ctx[0], issued;

	io = bpf_map_lookup_elem(&ios, &key);
	if (!io)
		return 0;
	issued = io->issued;
	if (!issued || io->ended || BPF_CORE_READ((struct request *)key, state) != MQ_RQ_IDLE)
		return 0;
	/* it becomes idle after its end is reported, perhaps just now */
	io = bpf_map_lookup_elem(&ios, &key);
	if (!io || io->issued != issued)
		return 0;
	count_unseen(io);
	io->unseen = issued;
	return 0;
}

static __always_inline int dirtied(struct address_space *mapping)
{
	struct task_struct *current = current_task();
	struct inode *inode = mapping ? FIELD(mapping, host) : NULL;
	struct inode_key key = {};
	struct dirtier d = {}, *known;

	if (window != WINDOW_OPEN || !inode || (FIELD(inode, i_mode) & S_IFMT) == S_IFBLK)
		return 0;
	key.ino = FIELD(inode, i_ino);
	key.dev = FIELD(FIELD(inode, i_sb), s_dev);
	fill_who(&d.who, current);
	d.matched = is_recorded(current);
	/* mostly page after page of one file by one task: an update takes a lock and a new element */
	known = bpf_map_lookup_elem(&dirtiers, &key);
	if (known && known->matched == d.matched && is_same_who(&known->who, &d.who))
		return 0;
	d.kthread = !!(FIELD(current, flags) & PF_KTHREAD);
	bpf_map_update_elem(&dirtiers, &key, &d, BPF_ANY);
	/* now it has a name; when it is written back, that may be forgotten */
	if (!known)
		name_file(inode);
	return 0;
}

int writeback_dirty_folio(u64 *ctx)
{
	return dirtied((void *)ctx[1]);
}

/* before 5.18 (203a31516616) */
int writeback_dirty_page(u64 *ctx)
{
	return dirtied((void *)ctx[1]);
}

#endif
