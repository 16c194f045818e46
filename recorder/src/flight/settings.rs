//! What the options of the flight recorder come to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use systape_abi::Selection;
use systape_format::model::Family;

use super::dir::Limits;
use super::ring::RingBounds;
use crate::kernel::families::Families;
use crate::kernel::native;
use crate::machine::devices::number;
use crate::options::args::{Args, Rotation};
use crate::triggers::{self, Kind, TriggerSpec};

/// A chunk is this part of the time that is kept, and of the size.
const CHUNK_PART: u32 = 8;
const CHUNK: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// Bytes at which a chunk ends, also without a bound.
const CHUNK_BYTES: u64 = 32 << 20;
/// The smallest ring that holds a few chunks of a busy machine.
const LEAST_RING: u64 = 4 << 20;

/// Settings of the flight recorder.
#[derive(Clone, Debug)]
pub(crate) struct FlightSettings {
    pub(crate) bounds: RingBounds,
    pub(crate) dir: PathBuf,
    pub(crate) triggers: Vec<TriggerSpec>,
    pub(crate) after: Duration,
    pub(crate) cooldown: Duration,
    pub(crate) limits: Limits,
    pub(crate) rotation: Option<Rotation>,
}

impl FlightSettings {
    /// The settings in `args`; None = nothing of the kind is asked for.
    ///
    /// # Errors
    /// Options that do not go together, or a trigger that cannot fire.
    pub(crate) fn new(args: &Args, selection: &Selection, families: &Families) -> Result<Option<Self>> {
        let rotation = args.rotate;
        let keeps = args.last.is_some() || args.ring_size.is_some();
        if !keeps && rotation.is_none() {
            let given = [(!args.on.is_empty(), "--on"), (args.dir.is_some(), "--dir"), (args.keep.is_some(), "--keep")];
            return match given.into_iter().find(|(given, _)| *given) {
                Some((_, name)) => bail!("{name} goes with --last TIME (keep that much in memory) or --rotate"),
                None => Ok(None),
            };
        }
        if keeps && rotation.is_some() {
            bail!("--rotate writes everything, --last nothing until a trigger fires: leave one of them out");
        }
        if rotation.is_some() && !args.on.is_empty() {
            bail!("--on: --rotate writes everything; triggers go with --last");
        }
        if args.keep.is_some() && rotation.is_none() {
            bail!("--keep goes with --rotate; with --last it is --max-tapes");
        }
        let bytes = args.ring_size.unwrap_or(256 << 20);
        if bytes < LEAST_RING {
            bail!("--ring: it takes at least {} MiB", LEAST_RING >> 20);
        }
        let last = match (rotation, args.last) {
            (Some(_), _) => 0,
            (None, Some(last)) => u64::try_from(last.as_nanos()).unwrap_or(u64::MAX).max(1),
            (None, None) => u64::MAX,
        };
        let specs = args.on.iter().map(|text| spec(text)).collect::<Result<Vec<_>>>()?;
        let settings = Self {
            bounds: RingBounds { last, bytes },
            dir: args.dir.clone().unwrap_or_else(|| PathBuf::from(".")),
            triggers: specs,
            after: args.after,
            cooldown: args.cooldown,
            limits: Limits { tapes: args.keep.unwrap_or(args.max_tapes), bytes: args.disk, free: args.keep_free },
            rotation,
        };
        settings.check(selection, families)?;
        Ok(Some(settings))
    }

    /// Fails if a trigger needs what is not recorded.
    ///
    /// # Errors
    /// Which one, and what it needs.
    pub(crate) fn check(&self, selection: &Selection, families: &Families) -> Result<()> {
        for spec in &self.triggers {
            let needs = match &spec.kind {
                Kind::Slow(..) | Kind::Stuck(..) | Kind::Errno(..) => Family::Syscall,
                Kind::Io(_) | Kind::IoError => Family::Block,
                Kind::RunQueue(_) => Family::Sched,
                Kind::Oom => Family::Signal,
                _ => Family::Process,
            };
            if !families.has(needs) {
                bail!("--on {}: it needs the family {}, which is not recorded (--families)", spec.text, needs.name());
            }
            if let Kind::Slow(calls, _) | Kind::Stuck(calls, _) | Kind::Errno(calls, ..) = &spec.kind {
                let wanted = systape_abi::all(native::ABI).filter(|(nr, _)| calls.contains(native::ABI, *nr));
                if let Some((_, name)) = wanted.into_iter().find(|(nr, _)| !selection.contains(native::ABI, *nr)) {
                    bail!("--on {}: {name} is not recorded (-e)", spec.text);
                }
            }
        }
        Ok(())
    }

    /// Whether nothing is written before a trigger fires.
    pub(crate) fn keeps_in_memory(&self) -> bool {
        self.rotation.is_none()
    }

    /// Longest time of a chunk.
    pub(crate) fn chunk_time(&self) -> Duration {
        let part = Duration::from_nanos(self.bounds.last) / CHUNK_PART;
        if self.rotation.is_some() { CHUNK[1] } else { part.clamp(CHUNK[0], CHUNK[1]) }
    }

