/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lists as Rust: build.rs has the preprocessor expand this. Constants become
 * modules. Of the events each list becomes a macro that gives its rows to another
 * macro, by name: what is made of them stands where it is used.
 */
#define HASH #

#define GROUP(name, ty, text) HASH[doc = text] pub mod name { type T = ty;
#define VALUE(prefix, name, value, text) HASH[doc = text] pub const name: T = (value) as T;
#define END }
HASH[doc = "Constants of both sides, by what they are of."]
HASH[allow(clippy::unnecessary_cast, clippy::char_lit_as_u8, clippy::doc_markdown, clippy::unreadable_literal, unused_parens)]
pub mod values {
#include "values.def.h"
}
HASH[doc = "`CallDesc::min_dur` of a call that is counted and never stored."]
HASH[allow(clippy::unreadable_literal)]
pub const COUNTED_ONLY: u64 = LEDGER_ONLY;

#define ROWS HASH[macro_export] macro_rules!

HASH[doc = "Families that can be asked for: `(Family of the tape, name, when)`."]
ROWS families { ($rows:ident) => { $rows! {
#define FAMILY(family, name, when) (family, name, when)
#include "events.def.h"
} } }

HASH[doc = "All records: `(WIRE_ name, name, struct)`."]
ROWS kinds { ($rows:ident) => { $rows! {
#define KIND(kind, ty, record, time, shape, text) (WIRE_##kind, ty, record)
#include "events.def.h"
} } }

HASH[doc = "Records without data behind them: `(WIRE_ name, name, doc)`."]
ROWS fixed_kinds { ($rows:ident) => { $rows! {
#define KIND(kind, ty, record, time, shape, text) FIXED_##shape(kind, ty, text)
#define FIXED_Fixed(kind, ty, text) (WIRE_##kind, ty, text)
#define FIXED_Tail(kind, ty, text)
#define FIXED_Apart(kind, ty, text)
#include "events.def.h"
} } }

HASH[doc = "Records that are put into order: `(WIRE_ name, struct, (time))`."]
ROWS ordered_kinds { ($rows:ident) => { $rows! {
#define KIND(kind, ty, record, time, shape, text) ORDERED_##shape(kind, record, time)
#define ORDERED_Fixed(kind, record, time) (WIRE_##kind, record, (time))
#define ORDERED_Tail ORDERED_Fixed
#define ORDERED_Apart(kind, record, time)
#include "events.def.h"
} } }

HASH[doc = "Causes of drops: `(DROP_ name, name, GapCause, Family, doc)`."]
ROWS drops { ($rows:ident) => { $rows! {
#define DROP(drop, name, cause, family, text) (DROP_##drop, name, cause, family, text)
#include "events.def.h"
} } }

HASH[doc = "Programs: `(name, Family, (hook), load, (part))`; a tracepoint's hook has its name and how many arguments it must pass."]
ROWS programs { ($rows:ident) => { $rows! {
#define TRACEPOINT(program, family, tracepoint, arguments, load, part) \
	(program, family, (Tracepoint(#tracepoint, arguments)), load, (part))
#define ITERATOR(program, family, section, context, load, part) (program, family, (Iterator), load, (part))
#define RUN(program, family, section, load, part) (program, family, (Run), load, (part))
#define TIMER(program, family, section, context, load, part) (program, family, (Timer), load, (part))
#define NAMED(program, family, section, context, load, part) (program, family, (Named), load, (part))
#include "events.def.h"
} } }
