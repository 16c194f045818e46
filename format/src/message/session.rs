//! First and last block of a tape: session and end.

use super::{data, read_clock, text, write_clock};
use crate::error::{Result, capnp_err};
use crate::header::Header;
use crate::model::{
    Class, Container, DeviceLink, End, Extent, Family, Kept, LeftOut, Session, StackMode, StackOf, StackSettings,
    SyscallFormat, Window,
};
use crate::payload::{Message, list_len, new_message, plain_len};
use crate::trace_capnp as schema;
use capnp::message::{Builder, HeapAllocator};

const SESSION: &str = "session";
const END: &str = "end";

fn write_arguments(mut list: capnp::struct_list::Builder<'_, schema::argument::Owned>, values: &[Vec<u8>]) {
    for (i, value) in values.iter().enumerate() {
        list.reborrow().get(i as u32).set_value(value);
    }
}

/// The session message.
pub(crate) fn write_session(s: &Session) -> Builder<HeapAllocator> {
    let mut message = new_message(64 << 10);
    let mut b = message.init_root::<schema::session::Builder<'_>>();
    write_clock(b.reborrow().init_clock(), &s.clock);
    b.set_boot_id(&s.boot_id);
    b.set_hostname(&s.hostname);
    b.set_machine_id_hash(s.machine_id_hash);
    b.set_utc_offset_seconds(s.utc_offset_seconds);
    b.set_kernel_release(&s.kernel_release);
    b.set_kernel_version(&s.kernel_version);
    b.set_machine(&s.machine);
    b.set_cpus(s.cpus);
    b.set_page_size(s.page_size);
    b.set_tool_version(&s.tool_version);
    write_arguments(b.reborrow().init_arguments(s.arguments.len() as u32), &s.arguments);
    b.set_target(&s.target);
    write_arguments(b.reborrow().init_selection(s.selection.len() as u32), &s.selection);
    b.set_string_limit(s.string_limit);
    b.set_window_open(s.window_open);
    let mut list = b.reborrow().init_syscalls(s.syscalls.len() as u32);
    for (i, call) in s.syscalls.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_abi(call.abi);
        b.set_nr(call.nr);
        b.set_name(&call.name);
        let mut names = b.reborrow().init_arg_names(call.arg_names.len() as u32);
        for (i, name) in call.arg_names.iter().enumerate() {
            names.set(i as u32, name);
        }
        let mut types = b.init_arg_types(call.arg_types.len() as u32);
        for (i, ty) in call.arg_types.iter().enumerate() {
            types.set(i as u32, ty);
        }
    }
    let mut list = b.reborrow().init_users(s.users.len() as u32);
    for (i, (uid, name)) in s.users.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_uid(*uid);
        b.set_name(name);
    }
    let mut list = b.reborrow().init_devices(s.devices.len() as u32);
    for (i, (major, minor, name)) in s.devices.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_major(*major);
        b.set_minor(*minor);
        b.set_name(name);
    }
    let mut list = b.reborrow().init_cgroups(s.cgroups.len() as u32);
    for (i, (id, path)) in s.cgroups.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_id(*id);
        b.set_path(path);
    }
    write_containers(b.reborrow().init_containers(s.containers.len() as u32), &s.containers);
    write_arguments(b.reborrow().init_labels(s.labels.len() as u32), &s.labels);
    write_arguments(b.reborrow().init_env_keys(s.env_keys.len() as u32), &s.env_keys);
    b.set_ring_bytes(s.ring_bytes);
    write_links(b.reborrow().init_device_links(s.device_links.len() as u32), &s.device_links);
    let mut list = b.reborrow().init_families(s.families.len() as u32);
    for (i, &family) in s.families.iter().enumerate() {
        list.set(i as u32, family as u16);
    }
    write_arguments(b.reborrow().init_call_filters(s.call_filters.len() as u32), &s.call_filters);
    if s.stacks != StackSettings::default() {
        write_stack_settings(b.reborrow().init_stacks(), &s.stacks);
    }
    let mut list = b.reborrow().init_redacted(s.redacted.len() as u32);
    for (i, class) in s.redacted.iter().enumerate() {
        list.set(i as u32, class.name());
    }
    let mut list = b.reborrow().init_cpu_list(s.cpu_list.len() as u32);
    for (i, &cpu) in s.cpu_list.iter().enumerate() {
        list.set(i as u32, cpu);
    }
    if let Some(cut) = s.cut {
        b.set_cut_from(cut.from);
        b.set_cut_to(cut.to);
    }
    b.set_recording(&s.recording);
    b.set_cut_tasks(s.cut_tasks);
    b.set_imported(&s.imported);
    b.set_with_self(s.with_self);
    b.set_needs(s.needs);
    b.set_preemptible(s.preemptible);
    b.set_registers_unknown(s.registers_unknown);
    b.set_extent(match s.extent {
        Extent::NotSaid => schema::Extent::NotSaid,
        Extent::Everyone => schema::Extent::Everyone,
        Extent::Some => schema::Extent::Some,
    });
    let mut list = b.reborrow().init_left_out(s.left_out.len() as u32);
    for (i, left) in s.left_out.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_family(left.family as u16);
        b.set_program(&left.program);
        b.set_reason(&left.reason);
    }
    if let Some(kept) = &s.kept {
        let mut b = b.reborrow().init_kept();
        b.set_last_ns(kept.last);
        b.set_ring_bytes(kept.ring_bytes);
        b.set_full(kept.full);
        b.set_recording_open(kept.recording_open);
    }
    write_arguments(b.init_notes(s.notes.len() as u32), &s.notes);
    message
}

