/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Family "fault": page faults of programs, and where in memory they are.
 *
 * All faults of user code are seen when they begin. The kernel comes there from
 * user mode with interrupts off (handle_page_fault in arch/x86/mm/fault.c). So
 * no program of ours was interrupted, and only a sample in an NMI can interrupt
 * this one. A fault in the kernel, as bpf_probe_read_user may cause, is another
 * tracepoint, page_fault_kernel: taking a stack does not lead back here.
 *
 * Major faults, those that wait for storage, are also seen when they are over,
 * by perf's software event of that name (mm_account_fault in mm/memory.c): of
 * user code, and of the kernel for a program, as in copy_from_user. Faults that
 * fail, and those of get_user_pages, have no such event.
 */
#ifndef __SYSTAPE_FAULT_H
#define __SYSTAPE_FAULT_H

/* A page fault. */
struct wire_fault {
	struct wire_row row; /* hdr.flags: enum fault_flags */
	u64 address;
	u64 error_code;	/* x86 bits; of a major one without FAULT_BEGAN 0 */
	u64 began;	/* of a major one: when it was entered */
	u64 file;	/* address of the mapped file's entry, by which its wire_file is found; 0 = none */
	u64 file_tag;	/* that of its name */
	u64 offset;	/* of the touched byte in the file */
	u8 memory;	/* enum fault_memory */
	u8 pad[7];
};

static long see_mapping(struct task_struct *task, struct vm_area_struct *vma, struct mapping *m)
{
	struct file *file = vma->vm_file;
	struct mm_struct *mm = vma->vm_mm;

	m->start = vma->vm_start;
	m->end = vma->vm_end;
	if (file) {
		m->what = MEMORY_FILE;
		/* read rather than loaded: the verifier allows no arithmetic with loaded pointers */
		m->mnt = BPF_CORE_READ(file, f_path.mnt);
		m->dentry = BPF_CORE_READ(file, f_path.dentry);
		m->offset = vma->vm_pgoff * page_bytes;
	} else if (vma->vm_start < mm->brk && vma->vm_end > mm->start_brk) {
		m->what = MEMORY_HEAP;
	} else if (vma->vm_start <= mm->start_stack && vma->vm_end >= mm->start_stack) {
		m->what = MEMORY_STACK;
	} else {
		/* all that is not anonymous has operations */
		m->what = vma->vm_ops ? MEMORY_SPECIAL : MEMORY_ANON;
	}
	return 0;
}

/*
 * Counts the changes of an address space (vma_end_write_all() in
 * include/linux/mmap_lock.h): while it stays the same, so do the mappings.
 * 0 = not known.
 */
static __always_inline u32 changes_of(struct mm_struct *mm)
{
	struct mm_struct___counter *counter = (void *)mm;
	struct mm_struct___seqcount *seqcount = (void *)mm;

	if (bpf_core_field_exists(seqcount->mm_lock_seq.sequence))
		return BPF_CORE_READ(seqcount, mm_lock_seq.sequence) + 1;
	if (bpf_core_field_exists(counter->mm_lock_seq))
		return BPF_CORE_READ(counter, mm_lock_seq) + 1;
	return 0;
}

#define ENOENT 2

/*
 * With interrupts off the kernel unlocks the mappings in an interrupt to
 * itself, which takes some 10 us in a virtual machine. So `last`, if given, is
 * what was found last, and is taken again as long as no mapping was changed.
 */
static __always_inline void add_mapping(struct wire_fault *f, struct mapping *last, struct mm_struct *mm)
{
	u32 seq = mm ? changes_of(mm) : 0;
	struct mapping m = {};
	long err = 0;

	if (last && seq && last->seq == seq && f->address >= last->start && f->address < last->end)
		m = *last;
	else
		err = bpf_find_vma(bpf_get_current_task_btf(), f->address, see_mapping, &m, 0);
	if (last) {
		m.seq = seq;
		*last = m;
	}
	/* -EBUSY: another task changes the mappings, or the last unlock is still to come */
	f->memory = err == -ENOENT ? MEMORY_NONE : m.what;
	if (m.what != MEMORY_FILE)
		return;
	f->offset = m.offset + (f->address - m.start);
	f->file = (u64)m.dentry;
	f->file_tag = name_path(m.mnt, m.dentry, f->row.ts);
}

