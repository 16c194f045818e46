// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * All of systape's programs in one object: the families share maps and helpers.
 * A new family is a new file included here, and its rows in events.def.h.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire.h"
#include "programs.h"
#include "maps.bpf.h"
#include "order.bpf.h"
#include "emit.bpf.h"
#include "task.bpf.h"
#include "registers.bpf.h"
#include "softirq.bpf.h"
#include "ledger.bpf.h"
#include "capture.bpf.h"
#include "structs.bpf.h"
#include "names.bpf.h"
#include "path.bpf.h"
#include "stacks.bpf.h"
#include "plain.bpf.h"
#include "rows.bpf.h"
#include "files.bpf.h"
#include "uring.bpf.h"
#include "operations.bpf.h"
#include "syscalls.bpf.h"
#include "usage.bpf.h"
#include "process.bpf.h"
#include "sched.bpf.h"
#include "signals.bpf.h"
#include "block.bpf.h"
#include "net.bpf.h"
#include "segments.bpf.h"
#include "fault.bpf.h"
#include "tracepoints.bpf.h"
#include "lock.bpf.h"
#include "probes.bpf.h"
#include "static.bpf.h"
#include "snapshot.bpf.h"
#include "sockets.bpf.h"
#include "asleep.bpf.h"
#include "looks.bpf.h"

/* So that the skeleton has the types. */
struct {
	enum wire_kind kinds;
	enum drop_cause drops;
#define KIND(kind, type, record, ...) struct record kind;
#include "events.def.h"
	struct wire_snap snap;
	struct wire_ancestor ancestor;
	struct sc_desc call;
	struct drop_count drop;
	struct ledger_key key;
	struct ledger_counts counts; /* a lock may not be in .data */
	struct busy_sum busy;
	struct cpu_buffer buffer;
	struct look_room look;
	struct look_detail detail;
	struct look_ask ask;
} wire_types SEC(".data.types");

/* The helpers used (task storage, probe reads) are GPL-only in the kernel. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";
