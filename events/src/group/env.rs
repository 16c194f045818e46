//! The key `env`: variables of the environment with which a task's program was started.

use systape_format::model::Task;

use super::value::Value;

/// `JOB=17 STAGE=test` of `task`; `JOB=?`: not known of this one. [`Value::None`]: none was set. [`Value::Unknown`]: not
/// known, or the tape has no variables.
pub fn value(task: &Task) -> Value {
    match task.env.as_slice() {
        [] => Value::Unknown,
        [0] => Value::None,
        env => Value::Text(text(env).into()),
    }
}

fn text(env: &[u8]) -> Vec<u8> {
    let entries = env.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    let worded = entries.map(|entry| match entry.contains(&b'=') || entry.starts_with(b"<redacted") {
        true => entry.to_vec(),
        false => [entry, b"=?"].concat(),
    });
    worded.collect::<Vec<_>>().join(&b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_not_set_not_known() {
        let of = |env: &[u8]| value(&Task { env: env.to_vec(), ..Task::default() });
        assert_eq!(of(b""), Value::Unknown);
        assert_eq!(of(b"\0"), Value::None);
        assert_eq!(of(b"A=1 2\0B\0"), Value::Text(b"A=1 2 B=?".as_slice().into()));
        assert_eq!(of(b"<redacted>"), Value::Text(b"<redacted>".as_slice().into()));
    }
}
