//! Keys that the path of a cgroup tells: container, unit, pod, job.

use rustc_hash::FxHashMap;
use systape_format::model::Session;

use super::by::By;
use super::value::Value;
use crate::values::owners::Owners;

/// What the cgroups of a tape belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfCgroup {
    /// Values of [`By::OF_CGROUP`] by cgroup. A cgroup whose path was taken out of the tape has none.
    values: FxHashMap<u64, [Value; By::OF_CGROUP.len()]>,
}

impl OfCgroup {
    /// Of the cgroups of `session`, if one of `keys` needs them.
    pub(crate) fn of(session: &Session, keys: &[By]) -> Self {
        if !keys.iter().any(|key| By::OF_CGROUP.contains(key)) {
            return Self::default();
        }
        Self { values: session.cgroups.iter().filter_map(|(id, path)| Some((*id, values(path)?))).collect() }
    }

    /// The value of `by`, one of [`By::OF_CGROUP`], of a cgroup; [`Value::Several`] stays.
    pub(crate) fn value(&self, by: By, cgroup: &Value) -> Value {
        let at = By::OF_CGROUP.iter().position(|known| *known == by);
        match (cgroup, at) {
            (Value::Number(id), Some(at)) => self.values.get(id).map_or(Value::Unknown, |all| all[at].clone()),
            (Value::Several, _) => Value::Several,
            _ => Value::Unknown,
        }
    }
}

fn values(path: &[u8]) -> Option<[Value; By::OF_CGROUP.len()]> {
    let Owners { container, unit, pod, job } = Owners::of(std::str::from_utf8(path).ok()?);
    let value = |name: Option<String>| name.map_or(Value::None, |name| Value::Text(name.into_bytes().into()));
    path.starts_with(b"/").then(|| [container, unit, pod, job].map(value))
}
