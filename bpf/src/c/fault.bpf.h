/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Family "fault": page faults of programs. The kernel comes here from user mode
 * with interrupts off (handle_page_fault in arch/x86/mm/fault.c). So no program
 * of ours was interrupted, and only a sample in an NMI can interrupt this one.
 * A fault in the kernel, as bpf_probe_read_user may cause, is another
 * tracepoint, page_fault_kernel: taking a stack does not lead back here.
 */
#ifndef __SYSTAPE_FAULT_H
#define __SYSTAPE_FAULT_H

int page_fault_user(u64 *ctx)
{
	struct {
		struct wire_row row;
		u64 address;
		u64 error_code;
	} r = {};

	if (!begin_row(&r.row, TABLE_PAGE_FAULT_USER))
		return 0;
	r.address = ctx[0];
	r.error_code = ctx[2];
	send_row(ctx, &r.row, sizeof(r), DROP_FAULT);
	return 0;
}

#endif
