/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Families "net" (states of connections) and "io_uring" (I/O that is no syscall). */
#ifndef __SYSTAPE_NET_H
#define __SYSTAPE_NET_H

#define IPPROTO_TCP 6
#define TCP_CLOSE 7
#define TCP_LISTEN 10

static __always_inline u64 net_of(const struct sock *sk)
{
	return (u64)BPF_CORE_READ(sk, __sk_common.skc_net.net);
}

/*
 * The local port; 0 = none yet. A socket that goes to CLOSE has given back the
 * number and still has the port of its packets, which before that may be an
 * earlier connection's (tcp_set_state, inet_put_port).
 */
static __always_inline u16 local_port(const struct sock *sk, u8 new_state)
{
	u16 port = BPF_CORE_READ(sk, __sk_common.skc_num);

	if (!port && new_state == TCP_CLOSE)
		port = __builtin_bswap16(BPF_CORE_READ((struct inet_sock *)sk, inet_sport));
	return port;
}

/*
 * The listener from which a connection's new socket was copied; 0 = not known.
 * At the tracepoint the copy has all of the listener's fields, also its empty
 * list of packets, whose head points to itself (inet_csk_clone_lock; the list
 * is set up later, in tcp_create_openreq_child).
 */
static __always_inline u64 listener_of(const struct sock *child)
{
	struct tcp_sock *copy = (void *)child, *from;
	u64 head;

	if (BPF_CORE_READ(child, sk_protocol) != IPPROTO_TCP || !bpf_core_field_exists(copy->tsorted_sent_queue))
		return 0;
	head = (u64)BPF_CORE_READ(copy, tsorted_sent_queue.next);
	from = (void *)(head - bpf_core_field_offset(copy->tsorted_sent_queue));
	if ((u64)BPF_CORE_READ(from, tsorted_sent_queue.next) != head)
		return 0;
	if (BPF_CORE_READ((struct sock *)from, __sk_common.skc_state) != TCP_LISTEN)
		return 0;
	return (u64)from;
}

static __always_inline void note_socket(u64 address)
{
	u8 one = 1;

	if (bpf_map_update_elem(&sockets, &address, &one, BPF_ANY))
		count_drop(DROP_NET_STATE);
}

static __always_inline void note_listener(const struct sock *sk, u16 port, bool listens)
{
	struct listen_key key = { .net = net_of(sk), .port = port, .protocol = BPF_CORE_READ(sk, sk_protocol) };
	u8 one = 1;

	if (!port)
		return;
	if (!listens)
		bpf_map_delete_elem(&listening, &key);
	else if (bpf_map_update_elem(&listening, &key, &one, BPF_ANY))
		count_drop(DROP_NET_STATE);
}

/* Whether a target listens for the connection of a new socket. Others may listen on the same port. */
static __always_inline bool is_targets_child(const struct sock *sk, u16 port)
{
	struct listen_key key = { .net = net_of(sk), .port = port, .protocol = BPF_CORE_READ(sk, sk_protocol) };
	u64 listener = listener_of(sk);

	if (listener)
		return bpf_map_lookup_elem(&sockets, &listener);
	return bpf_map_lookup_elem(&listening, &key);
}

/*
 * Whether a change belongs to a target; also tracks the targets' sockets. A
 * socket becomes a target's with a change made by a target, at its birth if a
 * target listens for it, or because a target had it open at the start. Then
 * every change of it counts, in any task's interrupt, until it is closed.
 */
static __always_inline bool follow(const struct sock *sk, struct task_struct *current, bool irq, u8 old_state,
				   u8 new_state, u16 port)
{
	bool incoming = old_state == TCP_LISTEN && new_state != TCP_CLOSE, ours;
	u64 address = (u64)sk;

	if (incoming)
		ours = is_targets_child(sk, port);
	/* a kernel thread acts for others (ksoftirqd) */
	else if (!irq && !(FIELD(current, flags) & PF_KTHREAD) && is_recorded(current))
		ours = true;
	/* at the beginning of a socket's life the note at its address is an older one's */
	else
		ours = old_state != TCP_CLOSE && bpf_map_lookup_elem(&sockets, &address);

	if (ours && (new_state == TCP_LISTEN || old_state == TCP_LISTEN) && !incoming)
		note_listener(sk, port, new_state == TCP_LISTEN);
	if (ours && new_state != TCP_CLOSE)
		note_socket(address);
	else if (ours || old_state == TCP_CLOSE || incoming)
		bpf_map_delete_elem(&sockets, &address);
	return ours;
}

int inet_sock_set_state(u64 *ctx)
{
	const struct sock *sk = (void *)ctx[0];
	struct task_struct *current = current_task();
	struct wire_net w = {};

	if (window == WINDOW_DRAINING || (window != WINDOW_OPEN && records_everything()))
		return 0;
	w.old_state = ctx[1];
	w.new_state = ctx[2];
	w.sport = local_port(sk, w.new_state);
	if (in_interrupt(ctx, current))
		w.hdr.flags |= NET_IRQ;
	if (!records_everything() &&
	    !follow(sk, current, w.hdr.flags & NET_IRQ, w.old_state, w.new_state, w.sport))
		return 0;
	/* the sockets' tasks had to be known before */
	if (window != WINDOW_OPEN)
		return 0;
	if (w.hdr.flags & NET_IRQ && is_own_softirq(ctx, current))
		w.hdr.flags |= NET_SOFTIRQ;
	w.hdr.kind = WIRE_NET;
	w.hdr.cpu = bpf_get_smp_processor_id();
	w.ts = bpf_ktime_get_ns();
	w.socket = (u64)sk;
	fill_who(&w.who, current);
	w.family = BPF_CORE_READ(sk, __sk_common.skc_family);
	w.protocol = BPF_CORE_READ(sk, sk_protocol);
	w.dport = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (w.family == AF_INET6) {
		BPF_CORE_READ_INTO(&w.saddr, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&w.daddr, sk, __sk_common.skc_v6_daddr);
	} else {
		bpf_core_read(&w.saddr, 4, &sk->__sk_common.skc_rcv_saddr);
		bpf_core_read(&w.daddr, 4, &sk->__sk_common.skc_daddr);
	}
	send_event(&w, sizeof(w), DROP_NET);
	return 0;
}

static __always_inline int submitted(u8 opcode)
{
	struct task_struct *current = current_task();
	struct wire_uring w = {};

	if (window != WINDOW_OPEN || !is_recorded(current))
		return 0;
	w.hdr.kind = WIRE_URING;
	w.hdr.flags = opcode;
	w.hdr.cpu = bpf_get_smp_processor_id();
	w.ts = bpf_ktime_get_ns();
	fill_who(&w.who, current);
	send_event(&w, sizeof(w), DROP_URING);
	return 0;
}

int io_uring_submit_req(u64 *ctx)
{
	struct io_kiocb *req = (void *)ctx[0];

	return submitted(BPF_CORE_READ(req, opcode));
}

/* before 6.3 */
int io_uring_submit_sqe(u64 *ctx)
{
	struct io_kiocb *req;

	if (has_uring_opcode)
		return submitted(CTX_ARG(ctx, 1));
	req = (void *)CTX_ARG(ctx, 0);
	return submitted(BPF_CORE_READ(req, opcode));
}

#endif
