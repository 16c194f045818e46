//! Cgroups by what people call them: a unit of systemd, a container, a pod. `analyze` chooses by the same names on a tape.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use systape_format::cgroups::{self, begins};
use systape_format::model::Container;

/// Most cgroups that are looked at, and how deep they lie.
const MOST: usize = 65536;
const DEEPEST: usize = 32;
/// Most names in a message.
const LISTED: usize = 5;

/// What a cgroup is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called<'a> {
    /// `nginx`, or `nginx.service`.
    Unit(&'a str),
    /// A container by name, or by the beginning of its id.
    Container(&'a str),
    /// `NAME`, `NAMESPACE/NAME`, or the beginning of its uid.
    Pod(&'a str),
}

impl Called<'_> {
    /// The option that chooses by it, as typed.
    fn typed(self) -> String {
        match self {
            Self::Unit(name) => format!("--unit {name}"),
            Self::Container(name) => format!("--container {name}"),
            Self::Pod(name) => format!("--pod {name}"),
        }
    }

    /// The directory that is meant, if `dir` belongs to it; and what `dir` is called that is of this kind, for a message.
    fn of<'d>(self, dir: &'d Path, known: &impl Fn(&str) -> Option<Container>) -> (Option<&'d Path>, Option<String>) {
        let Some(last) = dir.file_name().and_then(|name| name.to_str()) else { return (None, None) };
        let id = cgroups::container(last);
        match self {
            Self::Unit(name) => {
                let Some(unit) = cgroups::unit(last) else { return (None, None) };
                let is = unit.name == name || unit.stem == name;
                (is.then_some(dir), unit.name.ends_with(".service").then(|| unit.name.to_owned()))
            }
            Self::Container(name) => {
                let Some(id) = id else { return (None, None) };
                let called = known(id).map(|container| container.name).filter(|name| !name.is_empty());
                let is = begins(id, name) || called.as_deref() == Some(name.as_bytes());
                let called = called.map(|name| String::from_utf8_lossy(&name).into_owned());
                (is.then_some(dir), Some(called.unwrap_or_else(|| id[..12].to_owned())))
            }
            Self::Pod(name) => {
                if cgroups::pod(last).is_some_and(|uid| begins(&uid, name)) {
                    return (Some(dir), None);
                }
                let Some(container) = id.and_then(known).filter(|container| !container.pod.is_empty()) else {
                    return (None, None);
                };
                let [pod, namespace] =
                    [container.pod, container.namespace].map(|name| String::from_utf8_lossy(&name).into_owned());
                let is = pod == name || format!("{namespace}/{pod}") == name;
                (dir.parent().filter(|_| is), Some(pod))
            }
        }
    }
}

/// The cgroup below `mount` that is `called` so; `known` has what runtimes say of a container by its id.
///
/// # Errors
/// There is none, or there are several.
pub(crate) fn find(mount: &Path, called: Called<'_>, known: impl Fn(&str) -> Option<Container>) -> Result<PathBuf> {
    let (mut found, mut others) = (BTreeSet::new(), BTreeSet::new());
    let mut left = vec![(mount.to_owned(), 0)];
    let mut looked_at = 0;
    while let Some((dir, depth)) = left.pop() {
        let (meant, name) = called.of(&dir, &known);
        found.extend(meant.map(Path::to_owned));
        others.extend(name);
        // what is below the one that is meant belongs to it
        if meant == Some(dir.as_path()) || depth == DEEPEST {
            continue;
        }
        let below = fs::read_dir(&dir).into_iter().flatten().flatten();
        let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        for entry in below.take(MOST - looked_at) {
            looked_at += 1;
            left.push((entry.path(), depth + 1));
        }
    }
    let paths: Vec<PathBuf> = found.into_iter().collect();
    match paths.as_slice() {
        [one] => Ok(one.clone()),
        [] if others.is_empty() => bail!("{}: none of these runs below {}", called.typed(), mount.display()),
        [] => {
            let more = others.len().saturating_sub(LISTED);
            let some: Vec<String> = others.into_iter().take(LISTED).collect();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            bail!("{}: there is none; there are {}{more}", called.typed(), some.join(", "))
        }
        [one, other, ..] => bail!(
            "{}: there are {} of them, {} and {}: -G CGROUP chooses one",
            called.typed(),
            paths.len(),
            one.display(),
            other.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_are_found_by_what_they_are_called() {
        let root = std::env::temp_dir().join(format!("systape-called-{}", std::process::id()));
        let (web, db) = ("4d".repeat(32), "07".repeat(32));
        let pod = format!("kubepods.slice/kubepods-pod{}.slice", "0123abcd_0000_0000_0000_000000000001");
        let dirs = [
            "system.slice/nginx.service/worker".to_owned(),
            "system.slice/sshd.service".to_owned(),
            "a.slice/twice.service".to_owned(),
            "b.slice/twice.service".to_owned(),
            format!("docker/{web}"),
            format!("{pod}/cri-containerd-{db}.scope"),
        ];
        for dir in &dirs {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        let known = |id: &str| {
            let container = Container { id: id.as_bytes().to_vec(), ..Container::default() };
            (id == db).then(|| Container {
                name: b"db".to_vec(),
                pod: b"store".to_vec(),
                namespace: b"shop".to_vec(),
                ..container
            })
        };
        let path = |called| find(&root, called, known).map(|path| path.strip_prefix(&root).unwrap().to_owned());
        let why = |called| path(called).unwrap_err().to_string();
        for name in ["nginx", "nginx.service"] {
            assert_eq!(path(Called::Unit(name)).unwrap(), Path::new("system.slice/nginx.service"));
        }
        assert_eq!(path(Called::Unit("system")).unwrap(), Path::new("system.slice"));
        assert!(
            why(Called::Unit("nginy")).contains("there are nginx.service, sshd.service"),
            "{}",
            why(Called::Unit("nginy"))
        );
        assert!(why(Called::Unit("twice")).contains("2 of them"));
        assert_eq!(path(Called::Container("4d4d4d4d")).unwrap(), Path::new("docker").join(&web));
        assert_eq!(path(Called::Container("db")).unwrap(), Path::new(&dirs[5]));
        assert!(
            why(Called::Container("4d4")).contains("there are 4d4d4d4d4d4d, db"),
            "{}",
            why(Called::Container("4d4"))
        );
        for name in ["store", "shop/store", "0123abcd"] {
            assert_eq!(path(Called::Pod(name)).unwrap(), Path::new(&pod));
        }
        assert!(why(Called::Pod("shop/other")).contains("there are store"));
        fs::remove_dir_all(&root).unwrap();
        assert!(find(&root, Called::Pod("x"), known).is_err());
    }
}
