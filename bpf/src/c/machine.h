/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What depends on the machine: types and names here, functions in the files
 * that registers.bpf.h includes. No other file names a register or the number of
 * a call. A struct pt_regs has the fields of its own machine alone, so that a
 * name of another one's does not compile.
 */
#if defined(__TARGET_ARCH_x86)
#include "x86.h"
#elif defined(__TARGET_ARCH_arm64)
#include "arm64.h"
#else
#error "the programs know the registers of x86 and arm64"
#endif
