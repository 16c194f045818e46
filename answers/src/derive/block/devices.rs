//! The block devices of a tape: those of its session, and those that came during the recording (rows of the table `block:device`).

use systape_format::families::BLOCK_DEVICE;
use systape_format::model::DeviceLink;
use systape_format::reader::Tape;
use systape_format::tables::TableRows;

use systape_events::scan::Scan;
use systape_events::values::devices::{Dev, Devices, numbers};

/// The devices of `tape`. One whose rows cannot be read is as one that the recorder did not read: what is below it is not known.
pub fn devices(tape: &Tape) -> Devices {
    if !tape.table_defs().values().any(|def| def.name == BLOCK_DEVICE.name) {
        return Devices::new(tape.session());
    }
    let (mut session, mut unsure) = (tape.session().clone(), Vec::new());
    let read = Scan::tables(tape, ("devices", &[&BLOCK_DEVICE]), |_, _, table| {
        for (name, link, known) in rows(table) {
            if !known {
                unsure.push(link.dev);
            }
            if !session.devices.iter().any(|(major, minor, _)| (*major, *minor) == link.dev) {
                session.devices.push((link.dev.0, link.dev.1, name));
            }
            // a row for each device below
            match session.device_links.iter_mut().find(|other| other.dev == link.dev) {
                Some(other) => link.lower.iter().for_each(|lower| {
                    if !other.lower.contains(lower) {
                        other.lower.push(*lower);
                    }
                }),
                None => session.device_links.push(link),
            }
        }
    });
    // what is not there marks what it would have told
    drop(read);
    Devices::new(&session).unsure(unsure.into_iter().map(systape_events::values::devices::dev))
}

/// The rows: name, place and a device below, whether that is all.
fn rows(table: &TableRows) -> impl Iterator<Item = (Vec<u8>, DeviceLink, bool)> + '_ {
    let column = |name: &str| table.column(name).unwrap_or_default();
    let [device, name, disk, first, below, known] =
        ["device", "name", "disk", "first_sector", "below", "known"].map(column);
    let at = |column: &[u64], row: usize| column.get(row).copied().unwrap_or(0);
    let one = move |code: u64| Dev::try_from(code).ok().filter(|dev| *dev != 0).map(numbers);
    (0..table.ts.len()).filter_map(move |row| {
        let link = DeviceLink {
            dev: one(at(device, row))?,
            disk: one(at(disk, row)),
            first_sector: at(first, row),
            lower: one(at(below, row)).into_iter().collect(),
        };
        Some((table.string(at(name, row))?.to_vec(), link, at(known, row) != 0))
    })
}
