/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The name of an open file or directory as /proc/PID/fd shows it, from a walk
 * in the kernel when the fd is made. It is right under chroot, for symlinks and
 * relative paths, and if another thread changes the argument meanwhile.
 * Components are written from the leaf up; user space reverses them.
 */
#ifndef __SYSTAPE_PATH_H
#define __SYSTAPE_PATH_H

#define MAX_COMPONENTS 128
#define COMPONENT_MAX 256
/*
 * PATH_MAX counts the NUL at the end, as the kind at the beginning counts
 * here: each component has a slash there and a NUL here.
 */
#define NAME_BYTES_MAX 4096

/* include/uapi/linux/magic.h */
#define PIPEFS_MAGIC 0x50495045
#define SOCKFS_MAGIC 0x534F434B
#define ANON_INODE_FS_MAGIC 0x09041934
#define PID_FS_MAGIC 0x50494446
#define TMPFS_MAGIC 0x01021994
#define HUGETLBFS_MAGIC 0x958458f6

/* Returns bytes written at data + off. */
static __always_inline u32 special_name(u8 *data, u32 off, struct dentry *dentry)
{
	unsigned long magic = BPF_CORE_READ(dentry, d_inode, i_sb, s_magic);
	u64 ino = BPF_CORE_READ(dentry, d_inode, i_ino);
	long n;

	off &= SLOT_DATA_MASK;
	if (magic == SOCKFS_MAGIC)
		return socket_name(data, off, BPF_CORE_READ(dentry, d_inode));
	if (magic == PIPEFS_MAGIC) {
		data[off] = NAME_PIPE;
		bpf_probe_read_kernel(&data[off + 1], 8, &ino);
		return 9;
	}
	if (magic == PID_FS_MAGIC) { /* before 6.9 an anonymous inode of this name */
		data[off] = NAME_ANON;
		__builtin_memcpy(&data[off + 1], "[pidfd]", 8);
		return 9;
	}
	if (magic == TMPFS_MAGIC || magic == HUGETLBFS_MAGIC) { /* memfd: simple_dname() */
		data[off] = NAME_DELETED;
		n = bpf_probe_read_kernel_str(&data[off + 1], COMPONENT_MAX, BPF_CORE_READ(dentry, d_name.name));
		if (n > 0)
			return 1 + (u32)n;
	}
	if (magic == ANON_INODE_FS_MAGIC) {
		data[off] = NAME_ANON;
		n = bpf_probe_read_kernel_str(&data[off + 1], COMPONENT_MAX, BPF_CORE_READ(dentry, d_name.name));
		if (n > 0)
			return 1 + (u32)n;
	}
	data[off] = NAME_UNKNOWN;
	return 1;
}

static __always_inline struct mount *real_mount(struct vfsmount *mnt)
{
	return (struct mount *)((void *)mnt - bpf_core_field_offset(struct mount, mnt));
}

/* Parent and name of a dentry: two adjacent fields in all known kernels, so one read is enough. */
struct place {
	struct dentry *parent;
	u64 hash_len;
	const unsigned char *name;
};

static __always_inline void read_place(struct place *place, struct dentry *dentry)
{
	const u32 at = bpf_core_field_offset(struct dentry, d_parent);

	if (bpf_core_field_offset(struct dentry, d_name.name) == at + __builtin_offsetof(struct place, name)) {
		bpf_probe_read_kernel(place, sizeof(*place), (void *)dentry + at);
	} else {
		place->parent = BPF_CORE_READ(dentry, d_parent);
		place->name = BPF_CORE_READ(dentry, d_name.name);
	}
}

/*
 * One step of a walk: a component, or from a mount to what it is mounted on.
 * Returns what the name is; 0 = it goes on. Not static, so that the verifier
 * walks a step once rather than each of all steps.
 */
__noinline u32 walk_step(u32 index)
{
	struct slot *s = bpf_map_lookup_elem(&slots, &index);
	struct place place = {};
	struct dentry *dentry;
	struct path_walk *w;
	u32 end;
	long n;

	if (!s)
		return NAME_UNKNOWN;
	w = &s->walk;
	dentry = (void *)w->dentry;
	read_place(&place, dentry);
	if (w->dentry == w->root || dentry == place.parent) {
		struct mount *mnt = (void *)w->mount;
		u64 up = w->in_mounts ? (u64)BPF_CORE_READ(mnt, mnt_parent) : w->mount;

		if (up == w->mount)
			return w->end - w->begin > NAME_BYTES_MAX ? NAME_UNKNOWN : w->kind;
		w->dentry = (u64)BPF_CORE_READ(mnt, mnt_mountpoint);
		w->mount = up;
		w->root = (u64)BPF_CORE_READ((struct mount *)up, mnt.mnt_root);
		return 0;
	}
	end = w->end;
	if (end - w->begin >= NAME_BYTES_MAX)
		return NAME_UNKNOWN;
	end &= SLOT_DATA_MASK;
	n = bpf_probe_read_kernel_str((u8 *)s + end, COMPONENT_MAX, place.name);
	if (n <= 0)
		return NAME_UNKNOWN;
	w->end = end + n;
	w->dentry = (u64)place.parent;
	return 0;
}

/*
 * Writes a name into a slot, from its byte `at` on, and returns its length. `mount`
 * and `entry`: addresses of a struct vfsmount and a struct dentry; without a
 * mount it is the name inside its file system. Not static, with numbers as
 * arguments, as above.
 */
