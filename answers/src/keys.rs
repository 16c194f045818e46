//! Keys of rows of sums as cells and as text: common to every report that adds up calls.

use systape_format::model::{Session, Task};

use crate::derive::runs::keys::task_text;
use crate::derive::summary::plan::Plan;
use crate::render::by::is_value;
use crate::render::cell::Cell;
use crate::render::row::{some, user};
use systape_events::calls::CallBook;
use systape_events::group::by::GroupKey;
use systape_events::group::value::Value;
use systape_events::values::words::{self, errno_text, escaped};

/// Names for the values of keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyWords<'a> {
    /// Names of users and cgroups.
    pub session: &'a Session,
    /// Names of calls.
    pub book: &'a CallBook<'a>,
    /// Index of each key.
    pub plan: &'a Plan,
}

/// The keys of one row.
#[derive(Clone, Copy, Debug)]
pub struct RowKeys<'a> {
    /// Names of the keys.
    pub words: KeyWords<'a>,
    /// Values of the keys.
    pub values: &'a [Value],
    /// A task of the row; None: none is a key, or not even its process is known.
    pub task: Option<&'a Task>,
}

impl<'a> RowKeys<'a> {
    fn value(&self, by: GroupKey) -> &'a Value {
        self.words.plan.place(by).map_or(&Value::Unknown, |at| &self.values[at])
    }

    /// The column `name` of the key `by`.
    pub fn cell(&self, by: GroupKey, name: &str) -> Cell<'a> {
        match (by, self.value(by)) {
            (GroupKey::Pid | GroupKey::Tid, value) => self.of_task(value, name),
            (GroupKey::Syscall, Value::Call(call)) => {
                let call = self.words.book.get(*call);
                if name == "abi" { call.abi.as_str().into() } else { call.name.clone().into() }
            }
            (GroupKey::Cgroup, Value::Number(id)) if name == "cgroup" => self.words.session.cgroup_path(*id).into(),
            (GroupKey::Errno, Value::None) => "0".into(),
            (GroupKey::Errno, Value::Number(errno)) => errno_text(*errno as u16).into(),
            // no path is empty, nor a name of the others
            (GroupKey::File | GroupKey::Dir | GroupKey::Ext | GroupKey::Peer, Value::None) => "".into(),
            (GroupKey::Container | GroupKey::Pod, value) if !is_value(by, name) => match value {
                Value::Text(id) => self.words.plan.of_cgroup().fact((by, name), id).into(),
                _ => Cell::Null,
            },
            (
                GroupKey::Container | GroupKey::Unit | GroupKey::Pod | GroupKey::Job | GroupKey::Env | GroupKey::Label,
                Value::None,
            ) => "".into(),
            (GroupKey::Port, Value::None) => 0_u32.into(),
            (_, Value::Number(number)) => (*number).into(),
            (_, Value::Text(text)) => (&**text).into(),
            _ => Cell::Null,
        }
    }

    /// A column of the task of the process or thread `value`. Of an unknown thread the process may be known.
    fn of_task(&self, value: &Value, name: &str) -> Cell<'a> {
        let Some(task) = self.task.filter(|_| self.value(GroupKey::Pid).is_known()) else { return Cell::Null };
        match name {
            "tid" | "utid" if !value.is_known() => Cell::Null,
            "pid" => task.pid.into(),
            "tid" => task.tid.into(),
            "upid" => some(task.upid).into(),
            "utid" => some(task.utid).into(),
            "uid" => user(task.uid).into(),
            _ => (&task.comm).into(),
        }
    }

    /// The key `by` as text.
    pub fn text(&self, by: GroupKey) -> String {
        match (by, self.value(by), self.task) {
            (_, Value::Several, _) => "(several)".to_owned(),
            (GroupKey::Pid, Value::Task(..), Some(task)) => format!("{}[{}]", escaped(&task.comm), task.pid),
            (GroupKey::Tid, Value::Task(..), Some(task)) => task_text(task),
            (GroupKey::Tid, _, Some(task)) if self.value(GroupKey::Pid).is_known() => {
                format!("{}[?/{}]", escaped(&task.comm), task.pid)
            }
            (_, Value::Call(call), _) => self.words.book.get(*call).long_name.clone(),
            (GroupKey::Errno, Value::Number(errno), _) => errno_text(*errno as u16),
            (GroupKey::Uid, Value::Number(uid), _) => words::user(self.words.session, *uid as u32),
            (GroupKey::Cgroup, Value::Number(id), _) => words::cgroup(self.words.session, *id),
            (_, Value::Number(number), _) => number.to_string(),
            (GroupKey::Container | GroupKey::Pod, Value::Text(id), _) => self.words.plan.of_cgroup().text(by, id),
            (_, Value::Text(text), _) => escaped(text),
            (_, Value::None, _) => "-".to_owned(),
            (_, Value::Unknown | Value::Task(..), _) => "?".to_owned(),
        }
    }
}
