//! Which calls are stored; the others are only counted.

use std::time::Duration;

use anyhow::{Result, bail};
use systape_abi::{Abi, Selection};
use systape_bpf::COUNTED_ONLY;

use crate::options::args::{Args, parse_delay};
use crate::own::say::say;

/// A threshold from here on was more likely meant as the length of the recording.
const LONG: Duration = Duration::from_secs(5);

/// Errors of calls are below it (MAX_ERRNO of linux/err.h, and one).
const LARGEST_ERRNO: u16 = 4096;
/// Not errors: the call is made again (linux/errno.h), and no program sees them.
const RESTARTS: [u16; 4] = [512, 513, 514, 516];

/// The filters `--duration`, `--slow`, `--failure` and `--errno`. A call is stored if it matches all of them, with `--any` one.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    /// Least duration of calls without an entry in `slow`, ns; 0 = any.
    min_dur: u64,
    /// The same for some calls; of several entries for one call the last one counts.
    slow: Vec<(Selection, u64)>,
    /// Only calls that failed.
    pub failures: bool,
    /// Only calls with one of these errnos.
    pub errnos: Option<Vec<u16>>,
    /// One of them suffices.
    pub any: bool,
    /// The options in words; empty = every call is stored.
    pub text: Vec<String>,
}

impl CallFilter {
    /// The filters in `args`.
    pub(crate) fn new(args: &Args) -> Result<Self> {
        let mut filter = Self::default();
        if let Some(duration) = args.duration {
            if duration >= LONG {
                say(format_args!(
                    "--duration {duration:?} stores only calls that take longer than that; to end the recording after a time use --for"
                ));
            }
            filter.min_dur = nanos(duration);
            filter.text.push(format!("--duration {duration:?}"));
        }
        for item in &args.slow {
            let Some((names, time)) = item.split_once('=') else {
                bail!("--slow {item}: write it as SYSCALL=TIME, e.g. read=5ms; of all calls it is --duration {item}");
            };
            let least = parse_delay(time).map_err(|e| anyhow::anyhow!("--slow {item}: {e}"))?;
            let selection = Selection::parse(&[names]).map_err(|e| anyhow::anyhow!("--slow {item}: {e}"))?;
            filter.slow.push((selection, nanos(least)));
            filter.text.push(format!("--slow {names}={least:?}"));
        }
        if !filter.slow.is_empty() && args.duration.is_none() {
            filter.min_dur = COUNTED_ONLY;
        }
        if args.failure {
            filter.failures = true;
            filter.text.push("--failure".into());
        }
        if !args.errno.is_empty() {
            filter.errnos = Some(errnos(&args.errno)?);
            filter.text.push(format!("--errno {}", args.errno.join(",")));
        }
        if args.any {
            if filter.text.len() < 2 {
                bail!(
                    "--any goes with two of --duration, --slow, --failure and --errno: a call that matches one is stored"
                );
            }
            if filter.slow.is_empty() && args.duration.is_none() {
                // no call is long enough by itself
                filter.min_dur = COUNTED_ONLY;
            }
            filter.any = true;
            filter.text.push("--any".into());
        }
        Ok(filter)
    }

    /// Whether some calls are only counted.
    pub(crate) fn is_on(&self) -> bool {
        !self.text.is_empty()
    }

    /// Least duration of a call, exclusive, ns; 0 = any, [`COUNTED_ONLY`] = it is never stored.
    pub(crate) fn min_dur(&self, abi: Abi, nr: u32) -> u64 {
        let named = self.slow.iter().rev().find(|(selection, _)| selection.contains(abi, nr));
        named.map_or(self.min_dur, |(_, least)| *least)
    }