/* The entry of the current task, made if there is none; NULL = there is no room. Major faults take their beginning from it. */
static __always_inline struct fault_entry *note_entry(struct task_struct *current, u32 in_kernel)
{
	struct fault_key key = { .tid = FIELD(current, pid), .in_kernel = in_kernel };
	struct mm_struct *mm = FIELD(current, mm);
	struct fault_entry none = {}, *entry;
	u64 start = FIELD(current, start_time);

	entry = bpf_map_lookup_elem(&fault_entries, &key);
	if (!entry) {
		bpf_map_update_elem(&fault_entries, &key, &none, BPF_ANY);
		entry = bpf_map_lookup_elem(&fault_entries, &key);
		if (!entry)
			return NULL;
	}
	if (entry->start != start || entry->mm != mm) {
		/* another task of this number, or another program */
		__builtin_memset(entry, 0, sizeof(*entry));
		entry->start = start;
		entry->mm = mm;
	}
	return entry;
}

static __always_inline int user_fault(u64 *ctx, bool finds_mappings)
{
	struct task_struct *current = current_task();
	struct wire_fault f = {};
	struct fault_entry *entry;

	if (!begin_row(&f.row, WIRE_FAULT, 0))
		return 0;
	f.address = ctx[0];
	f.error_code = ctx[2];
	entry = note_entry(current, 0);
	if (entry) {
		entry->address = f.address;
		entry->ts = f.row.ts;
		entry->error_code = f.error_code;
	}
	if (finds_mappings)
		add_mapping(&f, entry ? &entry->mapping : NULL, FIELD(current, mm));
	send_row(ctx, &f.row, sizeof(f), DROP_FAULT);
	return 0;
}

int page_fault_user(u64 *ctx)
{
	return user_fault(ctx, true);
}

int page_fault_plain(u64 *ctx)
{
	return user_fault(ctx, false);
}

/* A probe read, which FIELD() may be, disables faults itself while it reads (copy_from_kernel_nofault). */
static __always_inline bool refuses_faults(struct task_struct *current)
{
	return FIELD(current, pagefault_disabled) > (has_task_storage ? 0 : 1);
}

/* Of user memory, by the kernel for the task itself. No row: many find their page in memory. */
int page_fault_kernel(u64 *ctx)
{
	struct task_struct *current = current_task();
	struct fault_entry *entry;
	u64 address = ctx[0];

	/* such a fault is refused and waits for nothing: it may come while the task is in another */
	if ((s64)address < 0 || refuses_faults(current))
		return 0;
	if (window != WINDOW_OPEN || !cpu_is_recorded() || !is_recorded(current))
		return 0;
	entry = note_entry(current, 1);
	if (entry) {
		entry->address = address;
		entry->ts = bpf_ktime_get_ns();
		entry->error_code = ctx[2];
	}
	return 0;
}

static __always_inline int major_fault(struct sample_context *ctx, bool finds_mappings)
{
	struct wire_fault f = {};
	struct fault_entry *entry;
	struct fault_key key = {};

	if (!begin_row(&f.row, WIRE_FAULT, FAULT_MAJOR))
		return 0;
	f.address = ctx->addr;
	key.tid = f.row.who.tid;
	key.in_kernel = !WORDS_OF_USER(ctx->regs);
	if (key.in_kernel)
		f.row.hdr.flags |= FAULT_IN_KERNEL;
	entry = bpf_map_lookup_elem(&fault_entries, &key);
	if (entry && entry->ts && entry->address == f.address && entry->start == f.row.who.start) {
		f.row.hdr.flags |= FAULT_BEGAN;
		f.began = entry->ts;
		f.error_code = entry->error_code;
		entry->ts = 0;
	}
	/* interrupts are on here */
	if (finds_mappings)
		add_mapping(&f, NULL, NULL);
	send_row(ctx, &f.row, sizeof(f), DROP_FAULT);
	return 0;
}

int fault_major(struct sample_context *ctx)
{
	return major_fault(ctx, true);
}

int fault_major_plain(struct sample_context *ctx)
{
	return major_fault(ctx, false);
}

#endif
