//! From the words of `--on` to [`TriggerSpec`].

use std::time::Duration;

use systape_abi::{Selection, errno_name, signal_number};

use super::{Kind, Resource, TriggerSpec};
use crate::options::args::parse_time;

/// The words, for messages.
const WORDS: &str = "kill, signal:SEGV,ABRT, oom, slow:CALLS>TIME, stuck:CALLS>TIME, errno:CALLS=ERRNO>N/s, io>TIME, \
                     io-error, runq>TIME, exec:GLOB, exit:GLOB, file:PATH, psi:cpu|memory|io>N%/TIME, lost>N/s";
/// Least and greatest window of the kernel's pressure triggers.
const PRESSURE: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];

/// Reads a trigger.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(text: &str) -> Result<TriggerSpec, String> {
    let kind = |name: &str| text.strip_prefix(name);
    let plain = |rest: &str| rest.is_empty() || rest.starts_with(':');
    let mut spec = TriggerSpec { text: text.to_owned(), kind: Kind::Oom, comm: None, disk: None, device: None };
    if text == "oom" {
        return Ok(spec);
    }
    if let Some(rest) = kind("kill").filter(|rest| plain(rest)) {
        (spec.kind, spec.comm) = (Kind::Died(None), rest.strip_prefix(':').map(str::to_owned));
    } else if let Some(rest) = kind("signal:") {
        let (names, comm) = behind(rest);
        let number = |name: &str| signal_number(name).ok_or_else(|| format!("'{name}' is no signal"));
        (spec.kind, spec.comm) = (Kind::Died(Some(names.split(',').map(number).collect::<Result<_, _>>()?)), comm);
    } else if let Some(rest) = kind("slow:") {
        let (calls, time, comm) = calls_over(rest)?;
        (spec.kind, spec.comm) = (Kind::Slow(calls, time), comm);
    } else if let Some(rest) = kind("stuck:") {
        let (calls, time, comm) = calls_over(rest)?;
        (spec.kind, spec.comm) = (Kind::Stuck(calls, time), comm);
    } else if let Some(rest) = kind("errno:") {
        let (left, right) = rest.split_once('>').ok_or("write it as errno:CALLS=ERRNO>N/s")?;
        let (calls, errno) = left.split_once('=').ok_or("write it as errno:CALLS=ERRNO>N/s")?;
        let (rate, comm) = behind(right);
        let most = u32::try_from(per_second(rate)?).map_err(|_| format!("'{rate}' is too many"))?;
        (spec.kind, spec.comm) = (Kind::Errno(selection(calls)?, error(errno)?, most), comm);
    } else if let Some(rest) = kind("io-error").filter(|rest| plain(rest)) {
        (spec.kind, spec.disk) = (Kind::IoError, rest.strip_prefix(':').map(str::to_owned));
    } else if let Some(rest) = kind("io>") {
        let (time, disk) = behind(rest);
        (spec.kind, spec.disk) = (Kind::Io(nanos(time)?), disk);
    } else if let Some(rest) = kind("runq>") {
        let (time, comm) = behind(rest);
        (spec.kind, spec.comm) = (Kind::RunQueue(nanos(time)?), comm);
    } else if let Some(glob) = kind("exec:") {
        spec.kind = Kind::Exec(some(glob)?);
    } else if let Some(rest) = kind("exit:") {
        let failed = rest.strip_suffix("!=0");
        spec.kind = Kind::Exit(some(failed.unwrap_or(rest))?, failed.is_some());
    } else if let Some(path) = kind("file:") {
        if !path.starts_with('/') || path.ends_with('/') {
            return Err(format!("'{path}': write the whole path of a file, from / on"));
        }
        spec.kind = Kind::File(path.to_owned());
    } else if let Some(rest) = kind("psi:") {
        spec.kind = pressure(rest)?;
    } else if let Some(rate) = kind("lost>") {
        spec.kind = Kind::Lost(per_second(rate)?);
    } else {
        return Err(format!("there is no such trigger; there are {WORDS}"));
    }
    match spec.comm.as_ref().or(spec.disk.as_ref()).is_some_and(String::is_empty) {
        true => Err("nothing stands behind the last ':'".into()),
        false => Ok(spec),
    }
}

fn some(glob: &str) -> Result<String, String> {
    if glob.is_empty() { Err("a name or a pattern is missing".into()) } else { Ok(glob.to_owned()) }
}

/// What stands in front of the first `:`, and behind it.
fn behind(text: &str) -> (&str, Option<String>) {
    text.split_once(':').map_or((text, None), |(text, name)| (text, Some(name.to_owned())))
}

fn selection(calls: &str) -> Result<Selection, String> {
    some(calls)?;
    let selection = Selection::parse(&[calls]).map_err(|e| e.to_string())?;
    if selection.other_events().is_empty() { Ok(selection) } else { Err(format!("'{calls}': only syscalls")) }
}