    /// Whether a call that has been open for `elapsed` ns without a result is stored.
    pub(crate) fn stores_open(&self, abi: Abi, nr: u32, elapsed: u64) -> bool {
        elapsed >= self.min_dur(abi, nr) && (self.any || !self.failures && self.errnos.is_none())
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(COUNTED_ONLY)
}

/// `ENOENT,EACCES`: these; `!EAGAIN,!ENOENT`: all others.
fn errnos(list: &[String]) -> Result<Vec<u16>> {
    let left_out = |text: &String| text.strip_prefix('!').map(errno).transpose();
    let left: Vec<Option<u16>> = list.iter().map(left_out).collect::<Result<_>>()?;
    if left.iter().all(Option::is_none) {
        return list.iter().map(|text| errno(text)).collect();
    }
    if left.iter().any(Option::is_none) {
        bail!("--errno {}: write ! before all of them (all errors but these), or before none", list.join(","));
    }
    Ok((1..LARGEST_ERRNO).filter(|code| !left.contains(&Some(*code)) && !RESTARTS.contains(code)).collect())
}

/// `ENOENT` or `2`.
fn errno(text: &str) -> Result<u16> {
    let number = text.parse().ok().filter(|n| (1..LARGEST_ERRNO).contains(n));
    let upper = text.to_ascii_uppercase();
    match number.or_else(|| (1..LARGEST_ERRNO).find(|n| systape_abi::errno_name(*n) == Some(upper.as_str()))) {
        Some(number) => Ok(number),
        None => bail!("--errno {text}: there is no such error; write ENOENT or a number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn filter(options: &[&str]) -> Result<CallFilter> {
        CallFilter::new(&Args::parse_from([&["record"], options].concat()))
    }

    fn nr(name: &str) -> u32 {
        systape_abi::number(Abi::X86_64, name).unwrap()
    }

    #[test]
    fn thresholds_by_call() {
        let f = filter(&["--duration", "10", "--slow", "read=5ms,file=1s", "--slow", "openat=0"]).unwrap();
        let min = |name| f.min_dur(Abi::X86_64, nr(name));
        assert_eq!(
            (min("write"), min("read"), min("unlink"), min("openat")),
            (10_000_000, 5_000_000, 1_000_000_000, 0)
        );
        assert!(
            f.stores_open(Abi::X86_64, nr("read"), 5_000_000) && !f.stores_open(Abi::X86_64, nr("read"), 4_999_999)
        );
        let f = filter(&["--slow", "fsync=20"]).unwrap();
        assert_eq!(
            (f.min_dur(Abi::X86_64, nr("fsync")), f.min_dur(Abi::X86_64, nr("read"))),
            (20_000_000, COUNTED_ONLY)
        );
        assert!(!filter(&[]).unwrap().is_on());
        assert!(filter(&["--slow", "read"]).is_err() && filter(&["--slow", "read=x"]).is_err());
        assert!(filter(&["--slow", "no_such_call=1"]).is_err());
    }

    #[test]
    fn errors_by_name_and_number() {
        assert_eq!(filter(&["--errno", "ENOENT,13"]).unwrap().errnos, Some(vec![2, 13]));
        assert!(filter(&["--errno", "ENOSUCH"]).is_err() && filter(&["--errno", "0"]).is_err());
        let others = filter(&["--errno", "!EAGAIN,!2"]).unwrap().errnos.unwrap();
        assert!(others.contains(&1) && others.contains(&4095) && !others.contains(&11) && !others.contains(&2));
        assert!(!others.contains(&512) && others.contains(&515), "restarts are no errors");
        assert!(filter(&["--errno", "!EAGAIN,ENOENT"]).is_err() && filter(&["--errno", "!"]).is_err());
        let f = filter(&["--failed"]).unwrap();
        assert!(f.failures && f.is_on() && !f.stores_open(Abi::X86_64, 0, u64::MAX));
        assert_eq!(f.text, ["--failure"]);
    }

    #[test]
    fn one_of_several_suffices() {
        let f = filter(&["--duration", "10", "--failure", "--any"]).unwrap();
        assert_eq!((f.any, f.min_dur(Abi::X86_64, 0), f.text.last().unwrap().as_str()), (true, 10_000_000, "--any"));
        // what is open for long has no result yet, and is long already
        assert!(f.stores_open(Abi::X86_64, 0, 10_000_000) && !f.stores_open(Abi::X86_64, 0, 9_999_999));
        let f = filter(&["--failure", "--errno", "EIO", "--any"]).unwrap();
        assert!(f.min_dur(Abi::X86_64, 0) == COUNTED_ONLY && !f.stores_open(Abi::X86_64, 0, 1 << 40));
        assert!(filter(&["--any"]).is_err() && filter(&["--failure", "--any"]).is_err());
    }
}
