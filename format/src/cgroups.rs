//! What the path of a cgroup names.

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
    fn the_innermost_container() {
        let (a, b) = ("4d".repeat(32), "07".repeat(32));
        assert_eq!(container(&format!("/docker/{a}/docker/{b}/inner")), Some(b.as_str()));
        assert_eq!(container(&format!("/machine.slice/libpod-conmon-{a}.scope")), None);
        assert_eq!(container(&format!("/docker/{}", &a[1..])), None);
        assert_eq!(container(&format!("/docker/{}", a.to_uppercase())), None);
        assert_eq!(container("/"), None);
    }
}
