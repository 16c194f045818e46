//! Keys that the path of a cgroup tells: container, unit, pod, job.

use rustc_hash::FxHashMap;
use systape_format::model::{Container, Session};

use super::by::GroupKey;
use super::value::Value;
use crate::values::owners::Owners;
use crate::values::words::escaped;

/// What the cgroups of a tape belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfCgroup {
    /// Values of [`GroupKey::OF_CGROUP`] by cgroup. A cgroup whose path was taken out of the tape has none.
    values: FxHashMap<u64, [Value; GroupKey::OF_CGROUP.len()]>,
    /// Containers by their ids.
    containers: FxHashMap<Vec<u8>, Container>,
    /// A container of each pod, by the pod's uid.
    pods: FxHashMap<Vec<u8>, Container>,
}

impl OfCgroup {
    /// Names of the cgroups of `session`, if one of `keys` needs them.
    pub fn of(session: &Session, keys: &[GroupKey]) -> Self {
        let mut this = Self::default();
        if !keys.iter().any(|key| GroupKey::OF_CGROUP.contains(key)) {
            return this;
        }
        this.containers = session.containers.iter().map(|known| (known.id.clone(), known.clone())).collect();
        for (id, path) in session.cgroups.iter().filter(|(_, path)| path.starts_with(b"/")) {
            let Ok(path) = std::str::from_utf8(path) else { continue };
            let Owners { container, unit, pod, job } = Owners::of(path);
            let known = container.as_ref().and_then(|id| this.containers.get(id.as_bytes()));
            if let (Some(pod), Some(known)) = (&pod, known.filter(|known| !known.pod.is_empty())) {
                this.pods.insert(pod.clone().into_bytes(), known.clone());
            }
            let value = |name: Option<String>| name.map_or(Value::None, |name| Value::Text(name.into_bytes().into()));
            this.values.insert(*id, [container, unit, pod, job].map(value));
        }
        this
    }

    /// The value of `by`, one of [`GroupKey::OF_CGROUP`], of a cgroup; [`Value::Several`] stays.
    pub fn value(&self, by: GroupKey, cgroup: &Value) -> Value {
        let at = GroupKey::OF_CGROUP.iter().position(|known| *known == by);
        match (cgroup, at) {
            (Value::Number(id), Some(at)) => self.values.get(id).map_or(Value::Unknown, |all| all[at].clone()),
            (Value::Several, _) => Value::Several,
            _ => Value::Unknown,
        }
    }

    /// What files of its runtime say of the container or pod `name`.
    fn known(&self, by: GroupKey, name: &[u8]) -> Option<&Container> {
        match by {
            GroupKey::Container => self.containers.get(name),
            GroupKey::Pod => self.pods.get(name),
            _ => None,
        }
    }

    /// The value `name` of `by` for a table: `web (4d2c0e3bd3c9)`, `prod/web-7` of a pod.
    pub fn text(&self, by: GroupKey, name: &[u8]) -> String {
        match self.known(by, name) {
            Some(Container { pod, namespace, .. }) if by == GroupKey::Pod => {
                format!("{}/{}", escaped(namespace), escaped(pod))
            }
            Some(known) if !known.name.is_empty() => {
                format!("{} ({})", escaped(&known.name), escaped(&name[..name.len().min(12)]))
            }
            _ => escaped(name),
        }
    }

    /// Another column of the key: `container_name`, `image`, `pod_name`, `namespace`; None: not known.
    pub fn fact(&self, (by, column): (GroupKey, &str), name: &[u8]) -> Option<&[u8]> {
        let known = self.known(by, name)?;
        let fact = match column {
            "container_name" => &known.name,
            "image" => &known.image,
            "pod_name" => &known.pod,
            "namespace" => &known.namespace,
            _ => return None,
        };
        (!fact.is_empty()).then_some(fact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_and_pods_have_names() {
        let (id, pod) = ("4d".repeat(32), "8dbc5577-d0e2-4706-8787-57d52c03ddf2");
        let container = Container {
            id: id.clone().into_bytes(),
            name: b"web".to_vec(),
            pod: b"web-7".to_vec(),
            namespace: b"prod".to_vec(),
            ..Container::default()
        };
        let session = Session {
            cgroups: vec![(7, format!("/kubepods/pod{pod}/{id}").into_bytes()), (8, b"<redacted 8>".to_vec())],
            containers: vec![container],
            ..Session::default()
        };
        let of = OfCgroup::of(&session, &[GroupKey::Pod]);
        assert_eq!(of.value(GroupKey::Container, &Value::Number(7)), Value::Text(id.as_bytes().into()));
        assert_eq!(of.value(GroupKey::Unit, &Value::Number(7)), Value::None);
        assert_eq!(of.value(GroupKey::Unit, &Value::Number(8)), Value::Unknown);
        assert_eq!(of.text(GroupKey::Container, id.as_bytes()), "web (4d4d4d4d4d4d)");
        assert_eq!(of.text(GroupKey::Pod, pod.as_bytes()), "prod/web-7");
        assert_eq!(of.text(GroupKey::Unit, b"web"), "web");
        assert_eq!(of.fact((GroupKey::Container, "container_name"), id.as_bytes()), Some(&b"web"[..]));
        assert_eq!(of.fact((GroupKey::Container, "image"), id.as_bytes()), None);
        assert_eq!(OfCgroup::of(&session, &[GroupKey::Cgroup]), OfCgroup::default());
    }
}
