/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* arm64: the kernel's types, names of registers, and numbers of calls (include/uapi/asm-generic/unistd.h). */
#ifndef __SYSTAPE_ARM64_H
#define __SYSTAPE_ARM64_H

struct pt_regs {
	unsigned long regs[31];
	unsigned long sp, pc, pstate;
	u64 orig_x0; /* the first argument: x0 has the result at the end */
	s32 syscallno;
	u32 unused2;
};

struct thread_info {
	u64 preempt_count; /* the count itself in the lower half */
};

struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
};

/*
 * Bytes of a copied stack. Where registers are used by halves (-mcpu=v3), the
 * verifier of 6.1 forgets what bounds 32 of their bits; on x86 those of 5.10
 * and 6.1 lose the pointer where it is added to 64.
 */
typedef u64 copied_t;

#define NATIVE_ABI ABI_AARCH64
/* A page if that is larger (arch/arm64/include/asm/memory.h), without KASAN */
#define THREAD_SIZE (page_bytes > 16384 ? page_bytes : 16384)

/* The call that a task is in; negative: none (NO_SYSCALL). */
#define CALL_NUMBER(at) ((long)(at)->syscallno)
/* Arguments of a call, until it ends. */
#define CALL_ARG0(at) ((at)->regs[0])
#define CALL_ARG1(at) ((at)->regs[1])
/* Arguments and result of a function. */
#define FUNCTION_ARG0(at) ((at)->regs[0])
#define FUNCTION_ARG1(at) ((at)->regs[1])
#define FUNCTION_ARG2(at) ((at)->regs[2])
#define FUNCTION_ARG3(at) ((at)->regs[3])
#define FUNCTION_ARG4(at) ((at)->regs[4])
#define FUNCTION_ARG5(at) ((at)->regs[5])
#define FUNCTION_RESULT(at) ((at)->regs[0])
/* Bytes that a return takes off the stack: the address is in a register. */
#define RETURN_POPS 0

/* The same registers as words, of user code and of what interrupted it. */
#define REGS_WORDS 36
#define SAMPLE_WORDS 34 /* struct bpf_perf_event_data has a struct user_pt_regs */
#define WORDS_SP(words) ((words)[31])
#define WORDS_CALL(words) ((long)(s32)(words)[35])
#define PSR_MODE32_BIT 0x10 /* arch/arm64/include/uapi/asm/ptrace.h */
#define PSR_MODE_MASK 0xf
#define WORDS_ARE_NATIVE(words) (!((words)[33] & PSR_MODE32_BIT))
#define WORDS_OF_USER(words) (!((words)[33] & PSR_MODE_MASK))
/* Registers of a stack's record, by their DWARF numbers: x0 to x30, sp, and pc. */
#define STACK_REGS 33

#define NR_FCNTL 25
#define NR_IOCTL 29
#define NR_OPENAT 56
#define NR_CLOSE 57
#define NR_WRITE 64
#define NR_WRITEV 66
#define NR_PWRITE64 68
#define NR_EXIT 93
#define NR_EXIT_GROUP 94
#define NR_FUTEX 98
#define NR_SOCKET 198
#define NR_ACCEPT4 242

#endif