    /// Bytes at which a chunk ends.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        CHUNK_BYTES.min(self.bounds.bytes / u64::from(CHUNK_PART))
    }
}

/// A trigger, with its disk's number.
fn spec(text: &str) -> Result<TriggerSpec> {
    let mut spec = triggers::parse(text).map_err(|why| anyhow!("--on {text}: {why}"))?;
    if let Some(disk) = &spec.disk {
        let number = if disk.contains('/') { None } else { number(&Path::new("/sys/class/block").join(disk)) };
        let (major, minor) =
            number.with_context(|| format!("--on {text}: there is no disk '{disk}' in /sys/class/block"))?;
        spec.device = Some(major << 20 | minor);
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn settings(options: &[&str]) -> Result<Option<FlightSettings>> {
        let args = Args::parse_from([&["record"], options].concat());
        let selection = Selection::parse(&args.events).map_err(|e| anyhow!("{e}"))?;
        FlightSettings::new(&args, &selection, &Families::parse(&args.families)?)
    }

    #[test]
    fn chunks_are_an_eighth_of_what_is_kept() {
        assert!(settings(&[]).unwrap().is_none());
        let of = |options: &[&str]| {
            let settings = settings(options).unwrap().unwrap();
            (settings.bounds.last / 1_000_000_000, settings.chunk_time().as_secs(), settings.chunk_bytes() >> 20)
        };
        assert_eq!(of(&["--last", "40s"]), (40, 5, 32));
        assert_eq!(of(&["--last", "2s", "--ring", "64M"]), (2, 1, 8));
        assert_eq!(of(&["--last", "1h", "--ring", "1G"]), (3600, 60, 32));
        assert_eq!(of(&["--ring", "64M"]), (u64::MAX / 1_000_000_000, 60, 8));
        assert_eq!(of(&["--rotate", "1h", "--keep", "3"]), (0, 60, 32));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (options, why) in [
            (&["--on", "kill"][..], "goes with --last"),
            (&["--dir", "/tmp"], "goes with --last"),
            (&["--last", "5s", "--rotate", "1h"], "leave one of them out"),
            (&["--rotate", "1h", "--on", "kill"], "go with --last"),
            (&["--last", "5s", "--keep", "3"], "--max-tapes"),
            (&["--last", "5s", "--ring", "1M"], "at least 4 MiB"),
            (&["--last", "5s", "--on", "slow:fsync>1s", "-e", "read"], "fsync is not recorded"),
            (&["--last", "5s", "--on", "slow:fsync>1s", "--families", "sched"], "family syscall"),
            (&["--last", "5s", "--on", "runq>1s", "--families", "syscall"], "family sched"),
            (&["--last", "5s", "--on", "io>1s", "--families", "syscall"], "family block"),
            (&["--last", "5s", "--on", "oom", "--families", "syscall"], "family signal"),
            (&["--last", "5s", "--on", "io>1s:no-such-disk"], "no disk"),
            (&["--last", "5s", "--on", "nothing"], "no such trigger"),
        ] {
            let error = settings(options).err().unwrap_or_else(|| panic!("{options:?} was taken"));
            assert!(format!("{error:#}").contains(why), "{options:?}: {error:#}");
        }
        assert!(settings(&["--last", "5s", "--on", "slow:fsync>1s", "-e", "fsync,read", "--on", "kill"]).is_ok());
    }

    /// The service, the DaemonSet and the compose file are one flight recorder: what differs is where tapes go.
    #[test]
    fn what_is_shipped_records_the_same() {
        let of_service = include_str!("../../../packaging/systape.conf");
        let line = of_service.lines().find_map(|line| line.strip_prefix("SYSTAPE_ARGS=")).unwrap();
        let mut service: Vec<String> = Vec::new();
        // `--option value` as `--option=value`
        for word in line.trim_matches('"').split(' ') {
            match service.last_mut() {
                Some(last) if !word.starts_with("--") => *last = format!("{last}={word}"),
                _ => service.push(word.to_owned()),
            }
        }
        let of_list = |text: &str| -> Vec<String> {
            text.lines().filter_map(|line| line.trim().strip_prefix("- --")).map(|word| format!("--{word}")).collect()
        };
        let shipped = [
            service,
            of_list(include_str!("../../../packaging/kubernetes/daemonset.yaml")),
            of_list(include_str!("../../../packaging/container/compose.yaml")),
        ];
        let same = |words: &[String]| -> Vec<String> {
            let own = |word: &&String| !word.starts_with("--dir=") && !word.starts_with("--label=");
            words.iter().filter(own).cloned().collect()
        };
        for words in &shipped {
            assert_eq!(same(words), same(&shipped[0]));
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let flight = settings(&words).unwrap().expect("a flight recorder");
            assert_eq!(flight.bounds.last, 60_000_000_000);
        }
    }
}
