//! systape's BPF programs, compiled to a skeleton, and the wire records they send.
//!
//! The only crate that needs clang. C sources are in `src/c`, one file per family of events; [`wire`] checks and copies
//! the records from rings and iterators. Families, programs, causes of loss and constants are listed in
//! `src/c/events.def.h` and `src/c/values.def.h`, for both sides. The recorder decides which programs to load, for
//! which targets, and handles the records.

#![warn(clippy::missing_errors_doc, clippy::print_stderr, clippy::print_stdout)]

mod skeleton {
    #![allow(
        clippy::all,
        missing_docs,
        unreachable_pub,
        unused_qualifications,
        dead_code,
        non_camel_case_types,
        non_snake_case
    )]
    #![allow(
        clippy::undocumented_unsafe_blocks,
        clippy::use_self,
        clippy::wildcard_imports,
        clippy::uninlined_format_args
    )]
    include!(concat!(env!("OUT_DIR"), "/systape.skel.rs"));
}

// the lists: `values`, and a macro for each list of events
include!(concat!(env!("OUT_DIR"), "/lists.rs"));

mod object;
pub mod wire;

pub use object::open;
/// Types of the C side as the skeleton gives them.
pub use skeleton::types;
pub use skeleton::{OpenSystapeSkel, SystapeSkel};
pub use values::limit::{
    BIO_ENDS, BUSY_SUMS, COARSE_OUTCOMES, COARSE_PER_LANE, MAX_CPUS, MAX_RINGS, NET_ERROR_AFTER, SC_MAX, SLOTS,
    TRACEPOINT_DATA,
};
pub use values::{
    also, bio_end, buffer, call_flags, capture_kind, condition, ledger_word, operand_kind, plain, probe, socket_call,
    stack_user, struct_count, struct_when, target_bits, walk, window,
};

/// Number of buckets of a ledger entry's sizes.
pub const LEDGER_SIZES: usize = values::limit::LEDGER_SIZES as usize;
/// Number of a CPU's buffers for the scheduler's events.
pub const SCHED_BUFFERS: u32 = buffer::KINDS - buffer::SWITCHES;
/// Most bytes of a stack copy: as many pages as a mask has bits, minus the partial first page.
pub const STACK_COPY_MAX: u32 = (values::limit::STACK_PAGES - 1) * 4096;

macro_rules! causes {
    ($(($drop:ident, $name:ident, $cause:ident, $family:ident, $doc:literal))*) => {
        /// Index into the drops map.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Drop {
            $(#[doc = $doc] $name = types::drop_cause::$drop.0),*
        }

        impl Drop {
            /// All causes, in map order.
            pub const ALL: [Self; types::drop_cause::DROP_CAUSES.0 as usize] = [$(Self::$name),*];
        }
    };
}
drops!(causes);
