//! The session of a tape: names of calls, users, devices and cgroups, clocks.

use std::ffi::CStr;
use std::fs;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use systape_format::model::{Extent, Family, Session, StackOf, SyscallFormat};
use xxhash_rust::xxh3::xxh3_64;

use crate::config::RecordConfig;
use crate::config::rights;
use crate::kernel::native;
use crate::machine::patient::Asked;
use crate::machine::{cgroups, containers, devices, system};
use crate::own::clock;

/// Longest time to read files about the machine, all together: the command waits for it. They take milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// Collects everything except the start of the window and the rings' size.
pub(crate) fn collect(config: &RecordConfig) -> Session {
    let uname = Uname::read();
    let mut notes = rights::notes(config);
    // of files that may lie on a disk or server that hangs, or be held by the kernel; all at once
    let machine_id = Asked::new("machine-id", || fs::read("/etc/machine-id").map_or(0, |id| xxh3_64(id.trim_ascii())));
    let offset = Asked::new("localtime", utc_offset);
    let users = Asked::new("users", system::users);
    let formats = Asked::new("formats", syscall_formats);
    let names = Asked::new("devices", devices::names);
    let links = Asked::new("device-links", devices::links);
    let until = Instant::now() + PATIENCE;
    let mut unread = Vec::new();
    let (machine_id_hash, utc_offset_seconds) =
        (told(machine_id, until, "/etc/machine-id", &mut unread), told(offset, until, "the time zone", &mut unread));
    let users = told(users, until, "names of users", &mut unread);
    let devices = told(names, until, "names of disks", &mut unread);
    let device_links = told(links, until, "layers of disks", &mut unread);
    let syscalls = told(formats, until, "the kernel's names of calls and arguments", &mut unread);
    if !unread.is_empty() {
        notes.push(format!("could not be read in time, so unknown: {}", unread.join(", ")));
    } else if syscalls.is_empty() {
        let how = match fs::read_dir(TRACEFS[0]) {
            Err(e) if e.kind() == ErrorKind::PermissionDenied => "CAP_DAC_READ_SEARCH",
            _ => "mount -t tracefs nodev /sys/kernel/tracing",
        };
        notes.push(format!(
            "the kernel's names of calls and arguments could not be read ({how}): the built-in ones are used"
        ));
    }
    Session {
        imported: String::new(),
        cut: None,
        cut_tasks: false,
        // that of the tape, until several are made of one recording
        recording: Vec::new(),
        clock: clock::sample(),
        boot_id: read_line("/proc/sys/kernel/random/boot_id"),
        hostname: uname.nodename,
        machine_id_hash,
        utc_offset_seconds,
        kernel_release: uname.release,
        kernel_version: uname.version,
        machine: uname.machine,
        cpus: libbpf_rs::num_possible_cpus().unwrap_or(1) as u32,
        page_size: system::page_size() as u32,
        tool_version: env!("CARGO_PKG_VERSION").into(),
        arguments: std::env::args_os().map(OsStringExt::into_vec).collect(),
        target: config.target_text(),
        selection: config.selection_text.iter().map(|text| text.clone().into_bytes()).collect(),
        call_filters: config.filter.text.iter().map(|s| s.clone().into_bytes()).collect(),
        string_limit: config.string_limit,
        window_open: 0,
        syscalls,
        users,
        devices,
        device_links,
        families: families(config),
        stacks: config.stacks.clone(),
        redacted: Vec::new(),
        cpu_list: config.cpus.clone().unwrap_or_default(),
        with_self: config.with_self,
        needs: true,
        registers_unknown: false,
        extent: if config.filters_tasks() { Extent::Some } else { Extent::Everyone },
        cgroups: Vec::new(),
        ring_bytes: 0,
        notes: notes.into_iter().map(String::into_bytes).collect(),
        left_out: Vec::new(),
        preemptible: false,
        labels: config.labels.iter().map(|label| label.clone().into_bytes()).collect(),
        env_keys: config.env.names().map(|name| name.as_bytes().to_vec()).collect(),
        containers: Vec::new(),
        kept: None,
    }
}

/// Name of this machine.
pub(crate) fn hostname() -> Vec<u8> {
    Uname::read().nodename
}

/// Adds the names of cgroups and containers. From the start of the window on the programs tell of new ones, so they are read after it.
pub(crate) fn name_cgroups(session: &mut Session) {
    let named = || {
        let cgroups = cgroups::names();
        let containers = containers::of(cgroups.iter().map(|(_, path)| path.as_slice()));
        (cgroups, containers)
    };
    match Asked::new("cgroups", named).get(Instant::now() + PATIENCE) {
        Some(names) => (session.cgroups, session.containers) = names,
        None => session.notes.push(b"could not be read in time, so unknown: names of cgroups".to_vec()),
    }
}

