/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a block I/O holds: a file, whose name is sent once, or something else.
 * And the names of mapped files, for page faults.
 * Of direct I/O the submitter's state tells, which the bio refers to; of other
 * I/O its pages.
 */
#ifndef __SYSTAPE_FILES_H
#define __SYSTAPE_FILES_H

#define S_IFREG 0100000
#define S_IFDIR 0040000
#define S_IFLNK 0120000
#define S_IFBLK 0060000
#define PAGE_MAPPING_FLAGS 3 /* anonymous and movable pages have no inode */
#define MAX_COMPARED 64 /* of the bios of a request */

/*
 * Whether a page of a file is being read into the page cache or written back
 * from it. A page that is only the buffer of O_DIRECT, mapped from a file or
 * from shared memory, is neither. `flags` begins struct page in every kernel;
 * its type changed in 6.18 (memdesc_flags_t).
 */
static __always_inline bool page_in_io(struct page *page)
{
	u64 bits = 1ULL << bpf_core_enum_value(enum pageflags, PG_locked) |
		   1ULL << bpf_core_enum_value(enum pageflags, PG_writeback);
	u64 flags = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags), page);
	return flags & bits;
}

#define TAIL_PAGE 1UL
#define MASK_BITS (~0UL << 32) /* all set in a mask: a compound page's structs take less than 4 GiB */

/*
 * The first page of a compound page, from any of its pages. A page other than
 * the first has bit 0 set, and beside it the address of the first; or, if
 * struct page has a size that is a power of two, a mask for its own address
 * (set_compound_head(), include/linux/page-flags.h). No struct page lies in the
 * topmost 4 GiB of addresses, so the value distinguishes the two.
 */
static __always_inline struct page *head_of(struct page *page)
{
	struct page___info *new = (void *)page;
	u64 head, address = 0;

	/* one member of a union: a load of it would count as a load of a pointer */
	if (bpf_core_field_exists(new->compound_info))
		head = BPF_CORE_READ(new, compound_info);
	else
		head = BPF_CORE_READ(page, compound_head);
	if (!(head & TAIL_PAGE))
		return page;
	if ((head & MASK_BITS) == MASK_BITS) {
		/* read rather than assigned: the verifier allows no such arithmetic with a pointer */
		bpf_probe_read_kernel(&address, sizeof(address), &page);
		barrier_var(address);
		return (struct page *)(address & head);
	}
	return (struct page *)(head - TAIL_PAGE);
}

/* What a bio holds. */
struct held {
	struct inode *inode; /* of a file; NULL = none */
	u8 what; /* enum block_holds */
	u8 cached; /* its pages are of the page cache, or buffers of metadata */
};

static __always_inline u16 mode_of(struct inode *inode)
{
	return LOADED(struct inode, inode, i_mode) & S_IFMT;
}

static __always_inline u32 file_system_of(struct inode *inode)
{
	struct super_block *sb = LOADED(struct inode, inode, i_sb);

	return LOADED(struct super_block, sb, s_dev);
}

/* Whether a file system, or a device made of others, has taken the device. */
static __always_inline bool is_held_device(struct inode *inode)
{
	struct bdev_inode *both = (void *)inode - bpf_core_field_offset(struct bdev_inode, vfs_inode);

	return BPF_CORE_READ(both, bdev.bd_holder);
}

static __always_inline bool is_journal(void)
{
	struct task_struct *current = current_task();
	char comm[COMM_LEN];

	if (!(FIELD(current, flags) & PF_KTHREAD) || bpf_get_current_comm(comm, sizeof(comm)))
		return false;
	return comm[0] == 'j' && comm[1] == 'b' && comm[2] == 'd' && comm[3] == '2' && comm[4] == '/';
}

