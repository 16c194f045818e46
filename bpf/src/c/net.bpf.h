/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Families "net" (states of connections) and "io_uring" (I/O that is no syscall). */
#ifndef __SYSTAPE_NET_H
#define __SYSTAPE_NET_H

#define AF_INET6 10
#define TCP_CLOSE 7
#define TCP_LISTEN 10

SEC("tp_btf/inet_sock_set_state")
int inet_sock_set_state(u64 *ctx)
{
	const struct sock *sk = (void *)ctx[0];
	struct task_struct *current = current_task();
	struct wire_net w = {};
	u64 key = (u64)sk;
	u8 one = 1;

	if (window != WINDOW_OPEN)
		return 0;
	w.old_state = ctx[1];
	w.new_state = ctx[2];
	w.sport = BPF_CORE_READ(sk, __sk_common.skc_num);
	if (in_interrupt(ctx, current))
		w.hdr.flags |= NET_IRQ;
	if (!records_everything()) {
		/* a connection that comes in belongs to who listens on its port */
		if (!(w.hdr.flags & NET_IRQ) && is_recorded(current)) {
			bpf_map_update_elem(&sockets, &key, &one, BPF_ANY);
			if (w.new_state == TCP_LISTEN)
				bpf_map_update_elem(&listening, &w.sport, &one, BPF_ANY);
		} else if (!bpf_map_lookup_elem(&sockets, &key) && !bpf_map_lookup_elem(&listening, &w.sport)) {
			return 0;
		}
		if (w.new_state == TCP_CLOSE)
			bpf_map_delete_elem(&sockets, &key);
	}
	if (w.hdr.flags & NET_IRQ && is_own_softirq(ctx, current))
		w.hdr.flags |= NET_SOFTIRQ;
	w.hdr.kind = WIRE_NET;
	w.hdr.cpu = bpf_get_smp_processor_id();
	w.ts = bpf_ktime_get_ns();
	w.socket = key;
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

SEC("tp_btf/io_uring_submit_req")
int io_uring_submit_req(u64 *ctx)
{
	struct io_kiocb *req = (void *)ctx[0];

	return submitted(BPF_CORE_READ(req, opcode));
}

/* before 6.3 */
SEC("tp_btf/io_uring_submit_sqe")
int io_uring_submit_sqe(u64 *ctx)
{
	struct io_kiocb *req;

	if (has_uring_opcode)
		return submitted(CTX_ARG(ctx, 1));
	req = (void *)CTX_ARG(ctx, 0);
	return submitted(BPF_CORE_READ(req, opcode));
}

#endif