/// A result, or the default for an unknown one; the missing thing is noted then.
fn told<R: Default + Send + 'static>(
    asked: Asked<R>,
    until: Instant,
    what: &'static str,
    unread: &mut Vec<&'static str>,
) -> R {
    asked.get(until).unwrap_or_else(|| {
        unread.push(what);
        R::default()
    })
}

/// The requested families, and samples.
fn families(config: &RecordConfig) -> Vec<Family> {
    let samples = config.stacks.on.contains(&StackOf::Sample).then_some(Family::Sample);
    config.families.list().iter().copied().chain(samples).collect()
}

fn read_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().into()
}

struct Uname {
    nodename: Vec<u8>,
    release: String,
    version: String,
    machine: String,
}

impl Uname {
    fn read() -> Self {
        let mut raw = MaybeUninit::<libc::utsname>::zeroed();
        // SAFETY: raw is a valid utsname to write to; zeroed bytes are a value of it too, should the call fail.
        let raw = unsafe {
            libc::uname(raw.as_mut_ptr());
            raw.assume_init()
        };
        let bytes = |field: &[libc::c_char]| -> Vec<u8> {
            // SAFETY: the kernel ends every field with a NUL, and a zeroed one is empty.
            unsafe { CStr::from_ptr(field.as_ptr()) }.to_bytes().to_vec()
        };
        let text = |field: &[libc::c_char]| String::from_utf8_lossy(&bytes(field)).into_owned();
        Self {
            nodename: bytes(&raw.nodename),
            release: text(&raw.release),
            version: text(&raw.version),
            machine: text(&raw.machine),
        }
    }
}

/// Seconds local time is ahead of UTC now.
fn utc_offset() -> i32 {
    let now = (clock::sample().realtime / 1_000_000_000) as libc::time_t;
    let mut local = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are valid; localtime_r fills local or leaves it zeroed.
    let local = unsafe {
        libc::localtime_r(&raw const now, local.as_mut_ptr());
        local.assume_init()
    };
    i32::try_from(local.tm_gmtoff).unwrap_or(0)
}

/// Possible places of tracefs.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

fn tracefs() -> Option<PathBuf> {
    TRACEFS.iter().map(|d| Path::new(d).join("events/syscalls")).find(|d| d.exists())
}

/// Names and arguments of every call from the running kernel; empty without tracefs.
fn syscall_formats() -> Vec<SyscallFormat> {
    let Some(list) = tracefs().and_then(|dir| fs::read_dir(dir).ok()) else { return Vec::new() };
    let mut formats: Vec<SyscallFormat> = list
        .flatten()
        .filter_map(|entry| {
            let file_name = entry.file_name();
            let kernel_name = file_name.to_str()?.strip_prefix("sys_enter_")?;
            let name = table_name(kernel_name);
            let nr = systape_abi::number(native::ABI, name)?;
            let text = fs::read_to_string(entry.path().join("format")).ok()?;
            let (arg_names, arg_types) = parse_format(&text);
            Some(SyscallFormat { abi: native::ABI as u8, nr, name: name.into(), arg_names, arg_types })
        })
        .collect();
    formats.sort_unstable_by_key(|f| f.nr);
    formats
}

/// tracefs has the names of the functions; a few differ from the syscall table's.
fn table_name(kernel_name: &str) -> &str {
    match kernel_name {
        "newstat" => "stat",
        "newlstat" => "lstat",
        "newfstat" => "fstat",
        "newuname" => "uname",
        "sendfile64" => "sendfile",
        "umount" => "umount2",
        "fadvise64" => "fadvise64",
        other => other,
    }
}

/// Argument names and C types of a `format` file, after the fields every event has.
fn parse_format(text: &str) -> (Vec<String>, Vec<String>) {
    let fields = text.lines().filter_map(|line| line.trim().strip_prefix("field:"));
    let declared = fields.filter_map(|field| field.split(';').next());
    declared
        // newer kernels append copies of strings (__data_loc), which are no arguments
        .filter(|d| !d.contains("common_") && !d.contains("__syscall_nr") && !d.starts_with("__data_loc"))
        .filter_map(|d| {
            let at = d.rfind([' ', '*'])? + 1;
            Some((d[at..].to_owned(), d[..at].trim_end().to_owned()))
        })
        .unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_parsed() {
        let text = "name: sys_enter_openat\nID: 1\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
                    \tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
                    \tfield:int dfd;\toffset:16;\tsize:8;\tsigned:0;\n\
                    \tfield:const char * filename;\toffset:24;\tsize:8;\tsigned:0;\n\nprint fmt: \"dfd: 0x%08lx\"\n";
        let (names, types) = parse_format(text);
        assert_eq!(names, ["dfd", "filename"]);
        assert_eq!(types, ["int", "const char *"]);
    }
}