/* By the pages: NULL for memory of a process. */
static __always_inline void held_pages(struct held *h, struct bio *bio)
{
	struct bio_vec *pages = LOADED(struct bio, bio, bi_io_vec);
	struct page *page = LOADED(struct bio_vec, pages, bv_page);
	struct address_space *mapping;
	struct inode *inode;
	u16 mode;

	if (!page)
		return;
	page = head_of(page);
	mapping = BPF_CORE_READ(page, mapping);
	if (!mapping || (unsigned long)mapping & PAGE_MAPPING_FLAGS)
		return;
	inode = BPF_CORE_READ(mapping, host);
	mode = inode ? mode_of(inode) : S_IFBLK;
	if (mode == S_IFBLK) {
		/* a buffer of metadata is written without the page's flags */
		h->cached = true;
		if (!inode)
			return;
		h->what = !is_held_device(inode) ? HOLDS_DEVICE : is_journal() ? HOLDS_JOURNAL : HOLDS_METADATA;
	} else if (page_in_io(page)) {
		h->cached = true;
		h->inode = inode;
		h->what = mode == S_IFREG || mode == S_IFDIR || mode == S_IFLNK ? HOLDS_FILE : HOLDS_METADATA;
	}
}

static __always_inline void held_directly(struct held *h, struct bio *bio, u8 end)
{
	void *private = LOADED(struct bio, bio, bi_private);
	struct inode *inode = NULL;

	if (end == BIO_IOMAP && bpf_core_type_exists(struct iomap_dio))
		inode = BPF_CORE_READ((struct iomap_dio *)private, iocb, ki_filp, f_inode);
	else if (end == BIO_DIO && bpf_core_type_exists(struct dio))
		inode = BPF_CORE_READ((struct dio *)private, inode);
	if (!inode)
		return;
	if (mode_of(inode) == S_IFBLK) {
		h->what = HOLDS_DEVICE;
	} else {
		h->inode = inode;
		h->what = HOLDS_FILE;
	}
}

/* Not inlined: one state for the verifier. */
static __noinline int find_held(struct held *h, struct bio *bio)
{
	u64 end = (u64)LOADED(struct bio, bio, bi_end_io);
	u8 *known = bpf_map_lookup_elem(&bio_ends, &end);

	__builtin_memset(h, 0, sizeof(*h));
	switch (known ? *known : BIO_PAGES) {
	case BIO_PAGES:
		held_pages(h, bio);
		break;
	case BIO_IOMAP:
	case BIO_DIO:
		held_directly(h, bio, *known);
		break;
	case BIO_DEVICE:
		h->what = HOLDS_DEVICE;
		break;
	case BIO_METADATA:
		h->what = HOLDS_METADATA;
		break;
	case BIO_JOURNAL:
		h->what = HOLDS_JOURNAL;
		break;
	case BIO_SWAP:
		h->what = HOLDS_SWAP;
		break;
	}
	return 0;
}

/* Functions of their own, so that the compiler moves neither distance in front of the question which one there is. */
static __noinline u64 alias_in_union(u64 alias)
{
	return alias - bpf_core_field_offset(struct dentry, d_u.d_alias);
}

static __noinline u64 alias_alone(u64 alias)
{
	return alias - bpf_core_field_offset(struct dentry___unnamed, d_alias);
}

/* The directory entry of an inode; NULL = it has none now. */
static __always_inline struct dentry *entry_of(struct inode *inode)
{
	u64 alias = (u64)BPF_CORE_READ(inode, i_dentry.first);

	if (!alias)
		return NULL;
	if (bpf_core_field_exists(struct dentry___unnamed, d_alias))
		return (void *)alias_alone(alias);
	return (void *)alias_in_union(alias);
}

/*
 * Sends the name of `dentry`, one of those of the file; false if it could not.
 * `mnt`: the whole path is wanted, known by the dentry's address; NULL = the
 * name in the file system, known by the inode's. `ts`: records with a later
 * time refer to it, those with the same if they are sent later; 0 = now, which
 * takes no place on the stack: 5.10 counts those of all calls together.
 */