fn calls_over(rest: &str) -> Result<(Selection, u64, Option<String>), String> {
    let (calls, right) = rest.split_once('>').ok_or("a time is missing: CALLS>TIME, such as fsync>500ms")?;
    let (time, comm) = behind(right);
    Ok((selection(calls)?, nanos(time)?, comm))
}

fn nanos(text: &str) -> Result<u64, String> {
    let time = parse_time(text)?;
    u64::try_from(time.as_nanos()).map_err(|_| format!("'{text}' is too long"))
}

fn per_second(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix("/s").and_then(|number| number.parse().ok());
    number.ok_or_else(|| format!("'{text}': write a number a second, such as 100/s"))
}

fn error(text: &str) -> Result<u16, String> {
    let upper = text.to_ascii_uppercase();
    let number = text.parse().ok().filter(|n| (1..4096).contains(n));
    let number = number.or_else(|| (1..4096).find(|n| errno_name(*n) == Some(upper.as_str())));
    number.ok_or_else(|| format!("there is no error '{text}'; write ENOENT or a number"))
}

fn pressure(rest: &str) -> Result<Kind, String> {
    let form = || format!("'{rest}': write it as psi:io>20%/2s");
    let (name, right) = rest.split_once('>').ok_or_else(form)?;
    let (percent, time) = right.split_once("%/").ok_or_else(form)?;
    let all = [Resource::Cpu, Resource::Memory, Resource::Io];
    let resource = all.into_iter().find(|resource| resource.name() == name).ok_or_else(form)?;
    let percent = percent.parse().ok().filter(|percent| (1..=100).contains(percent)).ok_or_else(form)?;
    let window = parse_time(time)?;
    if window < PRESSURE[0] || window > PRESSURE[1] {
        return Err(format!("'{time}': the kernel takes 500ms to 10s"));
    }
    Ok(Kind::Pressure(resource, percent, window.as_nanos() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_read() {
        let read = |text: &str| parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert!(matches!(read("kill").kind, Kind::Died(None)));
        assert_eq!(read("kill:redis-server").comm.as_deref(), Some("redis-server"));
        assert!(matches!(read("signal:SEGV,6").kind, Kind::Died(Some(signals)) if signals == [11, 6]));
        let slow = read("slow:fsync,fdatasync>500ms:postgres");
        assert!(matches!(slow.kind, Kind::Slow(_, 500_000_000)));
        assert_eq!((slow.comm.as_deref(), slow.slug().as_str()), (Some("postgres"), "slow:fsync,fdatasync"));
        assert!(matches!(read("stuck:read>2s").kind, Kind::Stuck(_, 2_000_000_000)));
        let errno = read("errno:file=ENOENT>100/s");
        assert!(matches!(errno.kind, Kind::Errno(_, 2, 100)));
        assert_eq!(errno.slug(), "errno:file-ENOENT");
        assert_eq!(read("io>1s:sda").disk.as_deref(), Some("sda"));
        assert!(matches!(read("io-error").kind, Kind::IoError));
        assert!(matches!(read("runq>20ms").kind, Kind::RunQueue(20_000_000)));
        assert!(matches!(read("exit:make*!=0").kind, Kind::Exit(glob, true) if glob == "make*"));
        assert!(matches!(read("exit:make").kind, Kind::Exit(_, false)));
        assert!(matches!(read("psi:memory>20%/2s").kind, Kind::Pressure(Resource::Memory, 20, 2_000_000_000)));
        assert!(matches!(read("lost>10/s").kind, Kind::Lost(10)));
        assert_eq!(read("file:/run/core.1").slug(), "file-core.1");
        assert_eq!(read("exit:sh!=0").slug(), "exit:sh");
    }

    #[test]
    fn what_is_none_is_refused_with_a_reason() {
        for (text, why) in [
            ("kil", "there are kill, signal"),
            ("signal:SEGGV", "is no signal"),
            ("slow:fsync", "a time is missing"),
            ("slow:fsink>1s", "fsink"),
            ("slow:>1s", "missing"),
            ("slow:fsync>1 fortnight", "unit"),
            ("slow:fsync>1s:", "behind the last"),
            ("errno:open=ENOPE>1/s", "no error"),
            ("errno:open=ENOENT>1", "a number a second"),
            ("psi:disk>20%/2s", "psi:io"),
            ("psi:io>20%/20s", "500ms to 10s"),
            ("psi:io>200%/2s", "psi:io"),
            ("file:core", "whole path"),
            ("lost>many/s", "a number a second"),
            ("exec:", "missing"),
        ] {
            let error = parse(text).err().unwrap_or_else(|| panic!("{text} was taken"));
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
