/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Family "net": states of connections. */
#ifndef __SYSTAPE_NET_H
#define __SYSTAPE_NET_H

#define IPPROTO_TCP 6
#define SOCK_STREAM 1
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

/* When, where, which socket and its ends, except for its own port. */
static __always_inline void fill_net(struct wire_net *w, const struct sock *sk, struct task_struct *task)
{
	w->hdr.kind = WIRE_NET;
	w->hdr.cpu = bpf_get_smp_processor_id();
	w->ts = bpf_ktime_get_ns();
	w->socket = (u64)sk;
	fill_who(&w->who, task);
	w->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	w->protocol = BPF_CORE_READ(sk, sk_protocol);
	w->dport = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (w->family == AF_INET6) {
		BPF_CORE_READ_INTO(&w->saddr, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&w->daddr, sk, __sk_common.skc_v6_daddr);
	} else {
		bpf_core_read(&w->saddr, 4, &sk->__sk_common.skc_rcv_saddr);
		bpf_core_read(&w->daddr, 4, &sk->__sk_common.skc_daddr);
	}
}

/* Whether the socket is a struct tcp_sock with all that is read of it. A raw one has the protocol too. */
static __always_inline bool counts_bytes(const struct sock *sk)
{
	struct tcp_sock *tcp = (void *)sk;
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	return (family == AF_INET || family == AF_INET6) && BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP &&
	       BPF_CORE_READ(sk, sk_type) == SOCK_STREAM && bpf_core_field_exists(tcp->bytes_sent) &&
	       bpf_core_field_exists(tcp->bytes_retrans) && bpf_core_field_exists(tcp->bytes_acked) &&
	       bpf_core_field_exists(tcp->bytes_received) && bpf_core_field_exists(tcp->segs_out) &&
	       bpf_core_field_exists(tcp->segs_in) && bpf_core_field_exists(tcp->data_segs_out) &&
	       bpf_core_field_exists(tcp->data_segs_in) && bpf_core_field_exists(tcp->total_retrans) &&
	       bpf_core_field_exists(tcp->srtt_us) && bpf_core_field_exists(tcp->mdev_us) &&
	       bpf_core_field_exists(tcp->rtt_min) && bpf_core_field_exists(tcp->snd_cwnd) &&
	       bpf_core_field_exists(tcp->mss_cache) && bpf_core_field_exists(sk->__sk_common.skc_flags) &&
	       bpf_core_enum_value_exists(enum sock_flags, SOCK_DONE);
}

#define TCP_FIELD(sk, field) LOADED(struct tcp_sock, (struct tcp_sock *)sk, field)

/* What the connection did; only if it counts_bytes. */
static __always_inline void fill_tcp(struct wire_tcp *w, struct sock *sk)
{
	w->net.hdr.kind = WIRE_TCP;
	w->inode = socket_inode(sk);
	w->bytes_sent = TCP_FIELD(sk, bytes_sent);
	w->bytes_retrans = TCP_FIELD(sk, bytes_retrans);
	w->bytes_acked = TCP_FIELD(sk, bytes_acked);
	w->bytes_received = TCP_FIELD(sk, bytes_received);
	w->segs_out = TCP_FIELD(sk, segs_out);
	w->segs_in = TCP_FIELD(sk, segs_in);
	w->data_segs_out = TCP_FIELD(sk, data_segs_out);
	w->data_segs_in = TCP_FIELD(sk, data_segs_in);
	w->retransmits = TCP_FIELD(sk, total_retrans);
	w->srtt_us = TCP_FIELD(sk, srtt_us);
	w->rttvar_us = TCP_FIELD(sk, mdev_us);
	w->min_rtt_us = TCP_FIELD(sk, rtt_min.s[0].v);
	w->cwnd = TCP_FIELD(sk, snd_cwnd);
	w->mss = TCP_FIELD(sk, mss_cache);
	/* tcp_fin sets it, and counts one byte for the FIN */
	w->has_fin = LOADED(struct sock, sk, __sk_common.skc_flags) >> bpf_core_enum_value(enum sock_flags, SOCK_DONE) & 1;
}