static __always_inline bool send_file(struct inode *inode, struct vfsmount *mnt, struct dentry *dentry, u64 tag, u64 ts)
{
	struct file_slot *s;
	bool sent = false;
	u32 index, len;

	/* without room it is tried again with the next I/O */
	if (bpf_map_pop_elem(&free_slots, &index))
		return false;
	s = bpf_map_lookup_elem(&slots, &index);
	if (!s)
		return false;
	__builtin_memset(&s->rec, 0, sizeof(s->rec));
	s->rec.hdr.kind = WIRE_FILE;
	s->rec.hdr.cpu = bpf_get_smp_processor_id();
	s->rec.hdr.flags = mnt ? FILE_WHOLE : 0;
	s->rec.ts = ts ? ts : bpf_ktime_get_ns();
	s->rec.address = mnt ? (u64)dentry : (u64)inode;
	s->rec.tag = tag;
	s->rec.inode = LOADED(struct inode, inode, i_ino);
	s->rec.dev = file_system_of(inode);
	s->rec.links = LOADED(struct inode, inode, i_nlink);
	len = walk_path(index, SLOT_BYTE(file_slot, 0), (u64)mnt, (u64)dentry);
	if (len && BPF_CORE_READ(dentry, d_inode) == inode)
		sent = !send_bulk(s, at_most(sizeof(s->rec) + len, sizeof(*s)));
	slot_put(index);
	return sent;
}

/* Never 0. Each of these tells a new file or a new name; a directory above may be renamed unseen. */
static __always_inline u64 tag_of(struct inode *inode, struct dentry *dentry)
{
	struct place place = {};
	u64 tag;

	read_place(&place, dentry);
	tag = place.hash_len * 31 + (u64)place.parent;
	tag = tag * 31 + (u64)dentry;
	tag = tag * 31 + LOADED(struct inode, inode, i_ino);
	tag = tag * 31 + LOADED(struct inode, inode, i_generation);
	return tag | 1;
}

/* Whether the name of the file at this address, inode or entry, was sent. */
static __always_inline bool was_named(u64 address, u64 tag)
{
	u64 *known = bpf_map_lookup_elem(&named_files, &address);

	return known && *known == tag;
}

/* Sends the name of a file unless it was; returns its tag, 0 = it has no name now. */
static __noinline u64 name_file(struct inode *inode)
{
	struct dentry *dentry = entry_of(inode);
	u64 address = (u64)inode, tag;

	if (!dentry)
		return 0;
	tag = tag_of(inode, dentry);
	if (!was_named(address, tag) && send_file(inode, NULL, dentry, tag, 0))
		bpf_map_update_elem(&named_files, &address, &tag, BPF_ANY);
	return tag;
}

/* The same for the path of a mapped file. */
static __noinline u64 name_path(struct vfsmount *mnt, struct dentry *dentry, u64 ts)
{
	struct inode *inode = BPF_CORE_READ(dentry, d_inode);
	u64 address = (u64)dentry, tag;

	if (!inode || !mnt)
		return 0;
	/* the same file may be seen through several mounts */
	tag = (tag_of(inode, dentry) * 31 + (u64)mnt) | 1;
	if (!was_named(address, tag) && send_file(inode, mnt, dentry, tag, ts))
		bpf_map_update_elem(&named_files, &address, &tag, BPF_ANY);
	return tag;
}

static __always_inline void note_held(struct io_state *io, struct held *h)
{
	struct inode *inode = h->inode;

	io->holds = h->what;
	io->file = (u64)inode;
	if (!inode)
		return;
	io->inode = LOADED(struct inode, inode, i_ino);
	io->file_dev = file_system_of(inode);
	if (h->what == HOLDS_FILE)
		io->file_tag = name_file(inode);
}

/*
 * Whether a bio holds something else than what is given. Not static, with numbers
 * as arguments, so that the verifier walks it once rather than for each bio of a
 * request.
 */
__noinline u32 holds_other(u64 bio, u64 file, u32 what)
{
	struct held h = {};

	find_held(&h, (void *)bio);
	return h.what != what || (u64)h.inode != file;
}

/* A further bio of a request: the request holds what all of its bios do. */
static __always_inline void compare_held(struct io_state *io, struct bio *bio, u32 number)
{
	if (io->holds == HOLDS_SEVERAL)
		return;
	if (number < MAX_COMPARED && !holds_other(number_of(bio), io->file, io->holds))
		return;
	io->holds = HOLDS_SEVERAL;
	io->file = 0;
	io->inode = 0;
}

#endif