__noinline u32 walk_path(u32 index, u32 at, u64 mount, u64 entry)
{
	struct slot *s = bpf_map_lookup_elem(&slots, &index);
	struct dentry *dentry = (void *)entry;
	u8 *data = (u8 *)s;
	u32 kind = 0;
	struct path_walk *w;

	if (!s || !dentry)
		return 0;
	at &= SLOT_DATA_MASK;
	if (BPF_CORE_READ(dentry, d_op) && BPF_CORE_READ(dentry, d_op, d_dname))
		return special_name(data, at, dentry);
	w = &s->walk;
	w->dentry = entry;
	w->mount = (u64)real_mount((void *)mount);
	w->root = mount ? (u64)BPF_CORE_READ((struct vfsmount *)mount, mnt_root) : 0;
	w->in_mounts = !!mount;
	/* d_unlinked(): not hashed and not a root */
	w->kind = !BPF_CORE_READ(dentry, d_hash.pprev) && dentry != BPF_CORE_READ(dentry, d_parent) ? NAME_DELETED :
												     NAME_PATH;
	w->begin = at;
	w->end = at + 1;
	for (int i = 0; i < MAX_COMPONENTS && !kind; i++)
		kind = walk_step(index);
	/* too deep or unreadable: unknown, rather than a part of a path */
	if (kind != w->kind)
		w->end = at + 1;
	data[at] = kind == w->kind ? kind : NAME_UNKNOWN;
	return w->end - at;
}
_Static_assert(sizeof(struct slot) > SLOT_DATA_MASK + COMPONENT_MAX, "a slot has room from any byte on");

/* Which file it is. Not inlined: the verifier walks it once for each caller. */
static __noinline int fill_inode(struct wire_inode *w, struct inode *inode)
{
	struct super_block *sb = LOADED(struct inode, inode, i_sb);
	struct file_system_type *type = LOADED(struct super_block, sb, s_type);

	__builtin_memset(w, 0, sizeof(*w));
	w->inode = LOADED(struct inode, inode, i_ino);
	w->generation = LOADED(struct inode, inode, i_generation);
	w->links = LOADED(struct inode, inode, i_nlink);
	w->mode = LOADED(struct inode, inode, i_mode);
	w->dev = LOADED(struct super_block, sb, s_dev);
	w->on_device = !!LOADED(struct super_block, sb, s_bdev);
	bpf_probe_read_kernel_str(w->fs, sizeof(w->fs), LOADED(struct file_system_type, type, name));
	return 0;
}

/* Behind its name, if that is a path. */
static __always_inline void add_inode(struct task_state *st, struct slot *s, struct dentry *dentry, u32 name)
{
	u8 kind = s->data[name & SLOT_DATA_MASK];
	struct inode *inode;

	if (kind != NAME_PATH && kind != NAME_DELETED)
		return;
	inode = LOADED(struct dentry, dentry, d_inode);
	if (!inode)
		return;
	fill_inode((void *)&s->data[st->data_len & SLOT_DATA_MASK], inode);
	set_capture(st, st->rec.captures, CAPTURE_INODE, BYTES_WHOLE, sizeof(struct wire_inode), 0);
}

/* Names that only the kernel has, at the exit of a successful call. */
static __always_inline void add_names(struct task_state *st, const struct sc_desc *d)
{
	struct slot *s = into_slot(st);
	s32 fds[2] = { st->rec.ret, -1 };

	if (!s)
		return;
	if (d->flags & SC_FD_PAIR)
		bpf_probe_read_user(fds, sizeof(fds), (void *)arg_of(st, d->cap_arg[0]));
	for (int i = 0; i < 2; i++) {
		struct path path = {};
		struct file *file;
		u32 len, at = st->data_len;

		if (d->flags & SC_CWD) {
			struct fs_struct *fs = BPF_CORE_READ(current_task(), fs);

			path.mnt = BPF_CORE_READ(fs, pwd.mnt);
			path.dentry = BPF_CORE_READ(fs, pwd.dentry);
		} else {
			file = file_of(i ? fds[1] : fds[0]);
			path.mnt = BPF_CORE_READ(file, f_path.mnt);
			path.dentry = BPF_CORE_READ(file, f_path.dentry);
		}
		/* closed by another thread already: no name */
		if (!path.dentry)
			return;
		len = walk_path(st->slot - 1, SLOT_BYTE(slot, at), (u64)path.mnt, (u64)path.dentry);
		if (len)
			set_capture(st, st->rec.captures, CAPTURE_NAME0 + i, BYTES_WHOLE, len, len);
		if (!(d->flags & SC_FD_PAIR)) {
			if (len)
				add_inode(st, s, path.dentry, at);
			return;
		}
	}
}

/* What the socket that the call may have changed is called now. Apart from the above: it walks no path. */
static __always_inline void add_socket(struct task_state *st, const struct sc_desc *d)
{
	s32 fd = named_socket(st, d);
	struct inode *inode;
	struct file *file;
	struct slot *s;
	u32 len;

	if (fd < 0)
		return;
	file = file_of(fd);
	if (!file)
		return;
	inode = LOADED(struct file, file, f_inode);
	if (!inode || (LOADED(struct inode, inode, i_mode) & S_IFMT) != S_IFSOCK)
		return;
	s = into_slot(st);
	if (!s)
		return;
	len = socket_name(s->data, st->data_len & SLOT_DATA_MASK, inode);
	set_capture(st, st->rec.captures, CAPTURE_NAME0, BYTES_WHOLE, len, len);
}

#endif
