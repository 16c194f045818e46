/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Family "block": one record per I/O, when it completes. A request is followed
 * from its first appearance by its address, which is reused at once after.
 */
#ifndef __SYSTAPE_BLOCK_H
#define __SYSTAPE_BLOCK_H

#define S_IFMT 0170000
#define S_IFBLK 0060000
#define PAGE_MAPPING_FLAGS 3 /* anonymous and movable pages have no inode */
#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_FLUSH 2
#define MAX_BIOS 1024 /* a request of 1 MiB may be made of pieces of 1 KiB */

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

/*
 * Whether a page of a file is being read into the page cache or written back
 * from it. One that is only the buffer of O_DIRECT, mapped from a file or from
 * shared memory, is neither. `flags` begins struct page in every kernel; its
 * type changed in 6.18 (memdesc_flags_t).
 */
static __always_inline bool page_in_io(struct page *page)
{
	u64 bits = 1ULL << bpf_core_enum_value(enum pageflags, PG_locked) |
		   1ULL << bpf_core_enum_value(enum pageflags, PG_writeback);
	u64 flags = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags), page);
	return flags & bits;
}

/*
 * The inode whose pages a bio carries: NULL for memory of a process, and for
 * metadata (pages of the device itself). `cached` = they are of the page cache.
 */