/// Pairs of our kinds of events with stacks and the schema's.
const STACKS_OF: [(StackOf, schema::StackOf); 8] = [
    (StackOf::Syscall, schema::StackOf::Syscall),
    (StackOf::Switch, schema::StackOf::Switch),
    (StackOf::Wakeup, schema::StackOf::Wakeup),
    (StackOf::Block, schema::StackOf::Block),
    (StackOf::Signal, schema::StackOf::Signal),
    (StackOf::Sample, schema::StackOf::Sample),
    (StackOf::Asleep, schema::StackOf::Asleep),
    (StackOf::Row, schema::StackOf::Row),
];

fn write_kinds(mut list: capnp::enum_list::Builder<'_, schema::StackOf>, kinds: &[StackOf]) {
    for (i, kind) in kinds.iter().enumerate() {
        let raw = STACKS_OF.iter().find(|(ours, _)| ours == kind);
        list.set(i as u32, raw.map_or(schema::StackOf::Unknown, |&(_, theirs)| theirs));
    }
}

fn write_stack_settings(mut b: schema::stack_settings::Builder<'_>, s: &StackSettings) {
    b.set_mode(match s.mode {
        StackMode::None => schema::StackMode::None,
        StackMode::FramePointers => schema::StackMode::FramePointers,
        StackMode::Dwarf => schema::StackMode::Dwarf,
    });
    b.set_copy_limit(s.copy_limit);
    write_kinds(b.reborrow().init_on(s.on.len() as u32), &s.on);
    write_kinds(b.reborrow().init_kernel(s.kernel.len() as u32), &s.kernel);
    b.set_frequency(s.frequency);
    b.set_min_dur(s.min_dur);
}

/// Kinds known to this version: it cannot show stacks of others.
fn read_kinds(
    header: &Header,
    name: &str,
    list: capnp::Result<capnp::enum_list::Reader<'_, schema::StackOf>>,
) -> Result<Vec<StackOf>> {
    let list = list.map_err(capnp_err(SESSION))?;
    plain_len(SESSION, name, list.len(), 2, header)?;
    let known = |raw| STACKS_OF.iter().find(|(_, theirs)| *theirs == raw).map(|&(ours, _)| ours);
    Ok(list.iter().filter_map(|raw| raw.ok().and_then(known)).collect())
}

