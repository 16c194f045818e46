/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a socket is called: its protocol, its ends and its inode. Read when a
 * call returns that may have changed it (socket, bind, connect, accept ...), and
 * of those that exist already when the recording begins.
 */
#ifndef __SYSTAPE_NAMES_H
#define __SYSTAPE_NAMES_H

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define AF_NETLINK 16
#define S_IFMT 0170000
#define S_IFSOCK 0140000

/* include/uapi/asm-generic/fcntl.h, linux/fcntl.h */
#define F_DUPFD 0
#define F_SETFD 2
#define F_DUPFD_CLOEXEC 1030
#define O_CLOEXEC 02000000

/* include/uapi/linux/net.h */
#define SYS_BIND 2
#define SYS_CONNECT 3
#define SYS_LISTEN 4
#define SYS_GETSOCKNAME 6

/* The open file of the current task; NULL when there is none (or no longer). */
static __always_inline struct file *file_of(s32 fd)
{
	struct task_struct *task = UNTRUSTED(struct task_struct, current_task());
	struct file **table, *file = NULL;
	u32 max_fds;

	/* loads rather than probe reads, where the kernel allows it */
	if (has_task_storage) {
		max_fds = task->files->fdt->max_fds;
		table = task->files->fdt->fd;
	} else {
		max_fds = BPF_CORE_READ(task, files, fdt, max_fds);
		table = BPF_CORE_READ(task, files, fdt, fd);
	}
	if (fd < 0 || (u32)fd >= max_fds)
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), table + fd);
	return file;
}

static __always_inline struct sock *sock_of(struct inode *inode)
{
	void *both = (void *)inode - bpf_core_field_offset(struct socket_alloc, vfs_inode);

	return LOADED(struct socket_alloc, both, socket.sk);
}

/* Inode of the socket of a kernel's sock; 0 = it has none: nobody accepted it yet, or it was closed. */
static __always_inline u64 socket_inode(struct sock *sk)
{
	void *socket = LOADED(struct sock, sk, sk_socket);

	if (!socket)
		return 0;
	return LOADED(struct socket_alloc, socket - bpf_core_field_offset(struct socket_alloc, socket),
		      vfs_inode.i_ino);
}

static __always_inline void fill_unix(struct wire_socket *w, struct sock *sk)
{
	struct unix_address *address;
	struct sock *peer;
	void *path;
	u32 len;

	/* it may be a module, of which the kernel's BTF knows nothing */
	if (!bpf_core_type_exists(struct unix_sock) || !bpf_core_type_exists(struct unix_address))
		return;
	peer = LOADED(struct unix_sock, sk, peer);
	if (peer)
		w->peer = socket_inode(peer);
	address = LOADED(struct unix_sock, sk, addr);
	if (!address)
		return;
	len = LOADED(struct unix_address, address, len) - sizeof(u16);
	if (len > SOCKET_PATH_MAX)
		return;
	path = (void *)address + bpf_core_field_offset(struct unix_address, name) +
	       bpf_core_field_offset(struct sockaddr_un, sun_path);
	if (!bpf_probe_read_kernel(w->path, at_most(len, SOCKET_PATH_MAX), path))
		w->path_len = len;
}

/* The network namespace of a socket whose addresses are of another one than those of process 1; 0 = of the same, or not known. */
static __always_inline u32 other_namespace(struct sock *sk)
{
	struct net *net;
	u32 number;

	if (!host_namespace || !bpf_core_field_exists(sk->__sk_common.skc_net.net))
		return 0;
	net = LOADED(struct sock, sk, __sk_common.skc_net.net);
	if (!net)
		return 0;
	number = LOADED(struct net, net, ns.inum);
	return number == host_namespace ? 0 : number;
}

/* All but the inode, in a zeroed record. */
static __always_inline void fill_sock(struct wire_socket *w, struct sock *sk)
{
	struct proto *proto;

	w->address = (u64)sk;
	w->family = LOADED(struct sock, sk, __sk_common.skc_family);
	w->protocol = LOADED(struct sock, sk, sk_protocol);
	proto = LOADED(struct sock, sk, __sk_common.skc_prot);
	bpf_probe_read_kernel_str(w->proto, sizeof(w->proto),
				  (void *)proto + bpf_core_field_offset(struct proto, name));
	if (w->family == AF_UNIX) {
		fill_unix(w, sk);
		return;
	}
	w->namespace = other_namespace(sk);
	if (w->family == AF_NETLINK) {
		if (bpf_core_type_exists(struct netlink_sock))
			w->portid = LOADED(struct netlink_sock, sk, portid);
	} else if (w->family == AF_INET || w->family == AF_INET6) {
		w->sport = LOADED(struct sock, sk, __sk_common.skc_num);
		w->dport = __builtin_bswap16(LOADED(struct sock, sk, __sk_common.skc_dport));
		if (w->family == AF_INET) {
			bpf_core_read(&w->saddr, 4, &sk->__sk_common.skc_rcv_saddr);
			bpf_core_read(&w->daddr, 4, &sk->__sk_common.skc_daddr);
		} else if (bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
			BPF_CORE_READ_INTO(&w->saddr, sk, __sk_common.skc_v6_rcv_saddr);
			BPF_CORE_READ_INTO(&w->daddr, sk, __sk_common.skc_v6_daddr);
		}
	}
}

/* Not inlined: the verifier walks it once for each caller. */
static __noinline int fill_socket(struct wire_socket *w, struct inode *inode)
{
	struct sock *sk;

	__builtin_memset(w, 0, sizeof(*w));
	w->inode = LOADED(struct inode, inode, i_ino);
	sk = sock_of(inode);
	if (sk)
		fill_sock(w, sk);
	return 0;
}

/*
 * Whether the file is a socket without an address of its own that gets one with
 * what it sends first.
 */
static __always_inline bool is_unbound(s32 fd)
{
	struct file *file = file_of(fd);
	struct inode *inode;
	struct sock *sk;
	u16 family;

	if (!file)
		return false;
	inode = LOADED(struct file, file, f_inode);
	if (!inode || (LOADED(struct inode, inode, i_mode) & S_IFMT) != S_IFSOCK)
		return false;
	sk = sock_of(inode);
	if (!sk)
		return false;
	family = LOADED(struct sock, sk, __sk_common.skc_family);
	if (family == AF_INET || family == AF_INET6)
		return !LOADED(struct sock, sk, __sk_common.skc_num);
	if (family == AF_NETLINK && bpf_core_type_exists(struct netlink_sock))
		return !LOADED(struct netlink_sock, sk, portid);
	return false;
}

/* The socket that the call that ended may have changed the name of; -1 = none. Not inlined: one state for the verifier. */
static __noinline int named_socket(const struct task_state *st, const struct sc_desc *d)
{
	u32 call = st->rec.args[0];

	if (d->socket == SOCKET_CALL)
		return call == SYS_BIND || call == SYS_CONNECT || call == SYS_LISTEN || call == SYS_GETSOCKNAME ?
			       user_u32(st->rec.args[1]) : -1;
	return d->socket == SOCKET_NAMED || st->binds ? st->rec.args[0] : -1;
}

/* Returns bytes written at data + off. */
static __always_inline u32 socket_name(u8 *data, u32 off, struct inode *inode)
{
	struct wire_socket *w = (void *)&data[off + 1];

	data[off] = NAME_SOCKET;
	fill_socket(w, inode);
	return 1 + WIRE_PATHLESS_SOCKET + (w->path_len & 127);
}

#endif
