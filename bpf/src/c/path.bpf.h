/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The name of an open file or directory as /proc/PID/fd shows it, walked in
 * the kernel at the moment the fd exists: right under chroot, symlinks, a
 * relative path or an argument that another thread changes meanwhile.
 * Components are written from the leaf up; user space turns them round.
 */
#ifndef __SYSTAPE_PATH_H
#define __SYSTAPE_PATH_H

#define MAX_COMPONENTS 64
#define COMPONENT_MAX 256
#define NAME_SPACE_NEEDED 4096

/* include/uapi/linux/magic.h */
#define PIPEFS_MAGIC 0x50495045
#define SOCKFS_MAGIC 0x534F434B
#define ANON_INODE_FS_MAGIC 0x09041934

/* Returns bytes written at data + off. */
static __always_inline u32 special_name(u8 *data, u32 off, struct dentry *dentry)
{
	unsigned long magic = BPF_CORE_READ(dentry, d_inode, i_sb, s_magic);
	u64 ino = BPF_CORE_READ(dentry, d_inode, i_ino);
	long n;

	off &= SLOT_DATA_MASK;
	if (magic == PIPEFS_MAGIC || magic == SOCKFS_MAGIC) {
		data[off] = magic == PIPEFS_MAGIC ? NAME_PIPE : NAME_SOCKET;
		bpf_probe_read_kernel(&data[off + 1], 8, &ino);
		return 9;
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

static __noinline u32 walk_path(u8 *data, u32 start, struct vfsmount *vfsmnt, struct dentry *dentry)
{
	struct mount *mnt = real_mount(vfsmnt);
	struct dentry *root = BPF_CORE_READ(vfsmnt, mnt_root), *parent;
	u32 off = start & SLOT_DATA_MASK;
	u32 end;

	if (!dentry)
		return 0;
	if (BPF_CORE_READ(dentry, d_op) && BPF_CORE_READ(dentry, d_op, d_dname))
		return special_name(data, off, dentry);
	parent = BPF_CORE_READ(dentry, d_parent);
	/* d_unlinked(): not hashed and not a root */
	data[off] = !BPF_CORE_READ(dentry, d_hash.pprev) && dentry != parent ? NAME_DELETED : NAME_PATH;
	end = off + 1;
	for (int i = 0; i < MAX_COMPONENTS; i++) {
		parent = BPF_CORE_READ(dentry, d_parent);
		if (dentry == root || dentry == parent) {
			struct mount *up = BPF_CORE_READ(mnt, mnt_parent);

			if (up == mnt)
				return end - off;
			dentry = BPF_CORE_READ(mnt, mnt_mountpoint);
			mnt = up;
			root = BPF_CORE_READ(mnt, mnt.mnt_root);
			continue;
		}
		if (end - off > NAME_SPACE_NEEDED - COMPONENT_MAX)
			break;
		end &= SLOT_DATA_MASK;
		long n = bpf_probe_read_kernel_str(&data[end], COMPONENT_MAX, BPF_CORE_READ(dentry, d_name.name));
		if (n <= 0)
			break;
		end += n;
		dentry = parent;
	}
	/* too deep or unreadable: unknown, not a part of a path */
	data[off] = NAME_UNKNOWN;
	return 1;
}

/* Appends a name to the slot's record. */
static __always_inline void add_name(struct task_state *st, struct slot *s, u8 which, struct vfsmount *mnt,
				     struct dentry *dentry)
{
	u32 n = st->rec.captures, off = st->data_len & SLOT_DATA_MASK;
	u32 len = walk_path(s->data, off, mnt, dentry);

	if (len)
		set_capture(st, n, which, BYTES_WHOLE, len, len);
}

static __always_inline void add_fd_name(struct task_state *st, struct slot *s, u8 which, s32 fd)
{
	struct fdtable *fdt = BPF_CORE_READ(current_task(), files, fdt);
	struct file **slot_ptr, *file = NULL;

	if (fd < 0 || (u32)fd >= BPF_CORE_READ(fdt, max_fds))
		return;
	slot_ptr = BPF_CORE_READ(fdt, fd);
	bpf_probe_read_kernel(&file, sizeof(file), slot_ptr + fd);
	/* closed by another thread already: no name */
	if (!file)
		return;
	add_name(st, s, which, BPF_CORE_READ(file, f_path.mnt), BPF_CORE_READ(file, f_path.dentry));
}

/* The names that only the kernel knows, at the exit of a call that succeeded. */
static __always_inline void add_names(struct task_state *st, const struct sc_desc *d)
{
	struct slot *s;
	s32 fds[2] = { -1, -1 };

	s = into_slot(st);
	if (!s)
		return;
	if (d->flags & SC_NEW_FD) {
		add_fd_name(st, s, CAPTURE_NAME0, st->rec.ret);
	} else if (d->flags & SC_FD_PAIR) {
		bpf_probe_read_user(fds, sizeof(fds), (void *)arg_of(st, d->cap_arg[0]));
		add_fd_name(st, s, CAPTURE_NAME0, fds[0]);
		add_fd_name(st, s, CAPTURE_NAME1, fds[1]);
	} else if (d->flags & SC_CWD) {
		struct fs_struct *fs = BPF_CORE_READ(current_task(), fs);

		add_name(st, s, CAPTURE_NAME0, BPF_CORE_READ(fs, pwd.mnt), BPF_CORE_READ(fs, pwd.dentry));
	}
}

#endif