fn read_stack_settings(header: &Header, r: schema::stack_settings::Reader<'_>) -> Result<StackSettings> {
    Ok(StackSettings {
        mode: match r.get_mode() {
            Ok(schema::StackMode::FramePointers) => StackMode::FramePointers,
            Ok(schema::StackMode::Dwarf) => StackMode::Dwarf,
            Ok(schema::StackMode::None) | Err(_) => StackMode::None,
        },
        copy_limit: r.get_copy_limit(),
        on: read_kinds(header, "on", r.get_on())?,
        kernel: read_kinds(header, "kernel", r.get_kernel())?,
        frequency: r.get_frequency(),
        min_dur: r.get_min_dur(),
    })
}

fn write_number(mut b: schema::device_number::Builder<'_>, (major, minor): (u32, u32)) {
    b.set_major(major);
    b.set_minor(minor);
}

fn write_links(mut list: capnp::struct_list::Builder<'_, schema::device_link::Owned>, links: &[DeviceLink]) {
    for (i, link) in links.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        write_number(b.reborrow().init_dev(), link.dev);
        if let Some(disk) = link.disk {
            write_number(b.reborrow().init_disk(), disk);
        }
        b.set_first_sector(link.first_sector);
        let mut lower = b.init_lower(link.lower.len() as u32);
        for (i, &number) in link.lower.iter().enumerate() {
            write_number(lower.reborrow().get(i as u32), number);
        }
    }
}

fn number(r: schema::device_number::Reader<'_>) -> (u32, u32) {
    (r.get_major(), r.get_minor())
}

fn read_link(header: &Header, r: schema::device_link::Reader<'_>) -> Result<DeviceLink> {
    let err = capnp_err(SESSION);
    let lower = r.get_lower().map_err(&err)?;
    list_len::<schema::device_number::Builder<'_>>(SESSION, "lower", lower.len(), header)?;
    Ok(DeviceLink {
        dev: number(r.get_dev().map_err(&err)?),
        disk: if r.has_disk() { Some(number(r.get_disk().map_err(&err)?)) } else { None },
        first_sector: r.get_first_sector(),
        lower: lower.iter().map(number).collect(),
    })
}

fn read_arguments(
    header: &Header,
    name: &str,
    list: capnp::Result<capnp::struct_list::Reader<'_, schema::argument::Owned>>,
) -> Result<Vec<Vec<u8>>> {
    let list = list.map_err(capnp_err(SESSION))?;
    list_len::<schema::argument::Builder<'_>>(SESSION, name, list.len(), header)?;
    list.iter().map(|r| data(SESSION, r.get_value())).collect()
}

fn read_texts(header: &Header, name: &str, list: capnp::Result<capnp::text_list::Reader<'_>>) -> Result<Vec<String>> {
    let list = list.map_err(capnp_err(SESSION))?;
    plain_len(SESSION, name, list.len(), 8, header)?;
    list.iter().map(|t| text(SESSION, t)).collect()
}

