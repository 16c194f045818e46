//! Which tapes are this recorder's: half of the id of a tape is random, the other half follows from that and from the
//! machine. So a recorder knows its tapes again after a restart, and two redacted tapes of a machine have nothing in
//! common for somebody else. A copy (`analyze redact`, `cut`, `repair`) has an id of its own, and is nobody's to remove.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use systape_format::header::{HEADER_LEN, tape_id};
use xxhash_rust::xxh3::xxh3_64;

/// The number of a machine, which stays; systemd's, and D-Bus's.
const MACHINE: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
/// Most bytes of it.
const MOST: u64 = 256;

/// Identity of a recorder: its machine and host.
#[derive(Clone, Debug)]
pub(super) struct RecorderId(Vec<u8>);

impl RecorderId {
    /// Identity of the recorder of this machine, called `host`.
    pub(super) fn new(host: &[u8]) -> Self {
        let machine = MACHINE.iter().find_map(|path| read(Path::new(path)).ok().filter(|id| !id.is_empty()));
        Self([machine.as_deref().unwrap_or_default(), b"\0", host].concat())
    }

    /// The id of a tape of this recorder, which has the first half of `random`.
    pub(super) fn mark(&self, random: [u8; 16]) -> [u8; 16] {
        let mut id = random;
        let (first, second) = id.split_at_mut(8);
        second.copy_from_slice(&xxh3_64(&[&*first, &self.0].concat()).to_le_bytes());
        id
    }

    /// Whether a tape begins there that this recorder wrote.
    pub(super) fn wrote(&self, mut file: &File) -> bool {
        let mut first = [0; HEADER_LEN];
        file.read_exact(&mut first).is_ok() && tape_id(&first).is_some_and(|id| self.mark(id) == id)
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut id = Vec::new();
    File::open(path)?.take(MOST).read_to_end(&mut id)?;
    Ok(id.trim_ascii().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorder_knows_its_tapes_and_nobody_elses() {
        let (here, there) = (RecorderId(b"7f\0web3".to_vec()), RecorderId(b"80\0web3".to_vec()));
        let ids = [[3; 16], [4; 16]].map(|random| here.mark(random));
        for id in ids {
            assert_eq!(here.mark(id), id);
            assert_ne!(there.mark(id), id);
        }
        assert_eq!(ids[0][..8], [3; 8]);
        assert_ne!(ids[0][8..], ids[1][8..], "nothing is common to them");
    }
}