static __always_inline struct inode *inode_of(struct bio *bio, bool *cached)
{
	struct page *page = FIELD(FIELD(bio, bi_io_vec), bv_page);
	struct address_space *mapping;
	unsigned long head;
	struct inode *inode;

	if (!page)
		return NULL;
	/* one of several in a union: a load of it would be taken for one of a pointer */
	head = BPF_CORE_READ(page, compound_head);
	if (head & 1)
		page = (struct page *)(head - 1);
	mapping = BPF_CORE_READ(page, mapping);
	if (!mapping || (unsigned long)mapping & PAGE_MAPPING_FLAGS)
		return NULL;
	inode = BPF_CORE_READ(mapping, host);
	if (!inode || (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK) {
		/* a buffer of metadata is written without the page's flags */
		*cached = true;
		return NULL;
	}
	*cached = page_in_io(page);
	return *cached ? inode : NULL;
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

/* Whom to blame; false when it is nobody that is recorded. */
static __always_inline bool blame(void *ctx, struct io_state *io, struct bio *bio)
{
	struct task_struct *current = current_task();
	bool kthread = FIELD(current, flags) & PF_KTHREAD, recorded = false, cached = false;
	struct inode *inode = bio ? inode_of(bio, &cached) : NULL;
	bool reads = (io->op_flags & REQ_OP_MASK) == REQ_OP_READ;

	if (!in_interrupt(ctx, current)) {
		io->has_origin = 1;
		fill_who(&io->origin, current);
		recorded = is_recorded(current);
	}
	if (bio)
		io->cgroup_id = cgroup_of(bio);
	if (inode) {
		struct inode_key key = {};
		struct dirtier *d = NULL;

		key.ino = BPF_CORE_READ(inode, i_ino);
		key.dev = BPF_CORE_READ(inode, i_sb, s_dev);
		io->inode = key.ino;
		/* what is read was not dirtied for it */
		if (!reads)
			d = bpf_map_lookup_elem(&dirtiers, &key);
		if (d && !d->kthread) {
			io->cause = CAUSE_DIRTIER;
			io->owner = d->who;
			io->has_owner = 1;
			return records_everything() || d->matched;
		}
	}
	/* who writes back what others dirtied (sync) did not cause it */
	if (io->has_origin && !kthread && (reads || !cached)) {
		io->cause = CAUSE_DIRECT;
		io->owner = io->origin;
		io->has_owner = 1;
	} else if (io->cgroup_id > ROOT_CGROUP) {
		io->cause = CAUSE_CGROUP;
	}
	return records_everything() || recorded;
}

/*
 * An I/O is over, and no program saw its end. Seen on a kernel that runs no BPF
 * program while one of certain tasks is current: what an interrupt completed on
 * top of it was in ftrace and in nothing else, recursion_misses included.
 */
static __always_inline void count_unseen(struct io_state *io)
{
	count_drop_since(DROP_BLOCK_UNSEEN, io->issued ?: io->queued);
}

/* Another I/O begins at this address: what was known there is over. */
static __always_inline void begin_anew(u64 key)
{
	struct io_state *known = bpf_map_lookup_elem(&ios, &key);

	if (!known)
		return;
	count_unseen(known);
	bpf_map_delete_elem(&ios, &key);
}

/* Where no tracepoint tells that a request begins: whether it is another one than the one that is known at its address. */
static __always_inline bool is_used_again(struct request *rq, struct io_state *known)
{
	return !has_io_start && FIELD(rq, start_time_ns) > known->queued;
}

/* A request begins; what is `known` at its address is over. */
static __always_inline void begin_request(void *ctx, struct request *rq, u64 now, struct io_state *known)
{
	u64 key = (u64)rq;
	struct io_state io = {};

	if (known)
		count_unseen(known);
	io.dev = dev_of(disk_of_rq(rq));
	io.op_flags = FIELD(rq, cmd_flags);
	io.queued = now;
	if (!has_io_start) {
		u64 start = FIELD(rq, start_time_ns);

		/* where there is a tracepoint for the start, this is set after it: still that of the request before */
		if (start && start < now)
			io.queued = start;
	}
	if (!blame(ctx, &io, FIELD(rq, bio))) {
		if (known)
			bpf_map_delete_elem(&ios, &key);
		return;
	}
	if (bpf_map_update_elem(&ios, &key, &io, BPF_ANY))
		count_drop(DROP_BLOCK_STATE);
	if (wants_stack(STACK_BLOCK) && io.has_origin)
		take_stack(ctx, STACK_BLOCK, io.queued, now, 0);
}

/* What is known of a request that is on its way; it may begin here. */
static __always_inline struct io_state *known_request(void *ctx, struct request *rq, u64 now)
{
	u64 key = (u64)rq;
	struct io_state *known = bpf_map_lookup_elem(&ios, &key);

	if (known && !is_used_again(rq, known))
		return known;
	begin_request(ctx, rq, now, known);
	return bpf_map_lookup_elem(&ios, &key);
}

SEC("tp_btf/block_io_start")
int block_io_start(u64 *ctx)
{
	struct request *rq = (void *)ctx[0];
	u64 key = (u64)rq;

	if (window == WINDOW_OPEN)
		begin_request(ctx, rq, bpf_ktime_get_ns(), bpf_map_lookup_elem(&ios, &key));
	return 0;
}

/* Two requests became one: this one is gone and never completes. */
SEC("tp_btf/block_rq_merge")
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

SEC("tp_btf/block_rq_insert")
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

SEC("tp_btf/block_rq_issue")
int block_rq_issue(u64 *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct io_state *io;
	struct request *rq;
	struct bio *bio;
	u16 bios = 0;

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
	io->op_flags = FIELD(rq, cmd_flags);
	bio = FIELD(rq, bio);
	for (int i = 0; i < MAX_BIOS && bio; i++) {
		bios++;
		bio = FIELD(bio, bi_next);
	}
	io->merged = bios ? bios - 1 : 0;
	return 0;
}

SEC("tp_btf/block_rq_requeue")
int block_rq_requeue(u64 *ctx)
{
	struct io_state *io;
	u64 key;

	if (has_rq_queue_arg)
		key = CTX_ARG(ctx, 1);
	else
		key = CTX_ARG(ctx, 0);
	io = bpf_map_lookup_elem(&ios, &key);
	if (io)
		io->requeues++; /* one CPU at a time has the request */
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

SEC("tp_btf/block_rq_complete")
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
	/* a part of it: the rest completes later */
	if (bytes < FIELD(rq, __data_len))
		return 0;
	if (unseen_ios && !(ended_ios++ % unseen_ios))
		return 0;
	send_io(io, BLOCK_LAYER_REQUEST, error);
	bpf_map_delete_elem(&ios, &key);
	return 0;
}

/* Devices without a request queue: dm, md, zram. Their I/O is followed by bio. */
SEC("tp_btf/block_bio_queue")
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

SEC("tp_btf/block_bio_complete")
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

/* At the end: a request that was issued and is idle has ended. What is still on its way is no event. */
SEC("iter/bpf_map_elem")
int walk_ios(struct bpf_iter__bpf_map_elem *ctx)
{
	struct io_state *io = ctx->value;
	u64 *at = ctx->key, key, issued;

	if (!at || !io)
		return 0;
	key = *at;
	issued = io->issued;
	if (!issued || BPF_CORE_READ((struct request *)key, state) != MQ_RQ_IDLE)
		return 0;
	/* it becomes idle after its end is told: it may have been told just now */
	io = bpf_map_lookup_elem(&ios, &key);
	if (io && io->issued == issued)
		count_unseen(io);
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
	return 0;
}

SEC("tp_btf/writeback_dirty_folio")
int writeback_dirty_folio(u64 *ctx)
{
	return dirtied((void *)ctx[1]);
}

/* before 5.18 (203a31516616) */
SEC("tp_btf/writeback_dirty_page")
int writeback_dirty_page(u64 *ctx)
{
	return dirtied((void *)ctx[1]);
}

#endif