/// The session of a session block.
pub(crate) fn read_session(header: &Header, message: &Message<'_>) -> Result<Session> {
    let err = capnp_err(SESSION);
    let r = message.get_root::<schema::session::Reader<'_>>().map_err(&err)?;
    let mut s = Session {
        clock: read_clock(SESSION, r.get_clock())?,
        boot_id: text(SESSION, r.get_boot_id())?,
        hostname: data(SESSION, r.get_hostname())?,
        machine_id_hash: r.get_machine_id_hash(),
        utc_offset_seconds: r.get_utc_offset_seconds(),
        kernel_release: text(SESSION, r.get_kernel_release())?,
        kernel_version: text(SESSION, r.get_kernel_version())?,
        machine: text(SESSION, r.get_machine())?,
        cpus: r.get_cpus(),
        page_size: r.get_page_size(),
        tool_version: text(SESSION, r.get_tool_version())?,
        arguments: read_arguments(header, "arguments", r.get_arguments())?,
        target: text(SESSION, r.get_target())?,
        selection: read_arguments(header, "selection", r.get_selection())?,
        call_filters: read_arguments(header, "callFilters", r.get_call_filters())?,
        string_limit: r.get_string_limit(),
        window_open: r.get_window_open(),
        ring_bytes: r.get_ring_bytes(),
        notes: read_arguments(header, "notes", r.get_notes())?,
        labels: read_arguments(header, "labels", r.get_labels())?,
        env_keys: read_arguments(header, "envKeys", r.get_env_keys())?,
        containers: read_containers(SESSION, header, r.get_containers())?,
        cut: Some(Window { from: r.get_cut_from(), to: r.get_cut_to() }).filter(|cut| cut.to != 0),
        recording: data(SESSION, r.get_recording())?,
        cut_tasks: r.get_cut_tasks(),
        imported: text(SESSION, r.get_imported())?,
        with_self: r.get_with_self(),
        needs: r.get_needs(),
        preemptible: r.get_preemptible(),
        registers_unknown: r.get_registers_unknown(),
        extent: match r.get_extent() {
            Ok(schema::Extent::Everyone) => Extent::Everyone,
            Ok(schema::Extent::Some) => Extent::Some,
            Ok(schema::Extent::NotSaid) | Err(_) => Extent::NotSaid,
        },
        stacks: read_stack_settings(header, r.get_stacks().map_err(&err)?)?,
        ..Session::default()
    };
    if r.has_kept() {
        let r = r.get_kept().map_err(&err)?;
        s.kept = Some(Kept {
            last: r.get_last_ns(),
            ring_bytes: r.get_ring_bytes(),
            full: r.get_full(),
            recording_open: r.get_recording_open(),
        });
    }
    let list = r.get_syscalls().map_err(&err)?;
    list_len::<schema::syscall_format::Builder<'_>>(SESSION, "syscalls", list.len(), header)?;
    for r in list {
        s.syscalls.push(SyscallFormat {
            abi: r.get_abi(),
            nr: r.get_nr(),
            name: text(SESSION, r.get_name())?,
            arg_names: read_texts(header, "argNames", r.get_arg_names())?,
            arg_types: read_texts(header, "argTypes", r.get_arg_types())?,
        });
    }
    let list = r.get_users().map_err(&err)?;
    list_len::<schema::user::Builder<'_>>(SESSION, "users", list.len(), header)?;
    for r in list {
        s.users.push((r.get_uid(), data(SESSION, r.get_name())?));
    }
    let list = r.get_devices().map_err(&err)?;
    list_len::<schema::device::Builder<'_>>(SESSION, "devices", list.len(), header)?;
    for r in list {
        s.devices.push((r.get_major(), r.get_minor(), data(SESSION, r.get_name())?));
    }
    let list = r.get_cgroups().map_err(&err)?;
    list_len::<schema::cgroup::Builder<'_>>(SESSION, "cgroups", list.len(), header)?;
    for r in list {
        s.cgroups.push((r.get_id(), data(SESSION, r.get_path())?));
    }
    let list = r.get_device_links().map_err(&err)?;
    list_len::<schema::device_link::Builder<'_>>(SESSION, "deviceLinks", list.len(), header)?;
    s.device_links = list.iter().map(|r| read_link(header, r)).collect::<Result<_>>()?;
    let list = r.get_families().map_err(&err)?;
    plain_len(SESSION, "families", list.len(), 2, header)?;
    s.families = list.iter().map(family).collect();
    let list = r.get_left_out().map_err(&err)?;
    list_len::<schema::left_out::Builder<'_>>(SESSION, "leftOut", list.len(), header)?;
    for r in list {
        let (program, reason) = (text(SESSION, r.get_program())?, text(SESSION, r.get_reason())?);
        s.left_out.push(LeftOut { family: family(r.get_family()), program, reason });
    }
    let list = r.get_cpu_list().map_err(&err)?;
    plain_len(SESSION, "cpuList", list.len(), 4, header)?;
    s.cpu_list = list.iter().collect();
    // A class of a later version has no fields that this one reads.
    let redacted = read_texts(header, "redacted", r.get_redacted())?;
    s.redacted = redacted.iter().filter_map(|name| Class::named(name)).collect();
    Ok(s)
}

