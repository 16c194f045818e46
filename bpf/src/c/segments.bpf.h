/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Family "net": segments by which something begins or ends for the program that
 * has a TCP connection: when bytes came that nobody has read yet, when all that
 * it wrote has arrived, and when the rest of it could leave.
 *
 * Nothing is kept between segments: what a segment means follows from the
 * socket. tcp_probe is run for each segment of an established connection before
 * the socket takes it (tcp_rcv_established in net/ipv4/tcp_input.c); while a
 * call holds the socket, when that lets go of it.
 */
#ifndef __SYSTAPE_SEGMENTS_H
#define __SYSTAPE_SEGMENTS_H

/* Such a segment. */
struct wire_segment {
	struct wire_hdr hdr; /* flags: enum segment_flags */
	u64 ts;
	u64 socket; /* as in wire_net */
};

/* include/uapi/linux/tcp.h */
struct segment_header {
	u16 source;
	u16 dest;
	u32 seq;
	u32 ack_seq;
	u8 offset; /* in its upper half: words of the header */
	u8 flags;
	u16 window;
};

#define TCP_FLAG_ACK_BIT 0x10

/* Whether all that is read of the socket is there. */
static __always_inline bool follows_segments(const struct sock *sk)
{
	struct tcp_sock *tcp = (void *)sk;
	struct inet_connection_sock *connection = (void *)sk;
	struct sk_buff *skb = NULL;

	return bpf_core_field_exists(tcp->rcv_nxt) && bpf_core_field_exists(tcp->copied_seq) &&
	       bpf_core_field_exists(tcp->write_seq) && bpf_core_field_exists(tcp->snd_nxt) &&
	       bpf_core_field_exists(tcp->snd_una) && bpf_core_field_exists(tcp->lsndtime) &&
	       bpf_core_field_exists(tcp->mss_cache) && bpf_core_field_exists(connection->icsk_ack.lrcvtime) &&
	       bpf_core_field_exists(skb->data) && bpf_core_field_exists(skb->len);
}

/* What bytes at `seq` mean: BEGINS if they are the next, nothing lies there unread, and nothing was received since something was sent. */
static __always_inline u16 of_data(struct sock *sk, u32 seq)
{
	u32 next = TCP_FIELD(sk, rcv_nxt), sent, received;

	if (seq != next || TCP_FIELD(sk, copied_seq) != next)
		return 0;
	sent = TCP_FIELD(sk, lsndtime);
	received = LOADED(struct inet_connection_sock, (struct inet_connection_sock *)sk, icsk_ack.lrcvtime);
	return (s32)(sent - received) < 0 ? 0 : SEGMENT_BEGINS;
}

/* What it means that all before `seq` has arrived. */
static __always_inline u16 of_ack(struct sock *sk, u32 seq)
{
	u32 acked = TCP_FIELD(sk, snd_una), written = TCP_FIELD(sk, write_seq), left;

	if (acked == seq || (s32)(seq - acked) < 0)
		return 0;
	if (seq == written)
		return SEGMENT_ACKS;
	left = written - TCP_FIELD(sk, snd_nxt);
	return left && left <= TCP_FIELD(sk, mss_cache) ? SEGMENT_FREES : 0;
}

int tcp_probe(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct sk_buff *skb = (void *)ctx[1];
	struct segment_header header;
	struct wire_segment w = {};
	u32 words;

	if (window != WINDOW_OPEN || !follows_segments(sk))
		return 0;
	if (bpf_probe_read_kernel(&header, sizeof(header), (void *)LOADED(struct sk_buff, skb, data)))
		return 0;
	words = header.offset >> 4;
	if (LOADED(struct sk_buff, skb, len) > words * 4)
		w.hdr.flags |= of_data(sk, __builtin_bswap32(header.seq));
	if (header.flags & TCP_FLAG_ACK_BIT)
		w.hdr.flags |= of_ack(sk, __builtin_bswap32(header.ack_seq));
	w.socket = (u64)sk;
	if (!w.hdr.flags || (!records_everything() && !bpf_map_lookup_elem(&sockets, &w.socket)))
		return 0;
	w.hdr.kind = WIRE_SEGMENT;
	w.hdr.cpu = bpf_get_smp_processor_id();
	w.ts = bpf_ktime_get_ns();
	send_event(&w, sizeof(w), DROP_NET);
	return 0;
}

#endif
