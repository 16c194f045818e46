/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every program before it is defined, with the section that says where it is
 * attached; the definition inherits it. A program that is not in events.def.h has
 * no section, so nothing loads it.
 */
#ifndef __SYSTAPE_PROGRAMS_H
#define __SYSTAPE_PROGRAMS_H

struct sample_context;

#define TRACEPOINT(program, family, tracepoint, ...) SEC("tp_btf/" #tracepoint) int program(unsigned long long *ctx);
#define ITERATOR(program, family, section, context, ...) SEC(section) int program(context *ctx);
#define RUN(program, family, section, ...) SEC(section) int program(unsigned long long *ctx);
#define TIMER(program, family, section, context, ...) SEC(section) int program(context *ctx);
#define NAMED(program, family, section, context, ...) SEC(section) int program(context *ctx);
#include "events.def.h"

#endif
