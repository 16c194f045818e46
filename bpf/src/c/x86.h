/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* x86-64: the kernel's types, names of registers, and numbers of calls (arch/x86/entry/syscalls/syscall_64.tbl). */
#ifndef __SYSTAPE_X86_H
#define __SYSTAPE_X86_H

struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

/* 6.9 */
struct fred_ss {
	u64 type : 4;
};

struct pt_regs___fred {
	struct fred_ss fred_ss;
};

struct thread_info {
	u32 status; /* TS_COMPAT */
};

struct thread_struct {
	unsigned long fsbase;
};

typedef u32 copied_t; /* bytes of a copied stack: arm64.h says why not 64 bits */

#define NATIVE_ABI ABI_X86_64
#define THREAD_SIZE 16384 /* without KASAN */

/* The call that a task is in; negative: none. */
#define CALL_NUMBER(regs) ((long)(regs)->orig_ax)
/* Arguments of a call. */
#define CALL_ARG0(regs) ((regs)->di)
#define CALL_ARG1(regs) ((regs)->si)
/* Arguments and result of a function. */
#define FUNCTION_ARG0(regs) ((regs)->di)
#define FUNCTION_ARG1(regs) ((regs)->si)
#define FUNCTION_ARG2(regs) ((regs)->dx)
#define FUNCTION_ARG3(regs) ((regs)->cx)
#define FUNCTION_ARG4(regs) ((regs)->r8)
#define FUNCTION_ARG5(regs) ((regs)->r9)
#define FUNCTION_RESULT(regs) ((regs)->ax)
/* Bytes that a return takes off the stack. */
#define RETURN_POPS 8

/* The same registers as words, of user code and of what interrupted it. */
#define REGS_WORDS 21
#define SAMPLE_WORDS 21 /* struct bpf_perf_event_data */
#define WORDS_SP(words) ((words)[19])
#define WORDS_CALL(words) ((long)(words)[15])
/* __USER_CS: 64-bit code. With FRED the word has more in it than the selector. */
#define WORDS_ARE_NATIVE(words) ((u16)(words)[17] == 0x33)
#define WORDS_OF_USER(words) ((words)[17] & 3)
/* Registers of a stack's record, by their DWARF numbers. */
#define STACK_REGS 17

#define NR_WRITE 1
#define NR_CLOSE 3
#define NR_IOCTL 16
#define NR_PWRITE64 18
#define NR_WRITEV 20
#define NR_SOCKET 41
#define NR_EXIT 60
#define NR_FCNTL 72
#define NR_POLL 7
#define NR_FUTEX 202
#define NR_EXIT_GROUP 231
#define NR_OPENAT 257
#define NR_ACCEPT4 288

#endif
