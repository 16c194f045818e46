//! From the words of `--escalate-on` to [`WrongCondition`].

use crate::options::args::parse_time;
use crate::triggers;

/// The words, for messages.
const WORDS: &str = "stuck>TIME, d>TIME, stopped>TIME, runq>TIME, throttled>N%, crowd>N, psi:cpu|memory|io>N%/TIME";

/// What is wrong; times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// A call that does not wait for work is in flight for longer.
    Stuck(u64),
    /// A thread is in uninterruptible sleep for longer.
    Uninterruptible(u64),
    /// A process is stopped for longer.
    Stopped(u64),
    /// A thread waits longer for a CPU, but not for its group's quota.
    RunQueue(u64),
    /// A process waits for its group's quota for more than this part of the time, percent.
    Throttled(u32),
    /// More threads are in one call on one file, or wait for one lock.
    Crowd(u32),
    /// Some tasks stall for want of a CPU, memory or storage: the kernel says so, by the trigger of these words.
    Pressure,
}

/// A condition as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongCondition {
    /// Text as it was typed.
    pub text: String,
    pub(crate) wrong: Wrong,
}

/// Reads a condition.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(text: &str) -> Result<WrongCondition, String> {
    if text.starts_with("psi:") {
        triggers::parse(text)?;
        return Ok(WrongCondition { text: text.to_owned(), wrong: Wrong::Pressure });
    }
    let (name, value) = text.split_once('>').ok_or_else(|| format!("'{text}': there are {WORDS}"))?;
    let time = || {
        let time = parse_time(value)?;
        u64::try_from(time.as_nanos()).map_err(|_| format!("'{value}' is too long"))
    };
    let wrong = match name {
        "stuck" => Wrong::Stuck(time()?),
        "d" | "D" => Wrong::Uninterruptible(time()?),
        "stopped" => Wrong::Stopped(time()?),
        "runq" => Wrong::RunQueue(time()?),
        "throttled" => {
            let percent = value.strip_suffix('%').and_then(|percent| percent.parse().ok());
            let percent = percent.filter(|percent| (1..=99).contains(percent));
            Wrong::Throttled(percent.ok_or_else(|| format!("'{value}': write 1% to 99%"))?)
        }
        "crowd" => {
            let threads = value.parse().ok().filter(|threads| (1..=255).contains(threads));
            Wrong::Crowd(threads.ok_or_else(|| format!("'{value}': write a number of threads, 1 to 255"))?)
        }
        _ => return Err(format!("'{text}': there are {WORDS}")),
    };
    Ok(WrongCondition { text: text.to_owned(), wrong })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        let read = |text| parse(text).map(|condition| condition.wrong);
        assert_eq!(read("stuck>1.5s"), Ok(Wrong::Stuck(1_500_000_000)));
        assert_eq!(read("d>300ms"), Ok(Wrong::Uninterruptible(300_000_000)));
        assert_eq!(read("stopped>2s"), Ok(Wrong::Stopped(2_000_000_000)));
        assert_eq!(read("runq>1s"), Ok(Wrong::RunQueue(1_000_000_000)));
        assert_eq!(read("throttled>70%"), Ok(Wrong::Throttled(70)));
        assert_eq!(read("crowd>50"), Ok(Wrong::Crowd(50)));
        assert_eq!(read("psi:memory>20%/2s"), Ok(Wrong::Pressure));
        for (text, why) in [
            ("stuck", "there are stuck>TIME"),
            ("io>1s", "there are stuck>TIME"),
            ("throttled>0%", "1% to 99%"),
            ("throttled>70", "1% to 99%"),
            ("crowd>0", "1 to 255"),
            ("d>soon", "soon"),
            ("psi:disk>20%/2s", "psi:io"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
        assert!(super::super::USUAL.iter().all(|text| parse(text).is_ok()));
    }
}
