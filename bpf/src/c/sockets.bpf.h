/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets of targets when the recording begins: in their open files, and in the
 * queues of their listeners; and what those in open files are called.
 */
#ifndef __SYSTAPE_SOCKETS_H
#define __SYSTAPE_SOCKETS_H

#define IPPROTO_DCCP 33
#define IPPROTO_SCTP 132
#define IPPROTO_MPTCP 262

/* Most established connections of a listener that were not accepted yet: so many times so many. */
#define UNACCEPTED_ROUNDS 64
#define UNACCEPTED_A_ROUND 32

/* Protocols that inet_sock_set_state reports. Others never go to CLOSE, and would stay. */
static __always_inline bool has_states(const struct sock *sk)
{
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family), protocol = BPF_CORE_READ(sk, sk_protocol);

	return (family == AF_INET || family == AF_INET6) &&
	       (protocol == IPPROTO_TCP || protocol == IPPROTO_DCCP || protocol == IPPROTO_SCTP ||
		protocol == IPPROTO_MPTCP);
}

static __always_inline u8 state_of_socket(const struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_state);
}

/* Not static: the verifier checks it once rather than for each pass of a loop. */
__noinline int note_existing(u64 address)
{
	const struct sock *sk = (void *)address;

	if (!sk || state_of_socket(sk) == TCP_CLOSE)
		return 0;
	note_socket(address);
	/* closed in between: nothing else would remove it */
	if (state_of_socket(sk) == TCP_CLOSE)
		bpf_map_delete_elem(&sockets, &address);
	return 0;
}

/* Of a listener's queue, from a request on; returns the next, 0 = there is none. Not static, as above. */
__noinline u64 note_unaccepted(u64 from)
{
	struct request_sock *request = (void *)from;

	for (int i = 0; i < UNACCEPTED_A_ROUND && request; i++) {
		note_existing((u64)BPF_CORE_READ(request, sk));
		request = BPF_CORE_READ(request, dl_next);
	}
	return (u64)request;
}

int walk_files(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct socket *socket;
	struct sock *sk;
	u64 files, request;

	if (!task || !file)
		return 0;
	files = (u64)BPF_CORE_READ(task, files);
	if (!bpf_map_lookup_elem(&target_files, &files))
		return 0;
	if ((BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	if (!sk || !has_states(sk))
		return 0;
	note_existing((u64)sk);
	if (state_of_socket(sk) != TCP_LISTEN)
		return 0;
	note_listener(sk, BPF_CORE_READ(sk, __sk_common.skc_num), true);
	request = (u64)BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_accept_queue.rskq_accept_head);
	for (int i = 0; i < UNACCEPTED_ROUNDS && request; i++)
		request = note_unaccepted(request);
	return 0;
}

/* A function, so that the record is among the types that Rust gets. */
static __noinline int fill_open(struct wire_open *open, struct inode *inode, u32 pid, s32 fd)
{
	open->pid = pid;
	open->fd = fd;
	return fill_inode(&open->inode, inode);
}

/*
 * Open files: which they are and what sockets are called when the recording
 * begins, and what connections did until then and until its end. One of several
 * descriptors' is given as often.
 */
int walk_opens(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct wire_open open;
	struct wire_socket w;
	struct inode *inode;
	bool is_socket;

	if (!task || !file || !files_matter(task))
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	is_socket = (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFSOCK;
	/* a thread with a table of its own has other files behind the process's numbers */
	if (!is_socket && (window == WINDOW_DRAINING || BPF_CORE_READ(task, pid) != BPF_CORE_READ(task, tgid)))
		return 0;
	fill_open(&open, inode, BPF_CORE_READ(task, tgid), ctx->fd);
	if (!is_socket) {
		bpf_seq_write(ctx->meta->seq, &open, sizeof(open));
		return 0;
	}
	if (records_net)
		send_open(sock_of(inode), task);
	/* they are known by then */
	if (window == WINDOW_DRAINING)
		return 0;
	fill_socket(&w, inode);
	bpf_seq_write(ctx->meta->seq, &open, sizeof(open));
	bpf_seq_write(ctx->meta->seq, &w, sizeof(w));
	return 0;
}

#endif
