/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Family "page": the kernel gave memory to a task, or in its name. */
#ifndef __SYSTAPE_PAGE_H
#define __SYSTAPE_PAGE_H

struct wire_page {
	struct wire_row row;
	u32 order; /* 2^order pages */
	u32 movable; /* enum migratetype */
};

int page_alloc(u64 *ctx)
{
	struct wire_page p = {};

	if (!begin_row(&p.row, WIRE_PAGE, 0))
		return 0;
	p.order = ctx[1];
	p.movable = ctx[3];
	send_row(ctx, &p.row, sizeof(p), DROP_PAGE);
	return 0;
}

#endif