static __always_inline void note_closed(const struct wire_net *w)
{
	u32 zero = 0;
	struct closed_socket *c = bpf_map_lookup_elem(&closed_sockets, &zero);

	if (c) {
		c->address = w->socket;
		c->ts = w->ts;
	}
}

/* Whether a socket is a target's, or was until just now (NET_ERROR_AFTER). */
static __always_inline bool is_targets(u64 address)
{
	struct closed_socket *c;
	u32 zero = 0;

	if (bpf_map_lookup_elem(&sockets, &address))
		return true;
	c = bpf_map_lookup_elem(&closed_sockets, &zero);
	return c && c->address == address && bpf_ktime_get_ns() - c->ts < NET_ERROR_AFTER;
}

int inet_sock_set_state(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct task_struct *current = current_task();
	struct wire_tcp w = {};
	struct wire_net *net = &w.net;

	if (window == WINDOW_DRAINING || (window != WINDOW_OPEN && records_everything()))
		return 0;
	net->old_state = ctx[1];
	net->new_state = ctx[2];
	net->sport = local_port(sk, net->new_state);
	if (in_interrupt(ctx, current))
		net->hdr.flags |= NET_IRQ;
	if (!records_everything() &&
	    !follow(sk, current, net->hdr.flags & NET_IRQ, net->old_state, net->new_state, net->sport))
		return 0;
	/* the sockets' tasks had to be known before */
	if (window != WINDOW_OPEN)
		return 0;
	if (net->hdr.flags & NET_IRQ && is_own_softirq(ctx, current))
		net->hdr.flags |= NET_SOFTIRQ;
	fill_net(net, sk, current);
	if (net->new_state == TCP_CLOSE && !records_everything())
		note_closed(net);
	if (net->new_state == TCP_CLOSE && net->old_state != TCP_LISTEN && counts_bytes(sk)) {
		fill_tcp(&w, sk);
		send_event(&w, sizeof(w), DROP_NET);
	} else {
		send_event(net, sizeof(*net), DROP_NET);
	}
	return 0;
}

/* What a connection in an open file of `task` has done so far. Not inlined: its record would not fit the caller's stack. */
static __noinline int send_open(struct sock *sk, struct task_struct *task)
{
	struct wire_tcp w = {};
	u8 state;

	if (!sk || !counts_bytes(sk))
		return 0;
	state = BPF_CORE_READ(sk, __sk_common.skc_state);
	if (state == TCP_CLOSE || state == TCP_LISTEN)
		return 0;
	w.net.old_state = w.net.new_state = state;
	w.net.sport = local_port(sk, state);
	w.net.hdr.flags = window == WINDOW_DRAINING ? NET_FOUND | NET_STOP : NET_FOUND;
	fill_net(&w.net, sk, task);
	fill_tcp(&w, sk);
	send_event(&w, sizeof(w), DROP_NET);
	return 0;
}

/* Something of a socket that is no change of its state; `flag`: which. */
static __always_inline void send_incident(u64 *ctx, u16 flag)
{
	struct sock *sk = (void *)ctx[0];
	struct task_struct *current = current_task();
	struct wire_incident w = {};
	u64 address = (u64)sk;

	if (window != WINDOW_OPEN || (!records_everything() && !is_targets(address)))
		return;
	w.net.hdr.flags = in_interrupt(ctx, current) ? flag | NET_IRQ : flag;
	w.net.old_state = w.net.new_state = BPF_CORE_READ(sk, __sk_common.skc_state);
	w.net.sport = local_port(sk, TCP_CLOSE);
	w.net.error = BPF_CORE_READ(sk, sk_err);
	fill_net(&w.net, sk, current);
	w.net.hdr.kind = WIRE_INCIDENT;
	w.inode = socket_inode(sk);
	send_event(&w, sizeof(w), DROP_NET);
}

int tcp_retransmit_skb(u64 *ctx)
{
	send_incident(ctx, NET_RETRANSMIT);
	return 0;
}

/* 5.14 */
int inet_sk_error_report(u64 *ctx)
{
	send_incident(ctx, 0);
	return 0;
}

#endif