type Containers<'a> = capnp::struct_list::Builder<'a, schema::container::Owned>;

/// Fills a list of containers.
pub(super) fn write_containers(mut list: Containers<'_>, containers: &[Container]) {
    for (at, container) in containers.iter().enumerate() {
        let mut b = list.reborrow().get(at as u32);
        b.set_id(&container.id);
        b.set_name(&container.name);
        b.set_image(&container.image);
        b.set_pod(&container.pod);
        b.set_namespace(&container.namespace);
    }
}

/// A list of containers.
pub(super) fn read_containers(
    what: &'static str,
    header: &Header,
    list: capnp::Result<capnp::struct_list::Reader<'_, schema::container::Owned>>,
) -> Result<Vec<Container>> {
    let list = list.map_err(capnp_err(what))?;
    list_len::<schema::container::Builder<'_>>(what, "containers", list.len(), header)?;
    let read = |r: schema::container::Reader<'_>| -> Result<Container> {
        Ok(Container {
            id: data(what, r.get_id())?,
            name: data(what, r.get_name())?,
            image: data(what, r.get_image())?,
            pod: data(what, r.get_pod())?,
            namespace: data(what, r.get_namespace())?,
        })
    };
    list.iter().map(read).collect()
}

/// Family of that number; unknown to this version is [`Family::Unknown`].
pub(super) fn family(raw: u16) -> Family {
    Family::from_raw(raw).unwrap_or(Family::Unknown)
}

type Counts<'a> = capnp::struct_list::Builder<'a, schema::kind_count::Owned>;

fn write_counts(mut list: Counts<'_>, counts: &[(Family, u64)]) {
    for (i, &(family, count)) in counts.iter().enumerate() {
        let mut b = list.reborrow().get(i as u32);
        b.set_family(family as u16);
        b.set_count(count);
    }
}

fn read_counts(
    header: &Header,
    name: &str,
    list: capnp::Result<capnp::struct_list::Reader<'_, schema::kind_count::Owned>>,
) -> Result<Vec<(Family, u64)>> {
    let list = list.map_err(capnp_err(END))?;
    list_len::<schema::kind_count::Builder<'_>>(END, name, list.len(), header)?;
    Ok(list.iter().map(|r| (family(r.get_family()), r.get_count())).collect())
}

/// The end message.
pub(crate) fn write_end(e: &End) -> Builder<HeapAllocator> {
    let mut message = new_message(1024);
    let mut b = message.init_root::<schema::end::Builder<'_>>();
    write_clock(b.reborrow().init_clock(), &e.clock);
    b.set_window_close(e.window_close);
    b.set_reason(&e.reason);
    write_counts(b.reborrow().init_events(e.events.len() as u32), &e.events);
    write_counts(b.reborrow().init_lost(e.lost.len() as u32), &e.lost);
    b.set_command_exit(e.command_exit);
    b.set_self_cpu_ns(e.self_cpu_ns);
    b.set_self_peak_rss(e.self_peak_rss);
    b.set_own_calls(e.own_calls);
    message
}

/// The end mark of an end block.
pub(crate) fn read_end(header: &Header, message: &Message<'_>) -> Result<End> {
    let r = message.get_root::<schema::end::Reader<'_>>().map_err(capnp_err(END))?;
    Ok(End {
        clock: read_clock(END, r.get_clock())?,
        window_close: r.get_window_close(),
        reason: text(END, r.get_reason())?,
        events: read_counts(header, "events", r.get_events())?,
        lost: read_counts(header, "lost", r.get_lost())?,
        command_exit: r.get_command_exit(),
        self_cpu_ns: r.get_self_cpu_ns(),
        self_peak_rss: r.get_self_peak_rss(),
        own_calls: r.get_own_calls(),
    })
}
