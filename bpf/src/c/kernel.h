/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few kernel types the programs touch, cut down to the fields they read.
 * Offsets come from the running kernel's BTF (CO-RE), so the order here means
 * nothing. Kernel shims (fields that moved or were renamed) end in ___NAME.
 */
#ifndef __SYSTAPE_KERNEL_H
#define __SYSTAPE_KERNEL_H

#define __VMLINUX_H__ /* bpf_tracing.h: pt_regs has the kernel's field names */

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* include/uapi/linux/bpf.h */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_CGROUP_ARRAY = 8,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1024 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_AVAIL_DATA = 0 };
#define BPF_F_CURRENT_CPU 0xffffffffULL
enum bpf_func_id { BPF_FUNC_task_pt_regs = 175 };
struct bpf_spin_lock {
	u32 val;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#include "machine.h"

typedef struct {
	s32 counter;
} atomic_t;

typedef struct {
	u32 val;
} kuid_t;

struct cred {
	kuid_t uid;
};

struct qstr {
	const unsigned char *name;
};

struct hlist_bl_node {
	struct hlist_bl_node *next, **pprev;
};

struct dentry_operations {
	char *(*d_dname)(void *, char *, int);
};

struct file_system_type {
	const char *name;
};

struct super_block {
	unsigned long s_magic;
	u32 s_dev;
	struct block_device *s_bdev;
	struct file_system_type *s_type;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct inode {
	unsigned long i_ino;
	u16 i_mode;
	unsigned int i_nlink;
	u32 i_generation;
	struct super_block *i_sb;
	struct hlist_head i_dentry;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	const struct dentry_operations *d_op;
	union {
		struct hlist_node d_alias;
	} d_u;
};

/* 7.2: the union has no name */
struct dentry___unnamed {
	struct hlist_node d_alias;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
	unsigned long *close_on_exec;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root;
	struct path pwd;
};

struct kernfs_node {
	u64 id;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup {
	struct kernfs_node *kn;
	struct cgroup_root *root;
	int level;
	struct cgroup *ancestors[1]; /* 6.1; by level, from the root */
};

/* before 6.1 */
struct cgroup___ids {
	u64 ancestor_ids[1];
};

/* With the kernel's numbers: the order is the configuration's. */
enum cgroup_subsys_id {
	memory_cgrp_id,
	pids_cgrp_id,
	cpu_cgrp_id,
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];
	struct cgroup *dfl_cgrp;
};

struct seccomp {
	int mode;
};

struct upid {
	int nr;
	void *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

typedef struct {
	unsigned long sig[1];
} sigset_t;

struct sigpending {
	sigset_t signal;
};

struct sigaction {
	void *sa_handler;
};

struct k_sigaction {
	struct sigaction sa;
};

struct spinlock {
	int unused;
};

struct sighand_struct {
	struct spinlock siglock;
	struct k_sigaction action[64];
};

union __sifields {
	struct {
		int _pid;
		u32 _uid;
	} _kill;
	struct {
		void *_addr;
	} _sigfault;
};

struct kernel_siginfo {
	int si_signo;
	int si_errno;
	int si_code;
	union __sifields _sifields;
};

struct list_head {
	struct list_head *next;
};

/* Each field by the kernel's configuration: CONFIG_TASK_XACCT, CONFIG_TASK_IO_ACCOUNTING */
struct task_io_accounting {
	u64 rchar, wchar, syscr, syscw;
	u64 read_bytes, write_bytes, cancelled_write_bytes;
};

typedef struct seqcount {
	unsigned int sequence;
} seqcount_t;

typedef struct seqcount_spinlock {
	seqcount_t seqcount;
} seqcount_spinlock_t;

typedef struct {
	seqcount_spinlock_t seqcount; /* 5.10 */
} seqlock_t;

/* The sums are of threads that were released, under stats_lock, which also guards their list and number. */
struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned int flags;
	int nr_threads;
	struct list_head thread_head;
	seqlock_t stats_lock;
	u64 utime, stime;
	unsigned long nvcsw, nivcsw, min_flt, maj_flt, inblock, oublock, maxrss;
	unsigned long long sum_sched_runtime;
	struct task_io_accounting ioac;
};

/* rss_stat since 6.2 (f1a7941243c1) */
struct percpu_counter {
	s64 count;
};

typedef struct {
	s64 counter;
} atomic64_t;

/* With PREEMPT_RT it has no count. */
struct rw_semaphore {
	atomic64_t count;
};

struct maple_tree {
	void *ma_root;
};

struct mm_struct {
	struct rw_semaphore mmap_lock; /* 5.8 */
	unsigned long arg_start, arg_end, env_start, env_end;
	unsigned long start_stack;
	unsigned long start_brk, brk;
	unsigned long start_code;
	unsigned long total_vm;
	struct maple_tree mm_mt; /* 6.1 */
	struct percpu_counter rss_stat[4];
};

/* 6.4 */
struct mm_struct___counter {
	int mm_lock_seq;
};

/* 6.13 */
struct mm_struct___seqcount {
	struct seqcount mm_lock_seq;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end;
	struct mm_struct *vm_mm;
	void *vm_ops;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct mm_rss_stat {
	atomic64_t count[4];
};

struct mm_struct___counts {
	struct mm_rss_stat rss_stat;
};

struct sched_info {
	u64 last_arrival;
	u64 last_queued; /* 0 = it waits for no CPU */
};

struct rq {
	u64 clock;
	u64 clock_task; /* without the time of interrupts, and of the host */
};

struct cfs_rq {
	struct rq *rq;
	int throttle_count;	       /* of it and the groups above that are out of quota; with CONFIG_CFS_BANDWIDTH */
	u64 throttled_clock_self;      /* 6.6: when that began, of rq->clock; 0 = it runs */
	u64 throttled_clock_self_time; /* the sum of those that are over */
};

struct sched_entity {
	struct cfs_rq *cfs_rq; /* with CONFIG_FAIR_GROUP_SCHED */
	u64 exec_start; /* of rq->clock_task */
	u64 sum_exec_runtime;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	void *stack;
	unsigned int flags;
	int on_cpu;
	int on_rq;
	int prio;
	unsigned int policy;
	struct mm_struct *mm;
	int exit_state;
	int pagefault_disabled;
	int exit_code;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	u64 start_time;
	u64 self_exec_id;
	const struct cred *real_cred;
	const struct cred *cred;
	char comm[16];
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
	struct sigpending pending;
	struct css_set *cgroups;
	struct seccomp seccomp;
	unsigned int ptrace;
	unsigned in_execve : 1;
	unsigned frozen : 1; /* in the freezer of a cgroup of v2 */
	sigset_t blocked;
	struct sighand_struct *sighand;
	int pdeath_signal;
	struct sched_info sched_info;
	struct sched_entity se;
	unsigned long nvcsw, nivcsw, min_flt, maj_flt;
	u64 utime, stime;
	struct list_head thread_node;
	struct task_io_accounting ioac;
	struct thread_struct thread;
	unsigned int cpu; /* before 5.16: then in thread_info */
	bool throttled;	  /* 6.18: it waits for its group's quota */
};

struct thread_info___cpu {
	u32 cpu;
};

struct task_struct___info {
	struct thread_info___cpu thread_info;
};

/* before 5.14 (2f064a59a11f: __state) */
struct task_struct___old {
	long state;
};

/* ---- block */

struct request_queue {
	const void *mq_ops;
	struct gendisk *disk; /* since 5.15 */
};

struct gendisk {
	int major;
	int first_minor;
	struct request_queue *queue;
};

struct block_device {
	struct gendisk *bd_disk;
	void *bd_holder;
};

struct bdev_inode {
	struct block_device bdev;
	struct inode vfs_inode;
};

struct kiocb {
	struct file *ki_filp;
	long long ki_pos;
};

struct iomap_dio {
	struct kiocb *iocb;
};

/* direct I/O of file systems that do not use iomap */
struct dio {
	struct inode *inode;
};

/* the numbers are the running kernel's: bpf_core_enum_value() */
enum pageflags {
	PG_locked,
	PG_writeback,
};

struct page {
	struct address_space *mapping;
	unsigned long compound_head; /* until 7.0 */
};

/* since 7.1: the address of the head page, or a mask */
struct page___info {
	unsigned long compound_info;
};

struct address_space {
	struct inode *host;
};

struct bio_vec {
	struct page *bv_page;
};

struct bvec_iter {
	u64 bi_sector;
	unsigned int bi_size;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	u8 bi_status;
	struct bvec_iter bi_iter;
	struct blkcg_gq *bi_blkg;
	unsigned short bi_vcnt;
	struct bio_vec *bi_io_vec;
	void *bi_end_io;
	void *bi_private;
};

/* before 5.12 (309dca309fc3) */
struct bio___old {
	struct gendisk *bi_disk;
};

enum mq_rq_state {
	MQ_RQ_IDLE = 0,
};

struct blk_flush_queue {
	unsigned int flush_pending_idx : 1;
	unsigned int flush_running_idx : 1;
	struct list_head flush_queue[2];
	struct request *flush_rq;
};

struct blk_mq_hw_ctx {
	struct blk_flush_queue *fq;
};

struct request {
	struct request_queue *q;
	struct blk_mq_hw_ctx *mq_hctx;
	struct list_head queuelist;
	unsigned int cmd_flags;
	unsigned int __data_len;
	u64 __sector;
	struct bio *bio;
	u64 start_time_ns;
	enum mq_rq_state state;
};

/* where requests wait for a flush in a list of their own: before 6.5 (81ada09cc25e) */
struct request___flush {
	struct {
		struct list_head list;
	} flush;
};

/* before 5.17 (f3fa33acca9f) */
struct request___old {
	struct gendisk *rq_disk;
};

/* ---- net and io_uring */

struct in6_addr {
	u8 s6_addr[16];
};

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct proto {
	char name[32];
};

struct sock_common {
	struct proto *skc_prot;
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	unsigned long skc_flags;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct socket;

/* include/net/sock.h */
enum sock_flags {
	SOCK_DONE = 1,
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_type;
	u16 sk_protocol;
	int sk_err;
	struct socket *sk_socket;
};

struct socket {
	struct sock *sk;
};

struct sk_buff {
	struct sock *sk;
	unsigned int len;
	unsigned char *data;
};

struct socket_alloc {
	struct socket socket;
	struct inode vfs_inode;
};

struct sockaddr_un {
	char sun_path[108];
};

struct unix_address {
	int len; /* of the name, with the two bytes of its family */
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

struct netlink_sock {
	u32 portid;
};

struct inet_sock {
	__be16 inet_sport;
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct list_head tsorted_sent_queue;
	u64 bytes_sent;
	u64 bytes_retrans;
	u64 bytes_acked;
	u64 bytes_received;
	u32 segs_out;
	u32 segs_in;
	u32 data_segs_out;
	u32 data_segs_in;
	u32 total_retrans;
	u32 srtt_us; /* 8 times as much */
	u32 mdev_us; /* 4 times as much */
	struct minmax rtt_min;
	u32 snd_cwnd;
	u32 mss_cache;
	u32 rcv_nxt;
	u32 copied_seq;
	u32 snd_una;
	u32 snd_nxt;
	u32 write_seq;
	u32 lsndtime;
};

struct request_sock {
	struct request_sock *dl_next;
	struct sock *sk;
};

struct request_sock_queue {
	struct request_sock *rskq_accept_head;
};

struct received {
	u32 lrcvtime;
};

struct inet_bind_bucket {
	signed char fastreuse;
};

struct inet_connection_sock {
	struct request_sock_queue icsk_accept_queue;
	struct inet_bind_bucket *icsk_bind_hash;
	struct received icsk_ack; /* without a type of its own there */
};

struct io_cmd_data {
	struct file *file;
};

struct io_cqe {
	int fd; /* 6.0: until the request ends */
};

struct io_kiocb {
	struct file *file;
	struct io_cmd_data cmd; /* 5.19; the same memory */
	u8 opcode;
	struct io_cqe cqe;
};

struct io_rw { /* 6.0 */
	struct kiocb kiocb;
	u32 len;
};

struct io_open {
	u32 file_slot;
};

struct io_close {
	int fd;
	u32 file_slot;
};

struct io_accept {
	u32 file_slot;
};

struct io_socket {
	u32 file_slot;
};

struct io_uring_cqe {
	s32 res;
	u32 flags;
};

struct linux_binprm {
	struct file *file;
	const char *filename;
	const char *interp;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	void *map;
	void *key;
	void *value;
};

#pragma clang attribute pop

#endif
