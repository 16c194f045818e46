//! Cgroups that are chosen by what people call them: a path, a unit of systemd, a container, a pod.

use std::collections::BTreeSet;
use std::fmt;

use systape_format::cgroups::{self, begins};
use systape_format::model::Session;

use crate::values::glob;
use crate::values::owners::Owners;
use crate::values::words::escaped;

/// Most names in a message.
const LISTED: usize = 6;

/// Which cgroups are meant, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InCgroup {
    /// `-G`: this path and those below it, or a glob.
    Path(String),
    /// `--unit`: those of a unit and below it, by its name with or without `.service`.
    Unit(String),
    /// `--container`: by its name or the beginning of its id.
    Container(String),
    /// `--pod`: by its name, `NAMESPACE/NAME`, or the beginning of its uid.
    Pod(String),
}

impl fmt::Display for InCgroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(text) => write!(f, "-G {text}"),
            Self::Unit(text) => write!(f, "--unit {text}"),
            Self::Container(text) => write!(f, "--container {text}"),
            Self::Pod(text) => write!(f, "--pod {text}"),
        }
    }
}

impl InCgroup {
    /// Whether the cgroup of `session` at `path` is one of them.
    pub fn has(&self, path: &[u8], session: &Session) -> bool {
        let text = || std::str::from_utf8(path).unwrap_or_default();
        match self {
            Self::Path(typed) => {
                let wanted = typed.trim_matches('/').as_bytes();
                let path = path.strip_prefix(b"/").unwrap_or(path);
                let below = path
                    .strip_prefix(wanted)
                    .is_some_and(|rest| wanted.is_empty() || rest.is_empty() || rest[0] == b'/');
                below || glob::matches(wanted, path)
            }
            Self::Unit(name) => text().split('/').any(|part| is_unit(part, name)),
            Self::Container(name) => Owners::of(text()).container.is_some_and(|id| {
                let named = |names: &[u8]| glob::matches(name.as_bytes(), names);
                let of = |known: &&systape_format::model::Container| known.id == id.as_bytes();
                begins(&id, name) || session.containers.iter().filter(of).any(|known| named(&known.name))
            }),
            Self::Pod(name) => {
                let owners = Owners::of(text());
                let known = owners.container.as_ref().and_then(|id| {
                    session.containers.iter().find(|known| known.id == id.as_bytes() && !known.pod.is_empty())
                });
                let named = known.is_some_and(|known| {
                    let whole = [&known.namespace[..], b"/", &known.pod[..]].concat();
                    glob::matches(name.as_bytes(), &known.pod) || glob::matches(name.as_bytes(), &whole)
                });
                named || owners.pod.is_some_and(|uid| begins(&uid, name))
            }
        }
    }

    /// What there is to choose from.
    pub fn known(&self, session: &Session) -> String {
        let owners = session.cgroups.iter().filter_map(|(_, path)| Some(Owners::of(std::str::from_utf8(path).ok()?)));
        let container = |id: &str| session.containers.iter().find(|known| known.id == id.as_bytes());
        let names: BTreeSet<String> = match self {
            Self::Path(_) => return "no cgroup of this tape has that path".to_owned(),
            Self::Unit(_) => owners.filter_map(|owners| owners.unit).collect(),
            Self::Container(_) => {
                let name = |id: String| match container(&id).filter(|known| !known.name.is_empty()) {
                    Some(known) => escaped(&known.name),
                    None => id[..12].to_owned(),
                };
                owners.filter_map(|owners| owners.container).map(name).collect()
            }
            Self::Pod(_) => {
                let name = |owners: Owners| {
                    let known = owners.container.as_deref().and_then(container).filter(|known| !known.pod.is_empty());
                    known.map(|known| escaped(&known.pod)).or(owners.pod)
                };
                owners.filter_map(name).collect()
            }
        };
        let what = match self {
            Self::Unit(_) => "units",
            Self::Container(_) => "containers",
            _ => "pods",
        };
        if names.is_empty() {
            return format!("this tape has no {what}");
        }
        let listed: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
        let more = names.len() - listed.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("no cgroup of this tape is of that name; it has {what} {}{more}", listed.join(", "))
    }
}

/// Whether a part of a path is the unit `name`, whose ending may be left out.
fn is_unit(part: &str, name: &str) -> bool {
    let is = |text: &str| glob::matches(name.as_bytes(), text.as_bytes());
    cgroups::unit(part).is_some_and(|unit| is(unit.name) || is(unit.stem))
}

#[cfg(test)]
mod tests {
    use systape_format::model::Container;

    use super::*;

    #[test]
    fn names_choose_cgroups() {
        let (id, pod) = ("4d2c".repeat(16), "8dbc5577-d0e2-4706-8787-57d52c03ddf2");
        let paths = [
            "/system.slice/nginx.service/inner".to_owned(),
            "/system.slice/ssh.service".to_owned(),
            format!("/docker/{id}"),
            format!("/kubepods/pod{pod}/{}", "07".repeat(32)),
        ];
        let container = |id: String, name: &str, pod: &str| Container {
            id: id.into_bytes(),
            name: name.into(),
            pod: pod.into(),
            namespace: b"prod".to_vec(),
            ..Container::default()
        };
        let session = Session {
            cgroups: paths.iter().zip(1..).map(|(path, id)| (id, path.clone().into_bytes())).collect(),
            containers: vec![container(id, "web", ""), container("07".repeat(32), "app", "web-7")],
            ..Session::default()
        };
        let chosen = |what: InCgroup| -> Vec<usize> {
            (0..paths.len()).filter(|at| what.has(paths[*at].as_bytes(), &session)).collect()
        };
        let unit = |name: &str| chosen(InCgroup::Unit(name.into()));
        assert_eq!((unit("nginx"), unit("nginx.service"), unit("system")), (vec![0], vec![0], vec![0, 1]));
        assert_eq!((unit("*"), unit("ngin"), unit("docker")), (vec![0, 1], vec![], vec![]));
        let container = |name: &str| chosen(InCgroup::Container(name.into()));
        assert_eq!((container("web"), container("4d2c4d2c"), container("4d")), (vec![2], vec![2], vec![]));
        let pod = |name: &str| chosen(InCgroup::Pod(name.into()));
        assert_eq!((pod("web-7"), pod("prod/*"), pod("8dbc5577"), pod("web")), (vec![3], vec![3], vec![3], vec![]));
        assert_eq!(chosen(InCgroup::Path("/docker".into())), [2]);
        assert!(InCgroup::Pod("x".into()).known(&session).ends_with("it has pods web-7"));
        assert!(InCgroup::Unit("x".into()).known(&session).ends_with("units nginx.service, ssh.service"));
    }
}
