//! Columns of keys, which precede the sums.

use systape_format::table::ColumnDef;

use super::cell::Cell;
use super::keys::columns as named;
use super::row::Row;
use systape_events::group::by::GroupKey;

systape_format::tables! {
    /// Keys of `--by`, each where it was named. A summary without `--by` has, before `abi` and `syscall`, all but `cgroup` by thread,
    /// `pid upid comm uid` by process, `cgroup` by cgroup, none in total. Where calls are known per process only, `tid` and `utid` are null;
    /// where not even the process or the cgroup is known, all keys are.
    pub BY = "by" {
        pid: Int key "process; of a block I/O the one it is blamed on; null: not known"
        tid: Int key "thread, likewise"
        upid: Int key "the process, unique in the tape: the kernel gives pids out again"
        utid: Int key "the thread, unique in the tape"
        comm: Str key [Comm] "name of the thread; of a process that of its leader; null: not known"
        uid: Int key "real user; null: not known"
        cgroup: Str key [Path] "path of its cgroup, of a block I/O of the one it is charged to; null: not known"
        cgroup_id: Wide key "its number; null: not known"
        container: Str key [Path] "id of the container of its cgroup; empty: in none; null: not known"
        container_name: Str key [Path] "its name; null: the files of its runtime do not say, or it is in none"
        image: Str key [Path] "its image, likewise"
        systemd_unit: Str key [Path] "unit of systemd, likewise"
        pod: Str key [Path] "uid of the pod of Kubernetes, likewise"
        pod_name: Str key [Path] "its name, as files of a container in it say; null: they do not"
        namespace: Str key [Path] "its namespace, likewise"
        job: Str key [Path] "job of a batch system, `slurm:JOB.STEP` or `condor:SLOT`, likewise"
        env: Str key [Command] "variables of the environment with which its program was started (`record --env`): `JOB=17 STAGE=test`, `JOB=?` of one that is not known; empty: none of them was set; null: not known"
        label: Str key [Command] "labels of the tape (`record --label`); empty: it has none"
        cpu: Int key "CPU, of a call the one it ended on; null: not known"
        abi: Word key "`x86_64`, `i386`, `x32`, `aarch64`, `unknown`; null: in no call"
        syscall: Word key "name of the call; of a thread in none `[user]`, `[kernel]` (a kernel thread) or `?`"
        file: Str key [Path] "what the call is on, as the program named it; empty: on none; null: not known; of a block I/O the path of the file that it reads or writes, `8:16 inode 12` without a known path, `[metadata]` and the like, `?`, `-` for a flush"
        dir: Str key [Path] "directory that the file is in, `.` of a name without one; empty: it is no file, or there is none; null: not known"
        ext: Str key [Path] "extension of its name without the dot; empty: none; null: not known"
        peer: Str key [Path] "of a socket the other end: `10.0.0.2:443`, of a UNIX one its number; empty: none; null: not known"
        port: Int key "port of the peer; 0: none; null: not known"
        errno: Word key "the error it returned, `0`: none; null: not known"
        second: Int key "second of the recording in which the call began, 0 the first, as `--time` counts; null: it began before the recording, or is not known"
        minute: Int key "the minute likewise"
        state: Word key "letter of ps(1), `R` for waiting for a CPU; in `states` also `RUN` (on a CPU), `RQ` (waiting for one) and `?`; `throttled`: its cgroup has used up its CPU quota"
        disk: Word key "the whole disk"
        major: Int key "the disk's number, first part"
        minor: Int key "second part"
        cause: Word key "how it is known whom to blame: `direct dirtier cgroup kthread flush unknown`"
        op: Word key "operation"
    }
}

