//! Functions by which the kernel ends a bio: they tell whose it is (files.bpf.h).

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};
use systape_bpf::{BIO_ENDS, bio_end};

use crate::machine::kallsyms::WantedSymbols;

/// Whose bios end in the function of that name; None: nothing is known of it.
pub(crate) fn of(name: &str) -> Option<u8> {
    Some(match name {
        "iomap_dio_bio_end_io" => bio_end::IOMAP,
        "dio_bio_end_io" | "dio_bio_end_aio" => bio_end::DIO,
        "blkdev_bio_end_io" | "blkdev_bio_end_io_async" | "blkdev_bio_end_io_simple" => bio_end::DEVICE,
        "xfs_buf_bio_end_io" => bio_end::METADATA,
        "xlog_bio_end_io" => bio_end::JOURNAL,
        "end_swap_bio_write" | "end_swap_bio_read" => bio_end::SWAP,
        _ => return None,
    })
}

/// Tells the programs their addresses.
///
/// # Errors
/// When the kernel does not take an entry.
pub(crate) fn fill(map: &impl MapCore, symbols: &WantedSymbols) -> Result<()> {
    let known = symbols.iter().filter_map(|symbol| Some((symbol.from, of(&symbol.name)?)));
    for (address, whose) in known.take(BIO_ENDS as usize) {
        map.update(&address.to_ne_bytes(), &[whose], MapFlags::ANY).context("bio_ends")?;
    }
    Ok(())
}
