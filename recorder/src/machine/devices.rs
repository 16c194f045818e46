//! Block devices: names, partitions and layers, from /proc/partitions and /sys/dev/block.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use systape_format::model::DeviceLink;

use crate::machine::patient::{Asked, PATIENCE};

/// Most devices read.
const MOST: usize = 4096;

/// The kernel's number of a device.
pub(crate) fn dev((major, minor): (u32, u32)) -> u32 {
    major << 20 | minor & 0xf_ffff
}

/// major, minor and name of every block device.
pub(crate) fn names() -> Vec<(u32, u32, Vec<u8>)> {
    let text = fs::read_to_string("/proc/partitions").unwrap_or_default();
    let named = text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let major = fields.next()?.parse().ok()?;
        let minor = fields.next()?.parse().ok()?;
        Some((major, minor, fields.nth(1)?.as_bytes().to_vec()))
    });
    named.take(MOST).collect()
}

/// Layers of devices; only devices that are part of, or made of, others.
pub(crate) fn links() -> Vec<DeviceLink> {
    names().into_iter().filter_map(|(major, minor, _)| link(major, minor)).collect()
}

/// A device that came during the recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Late {
    /// major << 20 | minor.
    pub dev: u32,
    /// Name of the device.
    pub name: Vec<u8>,
    /// What it is part of, or made of.
    pub link: DeviceLink,
    /// All of that is known: it is still there.
    pub whole: bool,
}

/// A device now; None = there is none.
pub(crate) fn late(dev: u32) -> Option<Late> {
    let (major, minor) = (dev >> 20, dev & 0xf_ffff);
    let dir = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    let name = dir.file_name()?.as_bytes().to_vec();
    let link = link(major, minor);
    // one that was taken away meanwhile, as a loop device without its file is, has no size; the file's device may not tell
    let has_size = read(&dir.join("size")).is_some_and(|size| size != "0");
    let is_file = dir.join("loop").exists();
    // of a file system without a device of its own it is not known which disks it is on
    let on_disk = |link: &DeviceLink| link.lower.first().is_some_and(|(major, _)| *major != 0);
    let whole = has_size && (!is_file || link.as_ref().is_some_and(on_disk));
    let link = link.unwrap_or_else(|| DeviceLink { dev: (major, minor), ..DeviceLink::default() });
    Some(Late { dev, name, link, whole })
}

fn link(major: u32, minor: u32) -> Option<DeviceLink> {
    let dir = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    let mut link = DeviceLink { dev: (major, minor), ..DeviceLink::default() };
    if dir.join("partition").exists() {
        link.disk = dir.parent().and_then(number);
        link.first_sector = read(&dir.join("start")).and_then(|text| text.parse().ok()).unwrap_or(0);
    }
    let members = fs::read_dir(dir.join("slaves")).into_iter().flatten().flatten();
    link.lower = members.filter_map(|member| number(&fs::canonicalize(member.path()).ok()?)).collect();
    if let Some(file) = fs::read(dir.join("loop/backing_file")).ok().filter(|name| !name.is_empty()) {
        let file = PathBuf::from(std::ffi::OsStr::from_bytes(file.trim_ascii_end()));
        if let Some(dev) = device_of(file) {
            link.lower.push((libc::major(dev), libc::minor(dev)));
        }
    }
    (link.disk.is_some() || !link.lower.is_empty()).then_some(link)
}

/// The device with a loop device's file, or that is its file; None = not known. The file's own disk or server may hang.
fn device_of(file: PathBuf) -> Option<u64> {
    let of = |meta: fs::Metadata| if meta.file_type().is_block_device() { meta.rdev() } else { meta.dev() };
    let asked = Asked::new("loop-file", move || fs::metadata(file).ok().map(of));
    asked.get(Instant::now() + PATIENCE).flatten()
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// major:minor of a device's directory in sysfs.
pub(crate) fn number(dir: &Path) -> Option<(u32, u32)> {
    let text = read(&dir.join("dev"))?;
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