/// The columns of a key; a task has `comm` unless `comm` is a key itself.
fn names(by: GroupKey) -> &'static [&'static str] {
    match by {
        GroupKey::Pid => &["pid", "upid", "comm"],
        GroupKey::Tid => &["pid", "tid", "upid", "utid", "comm"],
        GroupKey::Comm => &["comm"],
        GroupKey::Uid => &["uid"],
        GroupKey::Cgroup => &["cgroup", "cgroup_id"],
        GroupKey::Container => &["container", "container_name", "image"],
        GroupKey::Unit => &["systemd_unit"],
        GroupKey::Pod => &["pod", "pod_name", "namespace"],
        GroupKey::Job => &["job"],
        GroupKey::Env => &["env"],
        GroupKey::Label => &["label"],
        GroupKey::Cpu => &["cpu"],
        GroupKey::Syscall => &["abi", "syscall"],
        GroupKey::Abi => &["abi"],
        GroupKey::File => &["file"],
        GroupKey::Dir => &["dir"],
        GroupKey::Ext => &["ext"],
        GroupKey::Peer => &["peer"],
        GroupKey::Port => &["port"],
        GroupKey::Errno => &["errno"],
        GroupKey::Second => &["second"],
        GroupKey::Minute => &["minute"],
        GroupKey::State => &["state"],
        GroupKey::Disk => &["disk", "major", "minor"],
        GroupKey::Cause => &["cause"],
        GroupKey::Op => &["op"],
    }
}

/// Whether a column has the value of its key itself, not what else is known of it.
pub fn is_value(by: GroupKey, column: &str) -> bool {
    names(by).first() == Some(&column)
}

/// The keys of the columns of `keys`, in their order; a column common to two keys occurs once.
fn parts(keys: &[GroupKey]) -> impl Iterator<Item = (GroupKey, &'static str)> {
    // a thread has that of its process, a call its ABI
    let within = |by: &GroupKey| match by {
        GroupKey::Pid => keys.contains(&GroupKey::Tid),
        GroupKey::Abi => keys.contains(&GroupKey::Syscall),
        _ => false,
    };
    let wanted = keys.iter().filter(|by| !within(by));
    let own_comm = keys.contains(&GroupKey::Comm);
    let part = move |by: &GroupKey| {
        let by = *by;
        let names = names(by).iter().filter(move |name| **name != "comm" || by == GroupKey::Comm || !own_comm);
        names.map(move |name| (by, *name))
    };
    wanted.copied().collect::<Vec<_>>().into_iter().flat_map(move |by| part(&by))
}

/// The columns of [`BY`] of `keys`.
pub fn columns(keys: &[GroupKey]) -> Vec<ColumnDef> {
    named(&BY, parts(keys).map(|(_, name)| name))
}

/// Runs `then` for each of them, with its key.
pub fn each(keys: &[GroupKey], mut then: impl FnMut(GroupKey, &'static str)) {
    parts(keys).for_each(|(by, name)| then(by, name));
}

/// Sets them: `cell` returns each by its key and its name.
pub fn fill<'a>(row: &mut Row<'a>, keys: &[GroupKey], mut cell: impl FnMut(GroupKey, &'static str) -> Cell<'a>) {
    for (by, name) in parts(keys) {
        row.set(name, cell(by, name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns_of(keys: &[GroupKey]) -> String {
        columns(keys).iter().map(|column| &*column.name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_stand_once_and_in_order() {
        assert_eq!(columns_of(&[GroupKey::Tid, GroupKey::Syscall]), "pid tid upid utid comm abi syscall");
        assert_eq!(columns_of(&[GroupKey::Abi, GroupKey::Syscall, GroupKey::Errno]), "abi syscall errno");
        assert_eq!(columns_of(&[GroupKey::Abi, GroupKey::Comm]), "abi comm");
        assert_eq!(columns_of(&[GroupKey::Comm, GroupKey::Tid, GroupKey::Pid]), "comm pid tid upid utid");
        assert_eq!(columns_of(&[GroupKey::Disk, GroupKey::Pid]), "disk major minor pid upid comm");
    }
}
