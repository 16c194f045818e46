//! What the path of a cgroup names: one place for who chooses cgroups to record and who chooses them on a tape.

/// Id of the innermost container of a cgroup's path, 64 hexadecimal digits; None = it is in none, as far as the path
/// tells.
pub fn container(path: &str) -> Option<&str> {
    path.rsplit('/').find_map(named)
}

/// `ID`, `docker-ID.scope`, `libpod-ID`, `crio-ID.scope`, `cri-containerd-ID.scope`, `system.slice:cri-containerd:ID`.
fn named(part: &str) -> Option<&str> {
    let name = part.strip_suffix(".scope").unwrap_or(part);
    let (before, id) = name.rsplit_once(['-', ':']).unwrap_or(("", name));
    // the process that watches the container (podman, cri-o)
    (is_id(id) && !before.ends_with("conmon")).then_some(id)
}

fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A unit of systemd that a part of a path is named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SystemdUnit<'a> {
    /// Name of the unit, `nginx.service`.
    pub name: &'a str,
    /// Name without its ending, `nginx`.
    pub stem: &'a str,
    /// Whether it has only others below it: a slice.
    pub is_slice: bool,
}

/// The unit of `part` of a path; None: it is none. Names that cgroups have themselves, as `cgroup.procs`, are escaped with `_`
/// (systemd.unit(5), cg_escape() of systemd).
pub fn unit(part: &str) -> Option<SystemdUnit<'_>> {
    let name = part.strip_prefix('_').unwrap_or(part);
    let (stem, ending) = name.rsplit_once('.')?;
    let is_unit = matches!(ending, "service" | "scope" | "slice" | "socket" | "mount" | "swap") && !stem.is_empty();
    is_unit.then_some(SystemdUnit { name, stem, is_slice: ending == "slice" })
}

/// The uid of the pod of Kubernetes that `part` of a path is named after; None: it is none. `podUID` below kubepods, or
/// `kubepods-burstable-podUID.slice` with `_` for `-`. Pods that a node makes itself have 32 digits and no `-`.
pub fn pod(part: &str) -> Option<String> {
    let uid = match part.strip_suffix(".slice") {
        Some(slice) => slice.strip_prefix("kubepods-")?.rsplit('-').next()?.strip_prefix("pod")?.replace('_', "-"),
        None => part.strip_prefix("pod")?.to_owned(),
    };
    let digits = uid.bytes().filter(u8::is_ascii_hexdigit).count();
    (digits == 32 && uid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')).then_some(uid)
}

/// Fewest digits of an id by which people may choose.
const FEWEST: usize = 4;

/// Whether the id of a container or pod begins with what was typed for it.
pub fn begins(id: &str, typed: &str) -> bool {
    typed.len() >= FEWEST && id.starts_with(typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_pods() {
        let of = |part| unit(part).map(|unit| (unit.name, unit.stem, unit.is_slice));
        assert_eq!(of("nginx.service"), Some(("nginx.service", "nginx", false)));
        assert_eq!(of("_cgroup.service"), Some(("cgroup.service", "cgroup", false)));
        assert_eq!(of("user-0.slice"), Some(("user-0.slice", "user-0", true)));
        assert_eq!((of(".service"), of("cgroup.procs"), of("docker")), (None, None, None));
        let uid = "8dbc5577-d0e2-4706-8787-57d52c03ddf2";
        assert_eq!(pod(&format!("pod{uid}")).as_deref(), Some(uid));
        let slice = format!("kubepods-burstable-pod{}.slice", uid.replace('-', "_"));
        assert_eq!(pod(&slice).as_deref(), Some(uid));
        assert_eq!(pod(&format!("pod{}", "07".repeat(16))).as_deref(), Some(&*"07".repeat(16)));
        assert_eq!((pod("podinfo"), pod("podinfo.slice"), pod(uid)), (None, None, None));
    }

    #[test]
    fn the_innermost_container() {
        let (a, b) = ("4d".repeat(32), "07".repeat(32));
        assert_eq!(container(&format!("/docker/{a}/docker/{b}/inner")), Some(b.as_str()));
        assert_eq!(container(&format!("/machine.slice/libpod-conmon-{a}.scope")), None);
        assert_eq!(container(&format!("/docker/{}", &a[1..])), None);
        assert_eq!(container(&format!("/docker/{}", a.to_uppercase())), None);
        assert_eq!(container("/"), None);
    }
}
